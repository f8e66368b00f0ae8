//! From a record to a status, with what people and tools want to see beside it.

use std::fmt::Display;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::{NodeFence, NodeFenceStatus};
use node_remedy_api::{limits, nodefence as api};
use node_remedy_config::enums::Twin as _;
use node_remedy_decide as decide;
use node_remedy_decide::bug::{Bug, is_seeded};
use node_remedy_decide::{MethodIndex, Plan, Record, Time};
use node_remedy_observe::live::Facts;
use node_remedy_runtime::names::job_name;

use crate::sentences::by_name;
use crate::status::fields::{NAME_MAX, SENTENCE_MAX, cut, place};
use crate::status::{conditions, decided};

/// Characters of a device's or a person's word; the CRD takes no more.
const WORD_MAX: usize = 1024;

/// Characters of an identity field's name; the CRD takes no more.
const FIELD_MAX: usize = 64;
/// Identity fields of one answer; the CRD takes no more.
const IDENTITY_MAX: usize = 16;
/// Characters of a line of history; the CRD takes no more.
const WHY_MAX: usize = 1024;

/// The status that says `record`; names of released objects come from `facts` or from before.
///
/// Texts that others wrote are cut to what the CRD takes: a device must not be able to make a
/// record unwritable. What is cut matches nothing any more, so a cut can only stop an act.
pub fn write(
    record: &Record,
    nodefence: &NodeFence,
    plan: &Plan,
    facts: Option<&Facts>,
    now: Time,
) -> NodeFenceStatus {
    let before = nodefence.status.as_ref();
    let job_runs = jobs(&record.jobs, &nodefence.name_any());
    let mut status = NodeFenceStatus {
        node: nodefence.spec.node.name.clone(),
        step: record.phase.step().twin(),
        status: record.phase.state().twin(),
        phase: phase(record.phase),
        final_reason: final_reason(record.phase),
        entered_at: record.entered_at.twin(),
        opened_at: record.opened_at.twin(),
        attempt: record.attempt,
        phase_first_operation: record.phase_first.0,
        retries: record.retries,
        restarts: record.restarts,
        remedy_step: place(record.remedy_step),
        jobs: job_runs.iter().map(|job| job.name.clone()).collect(),
        job_runs,
        decisions: decided::write(&record.decisions),
        epoch: record.epoch,
        process: record.process.clone(),
        liveness_at_open: liveness(&record.liveness_at_open),
        baseline: record
            .baseline
            .as_ref()
            .map(|one| api::Baseline { at: one.at.twin(), liveness: liveness(&one.liveness) }),
        operations: record.operations.iter().map(|one| operation(one, nodefence, plan)).collect(),
        next_operation: record.next_operation.0,
        found_off: places(&record.found_off),
        identified: places(&record.identified),
        failed: places(&record.failed),
        proof: record.proof.as_ref().map(proof),
        released: record.released.as_ref().map(|one| released(one, &Named { facts, before })),
        first_released_at: record.first_released_at.map(Time::twin),
        partly_released_at: record.partly_released_at.map(Time::twin),
        cut_off: record.cut_off.as_ref().map(cut_off),
        handed_over_at: record.handed_over_at.map(Time::twin),
        marks: api::Marks {
            quarantine: record.marks.quarantine,
            cordon: record.marks.cordon,
            out_of_service: record.marks.out_of_service,
        },
        slot_held: record.slot == decide::Slot::Held,
        goal: goal(&record.goal),
        resume: record.resume.map(phase),
        gate_closed_at: record.gate_closed_at.map(Time::twin),
        dump_held_at: record.dump_held_at.map(Time::twin),
        unreachable_at: record.unreachable_at.map(Time::twin),
        unreachable: record.unreachable.map(place),
        on_failed: record.on_failed.iter().map(on_failure).collect(),
        parked: record.parked.as_ref().map(|one| parked(one, record.marks, nodefence, plan)),
        aborted_at: record.aborted_at.map(Time::twin),
        request: record.request.as_ref().map(request),
        conditions: Vec::new(),
        history: Vec::new(),
    };
    status.history = history(&status, before);
    status.conditions = conditions::of(&status, before, now.twin());
    status
}

