//! Pauses: before another try, for a device that does not answer, for a person.

use alloc::vec;
use alloc::vec::Vec;
use core::iter;

use crate::bug::{Bug, guard, is_seeded};
use crate::cut::{self, has_registered_anew};
use crate::draft::{Draft, Flow};
use crate::people::{go_on_back, is_on_the_way_back, waits_on_the_way_back};
use crate::retry::{give_way, go_back, node_gone, park, pause};
use crate::standing::still_cut;
use crate::{
    Action, Crossing, Effect, End, FinalReason, Goal, HAND_OVER_AGAIN, MethodIndex, NodeView,
    Notice, PARKED_LOOK_EVERY, PROBE_EVERY, ParkReason, Phase, Remedy, Rule, Span, View,
    WORD_LOOK_EVERY,
};

use super::contradiction::{fell_silent, is_outlet};
use super::recovering::{end, has_dark_feed, has_let_go};
use super::remedying::ended_late;
use super::waiting::of_a_part;

/// How often an outlet is tried that cannot be switched on, although its node is well: each try that fails is told.
const DARK_OUTLET_TRIED_EVERY: Span = Span::minutes(10);

/// Waits before the next try.
pub(crate) fn backoff(draft: &mut Draft<'_>) -> Flow {
    let until = draft.record.entered_at.after(pause(draft));
    if draft.now < until {
        draft.look_at(until);
        return Flow::Stay;
    }
    go_on(draft)
}

/// Goes on with what was interrupted.
fn go_on(draft: &mut Draft<'_>) -> Flow {
    match draft.record.resume.take() {
        Some(phase) => Flow::Go(phase),
        None => park(draft, ParkReason::BrokenRecord),
    }
}

/// A12: probes the device until it answers. A refusal is an answer, too: what follows counts as a
/// try, so that a person is told in the end.
pub(crate) fn awaiting_device(draft: &mut Draft<'_>) -> Flow {
    let Some(method) = draft.record.unreachable else {
        return park(draft, ParkReason::BrokenRecord);
    };
    if let Some(flow) = cut::watch(draft).or_else(|| gone_or_well(draft)) {
        return flow;
    }
    let probed = to_probe(draft, method);
    let is_back = |one: &MethodIndex| draft.answers(*one) || draft.refuses(*one);
    if let Some(method) = probed.iter().copied().find(is_back) {
        draft.notice(Notice::DeviceBack { method });
        return go_on(draft);
    }
    if may_give_back_partly(draft) {
        draft.record.resume = None;
        return Flow::Go(Phase::AwaitingPower);
    }
    if may_have_no_power(draft, method) {
        return go_on(draft);
    }
    let since = draft.record.unreachable_at.unwrap_or(draft.record.entered_at);
    let is_on = draft.record.powered_off_by_us(draft.plan, draft.now).is_empty();
    let is_untouched = is_on && still_cut(draft).is_empty();
    let patience = if is_untouched { patience(draft) } else { draft.policy.device_timeout };
    if draft.now >= since.after(patience) {
        draft.rule(Rule::A12);
        if is_untouched {
            return give_way(draft, ParkReason::DeviceUnreachable);
        }
        return park(draft, ParkReason::DeviceUnreachable);
    }
    hand_over(draft);
    probe(draft, &probed, PROBE_EVERY)
}

/// The devices to probe. On the way back these are all that were not reached and have something to give back: a BMC may get
/// its power from one of the outlets.
fn to_probe(draft: &Draft<'_>, method: MethodIndex) -> Vec<MethodIndex> {
    if !guard(Bug::OneDeviceAwaited, is_on_the_way_back(draft)) {
        return vec![method];
    }
    let switched_off = draft.record.powered_off_by_us(draft.plan, draft.now);
    let was_unreached = |one: &MethodIndex| {
        *one != method && (draft.record.was_unreached(*one) || draft.probed(*one).is_some())
    };
    let others = switched_off.into_iter().chain(still_cut(draft)).filter(was_unreached);
    iter::once(method).chain(others).collect()
}

/// How long a device is probed: a remedy that is one method of it does not keep the next one waiting.
fn patience(draft: &Draft<'_>) -> Span {
    match (draft.remedy(), draft.plan.ladder.get(draft.record.remedy_step)) {
        (Some(Remedy::Method(_)), Some(remedy_step)) if draft.has_next() => {
            remedy_step.period.min(draft.policy.device_timeout)
        }
        (_, _) => draft.policy.device_timeout,
    }
}

