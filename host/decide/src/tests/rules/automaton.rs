//! The rules of the automaton, A1 to A19: when it switches off and on, when it waits, gives up
//! or hands over. What a proof is and what may be released behind it is in [`super::proof`].

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec;

use super::{CLEAR, cutting_plan, story};
use crate::tests::fixtures::{
    bmc_plan, failed, lost_view, not_attempted, paused_by_alice, power, signs, stage, storm,
    succeeded,
};
use crate::tests::story::{Story, honest, lying, silent};
use crate::*;

#[test] // promise: A1
fn a1_what_allowed_an_off_is_read_again_right_before() {
    let mut cleared = story();
    cleared.until(Phase::ReadingIdentity);
    cleared.view.trigger = CLEAR;
    cleared.until(Phase::Final(FinalReason::Recovered));
    assert_eq!(cleared.count(Action::Off), 0);
    assert!(cleared.hit(Rule::A1) && !cleared.released());

    let mut stale = story();
    stale.until(Phase::ReadingIdentity);
    let old = stale.view.clone();
    stale.now = stale.now.after(Span::seconds(6));
    stale.event(Event::Looked(&old));
    stale.todo.retain(|effect| matches!(effect, Effect::Call(_)));
    assert!(stale.record.in_flight().is_none_or(|one| one.action == Action::Status));

    let mut after_off = story();
    after_off.until_call(Action::Off).wakes();
    after_off.until(Phase::PoweringOn);
}

#[test] // promise: A1
fn a1_an_off_under_way_is_withdrawn_once_its_node_is_well() {
    let withdrawn = |change: &dyn Fn(&mut Story)| {
        let mut story = story();
        story.until_call(Action::Off);
        let op = story.record.in_flight().expect("an off").id;
        story.todo.clear();
        let mut view = story.view.clone();
        view.taken_at = story.now;
        story.view = view;
        change(&mut story);
        let view = story.view.clone();
        story.event(Event::Looked(&view));
        story.todo.contains(&Effect::Withdraw(op))
    };
    assert!(!withdrawn(&|_| ()), "it is lost still");
    assert!(withdrawn(&|story| story.view.trigger = CLEAR));
    let just_back = |story: &mut Story| {
        let (since, crosses_at) = (Time(0), story.now.after(Span::minutes(1)));
        story.view.trigger = Crossing::Ripening { since, crosses_at };
    };
    assert!(withdrawn(&just_back), "it is given a minute to report");
    assert!(withdrawn(&|story| story.view.gate.refusals = vec![storm()]), "others fell silent");
    assert!(withdrawn(&|story| story.view.node = None), "it is gone");
    assert!(withdrawn(&|story| story.node(|node| node.uid = "anew".to_string())), "made anew");
    let disputed = || Refusal::MachineDisputed { why: "node-b has its UUID, too".to_string() };
    assert!(withdrawn(&|story| story.view.gate.refusals = vec![disputed()]));
    assert!(withdrawn(&|story| {
        story.view.trigger = CLEAR;
        story.view.freshness = Freshness::Cached;
    }));
    assert!(!withdrawn(&|story| {
        story.view.trigger = CLEAR;
        story.view.taken_at = Time(story.now.0 - 1_000);
    }));
    assert!(!withdrawn(&|story| {
        story.view.trigger = CLEAR;
        story.record.first_released_at = Some(story.now);
    }));
}

#[test] // promise: A1
fn a1_a_view_from_before_the_clock_was_set_back_allows_nothing() {
    for (ahead, is_cut) in [(Span::ZERO, true), (Span::minutes(60), false)] {
        let mut story = story();
        story.until(Phase::ReadingIdentity);
        // The device has said whose machine it is; what allows the off is read again.
        while story.record.in_flight().is_some() || story.todo != [Effect::Look] {
            story.go();
        }
        story.todo.clear();
        let view = View { taken_at: story.now.after(ahead), ..story.view.clone() };
        story.event(Event::Looked(&view));
        let cuts = story.record.in_flight().is_some_and(|one| one.action == Action::Off);
        assert_eq!(cuts, is_cut, "{ahead:?}");
    }
}

