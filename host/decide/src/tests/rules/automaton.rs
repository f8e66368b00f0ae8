//! The rules of the automaton, A1 to A19: when it switches off and on, when it waits, gives up
//! or hands over. What a proof is and what may be released behind it is in [`super::proof`].

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec;

use super::{CLEAR, cutting_plan, driver};
use crate::tests::driver::{Driver, honest, lying, silent};
use crate::tests::fixtures::{
    bmc_plan, failed, liveness, lost_view, not_attempted, paused_by_alice, power, stage, storm,
    succeeded,
};
use crate::*;

#[test] // promise: A1
fn a1_what_allowed_an_off_is_read_again_right_before() {
    let mut cleared = driver();
    cleared.until(Phase::ReadingIdentity);
    cleared.view.trigger = CLEAR;
    cleared.until(Phase::Final(FinalReason::Recovered));
    assert_eq!(cleared.count(Action::Off), 0);
    assert!(cleared.hit(Rule::A1) && !cleared.released());

    let mut stale = driver();
    stale.until(Phase::ReadingIdentity);
    let old = stale.view.clone();
    stale.now = stale.now.after(Span::seconds(6));
    stale.event(Event::Looked(&old));
    stale.todo.retain(|effect| matches!(effect, Effect::Call(_)));
    assert!(stale.record.in_flight().is_none_or(|one| one.action == Action::Status));

    let mut after_off = driver();
    after_off.until_call(Action::Off).wakes();
    after_off.until(Phase::PoweringOn);
}

#[test] // promise: A1
fn a1_an_off_under_way_is_withdrawn_once_its_node_is_well() {
    let withdrawn = |change: &dyn Fn(&mut Driver)| {
        let mut driver = driver();
        driver.until_call(Action::Off);
        let op = driver.record.in_flight().expect("an off").id;
        driver.todo.clear();
        let mut view = driver.view.clone();
        view.taken_at = driver.now;
        driver.view = view;
        change(&mut driver);
        let view = driver.view.clone();
        driver.event(Event::Looked(&view));
        driver.todo.contains(&Effect::Withdraw(op))
    };
    assert!(!withdrawn(&|_| ()), "it is lost still");
    assert!(withdrawn(&|driver| driver.view.trigger = CLEAR));
    let just_back = |driver: &mut Driver| {
        let (since, crosses_at) = (Time(0), driver.now.after(Span::minutes(1)));
        driver.view.trigger = Crossing::Ripening { since, crosses_at };
    };
    assert!(withdrawn(&just_back), "it is given a minute to report");
    assert!(withdrawn(&|driver| driver.view.gate.refusals = vec![storm()]), "others fell silent");
    assert!(withdrawn(&|driver| driver.view.node = None), "it is gone");
    assert!(withdrawn(&|driver| driver.node(|node| node.uid = "anew".to_string())), "made anew");
    let disputed = || Refusal::MachineDisputed { why: "node-b has its UUID, too".to_string() };
    assert!(withdrawn(&|driver| driver.view.gate.refusals = vec![disputed()]));
    assert!(withdrawn(&|driver| {
        driver.view.trigger = CLEAR;
        driver.view.freshness = Freshness::Cached;
    }));
    assert!(!withdrawn(&|driver| {
        driver.view.trigger = CLEAR;
        driver.view.taken_at = Time(driver.now.0 - 1_000);
    }));
    assert!(!withdrawn(&|driver| {
        driver.view.trigger = CLEAR;
        driver.record.first_released_at = Some(driver.now);
    }));
}

#[test] // promise: A1
fn a1_a_view_from_before_the_clock_was_set_back_allows_nothing() {
    for (ahead, is_cut) in [(Span::ZERO, true), (Span::minutes(60), false)] {
        let mut driver = driver();
        driver.until(Phase::ReadingIdentity);
        // The device has said whose machine it is; what allows the off is read again.
        while driver.record.in_flight().is_some() || driver.todo != [Effect::Look] {
            driver.go();
        }
        driver.todo.clear();
        let view = View { taken_at: driver.now.after(ahead), ..driver.view.clone() };
        driver.event(Event::Looked(&view));
        let cuts = driver.record.in_flight().is_some_and(|one| one.action == Action::Off);
        assert_eq!(cuts, is_cut, "{ahead:?}");
    }
}

