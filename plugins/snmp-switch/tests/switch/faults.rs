//! What goes wrong, what is said of it, and how long that takes. None of it reads as off.

use std::fmt::Write;

use expect_test::expect;
use node_remedy_plugin_sdk::testing::TestHost;
use node_remedy_plugin_sdk::{Action, PlugState, Request};
use node_remedy_plugin_snmp::testing::{Agent, Faults};

use crate::device::{DEADLINE_MS, ask_for, switch};

type Host = fn(TestHost) -> TestHost;

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let none = Faults::default;
    let faulty = |faults| switch(Some(0)).faulty(faults);
    let same: Host = |host| host;
    let rows: Vec<(&str, &str, Agent, Host)> = vec![
        ("unreachable", "2c", faulty(none()), |host| host.unreachable("agent")),
        ("wrong community", "2c", faulty(none()), |host| {
            host.credential("community", None, b"guess").revealing("community")
        }),
        ("a community that may only read", "2c", faulty(none()), |host| {
            host.credential("community", None, b"public").revealing("community")
        }),
        ("no user", "3", faulty(none()), same),
        ("a user nobody knows", "3", faulty(none()), |host| {
            let host = host.credential("account", Some("fence"), b"authpass12");
            host.credential("privacy", None, b"privpass12")
        }),
        ("a user without passwords", "3", faulty(none()), |host| {
            let host = host.credential("account", Some("looker"), b"authpass12");
            host.credential("privacy", None, b"privpass12")
        }),
        ("silent to the SET", "2c", faulty(Faults { is_silent_to_sets: true, ..none() }), same),
        ("stuck", "2c", faulty(Faults { is_stuck: true, ..none() }), same),
        ("the link stays up", "2c", switch(None), same),
        ("late", "2c", faulty(Faults { late_ms: 9_000, ..none() }), same),
        ("flips back at once", "2c", faulty(Faults { back_after_ms: Some(10), ..none() }), same),
        ("another's answers", "2c", faulty(Faults { has_wrong_ids: true, ..none() }), same),
        ("about other objects", "1", faulty(Faults { has_wrong_oids: true, ..none() }), same),
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
        ("without end", "2c", faulty(Faults { is_endless: true, ..none() }), same),
        ("genErr to SET", "2c", faulty(Faults { set_status: Some(5), ..none() }), same),
        ("inconsistentValue", "2c", faulty(Faults { set_status: Some(12), ..none() }), same),
        ("commitFailed", "2c", faulty(Faults { set_status: Some(14), ..none() }), same),
    ];
    let mut table = String::new();
    for (fault, version, switch, host) in rows {
        let off = Request {
            plug: "Gi1/0/3".to_owned(),
            parameters: vec![("version".to_owned(), version.to_owned())],
            ..Request::new(Action::Off, DEADLINE_MS)
        };
        let ended = ask_for(switch, off, host);
        let said = match &ended.result {
            Ok(outcome) => {
                assert_ne!(outcome.state, PlugState::Off, "{fault}");
                format!("{:?}: {}", outcome.state, outcome.detail)
            }
            Err(failure) => {
                let again = if failure.retryable { ", again" } else { "" };
                format!("{:?}{again}: {}", failure.kind, failure.detail)
            }
        };
        writeln!(table, "{fault} | {} ms | {said}", ended.took_ms).unwrap();
    }
    expect![[r#"
        unreachable | 0 ms | Unreachable, again: failed to send to the agent: the network says that the device is unreachable
        wrong community | 5000 ms | Unreachable, again: GETNEXT 1.3.6.1.2.1.31.1.1.1.1: no answer in 5000 ms (4 sent): check the address, the network, and that the device has SNMP on, and the community: agents answer a wrong one with silence
        a community that may only read | 680 ms | Denied: SET 1.3.6.1.2.1.2.2.1.7.10003 = 2: noAccess (6): community or user may not do this: check the agent's access rules
        no user | 0 ms | BadParameters: failed to use the credential account: no such credential is configured; configure it in the method's credentials
        a user nobody knows | 40 ms | Unauthenticated: GETNEXT 1.3.6.1.2.1.31.1.1.1.1 as user "fence": unknownUserNames: the device has no such user: check the name
        a user without passwords | 40 ms | Unauthenticated: GETNEXT 1.3.6.1.2.1.31.1.1.1.1 as user "looker": unsupportedSecLevels: the agent does not have this security level for the user: check security-level, and whether the user has both passwords on the device
        silent to the SET | 5660 ms | Timeout, again: SET 1.3.6.1.2.1.2.2.1.7.10003 = 2: no answer in 5000 ms (4 sent), though the agent had answered before; it may have been carried out: read the status
        stuck | 700 ms | Transitioning: off accepted; port Gi1/0/3 reads admin up, oper up still
        the link stays up | 700 ms | Transitioning: off accepted; port Gi1/0/3 reads admin down, oper up still
        late | 700 ms | Transitioning: off accepted; port Gi1/0/3 reads admin up, oper up still
        flips back at once | 700 ms | Transitioning: off accepted; port Gi1/0/3 reads admin up, oper up still
        another's answers | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.2.1.31.1.1.1.1: dropped 4 answers, the last because it answers another request
        about other objects | 560 ms | NoSuchPlug: the switch has no port with the name, alias or description "Gi1/0/3"
        truncated | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.2.1.31.1.1.1.1: dropped 4 answers, the last because it is no SNMP message, or a part of one
        huge | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.2.1.31.1.1.1.1: dropped 4 answers, the last because it is longer than any answer can be
        without end | 20500 ms | Protocol: GETNEXT 1.3.6.1.2.1.31.1.1.1.1: the table has no end
        genErr to SET | 700 ms | Device, again: SET 1.3.6.1.2.1.2.2.1.7.10003 = 2: genErr (5): the agent failed and does not say why
        inconsistentValue | 700 ms | Device: SET 1.3.6.1.2.1.2.2.1.7.10003 = 2: inconsistentValue (12): not possible in the device's present state: is it locked, or under another's control?
        commitFailed | 700 ms | Device, again: SET 1.3.6.1.2.1.2.2.1.7.10003 = 2: commitFailed (14): the agent tried and failed
    "#]].assert_eq(&table);
}