/// The status of an incident whose own status cannot be read: everything in it as it stands, but
/// parked. It is as unreadable as before, so nothing goes on until a person has looked.
pub fn park(
    broken: &NodeFenceStatus,
    nodefence: &str,
    why: &impl Display,
    now: Time,
) -> NodeFenceStatus {
    let is_parked = broken.phase == api::Phase::Parked
        && broken.parked.as_ref().is_some_and(|one| one.why.reason == api::ParkCode::BrokenRecord);
    if is_parked {
        return broken.clone();
    }
    // Nothing is known for sure: every plug that was ever told to go off may be off.
    let offs = broken.operations.iter().filter(|one| one.action == api::Action::Off);
    let mut powered_off_by_us: Vec<u32> = offs.clone().map(|one| one.method).collect();
    powered_off_by_us.sort_unstable();
    powered_off_by_us.dedup();
    let mut plugs: Vec<String> = offs.map(|one| plug_name(&one.plug, &one.device)).collect();
    plugs.sort_unstable();
    plugs.dedup();
    let phase = decide::Phase::Parked;
    let (_, next) = sentences(&decide::ParkReason::BrokenRecord, (nodefence, &broken.node));
    let mut status = NodeFenceStatus {
        step: phase.step().twin(),
        status: phase.state().twin(),
        phase: api::Phase::Parked,
        final_reason: None,
        entered_at: now.twin(),
        // A19: it keeps nobody else from being remedied.
        slot_held: false,
        parked: Some(api::Parked {
            why: park_reason(&decide::ParkReason::BrokenRecord),
            at: now.twin(),
            powered_off_by_us,
            plugs,
            still_cut: Vec::new(),
            sentence: cut(&format!("the record contradicts itself: {why}"), SENTENCE_MAX),
            next,
        }),
        ..broken.clone()
    };
    status.history = history(&status, Some(broken));
    status.conditions = conditions::of(&status, Some(broken), now.twin());
    status
}

fn phase(phase: decide::Phase) -> api::Phase {
    use decide::Phase as P;
    match phase {
        P::Waiting => api::Phase::Waiting,
        P::Isolating => api::Phase::Isolating,
        P::Remedying => api::Phase::Remedying,
        P::AwaitingPower => api::Phase::AwaitingPower,
        P::ReadingIdentity => api::Phase::ReadingIdentity,
        P::PoweringOff => api::Phase::PoweringOff,
        P::VerifyingOff => api::Phase::VerifyingOff,
        P::Releasing => api::Phase::Releasing,
        P::Restoring => api::Phase::Restoring,
        P::Untainting => api::Phase::Untainting,
        P::PoweringOn => api::Phase::PoweringOn,
        P::AwaitingHealthy => api::Phase::AwaitingHealthy,
        P::Recovering => api::Phase::Recovering,
        P::AwaitingDevice => api::Phase::AwaitingDevice,
        P::Backoff => api::Phase::Backoff,
        P::Parked => api::Phase::Parked,
        P::Final(_) => api::Phase::Final,
    }
}

fn final_reason(phase: decide::Phase) -> Option<api::FinalReason> {
    if let decide::Phase::Final(reason) = phase { Some(reason.twin()) } else { None }
}

fn liveness(liveness: &decide::Liveness) -> api::Liveness {
    api::Liveness {
        boot_id: liveness.boot_id.clone(),
        lease_renewed: liveness.lease_renewed.map(Time::twin),
        reported: liveness.reported.map(Time::twin),
    }
}

