//! Remedies that are done in the cluster itself, and the isolation step as a remedy of its own.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::CLEAR;
use super::cutting_plan;
use crate::tests::driver::Driver;
use crate::tests::fixtures::{bmc_plan, paused_by_alice};
use crate::*;

const PERIOD: Span = Span::minutes(3);

fn remedy_step(name: &str, remedy: Remedy) -> RemedyStep {
    RemedyStep { name: name.to_string(), remedy, period: PERIOD, clean: false }
}

fn drain() -> RemedyStep {
    remedy_step("drain", Remedy::Cluster(ClusterAction::Drain))
}

/// A sick node whose kubelet lives, with this ladder.
fn sick(ladder: &[RemedyStep]) -> Driver {
    let mut driver =
        Driver::new(Plan { ladder: ladder.to_vec(), ..bmc_plan() }, IncidentPolicy::default());
    driver.view.pods.iter_mut().for_each(|pod| pod.ready = true);
    lives(&mut driver);
    driver
}

fn lives(driver: &mut Driver) {
    let now = driver.now;
    driver.view.node.iter_mut().for_each(|node| node.lease_seen_at = Some(now));
}

/// Goes on, the kubelet alive, until `over`.
fn until(driver: &mut Driver, over: impl Fn(&Driver) -> bool) {
    for _ in 0..1_000 {
        if over(driver) {
            return;
        }
        lives(driver);
        driver.go();
    }
    panic!("not over but {:?}; {:?}", driver.record.phase, driver.notices);
}

fn evicted(driver: &Driver) -> Vec<String> {
    let mut evicted = Vec::new();
    for effect in &driver.done {
        if let Effect::Evict { pods, at_once: false } = effect {
            evicted.extend(
                pods.iter().filter(|pod| !evicted.contains(*pod)).cloned().collect::<Vec<_>>(),
            );
        }
    }
    evicted
}

#[test]
fn a_drained_node_that_is_well_again_gets_its_pods_back() {
    let mut driver = sick(&[drain()]);
    until(&mut driver, |driver| driver.record.phase == Phase::AwaitingHealthy);
    assert_eq!(evicted(&driver), ["db-0"], "a DaemonSet's pod would come back at once");
    let cordoned = |driver: &Driver| driver.view.node.as_ref().is_some_and(|node| node.cordoned);
    assert!(cordoned(&driver) && driver.hit(Rule::P6));
    assert!(driver.notices.contains(&Notice::Draining { pods: 1 }));
    assert_eq!(driver.record.slot, Slot::Held, "one node at a time is missing");
    driver.wakes().until(Phase::Final(FinalReason::Remedied));
    assert!(!cordoned(&driver) && driver.calls.is_empty() && !driver.released());
}

#[test] // promise: A11
fn a11_a_mild_remedy_makes_way_for_a_fence_that_is_due() {
    for phase in [Phase::Remedying, Phase::AwaitingHealthy, Phase::Parked] {
        let mut driver = sick(&[drain()]);
        until(&mut driver, |driver| driver.record.phase == phase);
        driver.view.fence_is_due = true;
        driver.until(Phase::Final(FinalReason::Superseded));
        assert!(driver.view.node.as_ref().is_some_and(|node| !node.cordoned), "{phase:?}");
        assert!(driver.calls.is_empty() && driver.record.slot == Slot::Free, "{phase:?}");
    }
    let mut driver = Driver::new(bmc_plan(), IncidentPolicy::default());
    driver.view.fence_is_due = true;
    driver.until(Phase::AwaitingHealthy).boots().until(Phase::Final(FinalReason::Remedied));
    // What is cut goes back by its own rules.
    let ladder = vec![remedy_step("storage-fence", Remedy::Isolation)];
    let mut driver = Driver::new(
        Plan { ladder, ..cutting_plan(Kind::Fabric(Path::Other)) },
        IncidentPolicy::default(),
    );
    driver.until(Phase::AwaitingHealthy);
    driver.view.fence_is_due = true;
    driver.until(Phase::Parked);
}

