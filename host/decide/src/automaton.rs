//! The automaton: where a run goes when something happens.
//!
//! ```text
//!                 threshold crossed, gate open, slot taken
//!                                  │
//!   ┌───────────────────────▶   Waiting ──────────────┐ trigger cleared, abort
//!   │                              │                  │ (nothing sent off or released)
//!   │         Remedying ◀──────────┤ a Job's turn, a  │
//!   │             │                │ plugin's         │
//!   │             │ AwaitingHealthy   │                  │
//!   │                          Isolating ─────────────┤
//!   │          quarantine, cuts    │                  │
//!   │                        AwaitingPower ───────────┤ gate closed for too long
//!   │                              │                  │
//!   │             ┌───────▶ ReadingIdentity ──────────┤
//!   │             │                │                  │
//!   │ Backoff ────┤          PoweringOff              │
//!   │ AwaitingDevice               │                  │
//!   │             └──────── VerifyingOff              │
//!   │                              │ proof            │
//!   │                          Releasing              │
//!   │                              │ ended or voided  │
//!   │    the way back:         Restoring ◀────────────┘
//!   │                              │
//!   │                          Untainting
//!   │                              │ read as lifted
//!   │                          PoweringOn
//!   │                              │ goal
//!   │        ┌──────────────┬──────┴───────┐
//!   │   AwaitingHealthy   Recovering       Parked ◀─── whatever needs a person
//!   │        │              │              │
//!   │        └─ well ──▶ Recovering ◀──────┘ well with a new boot
//!   │ restart, next remedy  │
//!   └────────┴─ withdrawn ──┴─▶ Final
//! ```
//!
//! There is one way back, whatever it leads to: restore what was cut, lift the taint, switch
//! on; its goal says what then. It is never gated.
//!
//! An event is first taken into the record as a fact. Then the phase looks at record and view
//! and does the next thing that is still to do. A phase never asks what the last event was, so
//! a run that is found by another process after a crash goes on from its record alone. At most
//! one call is under way at any time.

use crate::bug::{Bug, guard, is_seeded};
use crate::phases::deciding::Answered;
use crate::phases::{
    cluster_actions, deciding, isolating, leave, pauses, power, recovering, releasing, remedying,
    verifying, waiting, way_back,
};
use crate::run::{Flow, Run};
use crate::{
    Action, Command, Cover, Effect, End, Event, LOOK_EVERY, Notice, Operation, ParkReason, Phase,
    Plan, Record, Remedy, Request, Rule, RunPolicy, Slot, SlotAnswer, Time, Transition, View,
    people,
};
use crate::{cut, standing};

/// A run passes through fewer phases than this in one step; more would be a loop.
const PHASES_PER_STEP_MAX: usize = 24;

/// Takes one event into a run and says what becomes of it.
///
/// The record that comes out is to be written, conditional on the one that went in, before any
/// of the effects is carried out.
pub fn step(
    plan: &Plan,
    policy: &RunPolicy,
    record: Record,
    event: Event<'_>,
    now: Time,
) -> Transition {
    let mut run = Run::new(plan, policy, record, now);
    match answer(run.record.phase, EventKind::of(&event)) {
        Answer::Decide | Answer::Take => {
            if take(&mut run, event) == Taken::Yes {
                advance(&mut run);
            }
        }
        Answer::Ignore(why) => {
            ignore(&mut run, why);
        }
    }
    run.finish()
}

/// The kinds of event that phases tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Looked,
    Ended,
    Slot,
    Decided,
    Retry,
    Abort,
    ConfirmOff,
    Adopted,
}

impl EventKind {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 8] = [
        Self::Looked,
        Self::Ended,
        Self::Slot,
        Self::Decided,
        Self::Retry,
        Self::Abort,
        Self::ConfirmOff,
        Self::Adopted,
    ];

    fn of(event: &Event<'_>) -> Self {
        match event {
            Event::Looked(_) => Self::Looked,
            Event::Ended { .. } => Self::Ended,
            Event::Slot(_) => Self::Slot,
            Event::Decided { .. } => Self::Decided,
            Event::Command(Command::Retry) => Self::Retry,
            Event::Command(Command::Abort | Command::AbortLeaveOff) => Self::Abort,
            Event::Command(Command::ConfirmOff { .. }) => Self::ConfirmOff,
            Event::Adopted { .. } => Self::Adopted,
        }
    }
}

