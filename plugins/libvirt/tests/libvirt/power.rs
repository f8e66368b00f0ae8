//! Reading and switching domains, and finding the right one.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_libvirt::{EXPECT_SYSTEM_UUID, Libvirt};
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, PlugsRequest, Request};

use crate::daemon::{
    BY_NAME, CREATE, CREATE_WITH_FLAGS, DEADLINE_MS, DESTROY, Daemon, Fault, MANAGED_SAVE, Machine,
    RESET, STATE, UUID_A, UUID_B, ask, ask_for,
};

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(Libvirt::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "libvirt");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_domain_is_found_by_name_or_uuid() {
    for plug in ["node-b", UUID_B, &UUID_B.to_uppercase().replace('-', "")] {
        let outcome = ask(Daemon::with_two(), Action::Status, plug).result.unwrap();
        assert_eq!(
            (outcome.state, outcome.detail.as_str()),
            (PlugState::Off, "the domain is shut off")
        );
        assert_eq!(outcome.identity, [("system-uuid".to_owned(), UUID_B.to_owned())]);
    }
    // A name may look like the UUID of nothing.
    let mut odd = Daemon::with_two();
    let name = "99999999-9999-9999-9999-999999999999";
    odd.machines.push(Machine::new(name, "77777777-7777-7777-7777-777777777777", 1));
    let outcome = ask(odd, Action::Status, name).result.unwrap();
    assert_eq!(outcome.identity[0].1, "77777777-7777-7777-7777-777777777777");
}

#[test]
fn a_domain_that_does_not_exist_is_never_off() {
    for plug in ["", "node-c", "node", "99999999-9999-9999-9999-999999999999", &"x".repeat(300)] {
        for action in [Action::Status, Action::Off, Action::On, Action::Monitor] {
            let ended = ask(Daemon::with_two(), action, plug);
            assert!(ended.changes().is_empty());
            let failure = ended.result.unwrap_err();
            assert_eq!(failure.kind, FailureKind::NoSuchPlug, "{plug}: {}", failure.detail);
        }
    }
    // One that is gone once it was destroyed, as those without a definition are.
    let daemon = Daemon { fails_read_back: true, ..Daemon::with_two() };
    let gone = daemon.fault(STATE, Fault::Refuse(42, "Domain not found"));
    let outcome = ask(gone, Action::Off, "node-a").result.unwrap();
    assert_eq!(outcome.state, PlugState::Unknown);
}

#[test]
fn power_is_switched_and_read_back() {
    for (action, plug, call, state) in [
        (Action::Off, "node-a", DESTROY, PlugState::Off),
        (Action::On, "node-b", CREATE, PlugState::On),
        (Action::Reset, UUID_A, RESET, PlugState::On),
    ] {
        let ended = ask(Daemon::with_two(), action, plug);
        assert_eq!(ended.result.as_ref().unwrap().state, state, "{action:?}");
        assert_eq!(ended.changes(), [call]);
        assert_eq!(ended.daemon.borrow().calls.iter().rev().nth(1), Some(&STATE), "read last");
        assert_eq!(ended.daemon.borrow().uris, ["qemu:///system"]);
        let begun = ended.trace.iter().position(|one| matches!(one, Trace::BeganEffect { .. }));
        let sent = |one: &Trace| matches!(one, Trace::Sent { bytes, .. } if bytes[15] == call.to_be_bytes()[3]);
        assert!(begun.unwrap() < ended.trace.iter().position(sent).unwrap());
    }
}