#[test] // promise: A1
fn a1_an_off_that_was_held_back_is_decided_on_anew() {
    let fabric = cutting_plan(Kind::Fabric(Path::Other));
    for (plan, method) in [(bmc_plan(), 0), (fabric, 1)] {
        for comes_back in [true, false] {
            let mut driver = Driver::new(plan.clone(), IncidentPolicy::default());
            driver.until_call(Action::Off);
            let held_back = driver.record.in_flight().expect("an off").clone();
            assert_eq!(held_back.method, method);
            driver.todo.clear();
            if comes_back {
                driver.wakes();
            }
            let end = not_attempted(FailureKind::Cancelled);
            driver.event(Event::Ended { op: held_back.id, end });
            assert_eq!(driver.todo, [Effect::Look], "nothing is sent before a new look");
            let held_back_at = driver.now;
            if comes_back {
                driver.until(Phase::Final(FinalReason::Recovered));
                assert_eq!(driver.count(Action::Off), 0, "a node heard meanwhile is not cut");
            } else {
                driver.until_call(Action::Off);
                let again = driver.record.in_flight().expect("an off");
                assert_eq!((again.method, again.attempt), (method, held_back.attempt));
                assert_eq!(driver.record.retries, 0, "it was no try");
                assert!(
                    driver.now.since(held_back_at) >= LOOK_EVERY,
                    "what held it back may do so again"
                );
                driver.until(Phase::AwaitingHealthy);
            }
        }
    }
}

#[test] // promise: A2
fn a2_switching_on_is_never_gated() {
    let mut driver = driver();
    driver.until(Phase::Untainting);
    driver.view.gate.refusals.push(Refusal::NoLease);
    driver.view.gate.refusals.push(paused_by_alice());
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.count(Action::On), 1);
    assert!(driver.hit(Rule::A2));
}

#[test]
fn a2_an_on_that_died_with_its_process_is_sent_again_once_it_cannot_land_any_more() {
    let mut lost = driver();
    lost.until_call(Action::On);
    let sent_at = lost.now;
    lost.todo.clear();
    lost.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
    lost.until_call(Action::On);
    let waited = lost.now.since(sent_at);
    assert!(waited >= FOREIGN_CALL_MAX, "sent again after {waited}, when the first could land");
    assert!(waited < ON_TIMEOUT, "sent again only after {waited}");
    assert_eq!((lost.record.retries, lost.record.phase), (0, Phase::PoweringOn));
    lost.until(Phase::AwaitingHealthy);
    assert_eq!((lost.count(Action::Off), lost.count(Action::On)), (1, 1));

    let mut arrived = driver();
    arrived.until_call(Action::On);
    arrived.todo.clear();
    arrived.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
    arrived.plugs[0] = PlugState::On;
    arrived.until(Phase::AwaitingHealthy);
    assert_eq!(arrived.count(Action::On), 0, "a machine that is on is left alone");
}

#[test]
fn a2_an_on_that_the_device_swallows_costs_a_retry_each() {
    let mut driver = driver();
    driver.device = Box::new(|operation, plugs| match operation.action {
        Action::On => End::Indeterminate,
        Action::Off | Action::Status | Action::Reset | Action::Monitor => honest(operation, plugs),
    });
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::OnFailed));
    assert_eq!(driver.count(Action::On), 3, "the first and two retries");
}

#[test] // promise: A3
fn a3_on_waits_out_an_off_that_nobody_heard_the_end_of() {
    let mut plan = bmc_plan();
    plan.methods[0].late_effect = Span::seconds(90);
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.until_call(Action::Off);
    let sent_at = driver.now;
    driver.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
    driver.todo.retain(|effect| *effect == Effect::Look);
    driver.plugs[0] = PlugState::Off;
    driver.until_call(Action::On);
    assert!(driver.now.since(sent_at) >= Span::seconds(90), "{}", driver.now.since(sent_at));
    assert_eq!(driver.count(Action::Off), 0, "the second process verifies, it does not repeat");
    assert!(driver.hit(Rule::A3));
}

