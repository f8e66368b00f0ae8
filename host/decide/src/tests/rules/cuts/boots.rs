//! Cuts and the boot behind them: which boot was cut, what stood behind it, and what shows that it goes on.

use super::given_back::vanishes;
use super::refuted::{proven_by_power, until_over};
use super::*;
use crate::tests::fixtures::UUID;

/// Goes on for at most this long, or until the incident is over.
fn for_at_most(driver: &mut Driver, span: Span) {
    let until = driver.now.after(span);
    while driver.now < until && !matches!(driver.record.phase, Phase::Final(_)) {
        driver.go();
    }
}

/// Isolated, and power comes much later.
fn isolated(plan: Plan) -> Driver {
    let policy = IncidentPolicy { power_after: Span::minutes(30), ..proven_by_power() };
    let mut driver = Driver::new(plan, policy);
    driver.until(Phase::AwaitingPower);
    assert_eq!(driver.plugs[1], PlugState::Off);
    driver
}

/// The switch is silent for ten minutes, in which the machine boots once more. That boot is cut, and released from; its BMC
/// refuses, and somebody says `retry`. Then the boot is well again.
#[test] // promise: A5
fn a5_a_boot_that_began_before_its_cut_gets_nothing_back_after_a_retry() {
    let mut plan = cutting_plan(storage());
    plan.methods[1].must_success = true;
    let mut driver = driver_of(plan);
    driver.device = Box::new(silent);
    driver.until(Phase::AwaitingDevice);
    driver.until_now(Span::minutes(10));
    driver.node(|node| node.liveness = liveness("boot-2", 5));
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, Action::Off) => failed(FailureKind::Denied),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::Parked);
    assert!(driver.released(), "{:?}", driver.parked());
    driver.event(Event::Command(Command::Retry));
    driver.live("boot-2", 9);
    for_at_most(&mut driver, Span::minutes(30));
    assert_eq!(driver.plugs[1], PlugState::Off, "{:?}", driver.record.phase);
}

/// Nobody says which drivers a port of a SAN cuts. A pod and its attachment are deleted by force, and somebody aborts.
#[test] // promise: A5
fn a5_storage_that_names_no_driver_may_be_anybodys() {
    for is_gone in [false, true] {
        let mut driver = isolated(cutting_plan(Kind::Storage { drivers: vec![] }));
        if is_gone {
            vanishes(&mut driver);
        }
        driver.event(Event::Command(Command::Abort));
        for_at_most(&mut driver, Span::minutes(30));
        let expected = if is_gone { PlugState::Off } else { PlugState::On };
        assert_eq!(driver.plugs[1], expected, "{:?}", driver.record.phase);
    }
}

/// The network of the storage is cut, and a pod is deleted by force. Its node reports over another network, and its kubelet
/// still uses the volume.
#[test]
fn a5_a_cut_network_stays_cut_while_its_kubelet_uses_what_is_gone() {
    for kind in [Kind::Fabric(Path::Other), Kind::Storage { drivers: vec![] }] {
        let mut driver = isolated(cutting_plan(kind));
        let in_use = alloc::format!("kubernetes.io/csi/{DRIVER}^pv-db-0");
        driver.node(|node| node.volumes_in_use = vec![in_use.clone()]);
        driver.record.cut_off.as_mut().unwrap().untold = false;
        vanishes(&mut driver);
        driver.wakes();
        driver.until_now(Span::minutes(2));
        assert_eq!(driver.plugs[1], PlugState::Off, "{:?}", driver.record.phase);
        driver.node(|node| node.volumes_in_use.clear());
        for_at_most(&mut driver, Span::minutes(5));
        assert_eq!(driver.plugs[1], PlugState::On, "{:?}", driver.record.phase);
    }
}

/// An incident waits; somebody shuts the port and deletes the pods by force. The recovery of an incident that cut
/// nothing opens nothing.
#[test] // promise: A4
fn a4_what_we_did_not_cut_is_not_opened() {
    for kind in [Kind::Fabric(Path::Other), storage()] {
        let mut plan = cutting_plan(kind);
        plan.recovery = vec![stage(Execution::All, &[1])];
        let mut driver = driver_of(plan);
        driver.view.gate.refusals = vec![storm()];
        driver.until_now(Span::minutes(1));
        driver.plugs[1] = PlugState::Off;
        driver.event(Event::Command(Command::Abort));
        driver.until(Phase::Final(FinalReason::Aborted));
        assert_eq!(driver.count(Action::On), 0);
    }
}

/// Nobody hears the end of the first cut, which was never made. A pod comes to the node before the second one.
#[test] // promise: A5
fn a5_what_comes_before_a_cut_is_made_stands_behind_it() {
    let policy = IncidentPolicy { power_after: Span::minutes(30), ..proven_by_power() };
    let mut driver = Driver::new(cutting_plan(storage()), policy);
    let mut offs = 0;
    driver.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (1, Action::Off) if offs == 0 => {
            offs += 1;
            End::Indeterminate
        }
        _ => honest(operation, plugs),
    });
    while driver.count(Action::Off) < 1 {
        driver.go();
    }
    driver.view.pods.push(crate::tests::fixtures::pod("db-1", None));
    driver.until(Phase::AwaitingPower);
    assert_eq!(driver.plugs[1], PlugState::Off);
    driver.view.pods.retain(|pod| pod.uid != "db-1");
    driver.event(Event::Command(Command::Abort));
    for_at_most(&mut driver, Span::minutes(5));
    assert_eq!(driver.plugs[1], PlugState::Off, "{:?}", driver.record.phase);
}