/// Whether the time that the device takes is best used to give back what drivers check, or what lived on
/// storage that is cut: with leave, and before anything was sent to it.
fn may_give_back_partly(draft: &Draft<'_>) -> bool {
    let is_before_off = draft.record.resume == Some(Phase::ReadingIdentity) && !draft.sent_off();
    let Some(view) = draft.seen().filter(|_| is_before_off) else { return false };
    draft.node(view).is_some_and(|node| of_a_part(draft, view, node).is_some())
}

/// A12: whoever reaches the device may lead. Not again for a while: what they say may be wrong, and
/// other incidents may need devices that only this process reaches.
fn hand_over(draft: &mut Draft<'_>) {
    let is_reached = draft.seen().is_some_and(|view| view.reached_elsewhere);
    let offered_at = draft.record.handed_over_at;
    if !is_reached || offered_at.is_some_and(|at| draft.now < at.after(HAND_OVER_AGAIN)) {
        return;
    }
    draft.rule(Rule::A12);
    draft.record.handed_over_at = Some(draft.now);
    draft.effect(Effect::HandOver);
}

/// Stopped for a person; a node that comes back, a device that answers or a word that is taken back
/// needs none.
pub(crate) fn parked(draft: &mut Draft<'_>) -> Flow {
    if let Some(flow) = cut::watch(draft).or_else(|| gone_or_well(draft)) {
        return flow;
    }
    let reason = draft.record.park_reason().cloned();
    let is_awaited = matches!(reason, Some(ParkReason::NotHealthy | ParkReason::Isolated));
    if is_awaited && is_back_in_the_same_boot(draft) {
        return park(draft, ParkReason::SameBootAfterRelease);
    }
    if let Some(ParkReason::CutUndone { method, failure: Some(_) }) = &reason
        && is_cut_once_more(draft)
    {
        // A read shows that it stands again.
        return park(draft, ParkReason::CutUndone { method: method.clone(), failure: None });
    }
    if matches!(reason, Some(ParkReason::JobStuck { .. }))
        && let Some(flow) = ended_late(draft)
    {
        return flow;
    }
    if matches!(reason, Some(ParkReason::LeftAlone { .. })) {
        return left_alone(draft);
    }
    let silent = draft.record.unreachable.filter(|_| reason == Some(ParkReason::DeviceUnreachable));
    let Some(method) = silent else { return draft.look_in(PARKED_LOOK_EVERY) };
    let probed = to_probe(draft, method);
    let answering = probed.iter().copied().find(|one| draft.answers(*one));
    if answering.is_none() && !may_have_no_power(draft, method) {
        return probe(draft, &probed, PARKED_LOOK_EVERY);
    }
    if waits_on_the_way_back(draft) {
        draft.rule(Rule::A12);
        tell_back(draft, answering);
        return go_on_back(draft, draft.record.goal.clone());
    }
    if draft.sent_off() {
        let verifies = waits_for_a_read(draft);
        let Some(resume) = draft.record.resume else { return draft.look_in(PARKED_LOOK_EVERY) };
        draft.rule(Rule::A12);
        tell_back(draft, answering);
        draft.record.resume = None;
        draft.record.parked = None;
        draft.record.baseline = None;
        return Flow::Go(if verifies { Phase::VerifyingOff } else { resume });
    }
    let Some(view) = draft.look() else { return Flow::Stay };
    if matches!(view.trigger, Crossing::Crossed { .. }) {
        draft.rule(Rule::A12);
        tell_back(draft, answering);
        crate::retry::begin_pass(draft);
        return Flow::Go(Phase::Waiting);
    }
    draft.look_in(PARKED_LOOK_EVERY)
}

/// Tells of a device that answers again; one without power does not.
fn tell_back(draft: &mut Draft<'_>, answering: Option<MethodIndex>) {
    if let Some(method) = answering {
        draft.notice(Notice::DeviceBack { method });
    }
}