#[test] // promise: A4
fn a4_a_power_off_that_was_not_ours() {
    let mut brought_back = driver();
    brought_back.plugs[0] = PlugState::Off;
    brought_back.until(Phase::AwaitingHealthy);
    assert_eq!((brought_back.count(Action::Off), brought_back.count(Action::On)), (0, 1));
    assert_eq!(brought_back.record.found_off, [0]);
    assert!(brought_back.released() && brought_back.hit(Rule::A4));

    let policy = IncidentPolicy { found_off: FoundOff::LeaveOff, ..IncidentPolicy::default() };
    let mut left = Driver::new(bmc_plan(), policy);
    left.plugs[0] = PlugState::Off;
    left.until(Phase::Parked);
    assert_eq!(left.parked(), Some(&ParkReason::OffBeforeUs));
    assert!(left.released(), "off is off, whoever did it");

    let mut maintained = driver();
    maintained.plugs[0] = PlugState::Off;
    maintained.until(Phase::Releasing);
    maintained.view.gate.refusals.push(Refusal::Maintenance { what: "new fans".to_string() });
    maintained.until(Phase::Parked);
    assert_eq!(maintained.parked(), Some(&ParkReason::OffBeforeUs));
}

/// One feed was off before us: the other is given back as any, and the machine runs on it.
#[test] // promise: A4
fn a4_a_feed_that_was_off_before_us_does_not_make_the_others_off_so() {
    for found in [0, 1] {
        let mut plan = bmc_plan();
        plan.methods = vec![power("pdu-a", Feed::Part), power("pdu-b", Feed::Part)];
        plan.power = vec![stage(Execution::All, &[0, 1])];
        let policy = IncidentPolicy { found_off: FoundOff::LeaveOff, ..IncidentPolicy::default() };
        let mut driver = Driver::new(plan, policy);
        driver.plugs[found] = PlugState::Off;
        driver.until(Phase::AwaitingHealthy);
        assert!(driver.released() && driver.plugs[1 - found] == PlugState::On, "{found}");
        driver.boots().until(Phase::Final(FinalReason::Remedied));
        assert_eq!(driver.plugs[found], PlugState::Off, "{found}");
    }
}

/// A device that tells what was says off of a machine that we switched on and that boots: nothing is proven by
/// what nobody did.
#[test] // promise: A4
fn a4_what_we_switched_on_is_no_power_off_that_was_found() {
    let policy = IncidentPolicy { restarts: 1, ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_plan(), policy);
    driver.until(Phase::AwaitingHealthy);
    let told = driver.record.proof.clone();
    driver.plugs[0] = PlugState::Off;
    driver.until(Phase::VerifyingOff);
    assert_eq!(driver.count(Action::Off), 2);
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.record.found_off.is_empty() && driver.record.proof != told);

    // Nor is it what proves another remedy, of another device that does not do as it is told.
    let mut driver = Driver::new(bmc_plan(), IncidentPolicy::default());
    driver.until(Phase::AwaitingHealthy);
    let read = driver.record.intend(0, Action::Status, driver.now);
    driver.record.close(&driver.plan, read, succeeded(PlugState::Off), driver.now);
    assert!(driver.record.reads_off(0) && !driver.record.is_to_verify(&driver.plan, 0));
}

/// Found off, switched on, and switched off again by somebody who then says that it is in maintenance: the off
/// that was sent to a plug that read off took nothing from anybody.
#[test] // promise: A4
fn a4_an_off_that_changed_nothing_is_no_power_off_of_ours() {
    let policy = IncidentPolicy { restarts: 1, ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_plan(), policy);
    driver.plugs[0] = PlugState::Off;
    driver.until(Phase::AwaitingHealthy);
    driver.plugs[0] = PlugState::Off;
    driver.until(Phase::VerifyingOff);
    assert_eq!(driver.count(Action::Off), 1);
    driver.view.gate.refusals.push(Refusal::Maintenance { what: "new fans".to_string() });
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::OffBeforeUs));
}

#[test] // promise: A5
fn a5_what_was_cut_is_restored_before_on_with_all_feeds_read_off() {
    let plan = cutting_plan(Kind::Fabric(Path::ApiServer));
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.until(Phase::AwaitingHealthy);
    let restore = driver.calls.iter().rposition(|one| *one == (1, Action::On));
    let read = driver.calls.iter().rposition(|one| *one == (0, Action::Status));
    let on = driver.calls.iter().position(|one| *one == (0, Action::On));
    assert!(restore < on, "restored before on: {:?}", driver.calls);
    assert!(read > on, "and read as on afterwards");
    let before = restore.and_then(|at| driver.calls.get(..at)).expect("restored");
    let last_power = before.iter().rfind(|one| one.0 == 0).expect("the feed was read");
    assert_eq!(*last_power, (0, Action::Status), "off was read right before");
    assert!(driver.hit(Rule::A5));

    let mut plan = cutting_plan(Kind::Fabric(Path::ApiServer));
    plan.power.clear();
    let policy = IncidentPolicy::default();
    assert_eq!(refuse_plan(&plan, &policy), Some(PlanRefusal::CutsItselfOff));
    let parks = IncidentPolicy { isolated_for_good: IsolatedForGood::Park, ..policy };
    assert_eq!(refuse_plan(&plan, &parks), None);
    let mut isolated = Driver::new(plan, parks);
    isolated.until(Phase::Parked);
    assert_eq!(isolated.parked(), Some(&ParkReason::Isolated));
}

