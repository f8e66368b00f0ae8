//! The way back: restore what was cut, lift the taint, switch on. Never gated (A2).

use alloc::format;
use alloc::vec::Vec;

use super::feeds::{Feeds, feeds_read_off};
use crate::bug::{Bug, guard, is_seeded};
use crate::cut::{holds_all, may_restore_alive};
use crate::draft::{Draft, Flow};
use crate::release::Left;
use crate::retry::{await_device, park, retry, unreachable};
use crate::standing::{goes_back, see_it_come_back, still_cut};
use crate::{
    Action, Closure, Deletion, Effect, End, FailureKind, FinalReason, FoundOff, Goal, Hold,
    LOOK_EVERY, MethodIndex, Notice, OnFailure, Operation, PROBE_EVERY, ParkReason, Phase,
    PlugState, PodView, RESEND_EVERY, Record, Rule, Span, View, WRITE_LATE_MAX, cut,
};

/// Restores what isolation cut, where that is safe now; otherwise recovery does it later.
pub(crate) fn restoring(draft: &mut Draft<'_>) -> Flow {
    let cuts = still_cut(draft);
    if cuts.is_empty() {
        return Flow::Go(Phase::Untainting);
    }
    draft.rule(Rule::A2);
    if let Some(flow) = wait_for_late_cuts(draft, &cuts) {
        return flow;
    }
    if goes_back(draft, &cuts) {
        return see_it_come_back(draft, &cuts);
    }
    if !draft.has_released() {
        let Some(view) = draft.look() else { return Flow::Stay };
        if holds_all(draft, view) {
            return give_back(draft, &cuts);
        }
    }
    draft.rule(Rule::A5);
    match feeds_read_off(draft) {
        Feeds::Off => {}
        Feeds::Reading(flow) => return flow,
        Feeds::NotOff => {
            let Some(view) = draft.look() else { return Flow::Stay };
            if !may_restore_alive(draft, view) {
                return Flow::Go(Phase::Untainting);
            }
        }
    }
    give_back(draft, &cuts)
}

/// Gives these back, and goes on. A cut that fails to come back, or gets no answer, keeps no plug off that may be another
/// machine's.
fn give_back(draft: &mut Draft<'_>, cuts: &[MethodIndex]) -> Flow {
    if !guard(Bug::WrongPlugHidden, cut::refuted(draft).is_some()) {
        return restore_all(draft, cuts).unwrap_or(Flow::Go(Phase::Untainting));
    }
    match bring_all_on(draft, cuts) {
        Brought::NotYet(flow) => flow,
        Brought::On | Brought::Silent(_) | Brought::Failed(_) => Flow::Go(Phase::Untainting),
    }
}

/// A3: a cut that nobody heard the end of may still be made, and would undo the giving back. Waits until it cannot.
fn wait_for_late_cuts(draft: &mut Draft<'_>, cuts: &[MethodIndex]) -> Option<Flow> {
    let plan = draft.plan;
    let pending = cuts.iter().map(|cut| draft.record.pending_until(plan, *cut, Action::Off));
    let until = pending.max()?;
    if !guard(Bug::LateCutForgotten, draft.now < until) {
        return None;
    }
    draft.rule(Rule::A3);
    draft.look_at(until);
    Some(Flow::Stay)
}

/// Restores each of these; `None` when all are.
pub(crate) fn restore_all(draft: &mut Draft<'_>, cuts: &[MethodIndex]) -> Option<Flow> {
    if let Some(flow) = wait_for_late_cuts(draft, cuts) {
        return Some(flow);
    }
    match bring_all_on(draft, cuts) {
        Brought::On => None,
        Brought::NotYet(flow) => Some(flow),
        Brought::Silent(cut) => Some(await_device(draft, cut, draft.record.phase)),
        Brought::Failed(_) => Some(park(draft, ParkReason::RestoreFailed)),
    }
}

