//! The seams between the rules: what happens when one policy changes its mind while another one is at
//! work. Neither a rule by itself nor the devices' faults.

use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::vec;

use super::{cutting_plan, driver};
use crate::tests::driver::{Driver, honest, silent};
use crate::tests::fixtures::{
    bmc_plan, failed, not_attempted, paused_by_alice, stage, storage, succeeded,
};
use crate::*;

fn refusals() -> [Refusal; 4] {
    [
        Refusal::StorageLeaseUnread { why: "leases is forbidden".to_string() },
        Refusal::HeldByOther { holder: "node-healthcheck".to_string() },
        Refusal::NoDomain { key: "rack".to_string() },
        paused_by_alice(),
    ]
}

fn goes(driver: &mut Driver, steps: usize) {
    for _ in 0..steps {
        driver.go();
    }
}

/// The quarantine stands before all stages; the other mark is put when its stage comes to it.
#[test]
fn a_node_is_cordoned_where_its_stage_comes_to_that() {
    let (quarantine, cordon, cut) =
        (Builtin::Quarantine, Builtin::MarkUnschedulable, Kind::Fabric(Path::Other));
    let rows = [
        (Execution::All, [Kind::Builtin(quarantine), Kind::Builtin(cordon)], true, true),
        (Execution::OnlyOne, [Kind::Builtin(quarantine), Kind::Builtin(cordon)], true, false),
        (Execution::OnlyOne, [Kind::Builtin(cordon), cut.clone()], true, true),
        (Execution::OnlyOne, [cut.clone(), Kind::Builtin(cordon)], true, false),
        (Execution::OnlyOne, [cut.clone(), Kind::Builtin(cordon)], false, true),
        (Execution::All, [cut, Kind::Builtin(cordon)], true, true),
    ];
    for (execution, kinds, switch_obeys, is_cordoned) in rows {
        let mut plan = cutting_plan(kinds[0].clone());
        plan.methods[1].must_success = false;
        let mut second = plan.methods[1].clone();
        second.kind = kinds[1].clone();
        plan.methods.push(second);
        plan.isolation = vec![stage(execution, &[1, 2])];
        let mut driver = Driver::new(plan, IncidentPolicy::default());
        if !switch_obeys {
            driver.device = Box::new(|operation, plugs| match operation.method {
                0 => honest(operation, plugs),
                _ => not_attempted(FailureKind::Denied),
            });
        }
        driver.until(Phase::AwaitingHealthy);
        let cordons = driver.done.iter().filter(|one| **one == Effect::Cordon).count();
        assert_eq!(cordons, usize::from(is_cordoned), "{execution:?} {kinds:?}: {:?}", driver.done);
    }
}

/// A mark that stands is not put once more, so a cut that was read is proof, whatever the gate says then.
#[test]
fn a_mark_that_stands_needs_no_leave_for_the_release() {
    let mut plan = cutting_plan(storage());
    plan.power.clear();
    let mut mark = plan.methods[1].clone();
    mark.kind = Kind::Builtin(Builtin::MarkUnschedulable);
    plan.methods.push(mark);
    plan.isolation = vec![stage(Execution::All, &[2, 1])];
    for is_others in [false, true] {
        let mut driver = Driver::new(plan.clone(), IncidentPolicy::default());
        driver.view.node.iter_mut().for_each(|node| node.cordoned = is_others);
        while driver.count(Action::Status) == 0 {
            driver.go();
        }
        driver.view.gate.refusals = vec![paused_by_alice()];
        driver.until(Phase::Releasing);
        assert_eq!(driver.did(|one| *one == Effect::Cordon).is_some(), !is_others);
    }
}

/// Where the mark stands behind a cut, its step begins with what the device said, and the node is not looked at yet.
#[test]
fn somebody_elses_cordon_is_left_alone_behind_a_cut_too() {
    let mut plan = cutting_plan(Kind::Fabric(Path::Other));
    let mut mark = plan.methods[1].clone();
    mark.kind = Kind::Builtin(Builtin::MarkUnschedulable);
    plan.methods.push(mark);
    plan.isolation = vec![stage(Execution::All, &[1, 2])];
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.view.node.iter_mut().for_each(|node| node.cordoned = true);
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.did(|one| *one == Effect::Cordon), None, "{:?}", driver.done);
    assert!(!driver.record.marks.cordon);
}

