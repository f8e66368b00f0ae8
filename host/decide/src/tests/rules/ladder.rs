//! A11: the remedies of a ladder, one after the other; Jobs among them are started once, and taken at
//! their word only where the node does not contradict it.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;

use super::CLEAR;
use crate::tests::fixtures::{bmc_plan, lost_view, signs, succeeded};
use crate::tests::story::{Story, honest};
use crate::*;

const PERIOD: Span = Span::minutes(3);
const DEADLINE: Span = Span::minutes(30);

fn job(name: &str, clean: bool) -> Rung {
    let remedy = Remedy::Job { deadline: DEADLINE };
    Rung { name: name.to_string(), remedy, period: PERIOD, clean }
}

fn fence() -> Rung {
    Rung { name: "fence".to_string(), remedy: Remedy::Fence, period: PERIOD, clean: false }
}

fn ladder(ladder: &[Rung]) -> Story {
    Story::new(Plan { ladder: ladder.to_vec(), ..bmc_plan() }, RunPolicy::default())
}

fn failed() -> JobState {
    JobState::Failed { detail: "no such disk".to_string() }
}

fn started(story: &Story) -> usize {
    story.done.iter().filter(|effect| matches!(effect, Effect::StartJob(_))).count()
}

/// Goes on until the Job of this number was started and seen.
fn runs(story: &mut Story, number: u32) {
    for _ in 0..1_000 {
        let last = story.record.jobs.last();
        if last.is_some_and(|job| job.number == number && job.seen_at.is_some()) {
            return;
        }
        story.go();
    }
    panic!("Job {number} does not run: {:?}", story.record.jobs);
}

#[test]
fn a11_a_job_that_mends_the_node_ends_the_incident() {
    let mut story = ladder(&[job("repair", false), fence()]);
    runs(&mut story, 1);
    assert_eq!((story.record.phase, story.record.slot), (Phase::Remedying, Slot::Held));
    story.job(1, JobState::Succeeded);
    story.until(Phase::AwaitingWell);
    assert_eq!(story.record.slot, Slot::Held);
    story.wakes().until(Phase::Final(FinalReason::Remedied));
    assert!(story.calls.is_empty() && !story.released());
    assert_eq!(started(&story), 1);
}

/// Whoever led when it ran is dead; the next one finds that it has ended.
#[test]
fn a11_the_pod_of_a_job_that_ended_unseen_stands_on_the_node_and_in_the_record() {
    let mut story = ladder(&[job("repair", false), fence()]);
    while started(&story) == 0 {
        story.go();
    }
    assert_eq!(story.record.jobs[0].seen_at, None);
    story.job(1, failed());
    story.until(Phase::AwaitingWell);
    assert_eq!(story.record.jobs[0].pod.as_deref(), Some("job-1"));
    let signed = |story: &Story| story.view.node.as_ref().unwrap().remediation_pod.clone();
    while signed(&story).is_none() {
        story.go();
    }
    assert_eq!((signed(&story).as_deref(), started(&story)), (Some("job-1"), 1));
}

#[test] // promise: A11
fn a11_the_next_remedy_has_its_turn_a_period_after_the_job_ended() {
    for end in [JobState::Succeeded, failed()] {
        let mut story = ladder(&[job("repair", false), fence()]);
        runs(&mut story, 1);
        assert!(story.calls.is_empty(), "a run waits for its Job");
        story.job(1, end);
        story.until(Phase::AwaitingWell);
        let ended = story.now;
        story.until(Phase::ReadingIdentity);
        assert!(story.now >= ended.after(PERIOD) && story.now < ended.after(PERIOD.times(2)));
        assert_eq!(story.record.rung, 1);
        story.until(Phase::AwaitingWell);
        story.boots().until(Phase::Final(FinalReason::Remedied));
        assert_eq!((story.count(Action::Off), started(&story)), (1, 1));
        assert!(story.hit(Rule::A11));
    }
}

#[test] // promise: A11
fn a11_what_allowed_the_first_remedy_is_read_again_before_the_next() {
    let mut story = ladder(&[job("repair", false), fence()]);
    runs(&mut story, 1);
    story.job(1, failed());
    story.until(Phase::AwaitingWell);
    story.view.gate.refusals = vec![Refusal::NoLease];
    story.until(Phase::Waiting);
    for _ in 0..20 {
        story.go();
    }
    assert_eq!((story.record.phase, story.calls.len()), (Phase::Waiting, 0));
    story.view.trigger = CLEAR;
    story.until(Phase::Final(FinalReason::Recovered));
}

#[test]
fn a11_the_last_remedy_gives_way_to_a_person_with_the_jobs_last_words() {
    let mut story = ladder(&[job("repair", false)]);
    runs(&mut story, 1);
    story.job(1, failed());
    story.until(Phase::Parked);
    let detail = "its Job failed: no such disk".to_string();
    let exhausted = ParkReason::RemediesExhausted { remedy: "repair".to_string(), detail };
    assert_eq!(story.parked(), Some(&exhausted));
    story.event(Event::Command(Command::Retry));
    runs(&mut story, 2);
    assert_eq!(started(&story), 2);
}

