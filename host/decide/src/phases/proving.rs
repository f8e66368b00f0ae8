//! Proofs that are at hand before power is cut: recorded, once they are read anew.

use crate::bug::{Bug, guard};
use crate::release::cut_drivers;
use crate::run::{Flow, Run};
use crate::standing::{is_cut, outdated};
use crate::{
    Action, Evidence, Grade, Hold, MethodIndex, NodeView, Notice, PROOF_READ_AGE_MAX, Phase,
    PlugState, Proof, Rule, Time,
};

/// Records a proof that is at hand, and releases by it; `None` where it turns out to be none.
pub(crate) fn prove(run: &mut Run<'_>, proof: Proof) -> Option<Flow> {
    match is_proof(run, &proof) {
        Err(flow) => Some(flow),
        Ok(false) => None,
        Ok(true) => {
            record_proof(run, proof);
            Some(Flow::Go(Phase::Releasing))
        }
    }
}

/// Records a proof. A dump's grace begins with its proof at the latest: otherwise proofs by the dump and by cut storage
/// would take turns for ever.
pub(crate) fn record_proof(run: &mut Run<'_>, proof: Proof) {
    run.notice(Notice::Proven { grade: proof.grade });
    if guard(Bug::DumpsTakeTurns, proof.grade == Grade::KdumpSeen)
        && let Some(until) = begin_dump_grace(run)
    {
        run.hold(Hold::Dump { until });
    }
    run.record.proof = Some(proof);
}

/// A16: a cut that was read a while ago may be undone by now, and is read again before it counts as proof. Whether it
/// is one; one that cannot be read is none.
pub(crate) fn is_proof(run: &mut Run<'_>, proof: &Proof) -> Result<bool, Flow> {
    let Evidence::Reads(reads) = &proof.by else { return Ok(true) };
    if proof.grade != Grade::StorageFenced {
        return Ok(true);
    }
    let last = |cut: &MethodIndex| run.record.last_ended(*cut, Action::Status);
    let is_unread = |cut: &MethodIndex| last(cut).is_some_and(|read| read.state().is_none());
    let cuts = || run.record.read_by(proof).into_iter();
    let oldest = cuts().min_by_key(|cut| last(cut)?.ended_at);
    let oldest = oldest.filter(|_| outdated(run, proof.grade, reads).is_some());
    let again = cuts().find(is_unread).or(oldest);
    let Some(cut) = again.filter(|_| guard(Bug::OldCutIsProof, true)) else { return Ok(true) };
    let read = run.record.last_in_phase(cut, Action::Status);
    if let Some(read) = read.filter(|read| !read.is_held_back()) {
        // However long a slow device took: it is as it said a moment ago. Once it was read again for this proof, a slow API
        // server does not have it read for ever: the release reads it again.
        let just_now = read.ended_at.is_some_and(|at| at.is_within(PROOF_READ_AGE_MAX, run.now));
        if read.state().is_none() || just_now {
            return Ok(read.state() == Some(PlugState::Off));
        }
    }
    run.rule(Rule::A16);
    Err(run.call(cut, Action::Status))
}

/// Storage access is cut and was read as cut: proof for the pods that lived on it, once for a boot. One that
/// was undone is no proof again.
pub(crate) fn storage_fenced(run: &Run<'_>, node: &NodeView) -> Option<Proof> {
    let is_known = |proof: &Proof| {
        proof.grade == Grade::StorageFenced && proof.liveness.boot_id == node.liveness.boot_id
    };
    let is_proven = run.record.proof.as_ref().is_some_and(is_known);
    if is_proven || !run.policy.grades.contains(&Grade::StorageFenced) {
        return None;
    }
    let drivers = cut_drivers(run.plan, &run.record);
    let is_storage = |index: &MethodIndex| {
        run.plan.method(*index).is_some_and(|method| {
            let mut its = method.drivers().peekable();
            method.cuts_storage()
                && (its.peek().is_none() || its.any(|driver| drivers.contains(driver)))
        })
    };
    let reads: alloc::vec::Vec<_> = run
        .plan
        .cut_methods()
        .filter(is_storage)
        .filter(|index| is_cut(&run.record, *index))
        .filter_map(|index| run.record.last_read(index))
        .map(|read| read.id)
        .collect();
    if reads.is_empty() {
        return None;
    }
    let liveness = node.liveness.clone();
    let by = Evidence::Reads(reads);
    Some(Proof { grade: Grade::StorageFenced, at: run.now, by, liveness, voided_at: None })
}

/// Begins the grace, if the policy has one and it has not begun; says when it ends.
pub(crate) fn begin_dump_grace(run: &mut Run<'_>) -> Option<Time> {
    let grace = run.policy.kdump_grace?;
    Some(run.record.dump_held_at.get_or_insert(run.now).after(grace))
}
