//! Power-management, first half: which machine is it, is it on, switch it off.

use super::contradiction::fell_silent;
use super::leave::leave_to_cut;
use super::waiting::{hold_for_dump, lacks_approval};
use crate::bug::{Bug, guard};
use crate::draft::{Draft, Flow};
use crate::phases::identity_check::stop_if_other_machine;
use crate::plan::{Progress, Want};
use crate::retry::{await_device, fail, give_up, method_failed, not_verified, retry, unreachable};
use crate::{
    Action, End, Execution, FinalReason, FoundOff, Goal, Kind, LOOK_EVERY, MethodIndex, Notice,
    OpId, Operation, Phase, Plan, PlugState, Record, Rule, Span, Stage,
};

/// Reads what the devices call the machine, and whether it is on. Nothing is cut before.
pub(crate) fn reading_identity(draft: &mut Draft<'_>) -> Flow {
    let (plan, stages) = (draft.plan, draft.power());
    loop {
        let known = |method| {
            progress(plan, &draft.record, method, |record, one| {
                record.is_identified(one) || fell_silent(plan, record, one)
            })
        };
        match draft.next_wanted(&stages, known) {
            Want::Nothing => return Flow::Go(Phase::PoweringOff),
            Want::Failed(method) => {
                let reason = method_failed(draft, method);
                return fail(draft, reason);
            }
            Want::Method(method) => {
                if let Some(flow) = identify(draft, method) {
                    return flow;
                }
            }
        }
    }
}

/// Switches off what is not off yet, one plug after the other.
pub(crate) fn powering_off(draft: &mut Draft<'_>) -> Flow {
    let (plan, stages) = (draft.plan, draft.power());
    loop {
        let asked = |method| {
            progress(plan, &draft.record, method, |record, one| {
                record.is_asked_off(plan, one) || fell_silent(plan, record, one)
            })
        };
        match draft.next_wanted(&stages, asked) {
            Want::Nothing => return Flow::Go(Phase::VerifyingOff),
            Want::Failed(_) => {
                let reason = not_verified(draft);
                return fail(draft, reason);
            }
            Want::Method(method) => {
                if let Some(flow) = switch_off(draft, method) {
                    return flow;
                }
            }
        }
    }
}

/// How far a power method has come, where `met` says that it has come far enough.
pub(crate) fn progress(
    plan: &Plan,
    record: &Record,
    index: MethodIndex,
    met: impl Fn(&Record, MethodIndex) -> bool,
) -> Progress {
    let power = plan.method(index).is_some_and(crate::Method::switches_power);
    if record.failed.contains(&index) {
        Progress::Failed
    } else if !power || met(record, index) {
        Progress::Met
    } else {
        Progress::Open
    }
}

impl Record {
    fn is_identified(&self, method: MethodIndex) -> bool {
        self.identified.contains(&method)
    }

    /// P8: after a pause machines have to say again which one they are, before they are switched off.
    pub(crate) fn forget_identities(&mut self) {
        if guard(Bug::IdentityOfBeforeThePause, true) {
            self.identified.clear();
        }
    }

    /// Whether the last that it would have been asked to do was held back, so that people know of it.
    fn is_held_back(&self, method: MethodIndex) -> bool {
        let mut last = self.operations.iter().rev();
        let effect = last.find(|one| one.method == method && one.is_effect());
        effect.is_some_and(Operation::is_held_back)
    }

    /// Asked in this try, or asked and not read since, or found off: nothing is asked of it now.
    fn is_asked_off(&self, plan: &Plan, method: MethodIndex) -> bool {
        let asked = |effect: &Operation| {
            let stands =
                effect.attempt == self.attempt || self.state_since_effect(method).is_none();
            stands && matches!(effect.action, Action::Off | Action::Reset)
        };
        let is_asked = self.last_effect(method).is_some_and(asked);
        is_asked && !self.is_switched_on(plan, method) || self.is_found_off(plan, method)
    }

    /// Reads off, and we did not switch it on.
    fn is_found_off(&self, plan: &Plan, method: MethodIndex) -> bool {
        self.reads_off(method) && !self.is_switched_on(plan, method)
    }

    /// Whether the last that we did was to switch it on, by this method or by another one of the same power: of what
    /// we did a device may tell what was before.
    fn is_switched_on(&self, plan: &Plan, method: MethodIndex) -> bool {
        let counts =
            |one: &MethodIndex| *one == method || guard(Bug::OnOfOtherMethodForgotten, true);
        let of_it = plan.of_one_power(method).filter(counts);
        let last = of_it.filter_map(|one| self.last_effect(one)).max_by_key(|effect| effect.id);
        last.is_some_and(|effect| effect.action == Action::On)
    }

