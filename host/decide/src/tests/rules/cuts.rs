//! What isolation cut: until when it stays, who may give it back, and what is released behind it.

mod boots;
mod doubted;
mod given_back;
mod refuted;
mod undone;

use alloc::boxed::Box;
use alloc::vec;

use super::*;
use crate::tests::driver::{honest, silent};
use crate::tests::fixtures::{
    DRIVER, failed, liveness, not_attempted, paused_by_alice, storage, storm, succeeded,
};

/// A plan that cuts storage and does nothing else.
fn storage_only() -> Plan {
    let mut plan = cutting_plan(storage());
    plan.power = vec![];
    plan.methods[0].kind = Kind::Watch;
    plan
}

fn driver_of(plan: Plan) -> Driver {
    Driver::new(plan, IncidentPolicy::default())
}

fn cut_undone(failure: Option<&str>) -> ParkReason {
    ParkReason::CutUndone { method: "switch".into(), failure: failure.map(Into::into) }
}

/// A device that can be read, and does not cut: it says why, or nobody hears it.
fn cutting_nothing(kind: FailureKind) -> impl Fn(&Operation, &mut [PlugState]) -> End {
    move |operation, plugs| match operation.action {
        Action::Off if kind == FailureKind::Unreachable => not_attempted(kind),
        Action::Off => failed(kind),
        Action::Status | Action::On | Action::Reset | Action::Monitor => honest(operation, plugs),
    }
}

/// The device of the cut (method 1) is honest; the other one is silent.
fn dead_bmc(driver: &mut Driver) {
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 => failed(FailureKind::Unreachable),
        _ => honest(operation, plugs),
    });
}

/// Who deletes the Node of a machine that isolation cut off lets its pods run elsewhere, and may not know that
/// the machine still runs. What was cut stays cut, and is told of, until somebody says that it is off.
#[test] // promise: A15
fn what_was_cut_stays_cut_when_the_node_is_deleted() {
    for deleted_at in [Phase::Releasing, Phase::AwaitingHealthy] {
        let mut plan = cutting_plan(storage());
        plan.power = vec![];
        plan.methods[0].kind = Kind::Watch;
        let mut driver = Driver::new(plan, IncidentPolicy::default());
        driver.until(deleted_at);
        assert_eq!(driver.plugs[1], PlugState::Off);
        driver.view.node = None;
        driver.view.trigger = Crossing::Unclear;
        driver.until(Phase::Parked);
        assert_eq!(driver.parked(), Some(&ParkReason::StillCut), "{deleted_at:?}");
        assert_eq!(driver.record.parked.as_ref().map(|one| one.still_cut.clone()), Some(vec![1]));
        driver.event(Event::Command(Command::Retry));
        driver.until(Phase::Parked);
        let word = |boot: &str| Command::ConfirmOff { by: "ada".into(), boot_id: boot.into() };
        driver.event(Event::Command(word("another boot")));
        driver.go();
        assert_eq!((driver.record.phase, driver.plugs[1]), (Phase::Parked, PlugState::Off));
        driver.event(Event::Command(word(BOOT)));
        driver.until(Phase::Final(FinalReason::NodeGone));
        assert_eq!(driver.plugs[1], PlugState::On, "{deleted_at:?}");
    }
}

/// Nothing was released by us, but a pod or an attachment that stood there before the cut is gone by
/// somebody's force: it may run elsewhere, so the gate that closes does not undo the cut.
#[test] // promise: A5
fn what_vanished_behind_a_cut_counts_as_released() {
    type Vanish = fn(&mut View);
    let vanish: [Vanish; 3] =
        [|_| (), |view| view.pods.retain(|pod| pod.uid != "db-0"), |view| view.attachments.clear()];
    for (case, vanish) in vanish.into_iter().enumerate() {
        let grades = [Grade::PowerOffVerified].into();
        let policy = IncidentPolicy { grades, ..IncidentPolicy::default() };
        let mut driver = Driver::new(cutting_plan(storage()), policy);
        driver.until(Phase::ReadingIdentity);
        assert_eq!(driver.plugs[1], PlugState::Off);
        vanish(&mut driver.view);
        driver.event(Event::Command(Command::Abort));
        if case == 0 {
            driver.until(Phase::Final(FinalReason::Aborted));
            assert_eq!(driver.plugs[1], PlugState::On, "{case}");
        } else {
            driver.until(Phase::Parked);
            assert_eq!(driver.parked(), Some(&ParkReason::StillCut), "{case}");
            assert_eq!(driver.plugs[1], PlugState::Off, "{case}");
            driver.boots();
            driver.until(Phase::Final(FinalReason::RecoveredByHand));
            assert_eq!(driver.plugs[1], PlugState::On, "{case}");
        }
    }
}

