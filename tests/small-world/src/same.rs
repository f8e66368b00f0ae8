//! When two records are one: what only counts on (the time, the numbers of operations and tries,
//! the signs of life) is brought into its simplest form, in which it compares as before.
//!
//! What no decision reads is left out, and a time that is further back than any decision asks is
//! long ago. A test plays runs on simplest forms and on whole records, and sees that they go the
//! same way.

use node_remedy_decide::{
    Action, End, Evidence, FOREIGN_CALL_MAX, Goal, LOOK_EVERY, Liveness, OpId, Operation,
    PARKED_LOOK_EVERY, PROBE_EVERY, PROOF_READ_AGE_MAX, ParkReason, Phase, PlugState,
    ROUND_PAUSES_MAX, Record, Span, Time, WRITE_LATE_MAX,
};

use crate::world::Pid;

/// Now, in every simplest form.
pub const NOW: Time = Time(10_000_000);
/// The last sign of life, in every simplest form.
pub const LIFE: Time = Time(100);
/// The last boot reported, in every simplest form.
pub const BOOT: u64 = 100;

/// Further back than any decision asks.
const LONG_AGO: Time = Time(NOW.0 - 200_000);
/// So is this, and still later than anything that was begun long ago can have had its effect.
const OLD_READ: Time = Time(NOW.0 - 100_000);
/// The longest time-out of the world's policy.
pub const TIME_OUT_MAX: Span = Span::seconds(10);

/// How far back the beginning of a read under way is asked for: by whoever was paused over it, and
/// only beside a command that could land until then.
const OPEN_READ_MAX: Span = Span::seconds(45);
/// How far back the end of such a command is: early enough for that read to come after it settled.
const READ_AROUND_MAX: Span = Span::seconds(66);
/// As many reads as the journal keeps, beside those that a proof names.
const READS_KEPT: usize = 2;
/// A name that no process has: that of one that died.
const DEAD: &str = "dead";

/// What happened since a record was in its simplest form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Since {
    /// So much time passed.
    pub ms: u64,
    /// The kubelet reported.
    pub reported: bool,
    /// It reported another boot.
    pub rebooted: bool,
    /// This process died: whoever has its name now is another.
    pub died: Option<Pid>,
    /// The processes have changed places.
    pub swapped: bool,
    /// Epochs count from so much later.
    pub epochs: u8,
}

/// The simplest form of a record.
pub fn simplest(mut record: Record, since: Since) -> Record {
    let now = Time(NOW.0 + since.ms);
    leave_out(&mut record, now);
    number_operations(&mut record);
    rename(&mut record, since);
    let boot = BOOT + u64::from(since.rebooted);
    rank_liveness(&mut record, Time(LIFE.0 + u64::from(since.reported)), boot);
    see_from(&mut record, now);
    record
}

/// What no decision reads, or reads only as being there.
fn leave_out(record: &mut Record, now: Time) {
    record.opened_at = Time(0);
    record.first_released_at = record.first_released_at.map(|_| Time(0));
    record.partly_released_at = record.partly_released_at.map(|_| Time(0));
    let is_awaited = matches!(record.phase, Phase::AwaitingDevice | Phase::Parked);
    if !is_awaited && record.unreachable_at.is_none() {
        record.unreachable = None;
    }
    record.resume = record.resume.and_then(|phase| asked_resume(record, phase));
    if let Some(proof) = record.proof.as_mut() {
        proof.at = Time(0);
        proof.voided_at = proof.voided_at.map(|_| Time(0));
    }
    if let Some(released) = record.released.as_mut() {
        released.at = released.at.max(released.progress_at);
        released.progress_at = released.at;
        if released.ended_at.is_some() {
            released.ended_at = Some(Time(0));
            released.at = Time(0);
            released.progress_at = Time(0);
            released.sent_at = released.sent_at.map(|_| Time(0));
            released.sent = 0;
            released.left = 0;
        }
    }
    if let Some(parked) = record.parked.as_mut() {
        parked.at = Time(0);
        leave_out_tries(&mut parked.reason);
    }
    if let Goal::Park(reason) = &mut record.goal {
        leave_out_tries(reason);
    }
    if is_proven_or_past(record.phase) {
        record.baseline = None;
    }
    leave_out_operations(record, now);
}

