//! A remedy that is a plugin: it is asked, its answer is recorded, and only then followed, as the remedy
//! that it names would be. When that has ended and the node is still ill, it is asked again.
//!
//! Nothing is ever done in this file. What a decision leads to begins at [`Phase::Waiting`], with everything
//! that is read again there, and goes through the same phases as any other remedy.

use alloc::format;
use alloc::string::String;

use super::leave::heed_trigger;
use crate::decided::{DECIDING_MAX, DECISIONS_KEPT, DECISIONS_MAX, WHY_MAX};
use crate::draft::{Draft, Flow};
use crate::retry::{ask_again, give_way, name};
use crate::{
    Choice, Decided, Effect, Hold, NodeView, Notice, ParkReason, Phase, RESEND_EVERY, Remedy, Rule,
    View,
};

/// Asks, or does what an answer says that is nothing to be done.
pub(crate) fn deciding(draft: &mut Draft<'_>, view: &View, node: &NodeView) -> Flow {
    let Some(open) = draft.record.deciding().cloned() else { return ask(draft) };
    match &open.choice {
        None => {
            if let Err(flow) = heed_trigger(draft, view, node) {
                return flow;
            }
            draft.effect(Effect::AskRemedy(open.number));
            draft.look_in(RESEND_EVERY)
        }
        Some(Choice::Wait(span)) => {
            // Nothing is cut meanwhile, so that nothing but the trigger has a say.
            if let Err(flow) = heed_trigger(draft, view, node) {
                return flow;
            }
            draft.record.gate_closed_at = None;
            let began_at = open.chosen_at.unwrap_or(open.asked_at);
            let until = began_at.after(*span);
            if draft.now < until {
                draft.look_at(until);
                return Flow::Stay;
            }
            ask_again(draft).unwrap_or(Flow::Stay)
        }
        Some(Choice::Done) => Flow::Go(Phase::AwaitingHealthy),
        Some(Choice::Fail(why)) => {
            let reason = ParkReason::PluginFailed { remedy: name(draft), why: why.clone() };
            give_way(draft, reason)
        }
        Some(Choice::Method(_) | Choice::Cluster(_) | Choice::Fence) => {
            // It came with a refusal where it means nothing.
            crate::retry::park(draft, ParkReason::BrokenRecord)
        }
    }
}

/// A decision that was just recorded begins as a remedy of the ladder does: everything that allows it is
/// read again, and its phases count their time from their own beginning.
pub(crate) fn begin(draft: &mut Draft<'_>) -> Option<Flow> {
    let is_plugin = draft.plan.remedy(draft.record.remedy_step) == Some(Remedy::Plugin);
    let remedy = draft.remedy().filter(|_| is_plugin)?;
    let now = draft.now;
    let open = draft.record.deciding_mut()?;
    let is_begun = open.followed_at.is_some();
    match remedy {
        Remedy::Plugin => None,
        Remedy::Cluster(_) if is_begun => None,
        Remedy::Cluster(_)
        | Remedy::Fence
        | Remedy::Isolation
        | Remedy::Method(_)
        | Remedy::Job { .. } => {
            open.followed_at = open.followed_at.or(Some(now));
            Some(Flow::Go(Phase::Waiting))
        }
    }
}

/// The intent first, as of anything else; asking twice does no harm, but only one answer is taken.
fn ask(draft: &mut Draft<'_>) -> Flow {
    draft.rule(Rule::A11);
    let decided = draft.record.decided();
    let since = decided.first().map_or(draft.now, |one| one.asked_at);
    let most = DECISIONS_MAX;
    let too_much = if decided.len() >= most {
        Some(format!("its plugin decided {most} times and the node is still ill"))
    } else if draft.now >= since.after(DECIDING_MAX) {
        let hours = DECIDING_MAX.0 / 3_600_000;
        Some(format!("its plugin has had {hours} hours and the node is still ill"))
    } else {
        None
    };
    let now = draft.now;
    let record = &mut draft.record;
    let number = record.decisions.last().map_or(0, |one| one.number).saturating_add(1);
    record.decisions.push(Decided {
        number,
        remedy_step: record.remedy_step,
        asked_at: now,
        chosen_at: too_much.as_ref().map(|_| now),
        choice: too_much.map(Choice::Fail),
        followed_at: None,
        failed: None,
        ended_at: None,
    });
    let surplus = record.decisions.len().saturating_sub(DECISIONS_KEPT);
    record.decisions.drain(..surplus);
    if record.deciding().is_some_and(|open| open.choice.is_some()) {
        return Flow::Go(Phase::Remedying);
    }
    draft.effect(Effect::AskRemedy(number));
    draft.look_in(RESEND_EVERY)
}

