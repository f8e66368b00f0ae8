//! A remedy that is a plugin: what it decides goes the way of the remedy that it names, and no other; it is
//! asked once for each decision, and not for ever.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::CLEAR;
use crate::decided::DECIDING_MAX;
use crate::tests::driver::Driver;
use crate::tests::fixtures::{bmc_plan, failed, paused_by_alice, power, stage};
use crate::*;

const PERIOD: Span = Span::minutes(3);

fn remedy_step(name: &str, remedy: Remedy) -> RemedyStep {
    RemedyStep { name: name.to_string(), remedy, period: PERIOD, clean: false }
}

/// A node whose ladder is a plugin that answers so, and then a fence.
fn asks(answers: &[Choice]) -> Driver {
    asks_with(bmc_plan(), answers)
}

fn asks_with(plan: Plan, answers: &[Choice]) -> Driver {
    let ladder = vec![remedy_step("polite", Remedy::Plugin), remedy_step("fence", Remedy::Fence)];
    let mut driver = Driver::new(Plan { ladder, ..plan }, IncidentPolicy::default());
    driver.answers = answers.iter().cloned().map(Ok).collect();
    driver
}

/// The same, and nothing behind it.
fn alone(answers: &[Choice]) -> Driver {
    let mut driver = asks(answers);
    driver.plan.ladder.truncate(1);
    driver
}

fn method(name: &str) -> Choice {
    Choice::Method(name.to_string())
}

fn cluster(name: &str) -> Choice {
    Choice::Cluster(name.to_string())
}

fn asked(driver: &Driver) -> usize {
    driver.done.iter().filter(|effect| matches!(effect, Effect::AskRemedy(_))).count()
}

/// What was decided, and how it ended.
fn decided(driver: &Driver) -> Vec<(String, bool)> {
    let ended = |one: &Decided| one.ended_at.is_some() && one.failed.is_none();
    let all = driver.record.decisions.iter();
    all.filter_map(|one| Some((one.choice.as_ref()?.to_string(), ended(one)))).collect()
}

fn until_decided(driver: &mut Driver, choice: &Choice) {
    for _ in 0..1_000 {
        let last = driver.record.decisions.last();
        if last.is_some_and(|one| one.choice.as_ref() == Some(choice)) {
            return;
        }
        driver.go();
    }
    panic!("not decided: {:?}", driver.record.decisions);
}

/// It drains, then has the machine's power cycled, and then the plan is carried out.
#[test]
fn a_plugin_drains_asks_a_method_and_fences_one_after_the_other() {
    let mut driver = asks(&[cluster("drain"), method("bmc"), Choice::Fence]);
    while driver.record.phase != Phase::AwaitingHealthy {
        // Its kubelet lives: somebody stops what is asked to leave.
        let now = driver.now;
        driver.view.node.iter_mut().for_each(|node| node.lease_seen_at = Some(now));
        driver.go();
    }
    assert!(driver.view.node.as_ref().unwrap().cordoned && driver.calls.is_empty());
    assert!(driver.view.pods.iter().all(|pod| pod.exempt.is_some()), "its pods have left");
    let drained = driver.now;
    driver.until_call(Action::Off);
    assert!(driver.now >= drained.after(PERIOD), "the node had its time to be well");
    driver.until(Phase::AwaitingHealthy);
    driver.until_now(Span::minutes(16)).until(Phase::AwaitingHealthy);
    assert_eq!((driver.count(Action::Off), driver.record.remedy_step), (2, 0));
    let expected = [("cluster drain", true), ("method bmc", true), ("fence", false)];
    assert_eq!(decided(&driver), expected.map(|(what, ended)| (what.to_string(), ended)));
    driver.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!((asked(&driver), driver.count(Action::On)), (3, 2));
    let node = driver.view.node.as_ref().unwrap();
    assert!(!node.cordoned && !node.quarantined, "its marks are lifted");
}

/// As in a configuration: with the gate closed nothing is cut, whatever was decided.
#[test]
fn a_decision_waits_for_the_gate_as_the_remedy_it_names_does() {
    for choice in [Choice::Fence, method("bmc"), cluster("drain"), cluster("cordon")] {
        let mut driver = asks(core::slice::from_ref(&choice));
        until_decided(&mut driver, &choice);
        driver.view.gate.refusals = vec![Refusal::NoLease, paused_by_alice()];
        for _ in 0..50 {
            driver.go();
        }
        assert_eq!(driver.record.phase, Phase::Waiting, "{choice}");
        let node = driver.view.node.as_ref().unwrap();
        assert!(driver.calls.is_empty() && !node.cordoned && !node.quarantined, "{choice}");
        assert_eq!(driver.record.slot, Slot::Free, "nobody holds a slot to wait with it");
        driver.view.gate.refusals.clear();
        driver.until(Phase::AwaitingHealthy);
    }
}