/// The cut is undone by somebody while its pods are being released: nothing more is released, it is cut
/// again, and a person is told.
#[test] // promise: A16
fn a16_a_cut_is_read_again_before_a_batch() {
    let mut driver = driver_of(storage_only());
    driver.holders = true;
    driver.until(Phase::Releasing);
    driver.until_now(Span::seconds(5));
    assert!(driver.did(|one| matches!(one, Effect::DeletePods(_))).is_some());
    driver.plugs[1] = PlugState::On;
    driver.until_now(CUT_READ_AGE_MAX.times(2));
    driver.holders = false;
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&cut_undone(None)));
    assert!(driver.did(|one| matches!(one, Effect::DeleteAttachments(_))).is_none());
    assert_eq!((driver.plugs[1], driver.count(Action::Off)), (PlugState::Off, 2));
    assert!(driver.notices.contains(&Notice::ProofVoided { reads_on: Some(1) }));
    driver.view.attachments.clear();
    driver.view.pods.clear();
    driver.boots();
    driver.until(Phase::Final(FinalReason::RecoveredByHand));
    assert_eq!(driver.plugs[1], PlugState::On);
}

/// Two switches that take their time: when the second has answered, the first one's answer is old. Both
/// were read in one round, and the release goes on.
#[test] // promise: A16
fn a16_cuts_that_are_slow_to_read_are_read_in_one_round() {
    let mut plan = storage_only();
    let mut second = plan.methods[1].clone();
    second.name = "second-switch".into();
    plan.methods.push(second);
    plan.isolation = vec![stage(Execution::All, &[1, 2])];
    let mut driver = driver_of(plan);
    driver.plugs.resize(3, PlugState::On);
    driver.call_takes = Span::seconds(4);
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.released());
}

/// Everything is released and the machine may run on behind its cut: that is read for as long as it may.
#[test] // promise: A16
fn a16_a_cut_is_read_for_as_long_as_the_machine_may_run() {
    let mut driver = driver_of(storage_only());
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.released());
    driver.plugs[1] = PlugState::On;
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&cut_undone(None)));
    assert_eq!(driver.plugs[1], PlugState::Off);
    // Whoever undoes it once more makes two writers once more.
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span::seconds(25));
    assert_eq!((driver.plugs[1], driver.count(Action::Off)), (PlugState::Off, 3));
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&cut_undone(None)));
    // Unless a person wants the machine left alone.
    driver.view.gate.refusals = vec![paused_by_alice()];
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span::minutes(5));
    assert_eq!(driver.count(Action::Off), 3);
}

/// The Node was deleted and its machine registered anew. The boot that pods were released from is cut again when
/// somebody gives its storage back, also where the Node was made by hand and names no boot, or is another machine's,
/// which says nothing of the one that was cut; a boot of that one that began since is let alone: it is theirs.
#[test]
fn a16_a_machine_that_registered_anew_is_cut_again_only_in_the_boot_that_was_cut() {
    for (boot, is_another_machine, cut_again) in [
        (None, false, true),
        (Some(""), false, true),
        (Some("another-boot"), false, false),
        (Some("another-boot"), true, true),
    ] {
        let mut driver = driver_of(storage_only());
        driver.until(Phase::AwaitingHealthy);
        let node = driver.view.node.take().unwrap();
        driver.until(Phase::Parked);
        let boot_id = boot.map_or(node.liveness.boot_id.clone(), Into::into);
        let liveness = Liveness { boot_id, ..node.liveness.clone() };
        driver.view.node = Some(NodeView { uid: "registered-anew".into(), liveness, ..node });
        driver.view.is_another_machine = is_another_machine;
        driver.plugs[1] = PlugState::On;
        if cut_again {
            driver.until_now(Span::minutes(5));
        } else {
            driver.until(Phase::Final(FinalReason::NodeGone));
        }
        let expected = if cut_again { (PlugState::Off, 2) } else { (PlugState::On, 1) };
        assert_eq!((driver.plugs[1], driver.count(Action::Off)), expected, "{boot:?}");
        let ended = if cut_again { Phase::Parked } else { Phase::Final(FinalReason::NodeGone) };
        assert_eq!(
            driver.record.phase, ended,
            "{boot:?}: a person is told, or nothing is left to do"
        );
    }
}