fn operation(operation: &decide::Operation, nodefence: &NodeFence, plan: &Plan) -> api::Operation {
    let method = plan.method(operation.method);
    let text = |of: fn(&decide::Method) -> &String| method.map(of).cloned().unwrap_or_default();
    api::Operation {
        id: operation.id.0,
        method: place(operation.method),
        name: text(|method| &method.name),
        plug: text(|method| &method.plug),
        device: text(|method| &method.device),
        action: operation.action.twin(),
        attempt: operation.attempt,
        epoch: operation.epoch,
        process: operation.process.clone(),
        intended_at: operation.intended_at.twin(),
        state_before: operation.state_before.twin(),
        end: operation.end.as_ref().map(end),
        ended_at: operation.ended_at.map(Time::twin),
        digest: component(nodefence, operation.method).to_owned(),
    }
}

/// sha256 of the component that a method calls: an incident keeps to the one that it began with.
pub(crate) fn component(nodefence: &NodeFence, method: MethodIndex) -> &str {
    let method = nodefence.spec.plan.methods.get(method);
    method.and_then(|method| method.facts.as_ref()).map_or("", |facts| &facts.digest)
}

fn end(end: &decide::End) -> api::End {
    let failed = |kind, failure: &decide::Failure| api::End {
        kind,
        state: None,
        identity: Vec::new(),
        failure_kind: Some(failure.kind.twin()),
        detail: cut(&failure.detail, SENTENCE_MAX),
    };
    match end {
        decide::End::Succeeded { state, identity } => api::End {
            kind: api::EndKind::Succeeded,
            state: Some(state.twin()),
            identity: identity
                .iter()
                .take(IDENTITY_MAX)
                .map(|(name, value)| api::IdentityField {
                    name: cut(name, FIELD_MAX),
                    value: cut(value, WORD_MAX),
                })
                .collect(),
            failure_kind: None,
            detail: String::new(),
        },
        decide::End::Failed(failure) => failed(api::EndKind::Failed, failure),
        decide::End::NotAttempted(failure) => failed(api::EndKind::NotAttempted, failure),
        decide::End::Indeterminate => api::End {
            kind: api::EndKind::Indeterminate,
            state: None,
            identity: Vec::new(),
            failure_kind: None,
            detail: String::new(),
        },
    }
}

fn proof(proof: &decide::Proof) -> api::Proof {
    let by = match &proof.by {
        decide::Evidence::Reads(operations) => api::Evidence {
            reads: Some(operations.iter().map(|id| id.0).collect()),
            ..api::Evidence::default()
        },
        decide::Evidence::Person(name) => {
            api::Evidence { person: Some(cut(name, WORD_MAX)), ..api::Evidence::default() }
        }
        decide::Evidence::Report(text) => {
            api::Evidence { report: Some(cut(text, SENTENCE_MAX)), ..api::Evidence::default() }
        }
    };
    api::Proof {
        grade: proof.grade.twin(),
        at: proof.at.twin(),
        by,
        liveness: liveness(&proof.liveness),
        voided_at: proof.voided_at.map(Time::twin),
    }
}

/// Where the names of objects come from that a record knows by UID only.
struct Named<'a> {
    facts: Option<&'a Facts>,
    before: Option<&'a NodeFenceStatus>,
}

impl Named<'_> {
    fn pod(&self, uid: &String) -> api::ReleasedPod {
        let seen = self.facts.and_then(|facts| facts.pods.get(uid)).map(|pod| api::ReleasedPod {
            uid: uid.clone(),
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
        });
        let earlier = || self.released()?.pods.iter().find(|pod| pod.uid == *uid).cloned();
        let unnamed =
            || api::ReleasedPod { uid: uid.clone(), namespace: String::new(), name: String::new() };
        seen.or_else(earlier).unwrap_or_else(unnamed)
    }

    fn attachment(&self, uid: &String) -> api::ReleasedAttachment {
        let seen = self.facts.and_then(|facts| facts.attachments.get(uid));
        let seen = seen.map(|one| api::ReleasedAttachment {
            uid: uid.clone(),
            name: one.name.clone(),
            volume: one.volume.clone(),
        });
        let earlier = || self.released()?.attachments.iter().find(|one| one.uid == *uid).cloned();
        let unnamed = || api::ReleasedAttachment {
            uid: uid.clone(),
            name: String::new(),
            volume: String::new(),
        };
        seen.or_else(earlier).unwrap_or_else(unnamed)
    }

    fn released(&self) -> Option<&api::Released> {
        self.before?.released.as_ref()
    }
}

