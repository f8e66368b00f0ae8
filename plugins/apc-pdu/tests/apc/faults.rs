//! What goes wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_plugin_snmp::testing::Faults;
use node_remedy_sdk::testing::TestHost;
use node_remedy_sdk::testing::faults::{Fault, FaultTable, Sessions};
use node_remedy_sdk::{Action, Request};

use crate::pdu::{DEADLINE_MS, Ended, Model, ask_for};

#[test]
fn each_fault_has_its_kind_and_sentence() {
    type Host = fn(TestHost) -> TestHost;
    let none = Faults::default;
    let same: Host = |host| host;
    let rows: Vec<(&str, &str, Faults, Host)> = vec![
        ("unreachable", "3", none(), |host| host.unreachable("agent")),
        ("wrong credentials: community", "3", none(), |host| {
            host.credential("community", None, b"guess").revealing("community")
        }),
        ("no rights: a community that may only read", "3", none(), |host| {
            host.credential("community", None, b"public").revealing("community")
        }),
        ("wrong credentials: no community", "3", none(), |host| {
            host.credential("community", None, b"")
        }),
        ("silent from the start", "3", Faults { falls_silent_after: Some(0), ..none() }, same),
        ("silent after the table", "3", Faults { falls_silent_after: Some(1), ..none() }, same),
        ("silent to the SET", "3", Faults { is_silent_to_sets: true, ..none() }, same),
        ("wrong plug", "99", none(), same),
        ("wrong plug: all of them", "0", none(), same),
        ("stuck", "3", Faults { is_stuck: true, ..none() }, same),
        ("late", "3", Faults { late_ms: 9_000, ..none() }, same),
        ("flips back at once", "3", Faults { back_after_ms: Some(10), ..none() }, same),
        ("another's answers", "3", Faults { has_wrong_ids: true, ..none() }, same),
        ("about other objects", "3", Faults { has_wrong_oids: true, ..none() }, same),
        (
            "truncated",
            "3",
            Faults {
                mangle: Some(|mut it| {
                    it.truncate(20);
                    it
                }),
                ..none()
            },
            same,
        ),
        ("huge", "3", Faults { mangle: Some(|_| vec![0x30; 12_000]), ..none() }, same),
        (
            "malformed: no SNMP",
            "3",
            Faults { mangle: Some(|_| b"login: ".to_vec()), ..none() },
            same,
        ),
        ("huge: a table without end", "3", Faults { is_endless: true, ..none() }, same),
        ("genErr to GET", "3", Faults { get_status: Some(5), ..none() }, same),
        ("genErr to SET", "3", Faults { set_status: Some(5), ..none() }, same),
        ("wrongValue", "3", Faults { set_status: Some(10), ..none() }, same),
        ("resourceUnavailable", "3", Faults { set_status: Some(13), ..none() }, same),
        ("authorizationError", "3", Faults { set_status: Some(16), ..none() }, same),
        ("notWritable", "3", Faults { set_status: Some(17), ..none() }, same),
    ];
    let mut table = FaultTable::new("apc-pdu", DEADLINE_MS);
    for (name, plug, faults, host) in rows {
        let off = Request { plug: plug.to_owned(), ..Request::new(Action::Off, DEADLINE_MS) };
        let ended = ask_for(Model::Rpdu.pdu().faulty(faults), off, host);
        let Ended { result, took_ms, .. } = &ended;
        let (action, took_ms, sessions) = (Action::Off, *took_ms, Sessions::None);
        table.row(&Fault { name, action, result, took_ms, sessions, is_off: false });
    }
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable | 0 ms | Unreachable, again: failed to send to the agent: the network says that the device is unreachable
        wrong credentials: community | 5000 ms | Unreachable, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: no answer in 5000 ms (4 sent): check the address, the network, and that the device has SNMP on, and the community: agents answer a wrong one with silence
        no rights: a community that may only read | 120 ms | Denied: SET 1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3 = 2: noAccess (6): community or user may not do this: check the agent's access rules
        wrong credentials: no community | 0 ms | Denied: failed to use the credential community: the operation was not granted; SNMP sends a community as it is, so the plugin must see it: add reveal: [community] to the grant
        silent from the start | 5000 ms | Unreachable, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: no answer in 5000 ms (4 sent): check the address, the network, and that the device has SNMP on, and the community: agents answer a wrong one with silence
        silent after the table | 5020 ms | Timeout, again: GETNEXT 1.3.6.1.4.1.318.1.1.12.3.5.1.1.4: no answer in 5000 ms (4 sent), though the agent had answered before
        silent to the SET | 5100 ms | Timeout, again: SET 1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3 = 2: no answer in 5000 ms (4 sent), though the agent had answered before; it may have been carried out: read the status
        wrong plug | 240 ms | NoSuchPlug: rPDU has no outlet 99; expected one of 1, 2, 3, 4, 5, 6, 7, 8
        wrong plug: all of them | 240 ms | NoSuchPlug: rPDU has no outlet 0; expected one of 1, 2, 3, 4, 5, 6, 7, 8
        stuck | 1220 ms | Transitioning: off accepted; rPDU outlet 3 reads on (1) still
        late | 1220 ms | Transitioning: off accepted; rPDU outlet 3 reads on (1) still
        flips back at once | 1220 ms | Transitioning: off accepted; rPDU outlet 3 reads on (1) still
        another's answers | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: dropped 4 answers, the last because it answers another request
        about other objects | 60 ms | Protocol: GET 1.3.6.1.4.1.318.1.1.12.3.5.1.1.4.3: the agent answered about other objects than it was asked
        truncated | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: dropped 4 answers, the last because it is no SNMP message, or a part of one
        huge | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: dropped 4 answers, the last because it is longer than any answer can be
        malformed: no SNMP | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: dropped 4 answers, the last because it is no SNMP message, or a part of one
        huge: a table without end | 20580 ms | Protocol: GETNEXT 1.3.6.1.4.1.318.1.1.6.7.1.1.5: the table has no end
        genErr to GET | 20 ms | Device, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: genErr (5): the agent failed and does not say why
        genErr to SET | 140 ms | Device, again: SET 1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3 = 2: genErr (5): the agent failed and does not say why
        wrongValue | 140 ms | Unsupported: SET 1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3 = 2: wrongValue (10): the device cannot do this
        resourceUnavailable | 120 ms | Busy, again: SET 1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3 = 2: resourceUnavailable (13): the agent lacks the means just now
        authorizationError | 120 ms | Denied: SET 1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3 = 2: authorizationError (16): community or user may not do this at this security level: check the agent's access rules
        notWritable | 120 ms | Denied: SET 1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3 = 2: notWritable (17): the object cannot be written: is this plug switched at all, and may the user write?
    "#]].assert_eq(&table);
}

/// It says itself that the time is over; the host need not cut it.
#[test]
fn a_silent_pdu_is_left_before_the_deadline() {
    let faults = || Faults { falls_silent_after: Some(0), ..Faults::default() };
    let status = Request { plug: "3".to_owned(), ..Request::new(Action::Status, 3_000) };
    let ended = ask_for(Model::Rpdu.pdu().faulty(faults()), status, |host| host);
    assert_eq!(ended.took_ms, 2_750);
    assert!(ended.result.unwrap_err().retryable);
}
