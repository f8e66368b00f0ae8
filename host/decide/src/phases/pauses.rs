//! Pauses: before another try, for a device that does not answer, for a person.

use alloc::vec;
use alloc::vec::Vec;
use core::iter;

use crate::bug::{Bug, guard, is_seeded};
use crate::cut::{self, has_registered_anew};
use crate::people::{go_on_back, is_on_the_way_back, waits_on_the_way_back};
use crate::retry::{give_way, go_back, node_gone, park, pause};
use crate::run::{Flow, Run};
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
pub(crate) fn backoff(run: &mut Run<'_>) -> Flow {
    let until = run.record.entered_at.after(pause(run));
    if run.now < until {
        run.look_at(until);
        return Flow::Stay;
    }
    go_on(run)
}

/// Goes on with what was interrupted.
fn go_on(run: &mut Run<'_>) -> Flow {
    match run.record.resume.take() {
        Some(phase) => Flow::Go(phase),
        None => park(run, ParkReason::BrokenRecord),
    }
}

/// A12: probes the device until it answers. A refusal is an answer, too: what follows counts as a
/// try, so that a person is told in the end.
pub(crate) fn awaiting_device(run: &mut Run<'_>) -> Flow {
    let Some(method) = run.record.unreachable else {
        return park(run, ParkReason::BrokenRecord);
    };
    if let Some(flow) = cut::watch(run).or_else(|| gone_or_well(run)) {
        return flow;
    }
    let probed = to_probe(run, method);
    let is_back = |one: &MethodIndex| run.answers(*one) || run.refuses(*one);
    if let Some(method) = probed.iter().copied().find(is_back) {
        run.notice(Notice::DeviceBack { method });
        return go_on(run);
    }
    if may_give_back_partly(run) {
        run.record.resume = None;
        return Flow::Go(Phase::AwaitingPower);
    }
    if may_have_no_power(run, method) {
        return go_on(run);
    }
    let since = run.record.unreachable_at.unwrap_or(run.record.entered_at);
    let is_on = run.record.powered_off_by_us(run.plan, run.now).is_empty();
    let is_untouched = is_on && still_cut(run).is_empty();
    let patience = if is_untouched { patience(run) } else { run.policy.device_timeout };
    if run.now >= since.after(patience) {
        run.rule(Rule::A12);
        if is_untouched {
            return give_way(run, ParkReason::DeviceUnreachable);
        }
        return park(run, ParkReason::DeviceUnreachable);
    }
    hand_over(run);
    probe(run, &probed, PROBE_EVERY)
}

/// The devices to probe. On the way back these are all that were not reached and have something to give back: a BMC may get
/// its power from one of the outlets.
fn to_probe(run: &Run<'_>, method: MethodIndex) -> Vec<MethodIndex> {
    if !guard(Bug::OneDeviceAwaited, is_on_the_way_back(run)) {
        return vec![method];
    }
    let switched_off = run.record.powered_off_by_us(run.plan, run.now);
    let was_unreached = |one: &MethodIndex| {
        *one != method && (run.record.was_unreached(*one) || run.probed(*one).is_some())
    };
    let others = switched_off.into_iter().chain(still_cut(run)).filter(was_unreached);
    iter::once(method).chain(others).collect()
}

/// How long a device is probed: a remedy that is one method of it does not keep the next one waiting.
fn patience(run: &Run<'_>) -> Span {
    match (run.remedy(), run.plan.ladder.get(run.record.remedy_step)) {
        (Some(Remedy::Method(_)), Some(remedy_step)) if run.has_next() => {
            remedy_step.period.min(run.policy.device_timeout)
        }
        (_, _) => run.policy.device_timeout,
    }
}

/// Whether the time that the device takes is best used to give back what drivers check, or what lived on
/// storage that is cut: with leave, and before anything was sent to it.
fn may_give_back_partly(run: &Run<'_>) -> bool {
    let is_before_off = run.record.resume == Some(Phase::ReadingIdentity) && !run.sent_off();
    let Some(view) = run.seen().filter(|_| is_before_off) else { return false };
    run.node(view).is_some_and(|node| of_a_part(run, view, node).is_some())
}

/// A12: whoever reaches the device may lead. Not again for a while: what they say may be wrong, and
/// other runs may need devices that only this process reaches.
fn hand_over(run: &mut Run<'_>) {
    let is_reached = run.seen().is_some_and(|view| view.reached_elsewhere);
    let offered_at = run.record.handed_over_at;
    if !is_reached || offered_at.is_some_and(|at| run.now < at.after(HAND_OVER_AGAIN)) {
        return;
    }
    run.rule(Rule::A12);
    run.record.handed_over_at = Some(run.now);
    run.effect(Effect::HandOver);
}

