//! A remedy that is no fence. A Job of the admin's own: started once, watched to its end, taken at its word where the admin
//! said so and the node does not contradict it.

use alloc::format;
use alloc::string::{String, ToString as _};

use super::cluster_actions::act_on_cluster;
use super::deciding;
use super::leave::is_withheld;
use crate::bug::{Bug, guard, is_seeded};
use crate::draft::{Draft, Flow};
use crate::retry::{begin_pass, job_left, node_gone, park};
use crate::symptom::condition;
use crate::{
    Baseline, ConditionStatus, Effect, Evidence, Goal, Grade, Hold, JobEnd, JobOutcome, JobRun,
    JobState, LOOK_EVERY, NodeView, Notice, PROBE_EVERY, ParkReason, Phase, Proof, RESEND_EVERY,
    Remedy, Rule, Span, Time, View, WRITE_LATE_MAX,
};

/// Characters of a Job's last words that are kept.
const DETAIL_MAX: usize = 2_048;

/// Runs the Job whose turn it is, or does the cluster action.
pub(crate) fn remedying(draft: &mut Draft<'_>) -> Flow {
    let Some(view) = draft.look() else { return Flow::Stay };
    let Some(node) = draft.node(view) else { return node_gone(draft) };
    if let Some(flow) = deciding::begin(draft) {
        return flow;
    }
    match draft.remedy() {
        Some(Remedy::Cluster(cluster_action)) => {
            return act_on_cluster(draft, view, node, cluster_action);
        }
        Some(Remedy::Plugin) => return deciding::deciding(draft, view, node),
        Some(Remedy::Fence | Remedy::Isolation | Remedy::Method(_) | Remedy::Job { .. }) | None => {
        }
    }
    let Some(job) = present(draft).cloned() else { return start(draft) };
    if let Some(end) = &job.end {
        return after(draft, view, node, &job, end);
    }
    let Some(seen) = view.job.as_ref().filter(|seen| seen.number == job.number) else {
        // Intended just now, or seen by a look that did not know of it.
        draft.effect(Effect::Look);
        return Flow::Stay;
    };
    let is_unseen = job.seen_at.is_none();
    note_pod(draft, node, seen.pod.as_ref());
    match &seen.state {
        JobState::Absent | JobState::Refused { .. } | JobState::NameTaken { .. }
            if is_unseen && is_withheld(draft, view) =>
        {
            // Whatever became of the last request: the next Job is started once this one is stopped.
            draft.rule(Rule::A1);
            draft.effect(Effect::StopJob(job.number));
            begin_pass(draft);
            Flow::Go(Phase::Waiting)
        }
        JobState::Absent if is_unseen || is_seeded(Bug::JobStartedAgain) => ask_again(draft, &job),
        JobState::Refused { why } | JobState::NameTaken { why } => {
            refused(draft, &job, why.clone())
        }
        JobState::Absent => {
            ended(draft, JobOutcome::Lost, "the Job was deleted before it ended".to_string())
        }
        JobState::Succeeded => {
            let at = seen.completed_at.map_or(draft.now, |at| at.min(draft.now));
            ended_at(draft, at, JobOutcome::Succeeded, String::new())
        }
        JobState::Failed { detail } => ended(draft, JobOutcome::Failed, detail.clone()),
        JobState::Running => watch(draft, &job),
    }
}

/// The Job of this remedy step and this try.
fn present<'r>(draft: &'r Draft<'_>) -> Option<&'r JobRun> {
    let record = &draft.record;
    let last = record.jobs.last();
    last.filter(|job| job.remedy_step == record.remedy_step && job.attempt == record.attempt)
}

/// The intent first: whoever finds it after a crash looks for the Job before it creates one.
fn start(draft: &mut Draft<'_>) -> Flow {
    if let Some(flow) = stop_left(draft) {
        return flow;
    }
    if guard(Bug::JobStartedOnOldLeave, draft.seen().is_some_and(|view| is_withheld(draft, view))) {
        // Stopping the Job before it took a while: leave may be gone by now.
        draft.rule(Rule::A1);
        begin_pass(draft);
        return Flow::Go(Phase::Waiting);
    }
    draft.rule(Rule::A11);
    let record = &mut draft.record;
    let number = record.jobs.last().map_or(0, |job| job.number).saturating_add(1);
    record.jobs.push(JobRun {
        number,
        remedy_step: record.remedy_step,
        attempt: record.attempt,
        intended_at: draft.now,
        seen_at: None,
        pod: None,
        stopping_at: None,
        end: None,
    });
    let remedy = name(draft);
    draft.notice(Notice::StartingJob { remedy });
    draft.effect(Effect::StartJob(number));
    draft.look_in(LOOK_EVERY)
}

