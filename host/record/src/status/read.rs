//! From a status back to the record it was written from, or why that cannot be done.
//!
//! Only what would have to be guessed is refused: fields that contradict each other, places
//! that the plan does not have, numbers out of order. Everything derived is not looked at.

use node_remedy_api::nodefence as api;
use node_remedy_api::nodefence::{NodeFenceSpec, NodeFenceStatus};
use node_remedy_api::time::Moment;
use node_remedy_config::enums::Twin as _;
use node_remedy_decide as decide;
use node_remedy_decide::{MethodIndex, OpId, Record};

use crate::status::decided;
use crate::status::fields::{BrokenRecord, broken};

/// The record that a status says; the caller parks an incident whose status is broken.
pub fn read(spec: &NodeFenceSpec, status: &NodeFenceStatus) -> Result<Record, BrokenRecord> {
    let methods = Methods { count: spec.plan.methods.len() };
    let operations = operations(status, &methods)?;
    let phase = match (status.phase, status.final_reason) {
        (api::Phase::Final, Some(reason)) => decide::Phase::Final(reason.twin()),
        (api::Phase::Final, None) => {
            return Err(broken("finalReason", "nothing", "a reason in phase Final"));
        }
        (_, Some(reason)) => {
            return Err(broken("finalReason", &reason, "nothing outside phase Final"));
        }
        (phase, None) => unfinished("phase", phase)?,
    };
    if status.phase == api::Phase::Parked && status.parked.is_none() {
        return Err(broken("parked", "nothing", "a reason in phase Parked"));
    }
    if status.phase_first_operation > status.next_operation {
        let expected = format!("at most {}", status.next_operation);
        return Err(broken("phaseFirstOperation", &status.phase_first_operation, expected));
    }
    Ok(Record {
        phase,
        entered_at: status.entered_at.twin(),
        opened_at: status.opened_at.twin(),
        attempt: status.attempt,
        phase_first: OpId(status.phase_first_operation),
        retries: status.retries,
        restarts: status.restarts,
        remedy_step: remedy_step(spec, "remedyStep", status.remedy_step)?,
        jobs: jobs(spec, status)?,
        decisions: decided::read(status, |field, found| remedy_step(spec, field, found))?,
        epoch: status.epoch,
        process: status.process.clone(),
        liveness_at_open: liveness(&status.liveness_at_open),
        baseline: status
            .baseline
            .as_ref()
            .map(|one| decide::Baseline { at: one.at.twin(), liveness: liveness(&one.liveness) }),
        next_operation: OpId(status.next_operation),
        found_off: methods.all("foundOff", &status.found_off)?,
        identified: methods.all("identified", &status.identified)?,
        failed: methods.all("failed", &status.failed)?,
        proof: status.proof.as_ref().map(|one| proof(one, &operations)).transpose()?,
        operations,
        released: status.released.as_ref().map(released).transpose()?,
        first_released_at: status.first_released_at.map(Moment::twin),
        partly_released_at: status.partly_released_at.map(Moment::twin),
        cut_off: status.cut_off.as_ref().map(cut_off),
        handed_over_at: status.handed_over_at.map(Moment::twin),
        marks: decide::Marks {
            quarantine: status.marks.quarantine,
            cordon: status.marks.cordon,
            out_of_service: status.marks.out_of_service,
        },
        slot: if status.slot_held { decide::Slot::Held } else { decide::Slot::Free },
        goal: goal(&status.goal)?,
        resume: status.resume.map(|phase| unfinished("resume", phase)).transpose()?,
        gate_closed_at: status.gate_closed_at.map(Moment::twin),
        dump_held_at: status.dump_held_at.map(Moment::twin),
        unreachable_at: status.unreachable_at.map(Moment::twin),
        unreachable: status.unreachable.map(|one| methods.one("unreachable", one)).transpose()?,
        on_failed: status
            .on_failed
            .iter()
            .map(|one| on_failure(one, &methods))
            .collect::<Result<_, _>>()?,
        parked: status.parked.as_ref().map(|one| parked(one, &methods)).transpose()?,
        aborted_at: status.aborted_at.map(Moment::twin),
        request: status.request.as_ref().map(request).transpose()?,
    })
}

/// The methods that the incident's plan has.
struct Methods {
    count: usize,
}

impl Methods {
    fn one(&self, field: &str, found: u32) -> Result<MethodIndex, BrokenRecord> {
        let index = usize::try_from(found).ok().filter(|index| *index < self.count);
        let expected = || format!("a method below {}", self.count);
        index.ok_or_else(|| broken(field, &found, expected()))
    }

    fn all(&self, field: &str, found: &[u32]) -> Result<Vec<MethodIndex>, BrokenRecord> {
        found.iter().map(|one| self.one(field, *one)).collect()
    }
}