/// Where a pausing incident goes on, and one that is parked for a silent device.
fn asked_resume(record: &Record, phase: Phase) -> Option<Phase> {
    if matches!(record.phase, Phase::AwaitingDevice | Phase::Backoff) {
        return Some(phase);
    }
    let reason = record.parked.as_ref().map(|parked| &parked.reason);
    let is_probed = record.phase == Phase::Parked && reason == Some(&ParkReason::DeviceUnreachable);
    is_probed.then_some(phase)
}

fn leave_out_tries(reason: &mut ParkReason) {
    if let ParkReason::OffNotVerified { tries } = reason {
        *tries = 0;
    }
}

/// Calls that no question asks for any more, and of the others what is never asked.
fn leave_out_operations(record: &mut Record, now: Time) {
    let kept: Vec<bool> =
        (0..record.operations.len()).map(|at| is_asked_for(record, at, now)).collect();
    let mut kept = kept.into_iter();
    record.operations.retain(|_| kept.next().unwrap_or_default());
    let operations = &record.operations;
    if let Some(Evidence::Reads(reads)) = record.proof.as_mut().map(|proof| &mut proof.by) {
        reads.retain(|read| operations.iter().any(|one| one.id == *read));
    }
    let (current, epoch) = (record.attempt, record.epoch);
    for one in &mut record.operations {
        one.attempt = u32::from(one.attempt == current);
        one.state_before = PlugState::Unknown;
        // Of a call only a young read is asked whether it was this leader's.
        let just_ended = one.ended_at.is_some_and(|at| at.is_within(ROUND_PAUSES_MAX, now));
        let is_young = one.intended_at.is_within(PROOF_READ_AGE_MAX, now) || just_ended;
        let is_asked = one.action == Action::Status && one.epoch == epoch && is_young;
        one.epoch = if is_asked { epoch } else { 0 };
    }
    record.attempt = 1;
}

/// Whether any question to the journal may have this operation in its answer.
fn is_asked_for(record: &Record, at: usize, now: Time) -> bool {
    let Some(one) = record.operations.get(at) else { return false };
    let later = || record.operations.iter().skip(at + 1).filter(|other| other.end.is_some());
    let is_last = |same: &dyn Fn(&Operation) -> bool| same(one) && !later().any(same);
    let in_phase = one.id >= record.phase_first;
    let is_last_in_phase = in_phase && is_last(&|other| other.action == one.action);
    let may_land =
        lands_until(one).is_some_and(|until| now < until || !is_read_from(record, until));
    let is_last_effect = is_last(&Operation::may_have_acted);
    let is_last_off = is_last(&|other| other.may_have_acted() && other.action == Action::Off);
    let is_present_on = one.action == Action::On && one.attempt == record.attempt;
    // What a device is awaited for is asked when it answers something.
    let has_failed = |other: &Operation| {
        let is_refused = matches!(other.end, Some(End::NotAttempted(_) | End::Failed(_)));
        other.action != Action::Monitor && is_refused
    };
    let is_awaited_for = record.unreachable_at.is_some() && is_last(&has_failed);
    // A read says something until the next effect, and until the journal forgets it.
    let is_later_read = |other: &&Operation| other.action == Action::Status;
    let is_kept = later().filter(is_later_read).count() < READS_KEPT
        || record.proof.as_ref().is_some_and(|proof| proof.by.names(one.id));
    let is_last_read =
        one.action == Action::Status && is_kept && !later().any(Operation::may_have_acted);
    one.end.is_none()
        || is_last_in_phase
        || is_awaited_for
        || may_land
        || is_last_effect
        || is_last_off
        || is_present_on
        || is_last_read
}

/// Operations count from one.
fn number_operations(record: &mut Record) {
    let ids: Vec<OpId> = record.operations.iter().map(|one| one.id).collect();
    let number = |op: OpId| {
        let before = ids.iter().filter(|id| **id < op).count();
        OpId(u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1))
    };
    for one in &mut record.operations {
        one.id = number(one.id);
    }
    record.phase_first = number(record.phase_first);
    record.next_operation = number(record.next_operation);
    if let Some(proof) = record.proof.as_mut()
        && let node_remedy_decide::Evidence::Reads(reads) = &mut proof.by
    {
        for read in reads {
            *read = number(*read);
        }
    }
}

