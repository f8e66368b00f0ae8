//! Reading and switching an instance.

use node_remedy_plugin_gce::Gce;
use node_remedy_sdk::testing::Trace;
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, Request};
use serde_json::json;

use crate::project::{PATH, Project, ask, ask_for, instance, request};

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(Gce::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "gce");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

/// All statuses of the discovery document, and some that it does not have.
#[test]
fn only_an_instance_that_has_stopped_is_off() {
    for (status, reads) in [
        ("RUNNING", PlugState::On),
        ("TERMINATED", PlugState::Off),
        ("STOPPED", PlugState::Off),
        ("STOPPING", PlugState::Transitioning),
        ("PENDING_STOP", PlugState::Transitioning),
        ("DEPROVISIONING", PlugState::Transitioning),
        ("PENDING", PlugState::Transitioning),
        ("PROVISIONING", PlugState::Transitioning),
        ("STAGING", PlugState::Transitioning),
        ("SUSPENDING", PlugState::Transitioning),
        ("SUSPENDED", PlugState::Unknown),
        ("REPAIRING", PlugState::Unknown),
        ("terminated", PlugState::Unknown),
        ("", PlugState::Unknown),
    ] {
        let outcome = ask(Project::with(status), Action::Status).result.unwrap();
        assert_eq!(outcome.state, reads, "{status}");
        let identity = [("instance-id", "p-1/z-1/worker-1"), ("numeric-id", "7001")];
        let identity = identity.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(outcome.identity, identity);
    }
}

#[test]
fn an_instance_is_switched() {
    for (action, status, sent, reads) in [
        (Action::Off, "RUNNING", "/stop?noGracefulShutdown=true", PlugState::Off),
        (Action::On, "TERMINATED", "/start", PlugState::On),
        (Action::Reset, "RUNNING", "/reset", PlugState::On),
    ] {
        let ended = ask(Project { late_ms: 2_500, ..Project::with(status) }, action);
        assert_eq!(ended.result.as_ref().unwrap().state, reads, "{sent}");
        assert_eq!(ended.web.borrow().server.changes, [sent]);
        let begun = ended.trace.iter().position(|one| matches!(one, Trace::BeganEffect { .. }));
        let posted = ended
            .trace
            .iter()
            .position(|one| matches!(one, Trace::Asked { line, .. } if line.starts_with("POST")));
        assert!(begun.unwrap() < posted.unwrap());
    }
    let mut off = request(Action::Off);
    off.parameters.push(("discard-local-ssd".to_owned(), "true".to_owned()));
    let ended = ask_for(Project::with("RUNNING"), &off, |host| host);
    let sent = "/stop?noGracefulShutdown=true&discardLocalSsd=true";
    assert_eq!(ended.web.borrow().server.changes, [sent]);
}

#[test]
fn an_off_that_was_accepted_is_not_yet_off() {
    let ended = ask(Project { late_ms: 90_000, ..Project::with("RUNNING") }, Action::Off);
    let outcome = ended.result.unwrap();
    assert_eq!(outcome.state, PlugState::Transitioning);
    assert_eq!(outcome.detail, "stop accepted; status is RUNNING still");
    assert!((10_000..12_000).contains(&ended.took_ms), "{}", ended.took_ms);
    // Nor is it where its operation says that it is done.
    let done = r#"{"name": "operation-1", "status": "DONE"}"#;
    let project = Project { late_ms: 90_000, ..Project::with("RUNNING") };
    let ended = ask(project.instead("POST", 200, done), Action::Off);
    assert_eq!(ended.result.unwrap().state, PlugState::Transitioning);
}

#[test]
fn an_operation_that_fails_after_it_was_accepted_says_why() {
    let full = json!({ "code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "No room." });
    let project = Project { fails: Some(full), late_ms: 3_000, ..Project::with("TERMINATED") };
    let failure = ask(project, Action::On).result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Device);
    assert!(failure.retryable);
    let says = format!(
        "POST {PATH}/start: ZONE_RESOURCE_POOL_EXHAUSTED: No room; the zone has no room for it now"
    );
    assert_eq!(failure.detail, says);
}

/// What came of it the instance says, whatever becomes of the operation.
#[test]
fn an_operation_that_cannot_be_read_is_not_asked_for_again() {
    let project = Project { late_ms: 1_000, ..Project::with("RUNNING") };
    let operations = "GET /compute/v1/projects/p-1/zones/z-1/operations";
    let ended = ask(project.instead(operations, 404, ""), Action::Off);
    assert_eq!(ended.result.unwrap().state, PlugState::Off);
    assert_eq!(ended.web.borrow().server.changes.len(), 1);
}

#[test]
fn an_instance_that_never_stops_is_never_said_to_be_off() {
    let stuck = Project { late_ms: u64::from(u32::MAX), ..Project::with("STOPPING") };
    let until = Request { until: Some(PlugState::Off), ..request(Action::Status) };
    let ended = ask_for(stuck, &until, |host| host);
    assert_eq!(ended.result.unwrap().state, PlugState::Transitioning);
    assert!((50_000..60_000).contains(&ended.took_ms), "{}", ended.took_ms);
}

#[test]
fn another_instance_than_the_one_asked_for_is_not_believed() {
    let mut elsewhere = instance("worker-1", "TERMINATED");
    elsewhere["selfLink"] = "https://x/projects/p-2/zones/z-1/instances/worker-1".into();
    for other in [instance("worker-2", "TERMINATED"), elsewhere, json!({ "status": "TERMINATED" })]
    {
        let project = Project::with("RUNNING").instead("GET", 200, &other.to_string());
        let ended = ask(project, Action::Off);
        assert!(ended.web.borrow().server.changes.is_empty());
        assert_eq!(ended.result.unwrap_err().kind, FailureKind::Protocol);
    }
}

#[test]
fn nothing_is_sent_that_the_host_does_not_let_begin() {
    let off = request(Action::Off);
    let ended = ask_for(Project::with("RUNNING"), &off, |host| host.refuse_effect("it is over"));
    assert_eq!(ended.writes().len(), 0);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Cancelled);
}

#[test]
fn monitor_changes_nothing() {
    let ended = ask(Project::with("RUNNING"), Action::Monitor);
    assert_eq!(ended.result.as_ref().unwrap().state, PlugState::On);
    assert_eq!(ended.writes().len(), 0);
}