const _: () = assert!(
    decide::RELEASED_MAX == limits::RELEASED_PODS_MAX
        && decide::RELEASED_MAX == limits::RELEASED_ATTACHMENTS_MAX,
    "decide names as many as the definition of the kind has room for"
);

fn released(released: &decide::Released, named: &Named<'_>) -> api::Released {
    api::Released {
        at: released.at.twin(),
        pods: released.pods.iter().map(|uid| named.pod(uid)).collect(),
        attachments: released.attachments.iter().map(|uid| named.attachment(uid)).collect(),
        everything: released.everything,
        left: released.left,
        progress_at: released.progress_at.twin(),
        sent_at: released.sent_at.map(Time::twin),
        sent: released.sent,
        ended_at: released.ended_at.map(Time::twin),
    }
}

fn cut_off(before: &decide::CutOff) -> api::CutOff {
    let decide::CutOff { pods, attachments, untold } = before.clone();
    api::CutOff { pods, attachments, untold }
}

fn goal(goal: &decide::Goal) -> api::Goal {
    let (kind, final_reason, park) = match goal {
        decide::Goal::BringBack => (api::GoalKind::BringBack, None, None),
        decide::Goal::Withdraw => (api::GoalKind::Withdraw, None, None),
        decide::Goal::Close(reason) => (api::GoalKind::Close, Some(reason.twin()), None),
        decide::Goal::Park(reason) => (api::GoalKind::Park, None, Some(park_reason(reason))),
    };
    api::Goal { kind, final_reason, park }
}

fn park_reason(reason: &decide::ParkReason) -> api::ParkReason {
    use api::ParkCode as Word;
    use decide::ParkReason as Why;
    let mut written = api::ParkReason {
        reason: Word::BrokenRecord,
        expected: None,
        found: None,
        tries: None,
        method: None,
        detail: None,
        neighbour: None,
    };
    written.reason = match reason {
        Why::WrongMachine { expected, found } => {
            written.expected = Some(cut(expected, WORD_MAX));
            written.found = Some(cut(found, WORD_MAX));
            Word::WrongMachine
        }
        Why::OffNotVerified { tries } => {
            written.tries = Some(*tries);
            Word::OffNotVerified
        }
        Why::WitnessReadsOn { method, witness } => {
            written.method = Some(cut(method, NAME_MAX));
            written.detail = Some(cut(witness, NAME_MAX));
            Word::WitnessReadsOn
        }
        Why::WrongPlug { neighbour } => {
            written.neighbour = Some(neighbour.clone());
            Word::WrongPlug
        }
        Why::MethodFailed { method, detail } => {
            written.method = Some(cut(method, NAME_MAX));
            written.detail = Some(cut(detail, SENTENCE_MAX));
            Word::MethodFailed
        }
        Why::RemediesExhausted { remedy, detail } => {
            written.method = Some(cut(remedy, NAME_MAX));
            written.detail = Some(cut(detail, SENTENCE_MAX));
            Word::RemediesExhausted
        }
        Why::JobStuck { remedy, why } => {
            written.method = Some(cut(remedy, NAME_MAX));
            written.detail = Some(cut(why, SENTENCE_MAX));
            Word::JobStuck
        }
        Why::PluginFailed { remedy, why } => {
            written.method = Some(cut(remedy, NAME_MAX));
            written.detail = Some(cut(why, SENTENCE_MAX));
            Word::PluginFailed
        }
        Why::CutUndone { method, failure } => {
            written.method = Some(cut(method, NAME_MAX));
            written.detail = failure.as_ref().map(|failure| cut(failure, SENTENCE_MAX));
            Word::CutUndone
        }
        Why::MachineDisputed { why } => {
            written.detail = Some(cut(why, SENTENCE_MAX));
            Word::MachineDisputed
        }
        Why::LeftAlone { word } => {
            written.detail = Some(cut(word, SENTENCE_MAX));
            Word::LeftAlone
        }
        Why::NotDrained { left } => {
            written.detail = Some(cut(left, SENTENCE_MAX));
            Word::NotDrained
        }
        Why::NoIdentity => Word::NoIdentity,
        Why::AliveThoughOff => Word::AliveThoughOff,
        Why::OnFailed => Word::OnFailed,
        Why::RestoreFailed => Word::RestoreFailed,
        Why::DeviceUnreachable => Word::DeviceUnreachable,
        Why::StillCut => Word::StillCut,
        Why::GateClosed => Word::GateClosed,
        Why::OffBeforeUs => Word::OffBeforeUs,
        Why::NotHealthy => Word::NotHealthy,
        Why::NoProofPossible => Word::NoProofPossible,
        Why::Isolated => Word::Isolated,
        Why::SameBootAfterRelease => Word::SameBootAfterRelease,
        Why::Aborted => Word::Aborted,
        Why::BrokenRecord => Word::BrokenRecord,
    };
    written
}

