//! A remedy that is a plugin: what it decides goes the way of the remedy that it names, and no other; it is
//! asked once for each decision, and not for ever.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::CLEAR;
use crate::decided::DECIDING_MAX;
use crate::tests::fixtures::{bmc_plan, failed, paused_by_alice, power, stage};
use crate::tests::story::Story;
use crate::*;

const PERIOD: Span = Span::minutes(3);

fn rung(name: &str, remedy: Remedy) -> Rung {
    Rung { name: name.to_string(), remedy, period: PERIOD, clean: false }
}

/// A node whose ladder is a plugin that answers so, and then a fence.
fn asks(answers: &[Choice]) -> Story {
    asks_with(bmc_plan(), answers)
}

fn asks_with(plan: Plan, answers: &[Choice]) -> Story {
    let ladder = vec![rung("polite", Remedy::Plugin), rung("fence", Remedy::Fence)];
    let mut story = Story::new(Plan { ladder, ..plan }, RunPolicy::default());
    story.answers = answers.iter().cloned().map(Ok).collect();
    story
}

/// The same, and nothing behind it.
fn alone(answers: &[Choice]) -> Story {
    let mut story = asks(answers);
    story.plan.ladder.truncate(1);
    story
}

fn method(name: &str) -> Choice {
    Choice::Method(name.to_string())
}

fn cluster(name: &str) -> Choice {
    Choice::Cluster(name.to_string())
}

fn asked(story: &Story) -> usize {
    story.done.iter().filter(|effect| matches!(effect, Effect::AskRemedy(_))).count()
}

/// What was decided, and how it ended.
fn decided(story: &Story) -> Vec<(String, bool)> {
    let ended = |one: &Decided| one.ended_at.is_some() && one.failed.is_none();
    let all = story.record.decisions.iter();
    all.filter_map(|one| Some((one.choice.as_ref()?.to_string(), ended(one)))).collect()
}

fn until_decided(story: &mut Story, choice: &Choice) {
    for _ in 0..1_000 {
        let last = story.record.decisions.last();
        if last.is_some_and(|one| one.choice.as_ref() == Some(choice)) {
            return;
        }
        story.go();
    }
    panic!("not decided: {:?}", story.record.decisions);
}

/// It drains, then has the machine's power cycled, and then the plan is carried out.
#[test]
fn a_plugin_drains_asks_a_method_and_fences_one_after_the_other() {
    let mut story = asks(&[cluster("drain"), method("bmc"), Choice::Fence]);
    while story.record.phase != Phase::AwaitingWell {
        // Its kubelet lives: somebody stops what is asked to leave.
        let now = story.now;
        story.view.node.iter_mut().for_each(|node| node.lease_seen_at = Some(now));
        story.go();
    }
    assert!(story.view.node.as_ref().unwrap().cordoned && story.calls.is_empty());
    assert!(story.view.pods.iter().all(|pod| pod.exempt.is_some()), "its pods have left");
    let drained = story.now;
    story.until_call(Action::Off);
    assert!(story.now >= drained.after(PERIOD), "the node had its time to be well");
    story.until(Phase::AwaitingWell);
    story.until_now(Span::minutes(16)).until(Phase::AwaitingWell);
    assert_eq!((story.count(Action::Off), story.record.rung), (2, 0));
    let expected = [("cluster drain", true), ("method bmc", true), ("fence", false)];
    assert_eq!(decided(&story), expected.map(|(what, ended)| (what.to_string(), ended)));
    story.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!((asked(&story), story.count(Action::On)), (3, 2));
    let node = story.view.node.as_ref().unwrap();
    assert!(!node.cordoned && !node.quarantined, "its marks are lifted");
}

/// As in a configuration: with the gate closed nothing is cut, whatever was decided.
#[test]
fn a_decision_waits_for_the_gate_as_the_remedy_it_names_does() {
    for choice in [Choice::Fence, method("bmc"), cluster("drain"), cluster("cordon")] {
        let mut story = asks(core::slice::from_ref(&choice));
        until_decided(&mut story, &choice);
        story.view.gate.refusals = vec![Refusal::NoLease, paused_by_alice()];
        for _ in 0..50 {
            story.go();
        }
        assert_eq!(story.record.phase, Phase::Waiting, "{choice}");
        let node = story.view.node.as_ref().unwrap();
        assert!(story.calls.is_empty() && !node.cordoned && !node.quarantined, "{choice}");
        assert_eq!(story.record.slot, Slot::Free, "nobody holds a slot to wait with it");
        story.view.gate.refusals.clear();
        story.until(Phase::AwaitingWell);
    }
}

