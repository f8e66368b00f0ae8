//! A5, A8, A12, A14, A15 and A19: what is known and what is held while an incident waits for a machine, a device, a
//! person.

use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::vec;

use super::{cutting_plan, driver};
use crate::tests::driver::{Driver, honest, lying, silent};
use crate::tests::fixtures::{bmc_plan, failed, not_attempted, power, stage, succeeded};
use crate::*;

#[test] // promise: A8
fn a8_a_person_is_told_what_the_plugs_read_when_the_node_does_not_come_back() {
    for found in [PlugState::Off, PlugState::On] {
        let mut driver = driver();
        driver.until(Phase::AwaitingHealthy);
        driver.device = Box::new(move |_, _| succeeded(found));
        let reads = driver.count(Action::Status);
        driver.until(Phase::Parked);
        assert_eq!(driver.parked(), Some(&ParkReason::NotHealthy));
        assert_eq!((driver.count(Action::Status) - reads, driver.count(Action::On)), (1, 1));
        let left_off = driver.record.parked.as_ref().map(|parked| parked.powered_off_by_us.len());
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
        let mut driver = Driver::new(plan, IncidentPolicy::default());
        driver.until(Phase::AwaitingHealthy).until_now(waited);
        driver.event(Event::Command(Command::Abort));
        driver.until(Phase::Parked);
        let left_off = driver.record.parked.as_ref().map(|parked| parked.powered_off_by_us.len());
        assert_eq!(left_off, Some(usize::from(waited == Span::ZERO)), "{waited:?}");
    }
}

/// A cloud API that is asked too often took nothing in, so that is no try of anything.
#[test] // promise: A12
fn a12_a_device_that_asks_for_patience_is_waited_for() {
    let policy = IncidentPolicy { device_timeout: Span::minutes(10), ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_plan(), policy);
    driver.device = Box::new(|_, _| failed(FailureKind::Throttled));
    driver.until(Phase::AwaitingDevice);
    let since = driver.now;
    driver.until(Phase::Parked);
    assert!(driver.now.since(since) >= Span::minutes(10));
    assert_eq!((driver.record.retries, driver.count(Action::Off)), (0, 0));
    driver.device = Box::new(honest);
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.count(Action::Off), 1);
}

/// What may still come by itself is not asked for again, and nobody is told meanwhile that it failed.
#[test]
fn an_on_is_waited_for_as_long_as_its_device_may_take() {
    let mut plan = bmc_plan();
    plan.methods[0].late_effect = ON_TIMEOUT.times(4);
    let mut driver = Driver::new(plan, IncidentPolicy { retries: 1, ..IncidentPolicy::default() });
    driver.until_call(Action::On);
    let asked = driver.now;
    driver.device = Box::new(|_, _| succeeded(PlugState::Off));
    driver.until_now(ON_TIMEOUT.times(3));
    assert_eq!((driver.record.phase, driver.count(Action::On)), (Phase::PoweringOn, 1));
    assert!(driver.now.since(asked) < ON_TIMEOUT.times(4));
    driver.device = Box::new(honest);
    driver.plugs[0] = PlugState::On;
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.count(Action::On), 1);
}

/// Nothing left the process, for the off, for a read, or for the on: that is no try of anything, and no device is
/// closed for it.
#[test] // promise: A12
fn a12_a_call_that_was_not_made_is_no_refusal_of_the_device() {
    for action in [Action::Off, Action::Status, Action::On] {
        let mut driver = driver();
        driver.until_call(Action::On);
        if action != Action::On {
            driver = self::driver();
        }
        driver.device = Box::new(move |operation, plugs| {
            if operation.action == action || operation.action == Action::Monitor {
                return not_attempted(FailureKind::NotMade);
            }
            honest(operation, plugs)
        });
        driver.until(Phase::AwaitingDevice);
        let since = driver.now;
        while driver.now.since(since) < Span::minutes(60) {
            driver.go();
        }
        let stands = (driver.record.phase, driver.record.retries, driver.record.on_failed.len());
        assert_eq!(stands, (Phase::AwaitingDevice, 0, 0), "{action:?}");
        driver.device = Box::new(honest);
        driver.until(Phase::AwaitingHealthy);
        assert_eq!(driver.plugs, [PlugState::On], "{action:?}");
        driver.boots().until(Phase::Final(FinalReason::Remedied));
    }
}

