//! Finding, reading and switching outlets, in each of the tables.

use node_remedy_plugin_apc_pdu::ApcPdu;
use node_remedy_plugin_snmp::testing::{Agent, Faults};
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, PlugsRequest, Request};

use crate::pdu::{DEADLINE_MS, MODELS, Model, ask, ask_for};

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(ApcPdu::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "apc-pdu");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn every_table_is_read_and_switched_by_its_own_numbers() {
    for model in MODELS {
        let [on, off] = model.states();
        for plug in ["3", "node3"] {
            let outcome = ask(model.pdu(), Action::Status, plug).result.unwrap();
            assert_eq!(outcome.state, PlugState::On, "{model:?}");
            assert_eq!(outcome.identity, [("label".to_owned(), "node3".to_owned())]);
        }
        let ended = ask(model.pdu(), Action::Off, "3");
        assert_eq!(ended.result.unwrap().state, PlugState::Off, "{model:?}");
        let truth =
            |outlet| ended.pdu.borrow_mut().truth(DEADLINE_MS.into(), &model.status(outlet));
        assert_eq!((truth(3), truth(2), truth(4)), (Some(off), Some(on), Some(on)), "{model:?}");
        let begun = ended.trace.iter().filter(|one| matches!(one, Trace::BeganEffect { .. }));
        assert_eq!(begun.count(), 1);

        let mut dark = model.pdu();
        dark.put_number(&model.status(3), off);
        assert_eq!(
            ask(dark, Action::On, "node3").result.unwrap().state,
            PlugState::On,
            "{model:?}"
        );
    }
}

#[test]
fn a_reset_is_one_command_and_no_proof() {
    for model in [Model::Rpdu2, Model::Rpdu, Model::MasterSwitch] {
        let ended = ask(model.pdu(), Action::Reset, "3");
        let outcome = ended.result.unwrap();
        assert_eq!(outcome.state, PlugState::Transitioning, "{}", outcome.detail);
        assert_eq!(ended.pdu.borrow().written.len(), 1);
    }
    let failure = ask(Model::MasterSwitchPlus.pdu(), Action::Reset, "3").result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unsupported);
}

/// The peer says "already off" here: a plug that nobody has is no plug that is off.
#[test]
fn an_outlet_that_does_not_exist_is_never_off() {
    for model in MODELS {
        for action in [Action::Status, Action::Off, Action::On, Action::Reset, Action::Monitor] {
            for plug in ["99", "0", "node99", "", "-1", "03", "1.1.3", "all"] {
                let ended = ask(model.pdu(), action, plug);
                let failure = ended.result.unwrap_err();
                assert_eq!(failure.kind, FailureKind::NoSuchPlug, "{plug}: {}", failure.detail);
                assert_eq!(ended.pdu.borrow().written, []);
            }
        }
    }
    let failure = ask(Model::Rpdu.pdu(), Action::Off, "99").result.unwrap_err();
    assert_eq!(failure.detail, "rPDU has no outlet 99; expected one of 1, 2, 3, 4, 5, 6, 7, 8");
}

#[test]
fn of_two_outlets_with_one_name_none_is_taken() {
    let mut twins = Model::Rpdu.pdu();
    twins.put_text(&[1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3, 5, 1, 1, 2, 4], "node3");
    let ended = ask(twins, Action::Off, "node3");
    assert_eq!(
        ended.result.unwrap_err().detail,
        "2 outlets are called \"node3\": name one by its number"
    );
    assert_eq!(ended.pdu.borrow().written, []);
}

/// What it says it is counts for nothing: it is asked which tables it has.
#[test]
fn a_device_without_these_tables_is_not_switched() {
    let mut other = Agent::new();
    other.put_text(&[1, 3, 6, 1, 2, 1, 1, 1, 0], "APC Web/SNMP Management Card");
    other.put_number(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 7, 3], 1);
    let failure = ask(other, Action::Off, "3").result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unsupported);
    assert!(
        failure.detail.contains("rPDU2, rPDU, MasterSwitch plus, MasterSwitch"),
        "{}",
        failure.detail
    );
}

#[test]
fn an_off_that_was_accepted_is_not_yet_off() {
    let late = || Model::Rpdu2.pdu().faulty(Faults { late_ms: 4_000, ..Faults::default() });
    let outcome = ask(late(), Action::Off, "3").result.unwrap();
    assert_eq!(outcome.state, PlugState::Transitioning);
    assert_eq!(outcome.detail, "off accepted; rPDU2 outlet 3 reads on (2) still");

    // As the host goes on: it reads until the plug is off.
    let host = TestHost::new(u64::from(DEADLINE_MS))
        .device("agent", late().shared())
        .credential("community", None, b"private")
        .revealing("community");
    let request = |action| Request {
        plug: "3".to_owned(),
        parameters: vec![("version".to_owned(), "1".to_owned())],
        ..Request::new(action, DEADLINE_MS)
    };
    ApcPdu.run(&request(Action::Off), &host).unwrap();
    let read = Request { until: Some(PlugState::Off), ..request(Action::Status) };
    assert_eq!(ApcPdu.run(&read, &host).unwrap().state, PlugState::Off);
    assert!((4_000..6_000).contains(&host.elapsed().as_millis()), "{:?}", host.elapsed());
}

