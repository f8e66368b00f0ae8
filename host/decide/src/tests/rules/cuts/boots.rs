//! Cuts and the boot behind them: which boot was cut, what stood behind it, and what shows that it goes on.

use super::given_back::vanishes;
use super::refuted::{proven_by_power, until_over};
use super::*;
use crate::tests::fixtures::UUID;

/// Goes on for at most this long, or until the run is over.
fn for_at_most(story: &mut Story, span: Span) {
    let until = story.now.after(span);
    while story.now < until && !matches!(story.record.phase, Phase::Final(_)) {
        story.go();
    }
}

/// Isolated, and power comes much later.
fn isolated(plan: Plan) -> Story {
    let policy = RunPolicy { power_after: Span::minutes(30), ..proven_by_power() };
    let mut story = Story::new(plan, policy);
    story.until(Phase::AwaitingPower);
    assert_eq!(story.plugs[1], PlugState::Off);
    story
}

/// The switch is silent for ten minutes, in which the machine boots once more. That boot is cut, and released from; its BMC
/// refuses, and somebody says `retry`. Then the boot is well again.
#[test] // promise: A5
fn a5_a_boot_that_began_before_its_cut_gets_nothing_back_after_a_retry() {
    let mut plan = cutting_plan(storage());
    plan.methods[1].must_success = true;
    let mut story = story_of(plan);
    story.device = Box::new(silent);
    story.until(Phase::AwaitingDevice);
    story.until_now(Span::minutes(10));
    story.node(|node| node.signs = signs("boot-2", 5));
    story.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, Action::Off) => failed(FailureKind::Denied),
        _ => honest(operation, plugs),
    });
    story.until(Phase::Parked);
    assert!(story.released(), "{:?}", story.parked());
    story.event(Event::Command(Command::Retry));
    story.live("boot-2", 9);
    for_at_most(&mut story, Span::minutes(30));
    assert_eq!(story.plugs[1], PlugState::Off, "{:?}", story.record.phase);
}

/// Nobody says which drivers a port of a SAN cuts. A pod and its attachment are deleted by force, and somebody aborts.
#[test] // promise: A5
fn a5_storage_that_names_no_driver_may_be_anybodys() {
    for is_gone in [false, true] {
        let mut story = isolated(cutting_plan(Kind::Storage { drivers: vec![] }));
        if is_gone {
            vanishes(&mut story);
        }
        story.event(Event::Command(Command::Abort));
        for_at_most(&mut story, Span::minutes(30));
        let expected = if is_gone { PlugState::Off } else { PlugState::On };
        assert_eq!(story.plugs[1], expected, "{:?}", story.record.phase);
    }
}

/// The network of the storage is cut, and a pod is deleted by force. Its node reports over another network, and its kubelet
/// still uses the volume.
#[test]
fn a5_a_cut_network_stays_cut_while_its_kubelet_uses_what_is_gone() {
    for kind in [Kind::Fabric(Path::Other), Kind::Storage { drivers: vec![] }] {
        let mut story = isolated(cutting_plan(kind));
        let in_use = alloc::format!("kubernetes.io/csi/{DRIVER}^pv-db-0");
        story.node(|node| node.volumes_in_use = vec![in_use.clone()]);
        story.record.cut_off.as_mut().unwrap().untold = false;
        vanishes(&mut story);
        story.wakes();
        story.until_now(Span::minutes(2));
        assert_eq!(story.plugs[1], PlugState::Off, "{:?}", story.record.phase);
        story.node(|node| node.volumes_in_use.clear());
        for_at_most(&mut story, Span::minutes(5));
        assert_eq!(story.plugs[1], PlugState::On, "{:?}", story.record.phase);
    }
}

/// A run waits; somebody shuts the port and deletes the pods by force. The recovery of a run that cut nothing opens nothing.
#[test] // promise: A4
fn a4_what_we_did_not_cut_is_not_opened() {
    for kind in [Kind::Fabric(Path::Other), storage()] {
        let mut plan = cutting_plan(kind);
        plan.recovery = vec![stage(Execution::All, &[1])];
        let mut story = story_of(plan);
        story.view.gate.refusals = vec![storm()];
        story.until_now(Span::minutes(1));
        story.plugs[1] = PlugState::Off;
        story.event(Event::Command(Command::Abort));
        story.until(Phase::Final(FinalReason::Aborted));
        assert_eq!(story.count(Action::On), 0);
    }
}

/// Nobody hears the end of the first cut, which was never made. A pod comes to the node before the second one.
#[test] // promise: A5
fn a5_what_comes_before_a_cut_is_made_stands_behind_it() {
    let policy = RunPolicy { power_after: Span::minutes(30), ..proven_by_power() };
    let mut story = Story::new(cutting_plan(storage()), policy);
    let mut offs = 0;
    story.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (1, Action::Off) if offs == 0 => {
            offs += 1;
            End::Indeterminate
        }
        _ => honest(operation, plugs),
    });
    while story.count(Action::Off) < 1 {
        story.go();
    }
    story.view.pods.push(crate::tests::fixtures::pod("db-1", None));
    story.until(Phase::AwaitingPower);
    assert_eq!(story.plugs[1], PlugState::Off);
    story.view.pods.retain(|pod| pod.uid != "db-1");
    story.event(Event::Command(Command::Abort));
    for_at_most(&mut story, Span::minutes(5));
    assert_eq!(story.plugs[1], PlugState::Off, "{:?}", story.record.phase);
}

