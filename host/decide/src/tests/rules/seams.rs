//! The seams between the rules: what happens when one policy changes its mind while another one is at
//! work. Neither a rule by itself nor the devices' faults.

use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::vec;

use super::{cutting_plan, story};
use crate::tests::fixtures::{bmc_plan, failed, not_attempted, paused_by_alice, succeeded};
use crate::tests::story::{Story, honest};
use crate::*;

fn refusals() -> [Refusal; 4] {
    [
        Refusal::StorageLeaseUnread { why: "leases is forbidden".to_string() },
        Refusal::HeldByOther { holder: "node-healthcheck".to_string() },
        Refusal::NoDomain { key: "rack".to_string() },
        paused_by_alice(),
    ]
}

fn goes(story: &mut Story, steps: usize) {
    for _ in 0..steps {
        story.go();
    }
}

/// What keeps this one node from being cut keeps no other one: its run waits without the slot, and
/// takes one again.
#[test]
fn a_run_that_is_kept_from_its_first_cut_keeps_no_other_node_waiting() {
    for refusal in refusals() {
        let mut kept = story();
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
    let mut unclear = story();
    unclear.view.trigger = Crossing::Unclear;
    goes(&mut unclear, 5);
    assert_eq!(unclear.record.slot, Slot::Free);

    let mut own = story();
    own.view.hosts_us = true;
    goes(&mut own, 5);
    assert_eq!(own.record.slot, Slot::Free);
}

/// Reading a machine's identity takes seconds; a pause that comes meanwhile is heeded before the off.
#[test]
fn a_pause_that_comes_while_identity_is_read_waits_without_a_slot() {
    for plan in [bmc_plan(), cutting_plan(Kind::Fabric(Path::Other))] {
        for action in [Action::Status, Action::Off] {
            let mut kept = Story::new(plan.clone(), RunPolicy::default());
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
#[test]
fn a_trigger_that_nobody_knows_of_any_more_leaves_nothing_cut_or_off() {
    let waits = RunPolicy { power_after: Span::minutes(5), ..RunPolicy::default() };
    let mut cut = Story::new(cutting_plan(Kind::Fabric(Path::ApiServer)), waits);
    cut.until(Phase::AwaitingPower);
    cut.view.trigger = Crossing::Unclear;
    let since = cut.now;
    cut.until(Phase::Waiting);
    assert!(cut.now.since(since) >= GATE_TIMEOUT && cut.hit(Rule::A14));
    assert_eq!((cut.plugs.clone(), cut.count(Action::Off)), (vec![PlugState::On; 2], 1));

    let again = RunPolicy { restarts: 1, ..RunPolicy::default() };
    let mut off = Story::new(bmc_plan(), again);
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
    off.until(Phase::AwaitingWell);
    assert_eq!((off.plugs[0], off.count(Action::Off)), (PlugState::On, 1));
}

/// A leader that finds itself on a node that an earlier one cut off does not wait for ever either.
#[test]
fn a_leader_on_the_node_that_was_cut_leaves_nothing_cut() {
    let waits = RunPolicy { power_after: Span::minutes(5), ..RunPolicy::default() };
    let mut own = Story::new(cutting_plan(Kind::Fabric(Path::Other)), waits);
    own.until(Phase::AwaitingPower);
    own.view.hosts_us = true;
    own.until(Phase::Waiting);
    assert_eq!(own.plugs, [PlugState::On; 2]);
}

/// A yes that is taken back counts no more, also when it is taken back between the wait for it and the off.
#[test]
fn an_approval_that_is_taken_back_before_the_off_sends_none() {
    let policy = RunPolicy { approval: Approval::Needed, ..RunPolicy::default() };
    let mut taken_back = Story::new(bmc_plan(), policy.clone());
    taken_back.view.people.approved = true;
    taken_back.until(Phase::ReadingIdentity).until_call(Action::Status);
    taken_back.view.people.approved = false;
    goes(&mut taken_back, 20);
    let stands = (taken_back.record.phase, taken_back.record.slot, taken_back.count(Action::Off));
    assert_eq!(stands, (Phase::AwaitingPower, Slot::Free, 0));
    taken_back.view.people.approved = true;
    taken_back.until(Phase::AwaitingWell);
    assert_eq!((taken_back.count(Action::Off), taken_back.count(Action::On)), (1, 1));

    let mut under_way = Story::new(bmc_plan(), policy);
    under_way.view.people.approved = true;
    under_way.until_call(Action::Off);
    let op = under_way.record.in_flight().map(|one| one.id).unwrap();
    under_way.view.people.approved = false;
    under_way.look();
    assert!(under_way.todo.contains(&Effect::Withdraw(op)));
}

fn started(story: &Story) -> usize {
    story.done.iter().filter(|effect| matches!(effect, Effect::StartJob(_))).count()
}

/// A Job that was meant to run and does not exist yet, because its leader died or the API server took
/// none, is asked for again only while what allowed it still does.
#[test]
fn a_job_that_does_not_run_yet_is_not_started_once_its_node_is_well_or_kept() {
    let job = |name: &str| {
        let remedy = Remedy::Job { deadline: Span::minutes(30) };
        Rung { name: name.to_string(), remedy, period: Span::minutes(3), clean: false }
    };
    let refused = JobState::Refused { why: "jobs is forbidden".to_string() };
    for state in [JobState::Absent, refused] {
        let meant = || {
            let mut story = Story::new(
                Plan { ladder: vec![job("repair")], ..bmc_plan() },
                RunPolicy::default(),
            );
            while story.record.jobs.is_empty() {
                story.go();
            }
            story.todo = vec![Effect::Look];
            story.job(1, state.clone());
            story
        };
        let mut well = meant();
        well.wakes().until(Phase::Final(FinalReason::Recovered));
        assert_eq!(started(&well), 0);

        let mut kept = meant();
        kept.view.gate.refusals.push(paused_by_alice());
        goes(&mut kept, 20);
        let stands = (kept.record.phase, kept.record.slot, started(&kept));
        assert_eq!(stands, (Phase::Waiting, Slot::Free, 0));
        kept.view.gate.refusals.clear();
        kept.job(1, JobState::Absent);
        kept.until(Phase::Remedying);
        goes(&mut kept, 5);
        assert_eq!((started(&kept), kept.record.jobs.len()), (1, 2));
    }
}
