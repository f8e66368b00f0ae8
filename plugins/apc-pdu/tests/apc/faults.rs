//! What goes wrong, what is said of it, and how long that takes. None of it reads as off.

use std::fmt::Write;

use expect_test::expect;
use node_remedy_plugin_sdk::testing::TestHost;
use node_remedy_plugin_sdk::{Action, PlugState, Request};
use node_remedy_plugin_snmp::testing::Faults;

use crate::pdu::{DEADLINE_MS, Model, ask_for};

#[test]
fn each_fault_has_its_kind_and_sentence() {
    type Host = fn(TestHost) -> TestHost;
    let none = Faults::default;
    let same: Host = |host| host;
    let rows: Vec<(&str, Faults, Host)> = vec![
        ("unreachable", none(), |host| host.unreachable("agent")),
        ("wrong community", none(), |host| {
            host.credential("community", None, b"guess").revealing("community")
        }),
        ("a community that may only read", none(), |host| {
            host.credential("community", None, b"public").revealing("community")
        }),
        ("no community", none(), |host| host.credential("community", None, b"")),
        ("silent from the start", Faults { falls_silent_after: Some(0), ..none() }, same),
        ("silent after the table", Faults { falls_silent_after: Some(1), ..none() }, same),
        ("silent to the SET", Faults { is_silent_to_sets: true, ..none() }, same),
        ("stuck", Faults { is_stuck: true, ..none() }, same),
        ("late", Faults { late_ms: 9_000, ..none() }, same),
        ("flips back at once", Faults { back_after_ms: Some(10), ..none() }, same),
        ("another's answers", Faults { has_wrong_ids: true, ..none() }, same),
        ("about other objects", Faults { has_wrong_oids: true, ..none() }, same),
        (
            "truncated",
            Faults {
                mangle: Some(|mut it| {
                    it.truncate(20);
                    it
                }),
                ..none()
            },
            same,
        ),
        ("huge", Faults { mangle: Some(|_| vec![0x30; 12_000]), ..none() }, same),
        ("no SNMP", Faults { mangle: Some(|_| b"login: ".to_vec()), ..none() }, same),
        ("without end", Faults { is_endless: true, ..none() }, same),
        ("genErr to GET", Faults { get_status: Some(5), ..none() }, same),
        ("genErr to SET", Faults { set_status: Some(5), ..none() }, same),
        ("wrongValue", Faults { set_status: Some(10), ..none() }, same),
        ("resourceUnavailable", Faults { set_status: Some(13), ..none() }, same),
        ("authorizationError", Faults { set_status: Some(16), ..none() }, same),
        ("notWritable", Faults { set_status: Some(17), ..none() }, same),
    ];
    let mut table = String::new();
    for (fault, faults, host) in rows {
        let off = Request { plug: "3".to_owned(), ..Request::new(Action::Off, DEADLINE_MS) };
        let ended = ask_for(Model::Rpdu.pdu().faulty(faults), off, host);
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
        wrong community | 5000 ms | Unreachable, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: no answer in 5000 ms (4 sent): check the address, the network, and that the device has SNMP on, and the community: agents answer a wrong one with silence
        a community that may only read | 120 ms | Denied: SET 1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3 = 2: noAccess (6): community or user may not do this: check the agent's access rules
        no community | 0 ms | Denied: failed to use the credential community: the operation was not granted; SNMP sends a community as it is, so the plugin must see it: add reveal: [community] to the grant
        silent from the start | 5000 ms | Unreachable, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: no answer in 5000 ms (4 sent): check the address, the network, and that the device has SNMP on, and the community: agents answer a wrong one with silence
        silent after the table | 5020 ms | Timeout, again: GETNEXT 1.3.6.1.4.1.318.1.1.12.3.5.1.1.4: no answer in 5000 ms (4 sent), though the agent had answered before
        silent to the SET | 5100 ms | Timeout, again: SET 1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3 = 2: no answer in 5000 ms (4 sent), though the agent had answered before; it may have been carried out: read the status
        stuck | 140 ms | Transitioning: off accepted; rPDU outlet 3 reads on (1) still
        late | 140 ms | Transitioning: off accepted; rPDU outlet 3 reads on (1) still
        flips back at once | 140 ms | Transitioning: off accepted; rPDU outlet 3 reads on (1) still
        another's answers | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: dropped 4 answers, the last because it answers another request
        about other objects | 60 ms | Protocol: GET 1.3.6.1.4.1.318.1.1.12.3.5.1.1.4.3: the agent answered about other objects than it was asked
        truncated | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: dropped 4 answers, the last because it is no SNMP message, or a part of one
        huge | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: dropped 4 answers, the last because it is longer than any answer can be
        no SNMP | 5000 ms | Protocol, again: GETNEXT 1.3.6.1.4.1.318.1.1.26.9.2.3.1.5: dropped 4 answers, the last because it is no SNMP message, or a part of one
        without end | 20580 ms | Protocol: GETNEXT 1.3.6.1.4.1.318.1.1.6.7.1.1.5: the table has no end
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
