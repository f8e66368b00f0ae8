//! Instances of an autoscaling group: out of service before they stop, back in service when they run,
//! carried on from wherever somebody died.

use node_remedy_sdk::testing::web::Ended;
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, NetError, PlugState, Request};

use crate::account::{
    A, Account, DEADLINE_MS, RUNNING, STOPPED, STOPPING, State, TERMINATED, ask, ask_for, error,
    once_more, placed, request,
};

const LOOK: &str = "DescribeAutoScalingInstances";

fn state(ended: &Ended<Account>) -> PlugState {
    ended.result.as_ref().unwrap().state
}

fn place(ended: &Ended<Account>) -> &'static str {
    ended.web.borrow().server.place()
}

fn actions(ended: &Ended<Account>) -> Vec<String> {
    ended.web.borrow().server.actions().into_iter().map(str::to_owned).collect()
}

/// What was noted before anything was sent.
fn note(ended: &Ended<Account>) -> Option<&str> {
    ended.trace.iter().find_map(|one| match one {
        Trace::BeganEffect { note } => Some(note.as_str()),
        Trace::Sent { .. }
        | Trace::Received { .. }
        | Trace::Asked { .. }
        | Trace::Answered { .. }
        | Trace::Logged(_)
        | Trace::Farewell => None,
    })
}

/// The same call, of a method that is allowed to lose the instance.
fn may_be_replaced(action: Action) -> Request {
    let mut request = request(action, A);
    "true".clone_into(&mut request.parameters[2].1);
    request
}

#[test]
fn an_instance_of_a_group_leaves_service_before_it_stops_and_comes_back_when_it_runs() {
    let account =
        Account { leaves_ms: 5_000, late_ms: 9_000, ..Account::in_group(RUNNING, "InService") };
    let off = ask(account, Action::Off, A);
    assert_eq!(note(&off), Some("EnterStandby and StopInstances"));
    assert_eq!(
        off.web.borrow().server.changes(),
        [
            format!(
                "Action=EnterStandby&AutoScalingGroupName=workers%20%26%20more&InstanceIds.member.1={A}\
                 &ShouldDecrementDesiredCapacity=true&Version=2011-01-01"
            ),
            format!(
                "Action=StopInstances&InstanceId.1={A}&Force=true&SkipOsShutdown=true&Version=2016-11-15"
            ),
        ]
    );
    assert_eq!((state(&off), place(&off)), (PlugState::Transitioning, "Standby"));

    let account = Account { late_ms: 9_000, ..Account::in_group(STOPPED, "Standby") };
    let on = ask(account, Action::On, A);
    assert_eq!(note(&on), Some("StartInstances and ExitStandby"));
    assert_eq!(actions(&on), ["StartInstances", "ExitStandby"]);
    assert_eq!((state(&on), place(&on)), (PlugState::On, "InService"));
    assert!(on.took_ms >= 9_000, "it was waited for: {}", on.took_ms);
}

