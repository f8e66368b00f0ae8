//! One test named after each rule of the automaton and of proof and release.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::fixtures::{
    BOOT, bmc_plan, failed, lost_view, opened, pod, power, signs, stage, succeeded,
};
use super::story::{Story, honest, lying, silent};
use crate::*;

const CLEAR: Crossing = Crossing::Clear { ready: true, next_look: None };

fn story() -> Story {
    Story::new(bmc_plan(), RunPolicy::default())
}

fn position(story: &Story, wanted: impl Fn(&Effect) -> bool) -> usize {
    story.did(wanted).expect("it was done")
}

/// A plan that cuts something before it cuts power.
fn cutting_plan(kind: Kind) -> Plan {
    let mut cut = power("switch", Feed::Whole);
    cut.kind = kind;
    cut.binding = Binding::Verified;
    let mut plan = bmc_plan();
    plan.methods.push(cut);
    plan.isolation = vec![stage(Execution::All, &[1])];
    plan
}

#[test]
fn the_one_path_from_lost_to_remedied() {
    let mut story = story();
    story.until(Phase::AwaitingWell);
    story.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!((story.count(Action::Off), story.count(Action::On)), (1, 1));
    let taint = position(&story, |one| *one == Effect::OutOfService);
    let delete = position(&story, |one| matches!(one, Effect::DeletePods(_)));
    let lift = position(&story, |one| *one == Effect::LiftOutOfService);
    let unmark = position(&story, |one| *one == Effect::Unquarantine);
    assert!(taint < delete && delete < lift && lift < unmark, "{:?}", story.done);
    assert_eq!(story.record.proof.as_ref().map(|one| one.grade), Some(Grade::PowerOffVerified));
}

#[test]
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

#[test]
fn a2_switching_on_is_never_gated() {
    let mut story = story();
    story.until(Phase::Untainting);
    story.view.gate.refusals.push(Refusal::NoLease);
    story.view.people.paused = true;
    story.until(Phase::AwaitingWell);
    assert_eq!(story.count(Action::On), 1);
    assert!(story.hit(Rule::A2));
}

#[test]
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

#[test]
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
    maintained.view.people.maintenance = true;
    maintained.until(Phase::Parked);
    assert_eq!(maintained.parked(), Some(&ParkReason::OffBeforeUs));
}

#[test]
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

#[test]
fn a6_well_with_the_same_boot_after_a_release_costs_a_restart() {
    let policy = RunPolicy { restarts: 1, ..RunPolicy::default() };
    let mut story = Story::new(bmc_plan(), policy);
    story.holders = true;
    story.until(Phase::Releasing);
    while !story.released() {
        story.go();
    }
    story.plugs[0] = PlugState::On;
    story.wakes().until_call(Action::Off);
    assert_eq!(story.record.restarts, 1);
    assert!(story.hit(Rule::A6));
}

#[test]
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

#[test]
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

#[test]
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

#[test]
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

#[test]
fn a11_the_ladder_advances_a_period_after_run_and_job_have_ended() {
    let held = Crossing::Crossed { since: Time(0) };
    let view =
        |last| LadderView { rungs: 2, period: Span::seconds(60), trigger: held.clone(), last };
    let run = |rung, ended_at, job| Some(LastRun { rung, ended_at, job });
    let now = Time(100_000);
    assert_eq!(next_rung(&view(None), now), Rung::Climb(0));
    assert_eq!(next_rung(&view(run(0, None, None)), now), Rung::Wait(None));
    let job = Some(JobEnd::Running);
    assert_eq!(next_rung(&view(run(0, Some(Time(0)), job)), now), Rung::Wait(None));
    let job = Some(JobEnd::Ended(Time(50_000)));
    let wait = Rung::Wait(Some(Time(110_000)));
    assert_eq!(next_rung(&view(run(0, Some(Time(0)), job)), now), wait);
    assert_eq!(next_rung(&view(run(0, Some(Time(40_000)), None)), now), Rung::Climb(1));
    assert_eq!(next_rung(&view(run(1, Some(Time(40_000)), None)), now), Rung::Exhausted);
    let clear = LadderView { trigger: CLEAR, ..view(None) };
    assert_eq!(next_rung(&clear, now), Rung::Rest);
}

