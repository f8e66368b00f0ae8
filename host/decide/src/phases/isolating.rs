//! The isolation step: quarantine, then the stages that cut network or storage.

use super::leave::{is_cut_again, leave_to_isolate};
use crate::bug::{Bug, guard};
use crate::cut::note_before;
use crate::draft::{Draft, Flow};
use crate::phases::identity_check::stop_if_other_machine;
use crate::phases::proving::{prove, storage_fenced};
use crate::plan::{Progress, Want};
use crate::retry::{
    await_device, fail, give_up, method_failed, node_gone, park, retry, unreachable,
};
use crate::standing::is_cut;
use crate::{
    Action, Binding, Builtin, Effect, End, Goal, IsolatedForGood, Kind, Method, MethodIndex,
    Notice, ParkReason, Phase, PlugState, Record, Rule, Stage, View, cut,
};

/// Quarantines, then runs the isolation stages.
pub(crate) fn isolating(draft: &mut Draft<'_>) -> Flow {
    if !draft.record.marks.quarantine {
        if let Err(flow) = leave_to_isolate(draft) {
            return flow;
        }
        draft.notice(Notice::Isolating);
        draft.record.marks.quarantine = true;
        draft.effect(Effect::Quarantine);
    }
    let (plan, stages) = (draft.plan, draft.isolation());
    // Somebody else's cordon is left alone, now and later; what is done needs no leave once more.
    let node = draft.seen().and_then(|view| draft.node(view));
    let is_others = node.is_some_and(|node| node.cordoned && !node.cordoned_by_us);
    let mut is_cordoned = is_others || draft.record.marks.cordon;
    loop {
        match wanted(draft, &stages, is_cordoned) {
            Want::Nothing => break,
            Want::Failed(method) => {
                let reason = method_failed(draft, method);
                return fail(draft, reason);
            }
            Want::Method(index) => {
                if let Err(flow) = leave_to_isolate(draft) {
                    return flow;
                }
                if cut::hits_another(draft) {
                    // Another node has by now what was cut: what is left to do is power's.
                    give_up(draft, index);
                    continue;
                }
                let Some(method) = plan.method(index) else { return Flow::Stay };
                if is_cordon(&method.kind) {
                    is_cordoned = true;
                    draft.record.marks.cordon = true;
                    draft.effect(Effect::Cordon);
                } else if let Some(flow) = cut_off(draft, index, method) {
                    return flow;
                }
            }
        }
    }
    draft.record.retries = 0;
    if let Goal::Park(reason) = draft.record.goal.clone() {
        return park(draft, cut::told(draft, reason));
    }
    if draft.switches_power() { Flow::Go(Phase::AwaitingPower) } else { isolated_for_good(draft) }
}

/// The next thing to cut. What was undone behind a release is cut again without leave, and only that; each is cut for itself: one
/// that fails keeps no other one open, nor power on.
fn wanted(draft: &Draft<'_>, stages: &[Stage], is_cordoned: bool) -> Want {
    let seen = draft.seen().and_then(View::machine);
    let want = if guard(Bug::MoreCutAgain, is_cut_again(draft, seen)) {
        Want::Nothing
    } else {
        draft.next_wanted(stages, |method| progress(draft.plan, &draft.record, is_cordoned, method))
    };
    match want {
        // The present step of the ladder may have no isolation of its own.
        Want::Nothing | Want::Failed(_)
            if guard(Bug::OtherStepsCutLeft, cut::is_undone(draft, seen)) =>
        {
            let mut others = cut::open(draft).into_iter();
            let next = others.find(|method| !draft.record.failed.contains(method));
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

/// Does the next thing for one method that cuts; `None` when it has ended one way or the other.
fn cut_off(draft: &mut Draft<'_>, index: MethodIndex, method: &Method) -> Option<Flow> {
    let asked = draft.record.last_in_phase(index, Action::Off);
    let in_this_try =
        asked.filter(|one| one.attempt == draft.record.attempt && !one.is_held_back());
    let Some(asked) = in_this_try else {
        match found_before(draft, index, method) {
            Before::Open => {}
            Before::Shut => return None,
            Before::Reading(flow) => return Some(flow),
        }
        note_before(draft);
        return Some(draft.call(index, Action::Off));
    };
    if asked.may_have_acted() {
        let read = draft.record.last_in_phase(index, Action::Status);
        let read = read.filter(|read| read.id > asked.id && read.end != Some(End::Indeterminate));
        if read.is_none() {
            note_before(draft);
            return Some(draft.call(index, Action::Status));
        }
    }
    // Asked, read, and still not cut: this try has failed.
    let silent = unreachable(asked.end.as_ref());
    if silent && method.must_success && cut::open(draft).is_empty() {
        return Some(await_device(draft, index, Phase::Isolating));
    }
    if let Some(flow) = retry(draft, Phase::Isolating) {
        return Some(flow);
    }
    draft.rule(Rule::A9);
    give_up(draft, index);
    None
}

/// How a port was before our first off.
enum Before {
    Open,
    Shut,
    Reading(Flow),
}

/// A4: a port that somebody shut before us is theirs, and is not opened for them.
fn found_before(draft: &mut Draft<'_>, index: MethodIndex, method: &Method) -> Before {
    let is_untouched = draft.record.last_effect(index).is_none();
    if !matches!(method.kind, Kind::Fabric(_)) || !guard(Bug::AnothersCutIsOurs, is_untouched) {
        return Before::Open;
    }
    let read = draft.record.last_in_phase(index, Action::Status);
    let Some(read) = read.filter(|read| !read.is_held_back()) else {
        return Before::Reading(draft.call(index, Action::Status));
    };
    let (state, end) = (read.state(), read.end.clone());
    if let Some(End::Succeeded { identity, .. }) = &end
        && matches!(method.binding, Binding::Reported { .. })
        && let Some(flow) = stop_if_other_machine(draft, index, identity)
    {
        return Before::Reading(flow);
    }
    if state != Some(PlugState::Off) {
        return Before::Open;
    }
    draft.rule(Rule::A4);
    if !draft.record.found_off.contains(&index) {
        draft.record.found_off.push(index);
    }
    Before::Shut
}

/// A9: a plan with nothing but isolation ends its incident isolated.
fn isolated_for_good(draft: &mut Draft<'_>) -> Flow {
    draft.rule(Rule::A9);
    let Some(view) = draft.look() else { return Flow::Stay };
    let Some(node) = draft.node(view) else { return node_gone(draft) };
    if let Some(proof) = storage_fenced(draft, node)
        && let Some(flow) = prove(draft, proof)
    {
        return flow;
    }
    let is_cut_off = draft.remedy().is_some_and(|remedy| draft.plan.cuts_api_path(remedy));
    if is_cut_off && !draft.has_next() && draft.policy.isolated_for_good == IsolatedForGood::Park {
        return park(draft, ParkReason::Isolated);
    }
    Flow::Go(Phase::AwaitingHealthy)
}