/// Lifts the out-of-service taint, and reads it as lifted, before anything is switched on.
pub(crate) fn untainting(draft: &mut Draft<'_>) -> Flow {
    let Some(view) = draft.look() else { return Flow::Stay };
    // Whichever incident put it: a record may not know of its own, or of a predecessor's.
    let stands = draft.node(view).is_some_and(|node| node.out_of_service_by_us);
    if guard(Bug::BootsOutOfService, stands) {
        draft.rule(Rule::P2);
        draft.rule(Rule::P7);
        draft.effect(Effect::LiftOutOfService);
        draft.record.marks.out_of_service = false;
        if draft.now >= draft.record.entered_at.after(draft.policy.cleanup_timeout) {
            // A person has to take it off, or to allow us to.
            let left = alloc::vec![format!("out-of-service taint of {}", draft.plan.node.name)];
            draft.hold(Hold::CleanUp { left });
        }
        return draft.look_in(RESEND_EVERY.min(LOOK_EVERY));
    }
    // On a Node that is gone, or made anew, an older write is refused.
    let is_there = draft.node(view).is_some();
    if let Some(flow) = is_there.then(|| wait_for_late_writes(draft, view)).flatten() {
        return flow;
    }
    draft.record.marks.out_of_service = false;
    // Tries of giving back are not those of switching on.
    draft.record.retries = 0;
    Flow::Go(Phase::PoweringOn)
}

/// A3: what was asked for in a release and was not seen to be done may still be done: a taint would speak of the next boot,
/// and a delete would take a pod that runs in it. The taint's minute counts from when it was asked for; deletes may have been
/// sent until the way back began, so theirs counts from this phase. Lifting a taint changes the Node, after which an older
/// write is refused.
fn wait_for_late_writes(draft: &mut Draft<'_>, view: &View) -> Option<Flow> {
    let released = draft.record.released.as_ref()?;
    let sent_at = released.sent_at?;
    let is_undeleted = |pod: &&PodView| pod.deletion != Deletion::AtOnce;
    let has_pod = Left::of(released, view).pods.iter().any(is_undeleted);
    let taint_until = sent_at.after(WRITE_LATE_MAX);
    let delete_until = draft.record.entered_at.after(WRITE_LATE_MAX);
    let has_taint = draft.record.marks.out_of_service && draft.now < taint_until;
    let until = if guard(Bug::LateTaintForgotten, has_taint) {
        taint_until
    } else if guard(Bug::LateDeleteForgotten, has_pod && draft.now < delete_until) {
        delete_until
    } else {
        return None;
    };
    draft.rule(Rule::A3);
    draft.look_at(until);
    Some(draft.look_in(LOOK_EVERY))
}

/// Switches on whatever we switched off, or may have; then goes where the way back leads.
pub(crate) fn powering_on(draft: &mut Draft<'_>) -> Flow {
    if let Some(flow) = leave_off(draft) {
        return flow;
    }
    note_terminated(draft);
    forget_failures(&mut draft.record);
    let plan = draft.plan;
    let mut plugs = draft.record.powered_off_by_us(plan, draft.now);
    if matches!(draft.record.goal, Goal::Close(_)) && is_seeded(Bug::ClosedLeftOff) {
        plugs.clear();
    }
    if !plugs.is_empty() {
        draft.rule(Rule::A2);
    }
    if let Some(flow) = (!plugs.is_empty()).then(|| wait_for_late_offs(draft)).flatten() {
        return flow;
    }
    switch_on(draft, &plugs).or_else(|| switch_on_found(draft)).unwrap_or_else(|| arrive(draft))
}

/// Those that did not answer come last: asking them again takes its time.
fn answering_first(draft: &Draft<'_>, methods: &[MethodIndex]) -> Vec<MethodIndex> {
    let mut methods = methods.to_vec();
    let is_silent = |method| {
        Some(method) == draft.record.unreachable
            || guard(Bug::SilentDeviceFirst, is_unanswered(draft, method))
    };
    methods.sort_by_key(|method| is_silent(*method));
    methods
}

/// Switches these on; `None` when all are. One that fails keeps no other one off.
fn switch_on(draft: &mut Draft<'_>, plugs: &[MethodIndex]) -> Option<Flow> {
    match bring_all_on(draft, plugs) {
        Brought::On => None,
        Brought::NotYet(flow) => Some(flow),
        Brought::Silent(plug) => Some(await_device(draft, plug, draft.record.phase)),
        Brought::Failed(failed) => Some(on_failed(draft, &failed)),
    }
}