/// Another process says that it reaches the device: it may lead. What it says may be wrong, so it is not
/// offered again for a while.
#[test] // promise: G16
fn a12_a_leader_that_does_not_reach_a_device_lets_one_lead_that_does() {
    let offers =
        |driver: &Driver| driver.done.iter().filter(|effect| **effect == Effect::HandOver).count();
    let mut driver = Driver::new(bmc_plan(), IncidentPolicy::default());
    driver.device = Box::new(silent);
    driver.until(Phase::AwaitingDevice);
    for _ in 0..20 {
        driver.go();
    }
    assert_eq!(offers(&driver), 0, "nobody else reaches it");
    driver.view.reached_elsewhere = true;
    let since = driver.now;
    while driver.now.since(since) < Span::minutes(9) {
        driver.go();
    }
    assert_eq!((offers(&driver), driver.record.phase), (1, Phase::AwaitingDevice));
    while driver.now.since(since) < Span::minutes(15) {
        driver.go();
    }
    assert_eq!(offers(&driver), 2);
    driver.device = Box::new(honest);
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(offers(&driver), 2, "it does not wait any more");
}

/// What refuses a probe was reached: no more probes every few seconds, which lock accounts, but the
/// tries that there are, and then a person. What starts may say anything, and is waited for.
#[test] // promise: A12
fn a12_a_device_that_refuses_is_not_waited_for() {
    let mut driver = Driver::new(bmc_plan(), IncidentPolicy::default());
    driver.device = Box::new(silent);
    driver.until(Phase::AwaitingDevice);
    let since = driver.now;
    driver.device = Box::new(|_, _| not_attempted(FailureKind::Busy));
    for _ in 0..20 {
        driver.go();
    }
    assert_eq!(driver.record.phase, Phase::AwaitingDevice);
    let probes = driver.count(Action::Monitor);
    driver.device = Box::new(|_, _| not_attempted(FailureKind::Unauthenticated));
    driver.until(Phase::Parked);
    assert!(driver.now.since(since) < Span::minutes(15), "{:?}", driver.now.since(since));
    assert!(matches!(driver.parked(), Some(ParkReason::MethodFailed { .. })));
    assert_eq!(driver.count(Action::Monitor), probes + 1);
}

/// Between the yes and the end of what the manifest says that an effect may take, an off that does not
/// show is waited for, and not sent again.
#[test] // promise: A7
fn a7_an_off_that_may_still_come_is_not_asked_for_again() {
    let mut plan = bmc_plan();
    plan.methods[0].late_effect = Span::seconds(120);
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.device = Box::new(|operation, plugs| match operation.action {
        Action::Off => succeeded(PlugState::Transitioning),
        Action::Status | Action::On | Action::Reset | Action::Monitor => honest(operation, plugs),
    });
    driver.until(Phase::VerifyingOff);
    let since = driver.now;
    driver.until(Phase::Backoff);
    let waited = driver.now.since(since);
    assert!(waited >= Span::seconds(120) && waited < Span::seconds(130), "{waited:?}");
    assert_eq!(driver.count(Action::Off), 1);
}

#[test] // promise: A14
fn a14_a_gate_that_stays_closed_over_a_machine_that_may_be_off_is_told_of() {
    let policy = IncidentPolicy { restarts: 1, ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_plan(), policy);
    driver.device = Box::new(|operation, plugs| {
        if operation.action == Action::Status && plugs[0] == PlugState::Off {
            return failed(FailureKind::Unauthenticated);
        }
        honest(operation, plugs)
    });
    driver.until_call(Action::Off);
    driver.view.gate.refusals.push(Refusal::NoLease);
    driver.until(Phase::Waiting);
    let since = driver.now;
    driver.until(Phase::Parked);
    assert!(driver.now.since(since) >= GATE_TIMEOUT && driver.hit(Rule::A14));
    assert_eq!(driver.parked(), Some(&ParkReason::GateClosed));
    let left_off = driver.record.parked.as_ref().map(|parked| parked.powered_off_by_us.len());
    assert_eq!(left_off, Some(1));
}