/// Stopped for a person; a node that comes back, a device that answers or a word that is taken back
/// needs none.
pub(crate) fn parked(run: &mut Run<'_>) -> Flow {
    if let Some(flow) = cut::watch(run).or_else(|| gone_or_well(run)) {
        return flow;
    }
    let reason = run.record.park_reason().cloned();
    let is_awaited = matches!(reason, Some(ParkReason::NotHealthy | ParkReason::Isolated));
    if is_awaited && is_back_in_the_same_boot(run) {
        return park(run, ParkReason::SameBootAfterRelease);
    }
    if let Some(ParkReason::CutUndone { method, failure: Some(_) }) = &reason
        && is_cut_once_more(run)
    {
        // A read shows that it stands again.
        return park(run, ParkReason::CutUndone { method: method.clone(), failure: None });
    }
    if matches!(reason, Some(ParkReason::JobStuck { .. }))
        && let Some(flow) = ended_late(run)
    {
        return flow;
    }
    if matches!(reason, Some(ParkReason::LeftAlone { .. })) {
        return left_alone(run);
    }
    let silent = run.record.unreachable.filter(|_| reason == Some(ParkReason::DeviceUnreachable));
    let Some(method) = silent else { return run.look_in(PARKED_LOOK_EVERY) };
    let probed = to_probe(run, method);
    let answering = probed.iter().copied().find(|one| run.answers(*one));
    if answering.is_none() && !may_have_no_power(run, method) {
        return probe(run, &probed, PARKED_LOOK_EVERY);
    }
    if waits_on_the_way_back(run) {
        run.rule(Rule::A12);
        tell_back(run, answering);
        return go_on_back(run, run.record.goal.clone());
    }
    if run.sent_off() {
        let verifies = waits_for_a_read(run);
        let Some(resume) = run.record.resume else { return run.look_in(PARKED_LOOK_EVERY) };
        run.rule(Rule::A12);
        tell_back(run, answering);
        run.record.resume = None;
        run.record.parked = None;
        run.record.baseline = None;
        return Flow::Go(if verifies { Phase::VerifyingOff } else { resume });
    }
    let Some(view) = run.look() else { return Flow::Stay };
    if matches!(view.trigger, Crossing::Crossed { .. }) {
        run.rule(Rule::A12);
        tell_back(run, answering);
        crate::retry::begin_pass(run);
        return Flow::Go(Phase::Waiting);
    }
    run.look_in(PARKED_LOOK_EVERY)
}

/// Tells of a device that answers again; one without power does not.
fn tell_back(run: &mut Run<'_>, answering: Option<MethodIndex>) {
    if let Some(method) = answering {
        run.notice(Notice::DeviceBack { method });
    }
}

/// Whether a node is well with the boot that pods were released from: they may still run there.
fn is_back_in_the_same_boot(run: &Run<'_>) -> bool {
    let is_released = run.record.first_released_at.is_some();
    let is_well = |view| run.is_well(view);
    let is_new = |view| run.node(view).is_some_and(|node| run.is_new_boot(&node.liveness));
    is_released && run.seen().is_some_and(|view| is_well(view) && !is_new(view))
}

/// Whether all that switches the machine off was told to, so that only what came of it is to be read.
fn waits_for_a_read(run: &Run<'_>) -> bool {
    let is_told = |plug| run.record.needs_on(run.plan, plug, run.now);
    is_about_power(run) && (is_seeded(Bug::LateAnswerUnused) || run.plan.machine_is_off(is_told))
}

/// A17: whoever asked for it to be left alone decides when it goes on.
fn left_alone(run: &mut Run<'_>) -> Flow {
    let Some(view) = run.look() else { return Flow::Stay };
    if view.gate.is_kept_by_a_person() {
        return run.look_in(WORD_LOOK_EVERY);
    }
    run.rule(Rule::A17);
    run.notice(Notice::VetoLifted);
    // The wait for leave begins anew.
    run.record.gate_closed_at = None;
    if guard(Bug::LostCutGivenUp, !cut::open(run).is_empty()) {
        return cut::cut_again(run);
    }
    if cut::stays_on(run) {
        run.record.parked = None;
        return go_back(run, run.record.goal.clone());
    }
    crate::retry::begin_pass(run);
    Flow::Go(Phase::Waiting)
}

/// Whether what was undone behind a release reads as cut again.
fn is_cut_once_more(run: &Run<'_>) -> bool {
    cut::open(run).is_empty() && cut::is_undone(run, run.seen().and_then(View::machine))
}

impl Run<'_> {
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
fn probe(run: &mut Run<'_>, methods: &[MethodIndex], every: Span) -> Flow {
    let due_at = |method: &MethodIndex| {
        let last = run.record.last_in_phase(*method, Action::Monitor);
        last.and_then(|one| one.ended_at).unwrap_or(run.record.entered_at).after(every)
    };
    let next = methods.iter().map(|one| (due_at(one), *one)).min();
    let Some((due_at, method)) = next else { return park(run, ParkReason::BrokenRecord) };
    if run.now >= due_at {
        return run.call(method, Action::Monitor);
    }
    run.look_at(due_at);
    Flow::Stay
}

