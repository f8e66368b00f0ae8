//! Cuts that are given back: what is lost on the way, what a switch refuses, what vanishes meanwhile, and what people are told.

use super::refuted::{
    outlet_and_storage, proven_by_power, released_and_switched_off, two_cuts, until_over,
};
use super::*;

/// What stood behind the cut is gone: it may run elsewhere.
pub(super) fn vanishes(driver: &mut Driver) {
    driver.view.attachments.clear();
    driver.view.pods.retain(|pod| pod.uid != "db-0");
}

fn is_final(driver: &Driver) -> bool {
    matches!(driver.record.phase, Phase::Final(_))
}

/// Its switch refuses to give back.
fn refuses(operation: &Operation, plugs: &mut [PlugState]) -> End {
    match (operation.method, operation.action) {
        (1, Action::On) => failed(FailureKind::Device),
        _ => honest(operation, plugs),
    }
}

/// A storm withdraws a cut, or a person aborts, while all stands behind it. The giving back never reaches the switch, and
/// meanwhile an attachment vanishes.
#[test] // promise: A5
fn a5_a_giving_back_that_was_lost_is_not_sent_again_behind_what_vanished() {
    for is_aborted in [true, false] {
        let policy = IncidentPolicy { power_after: Span::minutes(30), ..proven_by_power() };
        let mut driver = Driver::new(cutting_plan(storage()), policy);
        driver.until(Phase::AwaitingPower);
        driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
            (1, Action::On) => End::Indeterminate,
            _ => honest(operation, plugs),
        });
        if is_aborted {
            driver.event(Event::Command(Command::Abort));
        } else {
            driver.view.gate.refusals = vec![storm()];
        }
        while driver.count(Action::On) == 0 {
            driver.go();
        }
        driver.until_now(Span::seconds(10));
        vanishes(&mut driver);
        driver.device = Box::new(honest);
        for _ in 0..200 {
            if is_final(&driver) || driver.record.phase == Phase::Parked {
                break;
            }
            driver.go();
        }
        assert_eq!(driver.plugs[1], PlugState::Off, "{is_aborted}: {:?}", driver.record.phase);
    }
}

/// An hour after the switch refused, a pod is deleted by force; ten minutes later somebody gives the storage back by hand.
#[test] // promise: A16
fn a16_a_cut_that_we_could_not_give_back_is_read_and_made_again() {
    for is_aborted in [false, true] {
        let mut driver = if is_aborted {
            let policy = IncidentPolicy { power_after: Span::minutes(30), ..proven_by_power() };
            let mut driver = Driver::new(cutting_plan(storage()), policy);
            driver.until(Phase::AwaitingPower);
            driver
        } else {
            let mut driver = Driver::new(storage_only(), proven_by_power());
            driver.until(Phase::AwaitingHealthy);
            driver
        };
        let in_use = alloc::format!("kubernetes.io/csi/{DRIVER}^pv-db-0");
        driver.node(|node| node.volumes_in_use = vec![in_use.clone()]);
        driver.device = Box::new(refuses);
        if is_aborted {
            driver.event(Event::Command(Command::Abort));
        } else {
            driver.wakes();
        }
        driver.until(Phase::Parked);
        assert_eq!(driver.parked(), Some(&ParkReason::RestoreFailed));
        driver.until_now(Span::minutes(60));
        vanishes(&mut driver);
        driver.until_now(Span::minutes(10));
        driver.plugs[1] = PlugState::On;
        driver.until_now(Span::minutes(5));
        assert_eq!(driver.plugs[1], PlugState::Off, "{is_aborted}");
        assert!(driver.notices.contains(&Notice::CutUndone { method: 1 }), "{is_aborted}");
    }
}

/// The BMC says off and the node lives: it is another machine's. Then the switch refuses to give the storage back.
#[test]
fn p8_why_a_machine_is_doubted_is_told_although_a_switch_refuses() {
    let mut driver =
        Driver::new(cutting_plan(storage()), IncidentPolicy { retries: 0, ..proven_by_power() });
    driver.until(Phase::VerifyingOff);
    driver.device = Box::new(refuses);
    driver.call_takes = Span(10);
    for life in 10.. {
        if driver.record.phase == Phase::Parked {
            break;
        }
        driver.node(|node| node.liveness = liveness(BOOT, life));
        driver.go();
    }
    assert_eq!(driver.parked(), Some(&ParkReason::AliveThoughOff));
    assert_eq!(driver.record.parked.as_ref().unwrap().still_cut, [1]);
    assert_eq!(driver.plugs, [PlugState::On, PlugState::Off]);
}