/// A14: who reports the condition may be gone for good. An incident that has cut nothing does not wait for that for ever.
#[test]
fn a14_a_condition_that_nobody_reports_any_more_ends_what_only_marked() {
    let mut driver =
        sick(&[remedy_step("cordon", Remedy::Cluster(ClusterAction::Cordon)), drain()]);
    until(&mut driver, |driver| driver.record.phase == Phase::AwaitingHealthy);
    driver.view.trigger = Crossing::Unclear;
    until(&mut driver, |driver| driver.record.phase == Phase::Waiting);
    let waits_since = driver.now;
    driver.until(Phase::Final(FinalReason::Unreported));
    assert!(driver.now >= waits_since.after(IncidentPolicy::default().gate_timeout));
    assert!(driver.view.node.as_ref().is_some_and(|node| !node.cordoned));
    assert!(driver.hit(Rule::A14) && driver.record.slot == Slot::Free);

    // Reported again meanwhile, behind a closed gate: the wait begins anew.
    let mut again = sick(&[remedy_step("cordon", Remedy::Cluster(ClusterAction::Cordon)), drain()]);
    until(&mut again, |driver| driver.record.phase == Phase::AwaitingHealthy);
    let reported = again.view.trigger;
    again.view.trigger = Crossing::Unclear;
    until(&mut again, |driver| driver.record.phase == Phase::Waiting);
    again.until_now(Span::minutes(10));
    again.view.trigger = reported;
    again.view.gate.refusals = vec![Refusal::NoLease];
    again.until_now(Span::minutes(10));
    again.view.trigger = Crossing::Unclear;
    again.until_now(Span::minutes(10));
    assert_eq!(again.record.phase, Phase::Waiting);
    again.until(Phase::Final(FinalReason::Unreported));
}

/// The same behind a power cycle: nobody knows whether the node is well, so a person is told at the end of the ladder.
#[test]
fn a14_a_condition_that_nobody_reports_behind_a_power_cycle_is_not_waited_for_for_ever() {
    let mut driver = sick(&[remedy_step("fence", Remedy::Fence), drain()]);
    driver.until(Phase::AwaitingHealthy);
    let reported = driver.view.trigger.clone();
    driver.boots().view.trigger = reported;
    until(&mut driver, |driver| driver.record.phase == Phase::Waiting);
    driver.view.trigger = Crossing::Unclear;
    let waits_since = driver.now;
    driver.until(Phase::Parked);
    assert!(driver.now >= waits_since.after(IncidentPolicy::default().gate_timeout));
    assert_eq!((driver.count(Action::Off), driver.record.slot), (1, Slot::Free));
}

#[test]
fn what_tolerates_the_out_of_service_taint_is_drained_all_the_same() {
    let mut driver = sick(&[drain()]);
    driver.view.pods.iter_mut().for_each(|pod| pod.exempt = Some(Exempt::Tolerates));
    until(&mut driver, |driver| driver.record.phase == Phase::AwaitingHealthy);
    assert_eq!(driver.view.pods.len(), 0);
}

/// P6: a drain asks until its patience is over, and never takes what a budget holds.
#[test] // promise: P6
fn p6_a_budget_at_zero_outlasts_a_drain_and_the_next_remedy_has_its_turn() {
    let mut driver = sick(&[drain(), remedy_step("fence", Remedy::Fence)]);
    driver.budget_at_zero = true;
    until(&mut driver, |driver| driver.record.phase == Phase::Remedying);
    let since = driver.now;
    let failed = |driver: &Driver| {
        let left = "db-0".to_string();
        driver.notices.contains(&Notice::RemedyFailed(ParkReason::NotDrained { left }))
    };
    until(&mut driver, failed);
    assert!(driver.now.since(since) >= PDB_PATIENCE && driver.calls.is_empty());
    let asked = driver.done.iter().filter(|one| matches!(one, Effect::Evict { .. })).count();
    assert!(asked > 10, "asked again and again: {asked}");
    until(&mut driver, |driver| driver.record.phase == Phase::ReadingIdentity);
    assert_eq!(driver.record.remedy_step, 1);
}

#[test]
fn the_last_drain_that_fails_names_the_pods_and_a_retry_drains_once_more() {
    let mut driver = sick(&[drain()]);
    driver.budget_at_zero = true;
    until(&mut driver, |driver| driver.record.phase == Phase::Parked);
    let reason = driver.parked().cloned().unwrap();
    assert_eq!(reason, ParkReason::NotDrained { left: "db-0".to_string() });
    driver.budget_at_zero = false;
    driver.event(Event::Command(Command::Retry));
    until(&mut driver, |driver| driver.record.phase == Phase::AwaitingHealthy);
    assert_eq!(driver.view.pods.len(), 1, "the DaemonSet's");
}

