//! A remedy that is done in the cluster itself: cordon, quarantine, drain. No device is asked
//! for anything, and nothing is deleted but by eviction, which disruption budgets bind.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::leave::leave_to_cut;
use crate::retry::give_way;
use crate::run::{Flow, Run};
use crate::{
    Chore, Deletion, Effect, Exempt, LOOK_EVERY, NodeView, Notice, ParkReason, Phase, PodView,
    RESEND_EVERY, Rule, View,
};

/// Of pods that did not leave, so many are named.
const PODS_NAMED: usize = 5;

/// Does the chore whose turn it is.
pub(crate) fn do_chore(run: &mut Run<'_>, view: &View, node: &NodeView, chore: Chore) -> Flow {
    if let Err(flow) = leave_to_cut(run) {
        return flow;
    }
    match chore {
        Chore::Cordon if node.cordoned => Flow::Go(Phase::AwaitingWell),
        Chore::Cordon => cordon(run),
        Chore::Quarantine if node.quarantined => Flow::Go(Phase::AwaitingWell),
        Chore::Quarantine => {
            run.record.marks.quarantine = true;
            run.effect(Effect::Quarantine);
            run.look_in(LOOK_EVERY)
        }
        Chore::Drain if node.cordoned => drain(run, view, node),
        Chore::Drain => {
            let pods = view.pods.iter().filter(|pod| is_drained(pod)).count();
            run.notice(Notice::Draining { pods: u32::try_from(pods).unwrap_or(u32::MAX) });
            cordon(run)
        }
    }
}

fn cordon(run: &mut Run<'_>) -> Flow {
    run.record.marks.cordon = true;
    run.effect(Effect::Cordon);
    run.look_in(LOOK_EVERY)
}

/// P6: pods are asked to leave as their budgets allow, until they are gone or patience is over. What a
/// budget holds back then stays: a drain has no proof that would be stronger than a budget.
fn drain(run: &mut Run<'_>, view: &View, node: &NodeView) -> Flow {
    run.rule(Rule::P6);
    let left: Vec<&PodView> = view.pods.iter().filter(|pod| is_drained(pod)).collect();
    if left.is_empty() {
        return Flow::Go(Phase::AwaitingWell);
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

/// Whether a drain asks this pod to leave: all but those that would come back at once, or of which
/// the API server shows only the image. What the out-of-service taint spares is no exception here.
fn is_drained(pod: &PodView) -> bool {
    !matches!(pod.exempt, Some(Exempt::DaemonSet | Exempt::Mirror))
}
