//! A5, A8, A12, A14, A15 and A19: what is known and what is held while a run waits for a machine, a device, a person.

use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::vec;

use super::{cutting_plan, story};
use crate::tests::fixtures::{bmc_plan, failed, not_attempted, power, stage, succeeded};
use crate::tests::story::{Story, honest, lying, silent};
use crate::*;

#[test] // promise: A8
fn a8_a_person_is_told_what_the_plugs_read_when_the_node_does_not_come_back() {
    for found in [PlugState::Off, PlugState::On] {
        let mut story = story();
        story.until(Phase::AwaitingWell);
        story.device = Box::new(move |_, _| succeeded(found));
        let reads = story.count(Action::Status);
        story.until(Phase::Parked);
        assert_eq!(story.parked(), Some(&ParkReason::NotWell));
        assert_eq!((story.count(Action::Status) - reads, story.count(Action::On)), (1, 1));
        let left_off = story.record.parked.as_ref().map(|parked| parked.powered_off_by_us.len());
        assert_eq!(left_off, Some(usize::from(found == PlugState::Off)));
    }
}

/// Somebody switched it off while our off was still on its way: that off comes after our `on`.
#[test]
fn a12_a_person_is_told_of_an_off_that_may_still_come() {
    let late = Span::seconds(90);
    for waited in [Span::ZERO, late] {
        let mut plan = bmc_plan();
        plan.methods[0].late_effect = late;
        let mut story = Story::new(plan, RunPolicy::default());
        story.until(Phase::AwaitingWell).until_now(waited);
        story.event(Event::Command(Command::Abort));
        story.until(Phase::Parked);
        let left_off = story.record.parked.as_ref().map(|parked| parked.powered_off_by_us.len());
        assert_eq!(left_off, Some(usize::from(waited == Span::ZERO)), "{waited:?}");
    }
}

/// A cloud API that is asked too often took nothing in, so that is no try of anything.
#[test] // promise: A12
fn a12_a_device_that_asks_for_patience_is_waited_for() {
    let policy = RunPolicy { device_timeout: Span::minutes(10), ..RunPolicy::default() };
    let mut story = Story::new(bmc_plan(), policy);
    story.device = Box::new(|_, _| failed(FailureKind::Throttled));
    story.until(Phase::AwaitingDevice);
    let since = story.now;
    story.until(Phase::Parked);
    assert!(story.now.since(since) >= Span::minutes(10));
    assert_eq!((story.record.retries, story.count(Action::Off)), (0, 0));
    story.device = Box::new(honest);
    story.until(Phase::AwaitingWell);
    assert_eq!(story.count(Action::Off), 1);
}

/// What may still come by itself is not asked for again, and nobody is told meanwhile that it failed.
#[test]
fn an_on_is_waited_for_as_long_as_its_device_may_take() {
    let mut plan = bmc_plan();
    plan.methods[0].late_effect = ON_TIMEOUT.times(4);
    let mut story = Story::new(plan, RunPolicy { retries: 1, ..RunPolicy::default() });
    story.until_call(Action::On);
    let asked = story.now;
    story.device = Box::new(|_, _| succeeded(PlugState::Off));
    story.until_now(ON_TIMEOUT.times(3));
    assert_eq!((story.record.phase, story.count(Action::On)), (Phase::PoweringOn, 1));
    assert!(story.now.since(asked) < ON_TIMEOUT.times(4));
    story.device = Box::new(honest);
    story.plugs[0] = PlugState::On;
    story.until(Phase::AwaitingWell);
    assert_eq!(story.count(Action::On), 1);
}

/// Nothing left the process, for the off, for a read, or for the on: that is no try of anything, and no device is
/// closed for it.
#[test] // promise: A12
fn a12_a_call_that_was_not_made_is_no_refusal_of_the_device() {
    for action in [Action::Off, Action::Status, Action::On] {
        let mut story = story();
        story.until_call(Action::On);
        if action != Action::On {
            story = self::story();
        }
        story.device = Box::new(move |operation, plugs| {
            if operation.action == action || operation.action == Action::Monitor {
                return not_attempted(FailureKind::NotMade);
            }
            honest(operation, plugs)
        });
        story.until(Phase::AwaitingDevice);
        let since = story.now;
        while story.now.since(since) < Span::minutes(60) {
            story.go();
        }
        let stands = (story.record.phase, story.record.retries, story.record.on_failed.len());
        assert_eq!(stands, (Phase::AwaitingDevice, 0, 0), "{action:?}");
        story.device = Box::new(honest);
        story.until(Phase::AwaitingWell);
        assert_eq!(story.plugs, [PlugState::On], "{action:?}");
        story.boots().until(Phase::Final(FinalReason::Remedied));
    }
}