#[test]
fn a_stuck_relay_is_read_until_the_deadline_and_never_said_to_be_off() {
    let stuck = || Model::Rpdu2.pdu().faulty(Faults { is_stuck: true, ..Faults::default() });
    assert_eq!(ask(stuck(), Action::Off, "3").result.unwrap().state, PlugState::Transitioning);
    let read = Request {
        until: Some(PlugState::Off),
        plug: "3".to_owned(),
        ..Request::new(Action::Status, 10_000)
    };
    let ended = ask_for(stuck(), read, |host| host);
    assert_eq!(ended.result.unwrap().state, PlugState::On);
    assert!((8_000..10_000).contains(&ended.took_ms), "{}", ended.took_ms);
}

#[test]
fn a_plug_that_flips_back_reads_on_again() {
    let back = Faults { back_after_ms: Some(2_000), ..Faults::default() };
    let host = TestHost::new(u64::from(DEADLINE_MS))
        .device("agent", Model::Rpdu.pdu().faulty(back).shared())
        .credential("community", None, b"private")
        .revealing("community");
    let request = |action| Request {
        plug: "3".to_owned(),
        parameters: vec![("version".to_owned(), "2c".to_owned())],
        ..Request::new(action, DEADLINE_MS)
    };
    assert_eq!(ApcPdu.run(&request(Action::Off), &host).unwrap().state, PlugState::Off);
    let on = Request { until: Some(PlugState::On), ..request(Action::Status) };
    assert_eq!(ApcPdu.run(&on, &host).unwrap().state, PlugState::On);
}

#[test]
fn a_state_that_nobody_knows_is_no_state() {
    for number in [0, 3, 4, -1, i64::MAX] {
        let mut pdu = Model::Rpdu2.pdu();
        pdu.put_number(&Model::Rpdu2.status(3), number);
        let outcome = ask(pdu, Action::Status, "3").result.unwrap();
        assert_eq!(outcome.state, PlugState::Unknown, "{number}");
    }
}

/// Whoever has the numbers of the newer table the wrong way round reads on for off: the older one
/// tells.
#[test]
fn two_tables_that_disagree_are_not_off() {
    let older = [1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3, 5, 1, 1, 4, 3];
    for (newer_number, older_number, state) in [
        (1, 2, PlugState::Off),
        (2, 1, PlugState::On),
        (1, 1, PlugState::Transitioning),
        (2, 2, PlugState::Transitioning),
        (1, 9, PlugState::Transitioning),
    ] {
        let mut pdu = Model::Rpdu2.pdu();
        pdu.put_number(&Model::Rpdu2.status(3), newer_number);
        pdu.put_number(&older, older_number);
        let outcome = ask(pdu, Action::Status, "3").result.unwrap();
        assert_eq!(outcome.state, state, "{}", outcome.detail);
    }
    // The outlets of a second unit stand in the newer table only.
    let mut alone = Model::Rpdu2.pdu();
    alone.objects.remove(older.as_slice());
    assert_eq!(ask(alone, Action::Off, "3").result.unwrap().state, PlugState::Off);
}

#[test]
fn the_outlets_are_listed_with_their_names() {
    for model in MODELS {
        let host = TestHost::new(u64::from(DEADLINE_MS))
            .device("agent", model.pdu().shared())
            .credential("community", None, b"public")
            .revealing("community");
        let parameters = vec![("version".to_owned(), "2c".to_owned())];
        let request = PlugsRequest { parameters, deadline_ms: DEADLINE_MS, extra: Vec::new() };
        let plugs = ApcPdu.plugs(&request, &host).unwrap();
        let names: Vec<_> =
            plugs.iter().map(|one| (one.plug.as_str(), one.name.as_str())).collect();
        assert_eq!(names[..2], [("1", "node1"), ("2", "node2")], "{model:?}");
        assert_eq!(names.len(), 8);
        assert!(plugs.iter().all(|one| one.state == PlugState::On), "{model:?}");
    }
}

#[test]
fn nothing_is_sent_that_the_host_does_not_let_begin() {
    let off = Request { plug: "3".to_owned(), ..Request::new(Action::Off, DEADLINE_MS) };
    let ended = ask_for(Model::Rpdu.pdu(), off, |host| host.refuse_effect("the lease is over"));
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Cancelled);
    assert_eq!(ended.pdu.borrow().written, []);
}