/// Whether a node is well with the boot that pods were released from: they may still run there.
fn is_back_in_the_same_boot(draft: &Draft<'_>) -> bool {
    let is_released = draft.record.first_released_at.is_some();
    let is_well = |view| draft.is_well(view);
    let is_new = |view| draft.node(view).is_some_and(|node| draft.is_new_boot(&node.liveness));
    is_released && draft.seen().is_some_and(|view| is_well(view) && !is_new(view))
}

/// Whether all that switches the machine off was told to, so that only what came of it is to be read.
fn waits_for_a_read(draft: &Draft<'_>) -> bool {
    let is_told = |plug| draft.record.needs_on(draft.plan, plug, draft.now);
    is_about_power(draft)
        && (is_seeded(Bug::LateAnswerUnused) || draft.plan.machine_is_off(is_told))
}

/// A17: whoever asked for it to be left alone decides when it goes on.
fn left_alone(draft: &mut Draft<'_>) -> Flow {
    let Some(view) = draft.look() else { return Flow::Stay };
    if view.gate.is_kept_by_a_person() {
        return draft.look_in(WORD_LOOK_EVERY);
    }
    draft.rule(Rule::A17);
    draft.notice(Notice::VetoLifted);
    // The wait for leave begins anew.
    draft.record.gate_closed_at = None;
    if guard(Bug::LostCutGivenUp, !cut::open(draft).is_empty()) {
        return cut::cut_again(draft);
    }
    if cut::stays_on(draft) {
        draft.record.parked = None;
        return go_back(draft, draft.record.goal.clone());
    }
    crate::retry::begin_pass(draft);
    Flow::Go(Phase::Waiting)
}

/// Whether what was undone behind a release reads as cut again.
fn is_cut_once_more(draft: &Draft<'_>) -> bool {
    cut::open(draft).is_empty() && cut::is_undone(draft, draft.seen().and_then(View::machine))
}

impl Draft<'_> {
    /// Whether the last probe of this phase was answered.
    fn answers(&self, method: MethodIndex) -> bool {
        matches!(self.probed(method), Some(End::Succeeded { .. }))
    }

    /// Whether the last probe of this phase was refused in a way that waiting does not change.
    fn refuses(&self, method: MethodIndex) -> bool {
        match self.probed(method) {
            Some(End::Failed(failure) | End::NotAttempted(failure)) => failure.kind.is_refusal(),
            Some(End::Succeeded { .. } | End::Indeterminate) | None => false,
        }
    }

    fn probed(&self, method: MethodIndex) -> Option<&End> {
        self.record.last_in_phase(method, Action::Monitor)?.end.as_ref()
    }
}

/// Probes each of these devices once in `every`, the one first that was probed longest ago.
fn probe(draft: &mut Draft<'_>, methods: &[MethodIndex], every: Span) -> Flow {
    let due_at = |method: &MethodIndex| {
        let last = draft.record.last_in_phase(*method, Action::Monitor);
        last.and_then(|one| one.ended_at).unwrap_or(draft.record.entered_at).after(every)
    };
    let next = methods.iter().map(|one| (due_at(one), *one)).min();
    let Some((due_at, method)) = next else { return park(draft, ParkReason::BrokenRecord) };
    if draft.now >= due_at {
        return draft.call(method, Action::Monitor);
    }
    draft.look_at(due_at);
    Flow::Stay
}