#[test] // promise: A6
fn a6_well_with_the_same_boot_after_a_release_costs_a_restart() {
    let policy = IncidentPolicy { restarts: 1, ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_plan(), policy);
    driver.holders = true;
    driver.until(Phase::Releasing);
    driver.until_released();
    driver.plugs[0] = PlugState::On;
    driver.wakes().until_call(Action::Off);
    assert_eq!(driver.record.restarts, 1);
    assert!(driver.hit(Rule::A6));
}

#[test] // promise: A1
fn a1_after_a_restart_a_well_new_boot_is_not_switched_off_for_what_was_released_before() {
    let policy = IncidentPolicy { restarts: 1, ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_plan(), policy);
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.released());
    // The machine boots, and is ill again or still.
    driver.view.node.iter_mut().for_each(|node| node.liveness = liveness("boot-2", 9));
    driver.until(Phase::Waiting).until(Phase::PoweringOff);
    assert_eq!(driver.count(Action::Off), 1);
    driver.live("boot-2", 10).until(Phase::Final(FinalReason::Remedied));
    assert_eq!(driver.count(Action::Off), 1, "the boot that was released from ended long ago");
}

#[test]
fn a7_a_machine_that_is_slow_to_go_off_does_not_fill_the_journal() {
    let policy = IncidentPolicy { off_timeout: Span::minutes(15), ..IncidentPolicy::default() };
    let mut slow = Driver::new(bmc_plan(), policy);
    let goes_off_at = slow.now.after(Span::minutes(10));
    slow.device = Box::new(move |operation, plugs| {
        if operation.action == Action::Status && operation.intended_at < goes_off_at {
            return succeeded(PlugState::On);
        }
        honest(operation, plugs)
    });
    let mut most = 0;
    while slow.record.phase != Phase::Releasing {
        slow.go();
        most = most.max(slow.record.operations.len());
    }
    assert!(slow.now >= goes_off_at && slow.count(Action::Status) > 100, "{}", slow.calls.len());
    assert!(most < 10, "{most} entries");
    assert_eq!(slow.count(Action::Off), 1);
}

#[test] // promise: A7
fn a7_a_retry_asks_only_what_is_not_verified() {
    let mut plan = bmc_plan();
    plan.methods = vec![power("pdu-a", Feed::Part), power("pdu-b", Feed::Part)];
    plan.power = vec![stage(Execution::All, &[0, 1])];
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    let mut asked = 0;
    driver.device = Box::new(move |operation, plugs| {
        if operation.method == 1 && operation.action == Action::Off {
            asked += 1;
            if asked == 1 {
                return succeeded(PlugState::Off);
            }
        }
        honest(operation, plugs)
    });
    driver.until(Phase::Releasing);
    let offs = |plug| driver.calls.iter().filter(|one| **one == (plug, Action::Off)).count();
    assert_eq!((offs(0), offs(1)), (1, 2));
    assert!(driver.hit(Rule::A7));

    let policy = IncidentPolicy { restarts: 1, ..IncidentPolicy::default() };
    let mut cycles = Driver::new(bmc_plan(), policy);
    cycles.until(Phase::Parked);
    assert_eq!(cycles.parked(), Some(&ParkReason::NotHealthy));
    assert_eq!(cycles.count(Action::Off), 2, "restarts + 1");
}

#[test] // promise: A8
fn a8_done_waits_for_well() {
    let mut driver = driver();
    driver.until(Phase::AwaitingHealthy);
    let since = driver.now;
    for _ in 0..20 {
        driver.go();
    }
    assert_eq!(driver.record.phase, Phase::AwaitingHealthy);
    driver.until(Phase::Parked);
    assert!(driver.now.since(since) >= RECOVER_TIMEOUT);
    assert!(driver.hit(Rule::A8));
}

