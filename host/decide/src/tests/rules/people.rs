//! What people say of an incident: a word that keeps it from cutting, approval, retry, abort (A2, A17).

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::{cutting_plan, driver};
use crate::tests::driver::{Driver, honest, lying, silent};
use crate::tests::fixtures::{BOOT, bmc_plan, failed, not_attempted, paused_by_alice};
use crate::*;

#[test] // promise: A2
fn a2_a_pause_between_off_and_on_leaves_no_machine_off() {
    for phase in [Phase::VerifyingOff, Phase::Releasing, Phase::Untainting] {
        for word in [
            paused_by_alice(),
            Refusal::Maintenance { what: "new fans".to_string() },
            Refusal::Excluded { mark: "node-remedy.io/exclude".to_string() },
            Refusal::Cordoned,
        ] {
            let mut driver = driver();
            driver.until(phase);
            driver.view.gate.refusals.push(word.clone());
            driver.until(Phase::AwaitingHealthy);
            assert_eq!((driver.count(Action::Off), driver.count(Action::On)), (1, 1), "{word}");
            assert!(driver.record.parked.is_none(), "{phase:?} {word}");
        }
    }
}

#[test] // promise: A17
fn a17_what_a_person_keeps_waits_without_a_slot_and_for_longer_than_any_gate() {
    let policy = IncidentPolicy { power_after: Span::minutes(1), ..IncidentPolicy::default() };
    let mut kept = Driver::new(bmc_plan(), policy);
    kept.until(Phase::AwaitingPower);
    kept.view.gate.refusals.push(paused_by_alice());
    let from = kept.now;
    let long = Span(IncidentPolicy::default().gate_timeout.0.saturating_mul(2));
    while kept.now.since(from) <= long {
        kept.go();
        assert_eq!(kept.record.phase, Phase::AwaitingPower);
    }
    assert!(kept.hit(Rule::A17));
    assert_eq!((kept.record.slot, kept.count(Action::Off)), (Slot::Free, 0));
    assert_eq!(kept.record.phase, Phase::AwaitingPower);
    kept.view.gate.refusals.clear();
    kept.until(Phase::AwaitingHealthy);
    assert_eq!((kept.count(Action::Off), kept.count(Action::On)), (1, 1));
}

/// The off was sent, its reads fail, and then somebody cordons the node: it may be off in nobody's
/// hands. It is told of, and the incident goes on once the word is taken back.
#[test] // promise: A17
fn a17_a_word_about_a_machine_that_may_be_off_is_told_of_and_gone_on_from() {
    let policy = IncidentPolicy { restarts: 1, ..IncidentPolicy::default() };
    let mut kept = Driver::new(bmc_plan(), policy);
    kept.device = Box::new(|operation, plugs| {
        if operation.action == Action::Status && plugs[0] == PlugState::Off {
            return failed(FailureKind::Unauthenticated);
        }
        honest(operation, plugs)
    });
    kept.until_call(Action::Off);
    kept.view.gate.refusals.push(Refusal::Cordoned);
    kept.until(Phase::Waiting);
    let since = kept.now;
    kept.until(Phase::Parked);
    assert!(kept.now.since(since) >= IncidentPolicy::default().gate_timeout);
    assert_eq!(kept.parked(), Some(&ParkReason::LeftAlone { word: Refusal::Cordoned.to_string() }));
    let left_off = kept.record.parked.as_ref().map(|one| one.powered_off_by_us.clone());
    assert_eq!((left_off, kept.record.slot), (Some(vec![0]), Slot::Free));
    for _ in 0..10 {
        kept.go();
    }
    assert_eq!(kept.record.phase, Phase::Parked);
    kept.device = Box::new(honest);
    kept.view.gate.refusals.clear();
    kept.until(Phase::AwaitingHealthy);
    assert!(kept.notices.contains(&Notice::VetoLifted));
    assert_eq!(kept.count(Action::On), 1);
}

