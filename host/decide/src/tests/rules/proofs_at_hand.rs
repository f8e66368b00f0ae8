//! Releases that no device proves, and the Node that is deleted behind a proof.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::{CLEAR, cutting_plan, position};
use crate::tests::driver::Driver;
use crate::tests::fixtures::{BOOT, bmc_plan, persistent, pod, storage};
use crate::*;

const PERIOD: Span = Span::minutes(3);

/// A lost node whose remedy is this, then perhaps the fence.
fn lost(cluster_action: ClusterAction, then_fence: bool, grades: &[Grade]) -> Driver {
    let remedy_step = |name: &str, remedy| RemedyStep {
        name: name.to_string(),
        remedy,
        period: PERIOD,
        clean: false,
    };
    let mut ladder = vec![remedy_step("release", Remedy::Cluster(cluster_action))];
    if then_fence {
        ladder.push(remedy_step("fence", Remedy::Fence));
    }
    let mut policy = IncidentPolicy::default();
    policy.grades.extend(grades);
    Driver::new(Plan { ladder, ..bmc_plan() }, policy)
}

/// So many more things happen.
fn goes(driver: &mut Driver, times: u32) {
    (0..times).for_each(|_| driver.go());
}

fn confirm(driver: &mut Driver) {
    let (by, boot_id) = ("alice".to_string(), BOOT.to_string());
    driver.event(Event::Command(Command::ConfirmOff { by, boot_id }));
}

fn waits_for_proof(driver: &Driver) -> bool {
    driver.notices.contains(&Notice::Held { reason: Hold::Proof })
}

#[test]
fn a_release_waits_for_a_persons_word_and_holds_no_slot() {
    let mut driver = lost(ClusterAction::Release, false, &[]);
    driver.until(Phase::Remedying);
    goes(&mut driver, 40);
    assert!(waits_for_proof(&driver) && !driver.released(), "{:?}", driver.notices);
    assert_eq!(driver.record.slot, Slot::Free);
    confirm(&mut driver);
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.released() && driver.view.pods.len() == 1, "the DaemonSet's stays");
    assert_eq!(driver.calls, [], "no device is asked for anything");
    driver.boots().until(Phase::Final(FinalReason::Remedied));
}

#[test]
fn a_node_that_is_well_meanwhile_keeps_its_pods() {
    let mut driver = lost(ClusterAction::Release, false, &[]);
    driver.until(Phase::Remedying);
    goes(&mut driver, 5);
    driver.wakes().until(Phase::Final(FinalReason::Recovered));
    assert!(!driver.released());
}

#[test]
fn the_next_remedy_does_not_wait_for_a_word_without_end() {
    let mut driver = lost(ClusterAction::Release, true, &[]);
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.hit(Rule::A11) && !driver.released());
    driver.until(Phase::Releasing);
    assert_eq!(driver.record.proof.as_ref().map(|one| one.grade), Some(Grade::PowerOffVerified));
}

#[test]
fn what_its_driver_checks_goes_without_anybodys_word() {
    let mut driver = lost(ClusterAction::Release, false, &[Grade::Partition]);
    let checked =
        VolumeView { backing: persistent("pv-db-0"), safe_detach: true, access: Access::One };
    driver.view.pods = vec![
        PodView { volumes: vec![checked], ..pod("db-0", None) },
        PodView { volumes: Vec::new(), ..pod("web-0", None) },
    ];
    driver.until(Phase::Releasing).until(Phase::Remedying);
    goes(&mut driver, 10);
    let left = driver.view.pods.iter().map(|pod| pod.name.as_str()).collect::<Vec<_>>();
    assert_eq!((left, driver.calls.len()), (vec!["web-0"], 0));
    assert_eq!(driver.did(|one| *one == Effect::OutOfService), None);
    assert!(waits_for_proof(&driver), "for the rest");
    driver.wakes().until(Phase::Final(FinalReason::Remedied));
}

#[test]
fn a_node_is_deleted_behind_a_word_that_covers_everything() {
    let mut driver = lost(ClusterAction::DeleteNode, false, &[Grade::Partition]);
    driver.view.pods.iter_mut().for_each(|pod| {
        pod.volumes.iter_mut().for_each(|volume| volume.safe_detach = true);
    });
    driver.until(Phase::Remedying);
    goes(&mut driver, 40);
    assert!(waits_for_proof(&driver) && driver.view.node.is_some() && !driver.released());
    confirm(&mut driver);
    driver.until(Phase::Final(FinalReason::NodeGone));
    assert!(driver.hit(Rule::P3) && driver.hit(Rule::A15));
    let pods = position(&driver, |one| matches!(one, Effect::DeletePods(_)));
    let attachments = position(&driver, |one| matches!(one, Effect::DeleteAttachments(_)));
    assert!(
        pods < attachments && attachments < position(&driver, |one| *one == Effect::DeleteNode)
    );
}

/// Off, released, the Node deleted, and the machine switched on: its kubelet registers anew.
#[test]
fn a_fence_that_deletes_the_node_switches_the_machine_on_again() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Builtin(Builtin::DeleteNode)), IncidentPolicy::default());
    driver.until(Phase::Final(FinalReason::NodeGone));
    let delete = position(&driver, |one| *one == Effect::DeleteNode);
    assert!(position(&driver, |one| matches!(one, Effect::DeletePods(_))) < delete);
    assert_eq!((driver.plugs[0], driver.count(Action::On)), (PlugState::On, 1));
    let last_read = driver.calls.iter().rposition(|call| *call == (0, Action::Status));
    assert!(last_read.is_some() && driver.hit(Rule::P3));
}

#[test]
fn a_node_that_cannot_be_deleted_holds_nothing_up() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Builtin(Builtin::DeleteNode)), IncidentPolicy::default());
    driver.node_stays = true;
    driver.until(Phase::AwaitingHealthy);
    let told = |notice: &Notice| matches!(notice, Notice::ReleaseStalled { holders } if *holders == ["Node node-a"]);
    assert!(driver.notices.iter().any(told), "{:?}", driver.notices);
    driver.boots().until(Phase::Final(FinalReason::Remedied));
}

/// P3: power that is back while the Node is to be deleted keeps it.
#[test]
fn a_machine_that_is_on_again_keeps_its_node() {
    let mut driver =
        Driver::new(cutting_plan(Kind::Builtin(Builtin::DeleteNode)), IncidentPolicy::default());
    driver.holders = true;
    driver.until(Phase::Releasing).until_released();
    driver.todo.clear();
    driver.now = driver.now.after(PROOF_READ_AGE_MAX.times(2));
    driver.view.pods.retain(|pod| pod.exempt.is_some());
    driver.view.attachments.clear();
    driver.plugs[0] = PlugState::On;
    driver.look();
    driver.until(Phase::AwaitingHealthy);
    assert_eq!(driver.did(|one| *one == Effect::DeleteNode), None, "{:?}", driver.rules);
}

#[test]
fn cut_storage_deletes_no_node() {
    let mut plan = cutting_plan(storage());
    plan.methods
        .push(Method { kind: Kind::Builtin(Builtin::DeleteNode), ..plan.methods[1].clone() });
    plan.isolation[0].methods.push(2);
    plan.power.clear();
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.released() && driver.did(|one| *one == Effect::DeleteNode).is_none());
    driver.view.trigger = CLEAR;
    driver.boots().until(Phase::Final(FinalReason::Remedied));
}