fn rename(record: &mut Record, since: Since) {
    record.epoch = record.epoch.saturating_sub(u64::from(since.epochs));
    let own = record.operations.iter_mut().filter(|one| one.epoch != 0);
    own.for_each(|one| one.epoch = record.epoch);
    // Of a call only an `on` of unknown end is asked whose it was, and only whether ours.
    let owner = record.process.clone();
    for one in &mut record.operations {
        let is_asked = one.action == Action::On && one.end == Some(End::Indeterminate);
        let is_other = is_asked && one.process != owner;
        one.process.clear();
        one.process.push_str(if is_other { DEAD } else { &owner });
    }
    let names = record.operations.iter_mut().map(|one| &mut one.process);
    for name in names.chain([&mut record.process]) {
        let pid = Pid::BOTH.into_iter().find(|pid| pid.name() == name);
        match pid {
            Some(pid) if since.died == Some(pid) => DEAD.clone_into(name),
            Some(pid) if since.swapped => pid.other().name().clone_into(name),
            Some(_) | None => {}
        }
    }
}

/// Signs of life are compared with each other and with the last one, never subtracted.
fn rank_liveness(record: &mut Record, life: Time, boot: u64) {
    let mut all: Vec<&mut Liveness> = vec![&mut record.liveness_at_open];
    all.extend(record.baseline.as_mut().map(|one| &mut one.liveness));
    all.extend(record.proof.as_mut().map(|one| &mut one.liveness));
    let mut lives: Vec<u64> = all.iter().filter_map(|one| one.reported).map(|at| at.0).collect();
    lives.push(life.0);
    let mut boots: Vec<u64> = all.iter().filter_map(|one| one.boot_id.parse().ok()).collect();
    boots.push(boot);
    for list in [&mut lives, &mut boots] {
        list.sort_unstable();
        list.dedup();
    }
    for liveness in all {
        let later =
            |list: &[u64], one: u64| list.iter().filter(|other| **other > one).count() as u64;
        if let Some(at) = liveness.reported {
            let at = Time(LIFE.0.saturating_sub(later(&lives, at.0)));
            (liveness.lease_renewed, liveness.reported) = (Some(at), Some(at));
        }
        if let Ok(one) = liveness.boot_id.parse::<u64>() {
            liveness.boot_id = BOOT.saturating_sub(later(&boots, one)).to_string();
        }
    }
}

/// Until when a command that nobody heard the end of may have its effect.
fn lands_until(one: &Operation) -> Option<Time> {
    let is_open = one.is_effect() && one.end == Some(End::Indeterminate);
    one.ended_at.filter(|_| is_open).map(|at| at.after(FOREIGN_CALL_MAX))
}

/// Whether the last read that told anything began at this time or later.
fn is_read_from(record: &Record, from: Time) -> bool {
    let read = record.operations.iter().rev().find(|one| is_read(one));
    read.is_some_and(|one| one.intended_at >= from)
}

fn is_read(one: &Operation) -> bool {
    one.action == Action::Status && one.state().is_some()
}

/// Times are seen from now, as far back as they are asked for.
fn see_from(record: &mut Record, now: Time) {
    let seen = |at: Time, asked: Span| {
        let age = now.since(at);
        if age > asked { LONG_AGO } else { Time(NOW.0 - age.0) }
    };
    let is_read_since = |baseline: Time| {
        let read = record.operations.iter().rev().find(|one| one.action == Action::Status);
        read.is_some_and(|one| one.intended_at >= baseline)
    };
    // A baseline is before or after the last read, however long.
    let baseline_at = record.baseline.as_ref().map(|one| is_read_since(one.at));
    if let (Some(baseline), Some(is_read)) = (record.baseline.as_mut(), baseline_at) {
        baseline.at = if is_read { LONG_AGO } else { NOW };
    }
    record.entered_at = seen(record.entered_at, phase_time(record.phase));
    if let Some(released) = record.released.as_mut() {
        released.at = seen(released.at, TIME_OUT_MAX);
        released.progress_at = released.at;
        released.sent_at = released.sent_at.map(|at| seen(at, LOOK_EVERY));
    }
    record.gate_closed_at = record.gate_closed_at.map(|at| seen(at, TIME_OUT_MAX));
    record.dump_held_at = record.dump_held_at.map(|at| seen(at, TIME_OUT_MAX));
    record.unreachable_at = record.unreachable_at.map(|at| seen(at, TIME_OUT_MAX));
    // Every `on` so far was before it was given up on.
    record.on_failed.iter_mut().for_each(|one| one.at = NOW);
    let ended: Vec<Option<Time>> =
        record.operations.iter().map(|one| seen_end(record, one, now)).collect();
    let phase = record.phase;
    for (one, ended_at) in record.operations.iter_mut().zip(ended) {
        let read = one.action == Action::Status;
        one.intended_at = match now.since(one.intended_at) {
            age if read && one.end.is_none() => Time(NOW.0 - age.min(OPEN_READ_MAX).0),
            age if read && age <= call_time(phase) => Time(NOW.0 - age.0),
            _ if read => OLD_READ,
            _ => LONG_AGO,
        };
        one.ended_at = ended_at;
    }
}