#[test]
fn a_state_that_is_not_shut_off_is_never_off() {
    for (state, reason, reads, says) in [
        (0, 0, PlugState::Unknown, "the domain is in state 0, which nobody knows"),
        (1, 1, PlugState::On, "the domain is running"),
        (2, 0, PlugState::On, "the domain is blocked"),
        (3, 1, PlugState::Unknown, "the domain is paused, which is not off"),
        (4, 0, PlugState::Transitioning, "the domain is shutting down"),
        (5, 1, PlugState::Off, "the domain is shut off"),
        (5, 4, PlugState::Unknown, "the domain was migrated and runs on another hypervisor"),
        (5, 5, PlugState::Unknown, "the domain's memory was saved, which is not off"),
        (3, 2, PlugState::Unknown, MIGRATING),
        (3, 13, PlugState::Unknown, MIGRATING),
        (6, 1, PlugState::Unknown, "the domain has crashed, which is not off"),
        (7, 0, PlugState::Unknown, "the domain sleeps, which is not off"),
        (8, 0, PlugState::Unknown, "the domain is in state 8, which nobody knows"),
        (u32::MAX, 5, PlugState::Unknown, "the domain is in state 4294967295, which nobody knows"),
    ] {
        let daemon = Daemon::with_two().in_state(state, reason);
        let outcome = ask(daemon, Action::Status, "node-a").result.unwrap();
        assert_eq!((outcome.state, outcome.detail.as_str()), (reads, says));
    }
}

const MIGRATING: &str = "the domain is being migrated, and may run on another hypervisor";

/// What is left of a machine that went elsewhere reads off once it is destroyed, and runs twice once it is started.
#[test]
fn a_machine_that_may_run_on_another_hypervisor_is_neither_destroyed_nor_started_here() {
    // Paused: migrating, post-copy, its failure. Shut off: forgotten, migrated, failed, by the daemon.
    for (state, reason, is_destroyed, is_started) in [
        (3, 2, false, false),
        (3, 12, false, false),
        (3, 13, false, false),
        (3, 1, true, true),
        (5, 0, true, false),
        (5, 4, false, false),
        (5, 5, true, true),
        (5, 6, true, false),
        (5, 8, true, false),
        (5, 1, true, true),
        (5, 2, true, true),
    ] {
        for (action, is_sent) in [(Action::Off, is_destroyed), (Action::On, is_started)] {
            let ended = ask(Daemon::with_two().in_state(state, reason), action, "node-a");
            assert_eq!(!ended.changes().is_empty(), is_sent, "{action:?} of {state}, {reason}");
            if !is_sent {
                let began = |one: &Trace| matches!(one, Trace::BeganEffect { .. });
                assert!(!ended.trace.iter().any(began));
                assert_eq!(ended.result.unwrap_err().kind, FailureKind::Busy);
            }
        }
    }
}

/// A migration to here that failed leaves a domain that is shut off for this reason, and the machine runs where it came from.
#[test]
fn a_domain_that_failed_to_come_here_is_not_off_where_machines_are_migrated() {
    for (migration, reads) in [("possible", PlugState::Unknown), ("never", PlugState::Off)] {
        let status = Request {
            plug: "node-a".into(),
            parameters: vec![("migration".to_owned(), migration.to_owned())],
            ..Request::new(Action::Status, DEADLINE_MS)
        };
        let ended = ask_for(Daemon::with_two().in_state(5, 6), &status, |host| host);
        assert_eq!(ended.result.unwrap().state, reads, "{migration}");
    }
}

/// As libvirt has every domain that was off when its daemon started, migrated ones among them.
#[test]
fn a_domain_whose_daemon_forgot_why_it_is_off_is_off_only_where_none_is_migrated() {
    for (migration, reads) in [
        (None, PlugState::Unknown),
        (Some("possible"), PlugState::Unknown),
        (Some("never"), PlugState::Off),
    ] {
        let parameters = migration.map(|word| ("migration".to_owned(), word.to_owned()));
        let status = Request {
            plug: "node-a".into(),
            parameters: parameters.into_iter().collect(),
            ..Request::new(Action::Status, DEADLINE_MS)
        };
        let ended = ask_for(Daemon::with_two().in_state(5, 0), &status, |host| host);
        let outcome = ended.result.unwrap();
        assert_eq!(outcome.state, reads, "{migration:?}");
        assert_eq!(outcome.detail.ends_with("migration: never"), reads == PlugState::Unknown);
    }
}

