//! A remedy that is no fence. A Job of the admin's own: started once, watched to its end, taken at its word where the admin
//! said so and the node does not contradict it.

use alloc::format;
use alloc::string::{String, ToString as _};

use super::cluster_actions::act_on_cluster;
use super::deciding;
use super::leave::is_withheld;
use crate::bug::{Bug, guard, is_seeded};
use crate::retry::{begin_pass, job_left, node_gone, park};
use crate::run::{Flow, Run};
use crate::symptom::condition;
use crate::{
    Baseline, ConditionStatus, Effect, Evidence, Goal, Grade, Hold, JobEnd, JobOutcome, JobRun,
    JobState, LOOK_EVERY, NodeView, Notice, PROBE_EVERY, ParkReason, Phase, Proof, RESEND_EVERY,
    Remedy, Rule, Span, Time, View, WRITE_LATE_MAX,
};

/// Characters of a Job's last words that are kept.
const DETAIL_MAX: usize = 2_048;

/// Runs the Job whose turn it is, or does the cluster action.
pub(crate) fn remedying(run: &mut Run<'_>) -> Flow {
    let Some(view) = run.look() else { return Flow::Stay };
    let Some(node) = run.node(view) else { return node_gone(run) };
    if let Some(flow) = deciding::begin(run) {
        return flow;
    }
    match run.remedy() {
        Some(Remedy::Cluster(cluster_action)) => {
            return act_on_cluster(run, view, node, cluster_action);
        }
        Some(Remedy::Plugin) => return deciding::deciding(run, view, node),
        Some(Remedy::Fence | Remedy::Isolation | Remedy::Method(_) | Remedy::Job { .. }) | None => {
        }
    }
    let Some(job) = present(run).cloned() else { return start(run) };
    if let Some(end) = &job.end {
        return after(run, view, node, &job, end);
    }
    let Some(seen) = view.job.as_ref().filter(|seen| seen.number == job.number) else {
        // Intended just now, or seen by a look that did not know of it.
        run.effect(Effect::Look);
        return Flow::Stay;
    };
    let is_unseen = job.seen_at.is_none();
    note_pod(run, node, seen.pod.as_ref());
    match &seen.state {
        JobState::Absent | JobState::Refused { .. } | JobState::NameTaken { .. }
            if is_unseen && is_withheld(run, view) =>
        {
            // Whatever became of the last request: the next Job is started once this one is stopped.
            run.rule(Rule::A1);
            run.effect(Effect::StopJob(job.number));
            begin_pass(run);
            Flow::Go(Phase::Waiting)
        }
        JobState::Absent if is_unseen || is_seeded(Bug::JobStartedAgain) => ask_again(run, &job),
        JobState::Refused { why } | JobState::NameTaken { why } => refused(run, &job, why.clone()),
        JobState::Absent => {
            ended(run, JobOutcome::Lost, "the Job was deleted before it ended".to_string())
        }
        JobState::Succeeded => {
            let at = seen.completed_at.map_or(run.now, |at| at.min(run.now));
            ended_at(run, at, JobOutcome::Succeeded, String::new())
        }
        JobState::Failed { detail } => ended(run, JobOutcome::Failed, detail.clone()),
        JobState::Running => watch(run, &job),
    }
}

/// The Job of this remedy step and this try.
fn present<'r>(run: &'r Run<'_>) -> Option<&'r JobRun> {
    let record = &run.record;
    let last = record.jobs.last();
    last.filter(|job| job.remedy_step == record.remedy_step && job.attempt == record.attempt)
}

/// The intent first: whoever finds it after a crash looks for the Job before it creates one.
fn start(run: &mut Run<'_>) -> Flow {
    if let Some(flow) = stop_left(run) {
        return flow;
    }
    if guard(Bug::JobStartedOnOldLeave, run.seen().is_some_and(|view| is_withheld(run, view))) {
        // Stopping the Job before it took a while: leave may be gone by now.
        run.rule(Rule::A1);
        begin_pass(run);
        return Flow::Go(Phase::Waiting);
    }
    run.rule(Rule::A11);
    let record = &mut run.record;
    let number = record.jobs.last().map_or(0, |job| job.number).saturating_add(1);
    record.jobs.push(JobRun {
        number,
        remedy_step: record.remedy_step,
        attempt: record.attempt,
        intended_at: run.now,
        seen_at: None,
        pod: None,
        stopping_at: None,
        end: None,
    });
    let remedy = name(run);
    run.notice(Notice::StartingJob { remedy });
    run.effect(Effect::StartJob(number));
    run.look_in(LOOK_EVERY)
}

/// The outcome of the create is unknown: it is sent again until `cleanupTimeout`, and given up once none can be carried out
/// any more.
fn ask_again(run: &mut Run<'_>, job: &JobRun) -> Flow {
    let until = job.intended_at.after(run.policy.cleanup_timeout);
    let given_up_at = until.after(WRITE_LATE_MAX);
    if run.now >= given_up_at {
        let why = "no Job could be created, and the API server did not say why".to_string();
        return ended(run, JobOutcome::Lost, why);
    }
    if run.now < until {
        run.effect(Effect::StartJob(job.number));
    }
    run.look_in(RESEND_EVERY)
}

