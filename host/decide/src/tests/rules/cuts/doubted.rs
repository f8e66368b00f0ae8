//! The way back: what speaks against giving a cut back although everything reads off, and what does not.

use super::refuted::{outlet_and_storage, released_and_switched_off, until_over};
use super::*;

/// Runs on until the storage is given back, for at most so many steps; whether it was.
fn is_given_back(driver: &mut Driver) -> bool {
    for _ in 0..200 {
        if driver.plugs[1] == PlugState::On {
            return true;
        }
        driver.go();
    }
    false
}

fn until_proven_off(driver: &mut Driver) {
    while !driver.is_proven_off() {
        driver.go();
    }
    driver.until(Phase::Restoring);
}

/// The BMC lied: while it is waited for, the machine is heard again in the boot that was fenced.
#[test] // promise: P2
fn p2_a_machine_that_is_heard_after_its_proof_gets_nothing_back() {
    let mut driver = Driver::new(cutting_plan(storage()), IncidentPolicy::default());
    until_proven_off(&mut driver);
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 => not_attempted(FailureKind::Unreachable),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::AwaitingDevice);
    let in_use = alloc::format!("kubernetes.io/csi/{DRIVER}^pv-db-0");
    driver.node(|node| {
        node.liveness = liveness(BOOT, 50);
        node.volumes_in_use = vec![in_use.clone()];
    });
    driver.device = Box::new(honest);
    assert!(!is_given_back(&mut driver));
}

/// A device that is another machine's by now reads off, for a person who aborts at once, or once the incident is parked
/// for that.
#[test] // promise: P8
fn p8_what_another_machine_reads_gives_nothing_back() {
    for is_parked in [false, true] {
        let mut driver = released_and_switched_off(cutting_plan(storage()));
        driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
            (0, Action::Status) => End::Succeeded {
                state: PlugState::Off,
                identity: vec![("system-uuid".into(), "another".into())],
            },
            _ => honest(operation, plugs),
        });
        if is_parked {
            until_over(&mut driver);
            assert!(matches!(driver.parked(), Some(ParkReason::WrongMachine { .. })));
        }
        driver.event(Event::Command(Command::Abort));
        assert!(!is_given_back(&mut driver), "{is_parked}");
    }
}

/// Another Node claims the machine: what its plug reads is that one's.
#[test] // promise: P8
fn p8_a_disputed_machine_gets_nothing_back_by_its_own_read() {
    let mut driver = released_and_switched_off(cutting_plan(storage()));
    driver.view.gate.refusals = vec![Refusal::MachineDisputed { why: "node-b has it".into() }];
    until_over(&mut driver);
    assert!(matches!(driver.parked(), Some(ParkReason::MachineDisputed { .. })));
    assert_eq!(driver.plugs[1], PlugState::Off);
}

/// An incident that is parked for a wrong plug, whose outlet somebody switches off. An abort does not make it the right
/// one, nor does a cut that is undone.
#[test] // promise: P8
fn p8_a_wrong_plug_stays_wrong() {
    let parked_for_a_wrong_plug = || {
        let mut driver = released_and_switched_off(outlet_and_storage());
        driver.view.neighbours = Neighbours::Silent("node-b".into());
        until_over(&mut driver);
        driver.view.neighbours = Neighbours::Heard;
        driver
    };
    let mut driver = parked_for_a_wrong_plug();
    driver.plugs[0] = PlugState::Off;
    driver.event(Event::Command(Command::Abort));
    until_over(&mut driver);
    assert_eq!(driver.plugs[1], PlugState::Off);

    let mut driver = parked_for_a_wrong_plug();
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span::minutes(5));
    driver.event(Event::Command(Command::Retry));
    driver.until_now(Span::minutes(5));
    assert!(matches!(driver.parked(), Some(ParkReason::WrongPlug { .. })));
    assert_eq!(driver.calls.iter().filter(|call| **call == (0, Action::Off)).count(), 1);
}

/// Its Node was deleted and made anew, and the machine renews its Lease there in the boot that was cut.
#[test] // promise: P2
fn p2_a_machine_that_is_heard_under_another_node_gets_nothing_back() {
    let mut driver = released_and_switched_off(cutting_plan(storage()));
    for life in 20..90 {
        driver.node(|node| {
            node.uid = "anew".into();
            node.liveness = liveness(BOOT, life);
        });
        if matches!(driver.record.phase, Phase::Final(_) | Phase::Parked) {
            break;
        }
        driver.go();
    }
    assert_eq!(driver.plugs[1], PlugState::Off);
}