#[test] // promise: A17
fn a17_people_pause_approve_retry_and_abort() {
    let mut paused = driver();
    paused.until(Phase::ReadingIdentity);
    paused.view.gate.refusals.push(paused_by_alice());
    for _ in 0..10 {
        paused.go();
    }
    assert_eq!(paused.count(Action::Off), 0);

    let policy = IncidentPolicy { approval: Approval::Needed, ..IncidentPolicy::default() };
    let mut waits = Driver::new(bmc_plan(), policy.clone());
    waits.until(Phase::AwaitingPower);
    for _ in 0..10 {
        waits.go();
    }
    assert_eq!((waits.record.phase, waits.record.slot), (Phase::AwaitingPower, Slot::Free));
    let asked = |cut: &[&str]| Notice::Held {
        reason: Hold::Approval { cut: cut.iter().map(ToString::to_string).collect() },
    };
    assert!(waits.notices.contains(&asked(&[])));
    waits.view.people.approved = true;
    waits.until(Phase::AwaitingHealthy);

    // Whoever may wait for long knows what is cut meanwhile.
    let mut cut = Driver::new(cutting_plan(Kind::Fabric(Path::Other)), policy);
    cut.until(Phase::AwaitingPower);
    cut.go();
    assert!(cut.notices.contains(&asked(&["switch"])));

    let mut before = driver();
    before.until(Phase::ReadingIdentity);
    before.event(Event::Command(Command::Abort));
    before.until(Phase::Final(FinalReason::Aborted));
    assert_eq!(before.count(Action::Off), 0);
    assert_eq!(boundaries(&before), [Boundary::BeforeOff]);

    // An off that has not begun is not begun any more.
    for command in [Command::Abort, Command::AbortLeaveOff] {
        let mut meant = driver();
        meant.until_call(Action::Off);
        let off = meant.record.in_flight().expect("an off").id;
        meant.event(Event::Command(command));
        assert!(meant.todo.contains(&Effect::Withdraw(off)), "{:?}", meant.todo);
        meant.device = Box::new(|_, _| not_attempted(FailureKind::Cancelled));
        meant.until(Phase::Final(FinalReason::Aborted));
        assert_eq!(
            (meant.plugs[0], boundaries(&meant)),
            (PlugState::On, vec![Boundary::BeforeOff])
        );
    }

    for (command, ons, boundary) in [
        (Command::Abort, 1, Boundary::AfterOffPowersOn),
        (Command::AbortLeaveOff, 0, Boundary::AfterOffLeftOff),
    ] {
        let mut after = driver();
        after.until(Phase::VerifyingOff);
        after.event(Event::Command(command));
        after.until(Phase::Parked);
        assert_eq!(after.parked(), Some(&ParkReason::Aborted));
        assert_eq!(after.count(Action::On), ons);
        let told = after.record.parked.as_ref().map(|one| one.powered_off_by_us.len());
        assert_eq!(told, Some(1 - ons));
        assert_eq!(boundaries(&after), [boundary]);
    }

    // Said of a machine that was scrapped, and of one whose Node is there.
    for (node_is_gone, phase) in
        [(true, Phase::Final(FinalReason::NodeGone)), (false, Phase::Parked)]
    {
        let mut left = driver();
        left.until(Phase::VerifyingOff);
        left.event(Event::Command(Command::AbortLeaveOff));
        left.until(Phase::Parked);
        if node_is_gone {
            left.view.node = None;
            left.until_now(Span::minutes(60));
            assert_eq!(left.record.phase, Phase::Parked, "nothing ends it by itself");
        }
        left.event(Event::Command(Command::AbortLeaveOff));
        left.go();
        left.until(phase);
        assert_eq!((left.count(Action::On), left.plugs[0]), (0, PlugState::Off));
    }

    let mut retried = driver();
    retried.device = Box::new(lying);
    retried.until(Phase::Parked);
    retried.device = Box::new(honest);
    retried.event(Event::Command(Command::Retry));
    retried.until(Phase::AwaitingHealthy);
    assert!(retried.hit(Rule::A17));
}