/// A phase that an incident can be in, or go back to, without being over.
fn unfinished(field: &str, phase: api::Phase) -> Result<decide::Phase, BrokenRecord> {
    use decide::Phase as P;
    Ok(match phase {
        api::Phase::Waiting => P::Waiting,
        api::Phase::Isolating => P::Isolating,
        api::Phase::Remedying => P::Remedying,
        api::Phase::AwaitingPower => P::AwaitingPower,
        api::Phase::ReadingIdentity => P::ReadingIdentity,
        api::Phase::PoweringOff => P::PoweringOff,
        api::Phase::VerifyingOff => P::VerifyingOff,
        api::Phase::Releasing => P::Releasing,
        api::Phase::Restoring => P::Restoring,
        api::Phase::Untainting => P::Untainting,
        api::Phase::PoweringOn => P::PoweringOn,
        api::Phase::AwaitingHealthy => P::AwaitingHealthy,
        api::Phase::Recovering => P::Recovering,
        api::Phase::AwaitingDevice => P::AwaitingDevice,
        api::Phase::Backoff => P::Backoff,
        api::Phase::Parked => P::Parked,
        api::Phase::Final => return Err(broken(field, &phase, "a phase that goes on")),
    })
}

/// A place of the ladder; an incident without one has the fence alone.
fn remedy_step(spec: &NodeFenceSpec, field: &str, found: u32) -> Result<usize, BrokenRecord> {
    let count = spec.ladder.len().max(1);
    let index = usize::try_from(found).ok().filter(|index| *index < count);
    index.ok_or_else(|| broken(field, &found, format!("a remedy below {count}")))
}

/// Numbers grow: one used twice would let two Jobs look like one.
fn jobs(
    spec: &NodeFenceSpec,
    status: &NodeFenceStatus,
) -> Result<Vec<decide::JobRun>, BrokenRecord> {
    let mut last = 0;
    let mut jobs = Vec::with_capacity(status.job_runs.len());
    for (at, one) in status.job_runs.iter().enumerate() {
        let field = |name: &str| format!("jobRuns[{at}].{name}");
        if one.number <= last {
            let expected = format!("a number above the one before it ({last})");
            return Err(broken(field("number"), &one.number, expected));
        }
        last = one.number;
        jobs.push(decide::JobRun {
            number: one.number,
            remedy_step: remedy_step(spec, &field("remedyStep"), one.remedy_step)?,
            attempt: one.attempt,
            intended_at: one.intended_at.twin(),
            seen_at: one.seen_at.map(Moment::twin),
            pod: one.pod.clone(),
            stopping_at: one.stopping_at.map(Moment::twin),
            end: one.end.as_ref().map(|end| decide::JobEnd {
                at: end.at.twin(),
                outcome: end.outcome.twin(),
                detail: end.detail.clone(),
            }),
        });
    }
    Ok(jobs)
}

fn liveness(liveness: &api::Liveness) -> decide::Liveness {
    decide::Liveness {
        boot_id: liveness.boot_id.clone(),
        lease_renewed: liveness.lease_renewed.map(Moment::twin),
        reported: liveness.reported.map(Moment::twin),
    }
}

/// Numbers grow and none is to come: a number used twice would let two calls look like one.
fn operations(
    status: &NodeFenceStatus,
    methods: &Methods,
) -> Result<Vec<decide::Operation>, BrokenRecord> {
    let mut last = 0;
    let mut operations = Vec::with_capacity(status.operations.len());
    for (at, one) in status.operations.iter().enumerate() {
        let field = |name: &str| format!("operations[{at}].{name}");
        if one.id <= last || one.id >= status.next_operation {
            let expected = format!(
                "a number above the one before it ({last}) and below nextOperation ({})",
                status.next_operation
            );
            return Err(broken(field("id"), &one.id, expected));
        }
        last = one.id;
        if one.end.is_some() != one.ended_at.is_some() {
            let found = one.ended_at.map(|at| at.to_string());
            return Err(broken(field("endedAt"), &found, "a time exactly where there is an end"));
        }
        operations.push(decide::Operation {
            id: OpId(one.id),
            method: methods.one(&field("method"), one.method)?,
            action: one.action.twin(),
            attempt: one.attempt,
            epoch: one.epoch,
            process: one.process.clone(),
            intended_at: one.intended_at.twin(),
            state_before: one.state_before.twin(),
            end: one.end.as_ref().map(|one| end(&field("end"), one)).transpose()?,
            ended_at: one.ended_at.map(Moment::twin),
        });
    }
    Ok(operations)
}