#[test] // promise: A1
fn a1_an_off_that_was_held_back_is_decided_on_anew() {
    let fabric = cutting_plan(Kind::Fabric(Path::Other));
    for (plan, method) in [(bmc_plan(), 0), (fabric, 1)] {
        for comes_back in [true, false] {
            let mut story = Story::new(plan.clone(), RunPolicy::default());
            story.until_call(Action::Off);
            let held_back = story.record.in_flight().expect("an off").clone();
            assert_eq!(held_back.method, method);
            story.todo.clear();
            if comes_back {
                story.wakes();
            }
            let end = not_attempted(FailureKind::Cancelled);
            story.event(Event::Ended { op: held_back.id, end });
            assert_eq!(story.todo, [Effect::Look], "nothing is sent before a new look");
            let held_back_at = story.now;
            if comes_back {
                story.until(Phase::Final(FinalReason::Recovered));
                assert_eq!(story.count(Action::Off), 0, "a node heard meanwhile is not cut");
            } else {
                story.until_call(Action::Off);
                let again = story.record.in_flight().expect("an off");
                assert_eq!((again.method, again.attempt), (method, held_back.attempt));
                assert_eq!(story.record.retries, 0, "it was no try");
                assert!(
                    story.now.since(held_back_at) >= LOOK_EVERY,
                    "what held it back may do so again"
                );
                story.until(Phase::AwaitingWell);
            }
        }
    }
}

#[test] // promise: A2
fn a2_switching_on_is_never_gated() {
    let mut story = story();
    story.until(Phase::Untainting);
    story.view.gate.refusals.push(Refusal::NoLease);
    story.view.gate.refusals.push(paused_by_alice());
    story.until(Phase::AwaitingWell);
    assert_eq!(story.count(Action::On), 1);
    assert!(story.hit(Rule::A2));
}

#[test]
fn a2_an_on_that_died_with_its_process_is_sent_again_once_it_cannot_land_any_more() {
    let mut lost = story();
    lost.until_call(Action::On);
    let sent_at = lost.now;
    lost.todo.clear();
    lost.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
    lost.until_call(Action::On);
    let waited = lost.now.since(sent_at);
    assert!(waited >= FOREIGN_CALL_MAX, "sent again after {waited}, when the first could land");
    assert!(waited < ON_TIMEOUT, "sent again only after {waited}");
    assert_eq!((lost.record.retries, lost.record.phase), (0, Phase::PoweringOn));
    lost.until(Phase::AwaitingWell);
    assert_eq!((lost.count(Action::Off), lost.count(Action::On)), (1, 1));

    let mut arrived = story();
    arrived.until_call(Action::On);
    arrived.todo.clear();
    arrived.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
    arrived.plugs[0] = PlugState::On;
    arrived.until(Phase::AwaitingWell);
    assert_eq!(arrived.count(Action::On), 0, "a machine that is on is left alone");
}

#[test]
fn a2_an_on_that_the_device_swallows_costs_a_retry_each() {
    let mut story = story();
    story.device = Box::new(|operation, plugs| match operation.action {
        Action::On => End::Indeterminate,
        Action::Off | Action::Status | Action::Reset | Action::Monitor => honest(operation, plugs),
    });
    story.until(Phase::Parked);
    assert_eq!(story.parked(), Some(&ParkReason::OnFailed));
    assert_eq!(story.count(Action::On), 3, "the first and two retries");
}