/// A BMC lies. Everything was released when the boot that was proven off reports again, still ill.
#[test] // promise: P2
fn p2_a_report_after_the_release_voids_the_proof() {
    let mut story = story();
    story.policy.restarts = 0;
    story.until(Phase::AwaitingWell);
    assert!(story.released());
    story.node(|node| node.signs = signs(BOOT, 9));
    until_over(&mut story);
    assert_eq!(story.parked(), Some(&ParkReason::AliveThoughOff));
    assert!(story.notices.contains(&Notice::ProofVoided { reads_on: None }));
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
        let policy = RunPolicy { device_timeout: Span::minutes(5), ..RunPolicy::default() };
        let mut story = Story::new(plan, policy);
        story.device = device;
        for_at_most(&mut story, Span::minutes(10));
        assert!(story.notices.contains(&Notice::Parked(ParkReason::DeviceUnreachable)));
    }
}

/// A node that is isolated and nothing else: somebody switches its machine off, and says so.
#[test]
fn a5_a_persons_word_gives_back_what_isolated_a_node() {
    let mut plan = cutting_plan(Kind::Fabric(Path::ApiServer));
    plan.power = vec![];
    plan.methods[0].kind = Kind::Watch;
    let policy = RunPolicy { isolated_for_good: IsolatedForGood::Park, ..RunPolicy::default() };
    let mut story = Story::new(plan, policy);
    story.until(Phase::Parked);
    assert_eq!(story.parked(), Some(&ParkReason::Isolated));
    let by = "alice".into();
    story.event(Event::Command(Command::ConfirmOff { by, boot_id: BOOT.into() }));
    story.until(Phase::AwaitingWell);
    assert_eq!(story.plugs[1], PlugState::On);
}

/// The first of two cuts is carried out half a minute after the switch took it in.
#[test] // promise: A3
fn a3_a_cut_that_is_carried_out_late_does_not_land_behind_its_giving_back() {
    let mut plan = cutting_plan(storage());
    plan.methods[1].late_effect = Span::seconds(30);
    let policy = RunPolicy { power_after: Span::minutes(30), ..proven_by_power() };
    let mut story = Story::new(plan, policy);
    let mut offs = 0;
    story.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (1, Action::Off) if offs == 0 => {
            offs += 1;
            succeeded(PlugState::On)
        }
        _ => honest(operation, plugs),
    });
    story.until_call(Action::Off);
    let lands_at = story.now.after(Span::seconds(29));
    story.until(Phase::AwaitingPower);
    story.event(Event::Command(Command::Abort));
    while story.now < lands_at {
        assert!(!matches!(story.record.phase, Phase::Final(_)), "a cut may still be made");
        story.go();
    }
    story.plugs[1] = PlugState::Off;
    story.until(Phase::Final(FinalReason::Aborted));
    assert_eq!(story.plugs[1], PlugState::On);
}

/// A switch names the machine behind its port: it is another one.
#[test] // promise: P8
fn p8_a_port_that_names_another_machine_is_not_shut() {
    let mut plan = cutting_plan(Kind::Fabric(Path::Other));
    let expected = vec![("system-uuid".into(), UUID.into())];
    plan.methods[1].binding = Binding::Reported { expected };
    let mut story = story_of(plan);
    story.device = Box::new(|operation, plugs| match operation.method {
        1 => {
            let identity = vec![("system-uuid".into(), "another".into())];
            End::Succeeded { state: plugs[1], identity }
        }
        _ => honest(operation, plugs),
    });
    story.until(Phase::Parked);
    assert!(
        matches!(story.parked(), Some(ParkReason::WrongMachine { .. })),
        "{:?}",
        story.parked()
    );
    assert_eq!(story.count(Action::Off), 0);
}

/// A person said that the machine is off, and it reports before anything was deleted. No device said anything.
#[test]
fn p2_a_word_that_was_wrong_accuses_no_device() {
    let mut story = story();
    story.device = Box::new(silent);
    story.until(Phase::AwaitingDevice);
    story.node(|node| node.quarantined = false);
    let by = "alice".into();
    story.event(Event::Command(Command::ConfirmOff { by, boot_id: BOOT.into() }));
    while story.record.proof.is_none() {
        story.go();
    }
    story.todo = vec![Effect::Look];
    story.node(|node| node.signs = signs(BOOT, 9));
    while story.record.phase == Phase::Releasing {
        story.go();
    }
    assert!(!story.released());
    assert_eq!(story.record.goal, Goal::BringBack);
}
