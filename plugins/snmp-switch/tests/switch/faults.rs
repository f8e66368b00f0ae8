//! What goes wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_plugin_snmp::testing::{Agent, Faults};
use node_remedy_sdk::testing::TestHost;
use node_remedy_sdk::testing::faults::{Fault, FaultTable, Sessions};
use node_remedy_sdk::{Action, Request};

use crate::device::{DEADLINE_MS, Ended, ask_for, switch};

type Host = fn(TestHost) -> TestHost;

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let none = Faults::default;
    let faulty = |faults| switch(Some(0)).faulty(faults);
    let same: Host = |host| host;
    let rows: Vec<(&str, &str, Agent, Host)> = vec![
        ("unreachable", "2c", faulty(none()), |host| host.unreachable("agent")),
        ("wrong credentials: community", "2c", faulty(none()), |host| {
            host.credential("community", None, b"guess").revealing("community")
        }),
        ("no rights: a community that may only read", "2c", faulty(none()), |host| {
            host.credential("community", None, b"public").revealing("community")
        }),
        ("wrong credentials: no user", "3", faulty(none()), same),
        ("wrong credentials: user", "3", faulty(none()), |host| {
            let host = host.credential("account", Some("fence"), b"authpass12");
            host.credential("privacy", None, b"privpass12")
        }),
        ("wrong credentials: level", "3", faulty(none()), |host| {
            let host = host.credential("account", Some("looker"), b"authpass12");
            host.credential("privacy", None, b"privpass12")
        }),
        ("silent to the SET", "2c", faulty(Faults { is_silent_to_sets: true, ..none() }), same),
        ("wrong plug: no ports", "2c", Agent::new(), same),
        (
            "malformed: no SNMP",
            "2c",
            faulty(Faults { mangle: Some(|_| b"login: ".to_vec()), ..none() }),
            same,
        ),
        ("stuck", "2c", faulty(Faults { is_stuck: true, ..none() }), same),
        ("stuck: the link stays up", "2c", switch(None), same),
        ("late", "2c", faulty(Faults { late_ms: 9_000, ..none() }), same),
        ("flips back at once", "2c", faulty(Faults { back_after_ms: Some(10), ..none() }), same),
        ("another's answers", "2c", faulty(Faults { has_wrong_ids: true, ..none() }), same),
        (
            "malformed: about other objects",
            "1",
            faulty(Faults { has_wrong_oids: true, ..none() }),
            same,
        ),
        (
            "truncated",
            "1",
            faulty(Faults {
                mangle: Some(|mut it| {
                    it.truncate(20);
                    it
                }),
                ..none()
            }),
            same,
        ),
        ("huge", "2c", faulty(Faults { mangle: Some(|_| vec![0x30; 12_000]), ..none() }), same),
        ("huge: a table without end", "2c", faulty(Faults { is_endless: true, ..none() }), same),
        ("genErr to SET", "2c", faulty(Faults { set_status: Some(5), ..none() }), same),
        ("inconsistentValue", "2c", faulty(Faults { set_status: Some(12), ..none() }), same),
        ("commitFailed", "2c", faulty(Faults { set_status: Some(14), ..none() }), same),
    ];
    let mut table = FaultTable::new("snmp-switch", DEADLINE_MS);
    let mut row = |name: &str, (plug, version): (&str, &str), switch, host: Host| {
        let off = Request {
            plug: plug.to_owned(),
            parameters: vec![("version".to_owned(), version.to_owned())],
            ..Request::new(Action::Off, DEADLINE_MS)
        };
        let Ended { result, took_ms, .. } = &ask_for(switch, off, host);
        let (action, took_ms, sessions) = (Action::Off, *took_ms, Sessions::None);
        table.row(&Fault { name, action, result, took_ms, sessions, is_off: false });
    };
    for (name, version, switch, host) in rows {
        row(name, ("Gi1/0/3", version), switch, host);
    }
    row("wrong plug", ("Gi1/0/9", "2c"), faulty(none()), same);
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable | 0 ms | Unreachable, again: failed to send to the agent: the network says that the device is unreachable
        wrong credentials: community | 5000 ms | Unreachable, again: GETNEXT 1.3.6.1.2.1.31.1.1.1.1: no answer in 5000 ms (4 sent): check the address, the network, and that the device has SNMP on, and the community: agents answer a wrong one with silence
        no rights: a community that may only read | 680 ms | Denied: SET 1.3.6.1.2.1.2.2.1.7.10003 = 2: noAccess (6): community or user may not do this: check the agent's access rules
        wrong credentials: no user | 0 ms | BadParameters: failed to use the credential account: no such credential is configured; configure it in the method's credentials
        wrong credentials: user | 40 ms | Unauthenticated: GETNEXT 1.3.6.1.2.1.31.1.1.1.1 as user "fence": unknownUserNames: the device has no such user: check the name
        wrong credentials: level | 40 ms | Unauthenticated: GETNEXT 1.3.6.1.2.1.31.1.1.1.1 as user "looker": unsupportedSecLevels: the agent does not have this security level for the user: check security-level, and whether the user has both passwords on the device
        silent to the SET | 5660 ms | Timeout, again: SET 1.3.6.1.2.1.2.2.1.7.10003 = 2: no answer in 5000 ms (4 sent), though the agent had answered before; it may have been carried out: read the status
        wrong plug: no ports | 60 ms | NoSuchPlug: the switch has no port with the name, alias or description "Gi1/0/3"
        malformed: no SNMP | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.2.1.31.1.1.1.1: dropped 4 answers, the last because it is no SNMP message, or a part of one
        stuck | 1780 ms | Transitioning: off accepted; port Gi1/0/3 reads admin up, oper up still
        stuck: the link stays up | 1780 ms | Transitioning: off accepted; port Gi1/0/3 reads admin down, oper up still
        late | 1780 ms | Transitioning: off accepted; port Gi1/0/3 reads admin up, oper up still
        flips back at once | 1780 ms | Transitioning: off accepted; port Gi1/0/3 reads admin up, oper up still
        another's answers | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.2.1.31.1.1.1.1: dropped 4 answers, the last because it answers another request
        malformed: about other objects | 560 ms | NoSuchPlug: the switch has no port with the name, alias or description "Gi1/0/3"
        truncated | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.2.1.31.1.1.1.1: dropped 4 answers, the last because it is no SNMP message, or a part of one
        huge | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.2.1.31.1.1.1.1: dropped 4 answers, the last because it is longer than any answer can be
        huge: a table without end | 20500 ms | Protocol: GETNEXT 1.3.6.1.2.1.31.1.1.1.1: the table has no end
        genErr to SET | 700 ms | Device, again: SET 1.3.6.1.2.1.2.2.1.7.10003 = 2: genErr (5): the agent failed and does not say why
        inconsistentValue | 700 ms | Device: SET 1.3.6.1.2.1.2.2.1.7.10003 = 2: inconsistentValue (12): not possible in the device's present state: is it locked, or under another's control?
        commitFailed | 700 ms | Device, again: SET 1.3.6.1.2.1.2.2.1.7.10003 = 2: commitFailed (14): the agent tried and failed
        wrong plug | 560 ms | NoSuchPlug: the switch has no port with the name, alias or description "Gi1/0/9"
    "#]].assert_eq(&table);
}