/// The device that is to switch a machine on again is silent until a person is told. When it answers, or somebody
/// says so, the machine is switched on, although nothing may be cut then.
#[test] // promise: A2
fn a2_a_machine_that_a_silent_device_left_off_is_switched_on_whatever_the_gate_says() {
    for says_retry in [false, true] {
        let policy =
            IncidentPolicy { device_timeout: Span::minutes(10), ..IncidentPolicy::default() };
        let mut driver = Driver::new(bmc_plan(), policy);
        driver.until(Phase::PoweringOn);
        driver.device = Box::new(silent);
        driver.until(Phase::Parked);
        assert_eq!(driver.parked(), Some(&ParkReason::DeviceUnreachable));
        driver.view.gate.refusals.push(Refusal::NoLease);
        if says_retry {
            driver.event(Event::Command(Command::Retry));
        }
        driver.device = Box::new(honest);
        driver.until(Phase::AwaitingHealthy);
        assert_eq!((driver.count(Action::Off), driver.plugs[0]), (1, PlugState::On));
        driver.boots().until(Phase::Final(FinalReason::Remedied));
    }
}

/// A machine is well on one of its feeds; the other one, which we switched off, is still waited for,
/// and a person is told of it when its device stays silent.
#[test] // promise: A14
fn a14_a_gate_that_is_closed_when_a_pass_begins_anew_does_not_leave_the_node_cut() {
    let policy = IncidentPolicy { restarts: 1, ..IncidentPolicy::default() };
    let mut driver = Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), policy);
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 => failed(FailureKind::Busy),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::Backoff);
    driver.view.gate.refusals.push(Refusal::NoLease);
    driver.until(Phase::Waiting);
    assert_eq!(driver.record.restarts, 1);
    let closed_at = driver.now;
    driver.until(Phase::Restoring);
    assert!(driver.now.since(closed_at) >= GATE_TIMEOUT);
    let on = |one: &&Operation| one.method == 1 && one.action == Action::On;
    driver.until(Phase::Waiting);
    assert_eq!(driver.record.operations.iter().filter(on).count(), 1, "the port is open again");
}

/// Whoever has the slot may have promised to be one of so many, and keeps it for as long as its own incident lasts.
#[test] // promise: A14
fn a14_a_slot_that_others_keep_does_not_leave_the_node_cut() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), IncidentPolicy::default());
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 => silent(operation, plugs),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::AwaitingDevice);
    assert_eq!((driver.plugs[1], driver.record.slot), (PlugState::Off, Slot::Free));
    (driver.device, driver.slot) = (Box::new(honest), SlotAnswer::Refused);
    let since = driver.now;
    driver.until(Phase::Restoring);
    assert!(driver.now.since(since) >= GATE_TIMEOUT && driver.hit(Rule::A14));
    assert_eq!(driver.count(Action::Off), 1, "the port alone");
    driver.until(Phase::Waiting);
    assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);

    // Nothing of it is cut any more: it waits for as long as it takes.
    for _ in 0..2_000 {
        driver.go();
    }
    assert!(driver.now.since(since) >= GATE_TIMEOUT.times(3));
    assert_eq!(driver.record.phase, Phase::Waiting);
    driver.slot = SlotAnswer::Granted;
    driver.until(Phase::AwaitingHealthy);
}

#[test] // promise: A5
fn a5_a_read_that_came_to_nothing_does_not_leave_the_way_to_the_machine_cut() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), IncidentPolicy::default());
    driver.until(Phase::Restoring);
    driver.device = Box::new(|_, _| failed(FailureKind::Busy));
    driver.until_call(Action::Status);
    driver.go();
    driver.device = Box::new(honest);
    driver.until(Phase::PoweringOn);
    assert_eq!(
        driver.plugs,
        [PlugState::Off, PlugState::On],
        "the port is open before the machine is on"
    );
}

/// Its clock was ahead before it was switched off, and is right again since its boot.
#[test] // promise: A8
fn a8_what_a_new_boot_reports_is_not_held_against_the_clock_of_the_one_before() {
    let mut driver = Driver::new(bmc_plan(), IncidentPolicy::default());
    driver.node(|node| node.liveness.reported = Some(Time(10_000_000_000)));
    driver.record.liveness_at_open.reported = Some(Time(10_000_000_000));
    driver.until(Phase::AwaitingHealthy).boots();
    driver.until(Phase::Final(FinalReason::Remedied));
}