/// Another process says that it reaches the device: it may lead. What it says may be wrong, so it is not
/// offered again for a while.
#[test] // promise: G16
fn a12_a_leader_that_does_not_reach_a_device_lets_one_lead_that_does() {
    let offers =
        |story: &Story| story.done.iter().filter(|effect| **effect == Effect::HandOver).count();
    let mut story = Story::new(bmc_plan(), RunPolicy::default());
    story.device = Box::new(silent);
    story.until(Phase::AwaitingDevice);
    for _ in 0..20 {
        story.go();
    }
    assert_eq!(offers(&story), 0, "nobody else reaches it");
    story.view.reached_elsewhere = true;
    let since = story.now;
    while story.now.since(since) < Span::minutes(9) {
        story.go();
    }
    assert_eq!((offers(&story), story.record.phase), (1, Phase::AwaitingDevice));
    while story.now.since(since) < Span::minutes(15) {
        story.go();
    }
    assert_eq!(offers(&story), 2);
    story.device = Box::new(honest);
    story.until(Phase::AwaitingWell);
    assert_eq!(offers(&story), 2, "it does not wait any more");
}

/// What refuses a probe was reached: no more probes every few seconds, which lock accounts, but the
/// tries that there are, and then a person. What starts may say anything, and is waited for.
#[test] // promise: A12
fn a12_a_device_that_refuses_is_not_waited_for() {
    let mut story = Story::new(bmc_plan(), RunPolicy::default());
    story.device = Box::new(silent);
    story.until(Phase::AwaitingDevice);
    let since = story.now;
    story.device = Box::new(|_, _| not_attempted(FailureKind::Busy));
    for _ in 0..20 {
        story.go();
    }
    assert_eq!(story.record.phase, Phase::AwaitingDevice);
    let probes = story.count(Action::Monitor);
    story.device = Box::new(|_, _| not_attempted(FailureKind::Unauthenticated));
    story.until(Phase::Parked);
    assert!(story.now.since(since) < Span::minutes(15), "{:?}", story.now.since(since));
    assert!(matches!(story.parked(), Some(ParkReason::MethodFailed { .. })));
    assert_eq!(story.count(Action::Monitor), probes + 1);
}

/// Between the yes and the end of what the manifest says that an effect may take, an off that does not
/// show is waited for, and not sent again.
#[test] // promise: A7
fn a7_an_off_that_may_still_come_is_not_asked_for_again() {
    let mut plan = bmc_plan();
    plan.methods[0].late_effect = Span::seconds(120);
    let mut story = Story::new(plan, RunPolicy::default());
    story.device = Box::new(|operation, plugs| match operation.action {
        Action::Off => succeeded(PlugState::Transitioning),
        Action::Status | Action::On | Action::Reset | Action::Monitor => honest(operation, plugs),
    });
    story.until(Phase::VerifyingOff);
    let since = story.now;
    story.until(Phase::Backoff);
    let waited = story.now.since(since);
    assert!(waited >= Span::seconds(120) && waited < Span::seconds(130), "{waited:?}");
    assert_eq!(story.count(Action::Off), 1);
}

#[test] // promise: A14
fn a14_a_gate_that_stays_closed_over_a_machine_that_may_be_off_is_told_of() {
    let policy = RunPolicy { restarts: 1, ..RunPolicy::default() };
    let mut story = Story::new(bmc_plan(), policy);
    story.device = Box::new(|operation, plugs| {
        if operation.action == Action::Status && plugs[0] == PlugState::Off {
            return failed(FailureKind::Unauthenticated);
        }
        honest(operation, plugs)
    });
    story.until_call(Action::Off);
    story.view.gate.refusals.push(Refusal::NoLease);
    story.until(Phase::Waiting);
    let since = story.now;
    story.until(Phase::Parked);
    assert!(story.now.since(since) >= GATE_TIMEOUT && story.hit(Rule::A14));
    assert_eq!(story.parked(), Some(&ParkReason::GateClosed));
    let left_off = story.record.parked.as_ref().map(|parked| parked.powered_off_by_us.len());
    assert_eq!(left_off, Some(1));
}