/// What a phase does with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Look at the world and do the next thing.
    Decide,
    /// Take a fact into the record, then do the next thing.
    Take,
    /// It can come, and changes nothing, for this reason.
    Ignore(&'static str),
}

/// State × event, whole.
pub(crate) fn answer(phase: Phase, kind: EventKind) -> Answer {
    use Answer::{Decide, Ignore, Take};
    use Phase::{
        AwaitingDevice, AwaitingPower, AwaitingHealthy, Backoff, Final, Isolating, Parked,
        PoweringOff, PoweringOn, ReadingIdentity, Recovering, Releasing, Remedying, Restoring,
        Untainting, VerifyingOff, Waiting,
    };
    match (phase, kind) {
        (
            Final(_),
            EventKind::Looked | EventKind::Ended | EventKind::Decided | EventKind::Adopted,
        ) => Ignore("the run is over"),
        (Final(_), EventKind::Slot) => Ignore("the run is over; the budget's entry goes with it"),
        (Final(_), EventKind::Retry | EventKind::Abort | EventKind::ConfirmOff) => {
            Ignore("the run is over; a new incident opens a new one")
        }
        (
            Waiting | Isolating | Remedying | AwaitingPower | ReadingIdentity | PoweringOff
            | VerifyingOff | Releasing | Restoring | Untainting | PoweringOn | AwaitingHealthy
            | Recovering | AwaitingDevice | Backoff | Parked,
            EventKind::Looked,
        ) => Decide,
        (
            Waiting | Isolating | Remedying | AwaitingPower | ReadingIdentity | PoweringOff
            | VerifyingOff | Releasing | Restoring | Untainting | PoweringOn | AwaitingHealthy
            | Recovering | AwaitingDevice | Backoff | Parked,
            EventKind::Slot | EventKind::Abort | EventKind::Adopted | EventKind::Ended,
        )
        | (Remedying, EventKind::Decided)
        | (Parked | Backoff | AwaitingDevice, EventKind::Retry)
        | (
            Waiting | Isolating | Remedying | AwaitingPower | ReadingIdentity | PoweringOff
            | VerifyingOff | Releasing | AwaitingDevice | Backoff | Parked,
            EventKind::ConfirmOff,
        ) => Take,
        (
            Waiting | Isolating | Remedying | AwaitingPower | ReadingIdentity | PoweringOff
            | VerifyingOff | Releasing | Restoring | Untainting | PoweringOn | AwaitingHealthy
            | Recovering,
            EventKind::Retry,
        ) => Ignore("the run is not parked; it goes on by itself"),
        (
            Waiting | Isolating | AwaitingPower | ReadingIdentity | PoweringOff | VerifyingOff
            | Releasing | Restoring | Untainting | PoweringOn | AwaitingHealthy | Recovering
            | AwaitingDevice | Backoff | Parked,
            EventKind::Decided,
        ) => Ignore("nobody waits for it any more; the plugin is asked again in its turn"),
        (
            Restoring | Untainting | PoweringOn | AwaitingHealthy | Recovering,
            EventKind::ConfirmOff,
        ) => Ignore(
            "the run gives back what it took and waits for the node; say it again once it is parked",
        ),
    }
}

/// Whether an event became part of the record.
#[derive(PartialEq, Eq)]
enum Taken {
    Yes,
    No,
}

/// Says why an event changes nothing, and looks, so that the run's next look is not lost by it.
fn ignore(run: &mut Run<'_>, why: &'static str) -> Taken {
    run.notice(Notice::Ignored { why });
    if !matches!(run.record.phase, Phase::Final(_)) {
        run.effect(Effect::Look);
    }
    Taken::No
}

