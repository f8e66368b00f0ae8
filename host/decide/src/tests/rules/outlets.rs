//! Rule P8 for outlets, which know no machine: who tried them, and who answers for them.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;

use crate::tests::driver::{Driver, honest, silent};
use crate::tests::fixtures::{
    BOOT, UUID, bmc_plan, failed, liveness, not_attempted, pod, power, stage, storage,
};
use crate::*;

/// Cables are changed after a trial, too: whether verified or trusted, a neighbour that falls silent speaks against an outlet,
/// and so does a node that lives.
#[test] // promise: P8
fn p8_an_outlet_is_believed_once_no_neighbour_fell_silent() {
    let mut plan = bmc_plan();
    plan.methods[0].binding = Binding::Labelled;
    let mut alive = Driver::new(plan.clone(), IncidentPolicy::default());
    alive.until(Phase::VerifyingOff);
    for life in 10..200 {
        alive.view.node.iter_mut().for_each(|node| node.liveness = liveness(BOOT, life));
        if alive.record.phase != Phase::Parked {
            alive.go();
        }
    }
    assert_eq!(alive.parked(), Some(&ParkReason::AliveThoughOff));
    assert_eq!((alive.count(Action::On), alive.released()), (1, false));

    plan.methods[0].kind = Kind::Power(Feed::Part);
    plan.methods.push(plan.methods[0].clone());
    plan.power = vec![stage(Execution::All, &[0, 1])];
    let mut silent = Driver::new(plan, IncidentPolicy::default());
    silent.until(Phase::VerifyingOff);
    silent.view.neighbours = Neighbours::Silent("node-b".to_string());
    silent.until(Phase::Parked);
    assert!(matches!(silent.parked(), Some(ParkReason::WrongPlug { .. })));
}

/// Outlets that nobody tried and nobody answers for are not even read: a BMC beside them proves alone, and without one the
/// plan is refused.
#[test] // promise: P8
fn p8_an_outlet_that_nobody_tried_is_neither_switched_nor_believed() {
    let mut plan = bmc_plan();
    plan.methods.extend(["pdu-a", "pdu-b"].map(|name| power(name, Feed::Part)));
    for outlet in &mut plan.methods[1..] {
        outlet.binding = Binding::Unverified;
    }
    plan.power = vec![stage(Execution::OnlyOne, &[0]), stage(Execution::All, &[1, 2])];
    let mut beside = Driver::new(plan.clone(), IncidentPolicy::default());
    beside.until_released();
    assert_eq!(beside.plugs, [PlugState::Off, PlugState::On, PlugState::On]);
    assert!(beside.record.operations.iter().all(|one| one.method == 0));

    let mut dead = Driver::new(
        plan.clone(),
        IncidentPolicy { retries: 0, restarts: 0, ..IncidentPolicy::default() },
    );
    dead.device = Box::new(|operation, plugs| match operation.method {
        0 => failed(FailureKind::Denied),
        _ => honest(operation, plugs),
    });
    dead.until(Phase::Parked);
    assert!(!dead.released() && dead.hit(Rule::P8));
    assert_eq!(dead.plugs[1..], [PlugState::On; 2]);

    // One of two that was verified goes off for nothing.
    plan.methods[1].binding = Binding::Labelled;
    let mut half =
        Driver::new(plan.clone(), IncidentPolicy { retries: 0, ..IncidentPolicy::default() });
    half.device = Box::new(|operation, plugs| match operation.method {
        0 => failed(FailureKind::Denied),
        _ => honest(operation, plugs),
    });
    half.until(Phase::Parked);
    assert!(half.record.operations.iter().all(|one| one.method == 0));
}

/// A BMC and the outlet that is to be the machine's only one.
fn bmc_and_outlet() -> Plan {
    let mut plan = bmc_plan();
    plan.methods.push(power("outlet", Feed::Whole));
    plan.methods[1].binding = Binding::Labelled;
    let expected = vec![("system-uuid".to_string(), UUID.to_string())];
    plan.methods[0].binding = Binding::Reported { expected };
    plan.power = vec![stage(Execution::All, &[1, 0])];
    plan
}

