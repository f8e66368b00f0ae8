//! Cuts, where what the devices say is not what was done: offs that were refuted, cuts that only an answer tells of, devices
//! that are slow or silent.

use super::*;

/// Cut storage is no proof.
pub(super) fn proven_by_power() -> IncidentPolicy {
    IncidentPolicy { grades: [Grade::PowerOffVerified].into(), ..IncidentPolicy::default() }
}

/// An outlet, and storage that is cut.
pub(super) fn outlet_and_storage() -> Plan {
    let mut plan = cutting_plan(storage());
    plan.methods[0].binding = Binding::Labelled;
    plan
}

/// Storage is cut twice, by devices of their own.
pub(super) fn two_cuts() -> Plan {
    let mut plan = cutting_plan(storage());
    let mut second = plan.methods[1].clone();
    second.name = "second-switch".into();
    second.device = "second-switch".into();
    plan.methods.push(second);
    plan.isolation = vec![stage(Execution::All, &[1, 2])];
    plan
}

/// Pods were released behind cut storage, and the off of the outlet is to be verified.
pub(super) fn released_and_switched_off(plan: Plan) -> Driver {
    let mut driver = Driver::new(plan, IncidentPolicy { retries: 0, ..IncidentPolicy::default() });
    driver.until(Phase::Releasing).until(Phase::VerifyingOff);
    assert!(driver.released());
    driver
}

fn until_final(driver: &mut Driver) {
    for _ in 0..1_000 {
        if matches!(driver.record.phase, Phase::Final(_)) {
            return;
        }
        driver.go();
    }
    panic!("not over: {:?} {:?}", driver.record.phase, driver.parked());
}

pub(super) fn until_over(driver: &mut Driver) {
    while !matches!(driver.record.phase, Phase::Final(_) | Phase::Parked) {
        driver.go();
    }
}

/// Another node fell silent, or the witness reads on: the machine runs, and its pods run elsewhere by now.
#[test] // promise: A5
fn a5_an_off_that_was_refuted_gives_no_cut_back() {
    let mut driver = released_and_switched_off(outlet_and_storage());
    driver.view.neighbours = Neighbours::Silent("node-b".into());
    until_over(&mut driver);
    assert!(matches!(driver.parked(), Some(ParkReason::WrongPlug { .. })));
    assert_eq!(driver.plugs, [PlugState::On, PlugState::Off]);

    let mut plan = outlet_and_storage();
    let mut witness = power("witness", Feed::Whole);
    witness.kind = Kind::Watch;
    plan.methods.push(witness);
    plan.methods[0].witness = Some(2);
    let mut driver = released_and_switched_off(plan);
    until_over(&mut driver);
    assert!(matches!(driver.parked(), Some(ParkReason::WitnessReadsOn { .. })));
    assert_eq!(driver.plugs[1], PlugState::Off);

    let mut driver = released_and_switched_off(cutting_plan(storage()));
    driver.call_takes = Span(10);
    let in_use = alloc::format!("kubernetes.io/csi/{DRIVER}^pv-db-0");
    driver.node(|node| node.volumes_in_use = vec![in_use.clone()]);
    for life in 10.. {
        if driver.record.phase == Phase::Parked {
            break;
        }
        driver.live(BOOT, life);
        driver.go();
    }
    assert_eq!(driver.parked(), Some(&ParkReason::AliveThoughOff));
    assert_eq!(driver.plugs[1], PlugState::Off);
}

/// A person aborts, or the Node is deleted, before anybody doubted the outlet.
#[test] // promise: A5
fn a5_an_outlet_is_doubted_on_the_way_back_too() {
    for is_deleted in [false, true] {
        let mut driver = released_and_switched_off(outlet_and_storage());
        driver.view.neighbours = Neighbours::Silent("node-b".into());
        if is_deleted {
            driver.view.node = None;
        } else {
            driver.event(Event::Command(Command::Abort));
        }
        until_over(&mut driver);
        assert_eq!(driver.plugs, [PlugState::On, PlugState::Off], "{:?}", driver.parked());
        let is_told = driver.parked() == Some(&ParkReason::StillCut);
        assert!(is_told || !is_deleted, "{:?}", driver.record.phase);
    }
}

