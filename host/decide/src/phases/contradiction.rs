//! Where a machine's BMC or cloud contradicts its outlets.
//!
//! A BMC or a cloud names its machine; an outlet knows only whether power flows. If the BMC or cloud reads on, no method
//! that reads off is believed. If it answers without a state, it is read again. If it is silent after its outlets went off,
//! it counts as without power.

use alloc::vec::Vec;

use crate::bug::{Bug, guard, is_seeded};
use crate::draft::{Draft, Flow};
use crate::retry::{fail, not_verified};
use crate::{
    Action, Binding, End, FailureKind, LOOK_EVERY, Method, MethodIndex, Operation, ParkReason,
    Plan, PlugState, Record, Rule, Span, Time,
};

/// How old a read of a BMC or a cloud may be.
const ASKED_WITHIN: Span = Span::minutes(1);

/// What a BMC or a cloud says against the methods that read off.
pub(crate) enum Contradiction {
    /// Nothing.
    Nothing,
    /// It is read first.
    Asking(Flow),
    /// This method does not read off: it reads on, or is switching.
    NotOff(MethodIndex),
    /// This method answered without a state.
    NoState(MethodIndex),
}

/// Reads every BMC and cloud that is not among `off`, the methods that read off. One that was called before the offs and never
/// reported a state is left out. If another BMC or cloud is among `off`, only a method that does not read off contradicts it.
pub(crate) fn contradiction(
    draft: &mut Draft<'_>,
    off: &[MethodIndex],
    since: Time,
) -> Contradiction {
    let (agreeing, others): (Vec<MethodIndex>, Vec<MethodIndex>) =
        naming_methods(draft.plan).partition(|one| off.contains(one));
    let first_off = off.iter().filter_map(|plug| draft.record.last_effect(*plug)).map(|off| off.id);
    let first_off = first_off.min();
    for method in others {
        let first_call = draft.record.operations.iter().find(|call| call.method == method);
        let is_late = first_call.is_none_or(|call| first_off.is_some_and(|off| call.id > off));
        let is_asked = has_told(&draft.record, method) || is_late && agreeing.is_empty();
        if !is_asked {
            continue;
        }
        let is_mute = draft.record.last_call(method).is_some_and(got_no_answer);
        if !agreeing.is_empty() && is_mute {
            continue;
        }
        match heard(draft, method, since) {
            Contradiction::Nothing => {}
            Contradiction::NoState(_) if !agreeing.is_empty() => {}
            found @ (Contradiction::Asking(_)
            | Contradiction::NotOff(_)
            | Contradiction::NoState(_)) => return found,
        }
    }
    Contradiction::Nothing
}

/// What one method says, by its last read.
fn heard(draft: &mut Draft<'_>, method: MethodIndex, since: Time) -> Contradiction {
    let (now, epoch) = (draft.now, draft.record.epoch);
    let first = draft.record.after_power_effects(draft.plan);
    let is_fresh = |read: &&Operation| {
        let is_young = read.ended_at.is_some_and(|at| at.is_within(ASKED_WITHIN, now));
        read.id >= first && read.epoch == epoch && read.intended_at >= since && is_young
    };
    let Some(read) = draft.record.last_ended(method, Action::Status).filter(is_fresh) else {
        if now < since {
            // Our clock was set back since: a read would count as older, and be made again and again.
            draft.look_at(since);
            return Contradiction::Asking(Flow::Stay);
        }
        return Contradiction::Asking(draft.call(method, Action::Status));
    };
    if is_seeded(Bug::BmcUnheard) {
        return Contradiction::Nothing;
    }
    match read.state() {
        Some(PlugState::On | PlugState::Transitioning) => Contradiction::NotOff(method),
        Some(PlugState::Off | PlugState::Terminated | PlugState::Unknown) => Contradiction::Nothing,
        None if has_no_power(draft, method) || is_seeded(Bug::RefusalIsNoWord) => {
            Contradiction::Nothing
        }
        None => Contradiction::NoState(method),
    }
}

/// A method reads on, or tells nothing: it is read again for a while, as it may be slow to tell, or only just fall silent;
/// then the step has failed.
pub(crate) fn contradicted(draft: &mut Draft<'_>, off: &[MethodIndex], by: MethodIndex) -> Flow {
    let last = draft.record.last_power_effect(draft.plan).and_then(|effect| effect.ended_at);
    let late = draft.plan.method(by).map_or(Span::ZERO, |method| method.late_effect);
    // Twice: after one `offTimeout` silence already counts as no power.
    let patience = draft.policy.off_timeout.max(late).times(2);
    let until = last.unwrap_or_default().max(draft.record.entered_at).after(patience);
    if draft.now < until {
        return ask_again(draft, by);
    }
    draft.rule(Rule::P1);
    draft.record.baseline = None;
    let name = |index| draft.plan.method(index).map(|one| one.name.clone()).unwrap_or_default();
    let read = draft.record.last_read(by).and_then(Operation::state);
    let reason = match read {
        Some(PlugState::On) => {
            let method = off.first().copied().map(name).unwrap_or_default();
            ParkReason::WitnessReadsOn { method, witness: name(by) }
        }
        Some(
            PlugState::Off | PlugState::Transitioning | PlugState::Terminated | PlugState::Unknown,
        )
        | None => not_verified(draft),
    };
    fail(draft, reason)
}

