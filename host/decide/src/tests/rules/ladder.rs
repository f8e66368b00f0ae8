//! A11: the remedies of a ladder, one after the other; Jobs among them are started once, and taken at
//! their word only where the node does not contradict it.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;

use super::CLEAR;
use crate::tests::driver::{Driver, honest};
use crate::tests::fixtures::{bmc_plan, liveness, lost_view, succeeded};
use crate::*;

const PERIOD: Span = Span::minutes(3);
const DEADLINE: Span = Span::minutes(30);

fn job(name: &str, clean: bool) -> RemedyStep {
    let remedy = Remedy::Job { deadline: DEADLINE };
    RemedyStep { name: name.to_string(), remedy, period: PERIOD, clean }
}

fn fence() -> RemedyStep {
    RemedyStep { name: "fence".to_string(), remedy: Remedy::Fence, period: PERIOD, clean: false }
}

fn ladder(ladder: &[RemedyStep]) -> Driver {
    Driver::new(Plan { ladder: ladder.to_vec(), ..bmc_plan() }, IncidentPolicy::default())
}

fn failed() -> JobState {
    JobState::Failed { detail: "no such disk".to_string() }
}

fn started(driver: &Driver) -> usize {
    driver.done.iter().filter(|effect| matches!(effect, Effect::StartJob(_))).count()
}

/// Goes on until the Job of this number was started and seen.
fn runs(driver: &mut Driver, number: u32) {
    for _ in 0..1_000 {
        let last = driver.record.jobs.last();
        if last.is_some_and(|job| job.number == number && job.seen_at.is_some()) {
            return;
        }
        driver.go();
    }
    panic!("Job {number} does not run: {:?}", driver.record.jobs);
}

#[test]
fn a11_a_job_that_mends_the_node_ends_the_incident() {
    let mut driver = ladder(&[job("repair", false), fence()]);
    runs(&mut driver, 1);
    assert_eq!((driver.record.phase, driver.record.slot), (Phase::Remedying, Slot::Held));
    driver.job(1, JobState::Succeeded);
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.record.slot, Slot::Held);
    driver.wakes().until(Phase::Final(FinalReason::Remedied));
    assert!(driver.calls.is_empty() && !driver.released());
    assert_eq!(started(&driver), 1);
}

/// Whoever led when it ran is dead; the next one finds that it has ended.
#[test]
fn a11_the_pod_of_a_job_that_ended_unseen_stands_on_the_node_and_in_the_record() {
    let mut driver = ladder(&[job("repair", false), fence()]);
    while started(&driver) == 0 {
        driver.go();
    }
    assert_eq!(driver.record.jobs[0].seen_at, None);
    driver.job(1, failed());
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.record.jobs[0].pod.as_deref(), Some("job-1"));
    let signed = |driver: &Driver| driver.view.node.as_ref().unwrap().remediation_pod.clone();
    while signed(&driver).is_none() {
        driver.go();
    }
    assert_eq!((signed(&driver).as_deref(), started(&driver)), (Some("job-1"), 1));
}

#[test] // promise: A11
fn a11_the_next_remedy_has_its_turn_a_period_after_the_job_ended() {
    for end in [JobState::Succeeded, failed()] {
        let mut driver = ladder(&[job("repair", false), fence()]);
        runs(&mut driver, 1);
        assert!(driver.calls.is_empty(), "an incident waits for its Job");
        driver.job(1, end);
        driver.until(Phase::AwaitingHealthy);
        let ended = driver.now;
        driver.until(Phase::ReadingIdentity);
        assert!(driver.now >= ended.after(PERIOD) && driver.now < ended.after(PERIOD.times(2)));
        assert_eq!(driver.record.remedy_step, 1);
        driver.until(Phase::AwaitingHealthy);
        driver.boots().until(Phase::Final(FinalReason::Remedied));
        assert_eq!((driver.count(Action::Off), started(&driver)), (1, 1));
        assert!(driver.hit(Rule::A11));
    }
}

#[test] // promise: A11
fn a11_what_allowed_the_first_remedy_is_read_again_before_the_next() {
    let mut driver = ladder(&[job("repair", false), fence()]);
    runs(&mut driver, 1);
    driver.job(1, failed());
    driver.until(Phase::AwaitingHealthy);
    driver.view.gate.refusals = vec![Refusal::NoLease];
    driver.until(Phase::Waiting);
    for _ in 0..20 {
        driver.go();
    }
    assert_eq!((driver.record.phase, driver.calls.len()), (Phase::Waiting, 0));
    driver.view.trigger = CLEAR;
    driver.until(Phase::Final(FinalReason::Recovered));
}