/// What ends a pause without a device or a person: the node is gone, or it is well.
fn gone_or_well(run: &mut Run<'_>) -> Option<Flow> {
    if !cut::open(run).is_empty() {
        // Whoever writes behind a release is not left to its own.
        return None;
    }
    let view = run.seen()?;
    let parked = run.record.phase == Phase::Parked;
    let Some(node) = run.node(view) else {
        let is_off = !run.record.powered_off_by_us(run.plan, run.now).is_empty();
        let is_left = parked && (is_off || !still_cut(run).is_empty());
        let may_give_back = has_registered_anew(run, view);
        if guard(Bug::ParkedEndsWithNode, is_left) && !may_give_back {
            // It says so already: a machine without a Node is off, or cut, because of us.
            return None;
        }
        if is_left && may_give_back {
            return is_due(run, PARKED_LOOK_EVERY).then(|| {
                begin_try(run);
                node_gone(run)
            });
        }
        if guard(Bug::TurnsBackForEver, is_on_the_way_back_of_a_gone_node(run)) {
            // Its device is probed, whoever else reaches it is asked, and a person is told in the end.
            return None;
        }
        run.rule(Rule::A15);
        return Some(if parked { end(run, FinalReason::NodeGone) } else { node_gone(run) });
    };
    if !run.is_well(view) {
        // What gives back already goes on when its device is probed.
        let untouched = !run.committed()
            && !parked
            && !guard(Bug::ProbedAtOnceUnheard, waits_to_give_back(run));
        return if untouched && view.trigger_clear() {
            run.rule(Rule::A1);
            Some(go_back(run, Goal::Close(FinalReason::Recovered)))
        } else {
            None
        };
    }
    if parked && stays_cut(run, view) {
        return None;
    }
    let may_end = parked && (run.is_new_boot(&node.liveness) || !run.committed());
    let is_dark = may_end && anothers_off(run).is_none() && has_dark_outlet(run);
    if guard(Bug::DarkOutletForgotten, is_dark) {
        return may_try_dark_outlet(run).then(|| {
            begin_try(run);
            let flow = go_back(run, Goal::BringBack);
            // One call, and no more of them before the next pause.
            run.record.retries = run.policy.retries;
            flow
        });
    }
    let may_be_hasty = guard(Bug::ParkedTriesAtOnce, parked && has_failed_to_give_back(run));
    if may_be_hasty && !is_due(run, PARKED_LOOK_EVERY) {
        return None;
    }
    let flow = well(run, view, node, parked)?;
    if may_be_hasty {
        begin_try(run);
    }
    Some(flow)
}

/// What comes of a pause once its node is well, if anything does.
fn well(run: &mut Run<'_>, view: &View, node: &NodeView, parked: bool) -> Option<Flow> {
    if guard(Bug::ProbedAtOnce, waits_to_give_back(run)) {
        // Its device is probed, and a person is told in the end.
        return None;
    }
    if let Some(reason) = anothers_off(run) {
        // Only a run that is parked for it tries, once a minute. One that awaits a device probes it.
        let may_try = parked && run.record.park_reason() == Some(&reason);
        return (may_try && is_due(run, PARKED_LOOK_EVERY)).then(|| {
            begin_try(run);
            go_back(run, Goal::Park(reason))
        });
    }
    if run.committed() && !run.is_new_boot(&node.liveness) {
        let waits = waits_for_an_off(run) && !is_seeded(Bug::OffAwaitedOfAWellNode);
        let may_go_on = !run.sent_off() || waits || has_outlived_its_offs(run);
        let may_go_on = may_go_on && run.record.first_released_at.is_none();
        if !may_go_on || parked && !has_let_go(run, view, node) {
            return None;
        }
        return Some(go_back(run, Goal::BringBack));
    }
    if !parked && !run.committed() {
        run.rule(Rule::A1);
        return Some(go_back(run, Goal::Close(FinalReason::Recovered)));
    }
    if guard(Bug::DarkFeedForgotten, !parked && has_dark_feed(run)) {
        return waits_for_an_off(run).then(|| go_back(run, Goal::BringBack));
    }
    // Somebody gave it power: the device that does not answer has nothing left to do.
    run.rule(Rule::A14);
    run.record.goal = Goal::BringBack;
    Some(Flow::Go(Phase::Recovering))
}

/// P8: why our plug may be another machine's, while it is off because of us. That this node is well does not show that it is on.
fn anothers_off(run: &Run<'_>) -> Option<ParkReason> {
    let is_off = !run.record.powered_off_by_us(run.plan, run.now).is_empty();
    cut::refuted(run).filter(|_| guard(Bug::WrongPlugHidden, is_off)).cloned()
}

