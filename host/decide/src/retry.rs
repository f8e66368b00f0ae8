//! What comes after something failed: another try, another pass, a silent device, a person.

use alloc::string::{String, ToString as _};

use crate::bug::{Bug, guard, is_seeded};
use crate::decided::WHY_MAX;
use crate::draft::{Draft, Flow};
use crate::standing::still_cut;
use crate::{
    Action, End, FailureKind, Goal, Grade, JobRun, MethodIndex, Notice, Operation, ParkReason,
    Parked, Phase, PlugState, Record, Remedy, Rule, Span,
};

/// Why an outlet was not switched.
const NOT_VERIFIED: &str = "its wiring was never verified, so it was not switched";

/// Another try of the step after a pause, if one is left.
pub(crate) fn retry(draft: &mut Draft<'_>, resume: Phase) -> Option<Flow> {
    if guard(Bug::TriesUncounted, draft.record.retries >= draft.policy.retries) {
        return None;
    }
    draft.rule(Rule::A7);
    draft.record.retries = draft.record.retries.saturating_add(1);
    draft.record.attempt = draft.record.attempt.saturating_add(1);
    draft.record.resume = Some(resume);
    draft.record.forget_identities();
    let retry = draft.record.retries;
    draft.notice(Notice::Retrying { retry, of: draft.policy.retries });
    Some(Flow::Go(Phase::Backoff))
}

/// How long to pause before the present retry.
pub(crate) fn pause(draft: &Draft<'_>) -> Span {
    let doublings = draft.record.retries.saturating_sub(1).min(PAUSE_DOUBLINGS_MAX);
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    draft.policy.backoff.times(factor).min(crate::BACKOFF_MAX)
}

/// Beyond this the longest pause is reached from any sensible first one.
const PAUSE_DOUBLINGS_MAX: u32 = 16;

/// Gives up on a method and goes on with the next one.
pub(crate) fn give_up(draft: &mut Draft<'_>, method: MethodIndex) {
    draft.record.retries = 0;
    draft.record.attempt = draft.record.attempt.saturating_add(1);
    if !draft.record.failed.contains(&method) {
        draft.record.failed.push(method);
    }
    draft.notice(Notice::MethodFailed { method });
}

/// The step failed: another pass if one is left, else the next remedy, else a person.
pub(crate) fn fail(draft: &mut Draft<'_>, reason: ParkReason) -> Flow {
    try_again(draft).unwrap_or_else(|| give_way(draft, reason))
}

/// The same remedy once more, if a restart is left. One method is tried once where something else can be.
pub(crate) fn try_again(draft: &mut Draft<'_>) -> Option<Flow> {
    let is_over = draft.has_next() && matches!(draft.remedy(), Some(Remedy::Method(_)));
    if is_over { None } else { restart(draft) }
}

/// A11: a remedy that failed gives way to the next one, if there is one: what it cut or switched off
/// is given back, and the next one has its turn when the condition still holds a period later.
/// What may be another machine's, or lives though it should be off, is a person's; a plug whose witness reads on is
/// switched on before, as another machine may be dark.
pub(crate) fn give_way(draft: &mut Draft<'_>, reason: ParkReason) -> Flow {
    let is_harmless = matches!(
        reason,
        ParkReason::MethodFailed { .. }
            | ParkReason::OffNotVerified { .. }
            | ParkReason::WitnessReadsOn { .. }
            | ParkReason::NoProofPossible
            | ParkReason::DeviceUnreachable
            | ParkReason::NotDrained { .. }
            | ParkReason::PluginFailed { .. }
    );
    if !draft.has_next() || !is_harmless {
        let may_be_anothers = matches!(reason, ParkReason::WitnessReadsOn { .. });
        return if may_be_anothers {
            go_back(draft, Goal::Park(reason))
        } else {
            park(draft, reason)
        };
    }
    draft.rule(Rule::A11);
    note_failed(draft, &reason);
    draft.notice(Notice::RemedyFailed(reason));
    go_back(draft, Goal::BringBack)
}

/// A11: the next remedy has its turn, if there is one; before that whatever the present one's plugin still
/// decides.
pub(crate) fn climb(draft: &mut Draft<'_>) -> Option<Flow> {
    if let Some(flow) = ask_again(draft) {
        return Some(flow);
    }
    begin_remedy_step(draft, draft.record.remedy_step.saturating_add(1))?;
    begin_pass(draft);
    Some(Flow::Go(Phase::Waiting))
}

/// The remedy of this place has its turn; `None` if there is none.
fn begin_remedy_step(draft: &mut Draft<'_>, remedy_step: usize) -> Option<()> {
    let remedy = draft.plan.ladder.get(remedy_step)?.name.clone();
    draft.rule(Rule::A11);
    draft.notice(Notice::NextRemedy { remedy });
    draft.record.remedy_step = remedy_step;
    draft.record.restarts = 0;
    Some(())
}