/// A4: what somebody else had switched off goes on after ours, unless it is to stay so.
fn switch_on_found(draft: &mut Draft<'_>) -> Option<Flow> {
    let found = found_dark(draft);
    if draft.record.goal != Goal::BringBack || found.is_empty() {
        return None;
    }
    draft.rule(Rule::A4);
    let Some(view) = draft.look() else { return Some(Flow::Stay) };
    if stays_as_found(draft, view) { None } else { switch_on(draft, &found) }
}

/// A3: an off that may still come would undo our `on`. Waits until it cannot, or until its plug reads off: then nothing
/// more comes of it.
fn wait_for_late_offs(draft: &mut Draft<'_>) -> Option<Flow> {
    let plan = draft.plan;
    let pending_until = |plug| {
        let off = draft.record.pending_until(plan, plug, Action::Off);
        off.max(draft.record.pending_until(plan, plug, Action::Reset))
    };
    let late = plan.power_methods().filter(|plug| draft.now < pending_until(*plug));
    let late: Vec<MethodIndex> = late.collect();
    let until = late.iter().map(|plug| pending_until(*plug)).max()?;
    draft.rule(Rule::A3);
    draft.look_at(until);
    for plug in late {
        // Of an off that nobody heard the end of, a read tells nothing.
        let effect = draft.record.last_effect(plug);
        let is_unheard = effect.is_some_and(|effect| effect.end == Some(End::Indeterminate));
        if is_unheard || is_seeded(Bug::LateOffNotRead) {
            continue;
        }
        let read = draft.record.last_in_phase(plug, Action::Status);
        let again_at =
            read.map(|read| read.ended_at.unwrap_or(read.intended_at).after(PROBE_EVERY));
        let Some(again_at) = again_at.filter(|at| draft.now < *at) else {
            return Some(draft.call(plug, Action::Status));
        };
        draft.look_at(again_at);
    }
    Some(Flow::Stay)
}

/// A15: what the provider ended after our off, nobody brings back.
fn note_terminated(draft: &mut Draft<'_>) {
    let read = |plug| draft.record.last_read(plug).and_then(Operation::state);
    let is_gone = draft.plan.power_methods().any(|plug| read(plug) == Some(PlugState::Terminated));
    if is_gone && draft.record.goal == Goal::BringBack {
        draft.rule(Rule::A15);
        draft.record.goal = Goal::Close(FinalReason::Replaced);
    }
}

/// A4: a machine that was off before us stays off where policy or a person says so.
fn leave_off(draft: &mut Draft<'_>) -> Option<Flow> {
    let bring_back = draft.record.goal == Goal::BringBack;
    let found_off = &draft.record.found_off;
    let is_as_found = |plug| found_off.contains(&plug) || draft.record.last_effect(plug).is_none();
    let untouched = draft.plan.power_methods().all(is_as_found);
    if !bring_back || !untouched || found_dark(draft).is_empty() {
        return None;
    }
    draft.rule(Rule::A4);
    let Some(view) = draft.look() else { return Some(Flow::Stay) };
    if stays_as_found(draft, view) { Some(park(draft, ParkReason::OffBeforeUs)) } else { None }
}

/// Whether what somebody else had switched off is left so.
fn stays_as_found(draft: &Draft<'_>, view: &View) -> bool {
    view.gate.is_kept_by_a_person() || draft.policy.found_off == FoundOff::LeaveOff
}

/// Power plugs that were off before our first call and still read off.
fn found_dark(draft: &Draft<'_>) -> Vec<MethodIndex> {
    let has_power =
        |plug: MethodIndex| draft.plan.method(plug).is_some_and(crate::Method::switches_power);
    let found_off = draft.record.found_off.iter().copied();
    found_off.filter(|plug| has_power(*plug) && draft.record.reads_off(*plug)).collect()
}

fn arrive(draft: &mut Draft<'_>) -> Flow {
    draft.record.retries = 0;
    match draft.record.goal.clone() {
        Goal::BringBack => Flow::Go(Phase::AwaitingHealthy),
        Goal::Withdraw | Goal::Close(_) => Flow::Go(Phase::Recovering),
        Goal::Park(reason) => park(draft, reason),
    }
}