/// Reads it again, a moment after its last answer.
pub(crate) fn ask_again(draft: &mut Draft<'_>, method: MethodIndex) -> Flow {
    let read = draft.record.last_ended(method, Action::Status);
    let next = read.and_then(|read| read.ended_at).unwrap_or_default().after(LOOK_EVERY);
    if draft.now >= next {
        return draft.call(method, Action::Status);
    }
    draft.look_at(next);
    Flow::Stay
}

/// Whether this BMC or cloud has reported a state in this incident, but did not answer its last call, made after our
/// offs left the machine's outlets without power. It may have no power itself, so nobody waits for it. It is read again
/// before anything is proven. If an outlet was given up on after its off, it may be on: then the last two calls must be
/// unanswered.
pub(crate) fn fell_silent(plan: &Plan, record: &Record, method: MethodIndex) -> bool {
    let names = naming_methods(plan).any(|one| one == method) && has_told(record, method);
    let went_dark = |outlets: Outlets, calls: usize| {
        let Some(off) = last_outlet_off(plan, record, outlets) else { return false };
        let last = record.calls_ended(method).take(calls);
        last.filter(|call| got_no_answer(call) && call.id > off.id).count() == calls
    };
    let is_dark = went_dark(Outlets::Off, 1) || went_dark(Outlets::OffOrGivenUp, 2);
    guard(Bug::DarkBmcAwaited, names && is_dark)
}

/// Which outlets count as off.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outlets {
    Off,
    OffOrGivenUp,
}

/// Whether its last two calls went unanswered after our last off of an outlet, the newest at least `offTimeout` after it.
fn has_no_power(draft: &Draft<'_>, method: MethodIndex) -> bool {
    let Some(off) = last_outlet_off(draft.plan, &draft.record, Outlets::Off) else { return false };
    let mut calls = draft.record.calls_ended(method);
    let is_unanswered = |call: &&Operation| got_no_answer(call) && call.id > off.id;
    let newest = calls.next().filter(is_unanswered);
    let off_at = off.ended_at.unwrap_or(off.intended_at);
    let is_long = |call: &Operation| call.intended_at >= off_at.after(draft.policy.off_timeout);
    let is_silent =
        newest.is_some_and(is_long) && calls.next().is_some_and(|call| is_unanswered(&call));
    is_silent || newest.is_some() && is_seeded(Bug::OneSilenceIsDark)
}

/// Our last off of an outlet, if the outlets leave the machine without power.
fn last_outlet_off<'r>(plan: &Plan, record: &'r Record, outlets: Outlets) -> Option<&'r Operation> {
    let is_outlet = |plug: &MethodIndex| plan.method(*plug).is_some_and(is_outlet);
    let is_given_up =
        |plug| outlets == Outlets::OffOrGivenUp && record.was_given_up_off(plan, plug);
    let is_off = |plug| is_outlet(&plug) && (record.is_to_verify(plan, plug) || is_given_up(plug));
    let offs = plan.power_methods().filter(is_outlet).filter_map(|plug| record.last_effect(plug));
    let last = offs.filter(|effect| effect.action == Action::Off).max_by_key(|effect| effect.id);
    last.filter(|_| plan.machine_is_off(is_off))
}

/// Whether it has reported a state in this incident, `Unknown` among them.
fn has_told(record: &Record, method: MethodIndex) -> bool {
    let mut calls = record.operations.iter().filter(|one| one.method == method);
    calls.any(|one| one.state().is_some() || one.state_before != PlugState::Unknown)
}

/// Whether a call was not answered at all.
fn got_no_answer(call: &Operation) -> bool {
    let silence = [FailureKind::Unreachable, FailureKind::Timeout];
    match &call.end {
        Some(End::Failed(failure) | End::NotAttempted(failure)) => silence.contains(&failure.kind),
        Some(End::Succeeded { .. } | End::Indeterminate) | None => false,
    }
}

/// What switches the machine's power and names it.
fn naming_methods(plan: &Plan) -> impl Iterator<Item = MethodIndex> + '_ {
    let names =
        |one: &Method| one.switches_power() && matches!(one.binding, Binding::Reported { .. });
    let methods = plan.methods.iter().enumerate();
    methods.filter(move |(_, one)| names(one)).map(|(index, _)| index)
}

/// What switches power and names no machine.
pub(super) fn is_outlet(method: &Method) -> bool {
    method.switches_power() && method.binding == Binding::Labelled
}