/// An outlet that really feeds the machine, and a person who aborts: after two Lease intervals of silence it is believed.
#[test] // promise: A5
fn a5_an_outlet_that_nothing_speaks_against_is_believed_on_the_way_back() {
    let mut driver = released_and_switched_off(outlet_and_storage());
    driver.event(Event::Command(Command::Abort));
    let aborted_at = driver.now;
    until_over(&mut driver);
    assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);
    assert!(driver.now >= aborted_at.after(Span::seconds(20)));
}

/// Somebody undoes the cut of an incident whose outlet is another node's.
#[test] // promise: P8
fn p8_a_plug_that_may_be_anothers_is_not_switched_off_again() {
    let mut driver = released_and_switched_off(outlet_and_storage());
    driver.view.neighbours = Neighbours::Silent("node-b".into());
    until_over(&mut driver);
    driver.view.neighbours = Neighbours::Heard;
    for times in 2..4 {
        driver.plugs[1] = PlugState::On;
        driver.until_now(Span::minutes(5));
        assert_eq!(driver.plugs, [PlugState::On, PlugState::Off]);
        assert_eq!(driver.count(Action::Off), 1 + times);
    }
}

/// Devices that take ten seconds and more to answer, or do not: the machine goes off, and its cuts are read meanwhile.
#[test] // promise: A12
fn a12_cuts_that_are_slow_to_read_keep_no_machine_from_going_off() {
    for (seconds, is_silent) in [(10, false), (29, false), (10, true), (29, true)] {
        let policy = IncidentPolicy { power_after: Span::minutes(1), ..IncidentPolicy::default() };
        let mut driver = Driver::new(two_cuts(), policy);
        driver.plugs.resize(3, PlugState::On);
        driver.until(Phase::Releasing).until(Phase::AwaitingPower);
        if is_silent {
            driver.device = Box::new(|operation, plugs| match operation.method {
                0 => honest(operation, plugs),
                _ => not_attempted(FailureKind::Timeout),
            });
        }
        let reads = |driver: &Driver| {
            let is_of_cut = |call: &&(MethodIndex, Action)| call.0 > 0 && call.1 == Action::Status;
            driver.calls.iter().filter(is_of_cut).count()
        };
        let before = reads(&driver);
        let until = driver.now.after(Span::minutes(5));
        while !driver.is_proven_off() && driver.now < until {
            let calls_a_cut = driver.record.in_flight().is_some_and(|one| one.method > 0);
            driver.call_takes = if calls_a_cut { Span::seconds(seconds) } else { Span::ZERO };
            driver.go();
        }
        assert!(driver.is_proven_off(), "{seconds} {is_silent} {:?}", driver.record.phase);
        assert!(reads(&driver) > before, "{seconds} {is_silent}");
    }
}

/// The machine is off and its BMC silent when a person aborts. Once it answers, the machine is switched on, and not off again
/// although it boots and is not well.
#[test] // promise: A17
fn a17_an_abort_outlives_a_silent_device() {
    let policy = IncidentPolicy { device_timeout: Span::minutes(10), ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_plan(), policy);
    driver.until(Phase::Releasing);
    driver.device = Box::new(|_, _| not_attempted(FailureKind::Unreachable));
    driver.event(Event::Command(Command::Abort));
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::DeviceUnreachable));
    driver.device = Box::new(honest);
    driver.until_now(Span::minutes(120));
    assert_eq!((driver.parked(), driver.count(Action::Off)), (Some(&ParkReason::Aborted), 1));
}

/// A person aborts; the cut is undone under a pause, and the machine boots anew before that ends.
#[test] // promise: A17
fn a17_an_abort_outlives_a_pause() {
    let mut driver = Driver::new(cutting_plan(storage()), proven_by_power());
    dead_bmc(&mut driver);
    driver.until(Phase::AwaitingDevice);
    driver.view.pods.clear();
    driver.event(Event::Command(Command::Abort));
    driver.device = Box::new(honest);
    driver.until(Phase::Parked);
    driver.view.gate.refusals = vec![paused_by_alice()];
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span::minutes(2));
    driver.node(|node| node.liveness = liveness("boot-2", 9));
    driver.until_now(Span::minutes(2));
    driver.view.gate.refusals.clear();
    driver.until_now(Span::minutes(30));
    assert!(!driver.calls.contains(&(0, Action::Off)), "{:?}", driver.parked());
}