#[test]
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

#[test]
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
    }
}

#[test]
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

#[test]
fn a15_the_node_is_gone_or_its_machine_is_terminated() {
    let mut gone = story();
    gone.holders = true;
    gone.until(Phase::Releasing);
    gone.view.node = None;
    gone.until(Phase::Final(FinalReason::NodeGone));
    assert_eq!(gone.count(Action::On), 1, "what we switched off is switched on");

    let mut replaced = story();
    replaced.device = Box::new(|_, _| succeeded(PlugState::Terminated));
    replaced.until(Phase::Final(FinalReason::Replaced));
    assert_eq!((replaced.count(Action::Off), replaced.count(Action::On)), (0, 0));
    assert!(replaced.released() && replaced.hit(Rule::A15));

    let mut another = story();
    another.until(Phase::ReadingIdentity);
    another.view.node.iter_mut().for_each(|node| node.uid = "uid-b".to_string());
    another.until(Phase::Final(FinalReason::NodeGone));
    assert_eq!(another.count(Action::Off), 0);
}

#[test]
fn a16_power_is_read_again_before_a_batch() {
    let mut story = story();
    story.holders = true;
    story.until(Phase::Releasing);
    while !story.released() {
        story.go();
    }
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

#[test]
fn a17_people_pause_approve_retry_and_abort() {
    let mut paused = story();
    paused.until(Phase::ReadingIdentity);
    paused.view.people.paused = true;
    for _ in 0..10 {
        paused.go();
    }
    assert_eq!(paused.count(Action::Off), 0);

    let policy = RunPolicy { approval: Approval::Needed, ..RunPolicy::default() };
    let mut waits = Story::new(bmc_plan(), policy);
    waits.until(Phase::AwaitingPower);
    for _ in 0..10 {
        waits.go();
    }
    assert_eq!((waits.record.phase, waits.record.slot), (Phase::AwaitingPower, Slot::Free));
    waits.view.people.approved = true;
    waits.until(Phase::AwaitingWell);

    let mut before = story();
    before.until(Phase::ReadingIdentity);
    before.event(Event::Command(Command::Abort));
    before.until(Phase::Final(FinalReason::Aborted));
    assert_eq!(before.count(Action::Off), 0);

    for (command, ons) in [(Command::Abort, 1), (Command::AbortLeaveOff, 0)] {
        let mut after = story();
        after.until(Phase::VerifyingOff);
        after.event(Event::Command(command));
        after.until(Phase::Parked);
        assert_eq!(after.parked(), Some(&ParkReason::Aborted));
        assert_eq!(after.count(Action::On), ons);
        let told = after.record.parked.as_ref().map(|one| one.powered_off_by_us.len());
        assert_eq!(told, Some(1 - ons));
    }

    let mut retried = story();
    retried.device = Box::new(lying);
    retried.until(Phase::Parked);
    retried.device = Box::new(honest);
    retried.event(Event::Command(Command::Retry));
    retried.until(Phase::AwaitingWell);
    assert!(retried.hit(Rule::A17));
}

#[test]
fn a18_the_age_of_a_condition() {
    let ready = |status, since| ConditionView {
        kind: READY.to_string(),
        status,
        since: Time(since),
        reported: Time(since),
    };
    let statuses = [ConditionStatus::False, ConditionStatus::Unknown].into();
    let sign = Sign::Condition { kind: READY.to_string(), statuses };
    let threshold = Threshold { sign, period: Span::seconds(60) };
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
    let earlier = ready(ConditionStatus::False, 5_000);
    let later = ready(ConditionStatus::Unknown, 30_000);
    assert_eq!(since_across(&earlier, &later, statuses), Time(5_000));
    let well = ready(ConditionStatus::True, 5_000);
    assert_eq!(since_across(&well, &later, statuses), Time(30_000));

    // Unknown clears nothing where it does not count.
    let only_false =
        Sign::Condition { kind: READY.to_string(), statuses: [ConditionStatus::False].into() };
    node.conditions = vec![later];
    let threshold = Threshold { sign: only_false, period: Span::seconds(60) };
    assert_eq!(crossed(&node, &threshold, Time(90_000)), Crossing::Unclear);

    let threshold = Threshold { sign: Sign::LeaseAge, period: Span::seconds(20) };
    node.lease_seen_at = Some(Time(100_000));
    let next_look = Some(Time(120_000));
    let clear = Crossing::Clear { ready: false, next_look };
    assert_eq!(crossed(&node, &threshold, Time(111_999)), clear);
    let since = Time(100_000);
    assert_eq!(crossed(&node, &threshold, Time(120_000)), Crossing::Crossed { since });
    assert_eq!(crossed(&node, &threshold, Time(112_000)).next_look(), next_look);
}

#[test]
fn a19_a_slot_is_held_until_the_node_is_on_again() {
    let mut story = story();
    story.until(Phase::PoweringOn);
    assert_eq!(story.record.slot, Slot::Held);
    story.until(Phase::AwaitingWell);
    assert_eq!(story.record.slot, Slot::Free);
    assert!(story.todo.contains(&Effect::ReturnSlot) && story.hit(Rule::A19));

    let mut waiting = self::story();
    waiting.device = Box::new(silent);
    waiting.until(Phase::AwaitingDevice);
    assert_eq!(waiting.record.slot, Slot::Free);
    waiting.device = Box::new(honest);
    waiting.until_call(Action::Off);
    assert_eq!(waiting.record.slot, Slot::Held, "taken again before the next off");
}

#[test]
fn p1_no_grade_no_release() {
    let mut story = story();
    story.device = Box::new(lying);
    story.until(Phase::Parked);
    assert_eq!(story.parked(), Some(&ParkReason::OffNotVerified { tries: 3 }));
    assert_eq!(story.count(Action::Off), 3);
    assert!(!story.released() && story.hit(Rule::P1));

    let mut unknown = self::story();
    unknown.device = Box::new(|operation, plugs| {
        honest(operation, plugs);
        let state = if plugs[0] == PlugState::Off { PlugState::Unknown } else { plugs[0] };
        succeeded(state)
    });
    unknown.until(Phase::Parked);
    assert!(!unknown.released(), "unknown is not off");

    let mut plan = bmc_plan();
    let mut witness = power("pdu", Feed::Whole);
    witness.kind = Kind::Watch;
    plan.methods[0].witness = Some(1);
    plan.methods.push(witness);
    let mut independent = Story::new(plan, RunPolicy::default());
    independent.until(Phase::Parked);
    assert!(!independent.released(), "the witness still reads on");
}

#[test]
fn p2_a_proof_covers_one_boot() {
    for boot in [BOOT, "boot-2"] {
        let mut story = story();
        story.holders = true;
        story.until(Phase::Releasing);
        while !story.released() {
            story.go();
        }
        story.view.node.iter_mut().for_each(|node| node.signs = signs(boot, 7));
        story.todo.clear();
        let before = story.done.len();
        story.look();
        assert!(story.record.proof.as_ref().expect("proof").voided_at.is_some());
        story.until(Phase::PoweringOn);
        let later = story.done.get(before..).expect("later");
        assert!(later.contains(&Effect::LiftOutOfService), "{later:?}");
        assert!(!later.iter().any(|one| matches!(one, Effect::DeletePods(_))), "{later:?}");
        assert!(story.hit(Rule::P2));
    }

    // The device says off and the node goes on renewing: the plug is not its own.
    let mut alive = story();
    alive.until(Phase::VerifyingOff);
    for life in 10..200 {
        alive.view.node.iter_mut().for_each(|node| node.signs = signs(BOOT, life));
        if alive.record.phase != Phase::Parked {
            alive.go();
        }
    }
    assert_eq!(alive.parked(), Some(&ParkReason::AliveThoughOff));
    assert_eq!((alive.count(Action::On), alive.released()), (1, false));
}

#[test]
fn p3_a_release_stands_behind_proof_wherever_it_is_configured() {
    let plan = cutting_plan(Kind::Builtin(Builtin::CleanResources));
    let mut story = Story::new(plan, RunPolicy::default());
    story.until(Phase::VerifyingOff);
    assert!(!story.released());
    story.until(Phase::AwaitingWell);
    assert!(story.released() && story.hit(Rule::P3));
}

#[test]
fn p4_quarantine_first_then_by_mode() {
    let mut prompt = story();
    prompt.until(Phase::Releasing);
    prompt.view.node.iter_mut().for_each(|node| node.quarantined = false);
    prompt.todo.clear();
    prompt.look();
    assert_eq!(prompt.todo, [Effect::Quarantine]);
    prompt.until(Phase::AwaitingWell);

    let policy =
        RunPolicy { release: ReleaseMode::Paced { pods_per_minute: 6 }, ..RunPolicy::default() };
    let mut paced = Story::new(bmc_plan(), policy);
    paced.view.pods = vec![pod("a", None), pod("b", None), pod("d", Some(Exempt::DaemonSet))];
    paced.until(Phase::AwaitingWell);
    let deletes: Vec<&Effect> =
        paced.done.iter().filter(|one| matches!(one, Effect::DeletePods(_))).collect();
    let one = |name: &str| Effect::DeletePods(vec![name.to_string()]);
    assert_eq!(deletes, [&one("a"), &one("b")]);
    let last = position(&paced, |effect| *effect == one("b"));
    assert!(position(&paced, |effect| *effect == Effect::OutOfService) > last);
    assert!(position(&paced, |effect| matches!(effect, Effect::DeleteAttachments(_))) > last);
    assert!(paced.hit(Rule::P4));
}

#[test]
fn p5_on_waits_for_what_is_released_but_not_for_ever() {
    let mut story = story();
    story.holders = true;
    story.until(Phase::Releasing);
    let since = story.now;
    story.until(Phase::PoweringOn);
    assert!(story.now.since(since) >= RELEASE_TIMEOUT && story.hit(Rule::P5));
    let told = story.notices.iter().any(|notice| {
        matches!(notice, Notice::ReleaseStalled { holders }
            if holders.iter().any(|one| one.contains("external-attacher/csi")) || holders.len() == 2)
    });
    assert!(told, "{:?}", story.notices);
}

#[test]
fn p6_pods_that_still_answer_are_their_budgets_for_a_while() {
    let mut plan = cutting_plan(Kind::Storage { volumes: vec!["pv-db-0".to_string()] });
    plan.power.clear();
    let mut story = Story::new(plan, RunPolicy::default());
    story.view.pods.iter_mut().for_each(|pod| {
        pod.ready = true;
        pod.budget_forbids = true;
    });
    story.policy.release_timeout = Span::minutes(60);
    story.until(Phase::Releasing);
    let since = story.now;
    story.until(Phase::AwaitingWell);
    assert!(story.now.since(since) >= PDB_PATIENCE && story.hit(Rule::P6));
    assert_eq!(story.did(|one| *one == Effect::OutOfService), None, "it would take all pods");
}

#[test]
fn p7_only_our_own_marks_are_lifted() {
    let mut story =
        Story::new(cutting_plan(Kind::Builtin(Builtin::MarkUnschedulable)), RunPolicy::default());
    story.view.node.iter_mut().for_each(|node| node.cordoned = true);
    story.until(Phase::AwaitingWell);
    story.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(story.did(|one| *one == Effect::Cordon), None, "somebody else's cordon");
    assert_eq!(story.did(|one| *one == Effect::Uncordon), None);
    assert!(story.hit(Rule::P7));

    let mut ours =
        Story::new(cutting_plan(Kind::Builtin(Builtin::MarkUnschedulable)), RunPolicy::default());
    ours.until(Phase::AwaitingWell);
    ours.boots().until(Phase::Final(FinalReason::Remedied));
    assert!(position(&ours, |one| *one == Effect::Uncordon) > 0);
}

#[test]
fn p8_the_machine_behind_the_device_is_the_node() {
    let mut wrong = story();
    wrong.device = Box::new(|_, _| End::Succeeded {
        state: PlugState::On,
        identity: vec![("system-uuid".to_string(), "another".to_string())],
    });
    wrong.until(Phase::Parked);
    assert!(matches!(wrong.parked(), Some(ParkReason::WrongMachine { .. })));
    assert_eq!((wrong.count(Action::Off), wrong.released()), (0, false));

    let mut mute = story();
    mute.device = Box::new(|_, _| End::Succeeded { state: PlugState::On, identity: vec![] });
    mute.until(Phase::Parked);
    assert_eq!(mute.parked(), Some(&ParkReason::NoIdentity));

    let mut plan = bmc_plan();
    plan.methods[0].binding = Binding::Labelled;
    let mut labelled = Story::new(plan.clone(), RunPolicy::default());
    labelled.until_call(Action::Off);
    let cut_at = labelled.now;
    labelled.until(Phase::Releasing);
    assert!(labelled.now.since(cut_at) >= Span::seconds(20), "two Lease intervals");

    let mut crossed_wires = Story::new(plan, RunPolicy::default());
    crossed_wires.until(Phase::VerifyingOff);
    crossed_wires.view.neighbour_silent = Some("node-b".to_string());
    crossed_wires.until(Phase::Parked);
    assert!(matches!(crossed_wires.parked(), Some(ParkReason::WrongPlug { .. })));
    assert_eq!(crossed_wires.count(Action::On), 1, "the neighbour is switched on again");
    assert!(!crossed_wires.released() && crossed_wires.hit(Rule::P8));
}

#[test]
fn a_person_confirms_what_no_device_can_prove() {
    let mut story = story();
    story.device = Box::new(lying);
    story.until(Phase::Parked);
    let confirm = |boot: &str| Command::ConfirmOff { by: "ada".into(), boot_id: boot.into() };
    story.event(Event::Command(confirm("another boot")));
    for _ in 0..5 {
        story.go();
    }
    assert!(!story.released(), "bound to this boot");
    story.event(Event::Command(confirm(BOOT)));
    story.until(Phase::Untainting);
    assert!(story.released());
    assert_eq!(story.record.proof.as_ref().map(|one| one.grade), Some(Grade::OperatorConfirmed));
}

#[test]
fn a_record_of_a_newer_leader_is_left_alone() {
    let mut story = story();
    story.until_call(Action::Off);
    story.event(Event::Adopted { epoch: 5, process: "p5".to_string() });
    let record = story.record.clone();
    story.todo.clear();
    story.event(Event::Adopted { epoch: 4, process: "p4".to_string() });
    assert_eq!((story.record.clone(), story.todo.clone()), (record, vec![]));
}

#[test]
fn our_own_node_is_offered_to_another_leader_and_then_refused() {
    let mut story = story();
    story.view.hosts_us = true;
    for _ in 0..10 {
        story.go();
    }
    assert_eq!(story.done.iter().filter(|one| **one == Effect::HandOver).count(), 1);
    assert_eq!((story.record.phase, story.calls.len()), (Phase::Waiting, 0));
}

#[test]
fn an_open_run_needs_threshold_gate_and_a_fresh_view() {
    let (plan, policy) = (bmc_plan(), RunPolicy::default());
    let now = Time(1_000_000);
    let decide = |view: &View| {
        open(&Opening { plan: &plan, policy: &policy, view, epoch: 1, process: "p1" }, now)
    };
    assert!(matches!(decide(&lost_view(now)), OpenDecision::Open(_)));
    let mut closed = lost_view(now);
    closed.gate.refusals.push(Refusal::NoLease);
    assert!(matches!(decide(&closed), OpenDecision::Wait { hold: Hold::Gate(_), .. }));
    let cached = View { freshness: Freshness::Cached, ..lost_view(now) };
    assert!(matches!(decide(&cached), OpenDecision::Wait { hold: Hold::StaleView, .. }));
    let ripening = Crossing::Ripening { since: now, crosses_at: Time(2_000_000) };
    let early = View { trigger: ripening, ..lost_view(now) };
    let next_look = Some(Time(2_000_000));
    let hold = Hold::NotYet { until: Time(2_000_000) };
    assert_eq!(decide(&early), OpenDecision::Wait { hold, next_look });
    let record = opened(&plan, &policy, &lost_view(now), now);
    assert_eq!((record.slot, record.phase), (Slot::Held, Phase::Waiting));
}

#[test]
fn every_rule_has_a_test_named_after_it() {
    let source = include_str!("rules.rs");
    for rule in Rule::ALL {
        let name = alloc::format!("fn {}_", rule.name().to_lowercase());
        assert!(source.contains(&name), "no test for {rule}");
    }
}