#[test] // promise: A3
fn a3_on_waits_out_an_off_that_nobody_heard_the_end_of() {
    let mut plan = bmc_plan();
    plan.methods[0].late_effect = Span::seconds(90);
    let mut story = Story::new(plan, RunPolicy::default());
    story.until_call(Action::Off);
    let sent_at = story.now;
    story.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
    story.todo.retain(|effect| *effect == Effect::Look);
    story.plugs[0] = PlugState::Off;
    story.until_call(Action::On);
    assert!(story.now.since(sent_at) >= Span::seconds(90), "{}", story.now.since(sent_at));
    assert_eq!(story.count(Action::Off), 0, "the second process verifies, it does not repeat");
    assert!(story.hit(Rule::A3));
}

#[test] // promise: A4
fn a4_a_power_off_that_was_not_ours() {
    let mut brought_back = story();
    brought_back.plugs[0] = PlugState::Off;
    brought_back.until(Phase::AwaitingWell);
    assert_eq!((brought_back.count(Action::Off), brought_back.count(Action::On)), (0, 1));
    assert_eq!(brought_back.record.found_off, [0]);
    assert!(brought_back.released() && brought_back.hit(Rule::A4));

    let policy = RunPolicy { found_off: FoundOff::LeaveOff, ..RunPolicy::default() };
    let mut left = Story::new(bmc_plan(), policy);
    left.plugs[0] = PlugState::Off;
    left.until(Phase::Parked);
    assert_eq!(left.parked(), Some(&ParkReason::OffBeforeUs));
    assert!(left.released(), "off is off, whoever did it");

    let mut maintained = story();
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
        let policy = RunPolicy { found_off: FoundOff::LeaveOff, ..RunPolicy::default() };
        let mut story = Story::new(plan, policy);
        story.plugs[found] = PlugState::Off;
        story.until(Phase::AwaitingWell);
        assert!(story.released() && story.plugs[1 - found] == PlugState::On, "{found}");
        story.boots().until(Phase::Final(FinalReason::Remedied));
        assert_eq!(story.plugs[found], PlugState::Off, "{found}");
    }
}

/// A device that tells what was says off of a machine that we switched on and that boots: nothing is proven by
/// what nobody did.
#[test] // promise: A4
fn a4_what_we_switched_on_is_no_power_off_that_was_found() {
    let policy = RunPolicy { restarts: 1, ..RunPolicy::default() };
    let mut story = Story::new(bmc_plan(), policy);
    story.until(Phase::AwaitingWell);
    let told = story.record.proof.clone();
    story.plugs[0] = PlugState::Off;
    story.until(Phase::VerifyingOff);
    assert_eq!(story.count(Action::Off), 2);
    story.until(Phase::AwaitingWell);
    assert!(story.record.found_off.is_empty() && story.record.proof != told);

    // Nor is it what proves another remedy, of another device that does not do as it is told.
    let mut story = Story::new(bmc_plan(), RunPolicy::default());
    story.until(Phase::AwaitingWell);
    let read = story.record.intend(0, Action::Status, story.now);
    story.record.close(&story.plan, read, succeeded(PlugState::Off), story.now);
    assert!(story.record.reads_off(0) && !story.record.is_to_verify(&story.plan, 0));
}

/// Found off, switched on, and switched off again by somebody who then says that it is in maintenance: the off
/// that was sent to a plug that read off took nothing from anybody.
#[test] // promise: A4
fn a4_an_off_that_changed_nothing_is_no_power_off_of_ours() {
    let policy = RunPolicy { restarts: 1, ..RunPolicy::default() };
    let mut story = Story::new(bmc_plan(), policy);
    story.plugs[0] = PlugState::Off;
    story.until(Phase::AwaitingWell);
    story.plugs[0] = PlugState::Off;
    story.until(Phase::VerifyingOff);
    assert_eq!(story.count(Action::Off), 1);
    story.view.gate.refusals.push(Refusal::Maintenance { what: "new fans".to_string() });
    story.until(Phase::Parked);
    assert_eq!(story.parked(), Some(&ParkReason::OffBeforeUs));
}