    /// Whether a verifying read is due: it was asked off and not on since, or it was found off.
    pub(crate) fn is_to_verify(&self, plan: &Plan, method: MethodIndex) -> bool {
        let is_off = self.was_left_off(plan, method) || self.is_found_off(plan, method);
        !self.failed.contains(&method) && is_off
    }

    /// Given up on after our off of it, and not switched on since.
    pub(crate) fn was_given_up_off(&self, plan: &Plan, method: MethodIndex) -> bool {
        self.failed.contains(&method) && self.was_left_off(plan, method)
    }

    /// Our last effect on it was an off, and it was not switched on since.
    fn was_left_off(&self, plan: &Plan, method: MethodIndex) -> bool {
        let off = self.last_effect(method).is_some_and(|effect| effect.action == Action::Off);
        off && !self.is_switched_on(plan, method)
    }

    /// Off by the last read, with nothing done to it since.
    pub(crate) fn reads_off(&self, method: MethodIndex) -> bool {
        self.state_since_effect(method).is_some_and(PlugState::is_off)
    }
}

/// Reads one plug and compares its machine with the node; `None` when that is settled.
fn identify(draft: &mut Draft<'_>, index: MethodIndex) -> Option<Flow> {
    if guard(Bug::UnverifiedPlugTrusted, draft.plan.is_unverified(index)) {
        draft.rule(Rule::P8);
        give_up(draft, index);
        return None;
    }
    let read = draft.record.last_in_phase(index, Action::Status);
    match read.and_then(|read| read.end.clone()) {
        None | Some(End::Indeterminate) => Some(draft.call(index, Action::Status)),
        Some(End::Succeeded { state, identity }) => {
            if let Some(flow) = stop_if_other_machine(draft, index, &identity) {
                return Some(flow);
            }
            if let Some(flow) = await_others_switching(draft, index, state) {
                return Some(flow);
            }
            if let Some(flow) = introduce_witness(draft, index) {
                return Some(flow);
            }
            if draft.record.failed.contains(&index) {
                // Its witness cannot be read: nothing of it would ever be proof.
                return None;
            }
            if !draft.record.is_held_back(index) {
                draft.notice(Notice::Identified { method: index });
            }
            draft.record.identified.push(index);
            note_found_state(draft, index, state);
            if state.is_off() && is_reset_only(draft.plan, index) {
                // What is off stays off: a reset switches nothing on.
                give_up(draft, index);
            }
            None
        }
        Some(end @ (End::Failed(_) | End::NotAttempted(_))) => {
            if unreachable(Some(&end)) && !has_another_way(draft, index) {
                return Some(await_device(draft, index, Phase::ReadingIdentity));
            }
            if let Some(flow) = retry(draft, Phase::ReadingIdentity) {
                return Some(flow);
            }
            give_up(draft, index);
            None
        }
    }
}

/// A4: somebody else may be switching the machine off just now; where it is then to stay off, that is waited for.
fn await_others_switching(
    draft: &mut Draft<'_>,
    index: MethodIndex,
    state: PlugState,
) -> Option<Flow> {
    let is_untouched = draft.record.last_effect(index).is_none();
    let stays_off = draft.policy.found_off == FoundOff::LeaveOff;
    if state != PlugState::Transitioning || !guard(Bug::OthersOffIsOurs, is_untouched && stays_off)
    {
        return None;
    }
    let late = draft.plan.method(index).map_or(Span::ZERO, |method| method.late_effect);
    let until = draft.record.entered_at.after(draft.policy.off_timeout.max(late));
    let read_at = draft.record.last_in_phase(index, Action::Status)?.ended_at?;
    if draft.now >= until {
        return None;
    }
    draft.rule(Rule::A4);
    if draft.now >= read_at.after(LOOK_EVERY) {
        return Some(draft.call(index, Action::Status));
    }
    draft.look_at(read_at.after(LOOK_EVERY));
    Some(Flow::Stay)
}

/// A witness that sees another machine, or none, is known before anything is cut; `None` when it is settled.
fn introduce_witness(draft: &mut Draft<'_>, index: MethodIndex) -> Option<Flow> {
    let witness = draft.plan.method(index)?.witness?;
    let read = draft.record.last_in_phase(witness, Action::Status);
    match read.and_then(|read| read.end.clone()) {
        None | Some(End::Indeterminate) => Some(draft.call(witness, Action::Status)),
        Some(End::Succeeded { identity, .. }) => stop_if_other_machine(draft, witness, &identity),
        Some(end @ (End::Failed(_) | End::NotAttempted(_))) => {
            if unreachable(Some(&end)) {
                return Some(await_device(draft, witness, Phase::ReadingIdentity));
            }
            if let Some(flow) = retry(draft, Phase::ReadingIdentity) {
                return Some(flow);
            }
            give_up(draft, index);
            None
        }
    }
}