/// What ends a pause without a device or a person: the node is gone, or it is well.
fn gone_or_well(draft: &mut Draft<'_>) -> Option<Flow> {
    if !cut::open(draft).is_empty() {
        // Whoever writes behind a release is not left to its own.
        return None;
    }
    let view = draft.seen()?;
    let parked = draft.record.phase == Phase::Parked;
    let Some(node) = draft.node(view) else {
        let is_off = !draft.record.powered_off_by_us(draft.plan, draft.now).is_empty();
        let is_left = parked && (is_off || !still_cut(draft).is_empty());
        let may_give_back = has_registered_anew(draft, view);
        if guard(Bug::ParkedEndsWithNode, is_left) && !may_give_back {
            // It says so already: a machine without a Node is off, or cut, because of us.
            return None;
        }
        if is_left && may_give_back {
            return is_due(draft, PARKED_LOOK_EVERY).then(|| {
                begin_try(draft);
                node_gone(draft)
            });
        }
        if guard(Bug::TurnsBackForEver, is_on_the_way_back_of_a_gone_node(draft)) {
            // Its device is probed, whoever else reaches it is asked, and a person is told in the end.
            return None;
        }
        draft.rule(Rule::A15);
        return Some(if parked { end(draft, FinalReason::NodeGone) } else { node_gone(draft) });
    };
    if !draft.is_well(view) {
        // What gives back already goes on when its device is probed.
        let untouched = !draft.committed()
            && !parked
            && !guard(Bug::ProbedAtOnceUnheard, waits_to_give_back(draft));
        return if untouched && view.trigger_clear() {
            draft.rule(Rule::A1);
            Some(go_back(draft, Goal::Close(FinalReason::Recovered)))
        } else {
            None
        };
    }
    if parked && stays_cut(draft, view) {
        return None;
    }
    let may_end = parked && (draft.is_new_boot(&node.liveness) || !draft.committed());
    let is_dark = may_end && anothers_off(draft).is_none() && has_dark_outlet(draft);
    if guard(Bug::DarkOutletForgotten, is_dark) {
        return may_try_dark_outlet(draft).then(|| {
            begin_try(draft);
            let flow = go_back(draft, Goal::BringBack);
            // One call, and no more of them before the next pause.
            draft.record.retries = draft.policy.retries;
            flow
        });
    }
    let may_be_hasty = guard(Bug::ParkedTriesAtOnce, parked && has_failed_to_give_back(draft));
    if may_be_hasty && !is_due(draft, PARKED_LOOK_EVERY) {
        return None;
    }
    let flow = well(draft, view, node, parked)?;
    if may_be_hasty {
        begin_try(draft);
    }
    Some(flow)
}

/// What comes of a pause once its node is well, if anything does.
fn well(draft: &mut Draft<'_>, view: &View, node: &NodeView, parked: bool) -> Option<Flow> {
    if guard(Bug::ProbedAtOnce, waits_to_give_back(draft)) {
        // Its device is probed, and a person is told in the end.
        return None;
    }
    if let Some(reason) = anothers_off(draft) {
        // Only an incident that is parked for it tries, once a minute. One that awaits a device probes it.
        let may_try = parked && draft.record.park_reason() == Some(&reason);
        return (may_try && is_due(draft, PARKED_LOOK_EVERY)).then(|| {
            begin_try(draft);
            go_back(draft, Goal::Park(reason))
        });
    }
    if draft.committed() && !draft.is_new_boot(&node.liveness) {
        let waits = waits_for_an_off(draft) && !is_seeded(Bug::OffAwaitedOfAWellNode);
        let may_go_on = !draft.sent_off() || waits || has_outlived_its_offs(draft);
        let may_go_on = may_go_on && draft.record.first_released_at.is_none();
        if !may_go_on || parked && !has_let_go(draft, view, node) {
            return None;
        }
        return Some(go_back(draft, Goal::BringBack));
    }
    if !parked && !draft.committed() {
        draft.rule(Rule::A1);
        return Some(go_back(draft, Goal::Close(FinalReason::Recovered)));
    }
    if guard(Bug::DarkFeedForgotten, !parked && has_dark_feed(draft)) {
        return waits_for_an_off(draft).then(|| go_back(draft, Goal::BringBack));
    }
    // Somebody gave it power: the device that does not answer has nothing left to do.
    draft.rule(Rule::A14);
    draft.record.goal = Goal::BringBack;
    Some(Flow::Go(Phase::Recovering))
}

/// P8: why our plug may be another machine's, while it is off because of us. That this node is well does not show that it is on.
fn anothers_off(draft: &Draft<'_>) -> Option<ParkReason> {
    let is_off = !draft.record.powered_off_by_us(draft.plan, draft.now).is_empty();
    cut::refuted(draft).filter(|_| guard(Bug::WrongPlugHidden, is_off)).cloned()
}

/// P8: whether we may have left off the outlet that is configured as the machine's only feed. If the node is well, it may feed
/// another machine. After an abort, people decide.
fn has_dark_outlet(draft: &Draft<'_>) -> bool {
    let is_stopped = draft.record.park_reason() == Some(&ParkReason::Aborted);
    let is_only = |plug: &MethodIndex| {
        !draft.plan.is_part(*plug) && draft.plan.method(*plug).is_some_and(is_outlet)
    };
    !is_stopped && draft.record.powered_off_by_us(draft.plan, draft.now).iter().any(is_only)
}