#[test]
fn a_pod_that_was_asked_and_does_not_stop_is_waited_for_longer() {
    let mut driver = sick(&[drain()]);
    driver.holders = true;
    until(&mut driver, |driver| driver.record.phase == Phase::Remedying);
    let since = driver.now;
    until(&mut driver, |driver| driver.record.phase == Phase::Parked);
    assert!(driver.now.since(since) >= Span(PDB_PATIENCE.0 + CLEANUP_TIMEOUT.0));
    let asked = driver.done.iter().filter(|one| matches!(one, Effect::Evict { .. })).count();
    assert_eq!(asked, 1, "once asked is enough");
}

#[test]
fn a_silent_node_is_not_drained() {
    let mut driver = sick(&[drain(), remedy_step("fence", Remedy::Fence)]);
    driver.view.node.iter_mut().for_each(|node| node.lease_seen_at = Some(Time(0)));
    driver.until(Phase::AwaitingHealthy);
    assert!(evicted(&driver).is_empty() && !driver.view.pods.is_empty());
    driver.until(Phase::ReadingIdentity);
}

/// A1: what allowed the drain is read again before each eviction.
#[test]
fn a_drain_stops_where_it_is_when_somebody_wants_the_node_left_alone_or_it_is_well() {
    let mut paused = sick(&[drain()]);
    paused.budget_at_zero = true;
    until(&mut paused, |driver| !evicted(driver).is_empty());
    paused.view.gate.refusals = vec![paused_by_alice()];
    paused.budget_at_zero = false;
    paused.todo.clear();
    let before = evicted(&paused).len();
    for _ in 0..50 {
        lives(&mut paused);
        paused.next_look.get_or_insert(paused.now);
        paused.go();
    }
    assert_eq!((evicted(&paused).len(), paused.record.phase), (before, Phase::Remedying));
    assert_eq!(paused.record.slot, Slot::Free, "other nodes do not wait for a person");
    paused.view.gate.refusals.clear();
    until(&mut paused, |driver| driver.record.phase == Phase::AwaitingHealthy);
    assert_eq!(paused.view.pods.len(), 1, "it goes on, the DaemonSet's left alone");

    let mut well = sick(&[drain()]);
    well.budget_at_zero = true;
    until(&mut well, |driver| !evicted(driver).is_empty());
    well.wakes();
    well.view.trigger = CLEAR;
    until(&mut well, |driver| matches!(driver.record.phase, Phase::Final(_)));
    assert_eq!(well.record.phase, Phase::Final(FinalReason::Recovered));
    assert!(well.view.node.is_some_and(|node| !node.cordoned), "our cordon is ours to lift");
}

#[test]
fn an_abort_of_a_drain_lifts_the_cordon_and_ends() {
    let mut driver = sick(&[drain()]);
    driver.budget_at_zero = true;
    until(&mut driver, |driver| !evicted(driver).is_empty());
    driver.event(Event::Command(Command::Abort));
    until(&mut driver, |driver| matches!(driver.record.phase, Phase::Final(_)));
    assert_eq!(driver.record.phase, Phase::Final(FinalReason::Aborted));
    assert!(driver.view.node.is_some_and(|node| !node.cordoned));
}

#[test]
fn cordon_and_quarantine_stand_until_the_node_is_well() {
    for (cluster_action, stands) in [
        (ClusterAction::Cordon, (|node| node.cordoned) as fn(&NodeView) -> bool),
        (ClusterAction::Quarantine, |node| node.quarantined),
    ] {
        let mut driver = sick(&[remedy_step("mark", Remedy::Cluster(cluster_action))]);
        until(&mut driver, |driver| driver.record.phase == Phase::AwaitingHealthy);
        assert!(driver.view.node.as_ref().is_some_and(stands));
        driver.wakes().until(Phase::Final(FinalReason::Remedied));
        assert!(!driver.view.node.as_ref().is_some_and(stands));
        assert!(driver.calls.is_empty() && evicted(&driver).is_empty());
    }
}

