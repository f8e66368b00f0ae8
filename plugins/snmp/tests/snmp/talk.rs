//! GET, GET-NEXT and SET over versions 1 and 2c, and what is said of agents that fail.

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;

use expect_test::expect;
use node_remedy_plugin_snmp::testing::{Agent, Change, Faults};
use node_remedy_plugin_snmp::{Session, Value};
use node_remedy_sdk::testing::TestHost;
use node_remedy_sdk::{Failure, FailureKind};

pub(crate) const DEADLINE_MS: u32 = 30_000;
pub(crate) const STATE: [u32; 9] = [1, 3, 6, 1, 4, 1, 9, 1, 1];
const NAME: [u32; 9] = [1, 3, 6, 1, 4, 1, 9, 2, 1];

/// With a state that can be written 1 or 2, and a name.
pub(crate) fn agent() -> Agent {
    let mut agent = Agent::new();
    agent.put_number(&STATE, 1);
    agent.put_text(&NAME, "node-a");
    agent.put_rule(
        &STATE,
        Box::new(|number| {
            let change = Change { after_ms: 0, oid: STATE.to_vec(), to: number };
            matches!(number, 1 | 2).then_some(vec![change])
        }),
    );
    agent
}

fn host(agent: &Rc<RefCell<Agent>>, community: &str) -> TestHost {
    TestHost::new(u64::from(DEADLINE_MS))
        .device("agent", agent.clone())
        .credential("community", None, community.as_bytes())
        .revealing("community")
}

fn version(version: &str) -> Vec<(String, String)> {
    vec![("version".to_owned(), version.to_owned())]
}

#[test]
fn what_is_there_is_read_and_what_is_not_is_a_value_of_its_own() {
    let agent = agent().shared();
    for (version_name, missing) in [("1", Value::NoSuchObject), ("2c", Value::NoSuchInstance)] {
        let host = host(&agent, "public");
        let session = Session::open(&host, &version(version_name), DEADLINE_MS).unwrap();
        let absent = [&STATE[..8], &[9]].concat();
        let read = session.get(&[STATE.to_vec(), absent.clone(), NAME.to_vec()]).unwrap();
        assert_eq!(read, [Value::Integer(1), missing.clone(), Value::Text(b"node-a".to_vec())]);
        assert_eq!(session.get_one(&absent), Ok(missing));
        assert_eq!(session.get_one(&[1, 3, 7, 7]), Ok(Value::NoSuchObject));
        assert_eq!(
            session.get_next(&STATE[..8]).unwrap(),
            Some((STATE.to_vec(), Value::Integer(1)))
        );
        assert_eq!(session.get_next(&NAME).unwrap(), None);
        assert_eq!(session.walk(&STATE[..8]).unwrap(), [(vec![1], Value::Integer(1))]);
        assert_eq!(session.walk(&[1, 3, 7, 7]).unwrap(), []);
    }
}

#[test]
fn what_is_written_is_written_once_and_read_back() {
    for version_name in ["1", "2c"] {
        let agent = agent().shared();
        let host = host(&agent, "private");
        let session = Session::open(&host, &version(version_name), DEADLINE_MS).unwrap();
        session.set(&[(STATE.to_vec(), 2)], true).unwrap();
        assert_eq!(session.get_one(&STATE), Ok(Value::Integer(2)));
        assert_eq!(agent.borrow().written, [(STATE.to_vec(), 2)]);
    }
}

#[test]
fn a_lost_datagram_is_sent_again_but_not_what_must_not_be_done_twice() {
    for (is_lasting, sends) in [(true, 4), (false, 1)] {
        let mut agent = agent();
        agent.faults.is_silent_to_sets = true;
        let agent = agent.shared();
        let host = host(&agent, "private");
        let session = Session::open(&host, &version("2c"), DEADLINE_MS).unwrap();
        let failure = session.set(&[(STATE.to_vec(), 2)], is_lasting).unwrap_err();
        assert!(failure.detail.contains(&format!("({sends} sent)")), "{}", failure.detail);
        assert!(failure.detail.ends_with("it may have been carried out: read the status"));
        assert_eq!(host.elapsed().as_millis(), 5_000);
    }
}

/// A community may not be seen unless the admin says so, and says nothing if it is empty.
#[test]
fn a_community_needs_its_grant() {
    let agent = agent().shared();
    let open =
        |host: TestHost| Session::open(&host, &version("2c"), DEADLINE_MS).map(|_| ()).unwrap_err();
    let plain = || TestHost::new(1_000).device("agent", agent.clone());
    let failure = open(plain());
    assert_eq!(failure.kind, FailureKind::BadParameters);
    let failure = open(plain().credential("community", None, b"public"));
    assert_eq!(failure.kind, FailureKind::Denied);
    assert!(failure.detail.contains("add reveal: [community] to the grant"), "{}", failure.detail);
    let failure = open(plain().credential("community", None, b"").revealing("community"));
    assert_eq!(failure.detail, "the credential community is empty");
}