/// The outlet is another machine's, and the switch of this one's storage refuses, or is silent.
#[test]
fn p8_another_machine_is_switched_on_whatever_the_switch_of_this_one_says() {
    for is_silent in [false, true] {
        let policy = IncidentPolicy { retries: 0, ..proven_by_power() };
        let mut driver = Driver::new(outlet_and_storage(), policy);
        driver.until(Phase::VerifyingOff);
        driver.view.neighbours = Neighbours::Silent("node-b".into());
        driver.device = Box::new(move |operation, plugs| match operation.method {
            1 if is_silent => silent(operation, plugs),
            _ => refuses(operation, plugs),
        });
        until_over(&mut driver);
        assert_eq!(driver.parked(), Some(&ParkReason::WrongPlug { neighbour: "node-b".into() }));
        assert_eq!(driver.plugs[0], PlugState::On, "{is_silent}");
    }
}

/// Two switches take ten seconds and more to answer. Somebody reboots the machine, and it is well.
#[test]
fn a16_slow_reads_of_cuts_do_not_hide_a_node_that_is_well() {
    for seconds in [4, 10, 15] {
        let mut plan = two_cuts();
        plan.power = vec![];
        let mut parked = driver_of(plan);
        parked.plugs.resize(3, PlugState::On);
        parked.call_takes = Span::seconds(seconds);
        parked.until(Phase::AwaitingHealthy).until(Phase::Parked);

        let mut waits = driver_of(two_cuts());
        waits.plugs.resize(3, PlugState::On);
        waits.device = Box::new(|operation, plugs| match operation.method {
            0 => silent(operation, plugs),
            _ => honest(operation, plugs),
        });
        waits.call_takes = Span::seconds(seconds);
        waits.until(Phase::Releasing).until(Phase::AwaitingDevice);
        for mut driver in [parked, waits] {
            let phase = driver.record.phase;
            driver.until_now(Span::minutes(5));
            driver.boots();
            let until = driver.now.after(Span::minutes(24 * 60));
            while driver.now < until && !is_final(&driver) {
                driver.go();
            }
            assert!(is_final(&driver), "{phase:?}, {seconds} s: {:?}", driver.record.phase);
        }
    }
}

/// A leader dies with its cut unsent, so that it reads as open for minutes. Then a pod leaves, and the node is well.
#[test]
fn a5_a_cut_that_was_never_made_holds_no_node() {
    let policy = IncidentPolicy { power_after: Span::minutes(20), ..proven_by_power() };
    let mut driver = Driver::new(cutting_plan(storage()), policy);
    driver.until_call(Action::Off);
    driver.todo.clear();
    driver.event(Event::Adopted { epoch: 2, process: "p2".into() });
    driver.view.gate.refusals = vec![storm()];
    driver.todo.push(Effect::Look);
    driver.until_now(Span::minutes(5));
    assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);
    vanishes(&mut driver);
    driver.until_now(Span::minutes(1));
    driver.wakes();
    driver.until(Phase::Final(FinalReason::Recovered));
}

/// An undone cut is made again by a call whose answer is lost, as is the read after it. From then on it reads off.
#[test]
fn a17_that_a_cut_could_not_be_made_again_is_said_for_as_long_as_it_is_so() {
    let mut driver =
        Driver::new(storage_only(), IncidentPolicy { retries: 0, ..IncidentPolicy::default() });
    driver.until(Phase::AwaitingHealthy);
    driver.plugs[1] = PlugState::On;
    driver.until(Phase::Isolating);
    driver.device = Box::new(|operation, plugs| {
        if operation.action != Action::Off {
            return not_attempted(FailureKind::Timeout);
        }
        plugs[1] = PlugState::Off;
        End::Indeterminate
    });
    driver.until(Phase::Parked);
    assert!(matches!(driver.parked(), Some(ParkReason::CutUndone { failure: Some(_), .. })));
    driver.device = Box::new(honest);
    driver.until_now(Span::minutes(5));
    assert_eq!(driver.parked(), Some(&cut_undone(None)));
}

/// Storage is cut for good, somebody deletes a pod by force, and the node is well in the same boot.
#[test]
fn a17_a_person_is_told_of_a_node_that_stays_cut() {
    let mut driver = Driver::new(storage_only(), proven_by_power());
    driver.until(Phase::AwaitingHealthy);
    vanishes(&mut driver);
    let in_use = alloc::format!("kubernetes.io/csi/{DRIVER}^pv-db-0");
    driver.node(|node| node.volumes_in_use = vec![in_use.clone()]);
    driver.until_now(Span::seconds(20));
    driver.wakes();
    driver.until_now(Span::minutes(24 * 60));
    assert_eq!(driver.parked(), Some(&ParkReason::StillCut));
    let times = driver.notices.iter().filter(|one| **one == Notice::Parked(ParkReason::StillCut));
    assert_eq!((driver.record.phase, times.count()), (Phase::Parked, 1));
}

