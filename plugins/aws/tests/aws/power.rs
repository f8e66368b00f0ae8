//! Reading and switching an instance.

use node_remedy_plugin_aws::Aws;
use node_remedy_sdk::testing::web::Ended;
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, Request};
use std::cell::RefCell;
use std::rc::Rc;

use crate::account::{
    A, Account, B, DEADLINE_MS, GROUP, RUNNING, STOPPED, STOPPING, State, TERMINATED, ask, ask_for,
    described, request,
};

fn status(state: State) -> PlugState {
    ask(Account::with(state), Action::Status, A).result.unwrap().state
}

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(Aws::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "aws");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

/// All codes of the API, and some that it does not have.
#[test]
fn only_a_stopped_instance_is_off() {
    for (state, reads) in [
        ((0, "pending"), PlugState::Transitioning),
        (RUNNING, PlugState::On),
        ((32, "shutting-down"), PlugState::Transitioning),
        (STOPPING, PlugState::Transitioning),
        (STOPPED, PlugState::Off),
        // The high byte is EC2's own.
        ((272, "running"), PlugState::On),
        ((336, "stopped"), PlugState::Off),
        ((80, "stopping"), PlugState::Unknown),
        ((16, "stopped"), PlugState::Unknown),
        ((81, "stopped"), PlugState::Unknown),
        ((80, "Stopped"), PlugState::Unknown),
    ] {
        assert_eq!(status(state), reads, "{state:?}");
    }
}

/// EC2 has no state for it: why it stopped is what tells.
#[test]
fn an_instance_that_hibernates_is_not_off() {
    let kept = "state is stopped (80), and it may hibernate: a start would let its old pods go on";
    for (reason, can_hibernate, reads) in [
        ("Client.UserInitiatedHibernate", true, PlugState::Unknown),
        ("Client.UserInitiatedHibernate", false, PlugState::Unknown),
        ("Client.UserInitiatedShutdown", true, PlugState::Off),
        ("Client.InstanceInitiatedShutdown", true, PlugState::Off),
        ("Server.SpotInstanceShutdown", true, PlugState::Unknown),
        ("", true, PlugState::Unknown),
        ("Server.SpotInstanceShutdown", false, PlugState::Off),
        ("", false, PlugState::Off),
    ] {
        let why = format!(
            "<stateReason><code>{reason}</code></stateReason>\
             <hibernationOptions><configured>{can_hibernate}</configured></hibernationOptions>"
        );
        let body = described(A, STOPPED, "").replace("<placement>", &format!("{why}<placement>"));
        let account = Account::with(STOPPED).instead("DescribeInstances", 200, &body);
        let outcome = ask(account, Action::Status, A).result.unwrap();
        assert_eq!(outcome.state, reads, "{reason} {can_hibernate}");
        assert_eq!(outcome.detail == kept, reads == PlugState::Unknown, "{}", outcome.detail);
        // Nor is it started: whatever was released runs elsewhere by then.
        let account = Account::with(STOPPED).instead("DescribeInstances", 200, &body);
        let started = ask(account, Action::On, A);
        let starts = started.web.borrow().server.actions().len();
        assert_eq!(starts, usize::from(reads == PlugState::Off), "{reason} {can_hibernate}");
    }
}

#[test]
fn an_instance_is_named_by_id_or_by_the_node_and_tells_who_it_is() {
    for plug in [A.to_owned(), format!("aws:///eu-west-1a/{A}")] {
        let account = Account::in_group(RUNNING, "InService");
        let outcome = ask(account, Action::Status, &plug).result.unwrap();
        assert_eq!(outcome.detail, "state is running (16)");
        let identity = [("instance-id", A), ("autoscaling-group", GROUP)];
        let identity = identity.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(outcome.identity, identity);
    }
    let elsewhere = ask(Account::with(RUNNING), Action::Off, &format!("aws:///eu-west-1b/{A}"));
    assert_eq!(elsewhere.web.borrow().server.changes().len(), 0);
    let failure = elsewhere.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::NoSuchPlug);
    assert_eq!(failure.detail, format!("instance {A} is in zone eu-west-1a, expected eu-west-1b"));
}