/// A person aborts while all stands, and the answer to the giving-back is lost. Then pods vanish, and the device says that the
/// cut stands.
#[test] // promise: A5
fn a5_a_giving_back_that_came_to_nothing_is_not_repeated_behind_what_vanished() {
    let mut driver = Driver::new(cutting_plan(storage()), proven_by_power());
    driver.until(Phase::ReadingIdentity);
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (1, Action::On) => End::Indeterminate,
        (1, _) => not_attempted(FailureKind::Timeout),
        _ => honest(operation, plugs),
    });
    driver.event(Event::Command(Command::Abort));
    driver.until(Phase::AwaitingDevice);
    driver.view.pods.clear();
    driver.view.attachments.clear();
    driver.until_now(Span::minutes(30));
    driver.device = Box::new(honest);
    until_over(&mut driver);
    assert_eq!((driver.parked(), driver.plugs[1]), (Some(&ParkReason::StillCut), PlugState::Off));
}

/// The device says yes and cuts nothing, or an earlier pass cut and gave back: nobody undid anything, and the node that is
/// well again keeps its boot.
#[test] // promise: P1
fn p1_a_cut_that_was_never_read_to_stand_was_not_undone() {
    for is_earlier in [false, true] {
        let policy = IncidentPolicy { power_after: Span::minutes(20), ..proven_by_power() };
        let mut driver = Driver::new(cutting_plan(storage()), policy);
        if is_earlier {
            driver.until(Phase::AwaitingPower);
            driver.view.gate.refusals = vec![storm()];
            driver.until(Phase::Waiting);
            driver.view.gate.refusals.clear();
        }
        driver.device =
            Box::new(move |operation, plugs| match (operation.method, operation.action) {
                (1, Action::Off) if is_earlier => End::Indeterminate,
                (1, Action::Off) => succeeded(PlugState::Off),
                _ => honest(operation, plugs),
            });
        driver.until(Phase::AwaitingPower);
        assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);
        driver.view.pods.clear();
        driver.until_now(Span::seconds(30));
        driver.device = Box::new(honest);
        driver.wakes();
        until_over(&mut driver);
        assert!(!driver.notices.contains(&Notice::CutUndone { method: 1 }), "{is_earlier}");
        assert!(!driver.calls.contains(&(0, Action::Off)), "{is_earlier}");
    }
}

/// Somebody undoes the cut every ten minutes of a storm that does not end: a person is told.
#[test]
fn a14_a_cut_that_is_undone_again_and_again_does_not_lengthen_the_wait_for_leave() {
    let policy = IncidentPolicy { power_after: Span::minutes(1), ..IncidentPolicy::default() };
    let mut driver = Driver::new(cutting_plan(storage()), policy);
    driver.until(Phase::Releasing).until(Phase::AwaitingPower);
    driver.view.gate.refusals = vec![storm()];
    let until = driver.now.after(Span::minutes(24 * 60));
    while driver.record.phase != Phase::Parked && driver.now < until {
        driver.plugs[1] = PlugState::On;
        driver.until_now(Span::minutes(10));
    }
    assert_eq!(driver.parked(), Some(&ParkReason::GateClosed));
}

/// The switch gives back at its third try, and the BMC switches on at its second.
#[test]
fn a7_tries_of_giving_back_are_not_those_of_switching_on() {
    let mut driver = Driver::new(cutting_plan(storage()), proven_by_power());
    driver.until(Phase::Restoring);
    let mut left = [1, 2];
    driver.device = Box::new(move |operation, plugs| match left.get_mut(operation.method) {
        Some(left) if operation.action == Action::On && *left > 0 => {
            *left -= 1;
            not_attempted(FailureKind::Device)
        }
        _ => honest(operation, plugs),
    });
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);
}