/// Takes an event into the record, as a fact.
fn take<'a>(run: &mut Run<'a>, event: Event<'a>) -> Taken {
    match event {
        Event::Looked(view) => {
            run.trust(view);
            leave::withdraw_by(run, view);
        }
        Event::Ended { op, end } => return take_end(run, op, end),
        Event::Slot(SlotAnswer::Granted) => run.record.slot = Slot::Held,
        Event::Slot(SlotAnswer::Refused) => {
            run.record.slot = Slot::Free;
            run.hold(crate::Hold::NoSlot);
            run.look_in(LOOK_EVERY);
            return Taken::No;
        }
        Event::Decided { number, answer } => match deciding::answered(run, number, answer) {
            Answered::Recorded => {}
            Answered::NotYet => return Taken::No,
            Answered::Unwanted => return ignore(run, "this decision is recorded already"),
        },
        Event::Command(Command::Retry | Command::ConfirmOff { .. }) if aborts(run) => {
            return ignore(run, "an abort waits to be taken, and is taken first");
        }
        Event::Command(Command::ConfirmOff { .. }) if releases_everything(run) => {
            return ignore(run, "the node is proven off already");
        }
        Event::Command(Command::Retry) if would_cut_another(run) => {
            return ignore(
                run,
                "its plan still names the neighbour's plug; correct the wiring and restart this node's own machine",
            );
        }
        Event::Command(Command::Retry) => run.record.request = Some(Request::Retry),
        Event::Command(Command::Abort) => {
            run.record.request = Some(Request::Abort);
            leave::withdraw_for_abort(run);
        }
        Event::Command(Command::AbortLeaveOff) => {
            run.record.request = Some(Request::AbortLeaveOff);
            leave::withdraw_for_abort(run);
        }
        Event::Command(Command::ConfirmOff { by, boot_id }) => {
            run.record.request = Some(Request::ConfirmOff { by, boot_id });
        }
        Event::Adopted { epoch, process } => {
            if epoch < run.record.epoch {
                run.notice(Notice::Ignored { why: "the record belongs to a newer leader" });
                return Taken::No;
            }
            if guard(Bug::SlotOfAnotherBelieved, epoch > run.record.epoch && leave::is_new(run)) {
                // Whoever opened it may have stood still, and its slot have gone to another meanwhile.
                run.record.slot = Slot::Free;
            }
            run.record.epoch = epoch;
            run.record.process = process;
            run.record.reckon_from(run.now);
            run.record.forget_identities();
            disown(run);
        }
    }
    Taken::Yes
}

/// Whether it is parked because its plug, which is on again, is another machine's: another try would switch that off once more.
fn would_cut_another(run: &Run<'_>) -> bool {
    let parked = run.record.park_reason();
    let is_on = run.record.powered_off_by_us(run.plan, run.now).is_empty();
    matches!(parked, Some(ParkReason::WrongPlug { .. })) && is_on
}

/// Whether a person's abort waits for a call, or a Job, to end.
fn aborts(run: &Run<'_>) -> bool {
    matches!(run.record.request, Some(Request::Abort | Request::AbortLeaveOff))
}

/// Whether what is being released needs no better proof. One that covers a part, or a machine that dumps and is
/// to be cut yet, leaves the rest to whoever says that the machine is off.
fn releases_everything(run: &Run<'_>) -> bool {
    let proof = run.record.proof.as_ref().filter(|_| run.record.phase == Phase::Releasing);
    let dumps = run.policy.kdump_releases;
    proof.is_some_and(|proof| Cover { grade: proof.grade, dumps }.allows_taint())
}

fn take_end(run: &mut Run<'_>, op: crate::OpId, end: End) -> Taken {
    let unknown = end == End::Indeterminate;
    let answered = matches!(end, End::Succeeded { .. });
    if !run.record.close(run.plan, op, end, run.now) {
        return ignore(run, "this call's end is known already");
    }
    let ended = run.record.operations.iter().find(|one| one.id == op);
    let monitor = ended.is_some_and(|one| one.action == Action::Monitor);
    let effect = ended.is_some_and(crate::Operation::is_effect);
    let method = ended.and_then(|one| run.plan.method(one.method));
    let is_power = method.is_some_and(crate::Method::switches_power);
    if answered && !monitor && is_what_failed(&run.record, op) {
        run.record.unreachable_at = None;
    }
    if unknown && effect {
        run.notice(Notice::Indeterminate { op });
    }
    if effect && is_power {
        run.record.baseline = None;
    }
    Taken::Yes
}