#[test] // promise: A9
fn a9_an_isolation_failure_is_recorded_and_the_flow_goes_on() {
    let refuse = |operation: &Operation, plugs: &mut [PlugState]| {
        if operation.method == 1 { failed(FailureKind::Device) } else { honest(operation, plugs) }
    };
    let plan = cutting_plan(Kind::Fabric(Path::Other));
    let mut driver = Driver::new(plan.clone(), IncidentPolicy::default());
    driver.device = Box::new(refuse);
    driver.until(Phase::ReadingIdentity);
    assert!(driver.notices.contains(&Notice::MethodFailed { method: 1 }) && driver.hit(Rule::A9));

    let mut strict = plan;
    strict.methods[1].must_success = true;
    let mut driver = Driver::new(strict, IncidentPolicy::default());
    driver.device = Box::new(refuse);
    driver.until(Phase::Parked);
    assert!(matches!(driver.parked(), Some(ParkReason::MethodFailed { .. })));
    assert_eq!(driver.calls.iter().filter(|one| one.0 == 0).count(), 0, "power is not touched");
}

#[test] // promise: A10
fn a10_an_indeterminate_reset_is_not_issued_again() {
    let mut plan = bmc_plan();
    plan.methods[0].kind = Kind::ResetOnly;
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.device = Box::new(|operation, plugs| {
        if operation.action == Action::Reset {
            End::Indeterminate
        } else {
            honest(operation, plugs)
        }
    });
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.count(Action::Reset), 1);
    assert!(!driver.released() && driver.hit(Rule::A10));
    driver.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(driver.count(Action::Reset), 1);
}

#[test] // promise: A12
fn a12_a_device_that_cannot_be_reached_costs_no_retry() {
    let policy = IncidentPolicy { device_timeout: Span::minutes(10), ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_plan(), policy);
    driver.device = Box::new(silent);
    driver.until(Phase::AwaitingDevice);
    assert_eq!((driver.record.retries, driver.record.slot), (0, Slot::Free));
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::DeviceUnreachable));
    assert!(driver.hit(Rule::A12) && driver.count(Action::Off) == 0);
    assert!(driver.record.operations.len() < 10, "a day of probes does not fill the record");
    driver.device = Box::new(honest);
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.count(Action::Off), 1);
}

#[test] // promise: A13
fn a13_a_failed_on_closes_the_device() {
    for (kind, scope) in
        [(FailureKind::Device, Closure::Device), (FailureKind::Denied, Closure::Kind)]
    {
        let mut driver = driver();
        driver.device = Box::new(move |operation, plugs| {
            if operation.action == Action::On { failed(kind) } else { honest(operation, plugs) }
        });
        driver.until(Phase::Parked);
        assert_eq!(driver.parked(), Some(&ParkReason::OnFailed));
        let parked = driver.record.parked.as_ref().expect("parked");
        assert_eq!(parked.powered_off_by_us, [0]);
        let closed = Notice::CloseDevice { device: "bmc".to_string(), kind, scope };
        assert!(driver.notices.contains(&closed) && driver.hit(Rule::A13));
        assert_eq!(driver.record.on_failed.len(), 1);

        // A retry does not open it, and an `on` that worked does.
        driver.event(Event::Command(Command::Retry));
        driver.until(Phase::PoweringOn);
        assert_eq!(driver.record.on_failed.len(), 1);
        driver.device = Box::new(honest);
        driver.until(Phase::AwaitingHealthy);
        assert_eq!(driver.record.on_failed, []);
    }

    let mut by_hand = driver();
    by_hand.device = Box::new(|operation, plugs| match operation.action {
        Action::On => failed(FailureKind::Device),
        Action::Status | Action::Off | Action::Reset | Action::Monitor => honest(operation, plugs),
    });
    by_hand.until(Phase::Parked);
    by_hand.plugs[0] = PlugState::On;
    by_hand.event(Event::Command(Command::Retry));
    by_hand.until(Phase::AwaitingHealthy);
    assert_eq!(by_hand.record.on_failed.len(), 1, "a hand says nothing for the device");
}

#[test] // promise: A14
fn a14_a_gate_that_closes_behind_an_isolated_node() {
    let policy = IncidentPolicy { power_after: Span::minutes(5), ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_plan(), policy);
    driver.until(Phase::AwaitingPower);
    driver.view.gate.refusals.push(Refusal::NoLease);
    let since = driver.now;
    driver.until(Phase::Waiting);
    assert!(driver.now.since(since) >= GATE_TIMEOUT && driver.hit(Rule::A14));
    assert_eq!(driver.count(Action::Off), 0);
    assert!(!driver.view.node.as_ref().expect("a node").quarantined, "isolation is undone");

    let mut by_hand = self::driver();
    by_hand.device = Box::new(lying);
    by_hand.until(Phase::Parked);
    by_hand.boots().until(Phase::Final(FinalReason::RecoveredByHand));
}