fn named(state: PlugState) -> End {
    let identity = vec![("system-uuid".to_string(), UUID.to_string())];
    End::Succeeded { state, identity }
}

/// A BMC that has its power from the outlet.
fn behind_its_outlet(operation: &Operation, plugs: &mut [PlugState]) -> End {
    if operation.method != 0 {
        return honest(operation, plugs);
    }
    if plugs[1] == PlugState::Off {
        return not_attempted(FailureKind::Timeout);
    }
    honest(operation, plugs);
    named(plugs[0])
}

/// The outlet reads off, and the BMC, which knows its machine, reads on: somebody else is dark, or nobody. It is switched on
/// again.
#[test] // promise: P1
fn p1_an_outlet_is_not_believed_while_the_machines_bmc_reads_on() {
    for execution in [Execution::All, Execution::OnlyOne] {
        let plan = Plan { power: vec![stage(execution, &[1, 0])], ..bmc_and_outlet() };
        let mut driver = Driver::new(plan, IncidentPolicy::default());
        driver.device = Box::new(|operation, plugs| match operation.method {
            0 => named(PlugState::On),
            _ => honest(operation, plugs),
        });
        driver.until(Phase::Parked);
        let (method, witness) = ("outlet".to_string(), "bmc".to_string());
        assert_eq!(driver.parked(), Some(&ParkReason::WitnessReadsOn { method, witness }));
        assert!(!driver.released());
        assert_eq!(driver.plugs[1], PlugState::On);
    }
}

/// The outlet feeds the BMC, too, which falls silent with it, whether it was asked to go off before or not.
#[test] // promise: A12
fn a12_a_bmc_that_falls_silent_with_its_outlet_is_not_waited_for() {
    for power in [
        vec![stage(Execution::All, &[1, 0])],
        vec![stage(Execution::OnlyOne, &[0]), stage(Execution::All, &[1])],
    ] {
        let mut plan = Plan { power, ..bmc_and_outlet() };
        plan.methods[0].must_success = true;
        let mut driver = Driver::new(plan, IncidentPolicy::default());
        driver.device = Box::new(behind_its_outlet);
        driver.until_released();
        assert_eq!(driver.plugs[1], PlugState::Off);
        driver.until(Phase::AwaitingHealthy);
        assert_eq!(driver.plugs[1], PlugState::On);
    }
}

/// Both outlets go off, then one PDU answers only with protocol errors. The BMC that they feed is not waited for; the
/// incident parks.
#[test] // promise: A12
fn a12_a_bmc_behind_an_outlet_that_was_given_up_on_is_not_waited_for() {
    let mut plan = bmc_and_outlet();
    plan.methods[1] = power("outlet-a", Feed::Part);
    plan.methods.push(power("outlet-b", Feed::Part));
    plan.methods[1..].iter_mut().for_each(|one| one.binding = Binding::Labelled);
    plan.power = vec![stage(Execution::All, &[1, 2]), stage(Execution::OnlyOne, &[0])];
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 if plugs[1].is_off() => silent(operation, plugs),
        2 if plugs[2].is_off() && operation.attempt > 1 => failed(FailureKind::Protocol),
        2 if operation.action == Action::Status && plugs[1].is_off() => {
            failed(FailureKind::Protocol)
        }
        _ => honest(operation, plugs),
    });
    driver.until(Phase::Parked);
    assert!(matches!(driver.parked(), Some(ParkReason::OffNotVerified { .. })));
    assert!(driver.now < driver.record.opened_at.after(driver.policy.device_timeout));
    assert!(!driver.released());
}