/// Whoever dies in between leaves an instance out of service; it runs, or it does not.
#[test]
fn what_was_begun_is_carried_on_from_either_side() {
    let rows: [(State, &'static str, Action, &[&str]); 8] = [
        // Died after EnterStandby.
        (RUNNING, "Standby", Action::Off, &["StopInstances"]),
        (RUNNING, "EnteringStandby", Action::Off, &["StopInstances"]),
        (RUNNING, "Standby", Action::On, &["StartInstances", "ExitStandby"]),
        // Died after StopInstances.
        (STOPPED, "Standby", Action::Off, &["StopInstances"]),
        // Died after StartInstances, and after ExitStandby.
        ((0, "pending"), "Standby", Action::On, &["StartInstances", "ExitStandby"]),
        (RUNNING, "InService", Action::On, &["StartInstances"]),
        (RUNNING, "Pending:Wait", Action::On, &["StartInstances"]),
        // Found off, and not replaced yet.
        (STOPPED, "InService", Action::Off, &["EnterStandby", "StopInstances"]),
    ];
    for (found, place_found, action, sent) in rows {
        let mut account = Account::in_group(found, place_found);
        if place_found == "EnteringStandby" {
            account.is_leaving(3_000);
        }
        let ended = ask(account, action, A);
        let row = format!("{action:?} of {found:?} {place_found}");
        assert_eq!(actions(&ended), sent, "{row}");
        let (reads, place_wanted) = match action {
            Action::Off => (PlugState::Off, "Standby"),
            Action::On if place_found == "Pending:Wait" => (PlugState::On, "Pending:Wait"),
            Action::On | Action::Status | Action::Reset | Action::Monitor => {
                (PlugState::On, "InService")
            }
        };
        assert_eq!((state(&ended), place(&ended)), (reads, place_wanted), "{row}");
    }
}

/// Nobody takes a half for the whole: an `on` is done when the instance is back, and an `off` that was
/// begun is undone by one.
#[test]
fn what_runs_out_of_service_is_neither_on_nor_off() {
    for (found, place, reads, words) in [
        (RUNNING, "InService", PlugState::On, ""),
        (RUNNING, "Standby", PlugState::Transitioning, "Standby"),
        (RUNNING, "EnteringStandby", PlugState::Transitioning, "EnteringStandby"),
        (RUNNING, "Pending:Wait", PlugState::On, "Pending:Wait"),
        (RUNNING, "Terminating:Wait", PlugState::On, "Terminating:Wait"),
        (STOPPED, "Standby", PlugState::Off, ""),
        (STOPPED, "InService", PlugState::Off, ""),
        (STOPPING, "Standby", PlugState::Transitioning, ""),
    ] {
        for action in [Action::Status, Action::Monitor] {
            let ended = ask(Account::in_group(found, place), action, A);
            assert_eq!(state(&ended), reads, "{found:?} {place}");
            let in_group = format!("), {words} in autoscaling group workers & more");
            let detail = &ended.result.as_ref().unwrap().detail;
            assert_eq!(detail.ends_with(&in_group), !words.is_empty(), "{detail}");
            assert_eq!(actions(&ended), [""; 0]);
        }
    }
}

/// What its group ends is gone whatever we do; what joins it cannot leave yet.
#[test]
fn an_instance_on_its_way_is_not_held_up() {
    for place in ["Terminating", "Terminating:Wait", "Terminating:Proceed", "Detaching"] {
        let ended = ask(Account::in_group(RUNNING, place), Action::Off, A);
        assert_eq!(actions(&ended), ["StopInstances"], "{place}");
        assert_eq!(state(&ended), PlugState::Off);
    }
    for place in ["Pending", "Pending:Wait", "Surprise"] {
        let ended = ask(Account::in_group(RUNNING, place), Action::Off, A);
        assert_eq!((note(&ended), actions(&ended).len()), (None, 0), "{place}");
        assert!(ended.result.unwrap_err().detail.contains(place));
    }
    // EC2 says that it has a group, and its group does not know it.
    let account = Account::in_group(RUNNING, "InService").instead(LOOK, 200, &placed(&[]));
    let ended = ask(account, Action::Off, A);
    assert_eq!((note(&ended), actions(&ended).len()), (None, 0));
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Busy);
}

/// With `allow-replace` its group does with it as groups do.
#[test]
fn an_instance_that_may_be_replaced_is_just_stopped() {
    let off = may_be_replaced(Action::Off);
    let ended = ask_for(Account::in_group(RUNNING, "InService"), &off, no_groups);
    assert_eq!(actions(&ended), ["StopInstances"]);
    assert_eq!(state(&ended), PlugState::Unknown);
    let mut of_the_node = may_be_replaced(Action::Status);
    of_the_node.plug = format!("aws:///eu-west-1a/{A}");
    let ended = once_more(ended.web, &of_the_node, no_groups);
    let outcome = ended.result.unwrap();
    assert_eq!(outcome.detail, "state is terminated (48)", "its group ended it");
    assert_eq!(outcome.extra, [("terminated".to_owned(), "true".to_owned())]);

    let status = may_be_replaced(Action::Status);
    let ended = ask_for(Account::in_group(RUNNING, "Standby"), &status, no_groups);
    assert_eq!(state(&ended), PlugState::On, "its group is not asked");
}