/// A BMC lies. Everything was released when the boot that was proven off reports again, still ill.
#[test] // promise: P2
fn p2_a_report_after_the_release_voids_the_proof() {
    let mut driver = driver();
    driver.policy.restarts = 0;
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.released());
    driver.node(|node| node.liveness = liveness(BOOT, 9));
    until_over(&mut driver);
    assert_eq!(driver.parked(), Some(&ParkReason::AliveThoughOff));
    assert!(driver.notices.contains(&Notice::ProofVoided { reads_on: None }));
}

/// The BMC tells its state and takes in no command; or one of two outlets answers, and the other one does not.
#[test] // promise: A12
fn a12_a_device_that_answers_something_else_is_still_awaited() {
    let but = |method: MethodIndex, action: Action| {
        Box::new(move |operation: &Operation, plugs: &mut [PlugState]| {
            if (operation.method, operation.action) == (method, action) {
                return not_attempted(FailureKind::Timeout);
            }
            honest(operation, plugs)
        })
    };
    let mut two = bmc_plan();
    two.methods[0].kind = Kind::Power(Feed::Part);
    two.methods.push(power("second", Feed::Part));
    two.power = vec![stage(Execution::All, &[0, 1])];
    for (plan, device) in [(bmc_plan(), but(0, Action::Off)), (two, but(1, Action::Status))] {
        let policy =
            IncidentPolicy { device_timeout: Span::minutes(5), ..IncidentPolicy::default() };
        let mut driver = Driver::new(plan, policy);
        driver.device = device;
        for_at_most(&mut driver, Span::minutes(10));
        assert!(driver.notices.contains(&Notice::Parked(ParkReason::DeviceUnreachable)));
    }
}

/// A node that is isolated and nothing else: somebody switches its machine off, and says so.
#[test]
fn a5_a_persons_word_gives_back_what_isolated_a_node() {
    let mut plan = cutting_plan(Kind::Fabric(Path::ApiServer));
    plan.power = vec![];
    plan.methods[0].kind = Kind::Watch;
    let policy =
        IncidentPolicy { isolated_for_good: IsolatedForGood::Park, ..IncidentPolicy::default() };
    let mut driver = Driver::new(plan, policy);
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::Isolated));
    let by = "alice".into();
    driver.event(Event::Command(Command::ConfirmOff { by, boot_id: BOOT.into() }));
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.plugs[1], PlugState::On);
}

/// The first of two cuts is carried out half a minute after the switch took it in.
#[test] // promise: A3
fn a3_a_cut_that_is_carried_out_late_does_not_land_behind_its_giving_back() {
    let mut plan = cutting_plan(storage());
    plan.methods[1].late_effect = Span::seconds(30);
    let policy = IncidentPolicy { power_after: Span::minutes(30), ..proven_by_power() };
    let mut driver = Driver::new(plan, policy);
    let mut offs = 0;
    driver.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (1, Action::Off) if offs == 0 => {
            offs += 1;
            succeeded(PlugState::On)
        }
        _ => honest(operation, plugs),
    });
    driver.until_call(Action::Off);
    let lands_at = driver.now.after(Span::seconds(29));
    driver.until(Phase::AwaitingPower);
    driver.event(Event::Command(Command::Abort));
    while driver.now < lands_at {
        assert!(!matches!(driver.record.phase, Phase::Final(_)), "a cut may still be made");
        driver.go();
    }
    driver.plugs[1] = PlugState::Off;
    driver.until(Phase::Final(FinalReason::Aborted));
    assert_eq!(driver.plugs[1], PlugState::On);
}

/// A switch names the machine behind its port: it is another one.
#[test] // promise: P8
fn p8_a_port_that_names_another_machine_is_not_shut() {
    let mut plan = cutting_plan(Kind::Fabric(Path::Other));
    let expected = vec![("system-uuid".into(), UUID.into())];
    plan.methods[1].binding = Binding::Reported { expected };
    let mut driver = driver_of(plan);
    driver.device = Box::new(|operation, plugs| match operation.method {
        1 => {
            let identity = vec![("system-uuid".into(), "another".into())];
            End::Succeeded { state: plugs[1], identity }
        }
        _ => honest(operation, plugs),
    });
    driver.until(Phase::Parked);
    assert!(
        matches!(driver.parked(), Some(ParkReason::WrongMachine { .. })),
        "{:?}",
        driver.parked()
    );
    assert_eq!(driver.count(Action::Off), 0);
}

/// A person said that the machine is off, and it reports before anything was deleted. No device said anything.
#[test]
fn p2_a_word_that_was_wrong_accuses_no_device() {
    let mut driver = driver();
    driver.device = Box::new(silent);
    driver.until(Phase::AwaitingDevice);
    driver.node(|node| node.quarantined = false);
    let by = "alice".into();
    driver.event(Event::Command(Command::ConfirmOff { by, boot_id: BOOT.into() }));
    while driver.record.proof.is_none() {
        driver.go();
    }
    driver.todo = vec![Effect::Look];
    driver.node(|node| node.liveness = liveness(BOOT, 9));
    while driver.record.phase == Phase::Releasing {
        driver.go();
    }
    assert!(!driver.released());
    assert_eq!(driver.record.goal, Goal::BringBack);
}