fn plan_of_two_feeds() -> Plan {
    let methods = vec![power("pdu-a", Feed::Part), power("pdu-b", Feed::Part)];
    Plan { methods, power: vec![stage(Execution::All, &[0, 1])], ..bmc_plan() }
}

#[test] // promise: A14
fn a14_a_machine_that_is_well_on_one_feed_is_not_done_while_another_is_off() {
    let well_on_one = || {
        let policy =
            IncidentPolicy { device_timeout: Span::minutes(10), ..IncidentPolicy::default() };
        let mut driver = Driver::new(plan_of_two_feeds(), policy);
        driver.device = Box::new(|operation, plugs| {
            let is_dead = operation.method == 1 && *plugs == [PlugState::On, PlugState::Off];
            if is_dead { silent(operation, plugs) } else { honest(operation, plugs) }
        });
        driver.until(Phase::AwaitingDevice).boots();
        driver
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
    let mut driver = driver();
    driver.device = Box::new(lying);
    driver.until(Phase::Parked);
    assert!(matches!(driver.parked(), Some(ParkReason::OffNotVerified { .. })));
    driver.device = Box::new(honest);
    driver.wakes().until(Phase::Final(FinalReason::RecoveredByHand));
    assert!(!driver.released() && !driver.record.marks.quarantine);
    assert_eq!(driver.plugs, [PlugState::On]);
}

/// One feed is off, and the device of the other was silent for so long that a person is told.
fn second_feed_falls_silent() -> Driver {
    let policy = IncidentPolicy { device_timeout: Span::minutes(10), ..IncidentPolicy::default() };
    let mut driver = Driver::new(plan_of_two_feeds(), policy);
    driver.device = Box::new(|operation, plugs| {
        let is_dead = operation.method == 1 && plugs[0] == PlugState::Off;
        if is_dead { silent(operation, plugs) } else { honest(operation, plugs) }
    });
    driver.until(Phase::Parked);
    driver
}

/// The device of the second feed answers after all.
#[test]
fn a12_a_second_feed_that_answers_after_its_time_is_switched_off_too() {
    let mut driver = second_feed_falls_silent();
    assert_eq!(driver.parked(), Some(&ParkReason::DeviceUnreachable));
    assert_eq!(driver.plugs, [PlugState::Off, PlugState::On]);
    driver.device = Box::new(honest);
    driver.until(Phase::Releasing);
    assert_eq!(driver.plugs, [PlugState::Off, PlugState::Off]);
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);
}

/// The same where the node is well on the other feed meanwhile: what is off is switched on, and nothing else off.
#[test]
fn a14_a_second_feed_that_answers_after_its_time_does_not_cut_a_node_that_is_well() {
    let mut driver = second_feed_falls_silent();
    driver.wakes();
    let offs = driver.count(Action::Off);
    driver.device = Box::new(honest);
    driver.until(Phase::Final(FinalReason::Remedied));
    assert_eq!((driver.plugs.clone(), driver.count(Action::Off)), (vec![PlugState::On; 2], offs));
}

#[test] // promise: A2
fn a2_a_feed_that_goes_off_late_of_a_machine_that_is_well_on_another_is_switched_on_again() {
    let mut plan = plan_of_two_feeds();
    plan.methods.iter_mut().for_each(|one| one.late_effect = Span::seconds(30));
    let mut driver = Driver::new(plan.clone(), IncidentPolicy::default());
    driver.until(Phase::AwaitingHealthy).boots();
    assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);
    let on_at = driver.now;
    driver.plugs[0] = PlugState::Off;
    driver.until(Phase::Final(FinalReason::Remedied));
    assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);
    assert!(driver.now.since(on_at) >= Span::seconds(30), "nothing can come late any more");
    assert_eq!(driver.count(Action::Off), 2, "it is not cut for it");

    // A person was told of the other one, which takes no `on`, and switched it on by hand.
    let mut told =
        Driver::new(plan.clone(), IncidentPolicy { retries: 0, ..IncidentPolicy::default() });
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
    let mut dead = Driver::new(plan, IncidentPolicy::default());
    dead.until(Phase::AwaitingHealthy).boots();
    dead.device = Box::new(silent);
    dead.until(Phase::Final(FinalReason::Remedied));
}