fn end(field: &str, end: &api::End) -> Result<decide::End, BrokenRecord> {
    use api::EndKind as Kind;
    let failure =
        |kind: api::FailureKind| decide::Failure { kind: kind.twin(), detail: end.detail.clone() };
    let bare = end.identity.is_empty();
    Ok(match (end.kind, end.state, end.failure_kind) {
        (Kind::Succeeded, Some(state), None) => decide::End::Succeeded {
            state: state.twin(),
            identity: end
                .identity
                .iter()
                .map(|field| (field.name.clone(), field.value.clone()))
                .collect(),
        },
        (Kind::Failed, None, Some(kind)) if bare => decide::End::Failed(failure(kind)),
        (Kind::NotAttempted, None, Some(kind)) if bare => decide::End::NotAttempted(failure(kind)),
        (Kind::Indeterminate, None, None) if bare => decide::End::Indeterminate,
        (Kind::Succeeded | Kind::Failed | Kind::NotAttempted | Kind::Indeterminate, _, _) => {
            let expected = "a state exactly where the call succeeded, and a failureKind exactly \
                            where it failed or was not attempted";
            return Err(broken(field, end, expected));
        }
    })
}

/// A proof by reads rests on reads of this journal; without them it is nobody's word.
fn proof(
    proof: &api::Proof,
    operations: &[decide::Operation],
) -> Result<decide::Proof, BrokenRecord> {
    let by = match (&proof.by.reads, &proof.by.person, &proof.by.report) {
        (Some(reads), None, None) => {
            let reads: Vec<OpId> = reads.iter().map(|id| OpId(*id)).collect();
            let is_read = |id: &OpId| {
                let mut operations = operations.iter();
                operations.any(|one| one.id == *id && one.action == decide::Action::Status)
            };
            if let Some(id) = reads.iter().find(|id| !is_read(id)) {
                return Err(broken("proof.by.reads", &id.0, "a status of the journal"));
            }
            decide::Evidence::Reads(reads)
        }
        (None, Some(name), None) => decide::Evidence::Person(name.clone()),
        (None, None, Some(text)) => decide::Evidence::Report(text.clone()),
        (None, None, None) | (Some(_), _, _) | (_, Some(_), Some(_)) => {
            return Err(broken("proof.by", &proof.by, "exactly one of reads, person and report"));
        }
    };
    Ok(decide::Proof {
        grade: proof.grade.twin(),
        at: proof.at.twin(),
        by,
        liveness: liveness(&proof.liveness),
        voided_at: proof.voided_at.map(Moment::twin),
    })
}

fn released(released: &api::Released) -> Result<decide::Released, BrokenRecord> {
    let pods: Vec<String> = released.pods.iter().map(|pod| pod.uid.clone()).collect();
    let attachments: Vec<String> = released.attachments.iter().map(|one| one.uid.clone()).collect();
    // A delete without a UID would take whatever bears the name.
    for (field, uids) in [("released.pods", &pods), ("released.attachments", &attachments)] {
        if uids.iter().any(String::is_empty) {
            return Err(broken(field, "", "a uid for each"));
        }
    }
    Ok(decide::Released {
        at: released.at.twin(),
        pods,
        attachments,
        everything: released.everything,
        left: released.left,
        progress_at: released.progress_at.twin(),
        sent_at: released.sent_at.map(Moment::twin),
        sent: released.sent,
        ended_at: released.ended_at.map(Moment::twin),
    })
}

fn cut_off(before: &api::CutOff) -> decide::CutOff {
    let api::CutOff { pods, attachments, untold } = before.clone();
    decide::CutOff { pods, attachments, untold }
}

fn goal(goal: &api::Goal) -> Result<decide::Goal, BrokenRecord> {
    use api::GoalKind as Kind;
    Ok(match (goal.kind, goal.final_reason, &goal.park) {
        (Kind::BringBack, None, None) => decide::Goal::BringBack,
        (Kind::Withdraw, None, None) => decide::Goal::Withdraw,
        (Kind::Close, Some(reason), None) => decide::Goal::Close(reason.twin()),
        (Kind::Park, None, Some(reason)) => decide::Goal::Park(park_reason("goal.park", reason)?),
        (Kind::BringBack | Kind::Withdraw | Kind::Close | Kind::Park, _, _) => {
            let expected = "a finalReason exactly for close, and a reason exactly for park";
            return Err(broken("goal", goal, expected));
        }
    })
}