/// The Jobs, the latest last; a record keeps so many.
fn jobs(jobs: &[decide::JobRun], nodefence: &str) -> Vec<api::JobRun> {
    let surplus = jobs.len().saturating_sub(limits::JOBS_MAX);
    let kept = jobs.iter().skip(surplus);
    kept.map(|job| api::JobRun {
        number: job.number,
        name: job_name(nodefence, job.number),
        remedy_step: place(job.remedy_step),
        attempt: job.attempt,
        intended_at: job.intended_at.twin(),
        seen_at: job.seen_at.map(Time::twin),
        pod: job.pod.as_ref().map(|pod| cut(pod, NAME_MAX)),
        stopping_at: job.stopping_at.map(Time::twin),
        end: job.end.as_ref().map(|end| api::JobEnd {
            at: end.at.twin(),
            outcome: end.outcome.twin(),
            detail: cut(&end.detail, SENTENCE_MAX),
        }),
    })
    .collect()
}

fn on_failure(failed: &decide::OnFailure) -> api::OnFailure {
    api::OnFailure { method: place(failed.method), at: failed.at.twin(), kind: failed.kind.twin() }
}

fn parked(
    parked: &decide::Parked,
    marks: decide::Marks,
    nodefence: &NodeFence,
    plan: &Plan,
) -> api::Parked {
    let names = (&*nodefence.name_any(), &*nodefence.spec.node.name);
    let (sentence, next) = sentences(&parked.reason, names);
    let stands = what_stands(parked, marks, plan);
    api::Parked {
        why: park_reason(&parked.reason),
        at: parked.at.twin(),
        powered_off_by_us: places(&parked.powered_off_by_us),
        plugs: plugs(&parked.powered_off_by_us, plan),
        still_cut: places(&parked.still_cut),
        sentence: cut(&format!("{sentence}{stands}"), SENTENCE_MAX),
        next,
    }
}

/// What of ours stands while an incident is parked, for people: plugs, cuts, marks. Begins with a space, or is empty.
pub fn what_stands(parked: &decide::Parked, marks: decide::Marks, plan: &Plan) -> String {
    named(&parked.powered_off_by_us, &parked.still_cut, marks, plan)
}

