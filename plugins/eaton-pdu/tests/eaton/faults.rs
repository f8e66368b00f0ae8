//! What goes wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_plugin_snmp::testing::{Agent, Faults};
use node_remedy_sdk::testing::TestHost;
use node_remedy_sdk::testing::faults::{Fault, FaultTable, Sessions};
use node_remedy_sdk::{Action, Request};

use crate::pdu::{DEADLINE_MS, Ended, Model, ask_for};

#[test]
fn each_fault_has_its_kind_and_sentence() {
    type Host = fn(TestHost) -> TestHost;
    let none = Faults::default;
    let pdu = |faults| Model::Epdu.pdu().faulty(faults);
    let same: Host = |host| host;
    let rows: Vec<(&str, &str, Agent, Host)> = vec![
        ("unreachable", "3", pdu(none()), |host| host.unreachable("agent")),
        ("no such table", "3", Agent::new(), same),
        ("wrong credentials: community", "3", pdu(none()), |host| {
            host.credential("community", None, b"guess").revealing("community")
        }),
        ("no rights: a community that may only read", "3", pdu(none()), |host| {
            host.credential("community", None, b"public").revealing("community")
        }),
        ("silent to the SET", "3", pdu(Faults { is_silent_to_sets: true, ..none() }), same),
        ("wrong plug", "99", pdu(none()), same),
        (
            "malformed: no SNMP",
            "3",
            pdu(Faults { mangle: Some(|_| b"login: ".to_vec()), ..none() }),
            same,
        ),
        ("stuck", "3", pdu(Faults { is_stuck: true, ..none() }), same),
        ("late", "3", pdu(Faults { late_ms: 9_000, ..none() }), same),
        ("flips back at once", "3", pdu(Faults { back_after_ms: Some(10), ..none() }), same),
        ("another's answers", "3", pdu(Faults { has_wrong_ids: true, ..none() }), same),
        (
            "truncated",
            "3",
            pdu(Faults {
                mangle: Some(|mut it| {
                    it.truncate(20);
                    it
                }),
                ..none()
            }),
            same,
        ),
        ("huge", "3", pdu(Faults { mangle: Some(|_| vec![0x30; 12_000]), ..none() }), same),
        ("genErr to SET", "3", pdu(Faults { set_status: Some(5), ..none() }), same),
        ("badValue", "3", pdu(Faults { set_status: Some(3), ..none() }), same),
        ("readOnly", "3", pdu(Faults { set_status: Some(4), ..none() }), same),
    ];
    let mut table = FaultTable::new("eaton-pdu", DEADLINE_MS);
    for (name, plug, pdu, host) in rows {
        let off = Request { plug: plug.to_owned(), ..Request::new(Action::Off, DEADLINE_MS) };
        let ended = ask_for(pdu, off, host);
        let Ended { result, took_ms, .. } = &ended;
        let (action, took_ms, sessions) = (Action::Off, *took_ms, Sessions::None);
        table.row(&Fault { name, action, result, took_ms, sessions, is_off: false });
    }
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable | 0 ms | Unreachable, again: failed to send to the agent: the network says that the device is unreachable
        no such table | 60 ms | Unsupported: the device has none of the tables of outlets that this method knows (ePDU, managed ePDU, switched ePDU): is it of this make, switched by outlet, and may the user see them?
        wrong credentials: community | 5000 ms | Unreachable, again: GETNEXT 1.3.6.1.4.1.534.6.6.7.6.6.1.2: no answer in 5000 ms (4 sent): check the address, the network, and that the device has SNMP on, and the community: agents answer a wrong one with silence
        no rights: a community that may only read | 100 ms | Denied: SET 1.3.6.1.4.1.534.6.6.7.6.6.1.3.0.3 = 0: noSuchName (2): there is no such object, or the community may not write it: check the agent's access rules
        silent to the SET | 5080 ms | Timeout, again: SET 1.3.6.1.4.1.534.6.6.7.6.6.1.3.0.3 = 0: no answer in 5000 ms (4 sent), though the agent had answered before; it may have been carried out: read the status
        wrong plug | 260 ms | NoSuchPlug: ePDU has no outlet 99; expected one of 1, 2, 3, 4, 5, 6, 7, 8, 2.1, 2.2
        malformed: no SNMP | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.534.6.6.7.6.6.1.2: dropped 4 answers, the last because it is no SNMP message, or a part of one
        stuck | 1200 ms | Transitioning: off accepted; ePDU outlet 3 reads on (1) still
        late | 1200 ms | Transitioning: off accepted; ePDU outlet 3 reads on (1) still
        flips back at once | 1200 ms | Transitioning: off accepted; ePDU outlet 3 reads on (1) still
        another's answers | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.534.6.6.7.6.6.1.2: dropped 4 answers, the last because it answers another request
        truncated | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.534.6.6.7.6.6.1.2: dropped 4 answers, the last because it is no SNMP message, or a part of one
        huge | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.534.6.6.7.6.6.1.2: dropped 4 answers, the last because it is longer than any answer can be
        genErr to SET | 120 ms | Device, again: SET 1.3.6.1.4.1.534.6.6.7.6.6.1.3.0.3 = 0: genErr (5): the agent failed and does not say why
        badValue | 120 ms | Unsupported: SET 1.3.6.1.4.1.534.6.6.7.6.6.1.3.0.3 = 0: badValue (3): the agent does not take this value
        readOnly | 100 ms | Denied: SET 1.3.6.1.4.1.534.6.6.7.6.6.1.3.0.3 = 0: readOnly (4): the community may only read: use one that may write
    "#]].assert_eq(&table);
}