/// The Secret of a BMC is missing for a moment after the outlets' off. By the time it is back the BMC is dark: what it waits for
/// never comes.
#[test] // promise: A12
fn a12_a_bmc_that_could_not_be_called_and_then_is_dark_is_not_waited_for() {
    let mut driver = Driver::new(bmc_and_outlet(), IncidentPolicy::default());
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, action) if plugs[1] == PlugState::Off && action != Action::Monitor => {
            not_attempted(FailureKind::NotMade)
        }
        (_, _) => behind_its_outlet(operation, plugs),
    });
    driver.until(Phase::AwaitingDevice);
    driver.device = Box::new(behind_its_outlet);
    let since = driver.now;
    driver.until_released();
    assert!(driver.now.since(since) < Span::minutes(5));
}

/// A person was told that the BMC cannot be called. That it is dark by now lets the incident go on, and is no answer:
/// nobody is told that it is back.
#[test]
fn a12_a_parked_incident_goes_on_for_a_dark_bmc_and_does_not_say_that_it_answers() {
    let policy = IncidentPolicy { device_timeout: Span::minutes(10), ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_and_outlet(), policy);
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 if plugs[1] == PlugState::Off => not_attempted(FailureKind::NotMade),
        _ => behind_its_outlet(operation, plugs),
    });
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::DeviceUnreachable));
    driver.device = Box::new(behind_its_outlet);
    driver.until_released();
    assert!(!driver.notices.iter().any(|one| matches!(one, Notice::DeviceBack { .. })));
}

/// Both feeds refuse, and one of them works at the next try: each is asked once before any is asked again. A dead feed does not keep
/// the one that refuses from being closed, and told.
#[test]
fn a13_each_feed_has_its_tries_and_a_dead_one_hides_no_refusal() {
    let two_feeds = || {
        let mut plan = bmc_plan();
        plan.methods[0] = power("pdu-a", Feed::Part);
        plan.methods.push(power("pdu-b", Feed::Part));
        plan.methods.iter_mut().for_each(|one| one.binding = Binding::Labelled);
        plan.power = vec![stage(Execution::All, &[0, 1])];
        Driver::new(plan, IncidentPolicy::default())
    };
    let mut driver = two_feeds();
    driver.until_released();
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, Action::On) => not_attempted(FailureKind::Device),
        (1, Action::On) if operation.attempt == 1 => not_attempted(FailureKind::Device),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::OnFailed));
    assert_eq!(driver.plugs, [PlugState::Off, PlugState::On]);
    let is_on = |call: &&(MethodIndex, Action)| call.1 == Action::On;
    let ons = driver.calls.iter().filter(is_on).map(|call| call.0);
    assert!(ons.take(2).eq([0, 1]));

    let mut driver = two_feeds();
    driver.until_released();
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, Action::On) => not_attempted(FailureKind::Device),
        (1, _) => not_attempted(FailureKind::Timeout),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::OnFailed));
    assert!(driver.record.on_failed.iter().any(|one| one.method == 0));
}

/// A Redfish service that hangs after its first answer says nothing against the BMC's own IPMI, which reads off.
#[test] // promise: P1
fn p1_a_service_that_hangs_does_not_speak_against_a_bmc_that_reads_off() {
    let mut plan = bmc_plan();
    plan.methods.push(power("ipmi", Feed::Whole));
    plan.power = vec![stage(Execution::OnlyOne, &[0, 1])];
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, Action::Off) => not_attempted(FailureKind::Timeout),
        (0, _) if plugs[1] == PlugState::Off => not_attempted(FailureKind::Timeout),
        (_, _) => honest(operation, plugs),
    });
    driver.until_released();
    assert_eq!(driver.plugs[1], PlugState::Off);
}