/// The outcome of the create is unknown: it is sent again until `cleanupTimeout`, and given up once none can be carried out
/// any more.
fn ask_again(draft: &mut Draft<'_>, job: &JobRun) -> Flow {
    let until = job.intended_at.after(draft.policy.cleanup_timeout);
    let given_up_at = until.after(WRITE_LATE_MAX);
    if draft.now >= given_up_at {
        let why = "no Job could be created, and the API server did not say why".to_string();
        return ended(draft, JobOutcome::Lost, why);
    }
    if draft.now < until {
        draft.effect(Effect::StartJob(job.number));
    }
    draft.look_in(RESEND_EVERY)
}

/// The API server takes no such Job, or shows none: asked again for a while, and told.
fn refused(draft: &mut Draft<'_>, job: &JobRun, why: String) -> Flow {
    if job.seen_at.is_some() {
        if let Some(flow) = stuck(draft, job) {
            return flow;
        }
    } else if draft.now >= job.intended_at.after(draft.policy.cleanup_timeout) {
        // One that may not be read may run, and may still be deleted.
        draft.effect(Effect::StopJob(job.number));
        return ended(draft, JobOutcome::Lost, why);
    } else {
        draft.effect(Effect::StartJob(job.number));
    }
    draft.look_in(PROBE_EVERY);
    draft.hold(Hold::JobRefused { why })
}

/// The Job was not seen to end, long after the cluster should have ended it.
fn stuck(draft: &mut Draft<'_>, job: &JobRun) -> Option<Flow> {
    let deadline = match draft.remedy() {
        Some(Remedy::Job { deadline }) => deadline,
        Some(
            Remedy::Fence
            | Remedy::Isolation
            | Remedy::Method(_)
            | Remedy::Cluster(_)
            | Remedy::Plugin,
        )
        | None => Span::ZERO,
    };
    let stuck_at = job.intended_at.after(deadline).after(draft.policy.cleanup_timeout);
    if draft.now < stuck_at {
        return None;
    }
    let remedy = name(draft);
    let why = "was not seen to end, long after its deadline".to_string();
    // Its end may still be heard: `ended_late`.
    draft.record.resume = Some(Phase::AwaitingHealthy);
    Some(park(draft, ParkReason::JobStuck { remedy, why }))
}

/// The Job of a parked incident ended after all. The incident goes on, unless a person aborts it. The Job's success
/// proves nothing any more, for somebody may have been at the machine meanwhile.
pub(crate) fn ended_late(draft: &mut Draft<'_>) -> Option<Flow> {
    let number = job_left(draft)?;
    let seen = draft.seen()?.job.as_ref().filter(|seen| seen.number == number)?;
    let is_over = match seen.state {
        JobState::Succeeded | JobState::Failed { .. } => true,
        JobState::Absent | JobState::NameTaken { .. } => !may_come(draft),
        JobState::Running | JobState::Refused { .. } => false,
    };
    if !guard(Bug::LateEndUnheard, is_over) {
        return None;
    }
    let (at, outcome) = (draft.now, JobOutcome::Lost);
    let detail = "nobody saw it end in time, so its result does not count".to_string();
    let job = draft.record.jobs.last_mut()?;
    let remedy_step = job.remedy_step;
    job.end = Some(JobEnd { at, outcome, detail: detail.clone() });
    let remedy = draft
        .plan
        .ladder
        .get(remedy_step)
        .map(|remedy_step| remedy_step.name.clone())
        .unwrap_or_default();
    draft.notice(Notice::JobEnded { remedy, outcome, detail });
    let next = draft.record.resume.take()?;
    draft.rule(Rule::A11);
    draft.record.parked = None;
    Some(Flow::Go(next))
}

