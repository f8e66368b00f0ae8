//! What a machine's controller and its outlets say of each other.
//!
//! A controller (a BMC, a cloud) names its machine; an outlet knows only whether power flows. A controller that
//! reads on speaks against all others that read off. One that fell silent with its outlets lost its
//! own power with them, and is not waited for.

use alloc::vec::Vec;

use crate::bug::{Bug, guard};
use crate::retry::{fail, unreachable};
use crate::run::{Flow, Run};
use crate::{
    Action, Binding, End, FailureKind, LOOK_EVERY, MethodIndex, Operation, ParkReason, Plan,
    PlugState, Record, Rule, Span, Time,
};

/// What the controllers say that did not read off.
pub(crate) enum Dissent {
    /// Nothing.
    None,
    /// One is asked first.
    Asking(Flow),
    /// This one reads on.
    By(MethodIndex),
}

/// Asks the controllers that answered when they were called last and are not among those that read `off`.
pub(crate) fn dissent(run: &mut Run<'_>, off: &[MethodIndex], since: Time) -> Dissent {
    let plan = run.plan;
    let others: Vec<MethodIndex> = controllers(plan).filter(|one| !off.contains(one)).collect();
    for controller in others {
        let last = run.record.last_call(controller).and_then(|last| last.end.as_ref());
        if last.is_none() || unreachable(last) {
            continue;
        }
        let first = run.record.after_power_effects(plan).max(run.record.phase_first);
        let read = run.record.last_in_phase(controller, Action::Status);
        let Some(read) = read.filter(|read| read.id >= first && read.intended_at >= since) else {
            return Dissent::Asking(run.call(controller, Action::Status));
        };
        let is_on = matches!(read.state(), Some(PlugState::On | PlugState::Transitioning));
        if guard(Bug::ControllerUnheard, is_on) {
            return Dissent::By(controller);
        }
    }
    Dissent::None
}

/// A controller reads on: it is read again for a while, as it may be slow to tell; then the step has failed.
pub(crate) fn contradicted(
    run: &mut Run<'_>,
    off: &[MethodIndex],
    controller: MethodIndex,
) -> Flow {
    let last = run.record.last_power_effect(run.plan).and_then(|effect| effect.ended_at);
    let late = run.plan.method(controller).map_or(Span::ZERO, |method| method.late_effect);
    let patience = run.policy.off_timeout.max(late);
    let until = last.unwrap_or_default().max(run.record.entered_at).after(patience);
    if run.now < until {
        let read = run.record.last_in_phase(controller, Action::Status);
        let read_at = read.and_then(|read| read.ended_at).unwrap_or(run.now);
        if run.now >= read_at.after(LOOK_EVERY) {
            return run.call(controller, Action::Status);
        }
        run.look_at(read_at.after(LOOK_EVERY));
        return Flow::Stay;
    }
    run.rule(Rule::P1);
    run.record.baseline = None;
    let name = |index: Option<MethodIndex>| {
        index.and_then(|index| run.plan.method(index)).map(|one| one.name.clone())
    };
    let method = name(off.first().copied()).unwrap_or_default();
    let witness = name(Some(controller)).unwrap_or_default();
    fail(run, ParkReason::WitnessReadsOn { method, witness })
}

/// Whether this controller fell silent after all outlets of its machine were told to go off, or were found off.
pub(crate) fn fell_silent(plan: &Plan, record: &Record, controller: MethodIndex) -> bool {
    let is_off = |plug| is_outlet(plan, plug) && record.is_to_verify(plan, plug);
    let outlets = plan.power_methods().filter(|plug| is_outlet(plan, *plug));
    let last_off = outlets.filter_map(|plug| record.last_effect(plug)).map(|one| one.id).max();
    let is_silent = |last: &Operation| {
        let is_later = last_off.is_none_or(|off| last.id > off);
        let silence = [FailureKind::Unreachable, FailureKind::Timeout];
        match &last.end {
            Some(End::Failed(failure) | End::NotAttempted(failure)) => {
                is_later && silence.contains(&failure.kind)
            }
            Some(End::Succeeded { .. } | End::Indeterminate) | None => false,
        }
    };
    let silent = controllers(plan).any(|one| one == controller)
        && record.last_call(controller).is_some_and(is_silent);
    guard(Bug::DarkControllerAwaited, silent && plan.machine_is_off(is_off))
}

/// Whether the outlets among these leave the machine without power.
pub(crate) fn outlets_suffice(plan: &Plan, off: &[MethodIndex]) -> bool {
    plan.machine_is_off(|plug| is_outlet(plan, plug) && off.contains(&plug))
}

/// What names the machine whose power it switches.
fn controllers(plan: &Plan) -> impl Iterator<Item = MethodIndex> + '_ {
    let knows = |one: &crate::Method| matches!(one.binding, Binding::Reported { .. });
    let methods = plan.methods.iter().enumerate();
    methods.filter(move |(_, one)| one.switches_power() && knows(one)).map(|(index, _)| index)
}

/// What switches power and names no machine.
fn is_outlet(plan: &Plan, plug: MethodIndex) -> bool {
    plan.method(plug).is_some_and(|one| one.switches_power() && one.binding == Binding::Labelled)
}