#[test] // promise: A11
fn a11_a_fence_that_fails_gives_back_what_it_took_before_the_next_remedy() {
    let mut story = ladder(&[fence(), job("terminate", false)]);
    story.device = Box::new(|operation, plugs| {
        let end = honest(operation, plugs);
        // Whatever was switched off says nothing of itself until it is switched on.
        let dark = plugs[operation.method] == PlugState::Off;
        if dark { succeeded(PlugState::Unknown) } else { end }
    });
    runs(&mut story, 1);
    assert!(story.count(Action::Off) > 0 && story.count(Action::On) > 0);
    let on = story.calls.iter().rposition(|call| call.1 == Action::On);
    let off = story.calls.iter().rposition(|call| call.1 == Action::Off);
    assert!(on > off, "{:?}", story.calls);
    assert!(!story.released());
}

#[test]
fn a_job_is_started_once_whoever_finds_its_record() {
    let mut story = ladder(&[job("repair", false)]);
    let adopted = |process: &str| Event::Adopted { epoch: 2, process: process.to_string() };
    while story.record.jobs.is_empty() {
        story.go();
    }
    // The process died between intent and create; the next one finds none and creates it.
    story.todo.clear();
    story.event(adopted("p2"));
    runs(&mut story, 1);
    assert_eq!(started(&story), 1);
    // It died again while the Job runs: the next one watches it.
    story.todo.clear();
    story.event(adopted("p3"));
    for _ in 0..5 {
        story.go();
    }
    assert_eq!((started(&story), story.record.jobs.len()), (1, 1));
    // Somebody deleted it: it is lost, not started again.
    story.job(1, JobState::Absent);
    story.until(Phase::AwaitingWell);
    let end = story.record.jobs[0].end.as_ref();
    assert_eq!(end.map(|end| end.outcome), Some(JobOutcome::Lost));
    assert_eq!(started(&story), 1);
}

#[test]
fn a_jobs_success_releases_only_where_the_admin_says_so_and_the_node_is_silent() {
    let rows = [
        ("said so, silent", true, JobState::Succeeded, false, true),
        ("not said", false, JobState::Succeeded, false, false),
        ("failed", true, failed(), false, false),
        ("lost", true, JobState::Absent, false, false),
        ("the node lives", true, JobState::Succeeded, true, false),
    ];
    for (what, clean, end, lives, released) in rows {
        let mut story = ladder(&[job("terminate", clean)]);
        runs(&mut story, 1);
        story.job(1, end);
        let mut life = 1;
        while !matches!(story.record.phase, Phase::Parked | Phase::Releasing) {
            if lives {
                life += 1;
                let boot = story.record.signs_at_open.boot_id.clone();
                story.view.node.as_mut().unwrap().signs = signs(&boot, life);
            }
            story.go();
        }
        let proven = story.record.proof.as_ref().map(|proof| proof.grade);
        assert_eq!(proven == Some(Grade::JobSucceeded), released, "{what}");
        if released {
            story.until_released();
            assert!(story.record.marks.quarantine);
        }
        assert_eq!(story.released(), released, "{what}");
    }
}

#[test]
fn p2_a_word_holds_no_longer_than_the_nodes_silence() {
    let mut story = ladder(&[job("terminate", true)]);
    runs(&mut story, 1);
    story.job(1, JobState::Succeeded);
    story.until(Phase::Releasing);
    let boot = story.record.signs_at_open.boot_id.clone();
    story.view.node.as_mut().unwrap().signs = signs(&boot, 7);
    story.until(Phase::AwaitingWell);
    assert!(!story.released() && story.hit(Rule::P2));
}

#[test]
fn an_abort_stops_the_job_first() {
    let mut story = ladder(&[job("repair", false), fence()]);
    runs(&mut story, 1);
    story.event(Event::Command(Command::Abort));
    story.until(Phase::Final(FinalReason::Aborted));
    assert!(story.done.contains(&Effect::StopJob(1)) && story.calls.is_empty());
}

/// A repair that goes on when nobody needs it any more might do anything to the node.
#[test]
fn no_job_outlives_its_incident() {
    let mut stuck = ladder(&[job("repair", false)]);
    runs(&mut stuck, 1);
    stuck.until(Phase::Parked);
    stuck.wakes().until(Phase::Final(FinalReason::RecoveredByHand));
    let mut gone = ladder(&[job("repair", false)]);
    runs(&mut gone, 1);
    gone.view.node = None;
    gone.until(Phase::Final(FinalReason::NodeGone));
    let mut ended = ladder(&[job("repair", false)]);
    runs(&mut ended, 1);
    ended.job(1, JobState::Succeeded);
    ended.until(Phase::AwaitingWell);
    ended.wakes().until(Phase::Final(FinalReason::Remedied));
    for (mut story, stopped) in [(stuck, true), (gone, true), (ended, false)] {
        while !story.todo.is_empty() {
            story.go();
        }
        assert_eq!(story.did(|one| *one == Effect::StopJob(1)).is_some(), stopped);
    }
}