#[test]
fn an_instance_is_switched_and_no_other() {
    let version = "Version=2016-11-15";
    for (action, state, form, reads) in [
        (Action::Off, RUNNING, "StopInstances", PlugState::Off),
        (Action::On, STOPPED, "StartInstances", PlugState::On),
        (Action::Reset, RUNNING, "RebootInstances", PlugState::On),
    ] {
        let ended = ask(Account::with(state), action, A);
        assert_eq!(ended.result.as_ref().unwrap().state, reads, "{form}");
        let how = if action == Action::Off { "&Force=true&SkipOsShutdown=true" } else { "" };
        let expected = format!("Action={form}&InstanceId.1={A}{how}&{version}");
        assert_eq!(ended.web.borrow().server.changes(), [expected]);
        let begun = ended.trace.iter().position(|one| matches!(one, Trace::BeganEffect { .. }));
        let sent = ended.trace.iter().position(
            |one| matches!(one, Trace::Asked { body, .. } if !body.starts_with(b"Action=Describe")),
        );
        assert!(begun.unwrap() < sent.unwrap());
    }
    let mut gentle = request(Action::Off, A);
    gentle.parameters[1].1 = "false".to_owned();
    let ended = ask_for(Account::with(RUNNING), &gentle, |host| host);
    let expected = format!("Action=StopInstances&InstanceId.1={A}&Force=true&{version}");
    assert_eq!(ended.web.borrow().server.changes(), [expected]);
}

#[test]
fn an_off_that_was_accepted_is_not_yet_off() {
    let slow = || Account { late_ms: 40_000, ..Account::with(RUNNING) };
    let outcome = ask(slow(), Action::Off, A).result.unwrap();
    assert_eq!(outcome.state, PlugState::Transitioning);
    assert_eq!(outcome.detail, "StopInstances accepted; state is running (16) still");

    // As the host goes on: it reads until the plug is off.
    let account = Rc::new(RefCell::new(slow()));
    let host = TestHost::new(u64::from(DEADLINE_MS)).web("ec2", account);
    Aws.run(&request(Action::Off, A), &host).unwrap();
    let until = Request { until: Some(PlugState::Off), ..request(Action::Status, A) };
    assert_eq!(Aws.run(&until, &host).unwrap().state, PlugState::Off);
    assert!((40_000..46_000).contains(&host.elapsed().as_millis()), "{:?}", host.elapsed());
}

/// An account that says yes and whose answers never change.
#[test]
fn an_instance_that_never_stops_is_never_said_to_be_off() {
    let stuck = || Account { late_ms: u64::from(u32::MAX), ..Account::with(RUNNING) };
    assert_eq!(ask(stuck(), Action::Off, A).result.unwrap().state, PlugState::Transitioning);
    let until = Request { until: Some(PlugState::Off), ..request(Action::Status, A) };
    let ended = ask_for(stuck(), &until, |host| host);
    assert_eq!(ended.result.unwrap().state, PlugState::On);
    assert!((50_000..60_000).contains(&ended.took_ms), "{}", ended.took_ms);
}

#[test]
fn an_instance_that_is_gone_is_off_only_where_the_node_itself_names_it() {
    let failure = ask(Account::with(TERMINATED), Action::Off, A);
    assert_eq!(failure.web.borrow().server.changes().len(), 0);
    let failure = failure.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::NoSuchPlug);
    assert!(failure.detail.contains("terminated and never runs again"), "{}", failure.detail);

    let of_the_node = format!("aws:///eu-west-1a/{A}");
    for action in [Action::Status, Action::Off] {
        let outcome = ask(Account::with(TERMINATED), action, &of_the_node).result.unwrap();
        assert_eq!(outcome.state, PlugState::Off);
        assert!(outcome.detail.ends_with("state is terminated (48)"), "{}", outcome.detail);
        assert_eq!(outcome.extra, [("terminated".to_owned(), "true".to_owned())]);
    }
    // It cannot come back, and nobody is told that it did.
    for action in [Action::On, Action::Reset] {
        let failure = ask(Account::with(TERMINATED), action, &of_the_node).result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Busy);
    }
    let stopped = ask(Account::with(STOPPED), Action::Status, &of_the_node).result.unwrap();
    assert_eq!(stopped.extra, [], "that one can come back");
}

/// `off: terminate`: an off is the end of it.
fn end(account: Account, plug: &str, allow_replace: bool) -> Ended<Account> {
    let mut off = request(Action::Off, plug);
    for (name, value) in &mut off.parameters {
        match name.as_str() {
            "off" => "terminate".clone_into(value),
            "allow-replace" => *value = allow_replace.to_string(),
            _ => {}
        }
    }
    ask_for(account, &off, |host| host)
}

