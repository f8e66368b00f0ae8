//! The automaton: where an incident goes when something happens.
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
//! an incident that is found by another process after a crash goes on from its record alone. At most
//! one call is under way at any time.

use crate::bug::{Bug, guard, is_seeded};
use crate::draft::{Draft, Flow};
use crate::phases::deciding::Answered;
use crate::phases::{
    cluster_actions, deciding, isolating, leave, pauses, power, recovering, releasing, remedying,
    verifying, waiting, way_back,
};
use crate::{
    Action, Command, Cover, Effect, End, Event, IncidentPolicy, LOOK_EVERY, Notice, Operation,
    ParkReason, Phase, Plan, Record, Remedy, Request, Rule, Slot, SlotAnswer, Time, Transition,
    View, people,
};
use crate::{cut, standing};

/// An incident passes through fewer phases than this in one step; more would be a loop.
const PHASES_PER_STEP_MAX: usize = 24;

/// Takes one event into an incident and says what becomes of it.
///
/// The record that comes out is to be written, conditional on the one that went in, before any
/// of the effects is carried out.
pub fn step(
    plan: &Plan,
    policy: &IncidentPolicy,
    record: Record,
    event: Event<'_>,
    now: Time,
) -> Transition {
    let mut draft = Draft::new(plan, policy, record, now);
    match answer(draft.record.phase, EventKind::of(&event)) {
        Answer::Decide | Answer::Take => {
            if take(&mut draft, event) == Taken::Yes {
                advance(&mut draft);
            }
        }
        Answer::Ignore(why) => {
            ignore(&mut draft, why);
        }
    }
    draft.finish()
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
        AwaitingDevice, AwaitingHealthy, AwaitingPower, Backoff, Final, Isolating, Parked,
        PoweringOff, PoweringOn, ReadingIdentity, Recovering, Releasing, Remedying, Restoring,
        Untainting, VerifyingOff, Waiting,
    };
    match (phase, kind) {
        (
            Final(_),
            EventKind::Looked | EventKind::Ended | EventKind::Decided | EventKind::Adopted,
        ) => Ignore("the incident is over"),
        (Final(_), EventKind::Slot) => {
            Ignore("the incident is over; the budget's entry goes with it")
        }
        (Final(_), EventKind::Retry | EventKind::Abort | EventKind::ConfirmOff) => {
            Ignore("the incident is over; a new failure of the node opens a new one")
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
        ) => Ignore("the incident is not parked; it goes on by itself"),
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
            "the incident gives back what it took and waits for the node; say it again once it is parked",
        ),
    }
}

/// Whether an event became part of the record.
#[derive(PartialEq, Eq)]
enum Taken {
    Yes,
    No,
}

/// Says why an event changes nothing, and looks, so that the incident's next look is not lost by it.
fn ignore(draft: &mut Draft<'_>, why: &'static str) -> Taken {
    draft.notice(Notice::Ignored { why });
    if !matches!(draft.record.phase, Phase::Final(_)) {
        draft.effect(Effect::Look);
    }
    Taken::No
}

/// Takes an event into the record, as a fact.
fn take<'a>(draft: &mut Draft<'a>, event: Event<'a>) -> Taken {
    match event {
        Event::Looked(view) => {
            draft.trust(view);
            leave::withdraw_by(draft, view);
        }
        Event::Ended { op, end } => return take_end(draft, op, end),
        Event::Slot(SlotAnswer::Granted) => draft.record.slot = Slot::Held,
        Event::Slot(SlotAnswer::Refused) => {
            draft.record.slot = Slot::Free;
            draft.hold(crate::Hold::NoSlot);
            draft.look_in(LOOK_EVERY);
            return Taken::No;
        }
        Event::Decided { number, answer } => match deciding::answered(draft, number, answer) {
            Answered::Recorded => {}
            Answered::NotYet => return Taken::No,
            Answered::Unwanted => return ignore(draft, "this decision is recorded already"),
        },
        Event::Command(Command::Retry | Command::ConfirmOff { .. }) if aborts(draft) => {
            return ignore(draft, "an abort waits to be taken, and is taken first");
        }
        Event::Command(Command::ConfirmOff { .. }) if releases_everything(draft) => {
            return ignore(draft, "the node is proven off already");
        }
        Event::Command(Command::Retry) if would_cut_another(draft) => {
            return ignore(
                draft,
                "its plan still names the neighbour's plug; correct the wiring and restart this node's own machine",
            );
        }
        Event::Command(Command::Retry) => draft.record.request = Some(Request::Retry),
        Event::Command(Command::Abort) => {
            draft.record.request = Some(Request::Abort);
            leave::withdraw_for_abort(draft);
        }
        Event::Command(Command::AbortLeaveOff) => {
            draft.record.request = Some(Request::AbortLeaveOff);
            leave::withdraw_for_abort(draft);
        }
        Event::Command(Command::ConfirmOff { by, boot_id }) => {
            draft.record.request = Some(Request::ConfirmOff { by, boot_id });
        }
        Event::Adopted { epoch, process } => {
            if epoch < draft.record.epoch {
                draft.notice(Notice::Ignored { why: "the record belongs to a newer leader" });
                return Taken::No;
            }
            if guard(Bug::SlotOfAnotherBelieved, epoch > draft.record.epoch && leave::is_new(draft))
            {
                // Whoever opened it may have stood still, and its slot have gone to another meanwhile.
                draft.record.slot = Slot::Free;
            }
            draft.record.epoch = epoch;
            draft.record.process = process;
            draft.record.reckon_from(draft.now);
            draft.record.forget_identities();
            disown(draft);
        }
    }
    Taken::Yes
}