/// A giving back showed late, so that it read off first. A person retries, and the switch is slow to show its new cut.
#[test]
fn a16_a_cut_that_shows_late_was_undone_by_nobody() {
    let mut driver = Driver::new(cutting_plan(storage()), proven_by_power());
    driver.until(Phase::Restoring);
    let mut lags = true;
    driver.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (1, Action::Status) if plugs[1] == PlugState::On && lags => {
            lags = false;
            succeeded(PlugState::Off)
        }
        _ => honest(operation, plugs),
    });
    driver.until(Phase::AwaitingHealthy).until(Phase::Parked);
    assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);
    let mut lags = true;
    driver.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (1, Action::Status) if plugs[1] == PlugState::Off && lags => {
            lags = false;
            succeeded(PlugState::On)
        }
        _ => honest(operation, plugs),
    });
    driver.event(Event::Command(Command::Retry));
    driver.until(Phase::PoweringOff);
    assert!(!driver.notices.contains(&Notice::CutUndone { method: 1 }));
}

/// A machine that was read off gets its storage by hand, as its switch refuses: that is no other writer.
#[test]
fn a16_what_is_given_back_by_hand_to_a_machine_that_reads_off_was_not_undone() {
    let mut driver = released_and_switched_off(cutting_plan(storage()));
    driver.device = Box::new(refuses);
    driver.event(Event::Command(Command::Abort));
    until_over(&mut driver);
    driver.until_now(Span::minutes(5));
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span::minutes(5));
    assert_eq!(driver.parked(), Some(&ParkReason::RestoreFailed));
    assert_eq!(driver.plugs, [PlugState::Off, PlugState::On]);
}

fn is_read_after_two_offs(driver: &Driver) -> bool {
    let mut offs = driver.record.operations.iter().filter(|one| one.cuts());
    let second = offs.nth(1);
    second.is_some_and(|off| driver.record.last_read(1).is_some_and(|read| read.id > off.id))
}

/// Nobody hears the end of the first cut, the second one is refused, and a person aborts. The first one is made late.
#[test] // promise: A3
fn a3_the_first_of_two_cuts_may_be_made_last() {
    let policy = IncidentPolicy { power_after: Span::minutes(30), ..proven_by_power() };
    let mut driver = Driver::new(cutting_plan(storage()), policy);
    let mut offs = 0;
    driver.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (1, Action::Off) => {
            offs += 1;
            if offs == 1 { End::Indeterminate } else { failed(FailureKind::Device) }
        }
        _ => honest(operation, plugs),
    });
    driver.until_call(Action::Off);
    let lands_at = driver.now.after(Span::seconds(15));
    while !is_read_after_two_offs(&driver) {
        driver.go();
    }
    driver.event(Event::Command(Command::Abort));
    while driver.now < lands_at {
        assert!(!is_final(&driver), "nothing is over while a cut may still be made");
        driver.go();
    }
    driver.plugs[1] = PlugState::Off;
    driver.device = Box::new(honest);
    driver.until(Phase::Final(FinalReason::Aborted));
    assert_eq!(driver.plugs[1], PlugState::On);
}

/// The outlet takes its time to go off on the way back. A neighbour that was heard before that may hang on it.
#[test] // promise: P8
fn p8_on_the_way_back_too_an_outlet_reads_off_before_the_signs_of_life_are_noted() {
    let mut driver = released_and_switched_off(outlet_and_storage());
    let off_at = driver.now.after(Span::seconds(15));
    driver.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (0, Action::Status) if operation.intended_at < off_at => {
            succeeded(PlugState::Transitioning)
        }
        _ => honest(operation, plugs),
    });
    driver.call_takes = Span(10);
    driver.event(Event::Command(Command::Abort));
    while !driver.calls.contains(&(1, Action::On)) {
        driver.go();
    }
    assert!(driver.record.baseline.as_ref().unwrap().at >= off_at);
}

/// A cut that was undone could not be made again; then the machine boots. Nobody is told that the cut was made after all.
#[test]
fn a16_a_machine_that_boots_makes_no_cut() {
    let mut driver =
        Driver::new(storage_only(), IncidentPolicy { retries: 0, ..IncidentPolicy::default() });
    driver.until_released();
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (1, Action::Off) => failed(FailureKind::Device),
        _ => honest(operation, plugs),
    });
    driver.plugs[1] = PlugState::On;
    let told = |driver: &Driver| match driver.parked() {
        Some(ParkReason::CutUndone { failure, .. }) => Some(failure.is_some()),
        _ => None,
    };
    while told(&driver) != Some(true) {
        driver.go();
    }
    driver.node(|node| node.liveness = liveness("boot-2", 9));
    for _ in 0..200 {
        if driver.next_look.is_none() && driver.todo.is_empty() {
            break;
        }
        driver.go();
        assert_ne!(told(&driver), Some(false), "no read says that it is cut");
    }
}