/// The machine renews its Lease once more while it goes down, and a person aborts: both are given back before it is on.
#[test] // promise: P2
fn p2_one_late_renewal_is_no_life() {
    let mut driver = released_and_switched_off(cutting_plan(storage()));
    while driver.record.baseline.is_none() {
        driver.go();
    }
    driver.live(BOOT, 2);
    driver.event(Event::Command(Command::Abort));
    while driver.plugs[1] == PlugState::Off {
        driver.go();
    }
    assert_eq!(driver.plugs[0], PlugState::Off);
    until_over(&mut driver);
    assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);
}

/// Nobody can say whether other nodes are heard: the machine is switched on behind its cut.
#[test] // promise: A2
fn a2_neighbours_are_not_awaited_for_ever() {
    let mut driver = released_and_switched_off(outlet_and_storage());
    driver.view.neighbours = Neighbours::Awaited;
    driver.event(Event::Command(Command::Abort));
    until_over(&mut driver);
    assert_eq!(driver.plugs, [PlugState::On, PlugState::Off]);
}

/// The witness dies after the proof.
#[test] // promise: A2
fn a2_a_witness_that_dies_after_the_proof_is_not_waited_for() {
    let mut plan = cutting_plan(storage());
    let mut witness = power("witness", Feed::Whole);
    witness.kind = Kind::Watch;
    plan.methods.push(witness);
    plan.methods[0].witness = Some(2);
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.device = Box::new(|operation, plugs| match operation.method {
        2 => succeeded(plugs[0]),
        _ => honest(operation, plugs),
    });
    until_proven_off(&mut driver);
    driver.device = Box::new(|operation, plugs| match operation.method {
        2 => not_attempted(FailureKind::Unreachable),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.plugs.iter().all(|plug| *plug == PlugState::On));
}

/// A switch that reads off once more after our `on`, or that refuses it, so that a person gives back by hand: nobody undid it.
#[test] // promise: A16
fn a16_what_we_asked_to_be_given_back_was_not_undone() {
    for is_by_hand in [false, true] {
        let mut driver = released_and_switched_off(cutting_plan(storage()));
        let mut lags = true;
        driver.device =
            Box::new(move |operation, plugs| match (operation.method, operation.action) {
                (1, Action::On) if is_by_hand => failed(FailureKind::Device),
                (1, Action::Status) if lags && plugs[1] == PlugState::On => {
                    lags = false;
                    succeeded(PlugState::Off)
                }
                _ => honest(operation, plugs),
            });
        driver.event(Event::Command(Command::Abort));
        until_over(&mut driver);
        if is_by_hand {
            assert_eq!(driver.parked(), Some(&ParkReason::RestoreFailed));
            driver.plugs[1] = PlugState::On;
            driver.until_now(Span::minutes(5));
            driver.view.gate.refusals = vec![storm()];
            driver.event(Event::Command(Command::Retry));
        }
        driver.until_now(Span::minutes(60));
        assert_eq!(driver.plugs, [PlugState::On, PlugState::On], "{is_by_hand}");
        assert!(!driver.notices.contains(&Notice::CutUndone { method: 1 }), "{is_by_hand}");
        let voided = Notice::ProofVoided { reads_on: Some(1) };
        assert!(!driver.notices.contains(&voided), "{is_by_hand}");
    }
}

/// A cut is made again, and a person aborts before it was read. Then somebody undoes it once more.
#[test] // promise: A16
fn a16_a_cut_whose_answer_alone_is_known_at_an_abort_is_read() {
    let mut driver = driver_of(storage_only());
    driver.until(Phase::AwaitingHealthy);
    driver.plugs[1] = PlugState::On;
    driver.until_call(Action::Off);
    driver.event(Event::Command(Command::Abort));
    driver.until(Phase::Parked);
    driver.until_now(Span::minutes(5));
    assert_eq!(driver.plugs[1], PlugState::Off);
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span::minutes(1));
    assert_eq!(driver.plugs[1], PlugState::Off);
}