/// The outlet of another machine cannot be switched on. Its owner stays dark although the node itself is well again.
#[test]
fn p8_a_plug_of_another_that_stays_off_is_told_of_and_tried_until_it_is_on() {
    let mut driver = released_and_switched_off(outlet_and_storage());
    driver.view.neighbours = Neighbours::Silent("node-b".into());
    let refuses_on =
        |operation: &Operation, plugs: &mut [PlugState]| match (operation.method, operation.action)
        {
            (0, Action::On) => failed(FailureKind::Denied),
            _ => honest(operation, plugs),
        };
    driver.device = Box::new(refuses_on);
    until_over(&mut driver);
    assert_eq!(driver.parked(), Some(&ParkReason::WrongPlug { neighbour: "node-b".into() }));
    assert_eq!(driver.record.parked.as_ref().unwrap().powered_off_by_us, [0]);
    driver.boots();
    driver.until_now(Span::minutes(5));
    assert!(!matches!(driver.record.phase, Phase::Final(_)));
    driver.device = Box::new(honest);
    until_final(&mut driver);
    assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);
}

/// Whoever says `retry` meanwhile has that outlet switched on first, and nothing switched off.
#[test]
fn p8_a_retry_switches_on_first_what_may_be_anothers() {
    let mut driver = released_and_switched_off(outlet_and_storage());
    driver.view.neighbours = Neighbours::Silent("node-b".into());
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, Action::On) => failed(FailureKind::Denied),
        _ => honest(operation, plugs),
    });
    until_over(&mut driver);
    driver.device = Box::new(honest);
    let offs = driver.count(Action::Off);
    driver.event(Event::Command(Command::Retry));
    driver.until_now(Span::minutes(5));
    assert_eq!(driver.parked(), Some(&ParkReason::WrongPlug { neighbour: "node-b".into() }));
    assert_eq!((driver.plugs[0], driver.count(Action::Off)), (PlugState::On, offs));
}

/// The outlet is another machine's and does not answer. A person aborts, and the node itself boots.
#[test]
fn p8_an_abort_does_not_hide_that_a_plug_is_anothers() {
    let mut driver =
        Driver::new(outlet_and_storage(), IncidentPolicy { retries: 0, ..proven_by_power() });
    driver.until(Phase::VerifyingOff);
    driver.view.neighbours = Neighbours::Silent("node-b".into());
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, Action::On | Action::Monitor) => silent(operation, plugs),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::AwaitingDevice);
    driver.event(Event::Command(Command::Abort));
    driver.boots();
    driver.until_now(Span::minutes(5));
    assert_eq!(driver.plugs[0], PlugState::Off);
    driver.device = Box::new(honest);
    until_final(&mut driver);
    assert_eq!(driver.plugs[0], PlugState::On);
}

/// Whatever a person says of the doubted incident, its plug is still told of; once the node itself is well, the plug is
/// somebody else's, and goes on.
#[test] // promise: A17
fn a17_a_doubt_about_the_plug_outlives_every_abort() {
    for command in [Command::Abort, Command::AbortLeaveOff] {
        let mut driver = released_and_switched_off(outlet_and_storage());
        driver.view.neighbours = Neighbours::Silent("node-b".into());
        while !matches!(driver.record.goal, Goal::Park(_)) {
            driver.go();
        }
        driver.event(Event::Command(command));
        driver.until(Phase::Parked);
        assert_eq!(driver.parked(), Some(&ParkReason::WrongPlug { neighbour: "node-b".into() }));
        driver.wakes();
        driver.until_now(Span::minutes(3));
        assert_eq!(driver.plugs[0], PlugState::On);
    }
}

/// After an abort the incident waits for a silent device. `retry` asks the device again, and takes back no abort.
#[test] // promise: A17
fn a17_an_abort_stands_until_the_parked_incident_is_retried() {
    let mut driver = Driver::new(bmc_plan(), IncidentPolicy::default());
    driver.until(Phase::VerifyingOff);
    driver.device = Box::new(silent);
    driver.event(Event::Command(Command::Abort));
    driver.until(Phase::AwaitingDevice);
    driver.event(Event::Command(Command::Retry));
    assert!(driver.record.aborted_at.is_some());
    driver.device = Box::new(honest);
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::Aborted));
    driver.event(Event::Command(Command::Retry));
    assert_eq!(driver.record.aborted_at, None);
}
