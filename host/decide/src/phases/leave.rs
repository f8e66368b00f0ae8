//! The leave to cut: everything that allowed an off or isolation, read again right before it.

use alloc::string::{String, ToString};

use crate::bug::{Bug, guard, is_seeded};
use crate::cut::abort_reason;
use crate::draft::{Draft, Flow};
use crate::retry::{go_back, node_gone, park};
use crate::standing::still_cut;
use crate::threshold::just_back_until;
use crate::{
    Action, Approval, Crossing, Effect, FinalReason, Goal, HAND_OVER, Hold, LOOK_EVERY, NodeView,
    OpId, Operation, PROBE_EVERY, ParkReason, Phase, Refusal, Remedy, Rule, View, cut,
};

/// A1: gives leave to cut something now, or says what happens instead.
///
/// The order is that of reasons to go away for good before reasons to wait, and the slot comes
/// last, so that nobody takes a slot only to wait with it.
pub(crate) fn leave_to_cut(draft: &mut Draft<'_>) -> Result<(), Flow> {
    let Some(view) = draft.look() else { return Err(Flow::Stay) };
    let Some(node) = draft.node(view) else { return Err(node_gone(draft)) };
    draft.rule(Rule::A1);
    heed_abort(draft)?;
    heed_trigger(draft, view, node)?;
    heed_unnamed_boot(draft, node)?;
    heed_people(draft, view)?;
    heed_gate(draft, view)?;
    if draft.isolates() {
        heed_own_node(draft, view)?;
    }
    if !draft.holds_slot() {
        draft.rule(Rule::A19);
        // Others may keep it for as long as their own incidents last.
        if !is_waited_for(draft) {
            return Err(give_up_leave(draft));
        }
        draft.effect(Effect::TakeSlot);
        // Where no answer comes it is asked for again.
        draft.look_in(LOOK_EVERY);
        return Err(Flow::Stay);
    }
    draft.record.gate_closed_at = None;
    pause_after_held_back(draft)
}

/// A1 for isolation. Where somebody gave back what pods were released behind, they run elsewhere by now:
/// what speaks against cutting off one more node does not speak for two writers. A person's word does, and
/// people are told at once.
pub(crate) fn leave_to_isolate(draft: &mut Draft<'_>) -> Result<(), Flow> {
    let Some(view) = draft.look() else { return Err(Flow::Stay) };
    if !is_cut_again(draft, view.machine()) {
        return leave_to_cut(draft);
    }
    let Some(word) = persons_word(view) else { return pause_after_held_back(draft) };
    draft.rule(Rule::A17);
    Err(park(draft, ParkReason::LeftAlone { word }))
}

/// A17: after an abort nothing is cut or switched off any more; but storage that was undone behind a release is cut again
/// ([`leave_to_isolate`]).
fn heed_abort(draft: &mut Draft<'_>) -> Result<(), Flow> {
    if !guard(Bug::AbortForgotten, draft.record.aborted_at.is_some()) {
        return Ok(());
    }
    draft.rule(Rule::A17);
    Err(go_back(draft, Goal::Park(abort_reason(draft))))
}

/// What held an off back may be a cache's word, which says so for a while although nothing speaks against it any more.
fn pause_after_held_back(draft: &mut Draft<'_>) -> Result<(), Flow> {
    let phase_first = draft.record.phase_first;
    let last = draft.record.operations.iter().rev().find(|one| one.cuts());
    let held_back = last.filter(|one| one.id >= phase_first && one.is_held_back());
    let Some(ended_at) = held_back.and_then(|one| one.ended_at) else { return Ok(()) };
    let until = ended_at.after(LOOK_EVERY);
    if draft.now >= until || is_seeded(Bug::HeldBackAtOnce) {
        return Ok(());
    }
    draft.look_at(until);
    Err(Flow::Stay)
}

/// Whether what is cut now was cut before, and undone behind a release.
pub(crate) fn is_cut_again(draft: &Draft<'_>, node: Option<&NodeView>) -> bool {
    let is_undone = draft.record.phase == Phase::Isolating && cut::is_undone(draft, node);
    guard(Bug::UndoneCutAsksLeave, is_undone)
}