#[test] // promise: A16
fn a16_power_is_read_again_before_a_batch() {
    // Off by us, and off before us.
    for found in [PlugState::On, PlugState::Off] {
        let mut driver = driver();
        driver.plugs[0] = found;
        driver.holders = true;
        driver.until(Phase::Releasing);
        driver.until_released();
        let reads = driver.count(Action::Status);
        driver.now = driver.now.after(Span::seconds(16));
        driver.plugs[0] = PlugState::On;
        let deletes = |driver: &Driver| {
            driver.done.iter().filter(|one| matches!(one, Effect::DeletePods(_))).count()
        };
        driver.todo.clear();
        let before = deletes(&driver);
        driver.look();
        driver.until(Phase::AwaitingHealthy);
        assert!(driver.count(Action::Status) > reads && driver.hit(Rule::A16));
        assert_eq!(deletes(&driver), before, "somebody switched it on: nothing more is deleted");
    }
}

#[test] // promise: A18
fn a18_the_age_of_a_condition() {
    let ready = |status, since| ConditionView {
        kind: READY.to_string(),
        status,
        reason: String::new(),
        since: Time(since),
        reported: Some(Time(since)),
        left: vec![],
    };
    let of_ready = |statuses: &[ConditionStatus]| Symptom::Condition {
        kind: READY.to_string(),
        statuses: statuses.iter().copied().collect(),
        reasons: BTreeSet::new(),
    };
    let not_ready = of_ready(&[ConditionStatus::False, ConditionStatus::Unknown]);
    let watching =
        |symptom, s| Threshold { symptom, period: Span::seconds(s), stale_after: STALE_AFTER };
    let threshold = watching(not_ready, 60);
    let mut node = lost_view(Time(0)).node.expect("a node");
    node.conditions = vec![ready(ConditionStatus::Unknown, 10_000)];
    let since = Time(10_000);
    let crosses_at = Time(70_000);
    let ripening = Crossing::Ripening { since, crosses_at };
    assert_eq!(crossed(&node, &threshold, Time(69_999)), ripening);
    assert_eq!(crossed(&node, &threshold, Time(70_000)), Crossing::Crossed { since });
    node.conditions = vec![ready(ConditionStatus::True, 80_000)];
    assert_eq!(crossed(&node, &threshold, Time(90_000)), CLEAR);

    let Symptom::Condition { statuses, .. } = &threshold.symptom else { panic!("a condition") };
    let later = ready(ConditionStatus::Unknown, 30_000);
    let after = |left: &[(ConditionStatus, Time)]| {
        crate::symptom::since_across(
            &ConditionView { left: left.to_vec(), ..later.clone() },
            statuses,
        )
    };
    let was_false = (ConditionStatus::False, Time(30_000));
    assert_eq!(after(&[(ConditionStatus::True, Time(5_000)), was_false]), Time(5_000));
    assert_eq!(after(&[was_false]), Time(30_000), "nobody saw when it was True");
    assert_eq!(after(&[(ConditionStatus::True, Time(31_000))]), Time(30_000));

    // Unknown clears nothing where it does not count.
    node.conditions = vec![later];
    let threshold = watching(of_ready(&[ConditionStatus::False]), 60);
    assert_eq!(crossed(&node, &threshold, Time(90_000)), Crossing::Unclear);

    let threshold = watching(Symptom::LeaseAge(Span::seconds(20)), 0);
    node.lease_seen_at = Some(Time(100_000));
    let next_look = Some(Time(120_000));
    let clear = Crossing::Clear { ready: false, next_look };
    assert_eq!(crossed(&node, &threshold, Time(111_999)), clear);
    let since = Time(100_000);
    assert_eq!(crossed(&node, &threshold, Time(120_000)), Crossing::Crossed { since });
    assert_eq!(crossed(&node, &threshold, Time(112_000)).next_look(), next_look);

    // A Lease that was only found says nothing of now: who has just started may not call it well.
    node.lease_was_renewed = false;
    assert_eq!(crossed(&node, &threshold, Time(111_999)), Crossing::Unclear);
    assert_eq!(crossed(&node, &threshold, Time(120_000)), Crossing::Crossed { since });
}
