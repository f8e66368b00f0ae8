//! The isolation step: quarantine, then the stages that cut network or storage.

use super::leave::{is_cut_again, leave_to_isolate};
use crate::bug::{Bug, guard};
use crate::cut::note_before;
use crate::phases::identity_check::stop_if_other_machine;
use crate::phases::proving::{prove, storage_fenced};
use crate::plan::{Progress, Want};
use crate::retry::{
    await_device, fail, give_up, method_failed, node_gone, park, retry, unreachable,
};
use crate::run::{Flow, Run};
use crate::standing::is_cut;
use crate::{
    Action, Binding, Builtin, Effect, End, Goal, IsolatedForGood, Kind, Method, MethodIndex,
    Notice, ParkReason, Phase, PlugState, Record, Rule, Stage, View, cut,
};

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
            if guard(Bug::OtherStepsCutLeft, cut::is_undone(run, seen)) =>
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
    Flow::Go(Phase::AwaitingHealthy)
}
