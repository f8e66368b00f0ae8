//! Reading and switching power, and finding whose it is.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_proxmox::Proxmox;
use node_remedy_sdk::power::EXPECT_SYSTEM_UUID;
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, PlugsRequest, Request};

use crate::cluster::{Cluster, DEADLINE_MS, UUID, ask, ask_for};

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(Proxmox::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "proxmox");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_guest_is_found_by_number_name_or_provider_id_on_any_node() {
    for plug in ["102", "node2", "proxmox://cluster-1/102"] {
        let outcome = ask(Cluster::default(), Action::Status, plug).result.unwrap();
        assert_eq!(outcome.state, PlugState::Off, "{plug}");
        let uuid = ("system-uuid".to_owned(), UUID.to_owned());
        assert_eq!(outcome.identity, [uuid, ("vmid".to_owned(), "102".to_owned())]);
    }
    // A container sees the UUID of the machine under it, which is not its own.
    let container = ask(Cluster::default(), Action::Status, "box1").result.unwrap();
    assert_eq!(container.identity, [("vmid".to_owned(), "201".to_owned())]);
}

#[test]
fn of_several_guests_none_is_taken_for_the_right_one() {
    let mut twins = Cluster::default();
    twins.guests[2].name = "node1";
    for (cluster, plug, says) in [
        (twins, "node1", r#"several guests are "node1"; name one by its number: 101, 201"#),
        (Cluster::default(), "103", r#"none of the 3 guests that the account sees is "103""#),
        (Cluster::default(), "", "the plug names no guest: expected its number or name"),
    ] {
        let ended = ask(cluster, Action::Off, plug);
        assert_eq!(ended.writes().len(), 0);
        let failure = ended.result.unwrap_err();
        assert_eq!((failure.kind, failure.detail.as_str()), (FailureKind::NoSuchPlug, says));
    }
    // A number goes before a name that looks like one.
    let mut named = Cluster::default();
    named.guests[1].name = "101";
    assert_eq!(ask(named, Action::Status, "101").result.unwrap().state, PlugState::On);
    let mut template = Cluster::default();
    template.guests[0].is_template = true;
    let failure = ask(template, Action::Off, "101").result.unwrap_err();
    assert_eq!(
        (failure.kind, failure.detail.as_str()),
        (FailureKind::NoSuchPlug, "101 is a template")
    );
}

#[test]
fn a_task_is_followed_to_its_end_and_the_guest_read_then() {
    for (action, plug, begun, state) in [
        (Action::Off, "101", "stop 101", PlugState::Off),
        (Action::On, "102", "start 102", PlugState::On),
        (Action::Reset, "101", "reset 101", PlugState::On),
        (Action::Off, "201", "stop 201", PlugState::Off),
    ] {
        let ended = ask(Cluster::default(), action, plug);
        assert_eq!(ended.result.as_ref().unwrap().state, state, "{begun}");
        assert_eq!(ended.web.borrow().server.begun[0].0, begun);
        let at = |wanted: &str| {
            let is_it =
                |one: &Trace| matches!(one, Trace::Asked { line, .. } if line.contains(wanted));
            ended.trace.iter().rposition(is_it).unwrap()
        };
        let is_effect = |one: &Trace| matches!(one, Trace::BeganEffect { .. });
        assert!(ended.trace.iter().position(is_effect).unwrap() < at("POST"));
        assert!(at("POST") < at("/tasks/UPID:") && at("/tasks/UPID:") < at("status/current"));
    }
    let reset = ask(Cluster::default(), Action::Reset, "201");
    assert_eq!(reset.writes().len(), 0);
    assert_eq!(reset.result.unwrap_err().kind, FailureKind::Unsupported);
}

#[test]
fn what_a_task_says_of_itself_is_told_and_not_believed() {
    let failed = Cluster { exit: "VM 101 is locked (snapshot)", ..Cluster::default() };
    let failure = ask(failed, Action::Off, "101").result.unwrap_err();
    assert!(
        failure.detail.ends_with("ended with: VM 101 is locked (snapshot)"),
        "{}",
        failure.detail
    );
    // It is so already: what the guest reads decides.
    let running = Cluster { exit: "VM 101 already running", ..Cluster::default() };
    let outcome = ask(running, Action::On, "101").result.unwrap();
    assert_eq!(
        (outcome.state, outcome.detail.as_str()),
        (PlugState::On, "start not needed; status is running")
    );
    let stuck = Cluster { is_stuck: true, ..Cluster::default() };
    let outcome = ask(stuck, Action::Off, "101").result.unwrap();
    assert_eq!(outcome.state, PlugState::Transitioning);
    let warned = Cluster { exit: "WARNINGS: 1", is_stuck: true, ..Cluster::default() };
    assert_eq!(ask(warned, Action::Off, "102").result.unwrap().state, PlugState::Off);
}

#[test]
fn a_guest_that_moved_is_read_where_it_is_now() {
    let moving = Cluster { moves_after: Some(1), ..Cluster::default() };
    let outcome = ask(moving, Action::Status, "101").result.unwrap();
    assert_eq!(outcome.state, PlugState::On);
}

#[test]
fn another_machine_than_the_expected_one_is_left_alone() {
    let off = |plug: &str, expected: &str| Request {
        plug: plug.to_owned(),
        extra: vec![(EXPECT_SYSTEM_UUID.to_owned(), expected.to_owned())],
        ..Request::new(Action::Off, DEADLINE_MS)
    };
    let ended = ask_for(Cluster::default(), &off("101", &UUID.to_uppercase()), |host| host);
    assert_eq!(ended.result.unwrap().state, PlugState::Off);
    for (plug, expected) in [("101", "11111111-2222-4333-8444-555555555502"), ("201", UUID)] {
        let ended = ask_for(Cluster::default(), &off(plug, expected), |host| host);
        assert_eq!(ended.writes().len(), 0);
        assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug);
    }
}

#[test]
fn nothing_is_sent_that_the_host_does_not_let_begin() {
    let off = Request { plug: "101".to_owned(), ..Request::new(Action::Off, DEADLINE_MS) };
    let ended = ask_for(Cluster::default(), &off, |host| host.refuse_effect("the lease is over"));
    assert_eq!(ended.writes().len(), 0);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Cancelled);
}

#[test]
fn a_token_goes_by_its_own_endpoint_and_all_plugs_are_listed() {
    let host = TestHost::new(u64::from(DEADLINE_MS));
    let host = host.web("api-token", Rc::new(RefCell::new(Cluster::default())));
    let parameters = vec![("authentication".to_owned(), "token".to_owned())];
    let request = PlugsRequest { parameters, deadline_ms: DEADLINE_MS, extra: vec![] };
    let plugs = Proxmox.plugs(&request, &host).unwrap();
    let told: Vec<_> = plugs.iter().map(|one| (one.plug.as_str(), one.name.as_str())).collect();
    assert_eq!(told, [("101", "node1"), ("102", "node2"), ("201", "box1")]);
}
