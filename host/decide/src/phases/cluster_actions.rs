//! A remedy that is done in the cluster itself: cordon, quarantine, drain, release. No device is asked
//! for anything. Nothing is deleted but by eviction, which disruption budgets bind, or behind a proof that
//! comes from elsewhere: a person, a crash notice, a driver that checks.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::leave::{heed_trigger, leave_to_cut};
use super::waiting::{kdump_seen, of_a_part};
use crate::bug::{Bug, guard};
use crate::phases::proving::record_proof;
use crate::retry::give_way;
use crate::run::{Flow, Run};
use crate::{
    ClusterAction, Deletion, Effect, Exempt, Hold, LOOK_EVERY, NodeView, Notice, PROBE_EVERY,
    ParkReason, Phase, PodView, Proof, RESEND_EVERY, Remedy, Rule, View,
};

/// Of pods that did not leave, so many are named.
const PODS_NAMED: usize = 5;

/// Does the cluster action whose turn it is.
pub(crate) fn act_on_cluster(
    run: &mut Run<'_>,
    view: &View,
    node: &NodeView,
    cluster_action: ClusterAction,
) -> Flow {
    if is_of_proof(cluster_action) {
        return release(run, view, node, cluster_action);
    }
    if let Err(flow) = leave_to_cut(run) {
        return flow;
    }
    match cluster_action {
        // They come to an end above.
        ClusterAction::Release | ClusterAction::DeleteNode => Flow::Stay,

        ClusterAction::Cordon if node.cordoned => Flow::Go(Phase::AwaitingHealthy),
        ClusterAction::Cordon => cordon(run),
        ClusterAction::Quarantine if node.quarantined => Flow::Go(Phase::AwaitingHealthy),
        ClusterAction::Quarantine => {
            run.record.marks.quarantine = true;
            run.effect(Effect::Quarantine);
            await_mark(run, "quarantine taint")
        }
        ClusterAction::Drain if node.cordoned => drain(run, view, node),
        ClusterAction::Drain => {
            // Told once, while the cordon is asked for again.
            if !run.record.marks.cordon {
                let pods = view.pods.iter().filter(|pod| is_drained(pod)).count();
                run.notice(Notice::Draining { pods: u32::try_from(pods).unwrap_or(u32::MAX) });
            }
            cordon(run)
        }
    }
}

const fn is_of_proof(cluster_action: ClusterAction) -> bool {
    matches!(cluster_action, ClusterAction::Release | ClusterAction::DeleteNode)
}

/// Releases what a proof covers that no device gives. A person's comes as their word, and needs no turn.
fn release(run: &mut Run<'_>, view: &View, node: &NodeView, cluster_action: ClusterAction) -> Flow {
    if let Err(flow) = heed_trigger(run, view, node) {
        return flow;
    }
    let Some(proof) = at_hand(run, view, node, cluster_action) else {
        let remedy_step = run.plan.ladder.get(run.record.remedy_step);
        let period = remedy_step.map(|remedy_step| remedy_step.period).unwrap_or_default();
        let until = run.record.entered_at.after(period);
        if run.has_next() {
            if run.now >= until {
                return give_way(run, ParkReason::NoProofPossible);
            }
            run.look_at(until);
        }
        run.look_in(PROBE_EVERY);
        return run.hold(Hold::Proof);
    };
    if let Err(flow) = leave_to_cut(run) {
        return flow;
    }
    run.record.marks.quarantine = true;
    record_proof(run, proof);
    Flow::Go(Phase::Releasing)
}

/// A proof that is had without a device. None of these lets a Node be deleted: the machine may be on.
fn at_hand(
    run: &Run<'_>,
    view: &View,
    node: &NodeView,
    cluster_action: ClusterAction,
) -> Option<Proof> {
    let partial = || kdump_seen(run, view, node).or_else(|| of_a_part(run, view, node));
    if cluster_action == ClusterAction::Release { partial() } else { None }
}

/// Whether all that the remedy does now is to wait for a proof.
pub(crate) fn awaits_proof(run: &Run<'_>) -> bool {
    let Some(Remedy::Cluster(cluster_action)) = run.remedy() else { return false };
    let Some(view) = run.seen().filter(|_| is_of_proof(cluster_action)) else { return false };
    run.node(view).is_none_or(|node| at_hand(run, view, node, cluster_action).is_none())
}

fn cordon(run: &mut Run<'_>) -> Flow {
    run.record.marks.cordon = true;
    run.effect(Effect::Cordon);
    await_mark(run, "cordon")
}

/// Asks for a mark again until `cleanupTimeout`; then the remedy has failed.
fn await_mark(run: &mut Run<'_>, mark: &str) -> Flow {
    let until = run.record.entered_at.after(run.policy.cleanup_timeout);
    if run.now >= until && guard(Bug::MarkAwaitedForEver, true) {
        let detail = "the API server did not accept it; see the rights to patch Nodes".into();
        return give_way(run, ParkReason::MethodFailed { method: mark.into(), detail });
    }
    run.look_at(until);
    run.look_in(LOOK_EVERY)
}

/// P6: pods are asked to leave as their budgets allow, until they are gone or patience is over. What a
/// budget holds back then stays: a drain has no proof that would be stronger than a budget.
fn drain(run: &mut Run<'_>, view: &View, node: &NodeView) -> Flow {
    run.rule(Rule::P6);
    let left: Vec<&PodView> = view.pods.iter().filter(|pod| is_drained(pod)).collect();
    if left.is_empty() {
        return Flow::Go(Phase::AwaitingHealthy);
    }
    let held_until = run.record.entered_at.after(run.policy.pdb_patience);
    let stopped_until = held_until.after(run.policy.cleanup_timeout);
    let is_held = |pod: &&PodView| pod.deletion == Deletion::NotAsked;
    let is_over = run.now >= stopped_until || (run.now >= held_until && left.iter().any(is_held));
    // Nobody on a silent node would stop a pod that is asked to leave.
    if is_over || run.is_silent(node) {
        return give_way(run, ParkReason::NotDrained { left: named(&left) });
    }
    let pods: Vec<String> =
        left.iter().filter(|pod| is_held(pod)).map(|pod| pod.uid.clone()).collect();
    if !pods.is_empty() {
        run.effect(Effect::Evict { pods, at_once: false });
    }
    run.look_in(RESEND_EVERY)
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