/// The device that is to switch a machine on again is silent until a person is told. When it answers, or somebody
/// says so, the machine is switched on, although nothing may be cut then.
#[test] // promise: A2
fn a2_a_machine_that_a_silent_device_left_off_is_switched_on_whatever_the_gate_says() {
    for says_retry in [false, true] {
        let policy = RunPolicy { device_timeout: Span::minutes(10), ..RunPolicy::default() };
        let mut story = Story::new(bmc_plan(), policy);
        story.until(Phase::PoweringOn);
        story.device = Box::new(silent);
        story.until(Phase::Parked);
        assert_eq!(story.parked(), Some(&ParkReason::DeviceUnreachable));
        story.view.gate.refusals.push(Refusal::NoLease);
        if says_retry {
            story.event(Event::Command(Command::Retry));
        }
        story.device = Box::new(honest);
        story.until(Phase::AwaitingWell);
        assert_eq!((story.count(Action::Off), story.plugs[0]), (1, PlugState::On));
        story.boots().until(Phase::Final(FinalReason::Remedied));
    }
}

/// A machine is well on one of its feeds; the other one, which we switched off, is still waited for,
/// and a person is told of it when its device stays silent.
#[test] // promise: A14
fn a14_a_gate_that_is_closed_when_a_pass_begins_anew_does_not_leave_the_node_cut() {
    let policy = RunPolicy { restarts: 1, ..RunPolicy::default() };
    let mut story = Story::new(cutting_plan(Kind::Fabric(Path::ApiServer)), policy);
    story.device = Box::new(|operation, plugs| match operation.method {
        0 => failed(FailureKind::Busy),
        _ => honest(operation, plugs),
    });
    story.until(Phase::Backoff);
    story.view.gate.refusals.push(Refusal::NoLease);
    story.until(Phase::Waiting);
    assert_eq!(story.record.restarts, 1);
    let closed_at = story.now;
    story.until(Phase::Restoring);
    assert!(story.now.since(closed_at) >= GATE_TIMEOUT);
    let on = |one: &&Operation| one.method == 1 && one.action == Action::On;
    story.until(Phase::Waiting);
    assert_eq!(story.record.operations.iter().filter(on).count(), 1, "the port is open again");
}

/// Whoever has the slot may have promised to be one of so many, and keeps it for as long as its own run lasts.
#[test] // promise: A14
fn a14_a_slot_that_others_keep_does_not_leave_the_node_cut() {
    let mut story = Story::new(cutting_plan(Kind::Fabric(Path::ApiServer)), RunPolicy::default());
    story.device = Box::new(|operation, plugs| match operation.method {
        0 => silent(operation, plugs),
        _ => honest(operation, plugs),
    });
    story.until(Phase::AwaitingDevice);
    assert_eq!((story.plugs[1], story.record.slot), (PlugState::Off, Slot::Free));
    (story.device, story.slot) = (Box::new(honest), SlotAnswer::Refused);
    let since = story.now;
    story.until(Phase::Restoring);
    assert!(story.now.since(since) >= GATE_TIMEOUT && story.hit(Rule::A14));
    assert_eq!(story.count(Action::Off), 1, "the port alone");
    story.until(Phase::Waiting);
    assert_eq!(story.plugs, [PlugState::On, PlugState::On]);

    // Nothing of it is cut any more: it waits for as long as it takes.
    for _ in 0..2_000 {
        story.go();
    }
    assert!(story.now.since(since) >= GATE_TIMEOUT.times(3));
    assert_eq!(story.record.phase, Phase::Waiting);
    story.slot = SlotAnswer::Granted;
    story.until(Phase::AwaitingWell);
}