/// An admin who did not grant the endpoint.
fn no_groups(host: TestHost) -> TestHost {
    host.failing("autoscaling", NetError::Denied)
}

#[test]
fn rights_that_are_missing_are_named_before_anything_stops() {
    let says = "User: fence is not authorized.";
    let refused = |action, place| {
        let body = error("AccessDenied", says);
        Account::in_group(RUNNING, place).instead(action, 403, &body)
    };
    for (action, place, act) in [
        (LOOK, "InService", Action::Off),
        (LOOK, "InService", Action::Status),
        (LOOK, "InService", Action::Monitor),
        ("EnterStandby", "InService", Action::Off),
        ("ExitStandby", "Standby", Action::On),
    ] {
        let ended = ask(refused(action, place), act, A);
        let has_begun = note(&ended).is_some();
        assert_eq!(has_begun, action != LOOK);
        assert!(!actions(&ended).contains(&"StopInstances".to_owned()));
        let failure = ended.result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Denied);
        let expected = format!(
            "{action}: HTTP 403: User: fence is not authorized; unless allow-replace is true, the \
             key's policies must allow autoscaling:{action}"
        );
        assert_eq!(failure.detail, expected);
    }
    let ended =
        ask_for(Account::in_group(RUNNING, "InService"), &request(Action::Off, A), no_groups);
    assert_eq!((note(&ended), actions(&ended).len()), (None, 0));
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Denied);
    // A machine is better on than off: it is started all the same, and then it is said what is missing.
    let body = error("AccessDenied", says);
    let blind = Account::in_group(STOPPED, "Standby").instead(LOOK, 403, &body);
    let ended = ask(blind, Action::On, A);
    assert_eq!(
        (note(&ended), actions(&ended)),
        (Some("StartInstances"), vec!["StartInstances".into()])
    );
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Denied);
    // Off is off, whatever can be asked of its group; and most instances have none.
    for account in [Account::in_group(STOPPED, "Standby"), Account::with(STOPPED)] {
        let ended = ask_for(account, &request(Action::Status, A), no_groups);
        assert_eq!(state(&ended), PlugState::Off);
    }
    for (action, account) in
        [(Action::Off, Account::with(RUNNING)), (Action::On, Account::with(STOPPED))]
    {
        ask_for(account, &request(action, A), no_groups).result.unwrap();
    }
}

#[test]
fn an_instance_that_does_not_leave_service_is_not_stopped() {
    let stuck = Account { leaves_ms: u64::MAX / 2, ..Account::in_group(RUNNING, "InService") };
    let ended = ask(stuck, Action::Off, A);
    assert_eq!(actions(&ended), ["EnterStandby"]);
    assert!(ended.took_ms < u128::from(DEADLINE_MS), "{}", ended.took_ms);
    let failure = ended.result.unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Busy, true));
    assert!(
        failure.detail.contains("not out of service yet: EnteringStandby"),
        "{}",
        failure.detail
    );

    // A group that may not become smaller.
    let says = "Group would violate its minimum size.";
    let full = Account::in_group(RUNNING, "InService");
    let ended =
        ask(full.instead("EnterStandby", 400, &error("ValidationError", says)), Action::Off, A);
    assert_eq!(actions(&ended), [""; 0]);
    let failure = ended.result.unwrap_err();
    assert!(failure.detail.contains("minimum leaves room"), "{}", failure.detail);
}

/// A start that takes longer than a call: the next `on` puts it back.
#[test]
fn an_instance_that_comes_up_late_is_put_back_by_the_next_call() {
    let slow =
        Account { late_ms: 2 * u64::from(DEADLINE_MS), ..Account::in_group(STOPPED, "Standby") };
    let ended = ask(slow, Action::On, A);
    assert_eq!(actions(&ended), ["StartInstances"]);
    assert_eq!((state(&ended), place(&ended)), (PlugState::Transitioning, "Standby"));
    // Its group ends what does not come up.
    let gone = Account::in_group(TERMINATED, "Standby");
    let mut of_the_node = request(Action::On, A);
    of_the_node.plug = format!("aws:///eu-west-1a/{A}");
    assert!(ask_for(gone, &of_the_node, |host| host).result.is_err());
}
