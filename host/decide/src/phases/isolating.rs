//! The isolation step: quarantine, then the stages that cut network or storage.

use crate::bug::{Bug, guard};
use crate::cut::{self, note_before};
use crate::plan::{Progress, Want};
use crate::release::cut_drivers;
use crate::retry::{
    await_device, fail, give_up, method_failed, node_gone, park, retry, unreachable,
};
use crate::run::{Flow, Run};
use crate::{
    Action, Binding, Builtin, Effect, End, Evidence, Goal, Grade, Hold, IsolatedForGood, Kind,
    Method, MethodIndex, NodeView, Notice, PROOF_READ_AGE_MAX, ParkReason, Phase, PlugState, Proof,
    Record, Rule, Stage, View,
};

use super::leave::{is_cut_again, leave_to_isolate};
use super::power::stop_if_other_machine;
use super::releasing::outdated;
use super::waiting::begin_dump_grace;

/// Quarantines, then runs the isolation stages.
pub(crate) fn isolating(run: &mut Run<'_>) -> Flow {
    if !run.record.marks.quarantine {
        if let Err(flow) = leave_to_isolate(run) {
            return flow;
        }
        run.notice(Notice::Isolating);
        run.record.marks.quarantine = true;
        run.effect(Effect::Quarantine);
    }
    let (plan, stages) = (run.plan, run.isolation());
    // Somebody else's cordon is left alone, now and later; what is done needs no leave once more.
    let node = run.seen().and_then(|view| run.node(view));
    let is_others = node.is_some_and(|node| node.cordoned && !node.cordoned_by_us);
    let mut is_cordoned = is_others || run.record.marks.cordon;
    loop {
        match wanted(run, &stages, is_cordoned) {
            Want::Nothing => break,
            Want::Failed(method) => {
                let reason = method_failed(run, method);
                return fail(run, reason);
            }
            Want::Method(index) => {
                if let Err(flow) = leave_to_isolate(run) {
                    return flow;
                }
                if cut::hits_another(run) {
                    // Another node has by now what was cut: what is left to do is power's.
                    give_up(run, index);
                    continue;
                }
                let Some(method) = plan.method(index) else { return Flow::Stay };
                if is_cordon(&method.kind) {
                    is_cordoned = true;
                    run.record.marks.cordon = true;
                    run.effect(Effect::Cordon);
                } else if let Some(flow) = cut_off(run, index, method) {
                    return flow;
                }
            }
        }
    }
    run.record.retries = 0;
    if let Goal::Park(reason) = run.record.goal.clone() {
        return park(run, cut::told(run, reason));
    }
    if run.switches_power() { Flow::Go(Phase::AwaitingPower) } else { isolated_for_good(run) }
}

/// The next thing to cut. What was undone behind a release is cut again without leave, and only that; each is cut for itself: one
/// that fails keeps no other one open, nor power on.
fn wanted(run: &Run<'_>, stages: &[Stage], is_cordoned: bool) -> Want {
    let seen = run.seen().and_then(View::machine);
    let want = if guard(Bug::MoreCutAgain, is_cut_again(run, seen)) {
        Want::Nothing
    } else {
        run.next_wanted(stages, |method| progress(run.plan, &run.record, is_cordoned, method))
    };
    match want {
        // The present step of the ladder may have no isolation of its own.
        Want::Nothing | Want::Failed(_)
            if guard(Bug::OtherRungsCutLeft, cut::is_undone(run, seen)) =>
        {
            let mut others = cut::open(run).into_iter();
            let next = others.find(|method| !run.record.failed.contains(method));
            next.map_or(Want::Nothing, Want::Method)
        }
        Want::Nothing | Want::Method(_) | Want::Failed(_) => want,
    }
}

fn is_cordon(kind: &Kind) -> bool {
    *kind == Kind::Builtin(Builtin::MarkUnschedulable)
}

fn progress(
    plan: &crate::Plan,
    record: &Record,
    is_cordoned: bool,
    index: MethodIndex,
) -> Progress {
    let Some(method) = plan.method(index) else { return Progress::Met };
    if record.failed.contains(&index) {
        return Progress::Failed;
    }
    let met = match &method.kind {
        Kind::Builtin(Builtin::MarkUnschedulable) => is_cordoned,
        // The quarantine is put at the beginning. Release never happens here: it comes with proof,
        // wherever it was configured.
        Kind::Builtin(
            Builtin::Quarantine
            | Builtin::MarkSchedulable
            | Builtin::CleanResources
            | Builtin::DeleteNode,
        )
        | Kind::Watch
        | Kind::Power(_)
        | Kind::ResetOnly => true,
        Kind::Fabric(_) | Kind::Storage { .. } => {
            is_cut(record, index) || record.found_off.contains(&index) && record.reads_off(index)
        }
    };
    if met { Progress::Met } else { Progress::Open }
}