/// What an incident leaves off or cut whose NodeFence vanished, for people. Marks are swept.
pub fn what_is_left(record: &Record, plan: &Plan, now: decide::Time) -> String {
    let (off, cut) = (record.off_or_going_off(plan, now), record.still_cut(plan));
    named(&off, &cut, decide::Marks::default(), plan)
}

fn named(
    off: &[MethodIndex],
    still_cut: &[MethodIndex],
    marks: decide::Marks,
    plan: &Plan,
) -> String {
    let marks = [
        (marks.quarantine, "quarantine taint"),
        (marks.cordon, "cordon"),
        (marks.out_of_service, "out-of-service taint"),
    ];
    let set = marks.iter().filter(|(stands, _)| *stands);
    let groups = [
        ("off by us, or may still go off", plugs(off, plan)),
        ("cut by us", plugs(still_cut, plan)),
        ("on the Node", set.map(|(_, mark)| (*mark).to_owned()).collect()),
    ];
    let named = groups.iter().filter(|(_, names)| !names.is_empty());
    let named: Vec<String> =
        named.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(". ")) }
}

fn plugs(methods: &[MethodIndex], plan: &Plan) -> Vec<String> {
    let methods = methods.iter().filter_map(|index| plan.method(*index));
    methods.map(|method| cut(&plug_name(&method.plug, &method.device), WORD_MAX)).collect()
}

/// What happened, and what to do: `decide` says both, with a semicolon between them.
fn sentences(reason: &decide::ParkReason, (nodefence, node): (&str, &str)) -> (String, String) {
    let text = by_name(&reason.to_string(), nodefence, node);
    let (sentence, next) = text.split_once("; ").unwrap_or((&text, ""));
    (cut(sentence, SENTENCE_MAX), cut(next, SENTENCE_MAX))
}

fn plug_name(plug: &str, device: &str) -> String {
    // Where the plug is the device, it stands in its name already.
    let is_named = device.strip_suffix(plug).is_some_and(|rest| rest.ends_with('/'));
    if plug.is_empty() || is_named { device.to_owned() } else { format!("{plug} on {device}") }
}

fn request(request: &decide::Request) -> api::Request {
    let bare = |kind| api::Request { kind, by: None, boot_id: None };
    match request {
        decide::Request::Retry => bare(api::RequestKind::Retry),
        decide::Request::Abort => bare(api::RequestKind::Abort),
        decide::Request::AbortLeaveOff => bare(api::RequestKind::AbortLeaveOff),
        decide::Request::ConfirmOff { by, boot_id } => api::Request {
            kind: api::RequestKind::ConfirmOff,
            by: Some(cut(by, WORD_MAX)),
            boot_id: Some(boot_id.clone()),
        },
    }
}

/// One line for each phase that was entered, the latest last.
fn history(status: &NodeFenceStatus, before: Option<&NodeFenceStatus>) -> Vec<api::Transition> {
    let mut history = before.map(|status| status.history.clone()).unwrap_or_default();
    let same = before.is_some_and(|before| {
        before.phase == status.phase && before.entered_at == status.entered_at
    });
    if !same {
        let why = match (&status.parked, status.final_reason, status.phase) {
            (Some(parked), _, api::Phase::Parked) => parked.sentence.clone(),
            (_, Some(reason), _) => conditions::final_sentence(reason).to_owned(),
            (_, None, phase) => conditions::phase_sentence(phase).to_owned(),
        };
        let line =
            api::Transition { at: status.entered_at, phase: status.phase, why: cut(&why, WHY_MAX) };
        history.push(line);
    }
    let kept = if is_seeded(Bug::HistoryUntrimmed) { usize::MAX } else { limits::HISTORY_MAX };
    let surplus = history.len().saturating_sub(kept);
    history.drain(..surplus);
    history
}

fn places(methods: &[MethodIndex]) -> Vec<u32> {
    methods.iter().copied().map(place).collect()
}