/// A11: goes on to the next remedy that switches the machine off, at once; false where there is none, or a Job may still run
/// beside it. Pods run elsewhere while the boot that they were released from lives, and it has to end.
pub(crate) fn climb_to_an_off(draft: &mut Draft<'_>) -> bool {
    if job_left(draft).is_some() || is_seeded(Bug::OffOfLaterRemedyUnused) {
        return false;
    }
    let later =
        draft.plan.ladder.iter().enumerate().skip(draft.record.remedy_step.saturating_add(1));
    let next = later
        .filter(|(_, one)| draft.plan.takes_off(one.remedy))
        .map(|(remedy_step, _)| remedy_step)
        .next();
    next.is_some_and(|remedy_step| begin_remedy_step(draft, remedy_step).is_some())
}

/// Back to New, if a restart is left. What holds already is not done again.
pub(crate) fn restart(draft: &mut Draft<'_>) -> Option<Flow> {
    if guard(Bug::RestartsUncounted, draft.record.restarts >= draft.policy.restarts) {
        return None;
    }
    draft.rule(Rule::A7);
    draft.record.restarts = draft.record.restarts.saturating_add(1);
    let restart = draft.record.restarts;
    draft.notice(Notice::Restarting { restart });
    begin_pass(draft);
    Some(Flow::Go(Phase::Waiting))
}

/// Forgets what a new pass has to find out anew.
pub(crate) fn begin_pass(draft: &mut Draft<'_>) {
    // The snapshot stays: its left-overs keep the quarantine up in the next pass too.
    end_release(draft);
    let record = &mut draft.record;
    keep_boot(record);
    record.retries = 0;
    record.attempt = record.attempt.saturating_add(1);
    record.failed.clear();
    record.identified.clear();
    record.proof = None;
    record.baseline = None;
    record.goal = Goal::BringBack;
    record.resume = None;
    record.parked = None;
    record.gate_closed_at = None;
    record.dump_held_at = None;
    record.unreachable = None;
    record.unreachable_at = None;
}

/// Stands for a boot that ended without a name, so that every boot named later is newer.
const UNNAMED_BOOT: &str = "unnamed";

/// Keeps the boot that was fenced when its proof goes: it may have begun after the pass did.
fn keep_boot(record: &mut Record) {
    let Some(proof) = record.proof.as_ref() else { return };
    let has_ended = proof.grade == Grade::PowerOffVerified && proof.voided_at.is_none();
    let at_open = &mut record.liveness_at_open.boot_id;
    match proof.liveness.boot_id.as_str() {
        "" if has_ended && at_open.is_empty() => *at_open = UNNAMED_BOOT.to_string(),
        "" => {}
        named => *at_open = named.to_string(),
    }
}

/// Stops for a person, and says which machines may be off because of us.
pub(crate) fn park(draft: &mut Draft<'_>, reason: ParkReason) -> Flow {
    let mut powered_off_by_us = draft.record.off_or_going_off(draft.plan, draft.now);
    if is_seeded(Bug::LeftOffUntold) {
        powered_off_by_us.clear();
    }
    draft.notice(Notice::Parked(reason.clone()));
    let still_cut = still_cut(draft);
    draft.record.parked = Some(Parked { reason, at: draft.now, powered_off_by_us, still_cut });
    Flow::Go(Phase::Parked)
}

/// Takes the way back, to this goal.
pub(crate) fn go_back(draft: &mut Draft<'_>, goal: Goal) -> Flow {
    draft.record.goal = goal;
    draft.record.retries = 0;
    draft.record.failed.clear();
    Flow::Go(Phase::Restoring)
}

/// A15: the Node object is gone, or another one has its name. Nothing more is released or cut;
/// what we switched off is switched on.
pub(crate) fn node_gone(draft: &mut Draft<'_>) -> Flow {
    draft.rule(Rule::A15);
    end_release(draft);
    go_back(draft, Goal::Close(crate::FinalReason::NodeGone))
}

/// Nothing more is released in this pass.
pub(crate) fn end_release(draft: &mut Draft<'_>) {
    let now = draft.now;
    if let Some(released) = draft.record.released.as_mut() {
        released.ended_at = released.ended_at.or(Some(now));
    }
}

/// Whether a call's end says that the device could not be reached at all, took nothing in because it is
/// asked too often, or was not even asked.
pub(crate) fn unreachable(end: Option<&End>) -> bool {
    match end {
        Some(End::Failed(failure) | End::NotAttempted(failure)) => {
            matches!(
                failure.kind,
                FailureKind::Unreachable
                    | FailureKind::Timeout
                    | FailureKind::Throttled
                    | FailureKind::NotMade
            )
        }
        Some(End::Succeeded { .. } | End::Indeterminate) | None => false,
    }
}