/// What keeps this one node from being cut keeps no other one: its incident waits without the slot, and
/// takes one again.
#[test] // promise: A19
fn an_incident_that_is_kept_from_its_first_cut_keeps_no_other_node_waiting() {
    for refusal in refusals() {
        let mut kept = driver();
        kept.view.gate.refusals.push(refusal.clone());
        goes(&mut kept, 5);
        assert_eq!(
            (kept.record.phase, kept.record.slot),
            (Phase::Waiting, Slot::Free),
            "{refusal}"
        );
        kept.view.gate.refusals.clear();
        kept.until_call(Action::Off);
        assert_eq!(kept.record.slot, Slot::Held);
    }
    let mut unclear = driver();
    unclear.view.trigger = Crossing::Unclear;
    goes(&mut unclear, 5);
    assert_eq!(unclear.record.slot, Slot::Free);

    let mut own = driver();
    own.view.hosts_us = true;
    goes(&mut own, 5);
    assert_eq!(own.record.slot, Slot::Free);
}

/// Reading a machine's identity takes seconds; a pause that comes meanwhile is heeded before the off.
#[test] // promise: A19
fn a_pause_that_comes_while_identity_is_read_waits_without_a_slot() {
    for plan in [bmc_plan(), cutting_plan(Kind::Fabric(Path::Other))] {
        for action in [Action::Status, Action::Off] {
            let mut kept = Driver::new(plan.clone(), IncidentPolicy::default());
            kept.until_call(action);
            kept.device = Box::new(|_, _| not_attempted(FailureKind::Cancelled));
            kept.view.gate.refusals.push(paused_by_alice());
            kept.go();
            kept.device = Box::new(honest);
            goes(&mut kept, 20);
            let phase = kept.record.phase;
            assert_eq!((kept.record.slot, kept.plugs[0]), (Slot::Free, PlugState::On), "{phase:?}");
        }
    }
}

/// The condition's writer lives on the node that was cut off, so it falls silent: nobody knows whether the
/// condition still holds. What was cut is not left so for ever.
#[test] // promise: A14
fn a_trigger_that_nobody_knows_of_any_more_leaves_nothing_cut_or_off() {
    let waits = IncidentPolicy { power_after: Span::minutes(5), ..IncidentPolicy::default() };
    let mut cut = Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), waits);
    cut.until(Phase::AwaitingPower);
    cut.view.trigger = Crossing::Unclear;
    let since = cut.now;
    cut.until(Phase::Waiting);
    assert!(cut.now.since(since) >= GATE_TIMEOUT && cut.hit(Rule::A14));
    assert_eq!((cut.plugs.clone(), cut.count(Action::Off)), (vec![PlugState::On; 2], 1));

    let again = IncidentPolicy { restarts: 1, ..IncidentPolicy::default() };
    let mut off = Driver::new(bmc_plan(), again);
    off.device = Box::new(|operation, plugs| {
        if operation.action == Action::Status && plugs[0] == PlugState::Off {
            return failed(FailureKind::Unauthenticated);
        }
        honest(operation, plugs)
    });
    off.until_call(Action::Off);
    off.view.trigger = Crossing::Unclear;
    off.until(Phase::Waiting);
    off.device = Box::new(honest);
    off.until(Phase::AwaitingHealthy);
    assert_eq!((off.plugs[0], off.count(Action::Off)), (PlugState::On, 1));
}

/// A leader that finds itself on a node that an earlier one cut off does not wait for ever either.
#[test] // promise: A14
fn a_leader_on_the_node_that_was_cut_leaves_nothing_cut() {
    let waits = IncidentPolicy { power_after: Span::minutes(5), ..IncidentPolicy::default() };
    let mut own = Driver::new(cutting_plan(Kind::Fabric(Path::Other)), waits);
    own.until(Phase::AwaitingPower);
    own.view.hosts_us = true;
    own.until(Phase::Waiting);
    assert_eq!(own.plugs, [PlugState::On; 2]);
}