/// When a call ended, as far as that is asked for.
fn seen_end(record: &Record, one: &Operation, now: Time) -> Option<Time> {
    let age = now.since(one.ended_at?);
    let asked = match one.action {
        Action::Monitor if record.phase == Phase::Parked => PARKED_LOOK_EVERY,
        Action::Monitor => PROBE_EVERY,
        Action::Status => call_time(record.phase),
        Action::Off | Action::On | Action::Reset => call_time(record.phase).min(LOOK_EVERY),
    };
    let long_ago = if one.action == Action::Status { OLD_READ } else { LONG_AGO };
    let seen = if age > asked { long_ago } else { Time(NOW.0 - age.0) };
    Some(match lands_until(one).map(|until| (until, reads_around(record, one.id, until))) {
        // It may still land.
        Some((until, _)) if now < until => Time(NOW.0 - age.0),
        Some((_, (true, true))) => Time(NOW.0 - age.min(READ_AROUND_MAX).0),
        // It cannot any more, which the last read does not know yet.
        Some((_, (true, false))) => Time(NOW.0 - FOREIGN_CALL_MAX.0),
        Some(_) => LONG_AGO,
        None => seen,
    })
}

/// Whether the last read after a command, or one under way, began before this time; and whether one
/// of them began then or later.
fn reads_around(record: &Record, op: OpId, until: Time) -> (bool, bool) {
    let later = || record.operations.iter().rev().filter(|one| one.id > op);
    let open = later().find(|one| one.action == Action::Status && one.end.is_none());
    let last = later().find(|one| is_read(one));
    let mut began = open.into_iter().chain(last).map(|one| one.intended_at >= until);
    (began.clone().any(|is_later| !is_later), began.any(|is_later| is_later))
}

/// How far back calls are asked for in this phase.
const fn call_time(phase: Phase) -> Span {
    match phase {
        Phase::VerifyingOff | Phase::Releasing => PROOF_READ_AGE_MAX,
        Phase::PoweringOn => PROBE_EVERY,
        Phase::Waiting
        | Phase::Isolating
        | Phase::AwaitingPower
        | Phase::ReadingIdentity
        | Phase::PoweringOff
        | Phase::Restoring
        | Phase::Untainting
        | Phase::Remedying
        | Phase::AwaitingHealthy
        | Phase::Recovering
        | Phase::AwaitingDevice
        | Phase::Backoff
        | Phase::Parked
        | Phase::Final(_) => LOOK_EVERY,
    }
}

/// How far back the entry into this phase is asked for.
const fn phase_time(phase: Phase) -> Span {
    match phase {
        Phase::Parked | Phase::Backoff => PARKED_LOOK_EVERY,
        Phase::VerifyingOff | Phase::AwaitingHealthy | Phase::AwaitingDevice => TIME_OUT_MAX,
        // A delete that nobody has seen done may still come.
        Phase::Untainting => WRITE_LATE_MAX,
        // Without a wait in the policy, the others go by their calls only.
        Phase::Waiting
        | Phase::Isolating
        | Phase::Remedying
        | Phase::AwaitingPower
        | Phase::ReadingIdentity
        | Phase::PoweringOff
        | Phase::Releasing
        | Phase::Restoring
        | Phase::PoweringOn
        | Phase::Recovering
        | Phase::Final(_) => Span::ZERO,
    }
}

/// Whether the verifying reads are over, so that their baseline is not asked for again.
const fn is_proven_or_past(phase: Phase) -> bool {
    match phase {
        Phase::Releasing
        | Phase::Restoring
        | Phase::Untainting
        | Phase::PoweringOn
        | Phase::AwaitingHealthy
        | Phase::Recovering
        | Phase::Parked
        | Phase::Final(_) => true,
        Phase::Waiting
        | Phase::Isolating
        | Phase::Remedying
        | Phase::AwaitingPower
        | Phase::ReadingIdentity
        | Phase::PoweringOff
        | Phase::VerifyingOff
        | Phase::AwaitingDevice
        | Phase::Backoff => false,
    }
}