/// Its Node was deleted behind the cut, which a device does not give back at first.
#[test] // promise: A5
fn a5_a_machine_that_registers_anew_in_a_newer_boot_is_given_back_what_was_cut() {
    let mut driver = driver_of(storage_only());
    driver.until(Phase::AwaitingHealthy);
    let node = driver.view.node.take().unwrap();
    driver.until(Phase::Parked);
    let anew = |boot_id: &str| NodeView {
        uid: "registered-anew".into(),
        liveness: Liveness { boot_id: boot_id.into(), ..node.liveness.clone() },
        ..node.clone()
    };
    driver.view.node = Some(anew(&node.liveness.boot_id));
    driver.until_now(Span::minutes(5));
    assert_eq!((driver.plugs[1], driver.record.phase), (PlugState::Off, Phase::Parked));
    driver.view.node = Some(anew("another-boot"));
    driver.device = Box::new(|operation, plugs| match operation.action {
        Action::On => failed(FailureKind::Device),
        Action::Status | Action::Off | Action::Reset | Action::Monitor => honest(operation, plugs),
    });
    driver.until_now(Span::minutes(30));
    let ons = driver.count(Action::On);
    assert!(ons > 5 && ons < 200, "{ons}: it is tried at leisure");
    driver.device = Box::new(honest);
    driver.until(Phase::Final(FinalReason::NodeGone));
    assert_eq!(driver.plugs[1], PlugState::On);
}

/// A plan that cuts storage and nothing else gives the machine no power, so nobody is told that it did.
#[test] // promise: A17
fn a17_a_person_is_told_what_was_done_and_of_the_same_boot_when_it_is_back() {
    let mut driver = driver_of(storage_only());
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::Isolated));
    driver.wakes();
    driver.until_now(Span::minutes(2));
    assert_eq!(driver.parked(), Some(&ParkReason::SameBootAfterRelease));
    assert_eq!(driver.plugs[1], PlugState::Off);
}

/// Somebody made the Node by hand while its machine was silent, so it names no boot.
#[test] // promise: A5
fn a5_a_boot_that_names_itself_behind_the_cut_is_the_one_that_was_cut() {
    let mut driver = driver_of(storage_only());
    let boot_id = core::mem::take(&mut driver.view.node.as_mut().unwrap().liveness.boot_id);
    driver.record.liveness_at_open.boot_id.clear();
    driver.until(Phase::AwaitingHealthy);
    driver.view.node.as_mut().unwrap().liveness.boot_id = boot_id;
    driver.until_now(Span::minutes(5));
    assert_eq!(driver.plugs[1], PlugState::Off, "its pods may run on");
    driver.boots();
    driver.until(Phase::Final(FinalReason::Remedied));
    assert_eq!(driver.plugs[1], PlugState::On);
}

/// The outlet that was read off feeds nothing, and the Node names its boot only after it voided the proof.
#[test] // promise: A6
fn a6_a_boot_that_voids_its_proof_before_it_names_itself_is_no_newer_one() {
    let mut driver =
        Driver::new(bmc_plan(), IncidentPolicy { restarts: 0, ..IncidentPolicy::default() });
    driver.node(|node| node.liveness.boot_id.clear());
    driver.record.liveness_at_open.boot_id.clear();
    driver.until(Phase::Releasing);
    driver.node(|node| node.liveness.lease_renewed = Some(Time(5)));
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.record.proof.as_ref().is_some_and(|proof| proof.voided_at.is_some()));
    driver.wakes();
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::AliveThoughOff));
}