#[test] // promise: A5
fn a5_a_read_that_came_to_nothing_does_not_leave_the_way_to_the_machine_cut() {
    let mut story = Story::new(cutting_plan(Kind::Fabric(Path::ApiServer)), RunPolicy::default());
    story.until(Phase::Restoring);
    story.device = Box::new(|_, _| failed(FailureKind::Busy));
    story.until_call(Action::Status);
    story.go();
    story.device = Box::new(honest);
    story.until(Phase::PoweringOn);
    assert_eq!(
        story.plugs,
        [PlugState::Off, PlugState::On],
        "the port is open before the machine is on"
    );
}

/// Its clock was ahead before it was switched off, and is right again since its boot.
#[test] // promise: A8
fn a8_what_a_new_boot_reports_is_not_held_against_the_clock_of_the_one_before() {
    let mut story = Story::new(bmc_plan(), RunPolicy::default());
    story.node(|node| node.signs.reported = Some(Time(10_000_000_000)));
    story.record.signs_at_open.reported = Some(Time(10_000_000_000));
    story.until(Phase::AwaitingWell).boots();
    story.until(Phase::Final(FinalReason::Remedied));
}

fn plan_of_two_feeds() -> Plan {
    let methods = vec![power("pdu-a", Feed::Part), power("pdu-b", Feed::Part)];
    Plan { methods, power: vec![stage(Execution::All, &[0, 1])], ..bmc_plan() }
}

#[test] // promise: A14
fn a14_a_machine_that_is_well_on_one_feed_is_not_done_while_another_is_off() {
    let well_on_one = || {
        let policy = RunPolicy { device_timeout: Span::minutes(10), ..RunPolicy::default() };
        let mut story = Story::new(plan_of_two_feeds(), policy);
        story.device = Box::new(|operation, plugs| {
            let is_dead = operation.method == 1 && *plugs == [PlugState::On, PlugState::Off];
            if is_dead { silent(operation, plugs) } else { honest(operation, plugs) }
        });
        story.until(Phase::AwaitingDevice).boots();
        story
    };
    let mut answers = well_on_one();
    for _ in 0..20 {
        answers.go();
    }
    assert_eq!(answers.record.phase, Phase::AwaitingDevice);
    answers.device = Box::new(honest);
    answers.until(Phase::Final(FinalReason::Remedied));
    assert_eq!(answers.plugs, [PlugState::On, PlugState::On]);

    let mut silent_on = well_on_one();
    silent_on.until(Phase::Final(FinalReason::RecoveredByHand));
    assert!(silent_on.notices.contains(&Notice::Parked(ParkReason::DeviceUnreachable)));
    let left_off = silent_on.record.parked.as_ref().map(|one| one.powered_off_by_us.clone());
    assert_eq!(left_off, Some(vec![1]));
}

/// Its device says yes to each off and carries out none: the node is well in the boot that it always had.
#[test]
fn a14_a_node_that_is_well_after_offs_that_never_landed_is_let_go() {
    let mut story = story();
    story.device = Box::new(lying);
    story.until(Phase::Parked);
    assert!(matches!(story.parked(), Some(ParkReason::OffNotVerified { .. })));
    story.device = Box::new(honest);
    story.wakes().until(Phase::Final(FinalReason::RecoveredByHand));
    assert!(!story.released() && !story.record.marks.quarantine);
    assert_eq!(story.plugs, [PlugState::On]);
}

/// One feed is off, and the device of the other was silent for so long that a person is told.
fn second_feed_falls_silent() -> Story {
    let policy = RunPolicy { device_timeout: Span::minutes(10), ..RunPolicy::default() };
    let mut story = Story::new(plan_of_two_feeds(), policy);
    story.device = Box::new(|operation, plugs| {
        let is_dead = operation.method == 1 && plugs[0] == PlugState::Off;
        if is_dead { silent(operation, plugs) } else { honest(operation, plugs) }
    });
    story.until(Phase::Parked);
    story
}

/// The device of the second feed answers after all.
#[test]
fn a12_a_second_feed_that_answers_after_its_time_is_switched_off_too() {
    let mut story = second_feed_falls_silent();
    assert_eq!(story.parked(), Some(&ParkReason::DeviceUnreachable));
    assert_eq!(story.plugs, [PlugState::Off, PlugState::On]);
    story.device = Box::new(honest);
    story.until(Phase::Releasing);
    assert_eq!(story.plugs, [PlugState::Off, PlugState::Off]);
    story.until(Phase::AwaitingWell);
    assert_eq!(story.plugs, [PlugState::On, PlugState::On]);
}

