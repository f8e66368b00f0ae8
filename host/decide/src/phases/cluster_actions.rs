//! A remedy that is done in the cluster itself: cordon, quarantine, drain, release. No device is asked
//! for anything. Nothing is deleted but by eviction, which disruption budgets bind, or behind a proof that
//! comes from elsewhere: a person, a crash notice, a driver that checks.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::leave::{heed_trigger, leave_to_cut};
use super::waiting::{kdump_seen, of_a_part};
use crate::bug::{Bug, guard};
use crate::draft::{Draft, Flow};
use crate::phases::proving::record_proof;
use crate::retry::give_way;
use crate::{
    ClusterAction, Deletion, Effect, Exempt, Hold, LOOK_EVERY, NodeView, Notice, PROBE_EVERY,
    ParkReason, Phase, PodView, Proof, RESEND_EVERY, Remedy, Rule, View,
};

/// Of pods that did not leave, so many are named.
const PODS_NAMED: usize = 5;

/// Does the cluster action whose turn it is.
pub(crate) fn act_on_cluster(
    draft: &mut Draft<'_>,
    view: &View,
    node: &NodeView,
    cluster_action: ClusterAction,
) -> Flow {
    if is_of_proof(cluster_action) {
        return release(draft, view, node, cluster_action);
    }
    if let Err(flow) = leave_to_cut(draft) {
        return flow;
    }
    match cluster_action {
        // They come to an end above.
        ClusterAction::Release | ClusterAction::DeleteNode => Flow::Stay,

        ClusterAction::Cordon if node.cordoned => Flow::Go(Phase::AwaitingHealthy),
        ClusterAction::Cordon => cordon(draft),
        ClusterAction::Quarantine if node.quarantined => Flow::Go(Phase::AwaitingHealthy),
        ClusterAction::Quarantine => {
            draft.record.marks.quarantine = true;
            draft.effect(Effect::Quarantine);
            await_mark(draft, "quarantine taint")
        }
        ClusterAction::Drain if node.cordoned => drain(draft, view, node),
        ClusterAction::Drain => {
            // Told once, while the cordon is asked for again.
            if !draft.record.marks.cordon {
                let pods = view.pods.iter().filter(|pod| is_drained(pod)).count();
                draft.notice(Notice::Draining { pods: u32::try_from(pods).unwrap_or(u32::MAX) });
            }
            cordon(draft)
        }
    }
}

const fn is_of_proof(cluster_action: ClusterAction) -> bool {
    matches!(cluster_action, ClusterAction::Release | ClusterAction::DeleteNode)
}

/// Releases what a proof covers that no device gives. A person's comes as their word, and needs no turn.
fn release(
    draft: &mut Draft<'_>,
    view: &View,
    node: &NodeView,
    cluster_action: ClusterAction,
) -> Flow {
    if let Err(flow) = heed_trigger(draft, view, node) {
        return flow;
    }
    let Some(proof) = at_hand(draft, view, node, cluster_action) else {
        let remedy_step = draft.plan.ladder.get(draft.record.remedy_step);
        let period = remedy_step.map(|remedy_step| remedy_step.period).unwrap_or_default();
        let until = draft.record.entered_at.after(period);
        if draft.has_next() {
            if draft.now >= until {
                return give_way(draft, ParkReason::NoProofPossible);
            }
            draft.look_at(until);
        }
        draft.look_in(PROBE_EVERY);
        return draft.hold(Hold::Proof);
    };
    if let Err(flow) = leave_to_cut(draft) {
        return flow;
    }
    draft.record.marks.quarantine = true;
    record_proof(draft, proof);
    Flow::Go(Phase::Releasing)
}

/// A proof that is had without a device. None of these lets a Node be deleted: the machine may be on.
fn at_hand(
    draft: &Draft<'_>,
    view: &View,
    node: &NodeView,
    cluster_action: ClusterAction,
) -> Option<Proof> {
    let partial = || kdump_seen(draft, view, node).or_else(|| of_a_part(draft, view, node));
    if cluster_action == ClusterAction::Release { partial() } else { None }
}

/// Whether all that the remedy does now is to wait for a proof.
pub(crate) fn awaits_proof(draft: &Draft<'_>) -> bool {
    let Some(Remedy::Cluster(cluster_action)) = draft.remedy() else { return false };
    let Some(view) = draft.seen().filter(|_| is_of_proof(cluster_action)) else { return false };
    draft.node(view).is_none_or(|node| at_hand(draft, view, node, cluster_action).is_none())
}

fn cordon(draft: &mut Draft<'_>) -> Flow {
    draft.record.marks.cordon = true;
    draft.effect(Effect::Cordon);
    await_mark(draft, "cordon")
}

/// Asks for a mark again until `cleanupTimeout`; then the remedy has failed.
fn await_mark(draft: &mut Draft<'_>, mark: &str) -> Flow {
    let until = draft.record.entered_at.after(draft.policy.cleanup_timeout);
    if draft.now >= until && guard(Bug::MarkAwaitedForEver, true) {
        let detail = "the API server did not accept it; see the rights to patch Nodes".into();
        return give_way(draft, ParkReason::MethodFailed { method: mark.into(), detail });
    }
    draft.look_at(until);
    draft.look_in(LOOK_EVERY)
}

/// P6: pods are asked to leave as their budgets allow, until they are gone or patience is over. What a
/// budget holds back then stays: a drain has no proof that would be stronger than a budget.
fn drain(draft: &mut Draft<'_>, view: &View, node: &NodeView) -> Flow {
    draft.rule(Rule::P6);
    let left: Vec<&PodView> = view.pods.iter().filter(|pod| is_drained(pod)).collect();
    if left.is_empty() {
        return Flow::Go(Phase::AwaitingHealthy);
    }
    let held_until = draft.record.entered_at.after(draft.policy.pdb_patience);
    let stopped_until = held_until.after(draft.policy.cleanup_timeout);
    let is_held = |pod: &&PodView| pod.deletion == Deletion::NotAsked;
    let is_over =
        draft.now >= stopped_until || (draft.now >= held_until && left.iter().any(is_held));
    // Nobody on a silent node would stop a pod that is asked to leave.
    if is_over || draft.is_silent(node) {
        return give_way(draft, ParkReason::NotDrained { left: named(&left) });
    }
    let pods: Vec<String> =
        left.iter().filter(|pod| is_held(pod)).map(|pod| pod.uid.clone()).collect();
    if !pods.is_empty() {
        draft.effect(Effect::Evict { pods, at_once: false });
    }
    draft.look_in(RESEND_EVERY)
}

/// Some of the pods by name, and how many more there are.
fn named(pods: &[&PodView]) -> String {
    let names: Vec<&str> = pods.iter().take(PODS_NAMED).map(|pod| pod.name.as_str()).collect();
    let named = names.join(", ");
    match pods.len().saturating_sub(names.len()) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Whether a drain asks this pod to leave: all but those that would come back at once, of which
/// the API server shows only the image, or that have ended. What the out-of-service taint spares is no exception here.
fn is_drained(pod: &PodView) -> bool {
    !matches!(pod.exempt, Some(Exempt::DaemonSet | Exempt::Mirror | Exempt::Ended))
}