#[test]
fn a_decision_to_cut_waits_for_our_own_node_its_time_and_a_yes() {
    let mut story = asks(&[Choice::Fence]);
    story.view.hosts_us = true;
    for _ in 0..20 {
        story.go();
    }
    assert_eq!((story.record.phase, story.calls.len()), (Phase::Waiting, 0));
    assert!(story.done.contains(&Effect::HandOver));

    let mut story = asks(&[Choice::Fence]);
    story.policy.isolate_after = Span::minutes(2);
    story.policy.approval = Approval::Needed;
    until_decided(&mut story, &Choice::Fence);
    let decided = story.now;
    story.until(Phase::AwaitingPower);
    assert!(story.now >= decided.after(Span::minutes(2)));
    for _ in 0..20 {
        story.go();
    }
    assert_eq!((story.record.phase, story.count(Action::Off)), (Phase::AwaitingPower, 0));
    story.view.people.approved = true;
    story.until_call(Action::Off);
}

#[test]
fn a_node_that_is_well_meanwhile_is_left_alone() {
    for answers in [vec![], vec![Choice::Wait(Span::minutes(9))]] {
        let mut story = asks(&answers);
        while asked(&story) == 0 || !story.answers.is_empty() {
            story.go();
        }
        story.view.trigger = CLEAR;
        story.until(Phase::Final(FinalReason::Recovered));
        assert!(story.calls.is_empty());
    }
}

/// It is its record that is followed: whoever takes over asks nobody again.
#[test]
fn a_decision_that_was_recorded_is_followed_by_another_process() {
    let mut story = asks(&[Choice::Fence, method("bmc")]);
    until_decided(&mut story, &Choice::Fence);
    assert!(story.calls.is_empty());
    story.todo.clear();
    story.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
    story.until_call(Action::Off);
    assert_eq!((asked(&story), story.record.decisions.len()), (1, 1));
    let isolates = story.notices.iter().any(|one| matches!(one, Notice::Isolating));
    assert!(isolates, "the fence, and not the method");
}

/// Who died before the answer was recorded is asked for again, and a second answer changes nothing.
#[test]
fn an_ask_without_an_answer_is_made_again_and_only_one_answer_counts() {
    let mut story = asks(&[]);
    while asked(&story) == 0 {
        story.go();
    }
    story.todo.clear();
    story.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
    story.answers = vec![Ok(cluster("cordon"))];
    until_decided(&mut story, &cluster("cordon"));
    assert_eq!((asked(&story), story.record.decisions.len()), (2, 1));
    let record = story.record.clone();
    story.event(Event::Decided { number: 1, answer: Ok(Choice::Fence) });
    assert_eq!(story.record.decisions, record.decisions);
    story.until(Phase::AwaitingWell);
    assert!(story.view.node.as_ref().unwrap().cordoned && story.calls.is_empty());
}

#[test]
fn an_answer_to_another_ask_counts_for_nothing() {
    let mut story = asks(&[]);
    while asked(&story) == 0 {
        story.go();
    }
    story.event(Event::Decided { number: 7, answer: Ok(Choice::Fence) });
    assert_eq!(story.record.decisions[0].choice, None);
}

/// The rung has failed, its reason is told, and the next remedy has its turn a period later.
#[test]
fn what_cannot_be_followed_ends_the_rung_and_the_ladder_goes_on() {
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
        let mut story = asks_with(plan, core::slice::from_ref(&choice));
        story.until(Phase::AwaitingWell);
        let ended = story.now;
        assert!(story.calls.is_empty(), "{choice}");
        let told = story.notices.iter().find_map(|one| {
            let Notice::RemedyFailed(reason) = one else { return None };
            Some(reason.to_string())
        });
        assert!(told.as_ref().is_some_and(|told| told.contains(why)), "{choice}: {told:?}");
        story.until(Phase::ReadingIdentity);
        assert!(story.now >= ended.after(PERIOD), "{choice}");
        assert_eq!((story.record.rung, asked(&story)), (1, 1), "{choice}");
    }
}

