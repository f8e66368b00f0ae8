//! One test named after each rule of the automaton and of proof and release, and what holds
//! around all of them: the one path through, when an incident opens, who may lead it, a person's word.

mod automaton;
mod between;
mod clocks;
mod cluster_actions;
mod cuts;
mod deciding;
mod identity;
mod ladder;
mod one_method;
mod outlets;
mod partial;
mod people;
mod proof;
mod proofs_at_hand;
mod seams;
mod waits;

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;

use super::driver::{Driver, lying};
use super::fixtures::{BOOT, bmc_plan, lost_view, opened, power, stage};
use crate::*;

const CLEAR: Crossing = Crossing::Clear { ready: true, next_look: None };

fn driver() -> Driver {
    Driver::new(bmc_plan(), IncidentPolicy::default())
}

fn position(driver: &Driver, wanted: impl Fn(&Effect) -> bool) -> usize {
    driver.did(wanted).expect("it was done")
}

/// A plan that cuts something before it cuts power.
fn cutting_plan(kind: Kind) -> Plan {
    let mut cut = power("switch", Feed::Whole);
    cut.kind = kind;
    cut.binding = Binding::Labelled;
    let mut plan = bmc_plan();
    plan.methods.push(cut);
    plan.isolation = vec![stage(Execution::All, &[1])];
    plan
}

#[test]
fn the_one_path_from_lost_to_remedied() {
    let mut driver = driver();
    driver.until(Phase::AwaitingHealthy);
    driver.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!((driver.count(Action::Off), driver.count(Action::On)), (1, 1));
    let taint = position(&driver, |one| *one == Effect::OutOfService);
    let delete = position(&driver, |one| matches!(one, Effect::DeletePods(_)));
    let lift = position(&driver, |one| *one == Effect::LiftOutOfService);
    let unmark = position(&driver, |one| *one == Effect::Unquarantine);
    assert!(taint < delete && delete < lift && lift < unmark, "{:?}", driver.done);
    assert_eq!(driver.record.proof.as_ref().map(|one| one.grade), Some(Grade::PowerOffVerified));
}

#[test]
fn a_person_confirms_what_no_device_can_prove() {
    let mut driver = driver();
    driver.device = Box::new(lying);
    driver.until(Phase::Parked);
    let confirm = |boot: &str| Command::ConfirmOff { by: "ada".into(), boot_id: boot.into() };
    driver.event(Event::Command(confirm("another boot")));
    for _ in 0..5 {
        driver.go();
    }
    assert!(!driver.released(), "bound to this boot");
    driver.event(Event::Command(confirm(BOOT)));
    driver.until(Phase::Untainting);
    assert!(driver.released());
    assert_eq!(driver.record.proof.as_ref().map(|one| one.grade), Some(Grade::OperatorConfirmed));
}

#[test]
fn a_record_of_a_newer_leader_is_left_alone() {
    let mut driver = driver();
    driver.until_call(Action::Off);
    driver.event(Event::Adopted { epoch: 5, process: "p5".to_string() });
    let record = driver.record.clone();
    driver.todo.clear();
    driver.event(Event::Adopted { epoch: 4, process: "p4".to_string() });
    assert_eq!((driver.record.clone(), driver.todo.clone()), (record, vec![]));
}

#[test]
fn our_own_node_is_offered_to_another_leader_and_then_refused() {
    let mut driver = driver();
    driver.view.hosts_us = true;
    for _ in 0..10 {
        driver.go();
    }
    assert_eq!(driver.done.iter().filter(|one| **one == Effect::HandOver).count(), 1);
    assert_eq!((driver.record.phase, driver.calls.len()), (Phase::Waiting, 0));
}

#[test]
fn opening_an_incident_needs_threshold_gate_and_a_fresh_view() {
    let (plan, policy) = (bmc_plan(), IncidentPolicy::default());
    let now = Time(1_000_000);
    let decide = |view: &View| {
        open(&Opening { plan: &plan, policy: &policy, view, epoch: 1, process: "p1" }, now)
    };
    assert!(matches!(decide(&lost_view(now)), OpenDecision::Open(_)));
    let mut closed = lost_view(now);
    closed.gate.refusals.push(Refusal::NoLease);
    assert!(matches!(decide(&closed), OpenDecision::Wait { hold: Hold::Gate(_), .. }));
    let cached = View { freshness: Freshness::Cached, ..lost_view(now) };
    assert!(matches!(decide(&cached), OpenDecision::Wait { hold: Hold::StaleView, .. }));
    let ripening = Crossing::Ripening { since: now, crosses_at: Time(2_000_000) };
    let early = View { trigger: ripening, ..lost_view(now) };
    let next_look = Some(Time(2_000_000));
    let hold = Hold::NotYet { until: Time(2_000_000) };
    assert_eq!(decide(&early), OpenDecision::Wait { hold, next_look });
    let record = opened(&plan, &policy, &lost_view(now), now);
    assert_eq!((record.slot, record.phase), (Slot::Held, Phase::Waiting));
}

#[test]
fn every_rule_has_a_test_named_after_it() {
    let source = concat!(
        include_str!("rules/automaton.rs"),
        include_str!("rules/ladder.rs"),
        include_str!("rules/people.rs"),
        include_str!("rules/proof.rs"),
        include_str!("rules/waits.rs"),
    );
    for rule in Rule::ALL {
        let name = alloc::format!("fn {}_", rule.name().to_lowercase());
        assert!(source.contains(&name), "no test for {rule}");
    }
}