/// A daemon that starts forgets that as well, and knows the memory still.
#[test]
fn saved_memory_is_not_off_although_the_daemon_forgot_that_it_was_saved() {
    let mut daemon = Daemon::with_two().in_state(5, 0);
    daemon.machines[0].has_saved_memory = true;
    let status = Request {
        plug: "node-a".into(),
        parameters: vec![("migration".to_owned(), "never".to_owned())],
        ..Request::new(Action::Status, DEADLINE_MS)
    };
    let outcome = ask_for(daemon, &status, |host| host).result.unwrap();
    assert_eq!(outcome.state, PlugState::Unknown);
    assert_eq!(outcome.detail, "the domain's memory was saved, which is not off");
    // Whether there is any must be known: who does not say leaves it open.
    let fails = Daemon::with_two().in_state(5, 0).fault(MANAGED_SAVE, Fault::Refuse(1, "no disk"));
    assert!(ask_for(fails, &status, |host| host).result.is_err());
}

#[test]
fn a_destroy_that_was_accepted_is_not_yet_off() {
    let late = || Daemon { late_ms: 9_000, ..Daemon::with_two() };
    let outcome = ask(late(), Action::Off, "node-a").result.unwrap();
    assert_eq!(outcome.state, PlugState::Transitioning);
    assert_eq!(outcome.detail, "destroy accepted; the domain is running still");

    // As the host goes on: it reads until the domain is off.
    let host = TestHost::new(u64::from(DEADLINE_MS)).stream("tls", Rc::new(RefCell::new(late())));
    let off = Request { plug: "node-a".into(), ..Request::new(Action::Off, DEADLINE_MS) };
    Libvirt.run(&off, &host).unwrap();
    let read = Request { until: Some(PlugState::Off), action: Action::Status, ..off };
    assert_eq!(Libvirt.run(&read, &host).unwrap().state, PlugState::Off);
    assert!((9_000..10_000).contains(&host.elapsed().as_millis()), "{:?}", host.elapsed());

    let stuck = Daemon { is_stuck: true, ..Daemon::with_two() };
    let until = Some(PlugState::Off);
    let read = Request { plug: "node-a".into(), until, ..Request::new(Action::Status, 20_000) };
    let ended = ask_for(stuck, &read, |host| host);
    assert_eq!(ended.result.unwrap().state, PlugState::On);
    assert!((18_000..20_000).contains(&ended.took_ms), "{}", ended.took_ms);
}

#[test]
fn what_is_so_already_needs_nothing() {
    for (action, plug, says) in [
        (Action::Off, "node-b", "destroy not needed; the domain is shut off"),
        (Action::On, "node-a", "start not needed; the domain is running"),
    ] {
        assert_eq!(ask(Daemon::with_two(), action, plug).result.unwrap().detail, says);
    }
    // A machine that was not reset was not reset, and one that went elsewhere was not destroyed.
    assert!(ask(Daemon::with_two(), Action::Reset, "node-b").result.is_err());
    let elsewhere = Daemon::with_two().in_state(5, 4);
    assert!(ask(elsewhere, Action::Off, "node-a").result.is_err());
}

#[test]
fn saved_memory_is_thrown_away_and_the_machine_boots() {
    let mut saved = Daemon::with_two();
    saved.machines[1].has_saved_memory = true;
    let ended = ask(saved, Action::On, "node-b");
    assert_eq!(ended.result.as_ref().unwrap().state, PlugState::On);
    assert_eq!(ended.changes(), [CREATE_WITH_FLAGS]);
    assert_eq!(ended.daemon.borrow().flags, [8]);
    // A driver that cannot save has saved nothing; one that does not say so is not started.
    let cannot = Daemon::with_two().fault(MANAGED_SAVE, Fault::Refuse(3, "not supported"));
    assert_eq!(ask(cannot, Action::On, "node-b").changes(), [CREATE]);
    let fails = Daemon::with_two().fault(MANAGED_SAVE, Fault::Refuse(1, "disk is gone"));
    assert!(ask(fails, Action::On, "node-b").changes().is_empty());
}