/// While a call is under way an abort waits in the record: whatever is said meanwhile, it is taken.
#[test] // promise: A17
fn a17_an_abort_that_waits_is_not_replaced_by_another_word() {
    let confirms = Command::ConfirmOff { by: "bob".to_string(), boot_id: BOOT.to_string() };
    for later in [Command::Retry, confirms] {
        let mut driver = Driver::new(bmc_plan(), IncidentPolicy::default());
        driver.device = Box::new(silent);
        driver.until(Phase::AwaitingDevice);
        driver.until_call(Action::Monitor);
        driver.event(Event::Command(Command::Abort));
        driver.event(Event::Command(later));
        driver.device = Box::new(honest);
        driver.until(Phase::Final(FinalReason::Aborted));
        assert_eq!(driver.count(Action::Off), 0);
        let is_told =
            |one: &Notice| matches!(one, Notice::Ignored { why } if why.contains("abort"));
        assert!(driver.notices.iter().any(is_told), "{:?}", driver.notices);
    }
}

/// The boundaries that aborts were told to have taken.
fn boundaries(driver: &Driver) -> Vec<Boundary> {
    let taken = driver.notices.iter().filter_map(|notice| {
        let Notice::AbortTaken { boundary } = notice else { return None };
        Some(*boundary)
    });
    taken.collect()
}

/// An ill node is lost to its threshold and alive: whoever says that it is off looked at another one.
#[test]
fn a_word_that_a_node_is_off_counts_only_once_its_lease_has_run_out() {
    let mut ill = driver();
    ill.device = Box::new(lying);
    ill.until(Phase::Parked);
    let renewed_at = ill.now;
    ill.view.node.iter_mut().for_each(|node| node.lease_seen_at = Some(renewed_at));
    let confirm = || Command::ConfirmOff { by: "ada".into(), boot_id: BOOT.into() };
    ill.event(Event::Command(confirm()));
    ill.look();
    assert!(!ill.released() && ill.record.proof.is_none(), "{:?}", ill.notices);
    let told = |notice: &Notice| matches!(notice, Notice::Ignored { why } if why.contains("Lease"));
    assert!(ill.notices.iter().any(told), "{:?}", ill.notices);

    ill.now = renewed_at.after(Span::seconds(40));
    ill.event(Event::Command(confirm()));
    ill.look();
    assert_eq!(ill.record.proof.as_ref().map(|one| one.grade), Some(Grade::OperatorConfirmed));
}

/// A person aborts while the BMC is silent, and boots the machine by hand. It is lost again before its incident ends.
#[test] // promise: A17
fn a17_after_an_abort_a_machine_that_was_booted_by_hand_is_not_switched_off_again() {
    let device_timeout = Span::minutes(2);
    let policy = IncidentPolicy { restarts: 2, device_timeout, ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_plan(), policy);
    driver.until(Phase::Releasing);
    driver.device = Box::new(silent);
    driver.event(Event::Command(Command::Abort));
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::DeviceUnreachable));
    let offs = driver.count(Action::Off);
    driver.device = Box::new(honest);
    driver.plugs[0] = PlugState::On;
    driver.boots();
    driver.until(Phase::Recovering);
    driver.look();
    driver.view.trigger = Crossing::Crossed { since: driver.now };
    for _ in 0..500 {
        driver.go();
    }
    assert_eq!((driver.record.phase, driver.count(Action::Off)), (Phase::Parked, offs));
    assert_eq!(driver.parked(), Some(&ParkReason::NotHealthy));

    // Whoever says `retry` wants it fenced.
    driver.event(Event::Command(Command::Retry));
    driver.until_call(Action::Off);
}
