//! What comes between an off and its on, or just before the off: storms, words, budgets, other remediators,
//! wrong credentials, a node that heals by itself, a machine that its group replaces. In each, the machine
//! comes back or a person is told, and nothing is released without proof.

use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::vec;

use super::{CLEAR, cutting_plan, driver};
use crate::tests::driver::{Driver, honest, lying};
use crate::tests::fixtures::{BOOT, failed, paused_by_alice, storage, storm, succeeded};
use crate::*;

/// Every phase that follows an off until its machine is on again.
const AFTER_OFF: [Phase; 4] =
    [Phase::VerifyingOff, Phase::Releasing, Phase::Untainting, Phase::PoweringOn];

fn gives_away(effect: &Effect) -> bool {
    matches!(effect, Effect::OutOfService | Effect::DeletePods(_) | Effect::DeleteAttachments(_))
}

fn node_healthcheck() -> Refusal {
    Refusal::HeldByOther { holder: "NodeHealthCheck/workers".to_string() }
}

#[test]
fn a_storm_between_off_and_on_leaves_no_machine_off() {
    for phase in AFTER_OFF {
        let mut cut = driver();
        cut.until(phase);
        cut.view.gate.refusals =
            vec![storm(), Refusal::OwnView { silent: Span::seconds(20), max: SILENCE_MAX }];
        cut.until(Phase::AwaitingHealthy);
        assert_eq!((cut.count(Action::Off), cut.count(Action::On)), (1, 1), "{phase:?}");
        assert!(cut.released() && cut.record.parked.is_none(), "{phase:?}");
        cut.boots().until(Phase::Final(FinalReason::Remedied));
    }
    // The off is under way when the storm begins.
    let mut under_way = driver();
    under_way.until_call(Action::Off);
    under_way.view.gate.refusals = vec![storm()];
    under_way.until(Phase::AwaitingHealthy);
    assert_eq!(under_way.plugs, [PlugState::On]);
}

#[test]
fn an_abort_between_off_and_on_switches_on_and_says_so() {
    for phase in AFTER_OFF {
        for words in [vec![], vec![storm(), paused_by_alice()]] {
            let mut aborted = driver();
            aborted.until(phase);
            // What was decided before is carried out, or is not.
            aborted.todo.retain(|one| !gives_away(one));
            let before = aborted.done.len();
            aborted.view.gate.refusals = words;
            aborted.event(Event::Command(Command::Abort));
            aborted.until(Phase::Parked);
            assert_eq!(aborted.parked(), Some(&ParkReason::Aborted), "{phase:?}");
            assert_eq!((aborted.plugs[0], aborted.count(Action::Off)), (PlugState::On, 1));
            let node = aborted.view.node.as_ref().unwrap();
            assert!(!node.out_of_service_by_us, "{phase:?}");
            let taken = Boundary::AfterOffPowersOn;
            assert!(aborted.notices.contains(&Notice::AbortTaken { boundary: taken }));
            let more = aborted.done.iter().skip(before).filter(|one| gives_away(one)).count();
            assert_eq!(more, 0, "{phase:?}: nothing more is released");
            // The control plane detaches what no pod uses any more.
            aborted.view.attachments.clear();
            aborted.boots().until(Phase::Final(FinalReason::RecoveredByHand));
        }
    }
}

/// A budget at zero binds pods that still answer on a node that only a person's word says is off, for a
/// while. It binds none of a machine that was read off: their disruption has happened.
#[test]
fn a_disruption_budget_at_zero_holds_up_no_machine_that_is_off() {
    let bound = |driver: &mut Driver| {
        driver.view.pods.iter_mut().for_each(|pod| pod.ready = true);
        driver.budget_at_zero = true;
    };
    let mut off = driver();
    bound(&mut off);
    off.until(Phase::Releasing);
    let since = off.now;
    off.until(Phase::AwaitingHealthy);
    assert!(off.released() && off.now.since(since) < Span::minutes(1));

    let mut word = driver();
    word.device = Box::new(lying);
    bound(&mut word);
    word.until(Phase::Parked);
    let confirm = Command::ConfirmOff { by: "ada".into(), boot_id: BOOT.into() };
    word.event(Event::Command(confirm));
    word.until(Phase::Releasing);
    let since = word.now;
    let deletes = |driver: &Driver| driver.did(|one| matches!(one, Effect::DeletePods(_)));
    while deletes(&word).is_none() && word.record.phase == Phase::Releasing {
        word.go();
    }
    assert!(word.now.since(since) > Span::minutes(1) && word.hit(Rule::P6));
    word.until(Phase::AwaitingHealthy);
}