/// Read as cut, by a call after the one that cut it.
pub(crate) fn is_cut(record: &Record, index: MethodIndex) -> bool {
    let cut = record.last_effect(index).is_some_and(|effect| effect.action == Action::Off);
    cut && record.state_since_effect(index) == Some(PlugState::Off)
}

/// Does the next thing for one method that cuts; `None` when it has ended one way or the other.
fn cut_off(run: &mut Run<'_>, index: MethodIndex, method: &Method) -> Option<Flow> {
    let asked = run.record.last_in_phase(index, Action::Off);
    let in_this_try = asked.filter(|one| one.attempt == run.record.attempt && !one.is_held_back());
    let Some(asked) = in_this_try else {
        match found_before(run, index, method) {
            Before::Open => {}
            Before::Shut => return None,
            Before::Reading(flow) => return Some(flow),
        }
        note_before(run);
        return Some(run.call(index, Action::Off));
    };
    if asked.may_have_acted() {
        let read = run.record.last_in_phase(index, Action::Status);
        let read = read.filter(|read| read.id > asked.id && read.end != Some(End::Indeterminate));
        if read.is_none() {
            note_before(run);
            return Some(run.call(index, Action::Status));
        }
    }
    // Asked, read, and still not cut: this try has failed.
    let silent = unreachable(asked.end.as_ref());
    if silent && method.must_success && cut::open(run).is_empty() {
        return Some(await_device(run, index, Phase::Isolating));
    }
    if let Some(flow) = retry(run, Phase::Isolating) {
        return Some(flow);
    }
    run.rule(Rule::A9);
    give_up(run, index);
    None
}

/// How a port was before our first off.
enum Before {
    Open,
    Shut,
    Reading(Flow),
}

/// A4: a port that somebody shut before us is theirs, and is not opened for them.
fn found_before(run: &mut Run<'_>, index: MethodIndex, method: &Method) -> Before {
    let is_untouched = run.record.last_effect(index).is_none();
    if !matches!(method.kind, Kind::Fabric(_)) || !guard(Bug::AnothersCutIsOurs, is_untouched) {
        return Before::Open;
    }
    let read = run.record.last_in_phase(index, Action::Status);
    let Some(read) = read.filter(|read| !read.is_held_back()) else {
        return Before::Reading(run.call(index, Action::Status));
    };
    let (state, end) = (read.state(), read.end.clone());
    if let Some(End::Succeeded { identity, .. }) = &end
        && matches!(method.binding, Binding::Reported { .. })
        && let Some(flow) = stop_if_other_machine(run, index, identity)
    {
        return Before::Reading(flow);
    }
    if state != Some(PlugState::Off) {
        return Before::Open;
    }
    run.rule(Rule::A4);
    if !run.record.found_off.contains(&index) {
        run.record.found_off.push(index);
    }
    Before::Shut
}

/// A9: a plan with nothing but isolation ends its run isolated.
fn isolated_for_good(run: &mut Run<'_>) -> Flow {
    run.rule(Rule::A9);
    let Some(view) = run.look() else { return Flow::Stay };
    let Some(node) = run.node(view) else { return node_gone(run) };
    if let Some(proof) = storage_fenced(run, node)
        && let Some(flow) = prove(run, proof)
    {
        return flow;
    }
    let is_cut_off = run.remedy().is_some_and(|remedy| run.plan.cuts_api_path(remedy));
    if is_cut_off && !run.has_next() && run.policy.isolated_for_good == IsolatedForGood::Park {
        return park(run, ParkReason::Isolated);
    }
    Flow::Go(Phase::AwaitingWell)
}

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
fn is_proof(run: &mut Run<'_>, proof: &Proof) -> Result<bool, Flow> {
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
        proof.grade == Grade::StorageFenced && proof.signs.boot_id == node.signs.boot_id
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
    let signs = node.signs.clone();
    let by = Evidence::Reads(reads);
    Some(Proof { grade: Grade::StorageFenced, at: run.now, by, signs, voided_at: None })
}