#[test] // promise: A5
fn a5_what_was_cut_is_restored_before_on_with_all_feeds_read_off() {
    let plan = cutting_plan(Kind::Fabric(Path::ApiServer));
    let mut story = Story::new(plan, RunPolicy::default());
    story.until(Phase::AwaitingWell);
    let restore = story.calls.iter().rposition(|one| *one == (1, Action::On));
    let read = story.calls.iter().rposition(|one| *one == (0, Action::Status));
    let on = story.calls.iter().position(|one| *one == (0, Action::On));
    assert!(restore < on, "restored before on: {:?}", story.calls);
    assert!(read > on, "and read as on afterwards");
    let before = restore.and_then(|at| story.calls.get(..at)).expect("restored");
    let last_power = before.iter().rfind(|one| one.0 == 0).expect("the feed was read");
    assert_eq!(*last_power, (0, Action::Status), "off was read right before");
    assert!(story.hit(Rule::A5));

    let mut plan = cutting_plan(Kind::Fabric(Path::ApiServer));
    plan.power.clear();
    let policy = RunPolicy::default();
    assert_eq!(refuse_plan(&plan, &policy), Some(PlanRefusal::CutsItselfOff));
    let parks = RunPolicy { isolated_for_good: IsolatedForGood::Park, ..policy };
    assert_eq!(refuse_plan(&plan, &parks), None);
    let mut isolated = Story::new(plan, parks);
    isolated.until(Phase::Parked);
    assert_eq!(isolated.parked(), Some(&ParkReason::Isolated));
}

#[test] // promise: A6
fn a6_well_with_the_same_boot_after_a_release_costs_a_restart() {
    let policy = RunPolicy { restarts: 1, ..RunPolicy::default() };
    let mut story = Story::new(bmc_plan(), policy);
    story.holders = true;
    story.until(Phase::Releasing);
    story.until_released();
    story.plugs[0] = PlugState::On;
    story.wakes().until_call(Action::Off);
    assert_eq!(story.record.restarts, 1);
    assert!(story.hit(Rule::A6));
}

#[test] // promise: A1
fn a1_after_a_restart_a_well_new_boot_is_not_switched_off_for_what_was_released_before() {
    let policy = RunPolicy { restarts: 1, ..RunPolicy::default() };
    let mut story = Story::new(bmc_plan(), policy);
    story.until(Phase::AwaitingWell);
    assert!(story.released());
    // The machine boots, and is ill again or still.
    story.view.node.iter_mut().for_each(|node| node.signs = signs("boot-2", 9));
    story.until(Phase::Waiting).until(Phase::PoweringOff);
    assert_eq!(story.count(Action::Off), 1);
    story.live("boot-2", 10).until(Phase::Final(FinalReason::Remedied));
    assert_eq!(story.count(Action::Off), 1, "the boot that was released from ended long ago");
}

#[test]
fn a7_a_machine_that_is_slow_to_go_off_does_not_fill_the_journal() {
    let policy = RunPolicy { off_timeout: Span::minutes(15), ..RunPolicy::default() };
    let mut slow = Story::new(bmc_plan(), policy);
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
    let mut story = Story::new(plan, RunPolicy::default());
    let mut asked = 0;
    story.device = Box::new(move |operation, plugs| {
        if operation.method == 1 && operation.action == Action::Off {
            asked += 1;
            if asked == 1 {
                return succeeded(PlugState::Off);
            }
        }
        honest(operation, plugs)
    });
    story.until(Phase::Releasing);
    let offs = |plug| story.calls.iter().filter(|one| **one == (plug, Action::Off)).count();
    assert_eq!((offs(0), offs(1)), (1, 2));
    assert!(story.hit(Rule::A7));

    let policy = RunPolicy { restarts: 1, ..RunPolicy::default() };
    let mut cycles = Story::new(bmc_plan(), policy);
    cycles.until(Phase::Parked);
    assert_eq!(cycles.parked(), Some(&ParkReason::NotWell));
    assert_eq!(cycles.count(Action::Off), 2, "restarts + 1");
}