#[test]
fn a11_the_last_remedy_gives_way_to_a_person_with_the_jobs_last_words() {
    let mut driver = ladder(&[job("repair", false)]);
    runs(&mut driver, 1);
    driver.job(1, failed());
    driver.until(Phase::Parked);
    let detail = "its Job failed: no such disk".to_string();
    let exhausted = ParkReason::RemediesExhausted { remedy: "repair".to_string(), detail };
    assert_eq!(driver.parked(), Some(&exhausted));
    driver.event(Event::Command(Command::Retry));
    runs(&mut driver, 2);
    assert_eq!(started(&driver), 2);
}

#[test] // promise: A11
fn a11_a_fence_that_fails_gives_back_what_it_took_before_the_next_remedy() {
    let mut driver = ladder(&[fence(), job("terminate", false)]);
    driver.device = Box::new(|operation, plugs| {
        let end = honest(operation, plugs);
        // Whatever was switched off says nothing of itself until it is switched on.
        let dark = plugs[operation.method] == PlugState::Off;
        if dark { succeeded(PlugState::Unknown) } else { end }
    });
    runs(&mut driver, 1);
    assert!(driver.count(Action::Off) > 0 && driver.count(Action::On) > 0);
    let on = driver.calls.iter().rposition(|call| call.1 == Action::On);
    let off = driver.calls.iter().rposition(|call| call.1 == Action::Off);
    assert!(on > off, "{:?}", driver.calls);
    assert!(!driver.released());
}

#[test]
fn a_job_is_started_once_whoever_finds_its_record() {
    let mut driver = ladder(&[job("repair", false)]);
    let adopted = |process: &str| Event::Adopted { epoch: 2, process: process.to_string() };
    while driver.record.jobs.is_empty() {
        driver.go();
    }
    // The process died between intent and create; the next one finds none and creates it.
    driver.todo.clear();
    driver.event(adopted("p2"));
    runs(&mut driver, 1);
    assert_eq!(started(&driver), 1);
    // It died again while the Job runs: the next one watches it.
    driver.todo.clear();
    driver.event(adopted("p3"));
    for _ in 0..5 {
        driver.go();
    }
    assert_eq!((started(&driver), driver.record.jobs.len()), (1, 1));
    // Somebody deleted it: it is lost, not started again.
    driver.job(1, JobState::Absent);
    driver.until(Phase::AwaitingHealthy);
    let end = driver.record.jobs[0].end.as_ref();
    assert_eq!(end.map(|end| end.outcome), Some(JobOutcome::Lost));
    assert_eq!(started(&driver), 1);
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
        let mut driver = ladder(&[job("terminate", clean)]);
        runs(&mut driver, 1);
        driver.job(1, end);
        let mut life = 1;
        while !matches!(driver.record.phase, Phase::Parked | Phase::Releasing) {
            if lives {
                life += 1;
                let boot = driver.record.liveness_at_open.boot_id.clone();
                driver.view.node.as_mut().unwrap().liveness = liveness(&boot, life);
            }
            driver.go();
        }
        let proven = driver.record.proof.as_ref().map(|proof| proof.grade);
        assert_eq!(proven == Some(Grade::JobSucceeded), released, "{what}");
        if released {
            driver.until_released();
            assert!(driver.record.marks.quarantine);
        }
        assert_eq!(driver.released(), released, "{what}");
    }
}

#[test]
fn p2_a_word_holds_no_longer_than_the_nodes_silence() {
    let mut driver = ladder(&[job("terminate", true)]);
    runs(&mut driver, 1);
    driver.job(1, JobState::Succeeded);
    driver.until(Phase::Releasing);
    let boot = driver.record.liveness_at_open.boot_id.clone();
    driver.view.node.as_mut().unwrap().liveness = liveness(&boot, 7);
    driver.until(Phase::AwaitingHealthy);
    assert!(!driver.released() && driver.hit(Rule::P2));
}

#[test]
fn an_abort_stops_the_job_first() {
    let mut driver = ladder(&[job("repair", false), fence()]);
    runs(&mut driver, 1);
    driver.event(Event::Command(Command::Abort));
    driver.until(Phase::Final(FinalReason::Aborted));
    assert!(driver.done.contains(&Effect::StopJob(1)) && driver.calls.is_empty());
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
    ended.until(Phase::AwaitingHealthy);
    ended.wakes().until(Phase::Final(FinalReason::Remedied));
    for (mut driver, stopped) in [(stuck, true), (gone, true), (ended, false)] {
        while !driver.todo.is_empty() {
            driver.go();
        }
        assert_eq!(driver.did(|one| *one == Effect::StopJob(1)).is_some(), stopped);
    }
}