/// The API server takes no such Job, or shows none: asked again for a while, and told.
fn refused(run: &mut Run<'_>, job: &JobRun, why: String) -> Flow {
    if job.seen_at.is_some() {
        if let Some(flow) = stuck(run, job) {
            return flow;
        }
    } else if run.now >= job.intended_at.after(run.policy.cleanup_timeout) {
        // One that may not be read may run, and may still be deleted.
        run.effect(Effect::StopJob(job.number));
        return ended(run, JobOutcome::Lost, why);
    } else {
        run.effect(Effect::StartJob(job.number));
    }
    run.look_in(PROBE_EVERY);
    run.hold(Hold::JobRefused { why })
}

/// The Job was not seen to end, long after the cluster should have ended it.
fn stuck(run: &mut Run<'_>, job: &JobRun) -> Option<Flow> {
    let deadline = match run.remedy() {
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
    let stuck_at = job.intended_at.after(deadline).after(run.policy.cleanup_timeout);
    if run.now < stuck_at {
        return None;
    }
    let remedy = name(run);
    let why = "was not seen to end, long after its deadline".to_string();
    // Its end may still be heard: `ended_late`.
    run.record.resume = Some(Phase::AwaitingHealthy);
    Some(park(run, ParkReason::JobStuck { remedy, why }))
}

/// The Job of a parked run ended after all. The run goes on, unless a person aborts it. The Job's success proves nothing any
/// more, for somebody may have been at the machine meanwhile.
pub(crate) fn ended_late(run: &mut Run<'_>) -> Option<Flow> {
    let number = job_left(run)?;
    let seen = run.seen()?.job.as_ref().filter(|seen| seen.number == number)?;
    let is_over = match seen.state {
        JobState::Succeeded | JobState::Failed { .. } => true,
        JobState::Absent | JobState::NameTaken { .. } => !may_come(run),
        JobState::Running | JobState::Refused { .. } => false,
    };
    if !guard(Bug::LateEndUnheard, is_over) {
        return None;
    }
    let (at, outcome) = (run.now, JobOutcome::Lost);
    let detail = "nobody saw it end in time, so its result does not count".to_string();
    let job = run.record.jobs.last_mut()?;
    let remedy_step = job.remedy_step;
    job.end = Some(JobEnd { at, outcome, detail: detail.clone() });
    let remedy = run
        .plan
        .ladder
        .get(remedy_step)
        .map(|remedy_step| remedy_step.name.clone())
        .unwrap_or_default();
    run.notice(Notice::JobEnded { remedy, outcome, detail });
    let next = run.record.resume.take()?;
    run.rule(Rule::A11);
    run.record.parked = None;
    Some(Flow::Go(next))
}

/// Its pod's name goes onto the node and into the record, also where it ended before anybody saw it run.
fn note_pod(run: &mut Run<'_>, node: &NodeView, pod: Option<&String>) {
    let Some(job) = run.record.jobs.last_mut() else { return };
    job.pod = pod.cloned().or(job.pod.take());
    let missing = job.pod.clone().filter(|pod| node.remediation_pod.as_ref() != Some(pod));
    if let Some(pod) = missing {
        run.effect(Effect::AnnotateNode { pod });
    }
}

/// It runs, and its deadline is the cluster's to keep.
fn watch(run: &mut Run<'_>, job: &JobRun) -> Flow {
    let now = run.now;
    if let Some(job) = run.record.jobs.last_mut() {
        job.seen_at = job.seen_at.or(Some(now));
    }
    stuck(run, job).unwrap_or_else(|| run.look_in(PROBE_EVERY))
}

fn ended(run: &mut Run<'_>, outcome: JobOutcome, detail: String) -> Flow {
    let now = run.now;
    ended_at(run, now, outcome, detail)
}

fn ended_at(run: &mut Run<'_>, at: Time, outcome: JobOutcome, mut detail: String) -> Flow {
    if detail.len() > DETAIL_MAX {
        // The end says more than the beginning.
        let mut cut = detail.len().saturating_sub(DETAIL_MAX);
        while !detail.is_char_boundary(cut) {
            cut = cut.saturating_add(1);
        }
        detail = detail.split_off(cut);
    }
    let remedy = name(run);
    run.notice(Notice::JobEnded { remedy, outcome, detail: detail.clone() });
    let now = run.now;
    if let Some(job) = run.record.jobs.last_mut() {
        job.seen_at = job.seen_at.or(Some(now));
        job.end = Some(JobEnd { at, outcome, detail });
    }
    run.record.baseline = None;
    Flow::Go(Phase::Remedying)
}

/// P2 for a word: whoever said that the node's pods are gone is believed if the node is silent for
/// two renewals from then on. One that still renews its Lease runs its pods, whatever a Job says.
fn after(run: &mut Run<'_>, view: &View, node: &NodeView, job: &JobRun, end: &JobEnd) -> Flow {
    let cleans = run.plan.ladder.get(job.remedy_step).is_some_and(|remedy_step| remedy_step.clean)
        && !guard(Bug::LostJobCleans, end.outcome != JobOutcome::Succeeded)
        && run.policy.grades.contains(&Grade::JobSucceeded)
        && !run.is_well(view);
    if !cleans {
        return Flow::Go(Phase::AwaitingHealthy);
    }
    let Some(baseline) = run.record.baseline.clone() else {
        let liveness = node.liveness.clone();
        run.record.baseline = Some(Baseline { at: view.taken_at, liveness });
        return run.look_in(LOOK_EVERY);
    };
    let is_heard = node.liveness != baseline.liveness || is_heard_since(run, node, end);
    if guard(Bug::JobOfTheLiving, is_heard) {
        run.rule(Rule::P2);
        run.notice(Notice::ProofVoided { reads_on: None });
        return Flow::Go(Phase::AwaitingHealthy);
    }
    let until = baseline.at.after(Span(node.lease_duration.0 / 2));
    if run.now < until {
        run.look_at(until);
        return run.hold(Hold::NotYet { until });
    }
    let liveness =
        if is_seeded(Bug::JobOfTheLiving) { node.liveness.clone() } else { baseline.liveness };
    run.record.marks.quarantine = true;
    run.record.proof = Some(Proof {
        grade: Grade::JobSucceeded,
        at: run.now,
        by: Evidence::Report(format!("{}: its Job succeeded", name(run))),
        liveness,
        voided_at: None,
    });
    run.notice(Notice::Proven { grade: Grade::JobSucceeded });
    Flow::Go(Phase::Releasing)
}

/// Whether the node was heard after its Job completed: in a newer boot, or by a renewal that came later than half a Lease
/// duration. Of a Lease that this process only found, the node controller's `Unknown` says how old its last renewal is at
/// most.
fn is_heard_since(run: &Run<'_>, node: &NodeView, end: &JobEnd) -> bool {
    if node.liveness == run.record.liveness_at_open {
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
    guard(Bug::JobOfAnOlderBoot, is_late || run.is_new_boot(&node.liveness))
}

/// Whether a Job that nobody has seen may be made yet: its last request may be carried out when nobody waits for it any more.
fn may_come(run: &Run<'_>) -> bool {
    let last = run.record.jobs.last();
    let Some(job) = last.filter(|job| job.seen_at.is_none() && job.end.is_none()) else {
        return false;
    };
    let stopping_at = job.stopping_at.unwrap_or(run.now);
    guard(Bug::UnseenJobNotAwaited, run.now < stopping_at.after(WRITE_LATE_MAX))
}

/// Stops a Job that nobody has seen, and that may be made when the run is over; `None` once none can be.
pub(crate) fn stop_unseen(run: &mut Run<'_>) -> Option<Flow> {
    if may_come(run) { stop_left(run) } else { None }
}

/// Stops the Job that runs, if one does: for a person who aborts, and before another one is started.
/// `None` once nothing of it goes on. One that does not stop, or of which nobody knows, is a person's in the end.
pub(crate) fn stop_left(run: &mut Run<'_>) -> Option<Flow> {
    let number = job_left(run)?;
    let Some(view) = run.look() else { return Some(Flow::Stay) };
    let Some(seen) = view.job.as_ref().filter(|seen| seen.number == number) else {
        run.effect(Effect::Look);
        return Some(Flow::Stay);
    };
    let now = run.now;
    let (hold, why) = match &seen.state {
        JobState::Absent if may_come(run) => (None, "may be made yet".to_string()),
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
            if let Some(job) = run.record.jobs.last_mut() {
                job.end = Some(end);
            }
            return None;
        }
    };
    let is_running = seen.state == JobState::Running;
    let job = run.record.jobs.last_mut()?;
    job.seen_at = job.seen_at.or(is_running.then_some(now));
    let remedy_step = job.remedy_step;
    let patience = run.policy.cleanup_timeout.max(WRITE_LATE_MAX);
    let until = job.stopping_at.get_or_insert(now).after(patience);
    if now >= until {
        // Whoever asks again has it tried again for as long.
        job.stopping_at = None;
        let goes_on = run.record.request.is_none() && run.record.goal == Goal::BringBack;
        run.record.resume = goes_on.then_some(Phase::Waiting);
        let remedy = run
            .plan
            .ladder
            .get(remedy_step)
            .map(|remedy_step| remedy_step.name.clone())
            .unwrap_or_default();
        run.record.request = None;
        return Some(park(run, ParkReason::JobStuck { remedy, why }));
    }
    // Also where nobody can see it: what cannot be read may still be deleted.
    run.effect(Effect::StopJob(number));
    run.look_at(until);
    run.look_in(if hold.is_some() { PROBE_EVERY } else { LOOK_EVERY });
    Some(hold.map_or(Flow::Stay, |hold| run.hold(hold)))
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

fn name(run: &Run<'_>) -> String {
    let remedy_step = run.plan.ladder.get(run.record.remedy_step);
    remedy_step.map(|remedy_step| remedy_step.name.clone()).unwrap_or_default()
}