/// Its pod's name goes onto the node and into the record, also where it ended before anybody saw it run.
fn note_pod(draft: &mut Draft<'_>, node: &NodeView, pod: Option<&String>) {
    let Some(job) = draft.record.jobs.last_mut() else { return };
    job.pod = pod.cloned().or(job.pod.take());
    let missing = job.pod.clone().filter(|pod| node.remediation_pod.as_ref() != Some(pod));
    if let Some(pod) = missing {
        draft.effect(Effect::AnnotateNode { pod });
    }
}

/// It runs, and its deadline is the cluster's to keep.
fn watch(draft: &mut Draft<'_>, job: &JobRun) -> Flow {
    let now = draft.now;
    if let Some(job) = draft.record.jobs.last_mut() {
        job.seen_at = job.seen_at.or(Some(now));
    }
    stuck(draft, job).unwrap_or_else(|| draft.look_in(PROBE_EVERY))
}

fn ended(draft: &mut Draft<'_>, outcome: JobOutcome, detail: String) -> Flow {
    let now = draft.now;
    ended_at(draft, now, outcome, detail)
}

fn ended_at(draft: &mut Draft<'_>, at: Time, outcome: JobOutcome, mut detail: String) -> Flow {
    if detail.len() > DETAIL_MAX {
        // The end says more than the beginning.
        let mut cut = detail.len().saturating_sub(DETAIL_MAX);
        while !detail.is_char_boundary(cut) {
            cut = cut.saturating_add(1);
        }
        detail = detail.split_off(cut);
    }
    let remedy = name(draft);
    draft.notice(Notice::JobEnded { remedy, outcome, detail: detail.clone() });
    let now = draft.now;
    if let Some(job) = draft.record.jobs.last_mut() {
        job.seen_at = job.seen_at.or(Some(now));
        job.end = Some(JobEnd { at, outcome, detail });
    }
    draft.record.baseline = None;
    Flow::Go(Phase::Remedying)
}

/// P2 for a word: whoever said that the node's pods are gone is believed if the node is silent for
/// two renewals from then on. One that still renews its Lease runs its pods, whatever a Job says.
fn after(draft: &mut Draft<'_>, view: &View, node: &NodeView, job: &JobRun, end: &JobEnd) -> Flow {
    let cleans =
        draft.plan.ladder.get(job.remedy_step).is_some_and(|remedy_step| remedy_step.clean)
            && !guard(Bug::LostJobCleans, end.outcome != JobOutcome::Succeeded)
            && draft.policy.grades.contains(&Grade::JobSucceeded)
            && !draft.is_well(view);
    if !cleans {
        return Flow::Go(Phase::AwaitingHealthy);
    }
    let Some(baseline) = draft.record.baseline.clone() else {
        let liveness = node.liveness.clone();
        draft.record.baseline = Some(Baseline { at: view.taken_at, liveness });
        return draft.look_in(LOOK_EVERY);
    };
    let is_heard = node.liveness != baseline.liveness || is_heard_since(draft, node, end);
    if guard(Bug::JobOfTheLiving, is_heard) {
        draft.rule(Rule::P2);
        draft.notice(Notice::ProofVoided { reads_on: None });
        return Flow::Go(Phase::AwaitingHealthy);
    }
    let until = baseline.at.after(Span(node.lease_duration.0 / 2));
    if draft.now < until {
        draft.look_at(until);
        return draft.hold(Hold::NotYet { until });
    }
    let liveness =
        if is_seeded(Bug::JobOfTheLiving) { node.liveness.clone() } else { baseline.liveness };
    draft.record.marks.quarantine = true;
    draft.record.proof = Some(Proof {
        grade: Grade::JobSucceeded,
        at: draft.now,
        by: Evidence::Report(format!("{}: its Job succeeded", name(draft))),
        liveness,
        voided_at: None,
    });
    draft.notice(Notice::Proven { grade: Grade::JobSucceeded });
    Flow::Go(Phase::Releasing)
}

/// Whether the node was heard after its Job completed: in a newer boot, or by a renewal that came later than half a Lease
/// duration. Of a Lease that this process only found, the node controller's `Unknown` says how old its last renewal is at
/// most.
fn is_heard_since(draft: &Draft<'_>, node: &NodeView, end: &JobEnd) -> bool {
    if node.liveness == draft.record.liveness_at_open {
        // Nothing was heard since the incident began.
        return false;
    }
    let ready = condition(node, "Ready");
    let missed = ready.filter(|one| one.status == ConditionStatus::Unknown).map(|one| one.since);
    let heard_at = match (node.lease_seen_at, missed) {
        (Some(found), Some(missed)) if !node.lease_was_renewed => Some(found.min(missed)),
        (seen, _) => seen,
    };
    let until = end.at.after(Span(node.lease_duration.0 / 2));
    let is_late = heard_at.is_some_and(|at| at > until);
    guard(Bug::JobOfAnOlderBoot, is_late || draft.is_new_boot(&node.liveness))
}