#[test]
fn a_job_that_does_not_end_is_a_persons_and_is_stopped_before_another_one() {
    let mut driver = ladder(&[job("repair", false)]);
    runs(&mut driver, 1);
    let began = driver.now;
    driver.until(Phase::Parked);
    let why = "was not seen to end, long after its deadline".to_string();
    assert_eq!(driver.parked(), Some(&ParkReason::JobStuck { remedy: "repair".to_string(), why }));
    assert!(driver.now >= began.after(DEADLINE));
    driver.event(Event::Command(Command::Retry));
    runs(&mut driver, 2);
    let stop = driver.did(|effect| *effect == Effect::StopJob(1)).unwrap();
    assert!(stop < driver.did(|effect| *effect == Effect::StartJob(2)).unwrap());
}

#[test]
fn a_job_that_the_api_server_refuses_is_asked_for_again_and_told() {
    let why = "jobs is forbidden".to_string();
    let mut driver = ladder(&[job("repair", false), fence()]);
    while driver.record.jobs.is_empty() {
        driver.go();
    }
    let refused = |driver: &mut Driver| {
        driver.todo.retain(|effect| !matches!(effect, Effect::StartJob(_)));
        driver.job(1, JobState::Refused { why: why.clone() });
        driver.go();
    };
    for _ in 0..5 {
        refused(&mut driver);
    }
    let hold = Hold::JobRefused { why: why.clone() };
    assert!(driver.notices.contains(&Notice::Held { reason: hold }));
    assert_eq!(driver.record.phase, Phase::Remedying);
    // Somebody grants the right.
    driver.job(1, JobState::Absent);
    runs(&mut driver, 1);
    // And takes it away again: a Job that was seen is not asked for a second time.
    let before = started(&driver);
    for _ in 0..5 {
        refused(&mut driver);
    }
    assert_eq!((started(&driver), driver.record.phase), (before, Phase::Remedying));

    // Where nobody does, the next remedy has its turn.
    let mut driver = ladder(&[job("repair", false), fence()]);
    while driver.record.phase != Phase::AwaitingHealthy {
        refused(&mut driver);
    }
    let end = driver.record.jobs[0].end.clone().unwrap();
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
        let mut driver = ladder(&[job("repair", false), fence()]);
        runs(&mut driver, 1);
        // It runs for longer than anything is waited for, before anybody wants it stopped.
        driver.until_now(CLEANUP_TIMEOUT.times(2));
        for _ in 0..2 {
            let asked = driver.now;
            driver.event(Event::Command(Command::Abort));
            driver.go_with_job(&state, |driver| driver.record.request.is_none());
            assert_eq!(driver.record.phase, Phase::Parked, "{why}");
            let told = ParkReason::JobStuck { remedy: "repair".to_string(), why: why.to_string() };
            assert_eq!(driver.parked(), Some(&told));
            let waited = driver.now.since(asked);
            assert!(waited >= CLEANUP_TIMEOUT && waited < CLEANUP_TIMEOUT.times(2), "{waited}");
        }
        assert!(driver.calls.is_empty() && started(&driver) == 1);
        // The right is given back, or the finalizer is gone.
        driver.event(Event::Command(Command::Abort));
        driver.job(1, JobState::Absent);
        driver.until(Phase::Final(FinalReason::Aborted));
    }
}

#[test]
fn a_job_that_cannot_be_stopped_keeps_the_next_one_from_being_started() {
    let mut driver = ladder(&[job("repair", false)]);
    runs(&mut driver, 1);
    driver.until(Phase::Parked);
    driver.event(Event::Command(Command::Retry));
    driver.until(Phase::Remedying);
    driver.go_with_job(&JobState::Running, |driver| driver.record.phase == Phase::Parked);
    assert!(matches!(driver.parked(), Some(ParkReason::JobStuck { .. })));
    assert_eq!(started(&driver), 1);
}

#[test]
fn the_node_names_the_pod_that_remedies_it() {
    let mut driver = ladder(&[job("repair", false)]);
    runs(&mut driver, 1);
    for _ in 0..5 {
        driver.go();
    }
    assert!(driver.done.contains(&Effect::AnnotateNode { pod: "job-1".to_string() }));
    let signed =
        driver.done.iter().filter(|one| matches!(one, Effect::AnnotateNode { .. })).count();
    assert_eq!(signed, 1);
}

#[test]
fn a_job_needs_neither_a_plan_nor_another_leader() {
    let plan =
        Plan { methods: vec![], power: vec![], ladder: vec![job("repair", false)], ..bmc_plan() };
    let view = lost_view(Time(1_000_000));
    assert_eq!(refuse_plan(&plan, &IncidentPolicy::default()), None);
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.view = View { hosts_us: true, ..view };
    runs(&mut driver, 1);
}