/// The device takes no `on`, and somebody switches the machine on by hand: nobody is told that it is off.
#[test] // promise: A13
fn a13_a_machine_that_is_on_although_its_device_took_no_on_is_waited_for() {
    let mut driver = driver();
    driver.until(Phase::PoweringOn);
    driver.device = Box::new(|operation, plugs| match operation.action {
        Action::On => not_attempted(FailureKind::Protocol),
        Action::Status | Action::Off | Action::Reset | Action::Monitor => honest(operation, plugs),
    });
    driver.until(Phase::Backoff);
    driver.plugs[0] = PlugState::On;
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(
        (driver.parked(), driver.record.on_failed.len()),
        (None, 1),
        "its device stays closed"
    );
    driver.boots().until(Phase::Final(FinalReason::Remedied));
}

#[test]
fn a_dump_and_the_boot_after_it_hold_power_off_back_for_the_grace() {
    let grace = Span::minutes(3);
    let policy = IncidentPolicy { kdump_grace: Some(grace), ..IncidentPolicy::default() };
    for dump in [Dump::Told, Dump::Heard] {
        let mut cut = Driver::new(bmc_plan(), policy.clone());
        cut.view.dump = dump;
        cut.until(Phase::AwaitingPower);
        let since = cut.now;
        let hold = Notice::Held { reason: Hold::Dump { until: since.after(grace) } };
        cut.until_call(Action::Off);
        assert!(cut.notices.contains(&hold), "{:?}", cut.notices);
        assert_eq!(cut.record.dump_held_at, Some(since));
        assert_eq!(cut.now, since.after(grace), "power is cut when the grace is over");

        let mut ends = Driver::new(bmc_plan(), policy.clone());
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

    let mut heedless = driver();
    heedless.view.dump = Dump::Heard;
    heedless.until_call(Action::Off);
    assert_eq!(heedless.record.dump_held_at, None, "a dump is not waited for unless it is said");
}

#[test] // promise: A15
fn a15_the_node_is_gone_or_its_machine_is_terminated() {
    let mut gone = driver();
    gone.holders = true;
    gone.until(Phase::Releasing);
    gone.view.node = None;
    gone.until(Phase::Final(FinalReason::NodeGone));
    assert_eq!(gone.count(Action::On), 1, "what we switched off is switched on");

    let mut replaced = driver();
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
        let mut ended = driver();
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

    let mut another = driver();
    another.until(Phase::ReadingIdentity);
    another.view.node.iter_mut().for_each(|node| node.uid = "uid-b".to_string());
    another.until(Phase::Final(FinalReason::NodeGone));
    assert_eq!(another.count(Action::Off), 0);
}

#[test] // promise: A15
fn a15_what_is_still_cut_stays_told_of_when_its_node_is_deleted() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), IncidentPolicy::default());
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 => failed(FailureKind::Unauthenticated),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::Parked);
    driver.view.node = None;
    for _ in 0..10 {
        driver.go();
    }
    assert_eq!(driver.record.phase, Phase::Parked);
}

#[test] // promise: A19
fn a19_a_slot_is_held_until_the_node_is_well() {
    let mut driver = driver();
    driver.until(Phase::AwaitingHealthy);
    driver.until_now(Span::minutes(14));
    assert_eq!((driver.record.phase, driver.record.slot), (Phase::AwaitingHealthy, Slot::Held));
    driver.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(driver.record.slot, Slot::Free);
    assert!(driver.hit(Rule::A19));

    // A machine that takes longer than machines may keeps nobody else waiting, whoever is next.
    let mut slow = self::driver();
    slow.until(Phase::AwaitingHealthy);
    slow.until(Phase::Parked);
    assert_eq!(slow.record.slot, Slot::Free);

    let mut waiting = self::driver();
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
    let mut driver = Driver::new(
        plan_of_two_feeds(),
        IncidentPolicy { retries: 0, ..IncidentPolicy::default() },
    );
    driver.until(Phase::VerifyingOff);
    driver.plugs[0] = PlugState::On;
    driver.until(Phase::Parked);
    assert!(matches!(driver.parked(), Some(ParkReason::OffNotVerified { .. })));
    driver.boots().until(Phase::Final(FinalReason::RecoveredByHand));
    assert_eq!(driver.plugs, [PlugState::On, PlugState::On]);
}