/// Whether a call that was answered is one as that for which its device is awaited: a device that tells its state and takes in no
/// command is still not reached, nor is one of two of which the other answers.
fn is_what_failed(record: &Record, op: crate::OpId) -> bool {
    let Some(ended) = record.operations.iter().find(|one| one.id == op) else { return false };
    let earlier =
        || record.operations.iter().filter(|one| one.id < op && one.method == ended.method);
    let failed = earlier()
        .rfind(|one| one.action != Action::Monitor && crate::retry::unreachable(one.end.as_ref()));
    record.unreachable == Some(ended.method)
        && failed.is_none_or(|failed| ended.is_effect() || !failed.is_effect())
}

/// After a restart or a change of leader every open call is somebody else's: its end will never
/// be heard, it may still land, and only a read can tell.
fn disown(run: &mut Run<'_>) {
    let open = run.record.in_flight().map(|operation| operation.id);
    if let Some(op) = open {
        take_end(run, op, foreign_end());
    }
}

/// What is known of a call whose end nobody will hear.
fn foreign_end() -> End {
    if is_seeded(Bug::RepeatsBlindly) {
        let kind = crate::FailureKind::Cancelled;
        return End::NotAttempted(crate::Failure { kind, detail: alloc::string::String::new() });
    }
    End::Indeterminate
}

/// Does the next things that are still to do, until something has to happen first.
fn advance(run: &mut Run<'_>) {
    for _ in 0..PHASES_PER_STEP_MAX {
        if run.record.in_flight().is_some() {
            break;
        }
        let flow = match people::take_request(run) {
            Some(flow) => flow,
            None => leave::make_way(run).unwrap_or_else(|| proceed(run)),
        };
        match flow {
            Flow::Stay => break,
            Flow::Go(phase) => run.enter(phase),
        }
    }
    if guard(Bug::OldLeave, run.record.in_flight().is_some_and(Operation::cuts)) {
        // What speaks against it may come while its session is slow, and wakes nobody.
        run.look_in(LOOK_EVERY);
    }
    return_idle_slot(run);
    keep_marks(run);
}

fn proceed(run: &mut Run<'_>) -> Flow {
    run.learn_boot();
    let watches = watches_cuts(run);
    if watches && let Some(flow) = cut::watch(run).or_else(|| cut::read_overdue(run)) {
        return flow;
    }
    let flow = work(run);
    let is_idle =
        matches!(flow, Flow::Stay) && run.record.in_flight().is_none() && !run.asks_to_look();
    let watches = watches || matches!(run.record.phase, Phase::AwaitingDevice | Phase::Parked);
    if is_idle && watches {
        return cut::read_due(run).unwrap_or(flow);
    }
    flow
}

/// The next thing of the phase itself.
fn work(run: &mut Run<'_>) -> Flow {
    match run.record.phase {
        Phase::Waiting => waiting::waiting(run),
        Phase::Isolating => isolating::isolating(run),
        Phase::Remedying => remedying::remedying(run),
        Phase::AwaitingPower => waiting::awaiting_power(run),
        Phase::ReadingIdentity => power::reading_identity(run),
        Phase::PoweringOff => power::powering_off(run),
        Phase::VerifyingOff => verifying::verifying_off(run),
        Phase::Releasing => releasing::releasing(run),
        Phase::Restoring => way_back::restoring(run),
        Phase::Untainting => way_back::untainting(run),
        Phase::PoweringOn => way_back::powering_on(run),
        Phase::AwaitingHealthy => recovering::awaiting_healthy(run),
        Phase::Recovering => recovering::recovering(run),
        Phase::AwaitingDevice => pauses::awaiting_device(run),
        Phase::Backoff => pauses::backoff(run),
        Phase::Parked => pauses::parked(run),
        Phase::Final(_) => Flow::Stay,
    }
}