/// A yes that is taken back counts no more, also when it is taken back between the wait for it and the off.
#[test] // promise: A17, G13
fn an_approval_that_is_taken_back_before_the_off_sends_none() {
    let policy = IncidentPolicy { approval: Approval::Needed, ..IncidentPolicy::default() };
    let mut taken_back = Driver::new(bmc_plan(), policy.clone());
    taken_back.view.people.approved = true;
    taken_back.until(Phase::ReadingIdentity).until_call(Action::Status);
    taken_back.view.people.approved = false;
    goes(&mut taken_back, 20);
    let stands = (taken_back.record.phase, taken_back.record.slot, taken_back.count(Action::Off));
    assert_eq!(stands, (Phase::AwaitingPower, Slot::Free, 0));
    taken_back.view.people.approved = true;
    taken_back.until(Phase::AwaitingHealthy);
    assert_eq!((taken_back.count(Action::Off), taken_back.count(Action::On)), (1, 1));

    let mut under_way = Driver::new(bmc_plan(), policy);
    under_way.view.people.approved = true;
    under_way.until_call(Action::Off);
    let op = under_way.record.in_flight().map(|one| one.id).unwrap();
    under_way.view.people.approved = false;
    under_way.look();
    assert!(under_way.todo.contains(&Effect::Withdraw(op)));
}

fn started(driver: &Driver) -> usize {
    driver.done.iter().filter(|effect| matches!(effect, Effect::StartJob(_))).count()
}

/// A Job that was meant to run and does not exist yet, because its leader died or the API server took
/// none, is asked for again only while what allowed it still does.
#[test] // promise: A1
fn a_job_that_does_not_run_yet_is_not_started_once_its_node_is_well_or_kept() {
    let job = |name: &str| {
        let remedy = Remedy::Job { deadline: Span::minutes(30) };
        RemedyStep { name: name.to_string(), remedy, period: Span::minutes(3), clean: false }
    };
    let refused = JobState::Refused { why: "jobs is forbidden".to_string() };
    for state in [JobState::Absent, refused] {
        let meant = || {
            let mut driver = Driver::new(
                Plan { ladder: vec![job("repair")], ..bmc_plan() },
                IncidentPolicy::default(),
            );
            while driver.record.jobs.is_empty() {
                driver.go();
            }
            driver.todo = vec![Effect::Look];
            driver.job(1, state.clone());
            driver
        };
        let mut well = meant();
        let since = well.now;
        well.wakes().until(Phase::Final(FinalReason::Recovered));
        assert_eq!(started(&well), 0);
        assert!(well.now.since(since) >= WRITE_LATE_MAX, "it may be made yet");
        assert!(well.did(|one| *one == Effect::StopJob(1)).is_some());

        let mut kept = meant();
        kept.view.gate.refusals.push(paused_by_alice());
        goes(&mut kept, 20);
        let stands = (kept.record.phase, kept.record.slot, started(&kept));
        assert_eq!(stands, (Phase::Waiting, Slot::Free, 0));
        kept.view.gate.refusals.clear();
        kept.job(1, JobState::Absent);
        kept.until(Phase::Remedying);
        let since = kept.now;
        while started(&kept) == 0 {
            kept.go();
        }
        assert_eq!((started(&kept), kept.record.jobs.len()), (1, 2));
        assert!(kept.now.since(since) >= WRITE_LATE_MAX, "the first may be made yet");
    }
}

/// Its group ended the machine after our off, and its API says so late: the port that was cut is open
/// again before the incident ends.
#[test] // promise: A15
fn what_was_cut_is_restored_when_its_machine_is_terminated() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), IncidentPolicy::default());
    driver.until(Phase::Restoring);
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 => failed(FailureKind::Busy),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::PoweringOn);
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, Action::Status) => succeeded(PlugState::Terminated),
        (0, _) => failed(FailureKind::NoSuchPlug),
        (_, _) => honest(operation, plugs),
    });
    driver.until(Phase::Final(FinalReason::Replaced));
    assert_eq!(driver.plugs[1], PlugState::On);
}