/// `storage-fence` of the first proposal: what isolation cuts is cut, power is not touched, and what was
/// cut is given back once the node is well.
#[test]
fn isolation_as_a_remedy_leaves_power_alone() {
    let fabric = cutting_plan(Kind::Fabric(Path::Other));
    let ladder = vec![remedy_step("storage-fence", Remedy::Isolation)];
    let mut driver = Driver::new(Plan { ladder, ..fabric }, IncidentPolicy::default());
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.plan.has_power() && !driver.released());
    assert_eq!(driver.count(Action::Off), 1, "the port");
    driver.wakes().until(Phase::Final(FinalReason::Remedied));
    assert_eq!((driver.count(Action::Off), driver.count(Action::On)), (1, 1));
    assert_eq!(driver.plugs, vec![PlugState::On; driver.plan.methods.len()]);
}

#[test]
fn isolation_that_fails_or_does_not_help_gives_way_to_the_fence() {
    let fabric = cutting_plan(Kind::Fabric(Path::Other));
    let ladder =
        vec![remedy_step("storage-fence", Remedy::Isolation), remedy_step("fence", Remedy::Fence)];
    let mut driver = Driver::new(Plan { ladder, ..fabric }, IncidentPolicy::default());
    driver.until(Phase::AwaitingHealthy);
    let since = driver.now;
    driver.until(Phase::ReadingIdentity);
    assert!(driver.now.since(since) >= PERIOD);
    assert_eq!(driver.count(Action::Off), 1, "what is cut is not cut again");
    driver.until(Phase::AwaitingHealthy);
    driver.boots().until(Phase::Final(FinalReason::Remedied));
}

/// A9: cut off from the API server and never switched on again, a node would be lost for good.
#[test]
fn isolation_alone_that_cuts_the_way_to_the_api_server_is_refused() {
    let cuts = cutting_plan(Kind::Fabric(Path::ApiServer));
    let alone = Plan { ladder: vec![remedy_step("i", Remedy::Isolation)], ..cuts.clone() };
    let policy = IncidentPolicy::default();
    assert_eq!(refuse_plan(&alone, &policy), Some(PlanRefusal::CutsItselfOff));
    let ladder = vec![remedy_step("i", Remedy::Isolation), remedy_step("f", Remedy::Fence)];
    assert_eq!(refuse_plan(&Plan { ladder, ..cuts }, &policy), None);
    let ladder = vec![remedy_step("i", Remedy::Isolation)];
    let nothing = Plan { ladder, isolation: Vec::new(), ..bmc_plan() };
    assert_eq!(refuse_plan(&nothing, &policy), Some(PlanRefusal::NothingToDo));
}

/// A drain needs no way to fence the node.
#[test]
fn a_ladder_of_cluster_actions_is_run_on_a_node_without_a_plan() {
    let bare = Plan { methods: Vec::new(), power: Vec::new(), ladder: vec![drain()], ..bmc_plan() };
    assert_eq!(refuse_plan(&bare, &IncidentPolicy::default()), None);
    let mut driver = Driver::new(bare, IncidentPolicy::default());
    lives(&mut driver);
    until(&mut driver, |driver| driver.record.phase == Phase::AwaitingHealthy);
    assert_eq!(evicted(&driver), ["db-0"]);
}

/// Where another remedy follows, a node that is isolated for good is not what the ladder comes to.
#[test] // promise: A9
fn a9_an_isolated_node_is_fenced_where_that_is_the_next_remedy() {
    let mut plan = cutting_plan(Kind::Fabric(Path::ApiServer));
    plan.ladder =
        vec![remedy_step("isolate", Remedy::Isolation), remedy_step("fence", Remedy::Fence)];
    let policy =
        IncidentPolicy { isolated_for_good: IsolatedForGood::Park, ..IncidentPolicy::default() };
    assert_eq!(refuse_plan(&plan, &policy), None);
    let mut driver = Driver::new(plan, policy);
    driver.until_call(Action::Off);
    assert_eq!(driver.record.in_flight().map(|one| one.method), Some(1));
    while driver.record.remedy_step == 0 {
        driver.go();
        assert_eq!(driver.record.parked, None);
    }
    driver.until(Phase::Releasing);
    assert!(driver.calls.contains(&(0, Action::Off)), "{:?}", driver.calls);
}