/// What a person said against touching the node.
fn persons_word(view: &View) -> Option<String> {
    let mut words = view.gate.refusals.iter().filter(|refusal| refusal.is_a_persons());
    words.next().map(ToString::to_string)
}

/// Whether leave would not be given now, for a reason that may last.
pub(crate) fn is_withheld(draft: &Draft<'_>, view: &View) -> bool {
    let is_crossed = matches!(view.trigger, Crossing::Crossed { .. });
    let asks = draft.node(view).is_some_and(|node| is_crossed || !trigger_counts(draft, node));
    let is_our_own = view.hosts_us && draft.isolates();
    !asks || !view.gate.is_open() || is_our_own
}

/// A1 for a call that is under way: a session with a slow device takes its time, and an off that
/// has not begun is not begun once its node is well or gone, somebody wants it left alone, its machine may be another
/// Node's, another remediator has it, or so many are lost that it looks like a network's doing. Any view will do to hold
/// back.
pub(crate) fn withdraw_by(draft: &mut Draft<'_>, view: &View) {
    let Some(open) = draft.record.in_flight() else { return };
    let (op, intended_at) = (open.id, open.intended_at);
    if !open.cuts() || view.taken_at < intended_at {
        return;
    }
    if view.gate.is_kept_by_a_person() || is_yes_taken_back(draft, view, op) {
        withdraw(draft);
        return;
    }
    if guard(Bug::RecutWithdrawn, is_cut_again(draft, view.machine())) {
        // What was released runs elsewhere by now.
        return;
    }
    let has_a_say = draft.node(view).is_some_and(|node| trigger_counts(draft, node));
    // What has just come back may have been heard since.
    let is_clear = matches!(view.trigger, Crossing::Clear { .. } | Crossing::Ripening { .. });
    let is_storm = view.gate.refusals.iter().any(Refusal::is_storm);
    let is_others = view.gate.refusals.iter().any(Refusal::is_anothers);
    let is_gone = draft.node(view).is_none();
    if guard(Bug::TriggerNotRead, is_clear && has_a_say)
        || is_others
        || guard(Bug::StormAfterIntent, is_storm)
        || guard(Bug::GoneAfterIntent, is_gone)
    {
        withdraw(draft);
    }
}

/// A17 for a call that is under way: an abort stops an off that has not begun, but not a cut that is made again behind a
/// release.
pub(crate) fn withdraw_for_abort(draft: &mut Draft<'_>) {
    if !is_cut_again(draft, None) {
        withdraw(draft);
    }
}

/// A1: an off that is under way and has not begun is not begun any more.
fn withdraw(draft: &mut Draft<'_>) {
    let Some(op) = draft.record.in_flight().filter(|open| open.cuts()).map(|open| open.id) else {
        return;
    };
    draft.rule(Rule::A1);
    draft.effect(Effect::Withdraw(op));
}

/// A17: the approval that this first off needs does not stand any more.
fn is_yes_taken_back(draft: &Draft<'_>, view: &View, op: OpId) -> bool {
    let is_needed = draft.policy.approval == Approval::Needed && !view.people.approved;
    let powers =
        |one: &Operation| draft.plan.method(one.method).is_some_and(crate::Method::switches_power);
    let mut offs = draft.record.operations.iter().filter(|one| {
        powers(one) && one.may_have_acted() && matches!(one.action, Action::Off | Action::Reset)
    });
    guard(Bug::ApprovalIgnored, is_needed) && offs.next().is_some_and(|first| first.id == op)
}