#[test]
fn a_lease_that_node_healthcheck_holds_stops_an_off_and_no_on() {
    let mut before = driver();
    before.until_call(Action::Status);
    before.view.gate.refusals = vec![node_healthcheck()];
    for _ in 0..20 {
        before.go();
    }
    assert_eq!((before.count(Action::Off), before.released()), (0, false));
    before.view.trigger = CLEAR;
    before.until(Phase::Final(FinalReason::Recovered));

    for phase in AFTER_OFF {
        let mut after = driver();
        after.until(phase);
        after.view.gate.refusals = vec![node_healthcheck()];
        after.until(Phase::AwaitingHealthy);
        assert_eq!((after.count(Action::Off), after.count(Action::On)), (1, 1), "{phase:?}");
    }
}

/// The credential may switch off and not on: every device of its kind is closed, the person is told which
/// machine is off, and the incident that they ask for again switches on and cuts nothing more.
#[test]
fn an_on_with_wrong_credentials_closes_its_kind_and_tells_who_is_off() {
    for kind in [FailureKind::Unauthenticated, FailureKind::Denied] {
        let mut broken = driver();
        broken.device = Box::new(move |operation, plugs| match operation.action {
            Action::On => failed(kind),
            Action::Off | Action::Status | Action::Reset | Action::Monitor => {
                honest(operation, plugs)
            }
        });
        broken.until(Phase::Parked);
        assert_eq!(broken.parked(), Some(&ParkReason::OnFailed));
        let left_off = broken.record.parked.as_ref().map(|one| one.powered_off_by_us.clone());
        assert_eq!((left_off, broken.record.slot), (Some(vec![0]), Slot::Free));
        let device = "bmc".to_string();
        let closed = Notice::CloseDevice { device, kind, scope: Closure::Kind };
        assert!(broken.notices.contains(&closed));
        broken.device = Box::new(honest);
        broken.view.gate.refusals = vec![storm()];
        broken.event(Event::Command(Command::Retry));
        broken.until(Phase::AwaitingHealthy);
        assert_eq!((broken.plugs[0], broken.count(Action::Off)), (PlugState::On, 1));
        assert!(broken.record.on_failed.is_empty());
    }
}

/// Only a port was cut, and the node is well again before its power is: the port is open, and nothing else
/// was done.
#[test]
fn an_isolation_whose_node_heals_by_itself_is_undone() {
    let waits = IncidentPolicy { power_after: Span::minutes(5), ..IncidentPolicy::default() };
    let mut before_power = Driver::new(cutting_plan(Kind::Fabric(Path::Other)), waits);
    before_power.until(Phase::AwaitingPower);
    before_power.wakes().until(Phase::Final(FinalReason::Recovered));

    let mut plan = cutting_plan(Kind::Fabric(Path::Other));
    plan.power = vec![];
    let mut only = Driver::new(plan, IncidentPolicy::default());
    only.until(Phase::AwaitingHealthy);
    assert_eq!(only.plugs[1], PlugState::Off);
    only.wakes().until(Phase::Final(FinalReason::Remedied));

    for healed in [before_power, only] {
        assert_eq!(healed.plugs, [PlugState::On; 2]);
        assert_eq!(healed.count(Action::Off), 1, "the port alone");
        let node = healed.view.node.as_ref().unwrap();
        assert!(!healed.released() && !node.quarantined);
    }
}

/// A machine that boots from the storage that was cut would not boot: it is given back while the machine is
/// still off.
#[test]
fn a_machine_that_boots_from_san_has_its_storage_before_its_power() {
    let mut san = Driver::new(cutting_plan(storage()), IncidentPolicy::default());
    san.until(Phase::AwaitingHealthy);
    let on = |method| san.calls.iter().position(|call| *call == (method, Action::On)).unwrap();
    let (storage, power) = (on(1), on(0));
    let between = san.calls.get(..storage).unwrap_or_default();
    assert!(storage < power && between.ends_with(&[(0, Action::Status)]), "{:?}", san.calls);
    assert_eq!(san.plugs, [PlugState::On; 2]);
    san.boots().until(Phase::Final(FinalReason::Remedied));
}

