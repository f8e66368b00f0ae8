//! Reading and switching a machine.

use node_remedy_plugin_azure::Azure;
use node_remedy_sdk::testing::Trace;
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, Request};
use serde_json::json;

use crate::group::{Group, PATH, ask, ask_for, machine, request};

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(Azure::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "azure");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn only_a_machine_that_is_stopped_or_deallocated_is_off() {
    let provisioned = "ProvisioningState/succeeded";
    for (codes, reads) in [
        (vec![provisioned, "PowerState/running"], PlugState::On),
        (vec![provisioned, "PowerState/stopped"], PlugState::Off),
        (vec!["PowerState/deallocated"], PlugState::Off),
        (vec!["PowerState/starting"], PlugState::Transitioning),
        (vec!["PowerState/stopping"], PlugState::Transitioning),
        (vec!["PowerState/deallocating"], PlugState::Transitioning),
        (vec!["PowerState/unknown"], PlugState::Unknown),
        (vec!["PowerState/Stopped"], PlugState::Unknown),
        (vec![provisioned], PlugState::Unknown),
        (vec![], PlugState::Unknown),
        (vec!["PowerState/stopped", "PowerState/running"], PlugState::Unknown),
        // It goes on where it stood.
        (vec!["PowerState/deallocated", "HibernationState/Hibernated"], PlugState::Unknown),
    ] {
        let outcome = ask(Group::with_codes(&codes), Action::Status).result.unwrap();
        assert_eq!(outcome.state, reads, "{codes:?}");
        let [id, uuid] = outcome.identity.try_into().unwrap();
        assert_eq!(id, ("instance-id".to_owned(), PATH.to_owned()));
        assert_eq!(uuid.0, "system-uuid");
    }
}

#[test]
fn a_machine_is_switched() {
    let deallocate = ("off-by".to_owned(), "deallocate".to_owned());
    for (action, power, by, sent, reads) in [
        (Action::Off, "running", None, "/powerOff?skipShutdown=true&", PlugState::Off),
        (Action::Off, "running", Some(deallocate), "/deallocate?", PlugState::Off),
        (Action::On, "deallocated", None, "/start?", PlugState::On),
        (Action::Reset, "running", None, "/restart?", PlugState::On),
    ] {
        let mut request = request(action);
        request.parameters = by.map_or(request.parameters, |by| vec![by]);
        let group = Group { late_ms: 3_000, ..Group::with(power) };
        let ended = ask_for(group, &request, |host| host);
        assert_eq!(ended.result.as_ref().unwrap().state, reads, "{sent}");
        assert_eq!(ended.web.borrow().server.changes, [sent]);
        let begun = ended.trace.iter().position(|one| matches!(one, Trace::BeganEffect { .. }));
        let posted = ended
            .trace
            .iter()
            .position(|one| matches!(one, Trace::Asked { line, .. } if line.starts_with("POST")));
        assert!(begun.unwrap() < posted.unwrap());
    }
}

#[test]
fn an_off_that_was_accepted_is_not_yet_off() {
    let slow = || Group { late_ms: 90_000, ..Group::with("running") };
    let ended = ask(slow(), Action::Off);
    let outcome = ended.result.unwrap();
    assert_eq!(outcome.state, PlugState::Transitioning);
    assert_eq!(outcome.detail, "powerOff accepted; PowerState is running still");
    assert!((10_000..14_000).contains(&ended.took_ms), "{}", ended.took_ms);
    // Nor is it where its operation says that it succeeded.
    let done = json!({ "status": "Succeeded" }).to_string();
    let ended =
        ask(slow().instead(&format!("GET {}", crate::group::OPERATIONS), 200, &done), Action::Off);
    assert_eq!(ended.result.unwrap().state, PlugState::Transitioning);
}

#[test]
fn an_operation_that_fails_after_it_was_accepted_says_why() {
    let group =
        Group { fails: Some("AllocationFailed"), late_ms: 3_000, ..Group::with("deallocated") };
    let failure = ask(group, Action::On).result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Device);
    assert!(failure.retryable);
    let says =
        format!("POST {PATH}/start: AllocationFailed: It is so; Azure has no room for it now");
    assert_eq!(failure.detail, says);
}

/// Whoever could make Azure name another place would be asked with our token.
#[test]
fn an_operation_elsewhere_is_not_asked_about() {
    for elsewhere in ["https://elsewhere.example", "//elsewhere.example", "/x/..", "/providers"] {
        let group = Group { elsewhere, ..Group::with("running") };
        let ended = ask(group, Action::Off);
        assert_eq!(ended.result.as_ref().unwrap().state, PlugState::Off, "{elsewhere}");
        let asked = ended.trace.iter().filter(|one| matches!(one, Trace::Asked { .. })).count();
        assert_eq!(asked, 3, "a read, the off and a read");
    }
}

#[test]
fn a_machine_that_never_stops_is_never_said_to_be_off() {
    let until = Request { until: Some(PlugState::Off), ..request(Action::Status) };
    let ended = ask_for(Group::with("stopping"), &until, |host| host);
    assert_eq!(ended.result.unwrap().state, PlugState::Transitioning);
    assert!((50_000..60_000).contains(&ended.took_ms), "{}", ended.took_ms);
}

#[test]
fn another_machine_than_the_one_asked_for_is_not_believed() {
    let off = [json!({ "code": "PowerState/stopped" })];
    let mut other = machine(&off);
    other["id"] = PATH.replace("worker-1", "worker-2").into();
    for other in [other, json!({ "properties": machine(&off)["properties"] })] {
        let ended =
            ask(Group::with("running").instead("GET", 200, &other.to_string()), Action::Off);
        assert!(ended.web.borrow().server.changes.is_empty());
        assert_eq!(ended.result.unwrap_err().kind, FailureKind::Protocol);
    }
    // Azure writes ids in whatever case it likes.
    let mut same = machine(&off);
    same["id"] = PATH.to_uppercase().into();
    let ended = ask(Group::with("running").instead("GET", 200, &same.to_string()), Action::Status);
    assert_eq!(ended.result.unwrap().state, PlugState::Off);
}

#[test]
fn nothing_is_sent_that_the_host_does_not_let_begin() {
    let off = request(Action::Off);
    let ended = ask_for(Group::with("running"), &off, |host| host.refuse_effect("it is over"));
    assert_eq!(ended.writes().len(), 0);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Cancelled);
}

#[test]
fn monitor_changes_nothing() {
    let ended = ask(Group::with("running"), Action::Monitor);
    assert_eq!(ended.result.as_ref().unwrap().state, PlugState::On);
    assert_eq!(ended.writes().len(), 0);
}