/// A person's word kept a cut from being made again that was undone behind a release. Once it is taken back it is
/// made again, whatever the gate says, and although the Node is gone by then.
#[test]
fn a17_a_cut_that_a_word_kept_undone_is_made_again_once_the_word_is_taken_back() {
    for node_is_gone in [false, true] {
        let mut driver = driver_of(storage_only());
        driver.until(Phase::AwaitingHealthy);
        driver.view.gate.refusals = vec![paused_by_alice()];
        driver.plugs[1] = PlugState::On;
        driver.until(Phase::Parked);
        assert!(matches!(driver.parked(), Some(ParkReason::LeftAlone { .. })));
        if node_is_gone {
            driver.view.node = None;
        }
        driver.until_now(Span::minutes(2));
        assert_eq!((driver.plugs[1], driver.count(Action::Off)), (PlugState::On, 1));
        driver.view.gate.refusals = vec![storm()];
        driver.until_now(Span::minutes(2));
        assert_eq!((driver.plugs[1], driver.count(Action::Off)), (PlugState::Off, 2));
        assert_eq!(driver.parked(), Some(&cut_undone(None)), "{node_is_gone}");
    }
}

/// A cut that was undone behind a release and cannot be made again is tried for as long as its boot may write,
/// whether or not its Node is there, and the incident says that it is not cut.
#[test]
fn a16_a_cut_that_cannot_be_made_again_is_tried_until_it_is() {
    let kinds = [FailureKind::Device, FailureKind::Unreachable];
    for (node_is_gone, kind) in
        [false, true].into_iter().flat_map(|gone| kinds.map(|it| (gone, it)))
    {
        let mut driver = driver_of(storage_only());
        driver.until(Phase::AwaitingHealthy);
        if node_is_gone {
            driver.view.node = None;
            driver.until(Phase::Parked);
        }
        driver.plugs[1] = PlugState::On;
        driver.device = Box::new(cutting_nothing(kind));
        driver.until_now(Span::minutes(300));
        driver.until(Phase::Parked);
        assert_eq!(driver.parked(), Some(&cut_undone(Some("detail"))), "{node_is_gone}");
        assert_eq!(driver.plugs[1], PlugState::On);
        assert!(driver.record.operations.len() < 100, "{}", driver.record.operations.len());
        driver.device = Box::new(honest);
        driver.until_now(Span::minutes(3));
        driver.until(Phase::Parked);
        assert_eq!(driver.plugs[1], PlugState::Off);
        assert_eq!(driver.parked(), Some(&cut_undone(None)), "{node_is_gone}");
    }
}

/// The node is well in a newer boot and what was cut cannot be given back: that is tried again now and then, and ends
/// when it can.
#[test]
fn a2_what_cannot_be_given_back_to_a_node_that_is_well_is_tried_again_at_leisure() {
    let mut driver = driver_of(storage_only());
    driver.until(Phase::AwaitingHealthy);
    driver.device = Box::new(|operation, plugs| match operation.action {
        Action::On => failed(FailureKind::Device),
        Action::Status | Action::Off | Action::Reset | Action::Monitor => honest(operation, plugs),
    });
    driver.boots();
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::RestoreFailed));
    let (reads, ons) = (driver.count(Action::Status), driver.count(Action::On));
    driver.until_now(Span::minutes(60));
    let (reads, ons) = (driver.count(Action::Status) - reads, driver.count(Action::On) - ons);
    assert!(ons > 10 && ons < 200 && reads < 2_000, "{ons} of {reads}");
    driver.device = Box::new(honest);
    driver.until(Phase::Final(FinalReason::RecoveredByHand));
    assert_eq!(driver.plugs[1], PlugState::On);
}

/// The same where the boot that was told to go off is well, and is left to a person: a look that tries nothing counts no try, as
/// each change of the record is written, and looked at anew.
#[test]
fn a2_a_parked_incident_that_tries_nothing_changes_nothing() {
    let mut driver = Driver::new(refuted::outlet_and_storage(), refuted::proven_by_power());
    driver.until(Phase::VerifyingOff);
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (1, Action::On) => failed(FailureKind::Device),
        _ => honest(operation, plugs),
    });
    driver.wakes();
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::RestoreFailed));
    driver.live(BOOT, 20);
    let tries = |driver: &Driver| (driver.record.attempt, driver.count(Action::On));
    let before = tries(&driver);
    driver.until_now(Span::minutes(5));
    assert_eq!((driver.record.phase, tries(&driver)), (Phase::Parked, before));
}