/// Whether the outlet is tried once more now. An incident that is parked on its way back because a device was silent
/// probes that device itself.
fn may_try_dark_outlet(draft: &mut Draft<'_>) -> bool {
    let is_silent = draft.record.park_reason() == Some(&ParkReason::DeviceUnreachable);
    let is_probed = is_silent && is_on_the_way_back(draft);
    !is_probed && is_due(draft, DARK_OUTLET_TRIED_EVERY)
}

/// Whether it is parked for offs that nobody saw land, and none can any more: a node that is well then is as it was, and
/// what may be off is switched on.
fn has_outlived_its_offs(draft: &Draft<'_>) -> bool {
    let parked = draft.record.park_reason();
    let is_unverified = matches!(parked, Some(ParkReason::OffNotVerified { .. }));
    let mut plugs = draft.plan.power_methods();
    guard(Bug::StuckThoughWell, is_unverified)
        && plugs.all(|plug| draft.record.may_land_until(draft.plan, plug) <= draft.now)
}

/// Whether a silent device keeps an off from being sent or read. Of a node that is well none is wanted any more, and what
/// other devices switched off meanwhile goes on again.
fn waits_for_an_off(draft: &Draft<'_>) -> bool {
    draft.record.phase == Phase::AwaitingDevice && is_about_power(draft)
}

/// Whether a device that an off waits for fell silent with the outlets that feed it, so that it cannot answer.
fn may_have_no_power(draft: &Draft<'_>, method: MethodIndex) -> bool {
    let is_silent = is_about_power(draft) && fell_silent(draft.plan, &draft.record, method);
    guard(Bug::DarkBmcStillAwaited, is_silent)
}

/// Whether what was interrupted switches the machine off.
fn is_about_power(draft: &Draft<'_>) -> bool {
    matches!(
        draft.record.resume,
        Some(Phase::ReadingIdentity | Phase::PoweringOff | Phase::VerifyingOff)
    )
}

/// Tries again what was tried before. Called only where something is tried: each change of a record is written, and looked at
/// anew.
fn begin_try(draft: &mut Draft<'_>) {
    draft.record.retries = 0;
    draft.record.attempt = draft.record.attempt.saturating_add(1);
}

/// Whether it has been parked for so long that it tries again: that is done at leisure.
fn is_due(draft: &mut Draft<'_>, every: Span) -> bool {
    let next = draft.record.entered_at.after(every);
    if draft.now < next {
        draft.look_at(next);
    }
    draft.now >= next
}

/// Whether it waits for a device that is to give back what it took from a machine whose Node is gone.
fn is_on_the_way_back_of_a_gone_node(draft: &Draft<'_>) -> bool {
    let is_closed = draft.record.goal == Goal::Close(FinalReason::NodeGone);
    draft.record.phase == Phase::AwaitingDevice && is_on_the_way_back(draft) && is_closed
}

/// Whether it waits for a device that is to give back what it cut.
fn waits_to_give_back(draft: &Draft<'_>) -> bool {
    let gives_back = matches!(draft.record.resume, Some(Phase::Restoring | Phase::Recovering));
    let reason = draft.record.park_reason();
    let is_parked = draft.record.phase == Phase::Parked;
    let waits = draft.record.phase == Phase::AwaitingDevice
        || is_parked && reason == Some(&ParkReason::DeviceUnreachable);
    let cuts = still_cut(draft);
    let is_its = draft.record.unreachable.is_some_and(|silent| cuts.contains(&silent));
    gives_back && waits && !cuts.is_empty() && (is_its || is_seeded(Bug::SilentFeedHoldsCuts))
}

/// Whether a person was told that the machine stays cut off, and nothing has changed that.
fn stays_cut(draft: &Draft<'_>, view: &View) -> bool {
    let may_go_back = cut::holds_all(draft, view) || cut::may_restore_alive(draft, view);
    draft.record.park_reason() == Some(&ParkReason::StillCut)
        && !still_cut(draft).is_empty()
        && !may_go_back
}

/// Whether it is parked because something could not be given back.
fn has_failed_to_give_back(draft: &Draft<'_>) -> bool {
    let reason = draft.record.park_reason();
    matches!(reason, Some(ParkReason::RestoreFailed | ParkReason::OnFailed | ParkReason::StillCut))
}