/// The same where the node is well on the other feed meanwhile: what is off is switched on, and nothing else off.
#[test]
fn a14_a_second_feed_that_answers_after_its_time_does_not_cut_a_node_that_is_well() {
    let mut story = second_feed_falls_silent();
    story.wakes();
    let offs = story.count(Action::Off);
    story.device = Box::new(honest);
    story.until(Phase::Final(FinalReason::Remedied));
    assert_eq!((story.plugs.clone(), story.count(Action::Off)), (vec![PlugState::On; 2], offs));
}

#[test] // promise: A2
fn a2_a_feed_that_goes_off_late_of_a_machine_that_is_well_on_another_is_switched_on_again() {
    let mut plan = plan_of_two_feeds();
    plan.methods.iter_mut().for_each(|one| one.late_effect = Span::seconds(30));
    let mut story = Story::new(plan.clone(), RunPolicy::default());
    story.until(Phase::AwaitingWell).boots();
    assert_eq!(story.plugs, [PlugState::On, PlugState::On]);
    let on_at = story.now;
    story.plugs[0] = PlugState::Off;
    story.until(Phase::Final(FinalReason::Remedied));
    assert_eq!(story.plugs, [PlugState::On, PlugState::On]);
    assert!(story.now.since(on_at) >= Span::seconds(30), "nothing can come late any more");
    assert_eq!(story.count(Action::Off), 2, "it is not cut for it");

    // A person was told of the other one, which takes no `on`, and switched it on by hand.
    let mut told = Story::new(plan.clone(), RunPolicy { retries: 0, ..RunPolicy::default() });
    told.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (1, Action::On) => failed(FailureKind::Device),
        _ => honest(operation, plugs),
    });
    told.until(Phase::Parked).boots();
    assert_eq!(told.record.parked.as_ref().map(|one| one.powered_off_by_us.clone()), Some(vec![1]));
    told.plugs = vec![PlugState::Off, PlugState::On];
    told.until(Phase::Final(FinalReason::RecoveredByHand));
    assert_eq!(told.plugs, [PlugState::On, PlugState::On]);

    // One that cannot be read once more is no reason to keep a well node from its pods.
    let mut dead = Story::new(plan, RunPolicy::default());
    dead.until(Phase::AwaitingWell).boots();
    dead.device = Box::new(silent);
    dead.until(Phase::Final(FinalReason::Remedied));
}

/// The device takes no `on`, and somebody switches the machine on by hand: nobody is told that it is off.
#[test] // promise: A13
fn a13_a_machine_that_is_on_although_its_device_took_no_on_is_waited_for() {
    let mut story = story();
    story.until(Phase::PoweringOn);
    story.device = Box::new(|operation, plugs| match operation.action {
        Action::On => not_attempted(FailureKind::Protocol),
        Action::Status | Action::Off | Action::Reset | Action::Monitor => honest(operation, plugs),
    });
    story.until(Phase::Backoff);
    story.plugs[0] = PlugState::On;
    story.until(Phase::AwaitingWell);
    assert_eq!(
        (story.parked(), story.record.on_failed.len()),
        (None, 1),
        "its device stays closed"
    );
    story.boots().until(Phase::Final(FinalReason::Remedied));
}

#[test]
fn a_dump_and_the_boot_after_it_hold_power_off_back_for_the_grace() {
    let grace = Span::minutes(3);
    let policy = RunPolicy { kdump_grace: Some(grace), ..RunPolicy::default() };
    for dump in [Dump::Told, Dump::Heard] {
        let mut cut = Story::new(bmc_plan(), policy.clone());
        cut.view.dump = dump;
        cut.until(Phase::AwaitingPower);
        let since = cut.now;
        let hold = Notice::Held { reason: Hold::Dump { until: since.after(grace) } };
        cut.until_call(Action::Off);
        assert!(cut.notices.contains(&hold), "{:?}", cut.notices);
        assert_eq!(cut.record.dump_held_at, Some(since));
        assert_eq!(cut.now, since.after(grace), "power is cut when the grace is over");

        let mut ends = Story::new(bmc_plan(), policy.clone());
        ends.view.dump = dump;
        ends.until(Phase::AwaitingPower);
        for _ in 0..5 {
            ends.go();
        }
        assert_eq!(ends.record.phase, Phase::AwaitingPower);
        ends.view.dump = Dump::None;
        let since = ends.record.dump_held_at.unwrap_or_default();
        ends.until_call(Action::Off);
        assert_eq!(ends.now, since.after(grace), "it boots by itself when the dump is over");
    }

    let mut heedless = story();
    heedless.view.dump = Dump::Heard;
    heedless.until_call(Action::Off);
    assert_eq!(heedless.record.dump_held_at, None, "a dump is not waited for unless it is said");
}