/// The same where its device cannot be reached, or its Secret not be read: it is probed, and a person is told.
#[test] // promise: A12
fn a12_a_silent_device_that_is_to_give_back_a_cut_is_probed_under_a_node_that_is_well() {
    for kind in [FailureKind::Unreachable, FailureKind::NotMade] {
        let device_timeout = Span::minutes(10);
        let policy = IncidentPolicy { device_timeout, ..IncidentPolicy::default() };
        let mut driver = Driver::new(storage_only(), policy);
        driver.until(Phase::AwaitingHealthy);
        driver.device = Box::new(move |operation, plugs| match operation.action {
            Action::Status => honest(operation, plugs),
            Action::On | Action::Off | Action::Reset | Action::Monitor => not_attempted(kind),
        });
        driver.boots();
        let since = driver.now;
        driver.until(Phase::Parked);
        assert!(driver.now.since(since) >= device_timeout, "{kind:?}");
        assert!(driver.count(Action::On) < 5, "{kind:?}: {} times", driver.count(Action::On));
        driver.device = Box::new(honest);
        driver.until(Phase::Final(FinalReason::Remedied));
        assert_eq!(driver.plugs[1], PlugState::On, "{kind:?}");
    }
}

/// A port is shut, and its condition clears before any power is cut: the node stays silent until the port is open again.
#[test]
fn a12_a_silent_device_that_is_to_give_back_a_cut_is_probed_under_a_node_whose_condition_cleared() {
    for kind in [FailureKind::Unreachable, FailureKind::NotMade] {
        let power_after = Span::minutes(30);
        let policy = IncidentPolicy { power_after, ..IncidentPolicy::default() };
        let mut driver = Driver::new(cutting_plan(Kind::Fabric(Path::ApiServer)), policy);
        driver.until(Phase::AwaitingPower);
        driver.device = Box::new(move |operation, plugs| match operation.action {
            Action::Status => honest(operation, plugs),
            Action::On | Action::Off | Action::Reset | Action::Monitor => not_attempted(kind),
        });
        driver.view.trigger = CLEAR;
        driver.until_now(Span::minutes(5));
        assert_eq!(driver.record.phase, Phase::AwaitingDevice, "{kind:?}");
        assert!(driver.count(Action::On) < 5, "{kind:?}: {} times", driver.count(Action::On));
        driver.device = Box::new(honest);
        driver.until(Phase::Final(FinalReason::Recovered));
        assert_eq!(driver.plugs[1], PlugState::On, "{kind:?}");
    }
}

/// A node that is only cut off does not come back by being cut off once more: a person is told after one
/// `recoverTimeout`, whatever restarts are left.
#[test]
fn a8_a_cut_that_stands_is_no_reason_for_another_pass() {
    let mut driver =
        Driver::new(storage_only(), IncidentPolicy { restarts: 3, ..IncidentPolicy::default() });
    driver.until(Phase::AwaitingHealthy);
    driver.until(Phase::Parked);
    assert_eq!((driver.record.restarts, driver.count(Action::Off)), (0, 1));
}

/// Where power is to follow and its device is dead, pods that lived on the cut storage wait for nobody; the cut
/// is read meanwhile, and one that was undone is no proof again.
#[test] // promise: P1
fn storage_that_is_cut_gives_its_pods_back_although_the_bmc_is_dead() {
    let mut driver = driver_of(cutting_plan(storage()));
    dead_bmc(&mut driver);
    driver.until(Phase::Releasing);
    assert_eq!(driver.record.proof.as_ref().map(|one| one.grade), Some(Grade::StorageFenced));
    driver.until(Phase::AwaitingDevice);
    assert!(driver.released() && driver.view.pods.iter().all(|pod| pod.exempt.is_some()));
    assert!(driver.did(|one| *one == Effect::OutOfService).is_none(), "a part is no reason for it");
    driver.plugs[1] = PlugState::On;
    driver.until(Phase::Isolating);
    driver.until(Phase::AwaitingDevice);
    assert_eq!(driver.plugs[1], PlugState::Off);
    assert!(driver.record.proof.as_ref().is_some_and(|proof| proof.voided_at.is_some()));
    driver.device = Box::new(honest);
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.record.proof.as_ref().map(|one| one.grade), Some(Grade::PowerOffVerified));
    driver.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(driver.plugs, vec![PlugState::On; 2]);
}

