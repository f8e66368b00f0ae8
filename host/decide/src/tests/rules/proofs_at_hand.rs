//! Releases that no device proves, and the Node that is deleted behind a proof.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::{CLEAR, cutting_plan, position};
use crate::tests::fixtures::{BOOT, bmc_plan, persistent, pod, storage};
use crate::tests::story::Story;
use crate::*;

const PERIOD: Span = Span::minutes(3);

/// A lost node whose remedy is this, then perhaps the fence.
fn lost(chore: Chore, then_fence: bool, grades: &[Grade]) -> Story {
    let rung =
        |name: &str, remedy| Rung { name: name.to_string(), remedy, period: PERIOD, clean: false };
    let mut ladder = vec![rung("release", Remedy::Cluster(chore))];
    if then_fence {
        ladder.push(rung("fence", Remedy::Fence));
    }
    let mut policy = RunPolicy::default();
    policy.grades.extend(grades);
    Story::new(Plan { ladder, ..bmc_plan() }, policy)
}

/// So many more things happen.
fn goes(story: &mut Story, times: u32) {
    (0..times).for_each(|_| story.go());
}

fn confirm(story: &mut Story) {
    let (by, boot_id) = ("alice".to_string(), BOOT.to_string());
    story.event(Event::Command(Command::ConfirmOff { by, boot_id }));
}

fn waits_for_proof(story: &Story) -> bool {
    story.notices.contains(&Notice::Held { reason: Hold::Proof })
}

#[test]
fn a_release_waits_for_a_persons_word_and_holds_no_slot() {
    let mut story = lost(Chore::Release, false, &[]);
    story.until(Phase::Remedying);
    goes(&mut story, 40);
    assert!(waits_for_proof(&story) && !story.released(), "{:?}", story.notices);
    assert_eq!(story.record.slot, Slot::Free);
    confirm(&mut story);
    story.until(Phase::AwaitingWell);
    assert!(story.released() && story.view.pods.len() == 1, "the DaemonSet's stays");
    assert_eq!(story.calls, [], "no device is asked for anything");
    story.boots().until(Phase::Final(FinalReason::Remedied));
}

#[test]
fn a_node_that_is_well_meanwhile_keeps_its_pods() {
    let mut story = lost(Chore::Release, false, &[]);
    story.until(Phase::Remedying);
    goes(&mut story, 5);
    story.wakes().until(Phase::Final(FinalReason::Recovered));
    assert!(!story.released());
}

#[test]
fn the_next_remedy_does_not_wait_for_a_word_without_end() {
    let mut story = lost(Chore::Release, true, &[]);
    story.until(Phase::AwaitingWell);
    assert!(story.hit(Rule::A11) && !story.released());
    story.until(Phase::Releasing);
    assert_eq!(story.record.proof.as_ref().map(|one| one.grade), Some(Grade::PowerOffVerified));
}

#[test]
fn what_its_driver_checks_goes_without_anybodys_word() {
    let mut story = lost(Chore::Release, false, &[Grade::Partition]);
    let checked =
        VolumeView { backing: persistent("pv-db-0"), safe_detach: true, access: Access::One };
    story.view.pods = vec![
        PodView { volumes: vec![checked], ..pod("db-0", None) },
        PodView { volumes: Vec::new(), ..pod("web-0", None) },
    ];
    story.until(Phase::Releasing).until(Phase::Remedying);
    goes(&mut story, 10);
    let left = story.view.pods.iter().map(|pod| pod.name.as_str()).collect::<Vec<_>>();
    assert_eq!((left, story.calls.len()), (vec!["web-0"], 0));
    assert_eq!(story.did(|one| *one == Effect::OutOfService), None);
    assert!(waits_for_proof(&story), "for the rest");
    story.wakes().until(Phase::Final(FinalReason::Remedied));
}

#[test]
fn a_node_is_deleted_behind_a_word_that_covers_everything() {
    let mut story = lost(Chore::DeleteNode, false, &[Grade::Partition]);
    story.view.pods.iter_mut().for_each(|pod| {
        pod.volumes.iter_mut().for_each(|volume| volume.safe_detach = true);
    });
    story.until(Phase::Remedying);
    goes(&mut story, 40);
    assert!(waits_for_proof(&story) && story.view.node.is_some() && !story.released());
    confirm(&mut story);
    story.until(Phase::Final(FinalReason::NodeGone));
    assert!(story.hit(Rule::P3) && story.hit(Rule::A15));
    let pods = position(&story, |one| matches!(one, Effect::DeletePods(_)));
    let attachments = position(&story, |one| matches!(one, Effect::DeleteAttachments(_)));
    assert!(pods < attachments && attachments < position(&story, |one| *one == Effect::DeleteNode));
}

/// Off, released, the Node deleted, and the machine switched on: its kubelet registers anew.
#[test]
fn a_fence_that_deletes_the_node_switches_the_machine_on_again() {
    let mut story =
        Story::new(cutting_plan(Kind::Builtin(Builtin::DeleteNode)), RunPolicy::default());
    story.until(Phase::Final(FinalReason::NodeGone));
    let delete = position(&story, |one| *one == Effect::DeleteNode);
    assert!(position(&story, |one| matches!(one, Effect::DeletePods(_))) < delete);
    assert_eq!((story.plugs[0], story.count(Action::On)), (PlugState::On, 1));
    let last_read = story.calls.iter().rposition(|call| *call == (0, Action::Status));
    assert!(last_read.is_some() && story.hit(Rule::P3));
}

#[test]
fn a_node_that_cannot_be_deleted_holds_nothing_up() {
    let mut story =
        Story::new(cutting_plan(Kind::Builtin(Builtin::DeleteNode)), RunPolicy::default());
    story.node_stays = true;
    story.until(Phase::AwaitingWell);
    let told = |notice: &Notice| matches!(notice, Notice::ReleaseStalled { holders } if *holders == ["Node node-a"]);
    assert!(story.notices.iter().any(told), "{:?}", story.notices);
    story.boots().until(Phase::Final(FinalReason::Remedied));
}

/// P3: power that is back while the Node is to be deleted keeps it.
#[test]
fn a_machine_that_is_on_again_keeps_its_node() {
    let mut story =
        Story::new(cutting_plan(Kind::Builtin(Builtin::DeleteNode)), RunPolicy::default());
    story.holders = true;
    story.until(Phase::Releasing).until_released();
    story.todo.clear();
    story.now = story.now.after(PROOF_READ_AGE_MAX.times(2));
    story.view.pods.retain(|pod| pod.exempt.is_some());
    story.view.attachments.clear();
    story.plugs[0] = PlugState::On;
    story.look();
    story.until(Phase::AwaitingWell);
    assert_eq!(story.did(|one| *one == Effect::DeleteNode), None, "{:?}", story.rules);
}

#[test]
fn cut_storage_deletes_no_node() {
    let mut plan = cutting_plan(storage());
    plan.methods
        .push(Method { kind: Kind::Builtin(Builtin::DeleteNode), ..plan.methods[1].clone() });
    plan.isolation[0].methods.push(2);
    plan.power.clear();
    let mut story = Story::new(plan, RunPolicy::default());
    story.until(Phase::AwaitingWell);
    assert!(story.released() && story.did(|one| *one == Effect::DeleteNode).is_none());
    story.view.trigger = CLEAR;
    story.boots().until(Phase::Final(FinalReason::Remedied));
}