/// A BMC that was dark, or that the network of our devices hid, answers while a slow release goes on: the machine is on.
#[test] // promise: P1
fn a16_a_bmc_that_answers_during_the_release_is_heard() {
    let policy = IncidentPolicy {
        release: ReleaseMode::Paced { pods_per_minute: 1 },
        restarts: 0,
        ..IncidentPolicy::default()
    };
    let mut driver = Driver::new(bmc_and_outlet(), policy);
    driver.view.pods = vec![pod("a", None), pod("b", None), pod("c", None)];
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 if plugs[1] == PlugState::Off => not_attempted(FailureKind::Timeout),
        0 => named(PlugState::On),
        _ => honest(operation, plugs),
    });
    driver.until_released();
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 => named(PlugState::On),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::PoweringOn);
    assert!(driver.notices.contains(&Notice::ProofVoided { reads_on: Some(0) }));
    let deletes = driver.done.iter().filter(|one| matches!(one, Effect::DeletePods(_)));
    assert!(deletes.count() < 3);
}

/// A BMC that was silent before says nothing about its outlets: it is waited for.
#[test] // promise: A12
fn a12_a_bmc_that_was_silent_before_its_outlets_went_off_is_waited_for() {
    let plan = Plan {
        power: vec![stage(Execution::All, &[0]), stage(Execution::All, &[1])],
        ..bmc_and_outlet()
    };
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 => not_attempted(FailureKind::Timeout),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::AwaitingDevice);
    assert_eq!((driver.count(Action::Off), driver.released()), (0, false));
}

#[test]
fn a_plan_is_refused_where_no_remedy_could_prove_anything() {
    let refused = |plan: &Plan| refuse_plan(plan, &IncidentPolicy::default());
    let not_verified = Some(PlanRefusal::WiringNotVerified);
    let mut plan = bmc_plan();
    plan.methods.extend(["pdu-a", "pdu-b"].map(|name| power(name, Feed::Part)));
    plan.methods[1].binding = Binding::Unverified;
    plan.methods[2].binding = Binding::Labelled;
    plan.power = vec![stage(Execution::OnlyOne, &[0]), stage(Execution::All, &[1, 2])];
    assert_eq!(refused(&plan), None, "by its BMC");
    let mut needed = plan.clone();
    needed.methods[2].must_success = true;
    assert_eq!(refused(&needed), not_verified, "it would fail");

    needed.power[1].needed_for = NeededFor::Nothing;
    assert_eq!(refused(&needed), None, "nothing waits for what fails");

    let remedy_step = |remedy| {
        let period = Span::minutes(1);
        RemedyStep { name: "remedy".to_string(), remedy, period, clean: false }
    };
    let fence = remedy_step(Remedy::Fence);
    plan.power.remove(0);
    assert_eq!(refused(&plan), not_verified, "one of two");
    let by_bmc = Plan { ladder: vec![remedy_step(Remedy::Method(0)), fence], ..plan.clone() };
    assert_eq!(refused(&by_bmc), None, "its first remedy proves, the fence behind it fails");
    // A fence that switches nothing brings nobody back whose way to the API server was cut.
    let mut cuts = Plan {
        ladder: vec![remedy_step(Remedy::Isolation), remedy_step(Remedy::Fence)],
        ..plan.clone()
    };
    cuts.methods.push(Method { kind: Kind::Fabric(Path::ApiServer), ..power("port", Feed::Whole) });
    cuts.isolation = vec![stage(Execution::All, &[3])];
    assert_eq!(refused(&cuts), not_verified, "{}", PlanRefusal::WiringNotVerified);
    cuts.methods[1].binding = Binding::Labelled;
    assert_eq!(refused(&cuts), None);
    // What cuts storage alone, and may be another machine's, releases nothing.
    let mut cuts =
        Plan { power: vec![], isolation: vec![stage(Execution::All, &[3])], ..plan.clone() };
    cuts.methods.push(Method {
        kind: storage(),
        binding: Binding::Unverified,
        ..power("port", Feed::Whole)
    });
    assert_eq!(refused(&cuts), Some(PlanRefusal::StorageNotTrusted));
    let mut grades = IncidentPolicy::default().grades;
    grades.insert(Grade::Partition);
    let policy = IncidentPolicy { grades, ..IncidentPolicy::default() };
    assert_eq!(refuse_plan(&cuts, &policy), None, "a silence releases, too");
    let job = remedy_step(Remedy::Job { deadline: Span::minutes(5) });
    let with_job = Plan { ladder: vec![job, remedy_step(Remedy::Fence)], ..cuts.clone() };
    assert_eq!(refused(&with_job), None, "the Job may help");
    let by_bmc = Plan { power: bmc_plan().power, ..cuts.clone() };
    assert_eq!(refused(&by_bmc), None, "power proves");
    let alone = Plan { ladder: vec![remedy_step(Remedy::Isolation)], ..by_bmc };
    assert_eq!(refused(&alone), Some(PlanRefusal::StorageNotTrusted), "but no remedy uses it");
    cuts.methods[3].binding = Binding::Labelled;
    assert_eq!(refused(&cuts), None);

    plan.methods[1].binding = Binding::Labelled;
    assert_eq!(refused(&plan), None);

    plan.methods[0].binding = Binding::Unverified;
    for kind in [Kind::Power(Feed::Whole), Kind::ResetOnly] {
        plan.methods[0].kind = kind;
        plan.power = vec![stage(Execution::All, &[0])];
        assert_eq!(refused(&plan), not_verified, "the only feed, off or reset");
    }
}