/// The trigger asks for the cut.
pub(crate) fn heed_trigger(
    draft: &mut Draft<'_>,
    view: &View,
    node: &NodeView,
) -> Result<(), Flow> {
    if !trigger_counts(draft, node) {
        return Ok(());
    }
    match view.trigger {
        Crossing::Crossed { .. } => {
            if waits_untouched(draft) {
                // Reported again: what nobody reports is counted from the next time on.
                draft.record.gate_closed_at = None;
            }
            Ok(())
        }
        Crossing::Clear { .. } if is_seeded(Bug::TriggerNotRead) => Ok(()),
        Crossing::Clear { .. } if draft.committed() => Err(go_back(draft, Goal::BringBack)),
        Crossing::Clear { .. } => Err(go_back(draft, Goal::Close(FinalReason::Recovered))),
        Crossing::Unclear | Crossing::Ripening { .. } => {
            draft.look_at(view.trigger.next_look().unwrap_or(draft.now.after(LOOK_EVERY)));
            if view.trigger == Crossing::Unclear
                && waits_untouched(draft)
                && is_closed_for_long(draft)
            {
                // What nobody reports any more may never be reported again.
                draft.rule(Rule::A14);
                let unreported = Goal::Close(FinalReason::Unreported);
                let goal = if draft.committed() { Goal::BringBack } else { unreported };
                return Err(go_back(draft, goal));
            }
            if is_waited_for(draft) {
                return Err(draft.hold(Hold::TriggerClear));
            }
            // Whoever reports the condition may be cut off with the node: nobody knows is no reason
            // to leave it so.
            draft.rule(Rule::A14);
            let goal = if draft.committed() { Goal::BringBack } else { Goal::Withdraw };
            Err(go_back(draft, goal))
        }
    }
}

/// A11: a milder remedy of another threshold makes way for a fence that is due, whatever it waits for and also parked:
/// nothing was cut or released, and no Job of it runs.
pub(crate) fn make_way(draft: &mut Draft<'_>) -> Option<Flow> {
    let may_end = match draft.record.phase {
        Phase::Waiting
        | Phase::Remedying
        | Phase::AwaitingHealthy
        | Phase::AwaitingDevice
        | Phase::Backoff
        | Phase::Parked => matches!(draft.record.goal, Goal::BringBack | Goal::Park(_)),
        Phase::Isolating
        | Phase::AwaitingPower
        | Phase::ReadingIdentity
        | Phase::PoweringOff
        | Phase::VerifyingOff
        | Phase::Releasing
        | Phase::Restoring
        | Phase::Untainting
        | Phase::PoweringOn
        | Phase::Recovering
        | Phase::Final(_) => false,
    };
    let is_untouched =
        !draft.committed() && still_cut(draft).is_empty() && !was_told_to_go_off(draft);
    let has_job = draft.record.jobs.last().is_some_and(|job| job.end.is_none());
    let is_mild = draft.remedy() != Some(Remedy::Fence) && !has_job;
    let is_due = draft.seen().is_some_and(|view| view.fence_is_due);
    if !(may_end && is_untouched && is_mild && is_due) {
        return None;
    }
    draft.rule(Rule::A11);
    Some(go_back(draft, Goal::Close(FinalReason::Superseded)))
}

/// After a release the trigger no longer has a say: pods of this node run elsewhere now, so the boot
/// they were released from has to end. A boot that came later is not the one that was fenced.
fn trigger_counts(draft: &Draft<'_>, node: &NodeView) -> bool {
    draft.record.first_released_at.is_none() || draft.is_new_boot(&node.liveness)
}

/// A6: after a release a node that renews its Lease again may be the newer boot that is waited for. A kubelet renews before
/// it reports its boot id, so it gets the time to report.
fn heed_unnamed_boot(draft: &mut Draft<'_>, node: &NodeView) -> Result<(), Flow> {
    let until = just_back_until(node).unwrap_or_default();
    if trigger_counts(draft, node) || draft.now >= until {
        return Ok(());
    }
    draft.rule(Rule::A6);
    draft.look_at(until);
    Err(draft.hold(Hold::NotYet { until }))
}

/// A17: a person's word holds the incident back for as long as it stands, wherever it stands. Of a node
/// that we cut off, or may have switched off, they are told: it is in nobody's hands meanwhile.
fn heed_people(draft: &mut Draft<'_>, view: &View) -> Result<(), Flow> {
    let Some(word) = persons_word(view) else { return Ok(()) };
    draft.rule(Rule::A17);
    draft.look_in(LOOK_EVERY);
    let is_as_found = is_untouched(draft) && !draft.has_released() && !was_told_to_go_off(draft);
    if is_as_found || !is_closed_for_long(draft) {
        return Err(draft.hold(Hold::Gate(view.gate.refusals.clone())));
    }
    Err(park(draft, ParkReason::LeftAlone { word }))
}