/// A13: nothing more is switched off through devices that do not switch on. Whoever is told hears what they read
/// now: somebody may have switched the machine on meanwhile.
fn on_failed(draft: &mut Draft<'_>, plugs: &[MethodIndex]) -> Flow {
    for plug in plugs.iter().copied() {
        let asked = draft.record.last_ended(plug, Action::On).cloned();
        let asked_at = asked.as_ref().map(|on| on.intended_at);
        let is_closed = |one: &OnFailure| one.method == plug && Some(one.at) >= asked_at;
        if !draft.record.on_failed.iter().any(is_closed) {
            close_device(draft, plug);
        }
        let read =
            draft.record.last_in_phase(plug, Action::Status).filter(|read| !read.is_held_back());
        let is_read = read.is_some_and(|read| asked.is_none_or(|on| read.id > on.id));
        if guard(Bug::OnNotReadAgain, !is_read) {
            return draft.call(plug, Action::Status);
        }
    }
    // A plug that stays off may feed another machine: `OnFailed` would send people to this one.
    let reason = cut::refuted(draft).filter(|_| !is_seeded(Bug::WrongPlugHidden)).cloned();
    park(draft, reason.unwrap_or(ParkReason::OnFailed))
}

fn close_device(draft: &mut Draft<'_>, plug: MethodIndex) {
    draft.rule(Rule::A13);
    let failure = draft.record.last_in_phase(plug, Action::On).and_then(|one| match &one.end {
        Some(End::Failed(failure) | End::NotAttempted(failure)) => Some(failure.kind),
        Some(End::Succeeded { .. } | End::Indeterminate) | None => None,
    });
    let kind = failure.unwrap_or(FailureKind::Other);
    if let Some(method) = draft.plan.method(plug) {
        let device = method.device.clone();
        draft.notice(Notice::CloseDevice { device, kind, scope: closure(kind) });
    }
    let at = draft.now;
    draft.record.on_failed.retain(|one| one.method != plug);
    draft.record.on_failed.push(OnFailure { method: plug, at, kind });
}

/// A wrong credential is the whole fleet's; anything else is this device's, until a second
/// device of its kind fails within an hour (which the caller sees across incidents).
pub(crate) fn closure(kind: FailureKind) -> Closure {
    match kind {
        FailureKind::Unauthenticated | FailureKind::Denied => Closure::Kind,
        FailureKind::Unreachable
        | FailureKind::Timeout
        | FailureKind::Throttled
        | FailureKind::Unsupported
        | FailureKind::BadParameters
        | FailureKind::NoSuchPlug
        | FailureKind::Busy
        | FailureKind::Protocol
        | FailureKind::Device
        | FailureKind::NotMade
        | FailureKind::Cancelled
        | FailureKind::Other => Closure::Device,
    }
}

/// Opens what a later `on` of ours did switch on. A machine that is on without one was switched on
/// by hand, which says nothing for its device.
fn forget_failures(record: &mut Record) {
    let works = |one: &OnFailure| {
        let last = record.last_effect(one.method);
        let is_later =
            last.is_some_and(|last| last.action == Action::On && last.intended_at >= one.at);
        is_later && record.state_since_effect(one.method) == Some(PlugState::On)
    };
    let failures = record.on_failed.iter().filter(|one| !works(one)).cloned().collect();
    record.on_failed = failures;
}

/// How far several `on` have come.
pub(crate) enum Brought {
    On,
    NotYet(Flow),
    /// This one does not answer, and the others are on.
    Silent(MethodIndex),
    /// These failed the last try that there was.
    Failed(Vec<MethodIndex>),
}

/// Brings all of these on. Each is asked before any is asked again, and one that is silent is waited for last: none keeps
/// another one off.
pub(crate) fn bring_all_on(draft: &mut Draft<'_>, plugs: &[MethodIndex]) -> Brought {
    let resume = draft.record.phase;
    let (mut failed, mut silent) = (Vec::new(), None);
    for plug in answering_first(draft, plugs) {
        match bring_on(draft, plug) {
            Tried::On => {}
            Tried::NotYet(flow) => return Brought::NotYet(flow),
            Tried::Silent if is_seeded(Bug::SilentDeviceFirst) => {
                return Brought::Silent(plug);
            }
            Tried::Silent => silent = silent.or(Some(plug)),
            Tried::Failed => failed.push(plug),
        }
    }
    if !failed.is_empty() {
        return retry(draft, resume).map_or(Brought::Failed(failed), Brought::NotYet);
    }
    silent.map_or(Brought::On, Brought::Silent)
}