/// The PDU falls silent right after the off, and the machine boots: its outlet may be another machine's, which is dark.
/// The incident stays parked until the outlet is on, or until a person says that it may stay off.
#[test]
fn p8_a_machine_that_is_well_does_not_show_that_its_outlet_is_on() {
    let mut plan = bmc_plan();
    plan.methods[0].binding = Binding::Labelled;
    let device_timeout = Span::minutes(10);
    for is_back in [false, true] {
        let policy = IncidentPolicy { device_timeout, ..IncidentPolicy::default() };
        let mut driver = Driver::new(plan.clone(), policy);
        driver.until(Phase::VerifyingOff);
        driver.device = Box::new(silent);
        driver.until(Phase::AwaitingDevice).boots();
        driver.until_now(Span::minutes(5));
        assert_eq!((driver.record.phase, driver.plugs[0]), (Phase::AwaitingDevice, PlugState::Off));
        if is_back {
            driver.device = Box::new(honest);
            driver.until(Phase::Final(FinalReason::Remedied));
            assert_eq!(driver.plugs[0], PlugState::On);
        } else {
            driver.until(Phase::Parked).until_now(Span::minutes(30));
            assert_eq!(driver.parked(), Some(&ParkReason::DeviceUnreachable));
            assert_eq!(driver.record.parked.as_ref().unwrap().powered_off_by_us, [0]);
            driver.event(Event::Command(Command::AbortLeaveOff));
            driver.until(Phase::Final(FinalReason::RecoveredByHand));
        }
    }
}

/// The device refuses to switch the outlet on, and somebody boots the machine. The incident retries until the outlet is
/// on.
#[test] // promise: P8
fn p8_an_outlet_that_is_off_is_tried_until_it_is_on_though_the_machine_is_well() {
    let mut plan = bmc_plan();
    plan.methods[0].binding = Binding::Labelled;
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.until_released();
    let refuses_on =
        |operation: &Operation, plugs: &mut [PlugState]| match (operation.method, operation.action)
        {
            (0, Action::On) => failed(FailureKind::Denied),
            _ => honest(operation, plugs),
        };
    driver.device = Box::new(refuses_on);
    driver.until(Phase::Parked).boots();
    driver.until_now(Span::minutes(20));
    assert!(!matches!(driver.record.phase, Phase::Final(_)));
    driver.device = Box::new(honest);
    driver.until(Phase::Final(FinalReason::RecoveredByHand));
    assert_eq!(driver.plugs, [PlugState::On]);
}