#[test]
fn a_decision_to_cut_waits_for_our_own_node_its_time_and_a_yes() {
    let mut driver = asks(&[Choice::Fence]);
    driver.view.hosts_us = true;
    for _ in 0..20 {
        driver.go();
    }
    assert_eq!((driver.record.phase, driver.calls.len()), (Phase::Waiting, 0));
    assert!(driver.done.contains(&Effect::HandOver));

    let mut driver = asks(&[Choice::Fence]);
    driver.policy.isolate_after = Span::minutes(2);
    driver.policy.approval = Approval::Needed;
    until_decided(&mut driver, &Choice::Fence);
    let decided = driver.now;
    driver.until(Phase::AwaitingPower);
    assert!(driver.now >= decided.after(Span::minutes(2)));
    for _ in 0..20 {
        driver.go();
    }
    assert_eq!((driver.record.phase, driver.count(Action::Off)), (Phase::AwaitingPower, 0));
    driver.view.people.approved = true;
    driver.until_call(Action::Off);
}

#[test]
fn a_node_that_is_well_meanwhile_is_left_alone() {
    for answers in [vec![], vec![Choice::Wait(Span::minutes(9))]] {
        let mut driver = asks(&answers);
        while asked(&driver) == 0 || !driver.answers.is_empty() {
            driver.go();
        }
        driver.view.trigger = CLEAR;
        driver.until(Phase::Final(FinalReason::Recovered));
        assert!(driver.calls.is_empty());
    }
}

/// It is its record that is followed: whoever takes over asks nobody again.
#[test]
fn a_decision_that_was_recorded_is_followed_by_another_process() {
    let mut driver = asks(&[Choice::Fence, method("bmc")]);
    until_decided(&mut driver, &Choice::Fence);
    assert!(driver.calls.is_empty());
    driver.todo.clear();
    driver.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
    driver.until_call(Action::Off);
    assert_eq!((asked(&driver), driver.record.decisions.len()), (1, 1));
    let isolates = driver.notices.iter().any(|one| matches!(one, Notice::Isolating));
    assert!(isolates, "the fence, and not the method");
}

/// Who died before the answer was recorded is asked for again, and a second answer changes nothing.
#[test]
fn an_ask_without_an_answer_is_made_again_and_only_one_answer_counts() {
    let mut driver = asks(&[]);
    while asked(&driver) == 0 {
        driver.go();
    }
    driver.todo.clear();
    driver.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
    driver.answers = vec![Ok(cluster("cordon"))];
    until_decided(&mut driver, &cluster("cordon"));
    assert_eq!((asked(&driver), driver.record.decisions.len()), (2, 1));
    let record = driver.record.clone();
    driver.event(Event::Decided { number: 1, answer: Ok(Choice::Fence) });
    assert_eq!(driver.record.decisions, record.decisions);
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.view.node.as_ref().unwrap().cordoned && driver.calls.is_empty());
}

#[test]
fn an_answer_to_another_ask_counts_for_nothing() {
    let mut driver = asks(&[]);
    while asked(&driver) == 0 {
        driver.go();
    }
    driver.event(Event::Decided { number: 7, answer: Ok(Choice::Fence) });
    assert_eq!(driver.record.decisions[0].choice, None);
}

/// The remedy step has failed, its reason is told, and the next remedy has its turn a period later.
#[test]
fn what_cannot_be_followed_ends_the_remedy_step_and_the_ladder_goes_on() {
    let mut outlets = bmc_plan();
    outlets.methods = vec![power("pdu-a", Feed::Part), power("pdu-b", Feed::Part)];
    outlets.power = vec![stage(Execution::All, &[0, 1])];
    let mut fabric = bmc_plan();
    fabric
        .methods
        .push(Method { kind: Kind::Fabric(Path::ApiServer), ..power("port", Feed::Whole) });
    fabric.isolation = vec![stage(Execution::All, &[1])];
    let wait = |span| Choice::Wait(span);
    for (plan, choice, why) in [
        (bmc_plan(), method("bcm"), "names such a method; there are: bmc"),
        (bmc_plan(), cluster("reboot"), "it is none of cordon, quarantine, drain"),
        (bmc_plan(), wait(Span::ZERO), "a wait is of 1 to 14400 seconds"),
        (bmc_plan(), wait(Span::minutes(241)), "a wait is of 1 to 14400 seconds"),
        (outlets, method("pdu-a"), "one of several outlets"),
        (fabric, method("port"), "the node could never come back"),
        (bmc_plan(), Choice::Fail("no idea".to_string()), "no idea"),
    ] {
        let mut driver = asks_with(plan, core::slice::from_ref(&choice));
        driver.until(Phase::AwaitingHealthy);
        let ended = driver.now;
        assert!(driver.calls.is_empty(), "{choice}");
        let told = driver.notices.iter().find_map(|one| {
            let Notice::RemedyFailed(reason) = one else { return None };
            Some(reason.to_string())
        });
        assert!(told.as_ref().is_some_and(|told| told.contains(why)), "{choice}: {told:?}");
        driver.until(Phase::ReadingIdentity);
        assert!(driver.now >= ended.after(PERIOD), "{choice}");
        assert_eq!((driver.record.remedy_step, asked(&driver)), (1, 1), "{choice}");
    }
}