/// P8: whether we may have left off the outlet that is configured as the machine's only feed. If the node is well, it may feed
/// another machine. After an abort, people decide.
fn has_dark_outlet(run: &Run<'_>) -> bool {
    let is_stopped = run.record.park_reason() == Some(&ParkReason::Aborted);
    let is_only = |plug: &MethodIndex| {
        !run.plan.is_part(*plug) && run.plan.method(*plug).is_some_and(is_outlet)
    };
    !is_stopped && run.record.powered_off_by_us(run.plan, run.now).iter().any(is_only)
}

/// Whether the outlet is tried once more now. A run that is parked on its way back because a device was silent probes that device
/// itself.
fn may_try_dark_outlet(run: &mut Run<'_>) -> bool {
    let is_silent = run.record.park_reason() == Some(&ParkReason::DeviceUnreachable);
    let is_probed = is_silent && is_on_the_way_back(run);
    !is_probed && is_due(run, DARK_OUTLET_TRIED_EVERY)
}

/// Whether it is parked for offs that nobody saw land, and none can any more: a node that is well then is as it was, and
/// what may be off is switched on.
fn has_outlived_its_offs(run: &Run<'_>) -> bool {
    let parked = run.record.park_reason();
    let is_unverified = matches!(parked, Some(ParkReason::OffNotVerified { .. }));
    let mut plugs = run.plan.power_methods();
    guard(Bug::StuckThoughWell, is_unverified)
        && plugs.all(|plug| run.record.may_land_until(run.plan, plug) <= run.now)
}

/// Whether a silent device keeps an off from being sent or read. Of a node that is well none is wanted any more, and what
/// other devices switched off meanwhile goes on again.
fn waits_for_an_off(run: &Run<'_>) -> bool {
    run.record.phase == Phase::AwaitingDevice && is_about_power(run)
}

/// Whether a device that an off waits for fell silent with the outlets that feed it, so that it cannot answer.
fn may_have_no_power(run: &Run<'_>, method: MethodIndex) -> bool {
    let is_silent = is_about_power(run) && fell_silent(run.plan, &run.record, method);
    guard(Bug::DarkBmcStillAwaited, is_silent)
}

/// Whether what was interrupted switches the machine off.
fn is_about_power(run: &Run<'_>) -> bool {
    matches!(
        run.record.resume,
        Some(Phase::ReadingIdentity | Phase::PoweringOff | Phase::VerifyingOff)
    )
}

/// Tries again what was tried before. Called only where something is tried: each change of a record is written, and looked at
/// anew.
fn begin_try(run: &mut Run<'_>) {
    run.record.retries = 0;
    run.record.attempt = run.record.attempt.saturating_add(1);
}

/// Whether it has been parked for so long that it tries again: that is done at leisure.
fn is_due(run: &mut Run<'_>, every: Span) -> bool {
    let next = run.record.entered_at.after(every);
    if run.now < next {
        run.look_at(next);
    }
    run.now >= next
}

/// Whether it waits for a device that is to give back what it took from a machine whose Node is gone.
fn is_on_the_way_back_of_a_gone_node(run: &Run<'_>) -> bool {
    let is_closed = run.record.goal == Goal::Close(FinalReason::NodeGone);
    run.record.phase == Phase::AwaitingDevice && is_on_the_way_back(run) && is_closed
}

/// Whether it waits for a device that is to give back what it cut.
fn waits_to_give_back(run: &Run<'_>) -> bool {
    let gives_back = matches!(run.record.resume, Some(Phase::Restoring | Phase::Recovering));
    let reason = run.record.park_reason();
    let is_parked = run.record.phase == Phase::Parked;
    let waits = run.record.phase == Phase::AwaitingDevice
        || is_parked && reason == Some(&ParkReason::DeviceUnreachable);
    let cuts = still_cut(run);
    let is_its = run.record.unreachable.is_some_and(|silent| cuts.contains(&silent));
    gives_back && waits && !cuts.is_empty() && (is_its || is_seeded(Bug::SilentFeedHoldsCuts))
}

/// Whether a person was told that the machine stays cut off, and nothing has changed that.
fn stays_cut(run: &Run<'_>, view: &View) -> bool {
    let may_go_back = cut::holds_all(run, view) || cut::may_restore_alive(run, view);
    run.record.park_reason() == Some(&ParkReason::StillCut)
        && !still_cut(run).is_empty()
        && !may_go_back
}

/// Whether it is parked because something could not be given back.
fn has_failed_to_give_back(run: &Run<'_>) -> bool {
    let reason = run.record.park_reason();
    matches!(reason, Some(ParkReason::RestoreFailed | ParkReason::OnFailed | ParkReason::StillCut))
}