/// Whether a Job that nobody has seen may be made yet: its last request may be carried out when nobody waits for it any more.
fn may_come(draft: &Draft<'_>) -> bool {
    let last = draft.record.jobs.last();
    let Some(job) = last.filter(|job| job.seen_at.is_none() && job.end.is_none()) else {
        return false;
    };
    let stopping_at = job.stopping_at.unwrap_or(draft.now);
    guard(Bug::UnseenJobNotAwaited, draft.now < stopping_at.after(WRITE_LATE_MAX))
}

/// Stops a Job that nobody has seen, and that may be made when the incident is over; `None` once none can be.
pub(crate) fn stop_unseen(draft: &mut Draft<'_>) -> Option<Flow> {
    if may_come(draft) { stop_left(draft) } else { None }
}

/// Stops the Job that runs, if one does: for a person who aborts, and before another one is started.
/// `None` once nothing of it goes on. One that does not stop, or of which nobody knows, is a person's in the end.
pub(crate) fn stop_left(draft: &mut Draft<'_>) -> Option<Flow> {
    let number = job_left(draft)?;
    let Some(view) = draft.look() else { return Some(Flow::Stay) };
    let Some(seen) = view.job.as_ref().filter(|seen| seen.number == number) else {
        draft.effect(Effect::Look);
        return Some(Flow::Stay);
    };
    let now = draft.now;
    let (hold, why) = match &seen.state {
        JobState::Absent if may_come(draft) => (None, "may be made yet".to_string()),
        JobState::Running => (None, "does not stop".to_string()),
        JobState::Refused { why } => {
            (Some(Hold::JobRefused { why: why.clone() }), format!("could not be stopped: {why}"))
        }
        JobState::Absent
        | JobState::NameTaken { .. }
        | JobState::Succeeded
        | JobState::Failed { .. } => {
            let end =
                JobEnd { at: now, outcome: JobOutcome::Lost, detail: "it was stopped".to_string() };
            if let Some(job) = draft.record.jobs.last_mut() {
                job.end = Some(end);
            }
            return None;
        }
    };
    let is_running = seen.state == JobState::Running;
    let job = draft.record.jobs.last_mut()?;
    job.seen_at = job.seen_at.or(is_running.then_some(now));
    let remedy_step = job.remedy_step;
    let patience = draft.policy.cleanup_timeout.max(WRITE_LATE_MAX);
    let until = job.stopping_at.get_or_insert(now).after(patience);
    if now >= until {
        // Whoever asks again has it tried again for as long.
        job.stopping_at = None;
        let goes_on = draft.record.request.is_none() && draft.record.goal == Goal::BringBack;
        draft.record.resume = goes_on.then_some(Phase::Waiting);
        let remedy = draft
            .plan
            .ladder
            .get(remedy_step)
            .map(|remedy_step| remedy_step.name.clone())
            .unwrap_or_default();
        draft.record.request = None;
        return Some(park(draft, ParkReason::JobStuck { remedy, why }));
    }
    // Also where nobody can see it: what cannot be read may still be deleted.
    draft.effect(Effect::StopJob(number));
    draft.look_at(until);
    draft.look_in(if hold.is_some() { PROBE_EVERY } else { LOOK_EVERY });
    Some(hold.map_or(Flow::Stay, |hold| draft.hold(hold)))
}

/// How a Job ended, for people.
pub(crate) fn describe(end: &JobEnd) -> String {
    let outcome = match end.outcome {
        JobOutcome::Succeeded => "its Job succeeded",
        JobOutcome::Failed => "its Job failed",
        JobOutcome::Lost => "its Job was lost",
    };
    if end.detail.is_empty() { outcome.to_string() } else { format!("{outcome}: {}", end.detail) }
}

fn name(draft: &Draft<'_>) -> String {
    let remedy_step = draft.plan.ladder.get(draft.record.remedy_step);
    remedy_step.map(|remedy_step| remedy_step.name.clone()).unwrap_or_default()
}