#[test]
fn a_plugin_that_cannot_be_asked_is_asked_for_a_while() {
    let mut driver = asks(&[]);
    let gone = "FencePlugin polite is not loaded".to_string();
    driver.answers = vec![Err(gone.clone()); 500];
    let begun = driver.now;
    driver.until(Phase::AwaitingHealthy);
    let (took, patience) = (driver.now.since(begun), driver.policy.cleanup_timeout);
    assert!(took >= patience && took < patience.times(2), "{took:?}");
    assert!(asked(&driver) < 200, "not without a pause: {}", asked(&driver));
    let held = Notice::Held { reason: Hold::NotDecided { why: gone } };
    assert!(driver.notices.contains(&held));
    driver.until(Phase::ReadingIdentity);
    assert_eq!(driver.record.remedy_step, 1);
}

#[test]
fn a_plugin_that_never_ends_is_ended() {
    let mut driver = alone(&vec![cluster("cordon"); 100]);
    driver.until(Phase::Parked);
    assert_eq!(asked(&driver), DECISIONS_MAX);
    let reason = driver.parked().map(ToString::to_string).unwrap_or_default();
    assert!(reason.contains("decided 16 times"), "{reason}");
    assert!(driver.calls.is_empty());

    let mut driver = alone(&vec![Choice::Wait(WAIT_MAX); 100]);
    let begun = driver.now;
    driver.until(Phase::Parked);
    assert!(driver.now.since(begun) <= Span(DECIDING_MAX.0 + WAIT_MAX.0));
    let reason = driver.parked().map(ToString::to_string).unwrap_or_default();
    assert!(reason.contains("has had 24 hours"), "{reason}");
    assert_eq!(driver.record.slot, Slot::Free);
}

/// A7: no more power cycles than a ladder of the same remedies would have made.
#[test]
fn the_same_again_is_a_restart_and_counted_as_one() {
    for (restarts, cycles) in [(0, 1), (1, 2)] {
        let mut driver = alone(&vec![method("bmc"); 10]);
        driver.policy.restarts = restarts;
        driver.until(Phase::Parked);
        assert_eq!(driver.count(Action::Off), cycles);
        let reason = driver.parked().map(ToString::to_string).unwrap_or_default();
        assert!(reason.contains("chose method bmc again"), "{reason}");
    }
}

#[test]
fn a_plugin_that_is_done_leaves_the_turn_to_the_next_remedy_or_a_person() {
    let mut driver = asks(&[Choice::Done]);
    driver.until(Phase::ReadingIdentity);
    assert_eq!(driver.record.remedy_step, 1);
    let mut driver = alone(&[cluster("cordon"), Choice::Done, method("bmc")]);
    driver.until(Phase::Parked);
    assert!(matches!(driver.parked(), Some(ParkReason::RemediesExhausted { .. })));
    assert!(driver.calls.is_empty());
    // A person has it tried anew, with nothing behind it.
    driver.event(Event::Command(Command::Retry));
    driver.until_call(Action::Off);
    assert_eq!((asked(&driver), driver.record.decided()), (3, &[][..]));
}

#[test]
fn a_method_that_failed_is_told_to_the_plugin_which_goes_on() {
    let mut driver = asks(&[method("bmc"), cluster("cordon")]);
    driver.policy.retries = 0;
    driver.device = alloc::boxed::Box::new(|_, _| failed(FailureKind::Denied));
    until_decided(&mut driver, &cluster("cordon"));
    let tried = &driver.record.decided()[0];
    assert!(tried.failed.as_ref().is_some_and(|why| why.contains("bmc failed")), "{tried:?}");
    assert_eq!((driver.record.remedy_step, driver.count(Action::Off)), (0, 0));
}

#[test]
fn a_wait_holds_no_slot_and_is_no_leave() {
    let mut driver = asks(&[Choice::Wait(Span::minutes(5)), cluster("cordon")]);
    until_decided(&mut driver, &Choice::Wait(Span::minutes(5)));
    let begun = driver.now;
    for _ in 0..3 {
        driver.go();
    }
    assert_eq!(driver.record.slot, Slot::Free);
    until_decided(&mut driver, &cluster("cordon"));
    assert!(driver.now >= begun.after(Span::minutes(5)));
    assert_eq!(driver.record.slot, Slot::Held);
}