/// How far one `on` has come.
enum Tried {
    On,
    NotYet(Flow),
    /// Its device does not answer.
    Silent,
    /// This try failed.
    Failed,
}

/// Gives one plug its `on` and reads it as on; asked again only after a read said otherwise.
fn bring_on(draft: &mut Draft<'_>, plug: MethodIndex) -> Tried {
    let Some(asked) =
        draft.record.last_effect(plug).filter(|one| one.action == Action::On).cloned()
    else {
        return ask_once(draft, plug);
    };
    if draft.record.state_since_effect(plug) == Some(PlugState::On) {
        return Tried::On;
    }
    let read = draft.record.last_in_phase(plug, Action::Status).filter(|one| one.id > asked.id);
    let Some(read) = read.filter(|one| one.end != Some(End::Indeterminate)).cloned() else {
        return Tried::NotYet(draft.call(plug, Action::Status));
    };
    if unreachable(read.end.as_ref()) {
        return Tried::Silent;
    }
    // What may still come by itself is not asked for again.
    let late = draft.plan.method(plug).map_or(Span::ZERO, |method| method.late_effect);
    let patience = draft.policy.on_timeout.max(late);
    let until = asked.ended_at.unwrap_or(asked.intended_at).after(patience);
    if draft.now < until && !is_lost(draft, &asked, &read) {
        let again_at = read.ended_at.unwrap_or(read.intended_at).after(LOOK_EVERY);
        if draft.now >= again_at {
            return Tried::NotYet(draft.call(plug, Action::Status));
        }
        draft.look_at(again_at);
        return Tried::NotYet(Flow::Stay);
    }
    ask_once(draft, plug)
}

/// Whether another process died over this call: that says nothing about the device, so it is no
/// try of ours.
fn was_cut_short(operation: &Operation, record: &Record) -> bool {
    operation.end == Some(End::Indeterminate) && operation.process != record.process
}

/// Whether an `on` that nobody heard the end of did not arrive: a read that began when it could
/// no longer land says off. An `on` is idempotent, so there is nothing to wait for.
fn is_lost(draft: &Draft<'_>, asked: &Operation, read: &Operation) -> bool {
    asked.end == Some(End::Indeterminate)
        && read.state() == Some(PlugState::Off)
        && read.intended_at >= asked.lands_until(draft.plan)
}

/// One `on` per try; whatever came of the last one, another try comes after a pause.
fn ask_once(draft: &mut Draft<'_>, plug: MethodIndex) -> Tried {
    let tried = draft.record.operations.iter().rev().find(|one| {
        let counts = one.may_have_acted() || one.id >= draft.record.phase_first;
        one.method == plug
            && one.action == Action::On
            && one.attempt == draft.record.attempt
            && counts
            && !was_cut_short(one, &draft.record)
    });
    let tried = tried.cloned();
    let Some(tried) = tried else {
        // What nobody heard the end of is read before anything else is sent.
        let unheard = draft.record.last_effect(plug).is_some_and(|one| {
            one.end == Some(End::Indeterminate) && !draft.record.is_read_since(plug, one.id)
        });
        if unheard {
            let read = draft.record.last_in_phase(plug, Action::Status);
            if read.is_some_and(|one| unreachable(one.end.as_ref())) {
                return Tried::Silent;
            }
            return Tried::NotYet(draft.call(plug, Action::Status));
        }
        draft.notice(Notice::PoweringOn { method: plug });
        return Tried::NotYet(draft.call(plug, Action::On));
    };
    if unreachable(tried.end.as_ref()) { Tried::Silent } else { Tried::Failed }
}

/// Whether the method's device did not answer a call of this phase, the last of its kind.
pub(crate) fn is_unanswered(draft: &Draft<'_>, method: MethodIndex) -> bool {
    let actions = [Action::On, Action::Status].into_iter();
    let mut last = actions.filter_map(|action| draft.record.last_in_phase(method, action));
    last.any(|call| unreachable(call.end.as_ref()))
}