/// A driver that attaches nothing stands in no `volumesInUse`: that the kubelet names no volume of it does
/// not say that nobody writes.
#[test] // promise: A5
fn storage_that_no_kubelet_tells_of_is_given_back_to_another_boot_only() {
    let mut driver = driver_of(storage_only());
    driver.until(Phase::AwaitingHealthy);
    driver.wakes();
    driver.until(Phase::Parked);
    assert_eq!(driver.plugs[1], PlugState::Off);
    driver.boots().until(Phase::Final(FinalReason::RecoveredByHand));
    assert_eq!(driver.plugs[1], PlugState::On);
}

/// The device took the off, was silent for `deviceTimeout`, and answers again: what came of the off is read,
/// and the machine comes back.
#[test] // promise: A12
fn a12_a_device_that_answers_again_after_it_took_an_off_is_read() {
    let device_timeout = Span::minutes(2);
    let mut driver =
        Driver::new(bmc_plan(), IncidentPolicy { device_timeout, ..IncidentPolicy::default() });
    driver.until(Phase::VerifyingOff);
    driver.device = Box::new(silent);
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::DeviceUnreachable));
    driver.device = Box::new(honest);
    driver.until(Phase::VerifyingOff);
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.released());
    driver.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!((driver.count(Action::Off), driver.count(Action::On)), (1, 1));
}

/// The taint of a release whose proof does not stand any more is lifted in every phase, whatever the record
/// knows of it: a person's word that was wrong, a predecessor's taint.
#[test] // promise: P2
fn p2_the_out_of_service_taint_never_stands_without_its_proof() {
    let mut driver =
        Driver::new(bmc_plan(), IncidentPolicy { restarts: 1, ..IncidentPolicy::default() });
    driver.device = Box::new(silent);
    driver.until(Phase::AwaitingDevice);
    driver.event(Event::Command(Command::ConfirmOff { by: "ada".into(), boot_id: BOOT.into() }));
    driver.until(Phase::Releasing);
    driver.until_now(Span::seconds(2));
    assert!(driver.did(|one| *one == Effect::OutOfService).is_some());
    driver.wakes();
    driver.view.gate.refusals = vec![paused_by_alice()];
    driver.until_now(Span::seconds(10));
    assert!(
        driver.did(|one| *one == Effect::LiftOutOfService).is_some(),
        "{:?}",
        driver.record.phase
    );

    let mut predecessors = self::driver();
    predecessors.node(|node| (node.out_of_service, node.out_of_service_by_us) = (true, true));
    predecessors.until(Phase::VerifyingOff);
    assert!(predecessors.did(|one| *one == Effect::LiftOutOfService).is_some());
}

/// A kubelet that boots renews its Lease before it reports which boot it runs. The renewal ends the release;
/// whether the boot is another one says only the report.
#[test] // promise: P2
fn p2_which_boot_a_node_runs_says_only_a_report_after_the_proof() {
    let mut driver =
        Driver::new(bmc_plan(), IncidentPolicy { restarts: 0, ..IncidentPolicy::default() });
    driver.until(Phase::Releasing);
    driver.plugs[0] = PlugState::On;
    driver.node(|node| node.liveness.lease_renewed = Some(Time(7)));
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.record.proof.as_ref().is_some_and(|proof| proof.voided_at.is_some()));
    driver.view.attachments.clear();
    driver.view.pods.clear();
    driver.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(driver.count(Action::Off), 1);

    let mut alive =
        Driver::new(bmc_plan(), IncidentPolicy { restarts: 0, ..IncidentPolicy::default() });
    alive.until(Phase::Releasing);
    alive.node(|node| node.liveness = liveness(BOOT, 7));
    alive.until(Phase::Parked);
    assert_eq!(alive.parked(), Some(&ParkReason::AliveThoughOff));
}