/// A person stopped the incident with the machine off and its port cut, and lets it go on later: the port is
/// open before the machine is on, or it would never be heard of again.
#[test] // promise: A5
fn a_machine_that_was_left_off_by_an_abort_does_not_come_back_cut_off() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), IncidentPolicy::default());
    driver.holders = true;
    driver.until(Phase::Releasing).until_released();
    driver.event(Event::Command(Command::AbortLeaveOff));
    driver.until(Phase::Parked);
    assert_eq!(driver.plugs, [PlugState::Off; 2]);
    driver.event(Event::Command(Command::Retry));
    driver.until_call(Action::On);
    assert_eq!(driver.record.in_flight().map(|one| one.method), Some(1), "the port first");
    driver.until(Phase::AwaitingHealthy);
    assert_eq!((driver.plugs.clone(), driver.count(Action::Off)), (vec![PlugState::On; 2], 2));
    driver.view.pods.clear();
    driver.view.attachments.clear();
    driver.boots().until(Phase::Final(FinalReason::Remedied));
}

/// An administrator shut it, and opens it when it is time.
#[test] // promise: A4
fn a4_a_port_that_somebody_shut_before_us_is_not_opened() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), IncidentPolicy::default());
    driver.plugs[1] = PlugState::Off;
    driver.until(Phase::AwaitingHealthy).boots();
    driver.until(Phase::Final(FinalReason::Remedied));
    assert_eq!(driver.plugs, [PlugState::On, PlugState::Off]);
    assert!(driver.calls.iter().all(|call| *call == (1, Action::Status) || call.0 == 0));
}

/// What could not be restored keeps a machine off until a person has restored it. Then it is switched on;
/// it is not cut off once more.
#[test] // promise: A5
fn a_machine_whose_port_was_restored_by_hand_is_switched_on_and_not_cut_again() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), IncidentPolicy::default());
    driver.until(Phase::Restoring);
    driver.device = Box::new(|operation, plugs| {
        let sticks = operation.method == 1 && operation.action == Action::On;
        if sticks { failed(FailureKind::Denied) } else { honest(operation, plugs) }
    });
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::RestoreFailed));
    let left_off = driver.record.parked.as_ref().map(|one| one.powered_off_by_us.clone());
    assert_eq!((left_off, driver.count(Action::Off)), (Some(vec![0]), 2));
    driver.device = Box::new(honest);
    driver.event(Event::Command(Command::Retry));
    driver.until(Phase::AwaitingHealthy);
    assert_eq!((driver.plugs.clone(), driver.count(Action::Off)), (vec![PlugState::On; 2], 2));
}

/// After the release its device says nothing of the machine any more, for good: the feeds are not read for
/// ever before the `on` is tried and a person is told that the machine is off.
#[test] // promise: A5
fn a_feed_that_cannot_be_read_any_more_does_not_keep_its_machine_off_untold() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), IncidentPolicy::default());
    driver.until(Phase::Restoring);
    let since = driver.now;
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 => failed(FailureKind::Unauthenticated),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::Parked);
    assert!(driver.now.since(since) < Span::minutes(10), "{:?}", driver.now.since(since));
    assert_eq!((driver.parked(), driver.record.slot), (Some(&ParkReason::OnFailed), Slot::Free));
    let left_off = driver.record.parked.as_ref().map(|one| one.powered_off_by_us.clone());
    assert_eq!(left_off, Some(vec![0]));
}

/// The management controller restarts just when the way back begins: it is waited for, and the port is
/// open before the machine is on.
#[test] // promise: A12
fn a_device_that_is_silent_on_the_way_back_brings_no_machine_back_cut_off() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), IncidentPolicy::default());
    driver.until(Phase::Restoring);
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 => silent(operation, plugs),
        _ => honest(operation, plugs),
    });
    let since = driver.now;
    while driver.now.since(since) < Span::minutes(5) {
        driver.go();
    }
    assert_eq!(driver.record.phase, Phase::AwaitingDevice);
    driver.device = Box::new(honest);
    driver.until_call(Action::On);
    assert_eq!(driver.record.in_flight().map(|one| one.method), Some(1), "the port first");
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.plugs, [PlugState::On; 2]);
}

/// Somebody's admission policy takes our quarantine off, or refuses it: nothing is released, and the machine
/// does not stay off for that.
#[test] // promise: P4
fn a_quarantine_that_never_stands_releases_nothing_and_leaves_no_machine_off() {
    let mut driver = driver();
    while driver.record.phase != Phase::AwaitingHealthy {
        driver.go();
        driver.view.node.iter_mut().for_each(|node| node.quarantined = false);
        assert!(driver.now < Time(1_000_000).after(Span::minutes(30)), "{:?}", driver.record.phase);
    }
    assert_eq!((driver.released(), driver.plugs[0]), (false, PlugState::On));
    let stalled = |one: &Notice| matches!(one, Notice::ReleaseStalled { .. });
    assert!(driver.notices.iter().any(stalled), "people are told");
}