#[test] // promise: A15
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
    let node = replaced.view.node.as_ref().expect("a node");
    assert!(
        node.quarantined && !node.out_of_service_by_us,
        "no new pods for what never runs again"
    );

    // Its group ends it while it is off by us: at the latest, the `on` finds that out.
    for ends_at in [Phase::Releasing, Phase::PoweringOn] {
        let mut ended = story();
        ended.holders = true;
        ended.until(ends_at);
        ended.device = Box::new(|call, _| match call.action {
            Action::On => End::Indeterminate,
            Action::Status | Action::Off | Action::Reset | Action::Monitor => {
                succeeded(PlugState::Terminated)
            }
        });
        ended.now = ended.now.after(Span::seconds(16));
        ended.until(Phase::Final(FinalReason::Replaced));
        assert!(ended.hit(Rule::A15) && ended.count(Action::On) <= 1, "{ends_at:?}");
    }

    let mut another = story();
    another.until(Phase::ReadingIdentity);
    another.view.node.iter_mut().for_each(|node| node.uid = "uid-b".to_string());
    another.until(Phase::Final(FinalReason::NodeGone));
    assert_eq!(another.count(Action::Off), 0);
}

#[test] // promise: A15
fn a15_what_is_still_cut_stays_told_of_when_its_node_is_deleted() {
    let mut story = Story::new(cutting_plan(Kind::Fabric(Path::ApiServer)), RunPolicy::default());
    story.device = Box::new(|operation, plugs| match operation.method {
        0 => failed(FailureKind::Unauthenticated),
        _ => honest(operation, plugs),
    });
    story.until(Phase::Parked);
    story.view.node = None;
    for _ in 0..10 {
        story.go();
    }
    assert_eq!(story.record.phase, Phase::Parked);
}

#[test] // promise: A19
fn a19_a_slot_is_held_until_the_node_is_well() {
    let mut story = story();
    story.until(Phase::AwaitingWell);
    story.until_now(Span::minutes(14));
    assert_eq!((story.record.phase, story.record.slot), (Phase::AwaitingWell, Slot::Held));
    story.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(story.record.slot, Slot::Free);
    assert!(story.hit(Rule::A19));

    // A machine that takes longer than machines may keeps nobody else waiting, whoever is next.
    let mut slow = self::story();
    slow.until(Phase::AwaitingWell);
    slow.until(Phase::Parked);
    assert_eq!(slow.record.slot, Slot::Free);

    let mut waiting = self::story();
    waiting.device = Box::new(silent);
    waiting.until(Phase::AwaitingDevice);
    assert_eq!(waiting.record.slot, Slot::Free);
    waiting.device = Box::new(honest);
    waiting.until_call(Action::Off);
    assert_eq!(waiting.record.slot, Slot::Held, "taken again before the next off");
}

/// Somebody switches one feed on while it is verified, and the machine is well on it. The other one is dark because of us.
#[test]
fn a2_a_feed_that_a_person_was_told_of_is_switched_on_once_the_machine_is_well_on_the_other() {
    let mut story =
        Story::new(plan_of_two_feeds(), RunPolicy { retries: 0, ..RunPolicy::default() });
    story.until(Phase::VerifyingOff);
    story.plugs[0] = PlugState::On;
    story.until(Phase::Parked);
    assert!(matches!(story.parked(), Some(ParkReason::OffNotVerified { .. })));
    story.boots().until(Phase::Final(FinalReason::RecoveredByHand));
    assert_eq!(story.plugs, [PlugState::On, PlugState::On]);
}