/// Its group ends the instance and another one joins under the same name: nothing of the new node is cut
/// or released, and what is off by us is switched on or known to be gone.
#[test]
fn a_machine_that_its_cloud_group_replaces_ends_the_incident() {
    for phase in
        [Phase::ReadingIdentity, Phase::VerifyingOff, Phase::Releasing, Phase::AwaitingHealthy]
    {
        let mut replaced = driver();
        replaced.holders = true;
        replaced.until(phase);
        let offs = replaced.count(Action::Off);
        replaced.todo.retain(|one| !gives_away(one));
        let before = replaced.done.len();
        replaced.device = Box::new(|operation, _| match operation.action {
            Action::Off | Action::On | Action::Reset => failed(FailureKind::NoSuchPlug),
            Action::Status | Action::Monitor => succeeded(PlugState::Terminated),
        });
        replaced.view.node.iter_mut().for_each(|node| node.uid = "uid-b".to_string());
        replaced.view.trigger = CLEAR;
        while !matches!(replaced.record.phase, Phase::Final(_)) {
            replaced.go();
        }
        let ends = [FinalReason::NodeGone, FinalReason::Replaced].map(Phase::Final);
        assert!(ends.contains(&replaced.record.phase), "{phase:?}: {:?}", replaced.record.phase);
        assert_eq!(replaced.count(Action::Off), offs, "{phase:?}");
        let more = replaced.done.iter().skip(before).filter(|one| gives_away(one)).count();
        assert_eq!((more, replaced.record.slot), (0, Slot::Free), "{phase:?}");
    }
}

/// An incident that was left alone with its machine off: a word that comes and goes, an abort, and a person who
/// has seen it off each bring the machine back.
#[test]
fn an_incident_that_is_left_alone_has_ways_on() {
    let left_alone = || {
        let policy = IncidentPolicy { restarts: 1, ..IncidentPolicy::default() };
        let mut plan = cutting_plan(Kind::Fabric(Path::ApiServer));
        plan.ladder = vec![];
        let mut driver = Driver::new(plan, policy);
        driver.device = Box::new(|operation, plugs| {
            let is_unread = operation.action == Action::Status
                && operation.method == 0
                && plugs[0] == PlugState::Off;
            if is_unread { failed(FailureKind::Unauthenticated) } else { honest(operation, plugs) }
        });
        driver.until(Phase::VerifyingOff);
        driver.view.gate.refusals = vec![paused_by_alice()];
        driver.until(Phase::Parked);
        assert!(matches!(driver.parked(), Some(ParkReason::LeftAlone { .. })));
        assert_eq!(
            (driver.plugs.clone(), driver.record.slot),
            (vec![PlugState::Off; 2], Slot::Free)
        );
        driver.device = Box::new(honest);
        driver
    };
    let mut comes_and_goes = left_alone();
    for _ in 0..3 {
        comes_and_goes.view.gate.refusals.clear();
        comes_and_goes.go();
        comes_and_goes.view.gate.refusals = vec![paused_by_alice()];
        comes_and_goes.go();
    }
    comes_and_goes.view.gate.refusals.clear();
    comes_and_goes.until(Phase::AwaitingHealthy);
    assert!(comes_and_goes.released());

    let mut aborted = left_alone();
    aborted.event(Event::Command(Command::Abort));
    aborted.until(Phase::PoweringOn);
    aborted.until(Phase::Parked);
    assert!(!aborted.released());

    let mut confirmed = left_alone();
    confirmed.event(Event::Command(Command::ConfirmOff { by: "ada".into(), boot_id: BOOT.into() }));
    confirmed.until(Phase::AwaitingHealthy);
    assert!(confirmed.released());

    let mut gone = left_alone();
    gone.view.gate.refusals.clear();
    gone.view.node = None;
    gone.until(Phase::Final(FinalReason::NodeGone));

    for driver in [comes_and_goes, aborted, confirmed, gone] {
        assert_eq!((driver.plugs.clone(), driver.count(Action::Off)), (vec![PlugState::On; 2], 2));
    }
}