#[test]
fn a_plugin_that_cannot_be_asked_is_asked_for_a_while() {
    let mut story = asks(&[]);
    let gone = "FencePlugin polite is not loaded".to_string();
    story.answers = vec![Err(gone.clone()); 500];
    let begun = story.now;
    story.until(Phase::AwaitingWell);
    let (took, patience) = (story.now.since(begun), story.policy.cleanup_timeout);
    assert!(took >= patience && took < patience.times(2), "{took:?}");
    assert!(asked(&story) < 200, "not without a pause: {}", asked(&story));
    let held = Notice::Held { reason: Hold::NotDecided { why: gone } };
    assert!(story.notices.contains(&held));
    story.until(Phase::ReadingIdentity);
    assert_eq!(story.record.rung, 1);
}

#[test]
fn a_plugin_that_never_ends_is_ended() {
    let mut story = alone(&vec![cluster("cordon"); 100]);
    story.until(Phase::Parked);
    assert_eq!(asked(&story), DECISIONS_MAX);
    let reason = story.parked().map(ToString::to_string).unwrap_or_default();
    assert!(reason.contains("decided 16 times"), "{reason}");
    assert!(story.calls.is_empty());

    let mut story = alone(&vec![Choice::Wait(WAIT_MAX); 100]);
    let begun = story.now;
    story.until(Phase::Parked);
    assert!(story.now.since(begun) <= Span(DECIDING_MAX.0 + WAIT_MAX.0));
    let reason = story.parked().map(ToString::to_string).unwrap_or_default();
    assert!(reason.contains("has had 24 hours"), "{reason}");
    assert_eq!(story.record.slot, Slot::Free);
}

/// A7: no more power cycles than a ladder of the same remedies would have made.
#[test]
fn the_same_again_is_a_restart_and_counted_as_one() {
    for (restarts, cycles) in [(0, 1), (1, 2)] {
        let mut story = alone(&vec![method("bmc"); 10]);
        story.policy.restarts = restarts;
        story.until(Phase::Parked);
        assert_eq!(story.count(Action::Off), cycles);
        let reason = story.parked().map(ToString::to_string).unwrap_or_default();
        assert!(reason.contains("chose method bmc again"), "{reason}");
    }
}

#[test]
fn a_plugin_that_is_done_leaves_the_turn_to_the_next_remedy_or_a_person() {
    let mut story = asks(&[Choice::Done]);
    story.until(Phase::ReadingIdentity);
    assert_eq!(story.record.rung, 1);
    let mut story = alone(&[cluster("cordon"), Choice::Done, method("bmc")]);
    story.until(Phase::Parked);
    assert!(matches!(story.parked(), Some(ParkReason::RemediesExhausted { .. })));
    assert!(story.calls.is_empty());
    // A person has it tried anew, with nothing behind it.
    story.event(Event::Command(Command::Retry));
    story.until_call(Action::Off);
    assert_eq!((asked(&story), story.record.decided()), (3, &[][..]));
}

#[test]
fn a_method_that_failed_is_told_to_the_plugin_which_goes_on() {
    let mut story = asks(&[method("bmc"), cluster("cordon")]);
    story.policy.retries = 0;
    story.device = alloc::boxed::Box::new(|_, _| failed(FailureKind::Denied));
    until_decided(&mut story, &cluster("cordon"));
    let tried = &story.record.decided()[0];
    assert!(tried.failed.as_ref().is_some_and(|why| why.contains("bmc failed")), "{tried:?}");
    assert_eq!((story.record.rung, story.count(Action::Off)), (0, 0));
}

#[test]
fn a_wait_holds_no_slot_and_is_no_leave() {
    let mut story = asks(&[Choice::Wait(Span::minutes(5)), cluster("cordon")]);
    until_decided(&mut story, &Choice::Wait(Span::minutes(5)));
    let begun = story.now;
    for _ in 0..3 {
        story.go();
    }
    assert_eq!(story.record.slot, Slot::Free);
    until_decided(&mut story, &cluster("cordon"));
    assert!(story.now >= begun.after(Span::minutes(5)));
    assert_eq!(story.record.slot, Slot::Held);
}
