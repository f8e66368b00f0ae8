//! Waiting for leave: before isolation, and between isolation and power.

use alloc::collections::BTreeSet;
use alloc::string::ToString as _;

use super::leave::{heed_trigger, leave_to_cut};
use crate::bug::{Bug, guard};
use crate::draft::{Draft, Flow};
use crate::phases::proving::{begin_dump_grace, prove, storage_fenced};
use crate::release::{Cover, cut_drivers};
use crate::retry::node_gone;
use crate::standing::still_cut;
use crate::{
    Approval, Dump, Evidence, Grade, Hold, LOOK_EVERY, NodeView, PROBE_EVERY, Phase, PodView,
    Proof, Rule, Time, View, cut,
};

/// New: nothing was done yet in this pass.
pub(crate) fn waiting(draft: &mut Draft<'_>) -> Flow {
    let isolates = draft.isolates();
    let until = draft.record.entered_at.after(draft.policy.isolate_after);
    if let Err(flow) = leave_to_cut(draft) {
        return flow;
    }
    if isolates && draft.now < until {
        draft.look_at(until);
        return draft.hold(Hold::NotYet { until });
    }
    // The boot that this pass is about: a restart is about the boot that is ill now.
    if let Some(node) = draft.seen().and_then(|view| draft.node(view)) {
        if draft.is_new_boot(&node.liveness) {
            // The boot that was released from has ended, as it had to.
            draft.record.first_released_at = None;
            draft.record.partly_released_at = None;
        }
        let mut liveness = node.liveness.clone();
        if liveness.boot_id.is_empty() {
            liveness.boot_id.clone_from(&draft.record.liveness_at_open.boot_id);
        }
        draft.record.liveness_at_open = liveness;
    }
    Flow::Go(if isolates { Phase::Isolating } else { Phase::Remedying })
}

/// Isolated; power is not touched yet.
pub(crate) fn awaiting_power(draft: &mut Draft<'_>) -> Flow {
    let until = awaits_since(draft).after(draft.policy.power_after);
    let Some(view) = draft.look() else { return Flow::Stay };
    if lacks_approval(draft) {
        draft.rule(Rule::A17);
        draft.look_in(LOOK_EVERY);
        let Some(node) = draft.node(view) else { return node_gone(draft) };
        if view.trigger_clear()
            && let Err(flow) = heed_trigger(draft, view, node)
        {
            return flow;
        }
        // Whoever is waited for for long shall know what stands meanwhile.
        let cut = draft
            .record
            .powered_off_by_us(draft.plan, draft.now)
            .into_iter()
            .chain(still_cut(draft));
        let cut = cut.filter_map(|method| Some(draft.plan.method(method)?.name.clone())).collect();
        return draft.hold(Hold::Approval { cut });
    }
    if let Err(flow) = leave_to_cut(draft) {
        return flow;
    }
    let at_hand = |node| kdump_seen(draft, view, node).or_else(|| of_a_part(draft, view, node));
    if let Some(proof) = draft.node(view).and_then(at_hand)
        && let Some(flow) = prove(draft, proof)
    {
        return flow;
    }
    if draft.now < until {
        draft.look_at(until);
        return draft.hold(Hold::NotYet { until });
    }
    hold_for_dump(draft, view).unwrap_or(Flow::Go(Phase::ReadingIdentity))
}

/// Waits for a dump and for the boot after it; `None` if power need not wait. Messages stop while the machine boots.
pub(crate) fn hold_for_dump(draft: &mut Draft<'_>, view: &View) -> Option<Flow> {
    let dumps = match view.dump {
        Dump::Heard | Dump::Told => true,
        // Our off ended that boot.
        Dump::Ended => draft.record.last_power_effect(draft.plan).is_none(),
        Dump::None => false,
    };
    if !dumps && draft.record.dump_held_at.is_none() {
        return None;
    }
    let is_first = draft.record.dump_held_at.is_none();
    let until = begin_dump_grace(draft).filter(|until| draft.now < *until)?;
    draft.look_at(until);
    draft.look_in(PROBE_EVERY);
    // Said once: a dump takes an hour, and the record says since when.
    Some(if is_first { draft.hold(Hold::Dump { until }) } else { Flow::Stay })
}