/// Whether it is parked because its plug, which is on again, is another machine's: another try would switch that off once more.
fn would_cut_another(draft: &Draft<'_>) -> bool {
    let parked = draft.record.park_reason();
    let is_on = draft.record.powered_off_by_us(draft.plan, draft.now).is_empty();
    matches!(parked, Some(ParkReason::WrongPlug { .. })) && is_on
}

/// Whether a person's abort waits for a call, or a Job, to end.
fn aborts(draft: &Draft<'_>) -> bool {
    matches!(draft.record.request, Some(Request::Abort | Request::AbortLeaveOff))
}

/// Whether what is being released needs no better proof. One that covers a part, or a machine that dumps and is
/// to be cut yet, leaves the rest to whoever says that the machine is off.
fn releases_everything(draft: &Draft<'_>) -> bool {
    let proof = draft.record.proof.as_ref().filter(|_| draft.record.phase == Phase::Releasing);
    let dumps = draft.policy.kdump_releases;
    proof.is_some_and(|proof| Cover { grade: proof.grade, dumps }.allows_taint())
}

fn take_end(draft: &mut Draft<'_>, op: crate::OpId, end: End) -> Taken {
    let unknown = end == End::Indeterminate;
    let answered = matches!(end, End::Succeeded { .. });
    if !draft.record.close(draft.plan, op, end, draft.now) {
        return ignore(draft, "this call's end is known already");
    }
    let ended = draft.record.operations.iter().find(|one| one.id == op);
    let monitor = ended.is_some_and(|one| one.action == Action::Monitor);
    let effect = ended.is_some_and(crate::Operation::is_effect);
    let method = ended.and_then(|one| draft.plan.method(one.method));
    let is_power = method.is_some_and(crate::Method::switches_power);
    if answered && !monitor && is_what_failed(&draft.record, op) {
        draft.record.unreachable_at = None;
    }
    if unknown && effect {
        draft.notice(Notice::Indeterminate { op });
    }
    if effect && is_power {
        draft.record.baseline = None;
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
fn disown(draft: &mut Draft<'_>) {
    let open = draft.record.in_flight().map(|operation| operation.id);
    if let Some(op) = open {
        take_end(draft, op, foreign_end());
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
fn advance(draft: &mut Draft<'_>) {
    for _ in 0..PHASES_PER_STEP_MAX {
        if draft.record.in_flight().is_some() {
            break;
        }
        let flow = match people::take_request(draft) {
            Some(flow) => flow,
            None => leave::make_way(draft).unwrap_or_else(|| proceed(draft)),
        };
        match flow {
            Flow::Stay => break,
            Flow::Go(phase) => draft.enter(phase),
        }
    }
    if guard(Bug::OldLeave, draft.record.in_flight().is_some_and(Operation::cuts)) {
        // What speaks against it may come while its session is slow, and wakes nobody.
        draft.look_in(LOOK_EVERY);
    }
    return_idle_slot(draft);
    keep_marks(draft);
}

fn proceed(draft: &mut Draft<'_>) -> Flow {
    draft.learn_boot();
    let watches = watches_cuts(draft);
    if watches && let Some(flow) = cut::watch(draft).or_else(|| cut::read_overdue(draft)) {
        return flow;
    }
    let flow = work(draft);
    let is_idle =
        matches!(flow, Flow::Stay) && draft.record.in_flight().is_none() && !draft.asks_to_look();
    let watches = watches || matches!(draft.record.phase, Phase::AwaitingDevice | Phase::Parked);
    if is_idle && watches {
        return cut::read_due(draft).unwrap_or(flow);
    }
    flow
}

/// The next thing of the phase itself.
fn work(draft: &mut Draft<'_>) -> Flow {
    match draft.record.phase {
        Phase::Waiting => waiting::waiting(draft),
        Phase::Isolating => isolating::isolating(draft),
        Phase::Remedying => remedying::remedying(draft),
        Phase::AwaitingPower => waiting::awaiting_power(draft),
        Phase::ReadingIdentity => power::reading_identity(draft),
        Phase::PoweringOff => power::powering_off(draft),
        Phase::VerifyingOff => verifying::verifying_off(draft),
        Phase::Releasing => releasing::releasing(draft),
        Phase::Restoring => way_back::restoring(draft),
        Phase::Untainting => way_back::untainting(draft),
        Phase::PoweringOn => way_back::powering_on(draft),
        Phase::AwaitingHealthy => recovering::awaiting_healthy(draft),
        Phase::Recovering => recovering::recovering(draft),
        Phase::AwaitingDevice => pauses::awaiting_device(draft),
        Phase::Backoff => pauses::backoff(draft),
        Phase::Parked => pauses::parked(draft),
        Phase::Final(_) => Flow::Stay,
    }
}

/// Whether cuts are read before the phase does its own work.
fn watches_cuts(draft: &Draft<'_>) -> bool {
    match draft.record.phase {
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
            draft.record.proof.as_ref().is_some_and(|proof| cut::needs_earlier_cuts(proof.grade))
        }
        // A cut may have to stand for a while before it is given back.
        Phase::Restoring | Phase::Recovering | Phase::Untainting | Phase::PoweringOn => {
            !standing::is_on_its_way_back(draft) && !is_seeded(Bug::WaitingCutNotRead)
        }
        // While one cut is made, the others are read. This phase itself makes an undone one again.
        Phase::Isolating => {
            let machine = draft.seen().and_then(View::machine);
            guard(Bug::IsolatingUnwatched, !cut::is_undone(draft, machine))
        }
        Phase::Final(_) => false,
    }
}

/// A19: a slot is held until the node is well, so that one machine at a time is missing and not only
/// switched. Whoever waits for a person or a device holds none: one dead device must not keep every
/// other node from being fenced; nor does a machine that takes longer than machines may.
fn return_idle_slot(draft: &mut Draft<'_>) {
    let idle = match draft.record.phase {
        Phase::AwaitingDevice | Phase::Recovering | Phase::Parked | Phase::Final(_) => true,
        Phase::AwaitingHealthy => {
            let until = draft.record.entered_at.after(recovering::patience(draft));
            draft.now >= until || is_seeded(Bug::SlotReturnedEarly)
        }
        Phase::AwaitingPower => waiting::lacks_approval(draft) || is_kept_idle(draft),
        Phase::Waiting | Phase::Isolating | Phase::ReadingIdentity | Phase::PoweringOff => {
            is_kept_idle(draft)
        }
        Phase::Releasing | Phase::Restoring | Phase::Untainting | Phase::PoweringOn => {
            is_seeded(Bug::SlotReturnedEarly)
        }
        Phase::Remedying => {
            cluster_actions::awaits_proof(draft)
                || draft.waits_as_decided()
                || matches!(draft.remedy(), Some(Remedy::Cluster(_))) && is_kept_idle(draft)
        }
        Phase::VerifyingOff | Phase::Backoff => false,
    };
    if idle && draft.holds_slot() {
        draft.rule(Rule::A19);
        draft.record.slot = Slot::Free;
        draft.effect(Effect::ReturnSlot);
    }
}

/// Something keeps the machine from being cut, and none of it is off: a person may take days, and so
/// may whatever speaks against this node alone before anything was done to it.
fn is_kept_idle(draft: &Draft<'_>) -> bool {
    let waits = draft.record.phase == Phase::Waiting;
    let is_kept =
        |view: &View| view.gate.is_kept_by_a_person() || (waits && leave::is_withheld(draft, view));
    draft.seen().is_some_and(is_kept)
        && draft.record.powered_off_by_us(draft.plan, draft.now).is_empty()
        && draft.record.in_flight().is_none()
}

/// Puts our marks again if somebody took them off while they are needed, and takes off the out-of-service
/// taint, whoever's record put it, where nothing is being released behind a proof that allows it.
fn keep_marks(draft: &mut Draft<'_>) {
    if matches!(draft.record.phase, Phase::Recovering | Phase::Final(_)) {
        return;
    }
    let is_in_order = draft.record.phase == Phase::Releasing && releases_everything(draft);
    if draft.seen().is_none() && draft.record.marks.out_of_service && !is_in_order {
        draft.effect(Effect::Look);
    }
    let Some(node) = draft.seen().and_then(|view| draft.node(view)) else { return };
    if guard(Bug::TaintOutlives, node.out_of_service_by_us && !is_in_order) {
        draft.rule(Rule::P2);
        draft.record.marks.out_of_service = false;
        draft.effect(Effect::LiftOutOfService);
    }
    if draft.record.marks.quarantine && !node.quarantined {
        draft.effect(Effect::Quarantine);
    }
    if draft.record.marks.cordon && !node.cordoned {
        draft.effect(Effect::Cordon);
    }
}