/// A12: waits for a device that does not answer; that is no try of anything.
pub(crate) fn await_device(draft: &mut Draft<'_>, method: MethodIndex, resume: Phase) -> Flow {
    draft.rule(Rule::A12);
    let now = draft.now;
    let is_same = draft.record.unreachable == Some(method);
    draft.record.unreachable_at = draft.record.unreachable_at.filter(|_| is_same).or(Some(now));
    draft.record.unreachable = Some(method);
    draft.record.resume = Some(resume);
    draft.record.forget_identities();
    // A renewal meanwhile may have come before the machine went off.
    draft.record.baseline = None;
    let detail = last_failure(draft, |one| one.method == method);
    draft.notice(Notice::DeviceUnreachable { method, detail });
    Flow::Go(Phase::AwaitingDevice)
}

/// What the last failure among these operations says.
pub(crate) fn last_failure(
    draft: &Draft<'_>,
    is_its: impl Fn(&Operation) -> bool,
) -> Option<String> {
    draft.record.operations.iter().rev().find_map(|one| match &one.end {
        Some(End::Failed(failure) | End::NotAttempted(failure)) if is_its(one) => {
            Some(failure.detail.clone())
        }
        Some(
            End::Failed(_) | End::NotAttempted(_) | End::Succeeded { .. } | End::Indeterminate,
        )
        | None => None,
    })
}

/// What the last failure of a method, or of its witness, says, for the reason to park.
pub(crate) fn method_failed(draft: &Draft<'_>, method: MethodIndex) -> ParkReason {
    let witness = draft.plan.method(method).and_then(|method| method.witness);
    let failure = last_failure(draft, |one| one.method == method || Some(one.method) == witness);
    let name = draft.plan.method(method).map(|method| method.name.clone());
    let is_power = draft.plan.method(method).is_some_and(crate::Method::switches_power);
    let detail = match failure {
        Some(detail) => detail,
        None if draft.plan.is_unverified(method) && is_power => NOT_VERIFIED.to_string(),
        None if draft.record.reads_off(method) => "the machine is off".to_string(),
        None => String::new(),
    };
    ParkReason::MethodFailed { method: name.unwrap_or_default(), detail }
}

pub(crate) fn void(draft: &mut Draft<'_>) {
    let now = draft.now;
    if let Some(proof) = draft.record.proof.as_mut() {
        proof.voided_at = proof.voided_at.or(Some(now));
    }
}

/// The plugin is asked again where it may be: what it decided last has ended. `None` where another remedy of
/// the ladder, or a person, has the next turn.
pub(crate) fn ask_again(draft: &mut Draft<'_>) -> Option<Flow> {
    if !draft.may_ask_again() {
        return None;
    }
    let now = draft.now;
    let remedy = name(draft);
    if let Some(open) = draft.record.deciding_mut().filter(|open| open.choice.is_some()) {
        open.ended_at = Some(now);
        draft.notice(Notice::AskingAgain { remedy });
    }
    begin_pass(draft);
    Some(Flow::Go(Phase::Waiting))
}

/// What was decided did not come about.
pub(crate) fn note_failed(draft: &mut Draft<'_>, reason: &ParkReason) {
    let why: String = reason.found().chars().take(WHY_MAX).collect();
    if let Some(open) = draft.record.deciding_mut().filter(|open| open.choice.is_some()) {
        open.failed = Some(why);
    }
}

/// The number of the Job that may still go on.
pub(crate) fn job_left(draft: &Draft<'_>) -> Option<u32> {
    let goes_on = |job: &&JobRun| guard(Bug::JobOutlives, job.end.is_none());
    Some(draft.record.jobs.last().filter(goes_on)?.number)
}

/// What is said when the step has failed: which two devices contradict each other, how often it was tried, or what was
/// in the way.
pub(crate) fn not_verified(draft: &Draft<'_>) -> ParkReason {
    if let Some(reason) = witness_reads_on(draft) {
        return reason;
    }
    match draft.record.offs(draft.plan) {
        0 => draft.record.failed.first().map_or(ParkReason::NoProofPossible, |method| {
            crate::retry::method_failed(draft, *method)
        }),
        tries => ParkReason::OffNotVerified { tries },
    }
}

/// A plug that we switched off and that reads off, and whose witness read on after that.
pub(crate) fn witness_reads_on(draft: &Draft<'_>) -> Option<ParkReason> {
    draft.plan.power_methods().find_map(|index| {
        let method = draft.plan.method(index)?;
        let witness = method.witness?;
        let off = draft.record.last_effect(index).filter(|effect| effect.action == Action::Off)?;
        let read = draft.record.last_read(witness).filter(|read| read.id > off.id)?;
        let is_on = read.state() == Some(PlugState::On);
        (draft.record.reads_off(index) && is_on).then(|| ParkReason::WitnessReadsOn {
            method: method.name.clone(),
            witness: draft.plan.method(witness).map(|one| one.name.clone()).unwrap_or_default(),
        })
    })
}

pub(crate) fn name(draft: &Draft<'_>) -> String {
    let remedy_step = draft.plan.ladder.get(draft.record.remedy_step);
    remedy_step.map(|remedy_step| remedy_step.name.clone()).unwrap_or_default()
}