/// Since when power is waited with: a release in between does not begin the wait anew.
fn awaits_since(draft: &Draft<'_>) -> Time {
    let partial = draft.record.proof.as_ref().filter(|proof| proof.grade.is_before_off());
    partial.map_or(draft.record.entered_at, |proof| proof.at.min(draft.record.entered_at))
}

/// A dump that this process hears itself is proof for what does not write, where the policy says so;
/// once for a boot. What another process tells is none.
pub(crate) fn kdump_seen(draft: &Draft<'_>, view: &View, node: &NodeView) -> Option<Proof> {
    let is_trusted = draft.policy.grades.contains(&Grade::KdumpSeen) && view.dump == Dump::Heard;
    // A proof by cut storage may come in between. The two do not take turns, or the grace would have no end.
    let was_held = draft.record.dump_held_at.is_some() || draft.policy.kdump_grace.is_none();
    let is_known = |proof: &Proof| match proof.grade {
        Grade::KdumpSeen => proof.liveness == node.liveness,
        Grade::StorageFenced => {
            let is_over = was_held && proof.liveness.boot_id == node.liveness.boot_id;
            guard(Bug::DumpsTakeTurns, is_over)
        }
        Grade::PowerOffVerified
        | Grade::WatchdogDeadline
        | Grade::OperatorConfirmed
        | Grade::JobSucceeded
        | Grade::Partition
        | Grade::NewBootId => false,
    };
    let is_proven = draft.record.proof.as_ref().is_some_and(is_known);
    let is_undone = cut::is_undone(draft, Some(node));
    (is_trusted && !is_proven && !is_undone).then(|| Proof {
        grade: Grade::KdumpSeen,
        at: draft.now,
        by: Evidence::Report("messages of fence_kdump from the node".to_string()),
        liveness: node.liveness.clone(),
        voided_at: None,
    })
}

/// What is proven of a silent node before it is off, for some of its pods: their storage is cut, or their
/// drivers check. Power goes on meanwhile, or its device may be dead.
pub(crate) fn of_a_part(draft: &Draft<'_>, view: &View, node: &NodeView) -> Option<Proof> {
    let cover = Cover { grade: Grade::StorageFenced, dumps: draft.policy.kdump_releases };
    let cut = cut_drivers(draft.plan, &draft.record);
    let covers = |pod: &PodView| pod.exempt.is_none() && cover.covers_pod(pod, &cut);
    let is_of_use = draft.is_silent(node) && view.pods.iter().any(covers);
    let fenced = if is_of_use { storage_fenced(draft, node) } else { None };
    fenced.or_else(|| partition(draft, view, node))
}

/// No proof: a node that is silent, and pods on it whose volumes' drivers check at detach whether somebody
/// still writes. Once for a silence, and only where the policy names the grade.
fn partition(draft: &Draft<'_>, view: &View, node: &NodeView) -> Option<Proof> {
    let cover = Cover { grade: Grade::Partition, dumps: draft.policy.kdump_releases };
    let covers = |pod: &PodView| pod.exempt.is_none() && cover.covers_pod(pod, &BTreeSet::new());
    let is_asked = draft.policy.grades.contains(&Grade::Partition) && view.pods.iter().any(covers);
    // A storage or dump proof of this boot says more; silence must not replace it.
    let says_more = |proof: &Proof| {
        matches!(proof.grade, Grade::StorageFenced | Grade::KdumpSeen)
            && proof.liveness.boot_id == node.liveness.boot_id
    };
    let is_known = |proof: &Proof| {
        proof.liveness == node.liveness || guard(Bug::SilenceHidesCuts, says_more(proof))
    };
    let is_proven = draft.record.proof.as_ref().is_some_and(is_known);
    let is_cut_off = node.lease_seen_at.is_some() && draft.is_silent(node);
    let is_heard = guard(Bug::HeardIsCutOff, !is_cut_off);
    (is_asked && !is_proven && !is_heard).then(|| Proof {
        grade: Grade::Partition,
        at: draft.now,
        by: Evidence::Report("the silence of its Lease alone".to_string()),
        liveness: node.liveness.clone(),
        voided_at: None,
    })
}

/// Whether a person's yes is still to come, as far as this step can see.
pub(crate) fn lacks_approval(draft: &Draft<'_>) -> bool {
    let approved = draft.seen().is_some_and(|view| view.people.approved);
    let lacks = draft.policy.approval == Approval::Needed && draft.seen().is_some() && !approved;
    guard(Bug::ApprovalIgnored, lacks)
}