#[test]
fn a_job_that_does_not_end_is_a_persons_and_is_stopped_before_another_one() {
    let mut story = ladder(&[job("repair", false)]);
    runs(&mut story, 1);
    let began = story.now;
    story.until(Phase::Parked);
    let why = "was not seen to end, long after its deadline".to_string();
    assert_eq!(story.parked(), Some(&ParkReason::JobStuck { remedy: "repair".to_string(), why }));
    assert!(story.now >= began.after(DEADLINE));
    story.event(Event::Command(Command::Retry));
    runs(&mut story, 2);
    let stop = story.did(|effect| *effect == Effect::StopJob(1)).unwrap();
    assert!(stop < story.did(|effect| *effect == Effect::StartJob(2)).unwrap());
}

#[test]
fn a_job_that_the_api_server_refuses_is_asked_for_again_and_told() {
    let why = "jobs is forbidden".to_string();
    let mut story = ladder(&[job("repair", false), fence()]);
    while story.record.jobs.is_empty() {
        story.go();
    }
    let refused = |story: &mut Story| {
        story.todo.retain(|effect| !matches!(effect, Effect::StartJob(_)));
        story.job(1, JobState::Refused { why: why.clone() });
        story.go();
    };
    for _ in 0..5 {
        refused(&mut story);
    }
    let hold = Hold::JobRefused { why: why.clone() };
    assert!(story.notices.contains(&Notice::Held { reason: hold }));
    assert_eq!(story.record.phase, Phase::Remedying);
    // Somebody grants the right.
    story.job(1, JobState::Absent);
    runs(&mut story, 1);
    // And takes it away again: a Job that was seen is not asked for a second time.
    let before = started(&story);
    for _ in 0..5 {
        refused(&mut story);
    }
    assert_eq!((started(&story), story.record.phase), (before, Phase::Remedying));

    // Where nobody does, the next remedy has its turn.
    let mut story = ladder(&[job("repair", false), fence()]);
    while story.record.phase != Phase::AwaitingWell {
        refused(&mut story);
    }
    let end = story.record.jobs[0].end.clone().unwrap();
    assert_eq!((end.outcome, end.detail), (JobOutcome::Lost, why.clone()));
}

/// An abort, and another remedy, wait for a Job to be stopped, and no longer than for anything else that holds
/// an object: then a person is told, and asks again as often as they like.
#[test]
fn a_job_that_cannot_be_stopped_is_a_persons_in_the_end() {
    let hidden = JobState::Refused { why: "jobs is forbidden".to_string() };
    let rows =
        [(hidden, "could not be stopped: jobs is forbidden"), (JobState::Running, "does not stop")];
    for (state, why) in rows {
        let mut story = ladder(&[job("repair", false), fence()]);
        runs(&mut story, 1);
        // It runs for longer than anything is waited for, before anybody wants it stopped.
        story.until_now(CLEANUP_TIMEOUT.times(2));
        for _ in 0..2 {
            let asked = story.now;
            story.event(Event::Command(Command::Abort));
            story.go_with_job(&state, |story| story.record.request.is_none());
            assert_eq!(story.record.phase, Phase::Parked, "{why}");
            let told = ParkReason::JobStuck { remedy: "repair".to_string(), why: why.to_string() };
            assert_eq!(story.parked(), Some(&told));
            let waited = story.now.since(asked);
            assert!(waited >= CLEANUP_TIMEOUT && waited < CLEANUP_TIMEOUT.times(2), "{waited}");
        }
        assert!(story.calls.is_empty() && started(&story) == 1);
        // The right is given back, or the finalizer is gone.
        story.event(Event::Command(Command::Abort));
        story.job(1, JobState::Absent);
        story.until(Phase::Final(FinalReason::Aborted));
    }
}

#[test]
fn a_job_that_cannot_be_stopped_keeps_the_next_one_from_being_started() {
    let mut story = ladder(&[job("repair", false)]);
    runs(&mut story, 1);
    story.until(Phase::Parked);
    story.event(Event::Command(Command::Retry));
    story.until(Phase::Remedying);
    story.go_with_job(&JobState::Running, |story| story.record.phase == Phase::Parked);
    assert!(matches!(story.parked(), Some(ParkReason::JobStuck { .. })));
    assert_eq!(started(&story), 1);
}

#[test]
fn the_node_names_the_pod_that_remedies_it() {
    let mut story = ladder(&[job("repair", false)]);
    runs(&mut story, 1);
    for _ in 0..5 {
        story.go();
    }
    assert!(story.done.contains(&Effect::SignNode { pod: "job-1".to_string() }));
    let signed = story.done.iter().filter(|one| matches!(one, Effect::SignNode { .. })).count();
    assert_eq!(signed, 1);
}

#[test]
fn a_job_needs_neither_a_plan_nor_another_leader() {
    let plan =
        Plan { methods: vec![], power: vec![], ladder: vec![job("repair", false)], ..bmc_plan() };
    let view = lost_view(Time(1_000_000));
    assert_eq!(refuse_plan(&plan, &RunPolicy::default()), None);
    let mut story = Story::new(plan, RunPolicy::default());
    story.view = View { hosts_us: true, ..view };
    runs(&mut story, 1);
}
