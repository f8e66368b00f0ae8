//! When a milder remedy makes way for a fence.
//!
//! A node has one incident at a time. Where another of its thresholds is crossed whose first remedy fences it, an incident
//! with a milder one would keep it from its turn, for as long as a person takes. So it ends, and the fence gets an incident
//! of its own; but only where nothing speaks against opening that. One that waits for a person, and whose own remedies
//! hold no fence, also makes way for a threshold with a fence among its later remedies.

use node_remedy_api::nodefence::{FinalReason, NodeFence, Rung};
use node_remedy_api::policy::Mode;
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_decide::{Crossing, NodeView, Phase, Remedy, Time, Verdict, crossed};

use super::config::{NodePolicy, NodeThreshold};
use super::live::Facts;
use super::plan::gate_policy_of;
use super::seen::NodeSeen;
use super::view::{gate_view, is_open, note_sign};
use super::{Mirror, begun, words};
use crate::cluster::Cluster;
use crate::controller::Parts;
use crate::device_network;
use crate::opening::with_components;
use crate::reconcile::Incident;

/// Whether a threshold's first remedy fences the node.
pub fn fences(threshold: &NodeThreshold) -> bool {
    threshold.ladder.first().is_some_and(Rung::is_fence)
}

/// Whether a fence is among a threshold's remedies.
pub fn may_fence(threshold: &NodeThreshold) -> bool {
    threshold.ladder.iter().any(Rung::is_fence)
}

/// The thresholds by place, those first whose first remedy fences, and then those with a later one that does: of two
/// that are crossed at once the milder one helps nobody.
pub fn fences_first(policy: &NodePolicy) -> impl Iterator<Item = (usize, &NodeThreshold)> {
    let mut thresholds: Vec<(usize, &NodeThreshold)> =
        policy.thresholds.iter().enumerate().collect();
    thresholds.sort_by_key(|(_, one)| (!fences(one), !may_fence(one)));
    thresholds.into_iter()
}

/// Whether an incident ended to make way for a fence.
pub fn was_superseded(nodefence: &NodeFence) -> bool {
    let ended = nodefence.status.as_ref().and_then(|status| status.final_reason);
    ended == Some(FinalReason::Superseded)
}

/// When the node's last incident ended to make way for a fence; `None` if it ended otherwise.
pub fn last_superseded(mirror: &Mirror, node: &NodeSeen) -> Option<Time> {
    let nodefences = mirror.nodefences.all();
    let of_node = nodefences.values().map(|kept| &kept.0);
    let over = of_node.filter(|one| one.spec.node.uid == node.uid && !is_open(one));
    let ended = over.filter_map(|one| one.status.as_ref());
    let last = ended.max_by_key(|status| status.entered_at.ms)?;
    (last.final_reason == Some(FinalReason::Superseded)).then_some(Time(last.entered_at.ms))
}

/// What the gate says to a remedy of this threshold, as far as the caches know. `own` is an incident that counts for
/// nobody else.
pub fn gate_of<C: Cluster>(
    parts: &Parts<C>,
    seen: &NodeSeen,
    node: &NodeView,
    (policy, threshold): (&NodePolicy, &NodeThreshold),
    sign: &Crossing,
    own: Option<&str>,
) -> Verdict {
    let mut gate = gate_view(&parts.mirror, &parts.clock, &policy.gate, &seen.name, own);
    if own.is_some() {
        // What begins is another one.
        gate.incidents = begun::cached(&parts.mirror, &policy.gate);
    }
    note_sign(&mut gate, Some(node), sign);
    let said = words::cached(&parts.mirror);
    gate.words = words::of_node(&said, seen, &parts.mirror.changes, &policy.gate, &parts.clock);
    gate.device_network = device_network::of_opening(parts, &threshold.ladder);
    node_remedy_decide::gate(&gate_policy_of(&policy.gate), &gate, parts.clock.now())
}

/// Whether an incident with a milder remedy keeps its node from a fence that could be begun.
pub fn is_fence_due<C: Cluster>(
    incident: &Incident<C>,
    facts: &Facts,
    node: Option<&NodeView>,
) -> bool {
    let parts = &incident.parts;
    let (Some(seen), Some(node)) = (&facts.node, node) else { return false };
    // A fence that was tried already, and a node that only lost a renewal or two, are no reason.
    let mut tried = incident.plan.ladder.iter().take(incident.record.rung.saturating_add(1));
    if seen.is_ready() || tried.any(|rung| rung.remedy == Remedy::Fence) {
        return false;
    }
    let config = parts.config.borrow();
    let Ok(Some(policy)) = config.policy_for(seen) else { return false };
    let now = parts.clock.now();
    let is_due = |threshold: &&NodeThreshold| {
        let sign = crossed(node, &threshold.threshold, now);
        // Nor twice for one loss: what refuses the fence would have the two take turns.
        let Crossing::Crossed { since } = sign else { return false };
        let made_way = last_superseded(&parts.mirror, seen);
        let is_new = guard(Bug::SupersededOnce, made_way.is_none_or(|ended| ended < since));
        is_new
            && gate_of(parts, seen, node, (&policy, threshold), &sign, Some(&incident.name()))
                .refusals
                .is_empty()
            && with_components(parts, &threshold.ladder).is_ok()
    };
    let is_parked = incident.record.phase == Phase::Parked;
    let has_fence = incident.plan.ladder.iter().any(|rung| rung.remedy == Remedy::Fence);
    let for_later_fence = guard(Bug::LaterFenceNotDue, is_parked && !has_fence);
    let makes_way_for = |one: &NodeThreshold| fences(one) || for_later_fence && may_fence(one);
    let fencing = policy.thresholds.iter().filter(|one| makes_way_for(one) && one.is_run.is_ok());
    policy.mode != Mode::Shadow
        && fencing.clone().any(|one| is_due(&one))
        && config.plan_for(seen).is_ok()
}