fn park_reason(field: &str, why: &api::ParkReason) -> Result<decide::ParkReason, BrokenRecord> {
    use api::ParkCode as Word;
    use decide::ParkReason as Why;
    // The reason's own data, taken out; what is left over belongs to no reason or another one.
    let mut rest = why.clone();
    let missing = || broken(field, why, "what the reason speaks of");
    let reason = match why.reason {
        Word::WrongMachine => Why::WrongMachine {
            expected: rest.expected.take().ok_or_else(missing)?,
            found: rest.found.take().ok_or_else(missing)?,
        },
        Word::OffNotVerified => {
            Why::OffNotVerified { tries: rest.tries.take().ok_or_else(missing)? }
        }
        Word::WitnessReadsOn => Why::WitnessReadsOn {
            method: rest.method.take().ok_or_else(missing)?,
            witness: rest.detail.take().ok_or_else(missing)?,
        },
        Word::WrongPlug => Why::WrongPlug { neighbour: rest.neighbour.take().ok_or_else(missing)? },
        Word::MethodFailed => Why::MethodFailed {
            method: rest.method.take().ok_or_else(missing)?,
            detail: rest.detail.take().ok_or_else(missing)?,
        },
        Word::RemediesExhausted => Why::RemediesExhausted {
            remedy: rest.method.take().ok_or_else(missing)?,
            detail: rest.detail.take().ok_or_else(missing)?,
        },
        Word::JobStuck => Why::JobStuck {
            remedy: rest.method.take().ok_or_else(missing)?,
            // An older record does not say.
            why: rest.detail.take().unwrap_or_else(|| "did not end".to_owned()),
        },
        Word::PluginFailed => Why::PluginFailed {
            remedy: rest.method.take().ok_or_else(missing)?,
            why: rest.detail.take().ok_or_else(missing)?,
        },
        Word::CutUndone => Why::CutUndone {
            method: rest.method.take().ok_or_else(missing)?,
            failure: rest.detail.take(),
        },
        Word::MachineDisputed => {
            Why::MachineDisputed { why: rest.detail.take().ok_or_else(missing)? }
        }
        Word::LeftAlone => Why::LeftAlone { word: rest.detail.take().ok_or_else(missing)? },
        Word::NotDrained => Why::NotDrained { left: rest.detail.take().ok_or_else(missing)? },
        Word::NoIdentity => Why::NoIdentity,
        Word::AliveThoughOff => Why::AliveThoughOff,
        Word::OnFailed => Why::OnFailed,
        Word::RestoreFailed => Why::RestoreFailed,
        Word::DeviceUnreachable => Why::DeviceUnreachable,
        Word::StillCut => Why::StillCut,
        Word::GateClosed => Why::GateClosed,
        Word::OffBeforeUs => Why::OffBeforeUs,
        Word::NotHealthy => Why::NotHealthy,
        Word::NoProofPossible => Why::NoProofPossible,
        Word::Isolated => Why::Isolated,
        Word::SameBootAfterRelease => Why::SameBootAfterRelease,
        Word::Aborted => Why::Aborted,
        Word::BrokenRecord => Why::BrokenRecord,
    };
    let none = api::ParkReason {
        reason: why.reason,
        expected: None,
        found: None,
        tries: None,
        method: None,
        detail: None,
        neighbour: None,
    };
    if rest != none {
        return Err(broken(field, why, "only what the reason speaks of"));
    }
    Ok(reason)
}

fn parked(parked: &api::Parked, methods: &Methods) -> Result<decide::Parked, BrokenRecord> {
    Ok(decide::Parked {
        reason: park_reason("parked", &parked.why)?,
        at: parked.at.twin(),
        powered_off_by_us: methods.all("parked.poweredOffByUs", &parked.powered_off_by_us)?,
        still_cut: methods.all("parked.stillCut", &parked.still_cut)?,
    })
}

fn on_failure(
    failed: &api::OnFailure,
    methods: &Methods,
) -> Result<decide::OnFailure, BrokenRecord> {
    let method = methods.one("onFailed", failed.method)?;
    Ok(decide::OnFailure { method, at: failed.at.twin(), kind: failed.kind.twin() })
}

fn request(request: &api::Request) -> Result<decide::Request, BrokenRecord> {
    use api::RequestKind as Kind;
    Ok(match (request.kind, &request.by, &request.boot_id) {
        (Kind::Retry, None, None) => decide::Request::Retry,
        (Kind::Abort, None, None) => decide::Request::Abort,
        (Kind::AbortLeaveOff, None, None) => decide::Request::AbortLeaveOff,
        (Kind::ConfirmOff, Some(by), Some(boot_id)) => {
            decide::Request::ConfirmOff { by: by.clone(), boot_id: boot_id.clone() }
        }
        (Kind::Retry | Kind::Abort | Kind::AbortLeaveOff | Kind::ConfirmOff, _, _) => {
            let expected = "by and bootID exactly for confirmOff";
            return Err(broken("request", request, expected));
        }
    })
}