#[test]
fn an_instance_is_ended_where_the_node_itself_names_it() {
    let of_the_node = format!("aws:///eu-west-1a/{A}");
    let ended = end(Account::with(RUNNING), &of_the_node, false);
    let outcome = ended.result.unwrap();
    assert_eq!(outcome.state, PlugState::Off);
    assert_eq!(outcome.extra, [("terminated".to_owned(), "true".to_owned())]);
    let form = format!(
        "Action=TerminateInstances&InstanceId.1={A}&SkipOsShutdown=true&Version=2016-11-15"
    );
    assert_eq!(ended.web.borrow().server.changes(), [form]);

    let by_hand = end(Account::with(RUNNING), A, false);
    assert_eq!(by_hand.web.borrow().server.asked.len(), 0);
    let failure = by_hand.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::BadParameters);
    assert!(failure.detail.contains("expected the node's providerID"), "{}", failure.detail);
}

/// An accepted end is none yet, and one that has come comes once.
#[test]
fn an_instance_is_not_said_to_be_ended_before_it_is() {
    let of_the_node = format!("aws:///eu-west-1a/{A}");
    let late = Account { late_ms: 600_000, ..Account::with(RUNNING) };
    let outcome = end(late, &of_the_node, false).result.unwrap();
    assert_eq!((outcome.state, outcome.extra), (PlugState::Transitioning, Vec::new()));
    for state in [TERMINATED, STOPPED] {
        let outcome = end(Account::with(state), &of_the_node, false).result.unwrap();
        let gone = [("terminated".to_owned(), "true".to_owned())];
        assert_eq!((outcome.state, &outcome.extra[..]), (PlugState::Off, &gone[..]), "{state:?}");
    }
}

/// Its group would start another: whoever wants that says so.
#[test]
fn an_instance_of_a_group_is_ended_only_where_it_may_be_replaced() {
    let of_the_node = format!("aws:///eu-west-1a/{A}");
    let kept = end(Account::in_group(RUNNING, "InService"), &of_the_node, false);
    assert_eq!(kept.web.borrow().server.changes().len(), 0);
    let failure = kept.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::BadParameters);
    assert!(failure.detail.contains("set allow-replace to true"), "{}", failure.detail);
    let ended = end(Account::in_group(RUNNING, "InService"), &of_the_node, true);
    assert_eq!(ended.web.borrow().server.actions(), ["TerminateInstances"]);
    assert_eq!(ended.result.unwrap().state, PlugState::Off);
}

/// What EC2 knows it does not know everywhere at once.
#[test]
fn an_instance_that_is_not_known_yet_is_asked_for_again() {
    let late = Account { knows_from_ms: 3_000, ..Account::with(RUNNING) };
    assert_eq!(ask(late, Action::Status, A).result.unwrap().state, PlugState::On);
    let never = Account { knows_from_ms: u64::MAX, ..Account::with(RUNNING) };
    let ended = ask(never, Action::Status, A);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug);
    assert!((4_000..5_000).contains(&ended.took_ms), "{}", ended.took_ms);
}

#[test]
fn another_instance_than_the_one_asked_for_is_not_believed() {
    let other = format!("<item><instanceId>{B}</instanceId></item>");
    for answer in [described(B, STOPPED, ""), described(A, STOPPED, &other)] {
        let account = Account::with(RUNNING).instead("DescribeInstances", 200, &answer);
        let ended = ask(account, Action::Off, A);
        assert_eq!(ended.web.borrow().server.changes().len(), 0);
        assert_eq!(ended.result.unwrap_err().kind, FailureKind::Protocol);
    }
}

#[test]
fn nothing_is_sent_that_the_host_does_not_let_begin() {
    let off = request(Action::Off, A);
    let ended =
        ask_for(Account::with(RUNNING), &off, |host| host.refuse_effect("the lease is over"));
    assert_eq!(ended.web.borrow().server.changes().len(), 0);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Cancelled);
}

#[test]
fn monitor_changes_nothing() {
    let ended = ask(Account::with(RUNNING), Action::Monitor, A);
    assert_eq!(ended.result.unwrap().state, PlugState::On);
    assert_eq!(ended.web.borrow().server.changes().len(), 0);
}