/// Whether our last word to a power device was an off. One that says it is on may tell old news, and is not read while
/// nothing may be done.
fn was_told_to_go_off(draft: &Draft<'_>) -> bool {
    let mut last = draft.plan.power_methods().filter_map(|plug| draft.record.last_effect(plug));
    guard(Bug::ToldOffForgotten, last.any(|effect| effect.action == Action::Off))
}

/// Whether the gate has been closed for as long as an incident that did something waits for it.
fn is_closed_for_long(draft: &mut Draft<'_>) -> bool {
    let closed_at = *draft.record.gate_closed_at.get_or_insert(draft.now);
    let until = closed_at.after(draft.policy.gate_timeout);
    if draft.now < until {
        draft.look_at(until);
    }
    draft.now >= until
}

/// A14: leave that does not come for a node that an earlier pass may have left isolated or off, or this
/// one, is waited for, not for ever.
fn is_waited_for(draft: &mut Draft<'_>) -> bool {
    waits_untouched(draft) || !is_closed_for_long(draft)
}

/// Whether nothing of the node is cut or off because of us, or may be.
fn is_untouched(draft: &Draft<'_>) -> bool {
    draft.record.powered_off_by_us(draft.plan, draft.now).is_empty() && still_cut(draft).is_empty()
}

/// Whether the incident has done nothing yet.
pub(crate) fn is_new(draft: &Draft<'_>) -> bool {
    waits_untouched(draft) && !draft.committed()
}

/// Whether it waits for the turn of a remedy, and nothing is cut or off because of us.
fn waits_untouched(draft: &Draft<'_>) -> bool {
    draft.record.phase == Phase::Waiting && is_untouched(draft)
}

/// A14 for the gate, and for a node that is our own: gives back what was cut, or tells a person of it.
fn wait_without_leave(draft: &mut Draft<'_>, hold: Hold) -> Flow {
    if is_waited_for(draft) {
        return draft.hold(hold);
    }
    give_up_leave(draft)
}

fn give_up_leave(draft: &mut Draft<'_>) -> Flow {
    draft.rule(Rule::A14);
    if draft.committed() {
        return park(draft, ParkReason::GateClosed);
    }
    go_back(draft, Goal::Withdraw)
}

fn heed_gate(draft: &mut Draft<'_>, view: &View) -> Result<(), Flow> {
    if !guard(Bug::GateNotRead, !view.gate.is_open()) {
        return Ok(());
    }
    if let Some(why) = view.gate.dispute().filter(|_| !is_untouched(draft)) {
        // What is cut or off may be another machine's: it is given back at once.
        if draft.committed() {
            return Err(cut::give_back_disputed(draft, why));
        }
        draft.rule(Rule::P8);
        return Err(go_back(draft, Goal::Withdraw));
    }
    let next = view.gate.next_look.unwrap_or(draft.now.after(PROBE_EVERY));
    draft.look_at(next.max(draft.now.after(LOOK_EVERY)));
    Err(wait_without_leave(draft, Hold::Gate(view.gate.refusals.clone())))
}

/// A leader that would cut its own power lets another replica do it, if there is one.
fn heed_own_node(draft: &mut Draft<'_>, view: &View) -> Result<(), Flow> {
    if !view.hosts_us {
        return Ok(());
    }
    if draft.record.handed_over_at.is_none() {
        draft.record.handed_over_at = Some(draft.now);
        draft.effect(Effect::HandOver);
    }
    let offered_at = draft.record.handed_over_at.unwrap_or(draft.now);
    draft.look_at(offered_at.after(HAND_OVER).max(draft.now.after(LOOK_EVERY)));
    Err(wait_without_leave(draft, Hold::OwnNode))
}
