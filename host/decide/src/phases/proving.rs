//! Proofs that are at hand before power is cut: recorded, once they are read anew.

use crate::bug::{Bug, guard};
use crate::draft::{Draft, Flow};
use crate::release::cut_drivers;
use crate::standing::{is_cut, outdated};
use crate::{
    Action, Evidence, Grade, Hold, MethodIndex, NodeView, Notice, PROOF_READ_AGE_MAX, Phase,
    PlugState, Proof, Rule, Time,
};

/// Records a proof that is at hand, and releases by it; `None` where it turns out to be none.
pub(crate) fn prove(draft: &mut Draft<'_>, proof: Proof) -> Option<Flow> {
    match is_proof(draft, &proof) {
        Err(flow) => Some(flow),
        Ok(false) => None,
        Ok(true) => {
            record_proof(draft, proof);
            Some(Flow::Go(Phase::Releasing))
        }
    }
}

/// Records a proof. A dump's grace begins with its proof at the latest: otherwise proofs by the dump and by cut storage
/// would take turns for ever.
pub(crate) fn record_proof(draft: &mut Draft<'_>, proof: Proof) {
    draft.notice(Notice::Proven { grade: proof.grade });
    if guard(Bug::DumpsTakeTurns, proof.grade == Grade::KdumpSeen)
        && let Some(until) = begin_dump_grace(draft)
    {
        draft.hold(Hold::Dump { until });
    }
    draft.record.proof = Some(proof);
}

/// A16: a cut that was read a while ago may be undone by now, and is read again before it counts as proof. Whether it
/// is one; one that cannot be read is none.
pub(crate) fn is_proof(draft: &mut Draft<'_>, proof: &Proof) -> Result<bool, Flow> {
    let Evidence::Reads(reads) = &proof.by else { return Ok(true) };
    if proof.grade != Grade::StorageFenced {
        return Ok(true);
    }
    let last = |cut: &MethodIndex| draft.record.last_ended(*cut, Action::Status);
    let is_unread = |cut: &MethodIndex| last(cut).is_some_and(|read| read.state().is_none());
    let cuts = || draft.record.read_by(proof).into_iter();
    let oldest = cuts().min_by_key(|cut| last(cut)?.ended_at);
    let oldest = oldest.filter(|_| outdated(draft, proof.grade, reads).is_some());
    let again = cuts().find(is_unread).or(oldest);
    let Some(cut) = again.filter(|_| guard(Bug::OldCutIsProof, true)) else { return Ok(true) };
    let read = draft.record.last_in_phase(cut, Action::Status);
    if let Some(read) = read.filter(|read| !read.is_held_back()) {
        // However long a slow device took: it is as it said a moment ago. Once it was read again for this proof, a slow API
        // server does not have it read for ever: the release reads it again.
        let just_now = read.ended_at.is_some_and(|at| at.is_within(PROOF_READ_AGE_MAX, draft.now));
        if read.state().is_none() || just_now {
            return Ok(read.state() == Some(PlugState::Off));
        }
    }
    draft.rule(Rule::A16);
    Err(draft.call(cut, Action::Status))
}

/// Storage access is cut and was read as cut: proof for the pods that lived on it, once for a boot. One that
/// was undone is no proof again.
pub(crate) fn storage_fenced(draft: &Draft<'_>, node: &NodeView) -> Option<Proof> {
    let is_known = |proof: &Proof| {
        proof.grade == Grade::StorageFenced && proof.liveness.boot_id == node.liveness.boot_id
    };
    let is_proven = draft.record.proof.as_ref().is_some_and(is_known);
    if is_proven || !draft.policy.grades.contains(&Grade::StorageFenced) {
        return None;
    }
    let drivers = cut_drivers(draft.plan, &draft.record);
    let is_storage = |index: &MethodIndex| {
        draft.plan.method(*index).is_some_and(|method| {
            let mut its = method.drivers().peekable();
            method.cuts_storage()
                && (its.peek().is_none() || its.any(|driver| drivers.contains(driver)))
        })
    };
    let reads: alloc::vec::Vec<_> = draft
        .plan
        .cut_methods()
        .filter(is_storage)
        .filter(|index| is_cut(&draft.record, *index))
        .filter_map(|index| draft.record.last_read(index))
        .map(|read| read.id)
        .collect();
    if reads.is_empty() {
        return None;
    }
    let liveness = node.liveness.clone();
    let by = Evidence::Reads(reads);
    Some(Proof { grade: Grade::StorageFenced, at: draft.now, by, liveness, voided_at: None })
}

/// Begins the grace, if the policy has one and it has not begun; says when it ends.
pub(crate) fn begin_dump_grace(draft: &mut Draft<'_>) -> Option<Time> {
    let grace = draft.policy.kdump_grace?;
    Some(draft.record.dump_held_at.get_or_insert(draft.now).after(grace))
}