pub(crate) fn said(failure: &Failure) -> String {
    let again = if failure.retryable { ", again" } else { "" };
    format!("{:?}{again}: {}", failure.kind, failure.detail)
}

type Made = Box<dyn FnOnce() -> Agent>;

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let faulty = |faults: Faults| move || agent().faulty(faults);
    let none = Faults::default;
    let rows: Vec<(&str, &str, Made)> = vec![
        ("wrong community", "2c", Box::new(agent)),
        ("silent later", "2c", Box::new(faulty(Faults { falls_silent_after: Some(1), ..none() }))),
        ("genErr", "2c", Box::new(faulty(Faults { get_status: Some(5), ..none() }))),
        ("tooBig", "1", Box::new(faulty(Faults { get_status: Some(1), ..none() }))),
        ("another's answer", "2c", Box::new(faulty(Faults { has_wrong_ids: true, ..none() }))),
        ("another object", "2c", Box::new(faulty(Faults { has_wrong_oids: true, ..none() }))),
        (
            "truncated",
            "2c",
            Box::new(faulty(Faults {
                mangle: Some(|mut it| {
                    it.pop();
                    it
                }),
                ..none()
            })),
        ),
        (
            "longer",
            "2c",
            Box::new(faulty(Faults {
                mangle: Some(|mut it| {
                    it.push(0);
                    it
                }),
                ..none()
            })),
        ),
        ("huge", "2c", Box::new(faulty(Faults { mangle: Some(|_| vec![0x30; 9_000]), ..none() }))),
        (
            "garbage",
            "1",
            Box::new(faulty(Faults { mangle: Some(|_| b"HTTP/1.1 400".to_vec()), ..none() })),
        ),
        (
            "another version",
            "1",
            Box::new(faulty(Faults {
                mangle: Some(|mut it| {
                    it[4] = 1;
                    it
                }),
                ..none()
            })),
        ),
        (
            "its own question back",
            "2c",
            Box::new(faulty(Faults {
                mangle: Some(|mut it| {
                    it[13] = 0xa0;
                    it
                }),
                ..none()
            })),
        ),
    ];
    let mut table = String::new();
    for (fault, name, made) in rows {
        let agent = made().shared();
        let host = host(&agent, if fault == "wrong community" { "guess" } else { "public" });
        let session = Session::open(&host, &version(name), DEADLINE_MS).unwrap();
        let done = session.get_one(&STATE).and_then(|_| session.get_one(&STATE));
        writeln!(
            table,
            "{fault} | {} ms | {}",
            host.elapsed().as_millis(),
            said(&done.unwrap_err())
        )
        .unwrap();
    }
    let mut endless = agent();
    endless.faults.is_endless = true;
    let host = host(&endless.shared(), "public");
    let session = Session::open(&host, &version("2c"), DEADLINE_MS).unwrap();
    let failure = session.walk(&STATE[..8]).unwrap_err();
    writeln!(table, "endless | {} ms | {}", host.elapsed().as_millis(), said(&failure)).unwrap();
    expect![[r#"
        wrong community | 5000 ms | Unreachable, again: GET 1.3.6.1.4.1.9.1.1: no answer in 5000 ms (4 sent): check the address, the network, and that the device has SNMP on, and the community: agents answer a wrong one with silence
        silent later | 5020 ms | Timeout, again: GET 1.3.6.1.4.1.9.1.1: no answer in 5000 ms (4 sent), though the agent had answered before
        genErr | 20 ms | Device, again: GET 1.3.6.1.4.1.9.1.1: genErr (5): the agent failed and does not say why
        tooBig | 20 ms | Protocol: GET 1.3.6.1.4.1.9.1.1: tooBig (1): the answer does not fit into a message of the agent
        another's answer | 5000 ms | Protocol, again: GET 1.3.6.1.4.1.9.1.1: dropped 4 answers, the last because it answers another request
        another object | 20 ms | Protocol: GET 1.3.6.1.4.1.9.1.1: the agent answered about other objects than it was asked
        truncated | 5000 ms | Protocol, again: GET 1.3.6.1.4.1.9.1.1: dropped 4 answers, the last because it is no SNMP message, or a part of one
        longer | 5000 ms | Protocol, again: GET 1.3.6.1.4.1.9.1.1: dropped 4 answers, the last because bytes follow after its end
        huge | 5000 ms | Protocol, again: GET 1.3.6.1.4.1.9.1.1: dropped 4 answers, the last because it is longer than any answer can be
        garbage | 5000 ms | Protocol, again: GET 1.3.6.1.4.1.9.1.1: dropped 4 answers, the last because it is no SNMP message, or a part of one
        another version | 5000 ms | Protocol, again: GET 1.3.6.1.4.1.9.1.1: dropped 4 answers, the last because it is of another version
        its own question back | 5000 ms | Protocol, again: GET 1.3.6.1.4.1.9.1.1: dropped 4 answers, the last because it is no response
        endless | 20500 ms | Protocol: GETNEXT 1.3.6.1.4.1.9.1: the table has no end
    "#]].assert_eq(&table);
}

#[test]
fn a_refused_write_says_why() {
    let mut table = String::new();
    for (name, community, value) in
        [("1", "public", 2), ("2c", "public", 2), ("1", "private", 9), ("2c", "private", 9)]
    {
        let agent = agent().shared();
        let host = host(&agent, community);
        let session = Session::open(&host, &version(name), DEADLINE_MS).unwrap();
        let failure = session.set(&[(STATE.to_vec(), value)], true).unwrap_err();
        writeln!(table, "v{name} {community} | {}", said(&failure)).unwrap();
        assert_eq!(agent.borrow().written, []);
    }
    for status in 1..=19 {
        let mut agent = agent();
        agent.faults.set_status = Some(status);
        let host = host(&agent.shared(), "private");
        let session = Session::open(&host, &version("2c"), DEADLINE_MS).unwrap();
        let failure = session.set(&[(STATE.to_vec(), 2)], true).unwrap_err();
        writeln!(table, "{}", said(&failure)).unwrap();
    }
    expect![[r#"
        v1 public | Denied: SET 1.3.6.1.4.1.9.1.1 = 2: noSuchName (2): there is no such object, or the community may not write it: check the agent's access rules
        v2c public | Denied: SET 1.3.6.1.4.1.9.1.1 = 2: noAccess (6): community or user may not do this: check the agent's access rules
        v1 private | Unsupported: SET 1.3.6.1.4.1.9.1.1 = 9: badValue (3): the agent does not take this value
        v2c private | Unsupported: SET 1.3.6.1.4.1.9.1.1 = 9: wrongValue (10): the device cannot do this
        Protocol: SET 1.3.6.1.4.1.9.1.1 = 2: tooBig (1): the answer does not fit into a message of the agent
        Denied: SET 1.3.6.1.4.1.9.1.1 = 2: noSuchName (2): there is no such object, or the community may not write it: check the agent's access rules
        Unsupported: SET 1.3.6.1.4.1.9.1.1 = 2: badValue (3): the agent does not take this value
        Denied: SET 1.3.6.1.4.1.9.1.1 = 2: readOnly (4): the community may only read: use one that may write
        Device, again: SET 1.3.6.1.4.1.9.1.1 = 2: genErr (5): the agent failed and does not say why
        Denied: SET 1.3.6.1.4.1.9.1.1 = 2: noAccess (6): community or user may not do this: check the agent's access rules
        Unsupported: SET 1.3.6.1.4.1.9.1.1 = 2: wrongType (7): the object is not a number on this device
        Unsupported: SET 1.3.6.1.4.1.9.1.1 = 2: wrongLength (8): the agent does not take this length
        Protocol: SET 1.3.6.1.4.1.9.1.1 = 2: wrongEncoding (9): the agent did not understand the value
        Unsupported: SET 1.3.6.1.4.1.9.1.1 = 2: wrongValue (10): the device cannot do this
        NoSuchPlug: SET 1.3.6.1.4.1.9.1.1 = 2: noCreation (11): there is no such object, and none can be made
        Device: SET 1.3.6.1.4.1.9.1.1 = 2: inconsistentValue (12): not possible in the device's present state: is it locked, or under another's control?
        Busy, again: SET 1.3.6.1.4.1.9.1.1 = 2: resourceUnavailable (13): the agent lacks the means just now
        Device, again: SET 1.3.6.1.4.1.9.1.1 = 2: commitFailed (14): the agent tried and failed
        Device: SET 1.3.6.1.4.1.9.1.1 = 2: undoFailed (15): the agent failed half-way: look at the device
        Denied: SET 1.3.6.1.4.1.9.1.1 = 2: authorizationError (16): community or user may not do this at this security level: check the agent's access rules
        Denied: SET 1.3.6.1.4.1.9.1.1 = 2: notWritable (17): the object cannot be written: is this plug switched at all, and may the user write?
        Device: SET 1.3.6.1.4.1.9.1.1 = 2: inconsistentName (18): the agent cannot make this object now
        Protocol: SET 1.3.6.1.4.1.9.1.1 = 2: unknown (19): an error-status that nobody knows
    "#]].assert_eq(&table);
}
