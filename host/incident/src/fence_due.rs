//! Whether a fence waits behind an incident with a milder remedy.

use node_remedy_api::policy::Mode;
use node_remedy_config::plan::gate_policy_of;
use node_remedy_context::context::Context;
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_decide::{Crossing, NodeView, Phase, Remedy, Verdict, crossed};
use node_remedy_observe::config::{NodePolicy, NodeThreshold};
use node_remedy_observe::live::Facts;
use node_remedy_observe::nodefences::last_superseded;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_observe::superseding::{fences, may_fence};
use node_remedy_observe::view::{gate_view, note_symptom};
use node_remedy_observe::{incident_rate, vetoes};
use node_remedy_probe::device_network;
use node_remedy_runtime::cluster::Cluster;

use crate::open::with_components;
use crate::state::Incident;

/// What the gate says to a remedy of this threshold, as far as the caches know. `own` is an incident that counts for
/// nobody else.
pub fn gate_of<C: Cluster>(
    context: &Context<C>,
    seen: &PrunedNode,
    node: &NodeView,
    (policy, threshold): (&NodePolicy, &NodeThreshold),
    symptom: &Crossing,
    own: Option<&str>,
) -> Verdict {
    let mut gate = gate_view(&context.caches, &context.clock, &policy.gate, &seen.name, own);
    if own.is_some() {
        // What begins is another one.
        gate.incidents = incident_rate::cached(&context.caches, &policy.gate);
    }
    note_symptom(&mut gate, Some(node), symptom);
    let said = vetoes::cached(&context.caches);
    gate.vetoes =
        vetoes::of_node(&said, seen, &context.caches.changes, &policy.gate, &context.clock);
    gate.device_network = device_network::of_opening(context, &threshold.ladder);
    node_remedy_decide::gate(&gate_policy_of(&policy.gate), &gate, context.clock.now())
}

/// Whether an incident with a milder remedy keeps its node from a fence that could be begun.
pub fn is_fence_due<C: Cluster>(
    incident: &Incident<C>,
    facts: &Facts,
    node: Option<&NodeView>,
) -> bool {
    let context = &incident.context;
    let (Some(seen), Some(node)) = (&facts.node, node) else { return false };
    // A fence that was tried already, and a node that only lost a renewal or two, are no reason.
    let mut tried = incident.plan.ladder.iter().take(incident.record.remedy_step.saturating_add(1));
    if seen.is_ready() || tried.any(|remedy_step| remedy_step.remedy == Remedy::Fence) {
        return false;
    }
    let config = context.config.borrow();
    let Ok(Some(policy)) = config.policy_for(seen) else { return false };
    let now = context.clock.now();
    let is_due = |threshold: &&NodeThreshold| {
        let symptom = crossed(node, &threshold.threshold, now);
        // Nor twice for one loss: what refuses the fence would have the two take turns.
        let Crossing::Crossed { since } = symptom else { return false };
        let made_way = last_superseded(&context.caches, seen);
        let is_new = guard(Bug::SupersededOnce, made_way.is_none_or(|ended| ended < since));
        is_new
            && gate_of(context, seen, node, (&policy, threshold), &symptom, Some(&incident.name()))
                .refusals
                .is_empty()
            && with_components(context, &threshold.ladder).is_ok()
    };
    let is_parked = incident.record.phase == Phase::Parked;
    let has_fence =
        incident.plan.ladder.iter().any(|remedy_step| remedy_step.remedy == Remedy::Fence);
    let for_later_fence = guard(Bug::LaterFenceNotDue, is_parked && !has_fence);
    let makes_way_for = |one: &NodeThreshold| fences(one) || for_later_fence && may_fence(one);
    let fencing = policy.thresholds.iter().filter(|one| makes_way_for(one) && one.is_run.is_ok());
    policy.mode != Mode::Shadow
        && fencing.clone().any(|one| is_due(&one))
        && config.plan_for(seen).is_ok()
}