#[test]
fn another_machine_than_the_expected_one_is_left_alone() {
    let off = |expected: &str| Request {
        plug: "node-a".into(),
        extra: vec![(EXPECT_SYSTEM_UUID.to_owned(), expected.to_owned())],
        ..Request::new(Action::Off, DEADLINE_MS)
    };
    let ended = ask_for(Daemon::with_two(), &off(&UUID_A.to_uppercase()), |host| host);
    assert_eq!(ended.result.as_ref().unwrap().state, PlugState::Off);
    let mut nameless = Daemon::with_two();
    nameless.machines[0] = Machine::new("node-a", &"0".repeat(32), 1);
    for (daemon, expected) in [(Daemon::with_two(), UUID_B), (nameless, UUID_A)] {
        let ended = ask_for(daemon, &off(expected), |host| host);
        assert!(ended.changes().is_empty());
        assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug);
    }
}

#[test]
fn nothing_is_sent_that_the_host_does_not_let_begin() {
    let off = Request { plug: "node-a".into(), ..Request::new(Action::Off, DEADLINE_MS) };
    let ended = ask_for(Daemon::with_two(), &off, |host| host.refuse_effect("the lease is over"));
    assert!(ended.changes().is_empty());
    let failure = ended.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Cancelled);
    assert!(failure.detail.ends_with("the lease is over"), "{}", failure.detail);
}

#[test]
fn events_between_a_call_and_its_answer_are_passed_over() {
    let daemon =
        Daemon::with_two().fault(BY_NAME, Fault::Unasked(9)).fault(STATE, Fault::Unasked(16));
    assert_eq!(ask(daemon, Action::Monitor, "node-a").result.unwrap().state, PlugState::On);
}

#[test]
fn plain_tcp_is_spoken_where_it_is_asked_for() {
    // Without TLS a daemon says nothing first.
    let daemon = Daemon { greeting: Some(Vec::new()), ..Daemon::with_two() };
    let daemon = Rc::new(RefCell::new(daemon));
    let host = TestHost::new(1_000).stream("tcp", daemon.clone());
    let parameters = [("transport", "tcp"), ("uri", "test:///default")];
    let parameters = parameters.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let read = Request { plug: "node-a".into(), parameters, ..Request::new(Action::Status, 1_000) };
    assert_eq!(Libvirt.run(&read, &host).unwrap().state, PlugState::On);
    assert_eq!(daemon.borrow().uris, ["test:///default"]);
}

#[test]
fn all_plugs_are_listed() {
    let list = |daemon: Daemon| {
        let host = TestHost::new(60_000).stream("tls", Rc::new(RefCell::new(daemon)));
        let request = PlugsRequest { parameters: vec![], deadline_ms: DEADLINE_MS, extra: vec![] };
        Libvirt.plugs(&request, &host)
    };
    let plugs = list(Daemon::with_two()).unwrap();
    let told: Vec<_> = plugs.iter().map(|one| (one.plug.as_str(), one.state)).collect();
    assert_eq!(told, [("node-a", PlugState::On), ("node-b", PlugState::Off)]);
    assert_eq!(plugs[0].identity[0].1, UUID_A);
    let many = |count: usize| Daemon {
        machines: (0..count).map(|n| Machine::new(&format!("n{n}"), UUID_A, 1)).collect(),
        ..Daemon::with_two()
    };
    assert_eq!(list(many(256)).unwrap().len(), 256);
    assert!(list(many(257)).unwrap_err().detail.contains("more than 256 domains"));
}
