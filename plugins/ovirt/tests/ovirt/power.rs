//! Reading and switching power, and finding whose it is.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_ovirt::Ovirt;
use node_remedy_sdk::power::EXPECT_SYSTEM_UUID;
use node_remedy_sdk::testing::TestHost;
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, PlugsRequest, Request};

use crate::engine::{DEADLINE_MS, Engine, ID, OTHER, STRANGER, ask, ask_for};

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(Ovirt::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "ovirt");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_machine_is_found_by_id_or_name() {
    for plug in [OTHER, "node2"] {
        let outcome = ask(Engine::default(), Action::Status, plug).result.unwrap();
        assert_eq!(outcome.state, PlugState::Off, "{plug}");
        assert_eq!(outcome.identity, [("system-uuid".to_owned(), OTHER.to_owned())]);
    }
}

#[test]
fn of_several_machines_none_is_taken_for_the_right_one() {
    let twins = || Engine::with(&[(ID, "node1", "up"), (OTHER, "node1", "up")]);
    let several = format!("several machines have the name \"node1\": {ID}, {OTHER}");
    let missing = format!("there is no machine {STRANGER} that the account sees");
    let none = "there is no machine \"node9\" that the account sees; check name and role";
    let joker = "\"node*\" is no name: expected letters, digits, '-', '_', '.'";
    for (engine, plug, says) in [
        (twins(), "node1", several.as_str()),
        (Engine::default(), STRANGER, missing.as_str()),
        (Engine::default(), "node9", none),
        // A search takes no heed of letter case, and knows jokers.
        (
            Engine::default(),
            "NODE9",
            "there is no machine \"NODE9\" that the account sees; check name and role",
        ),
        (
            Engine::default(),
            "NODE1",
            "there is no machine \"NODE1\" that the account sees; check name and role",
        ),
        (Engine::default(), "node*", joker),
        (Engine::default(), "", "the plug names no machine: expected its id or name"),
    ] {
        let ended = ask(engine, Action::Off, plug);
        assert_eq!(ended.writes().len(), 0);
        let failure = ended.result.unwrap_err();
        assert_eq!((failure.kind, failure.detail.as_str()), (FailureKind::NoSuchPlug, says));
    }
}

#[test]
fn power_is_switched_and_read_back() {
    for (action, plug, word, state) in [
        (Action::Off, ID, "stop", PlugState::Off),
        (Action::On, OTHER, "start", PlugState::On),
        (Action::Reset, ID, "reset", PlugState::On),
    ] {
        let ended = ask(Engine::default(), action, plug);
        assert_eq!(ended.result.as_ref().unwrap().state, state, "{word}");
        assert_eq!(ended.web.borrow().server.asked, [format!("{word} {plug}")]);
    }
    let late = ask(Engine::late(9_000), Action::Off, ID).result.unwrap();
    assert_eq!(
        (late.state, late.detail.as_str()),
        (PlugState::Transitioning, "stop accepted; status is up still")
    );
}

#[test]
fn what_is_so_already_needs_nothing() {
    for (action, plug, says) in [
        (Action::Off, OTHER, "stop not needed; status is down"),
        (Action::On, ID, "start not needed; status is up"),
    ] {
        assert_eq!(ask(Engine::default(), action, plug).result.unwrap().detail, says);
    }
}

#[test]
fn another_machine_than_the_expected_one_is_left_alone() {
    let off = Request {
        plug: ID.to_owned(),
        extra: vec![(EXPECT_SYSTEM_UUID.to_owned(), OTHER.to_owned())],
        ..Request::new(Action::Off, DEADLINE_MS)
    };
    let ended = ask_for(Engine::default(), &off, |host| host);
    assert_eq!(ended.writes().len(), 0);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug);
}

#[test]
fn nothing_is_sent_that_the_host_does_not_let_begin() {
    let off = Request { plug: ID.to_owned(), ..Request::new(Action::Off, DEADLINE_MS) };
    let ended = ask_for(Engine::default(), &off, |host| host.refuse_effect("the lease is over"));
    assert_eq!(ended.writes().len(), 0);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Cancelled);
}

#[test]
fn all_plugs_are_listed() {
    let host = TestHost::new(u64::from(DEADLINE_MS));
    let host = host.web("engine", Rc::new(RefCell::new(Engine::default())));
    let request = PlugsRequest { parameters: vec![], deadline_ms: DEADLINE_MS, extra: vec![] };
    let plugs = Ovirt.plugs(&request, &host).unwrap();
    let told: Vec<_> = plugs.iter().map(|one| (one.name.as_str(), one.state)).collect();
    assert_eq!(told, [("node1", PlugState::On), ("node2", PlugState::Off)]);
}