#[test] // promise: A8
fn a8_done_waits_for_well() {
    let mut story = story();
    story.until(Phase::AwaitingWell);
    let since = story.now;
    for _ in 0..20 {
        story.go();
    }
    assert_eq!(story.record.phase, Phase::AwaitingWell);
    story.until(Phase::Parked);
    assert!(story.now.since(since) >= RECOVER_TIMEOUT);
    assert!(story.hit(Rule::A8));
}

#[test] // promise: A9
fn a9_an_isolation_failure_is_recorded_and_the_flow_goes_on() {
    let refuse = |operation: &Operation, plugs: &mut [PlugState]| {
        if operation.method == 1 { failed(FailureKind::Device) } else { honest(operation, plugs) }
    };
    let plan = cutting_plan(Kind::Fabric(Path::Other));
    let mut story = Story::new(plan.clone(), RunPolicy::default());
    story.device = Box::new(refuse);
    story.until(Phase::ReadingIdentity);
    assert!(story.notices.contains(&Notice::MethodFailed { method: 1 }) && story.hit(Rule::A9));

    let mut strict = plan;
    strict.methods[1].must_success = true;
    let mut story = Story::new(strict, RunPolicy::default());
    story.device = Box::new(refuse);
    story.until(Phase::Parked);
    assert!(matches!(story.parked(), Some(ParkReason::MethodFailed { .. })));
    assert_eq!(story.calls.iter().filter(|one| one.0 == 0).count(), 0, "power is not touched");
}

#[test] // promise: A10
fn a10_an_indeterminate_reset_is_not_issued_again() {
    let mut plan = bmc_plan();
    plan.methods[0].kind = Kind::ResetOnly;
    let mut story = Story::new(plan, RunPolicy::default());
    story.device = Box::new(|operation, plugs| {
        if operation.action == Action::Reset {
            End::Indeterminate
        } else {
            honest(operation, plugs)
        }
    });
    story.until(Phase::AwaitingWell);
    assert_eq!(story.count(Action::Reset), 1);
    assert!(!story.released() && story.hit(Rule::A10));
    story.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(story.count(Action::Reset), 1);
}

#[test] // promise: A12
fn a12_a_device_that_cannot_be_reached_costs_no_retry() {
    let policy = RunPolicy { device_timeout: Span::minutes(10), ..RunPolicy::default() };
    let mut story = Story::new(bmc_plan(), policy);
    story.device = Box::new(silent);
    story.until(Phase::AwaitingDevice);
    assert_eq!((story.record.retries, story.record.slot), (0, Slot::Free));
    story.until(Phase::Parked);
    assert_eq!(story.parked(), Some(&ParkReason::DeviceUnreachable));
    assert!(story.hit(Rule::A12) && story.count(Action::Off) == 0);
    assert!(story.record.operations.len() < 10, "a day of probes does not fill the record");
    story.device = Box::new(honest);
    story.until(Phase::AwaitingWell);
    assert_eq!(story.count(Action::Off), 1);
}

#[test] // promise: A13
fn a13_a_failed_on_closes_the_device() {
    for (kind, scope) in
        [(FailureKind::Device, Closure::Device), (FailureKind::Denied, Closure::Kind)]
    {
        let mut story = story();
        story.device = Box::new(move |operation, plugs| {
            if operation.action == Action::On { failed(kind) } else { honest(operation, plugs) }
        });
        story.until(Phase::Parked);
        assert_eq!(story.parked(), Some(&ParkReason::OnFailed));
        let parked = story.record.parked.as_ref().expect("parked");
        assert_eq!(parked.powered_off_by_us, [0]);
        let closed = Notice::CloseDevice { device: "bmc".to_string(), kind, scope };
        assert!(story.notices.contains(&closed) && story.hit(Rule::A13));
        assert_eq!(story.record.on_failed.len(), 1);

        // A retry does not open it, and an `on` that worked does.
        story.event(Event::Command(Command::Retry));
        story.until(Phase::PoweringOn);
        assert_eq!(story.record.on_failed.len(), 1);
        story.device = Box::new(honest);
        story.until(Phase::AwaitingWell);
        assert_eq!(story.record.on_failed, []);
    }

    let mut by_hand = story();
    by_hand.device = Box::new(|operation, plugs| match operation.action {
        Action::On => failed(FailureKind::Device),
        Action::Status | Action::Off | Action::Reset | Action::Monitor => honest(operation, plugs),
    });
    by_hand.until(Phase::Parked);
    by_hand.plugs[0] = PlugState::On;
    by_hand.event(Event::Command(Command::Retry));
    by_hand.until(Phase::AwaitingWell);
    assert_eq!(by_hand.record.on_failed.len(), 1, "a hand says nothing for the device");
}