/// Whether another method of an only-one stage may still do what this one does: a device that does not answer is waited for
/// where nothing else stands in for it.
fn has_another_way(draft: &Draft<'_>, index: MethodIndex) -> bool {
    let is_left = |method: &MethodIndex| !draft.record.failed.contains(method);
    let has_later =
        |stage: &Stage| stage.methods.iter().skip_while(|one| **one != index).skip(1).any(is_left);
    let is_one = |stage: &Stage| stage.execution == Execution::OnlyOne && has_later(stage);
    guard(Bug::OtherWayUntried, draft.power().iter().any(is_one))
}

fn is_reset_only(plan: &Plan, index: MethodIndex) -> bool {
    plan.method(index).is_some_and(|method| method.kind == Kind::ResetOnly)
}

/// A4: whose power-off this is, is decided by what was read before our first one.
fn note_found_state(draft: &mut Draft<'_>, index: MethodIndex, state: PlugState) {
    let untouched = draft.record.last_effect(index).is_none();
    match state {
        PlugState::Off if untouched => {
            draft.rule(Rule::A4);
            if !draft.record.found_off.contains(&index) {
                draft.record.found_off.push(index);
            }
        }
        PlugState::Terminated => {
            draft.rule(Rule::A15);
            draft.record.goal = Goal::Close(FinalReason::Replaced);
        }
        PlugState::Off | PlugState::On | PlugState::Transitioning | PlugState::Unknown => {}
    }
}

/// Sends one off, if everything still allows it; `None` when this plug was given up on.
fn switch_off(draft: &mut Draft<'_>, index: MethodIndex) -> Option<Flow> {
    let action = if is_reset_only(draft.plan, index) { Action::Reset } else { Action::Off };
    let refused = draft.record.last_in_phase(index, action).filter(|one| !one.may_have_acted());
    let is_held_back = refused.is_some_and(Operation::is_held_back);
    let in_this_try = refused.filter(|one| one.attempt == draft.record.attempt && !is_held_back);
    if let Some(end) = in_this_try.map(|one| one.end.clone()) {
        if unreachable(end.as_ref()) && !has_another_way(draft, index) {
            return Some(await_device(draft, index, Phase::ReadingIdentity));
        }
        if let Some(flow) = retry(draft, Phase::PoweringOff) {
            return Some(flow);
        }
        give_up(draft, index);
        return None;
    }
    if is_held_back {
        draft.record.forget_identities();
    }
    if let Some(flow) = waits_for_leave(draft) {
        if draft.seen().is_some() {
            // Nobody knows how long it waits.
            draft.record.forget_identities();
        }
        return Some(flow);
    }
    if !draft.record.is_identified(index) {
        return Some(Flow::Go(Phase::ReadingIdentity));
    }
    if !draft.record.is_held_back(index) {
        draft.notice(Notice::PoweringOff { method: index });
    }
    draft.record.baseline = None;
    if !draft.record.reads_off(index) {
        // Somebody had switched it on: now its off is ours.
        draft.record.found_off.retain(|found| *found != index);
    }
    Some(draft.call(index, action))
}

/// What an off waits for; `None` when it may be sent.
fn waits_for_leave(draft: &mut Draft<'_>) -> Option<Flow> {
    if lacks_approval(draft) && !draft.sent_off() {
        // A yes that was taken back meanwhile is waited for anew.
        return Some(Flow::Go(Phase::AwaitingPower));
    }
    if let Err(flow) = leave_to_cut(draft) {
        return Some(flow);
    }
    // A dump may have begun while the device was awaited.
    let view = draft.seen().filter(|_| !draft.sent_off())?;
    hold_for_dump(draft, view)
}

impl Record {
    /// The last call that may have changed any plug that carries power.
    pub(crate) fn last_power_effect(&self, plan: &Plan) -> Option<&Operation> {
        self.operations.iter().rev().find(|one| {
            one.may_have_acted()
                && plan.method(one.method).is_some_and(crate::Method::switches_power)
        })
    }

    /// How often the plan's power was asked to go off.
    pub(crate) fn offs(&self, plan: &Plan) -> u32 {
        let offs = self.operations.iter().filter(|one| {
            one.action == Action::Off
                && one.may_have_acted()
                && plan.method(one.method).is_some_and(crate::Method::switches_power)
        });
        u32::try_from(offs.count()).unwrap_or(u32::MAX)
    }

    /// The number after that of the last power effect: what a verifying read must at least have.
    pub(crate) fn after_power_effects(&self, plan: &Plan) -> OpId {
        self.last_power_effect(plan).map_or(OpId(0), |one| OpId(one.id.0.saturating_add(1)))
    }
}