/// Whether cuts are read before the phase does its own work.
fn watches_cuts(run: &Run<'_>) -> bool {
    match run.record.phase {
        Phase::AwaitingPower | Phase::AwaitingHealthy => true,
        Phase::Waiting
        | Phase::Remedying
        | Phase::ReadingIdentity
        | Phase::PoweringOff
        | Phase::VerifyingOff
        | Phase::Backoff => !is_seeded(Bug::CutNotReadMeanwhile),
        // Both call [`cut::watch`] themselves, before they look at the node.
        Phase::AwaitingDevice | Phase::Parked => false,
        // A release that rests on a cut reads it before each batch.
        Phase::Releasing => {
            run.record.proof.as_ref().is_some_and(|proof| cut::needs_earlier_cuts(proof.grade))
        }
        // A cut may have to stand for a while before it is given back.
        Phase::Restoring | Phase::Recovering | Phase::Untainting | Phase::PoweringOn => {
            !standing::is_on_its_way_back(run) && !is_seeded(Bug::WaitingCutNotRead)
        }
        // While one cut is made, the others are read. This phase itself makes an undone one again.
        Phase::Isolating => {
            let machine = run.seen().and_then(View::machine);
            guard(Bug::IsolatingUnwatched, !cut::is_undone(run, machine))
        }
        Phase::Final(_) => false,
    }
}

/// A19: a slot is held until the node is well, so that one machine at a time is missing and not only
/// switched. Whoever waits for a person or a device holds none: one dead device must not keep every
/// other node from being fenced; nor does a machine that takes longer than machines may.
fn return_idle_slot(run: &mut Run<'_>) {
    let idle = match run.record.phase {
        Phase::AwaitingDevice | Phase::Recovering | Phase::Parked | Phase::Final(_) => true,
        Phase::AwaitingHealthy => {
            let until = run.record.entered_at.after(recovering::patience(run));
            run.now >= until || is_seeded(Bug::SlotReturnedEarly)
        }
        Phase::AwaitingPower => waiting::lacks_approval(run) || is_kept_idle(run),
        Phase::Waiting | Phase::Isolating | Phase::ReadingIdentity | Phase::PoweringOff => {
            is_kept_idle(run)
        }
        Phase::Releasing | Phase::Restoring | Phase::Untainting | Phase::PoweringOn => {
            is_seeded(Bug::SlotReturnedEarly)
        }
        Phase::Remedying => {
            cluster_actions::awaits_proof(run)
                || run.waits_as_decided()
                || matches!(run.remedy(), Some(Remedy::Cluster(_))) && is_kept_idle(run)
        }
        Phase::VerifyingOff | Phase::Backoff => false,
    };
    if idle && run.holds_slot() {
        run.rule(Rule::A19);
        run.record.slot = Slot::Free;
        run.effect(Effect::ReturnSlot);
    }
}

/// Something keeps the machine from being cut, and none of it is off: a person may take days, and so
/// may whatever speaks against this node alone before anything was done to it.
fn is_kept_idle(run: &Run<'_>) -> bool {
    let waits = run.record.phase == Phase::Waiting;
    let is_kept =
        |view: &View| view.gate.is_kept_by_a_person() || (waits && leave::is_withheld(run, view));
    run.seen().is_some_and(is_kept)
        && run.record.powered_off_by_us(run.plan, run.now).is_empty()
        && run.record.in_flight().is_none()
}

/// Puts our marks again if somebody took them off while they are needed, and takes off the out-of-service
/// taint, whoever's record put it, where nothing is being released behind a proof that allows it.
fn keep_marks(run: &mut Run<'_>) {
    if matches!(run.record.phase, Phase::Recovering | Phase::Final(_)) {
        return;
    }
    let is_in_order = run.record.phase == Phase::Releasing && releases_everything(run);
    if run.seen().is_none() && run.record.marks.out_of_service && !is_in_order {
        run.effect(Effect::Look);
    }
    let Some(node) = run.seen().and_then(|view| run.node(view)) else { return };
    if guard(Bug::TaintOutlives, node.out_of_service_by_us && !is_in_order) {
        run.rule(Rule::P2);
        run.record.marks.out_of_service = false;
        run.effect(Effect::LiftOutOfService);
    }
    if run.record.marks.quarantine && !node.quarantined {
        run.effect(Effect::Quarantine);
    }
    if run.record.marks.cordon && !node.cordoned {
        run.effect(Effect::Cordon);
    }
}
