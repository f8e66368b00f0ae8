//! `explain`: what is known of a node, and why it is, or is not, acted on.

use std::fmt::Write as _;
use std::process::ExitCode;

use k8s_openapi::api::core::v1::{Event, Node};
use kube::ResourceExt as _;
use node_remedy_api::limits::REFUSALS_MAX;
use node_remedy_api::nodefence::{
    Decided, FinalReason, Goal, NodeFence, NodeFenceStatus, Operation, RemedyStep, State,
};
use node_remedy_api::remedybudget;
use node_remedy_api::remedybudget::RemedyBudget;
use node_remedy_config::symptoms;
use node_remedy_decide::{Boundary, Time};
use node_remedy_device_cli::args::Output;
use node_remedy_device_cli::output::{out, outln};
use node_remedy_device_cli::unread;
use node_remedy_record::sentences::count_of;
use node_remedy_runtime::clock::timestamp;
use node_remedy_runtime::cluster::kube::KubeCluster;
use node_remedy_runtime::cluster::{At, Cluster as _, ClusterError, Scope};
use node_remedy_runtime::events;
use serde::Serialize;
use serde_json::json;

use crate::args::ExplainArgs;
use crate::operator::{connect, incidents, reason, word};
use crate::{binding, fence_paths, pages};

/// `explain`: what is known of a node and why it is, or is not, acted on.
pub async fn explain(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    if let Some(word) = &args.why {
        return pages::why(word);
    }
    let name = args.node.as_deref().unwrap_or_default();
    let cluster = connect(&args.cluster).await?;
    let mut incidents = incidents(&cluster).await?;
    incidents.retain(|incident| incident.spec.node.name == name);
    let budget = cluster.get::<RemedyBudget>(At::cluster(remedybudget::NAME)).await?;
    let mut refusals =
        budget.and_then(|budget| budget.status).map(|status| status.refusals).unwrap_or_default();
    let is_full = refusals.len() >= REFUSALS_MAX;
    refusals.retain(|refusal| refusal.node == name);
    let bound = binding::of_node(&cluster, &args.cluster.namespace, name).await;
    let held = held(&cluster, name, &incidents).await;
    if args.output == Output::Json {
        // Null where it cannot be told: that is not the same as none.
        let (plugs, held) = (bound.ok(), held.ok());
        let all = json!({
            "node": name, "incidents": incidents, "held": held, "refusals": refusals,
            "isRefusalsFull": is_full, "plugs": plugs,
        });
        outln!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(ExitCode::SUCCESS);
    }
    out!("{}", unread::told(&cluster).await?);
    out!("{}", fence_paths::of_node(&cluster, name).await?);
    out!("{}", binding::lines(&bound, name));
    for refusal in &refusals {
        outln!(
            "not acted on {} ({}): {} (since {}, last {})",
            name,
            refusal.guard,
            refusal.sentence,
            refusal.since,
            refusal.last
        );
    }
    for incident in &incidents {
        out!("{}", timeline(incident));
        if let Some(status) = goes_on(incident) {
            out!("{}", held_since(&held, status, name));
        }
    }
    if refusals.is_empty() && incidents.is_empty() {
        outln!("{name}: {}", nothing_known(is_full, name));
        // Who may not read Nodes is told what can be told.
        if let Ok(None) = cluster.get::<Node>(At::cluster(name)).await {
            outln!("{name}: there is no node of that name; see: kubectl get nodes");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Of a node without an incident and without a refusal, where the list of refusals may hold no more.
fn nothing_known(is_full: bool, node: &str) -> String {
    if is_full {
        return format!(
            "not in the list of refusals, which is full with {REFUSALS_MAX} other nodes: it may be one more of \
             them; its Events say: kubectl describe node {node}"
        );
    }
    format!(
        "no threshold is crossed that a RemedyConfiguration names for it; nothing was refused; what is in force for \
         it says: node-remedy config show {node}"
    )
}

/// What kept an incident waiting when that was last said.
#[derive(Debug, Serialize)]
struct Held {
    at: jiff::Timestamp,
    why: String,
}

/// Of an incident that is neither over nor parked its status: it does something, or waits.
fn goes_on(incident: &NodeFence) -> Option<&NodeFenceStatus> {
    incident.status.as_ref().filter(|one| one.status != State::Final && one.parked.is_none())
}

/// What was said of an incident that goes on, the latest last. Why it waits stands in Events alone.
async fn held(
    cluster: &KubeCluster,
    node: &str,
    incidents: &[NodeFence],
) -> Result<Vec<Held>, ClusterError> {
    if !incidents.iter().any(|incident| goes_on(incident).is_some()) {
        return Ok(Vec::new());
    }
    let scope = Scope::within(events::NAMESPACE)
        .matching("involvedObject.kind", "Node")
        .matching("involvedObject.name", node)
        .matching("reason", "Held");
    let said = cluster.list::<Event>(&scope).await?.items.into_iter();
    let said = said.filter_map(|event| Some(Held { at: event.event_time?.0, why: event.message? }));
    let mut said: Vec<_> = said.collect();
    said.sort_by_key(|held| held.at);
    Ok(said)
}

/// Why it waits, as far as that was said since it is in this phase.
fn held_since(
    held: &Result<Vec<Held>, ClusterError>,
    status: &NodeFenceStatus,
    node: &str,
) -> String {
    match held {
        Ok(said) => {
            let since = timestamp(Time(status.entered_at.ms));
            let last = said.last().filter(|held| held.at >= since);
            let line = last.map(|held| format!("  held: {} (said at {})\n", held.why, held.at));
            line.unwrap_or_default()
        }
        Err(error) => format!(
            "  whether anything holds it, its Events say: kubectl describe node {node} ({error})\n"
        ),
    }
}

fn timeline(incident: &NodeFence) -> String {
    let mut out = String::new();
    let trigger = &incident.spec.trigger;
    let _ = writeln!(
        out,
        "{}: {} since {}, remedy {}",
        incident.name_any(),
        symptoms::words(trigger),
        trigger.since,
        incident.spec.remedy
    );
    let Some(status) = &incident.status else { return out };
    for operation in &status.operations {
        let _ = writeln!(out, "  {}", line(operation));
    }
    for decided in &status.decisions {
        let _ = writeln!(out, "  {}", decision(decided, &incident.spec.ladder));
    }
    if let Some(proof) = &status.proof {
        let by = proof.by.person.as_ref().map(|by| format!(", by the word of {by}"));
        let by = by.unwrap_or_default();
        let _ = writeln!(out, "  proof: {} at {}{by}", word(&proof.grade), proof.at);
    }
    if let Some(released) = &status.released {
        let pods = count_of(released.pods.len(), "pod");
        let attachments = count_of(released.attachments.len(), "attachment");
        let _ = writeln!(out, "  released: {pods}, {attachments}");
    }
    if let Some(since) = status.dump_held_at {
        let grace = incident.spec.policy.kdump_grace.map_or(0, |grace| grace.ms / 1_000);
        let _ = writeln!(
            out,
            "  kernel dump: the power-off waits for it, and for the boot after it, since {since}, for {grace} s"
        );
    }
    if status.final_reason.is_none()
        && status.parked.is_none()
        && let Some(boundary) = aborting(&status.goal)
    {
        let _ = writeln!(out, "  aborted: {boundary}");
    }
    // How it ended, or what it does; of what is parked its own line says more.
    let last = status.history.last().filter(|_| status.parked.is_none());
    let does = last.filter(|last| last.phase == status.phase);
    let does = does.map(|last| format!(": {}", last.why)).unwrap_or_default();
    let _ = writeln!(
        out,
        "  now: {} ({}), {}{does}",
        word(&status.status),
        word(&status.phase),
        status.entered_at
    );
    if let Some(parked) = &status.parked {
        let _ = writeln!(out, "  parked: {}: {}", reason(&parked.why), parked.sentence);
        let _ = writeln!(out, "  next: {}", parked.next);
    }
    out
}

/// Where an abort took effect whose way back goes on.
fn aborting(goal: &Goal) -> Option<Boundary> {
    let is_stopped = goal.final_reason == Some(FinalReason::Aborted);
    let reason = goal.park.as_ref().map(reason);
    let is_parked = reason.is_some_and(|word| word == "Aborted");
    if is_stopped {
        return Some(Boundary::BeforeOff);
    }
    is_parked.then_some(Boundary::AfterOffPowersOn)
}

/// What a remedy's plugin decided, and what came of it.
fn decision(decided: &Decided, ladder: &[RemedyStep]) -> String {
    let remedy_step = usize::try_from(decided.remedy_step).ok().and_then(|place| ladder.get(place));
    let remedy = remedy_step.map(|remedy_step| remedy_step.name.as_str()).unwrap_or_default();
    let Some(choice) = &decided.choice else {
        return format!("{} remedy {remedy}: its plugin is asked", decided.asked_at);
    };
    let at = decided.chosen_at.unwrap_or(decided.asked_at);
    let came = match (&decided.failed, decided.ended_at) {
        (Some(why), _) => format!(", failed: {why}"),
        (None, Some(ended)) => format!(", ended {ended}"),
        (None, None) => String::new(),
    };
    format!("{at} remedy {remedy}: its plugin decided {choice}{came}")
}

fn line(operation: &Operation) -> String {
    let end = operation.end.as_ref().map_or("not known yet".to_owned(), |end| {
        let state = end.state.as_ref().map(|state| format!(": {}", word(state)));
        let kind = end.failure_kind.as_ref().map(|kind| format!(": {}", word(kind)));
        let detail = if end.detail.is_empty() { "" } else { ", " };
        let what = state.or(kind).unwrap_or_default();
        format!("{}{what}{detail}{}", word(&end.kind), end.detail)
    });
    format!(
        "{} {} {} (attempt {}): {end}",
        operation.intended_at,
        operation.name,
        word(&operation.action),
        operation.attempt
    )
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use node_remedy_api::nodefence::{GoalKind, Phase};

    use super::*;
    use node_remedy_model_cluster::interceptor::Open;
    use node_remedy_simulate::testing::{example, play_behind};

    #[test]
    fn an_incident_is_told_with_how_it_ended_and_where_an_abort_took_effect() {
        let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
        let mut one = played.collected.incidents.into_values().next().unwrap().0;
        let told = timeline(&one);
        assert!(told.trim_end().ends_with(": the node is well again"), "{told}");
        assert!(!told.contains("aborted"), "{told}");

        let status = one.status.as_mut().unwrap();
        status.final_reason = None;
        (status.phase, status.goal.kind) = (Phase::PoweringOn, GoalKind::Park);
        status.goal.park = serde_json::from_value(json!({"reason": "Aborted"})).unwrap();
        let told = timeline(&one);
        assert!(
            told.contains("  aborted: after an off or a release: undone where that is safe"),
            "{told}"
        );
        assert!(
            !told.contains("the node is well again"),
            "what is over is not what it does: {told}"
        );

        let goal = &mut one.status.as_mut().unwrap().goal;
        (goal.kind, goal.park) = (GoalKind::Close, None);
        goal.final_reason = Some(FinalReason::Aborted);
        let told = timeline(&one);
        assert!(told.contains("  aborted: stopped before anything was switched off"), "{told}");
    }

    #[test]
    fn why_an_incident_waits_is_told_for_as_long_as_it_is_where_that_was_said() {
        let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
        let mut one = played.collected.incidents.into_values().next().unwrap().0;
        assert!(goes_on(&one).is_none(), "it is over");
        let status = one.status.as_mut().unwrap();
        status.status = State::Running;
        let entered = timestamp(Time(status.entered_at.ms));
        let status = goes_on(&one).unwrap();
        let said = |at| Ok(vec![Held { at, why: "no slot is free".to_owned() }]);
        let told = held_since(&said(entered), status, "n");
        assert_eq!(told, format!("  held: no slot is free (said at {entered})\n"));
        let before = entered - jiff::SignedDuration::from_millis(1);
        assert_eq!(held_since(&said(before), status, "n"), "", "it went on");
        assert_eq!(held_since(&Ok(Vec::new()), status, "n"), "");
        let untold = held_since(&Err(ClusterError::Denied("no".to_owned())), status, "n");
        assert!(untold.contains("kubectl describe node n (") && untold.contains("no)"), "{untold}");
    }

    #[test]
    fn of_a_node_that_may_be_beyond_a_full_list_nothing_is_denied() {
        assert!(nothing_known(false, "n").contains("nothing was refused"));
        let full = nothing_known(true, "n");
        assert!(
            full.contains("200 other nodes") && !full.contains("nothing was refused"),
            "{full}"
        );
    }
}