/// The out-of-service taint has to be gone before the machine is on. Where it does not go, people are told
/// that the machine waits for it.
#[test] // promise: P2
fn a_taint_that_cannot_be_lifted_is_told_of() {
    let mut driver = driver();
    driver.until(Phase::Untainting);
    let since = driver.now;
    while driver.now.since(since) < CLEANUP_TIMEOUT.times(2) {
        driver.go();
        driver.view.node.iter_mut().for_each(|node| {
            (node.out_of_service, node.out_of_service_by_us) = (true, true);
        });
    }
    assert_eq!((driver.record.phase, driver.count(Action::On)), (Phase::Untainting, 0));
    let left = vec!["out-of-service taint of node-a".to_string()];
    assert!(driver.notices.contains(&Notice::Held { reason: Hold::CleanUp { left } }));
}

/// Somebody's admission policy refuses that our marks are taken off: the node is well and takes no pods.
#[test]
fn marks_that_cannot_be_taken_off_are_told_of() {
    let mut driver = driver();
    driver.until(Phase::AwaitingHealthy);
    driver.boots().until(Phase::Recovering);
    let since = driver.now;
    let told = |driver: &Driver| {
        let left = vec!["quarantine taint of node-a".to_string()];
        driver.notices.contains(&Notice::Held { reason: Hold::CleanUp { left } })
    };
    while driver.now.since(since) < CLEANUP_TIMEOUT.times(2) {
        driver.go();
        driver.view.node.iter_mut().for_each(|node| node.quarantined = true);
        assert!(!told(&driver) || driver.now.since(since) >= CLEANUP_TIMEOUT, "not at once");
    }
    assert!(told(&driver) && driver.record.phase == Phase::Recovering);
    driver.until(Phase::Final(FinalReason::Remedied));
}

/// The fence before it failed and gave the machine back: a pause before the next remedy is waited for like
/// any other, and nobody is told that the machine is off.
#[test] // promise: A17
fn a_pause_before_the_next_remedy_says_nothing_of_a_machine_that_is_on_again() {
    let remedy_step = |name: &str, remedy| RemedyStep {
        name: name.to_string(),
        remedy,
        period: Span::minutes(3),
        clean: false,
    };
    let job = Remedy::Job { deadline: Span::minutes(30) };
    let ladder = vec![remedy_step("fence", Remedy::Fence), remedy_step("terminate", job)];
    let mut driver = Driver::new(Plan { ladder, ..bmc_plan() }, IncidentPolicy::default());
    driver.device = Box::new(|operation, plugs| {
        let end = honest(operation, plugs);
        let is_dark = plugs[0] == PlugState::Off;
        if is_dark { succeeded(PlugState::Unknown) } else { end }
    });
    driver.until(Phase::AwaitingHealthy);
    assert_eq!((driver.plugs[0], driver.released()), (PlugState::On, false));
    driver.view.gate.refusals = vec![paused_by_alice()];
    driver.until(Phase::Waiting);
    let since = driver.now;
    while driver.now.since(since) < GATE_TIMEOUT.times(2) {
        driver.go();
        assert_eq!(driver.record.phase, Phase::Waiting);
    }
    assert_eq!((driver.record.slot, started(&driver)), (Slot::Free, 0));
    driver.view.gate.refusals.clear();
    driver.until(Phase::Remedying);
}

/// The leader dies while it reads the feeds, and another one leads a minute later: it reads them itself
/// before it gives up on them.
#[test] // promise: A5
fn a_leader_that_comes_late_to_the_way_back_reads_the_feeds_before_it_switches_on() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), IncidentPolicy::default());
    driver.until(Phase::Restoring).until_call(Action::Status);
    driver.todo.clear();
    driver.now = driver.now.after(Span::minutes(1));
    driver.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
    driver.until(Phase::PoweringOn);
    assert_eq!(driver.plugs, [PlugState::Off, PlugState::On], "the port before the machine");
}