/// What an answer came to.
pub(crate) enum Answered {
    /// It is in the record.
    Recorded,
    /// The plugin could not be asked; it will be, later.
    NotYet,
    /// Nobody waits for it.
    Unwanted,
}

/// Takes an answer into the record; what cannot be followed becomes a failure, with the reason.
pub(crate) fn answered(
    draft: &mut Draft<'_>,
    number: u32,
    answer: Result<Choice, String>,
) -> Answered {
    let now = draft.now;
    let (plan, policy, patience) = (draft.plan, draft.policy, draft.policy.cleanup_timeout);
    let repeats = answer.as_ref().is_ok_and(|choice| repeats(draft, choice));
    let waits = |one: &Decided| one.number == number && one.choice.is_none();
    let Some(asked_at) = draft.record.deciding().filter(|one| waits(one)).map(|one| one.asked_at)
    else {
        return Answered::Unwanted;
    };
    let choice = match answer {
        Err(why) if now < asked_at.after(patience) => {
            // Its component may still be on its way.
            draft.look_in(RESEND_EVERY);
            draft.hold(Hold::NotDecided { why });
            return Answered::NotYet;
        }
        Err(why) => Choice::Fail(why),
        Ok(choice) => match plan.refuse_choice(&choice, policy) {
            Some(why) => Choice::Fail(format!("its plugin chose {choice}: {why}")),
            None if repeats && draft.record.restarts >= policy.restarts => Choice::Fail(format!(
                "its plugin chose {choice} again, and no restart is left for it"
            )),
            None => {
                // A7: the same once more is what a restart is.
                draft.record.restarts = draft.record.restarts.saturating_add(u32::from(repeats));
                choice
            }
        },
    };
    let choice = match choice {
        Choice::Fail(why) => Choice::Fail(why.chars().take(WHY_MAX).collect()),
        choice @ (Choice::Method(_)
        | Choice::Cluster(_)
        | Choice::Fence
        | Choice::Wait(_)
        | Choice::Done) => choice,
    };
    let remedy = name(draft);
    draft.notice(Notice::Decided { remedy, choice: choice.clone() });
    if let Some(open) = draft.record.deciding_mut() {
        open.chosen_at = Some(now);
        open.choice = Some(choice);
    }
    Answered::Recorded
}

/// Whether the very same was done in this remedy step before, and is more than a mark or an eviction.
fn repeats(draft: &Draft<'_>, choice: &Choice) -> bool {
    let is_of_plan = |choice: &Choice| draft.plan.meant(choice).filter(|one| one.is_of_plan());
    let Some(meant) = is_of_plan(choice) else { return false };
    let mut before = draft.record.decided().iter().filter_map(|one| one.choice.as_ref());
    before.any(|before| is_of_plan(before) == Some(meant))
}

/// A person has a remedy step tried anew whose plugin had said its last word.
pub(crate) fn begin_anew(draft: &mut Draft<'_>) {
    let now = draft.now;
    let is_last = |one: &Decided| one.choice.as_ref().is_some_and(Choice::is_last);
    if let Some(open) = draft.record.deciding_mut().filter(|open| is_last(open)) {
        open.ended_at = Some(now);
    }
}

impl Draft<'_> {
    /// Whether the remedy step's plugin has not said its last word.
    pub(crate) fn may_ask_again(&self) -> bool {
        let is_plugin = self.plan.remedy(self.record.remedy_step) == Some(Remedy::Plugin);
        let choice = self.record.deciding().and_then(|open| open.choice.as_ref());
        is_plugin && !choice.is_some_and(Choice::is_last)
    }

    /// Whether something else is tried when the present remedy fails, before a person is asked.
    pub(crate) fn has_next(&self) -> bool {
        let next = self.record.remedy_step.saturating_add(1);
        self.may_ask_again() || self.plan.remedy(next).is_some()
    }

    /// Whether all that the remedy step's plugin does now is to wait.
    pub(crate) fn waits_as_decided(&self) -> bool {
        let is_plugin = self.plan.remedy(self.record.remedy_step) == Some(Remedy::Plugin);
        let choice = self.record.deciding().and_then(|open| open.choice.as_ref());
        is_plugin && matches!(choice, Some(Choice::Wait(_)))
    }
}
