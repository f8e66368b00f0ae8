//! Tests of `node_remedy_incident::open` in the model cluster or a simulated run.

use std::rc::Rc;
use std::time::Duration;

use node_remedy_api::nodefence::RemedyStep;
use node_remedy_incident::open::*;
use node_remedy_model_cluster::interceptor::{Interceptor, Request};
use node_remedy_record::reason::Reason;
use node_remedy_runtime::cluster::ClusterError;
use node_remedy_simulate::testing::{example, play_behind};
use node_remedy_simulate::{Part, play};
use node_remedy_world::api::Kind;
use node_remedy_world::facts::What;
use serde_json::{Value, json};

/// A definition that does not know of ladders.
#[expect(clippy::unnecessary_wraps, reason = "it is asked as any definition is")]
fn knows_no_ladder(kind: Kind, part: &str, object: &mut Value) -> Result<Vec<String>, String> {
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    let spec = spec.filter(|_| kind == Kind::NodeFence && part == "spec");
    let dropped = spec.and_then(|spec| spec.remove("ladder"));
    Ok(dropped.map(|_| "spec.ladder".to_owned()).into_iter().collect())
}

/// A definition that does not know how an incident goes on.
fn knows_no_off(kind: Kind, part: &str, object: &mut Value) -> Result<Vec<String>, String> {
    let is_record = kind == Kind::NodeFence && part == "status";
    let phase = object.pointer("/status/phase").and_then(Value::as_str);
    match phase.filter(|phase| is_record && *phase == "PoweringOff") {
        Some(phase) => Err(format!("phase: unsupported value {phase}")),
        None => Ok(Vec::new()),
    }
}

/// Counts the Events that tell of a record that does not stand.
#[derive(Default)]
struct Told(std::cell::Cell<usize>);

impl Interceptor for Told {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let event = request.object().filter(|_| request.resource == "events");
        let is_it = event.is_some_and(|event| event["reason"] == "RecordPruned");
        self.0.set(self.0.get() + usize::from(is_it));
        Ok(())
    }
}

#[test]
fn a_record_that_is_refused_is_told_of_and_not_acted_on() {
    let mut scenario = example("lost-node.yaml", |text| text);
    scenario.duration = Duration::from_mins(4);
    scenario.admit = Some(knows_no_off);
    let told = Rc::new(Told::default());
    let played = play_behind(&scenario, &told);
    let is_off = |what: &What| matches!(what, What::BmcAccepted { .. });
    assert!(!played.facts.iter().any(|fact| is_off(&fact.what)), "nothing was switched");
    assert_eq!(told.0.get(), 1, "a person is told once");
}

#[test]
fn nothing_is_done_where_a_nodefence_is_not_stored_as_it_was_written() {
    let mut scenario = example("lost-node.yaml", |text| text);
    scenario.duration = Duration::from_mins(4);
    scenario.admit = Some(knows_no_ladder);
    let played = play(&scenario, Part::With).unwrap();
    let is_off = |what: &What| matches!(what, What::BmcAccepted { .. });
    assert!(!played.facts.iter().any(|fact| is_off(&fact.what)), "nothing was switched");
    let mut refused = played.collected.refused.iter();
    let told = |reason: &Reason| matches!(reason, Reason::NotReady(why) if why == PRUNED);
    assert!(refused.any(|refused| told(&refused.reason)), "{:?}", played.collected.refused);
    let left = played.collected.incidents;
    assert!(left.is_empty(), "{left:?}");
}

/// What is missing for a Job of this spec, where the controller was told of one account.
fn missing(mut spec: serde_json::Value) -> Option<String> {
    spec["containers"] = json!([]);
    let template = json!({"spec": spec}).to_string();
    let job = json!({"podTemplate": template, "deadline": "30m", "backoffLimit": 0});
    let remedy_step = json!({"name": "repair", "period": "3m", "job": job});
    let remedy_step: RemedyStep = serde_json::from_value(remedy_step).unwrap();
    account_missing(&["repairer".to_owned()], &remedy_step)
}

#[test]
fn a_job_runs_as_an_account_that_the_controller_was_told_of_and_as_no_other() {
    let (new, old) = ("serviceAccountName", "serviceAccount");
    for allowed in [
        json!({}),
        json!({new: null}),
        json!({new: "default"}),
        json!({new: "repairer", old: "node-remedy"}),
        json!({old: "repairer"}),
    ] {
        assert_eq!(missing(allowed.clone()), None, "{allowed}");
    }
    for (refused, spec) in [
        ("node-remedy", json!({new: "node-remedy"})),
        ("Repairer", json!({new: "Repairer"})),
        ("repairer ", json!({new: "repairer "})),
        // The API server takes the older name where the newer one is empty.
        ("node-remedy", json!({new: null, old: "node-remedy"})),
        ("node-remedy", json!({new: "", old: "node-remedy"})),
    ] {
        let said = missing(spec).unwrap_or_default();
        assert!(said.contains(&format!("{refused:?}")), "{said}");
        assert!(said.contains("--job-service-account"), "{said}");
    }
}