#[test] // promise: A14
fn a14_a_gate_that_closes_behind_an_isolated_node() {
    let policy = RunPolicy { power_after: Span::minutes(5), ..RunPolicy::default() };
    let mut story = Story::new(bmc_plan(), policy);
    story.until(Phase::AwaitingPower);
    story.view.gate.refusals.push(Refusal::NoLease);
    let since = story.now;
    story.until(Phase::Waiting);
    assert!(story.now.since(since) >= GATE_TIMEOUT && story.hit(Rule::A14));
    assert_eq!(story.count(Action::Off), 0);
    assert!(!story.view.node.as_ref().expect("a node").quarantined, "isolation is undone");

    let mut by_hand = self::story();
    by_hand.device = Box::new(lying);
    by_hand.until(Phase::Parked);
    by_hand.boots().until(Phase::Final(FinalReason::RecoveredByHand));
}

#[test] // promise: A16
fn a16_power_is_read_again_before_a_batch() {
    // Off by us, and off before us.
    for found in [PlugState::On, PlugState::Off] {
        let mut story = story();
        story.plugs[0] = found;
        story.holders = true;
        story.until(Phase::Releasing);
        story.until_released();
        let reads = story.count(Action::Status);
        story.now = story.now.after(Span::seconds(16));
        story.plugs[0] = PlugState::On;
        let deletes = |story: &Story| {
            story.done.iter().filter(|one| matches!(one, Effect::DeletePods(_))).count()
        };
        story.todo.clear();
        let before = deletes(&story);
        story.look();
        story.until(Phase::AwaitingWell);
        assert!(story.count(Action::Status) > reads && story.hit(Rule::A16));
        assert_eq!(deletes(&story), before, "somebody switched it on: nothing more is deleted");
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
    let of_ready = |statuses: &[ConditionStatus]| Sign::Condition {
        kind: READY.to_string(),
        statuses: statuses.iter().copied().collect(),
        reasons: BTreeSet::new(),
    };
    let not_ready = of_ready(&[ConditionStatus::False, ConditionStatus::Unknown]);
    let watching = |sign, s| Threshold { sign, period: Span::seconds(s), stale_after: STALE_AFTER };
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

    let Sign::Condition { statuses, .. } = &threshold.sign else { panic!("a condition") };
    let later = ready(ConditionStatus::Unknown, 30_000);
    let after = |left: &[(ConditionStatus, Time)]| {
        crate::sign::since_across(&ConditionView { left: left.to_vec(), ..later.clone() }, statuses)
    };
    let was_false = (ConditionStatus::False, Time(30_000));
    assert_eq!(after(&[(ConditionStatus::True, Time(5_000)), was_false]), Time(5_000));
    assert_eq!(after(&[was_false]), Time(30_000), "nobody saw when it was True");
    assert_eq!(after(&[(ConditionStatus::True, Time(31_000))]), Time(30_000));

    // Unknown clears nothing where it does not count.
    node.conditions = vec![later];
    let threshold = watching(of_ready(&[ConditionStatus::False]), 60);
    assert_eq!(crossed(&node, &threshold, Time(90_000)), Crossing::Unclear);

    let threshold = watching(Sign::LeaseAge(Span::seconds(20)), 0);
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
