//! Tests of `node_remedy_record::sentences` in the model cluster or a simulated run.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use node_remedy_decide::{Hold, Notice, ParkReason, Plan};
use node_remedy_model_cluster::interceptor::{Interceptor, Request};
use node_remedy_record::sentences::*;
use node_remedy_runtime::cluster::ClusterError;
use node_remedy_simulate::testing::{example, play_behind};

#[test]
fn a_person_is_told_commands_that_can_be_typed() {
    let failed = ParkReason::MethodFailed { method: "a".into(), detail: "NODE A1".into() };
    let rows = [
        (ParkReason::OnFailed, "node-remedy ack worker-3"),
        (ParkReason::GateClosed, "Held Event"),
        (ParkReason::GateClosed, "node-remedy retry worker-3-1"),
        (ParkReason::NotHealthy, "node-remedy retry worker-3-1"),
        (ParkReason::LeftAlone { word: "x".into() }, "node-remedy abort worker-3-1"),
        (failed, "NODE A1"),
    ];
    for (reason, says) in rows {
        let text = note(&Notice::Parked(reason), &Plan::default(), "worker-3-1", "worker-3").text;
        assert!(text.contains(says) && !text.contains("NODEFENCE"), "{text}");
    }
}

#[test]
fn what_waits_for_a_person_is_a_warning_that_says_what_to_type() {
    let left = vec!["quarantine taint of worker-3".to_owned()];
    let rows = [
        (Hold::Approval { cut: vec![] }, true, "node-remedy approve worker-3-1"),
        (
            Hold::Approval { cut: vec!["fc-off".to_owned(), "leaf".to_owned()] },
            true,
            "worker-3-1; until then it stays cut off by fc-off, leaf",
        ),
        (Hold::Proof, true, "node-remedy confirm-off worker-3-1"),
        (Hold::CleanUp { left }, true, "quarantine taint of worker-3"),
        (Hold::JobRefused { why: "403".to_owned() }, true, "403"),
        (Hold::NoSlot, false, "no slot"),
    ];
    for (reason, warning, says) in rows {
        let note = note(&Notice::Held { reason }, &Plan::default(), "worker-3-1", "worker-3");
        assert!(note.warning == warning && note.text.contains(says), "{note:?}");
    }
}

/// What the Events of a run say, by their reasons, where each takes so long to be written.
struct Told(RefCell<Vec<String>>, Duration);

impl Interceptor for Told {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if request.resource == "events" && request.verb == "create" {
            tokio::time::sleep(self.1).await;
            let event = request.object().unwrap_or_default();
            self.0.borrow_mut().extend(event["reason"].as_str().map(str::to_owned));
        }
        Ok(())
    }
}

#[test]
fn an_incident_is_told_from_its_beginning_to_its_end() {
    for takes_s in [0, 2] {
        let told = Rc::new(Told(RefCell::default(), Duration::from_secs(takes_s)));
        play_behind(&example("lost-node.yaml", |text| text), &told);
        let told = told.0.borrow().join(" ");
        assert_eq!(
            told,
            "Opened Isolating Identified PoweringOff VerifyingOff Proven Releasing Released \
             PoweringOn AwaitingHealthy Recovering Final",
            "{takes_s} s"
        );
    }
}
