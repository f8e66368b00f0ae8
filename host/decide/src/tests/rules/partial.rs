//! Grades that cover some pods: which of them, what they share with those that stay, and what a node
//! that goes on with the same boot has to show first.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::{CLEAR, cutting_plan, position};
use crate::tests::driver::{Driver, honest, silent};
use crate::tests::fixtures::{BOOT, bmc_plan, liveness, persistent, pod, stage, storage};
use crate::*;

fn volume(backing: Backing) -> VolumeView {
    VolumeView { backing, safe_detach: false, access: Access::One }
}

fn checked(name: &str) -> VolumeView {
    VolumeView { safe_detach: true, ..volume(persistent(name)) }
}

fn user(name: &str, volumes: Vec<VolumeView>) -> PodView {
    PodView { volumes, ..pod(name, None) }
}

fn attached(volume: &str) -> AttachmentView {
    AttachmentView {
        uid: alloc::format!("va-{volume}"),
        name: alloc::format!("va-{volume}"),
        volume: volume.to_string(),
        deleting: false,
        finalizers: Vec::new(),
    }
}

/// Pods and attachments of the last release.
fn released(driver: &Driver) -> (Vec<String>, Vec<String>) {
    let released = driver.record.released.as_ref().expect("a release was begun");
    (released.pods.clone(), released.attachments.clone())
}

fn with(mut driver: Driver, pods: Vec<PodView>, attachments: &[&str]) -> Driver {
    driver.view.pods = pods;
    driver.view.attachments = attachments.iter().map(|volume| attached(volume)).collect();
    driver
}

/// A silent node of whose pods the drivers of some check at detach.
fn cut_off(grades: &[Grade]) -> Driver {
    let mut policy = IncidentPolicy { power_after: Span::minutes(1), ..IncidentPolicy::default() };
    policy.grades.extend(grades);
    let shared = VolumeView { access: Access::Many, ..checked("shared") };
    let pods = vec![
        user("db-0", vec![checked("pv-db-0")]),
        user("both", vec![checked("pv-both"), volume(persistent("pv-plain"))]),
        user("shares", vec![shared]),
        user("unknown", vec![volume(Backing::Unknown)]),
        user("inline", vec![volume(Backing::Inline)]),
        user("plain", vec![]),
        PodView { volumes: vec![checked("pv-ds")], ..pod("ds-1", Some(Exempt::DaemonSet)) },
    ];
    with(Driver::new(bmc_plan(), policy), pods, &["pv-db-0", "pv-both", "pv-plain", "shared"])
}

#[test]
fn a_silent_node_gives_back_what_drivers_check_before_it_is_off() {
    let mut driver = cut_off(&[Grade::Partition]);
    driver.until(Phase::Releasing).until_released();
    assert_eq!(driver.record.proof.as_ref().map(|proof| proof.grade), Some(Grade::Partition));
    // What the unknown volume is nobody knows: it may be any of those that are attached.
    assert_eq!(released(&driver), (vec!["db-0".to_string()], vec![]));
    driver.until(Phase::AwaitingPower);
    assert_eq!(
        (driver.count(Action::Off), driver.did(|one| *one == Effect::OutOfService)),
        (0, None)
    );
    driver.until(Phase::AwaitingHealthy);
    let left = driver.view.pods.iter().map(|pod| pod.name.as_str()).collect::<Vec<_>>();
    assert_eq!((left, driver.count(Action::Off)), (vec!["ds-1"], 1), "the rest once it is off");
    driver.boots().until(Phase::Final(FinalReason::Remedied));
}

#[test]
fn its_attachment_goes_with_a_pod_that_does_not_share_it() {
    let mut driver = cut_off(&[Grade::Partition]);
    driver.view.pods.retain(|pod| pod.name != "unknown");
    driver.view.pods.push(user("db-1", vec![checked("pv-both")]));
    driver.until(Phase::Releasing).until_released();
    let pods = vec!["db-0".to_string(), "db-1".to_string()];
    assert_eq!(released(&driver), (pods, vec!["va-pv-db-0".to_string()]));
}

#[test]
fn nothing_goes_before_off_unless_it_is_asked_for_and_the_node_is_silent() {
    let grades: [&[Grade]; 3] = [&[], &[Grade::Partition], &[Grade::Partition]];
    for (number, grades) in grades.into_iter().enumerate() {
        let mut driver = cut_off(grades);
        if number == 1 {
            driver.view.node.iter_mut().for_each(|node| node.lease_seen_at = None);
        }
        if number == 2 {
            driver.view.node.iter_mut().for_each(|node| node.lease_duration = Span::minutes(600));
        }
        driver.until(Phase::Releasing);
        let grade = driver.record.proof.as_ref().map(|proof| proof.grade);
        assert_eq!(grade, Some(Grade::PowerOffVerified), "{number}");
    }
}

#[test]
fn a_node_that_was_cut_off_and_is_back_keeps_its_boot() {
    let in_use = || vec!["kubernetes.io/csi/csi.example.com^pv-db-0".to_string()];
    let mut driver = cut_off(&[Grade::Partition]);
    driver.view.node.iter_mut().for_each(|node| node.volumes_in_use = in_use());
    driver.until(Phase::Releasing).until_released().until(Phase::AwaitingPower);
    driver.wakes().until(Phase::AwaitingHealthy);
    for _ in 0..20 {
        driver.go();
        assert_eq!(
            driver.record.phase,
            Phase::AwaitingHealthy,
            "it holds a volume that moved away"
        );
    }
    driver.view.node.iter_mut().for_each(|node| node.volumes_in_use.clear());
    driver.until(Phase::Final(FinalReason::Remedied));
    let unquarantine = position(&driver, |one| *one == Effect::Unquarantine);
    assert!(unquarantine > 0 && driver.count(Action::Off) == 0, "{:?}", driver.done);
    assert!(driver.view.pods.len() == 6, "the others run on");
}

#[test]
fn a_node_that_is_back_while_it_gives_back_keeps_what_is_left() {
    let mut driver = cut_off(&[Grade::Partition]);
    driver.view.pods.retain(|pod| pod.name != "unknown");
    driver.view.pods.push(user("db-1", vec![checked("pv-db-1")]));
    driver.policy.release = ReleaseMode::Paced { pods_per_minute: 1 };
    driver.until(Phase::Releasing).until_released();
    driver.wakes().until(Phase::Final(FinalReason::Remedied));
    assert!(driver.hit(Rule::P2) && driver.count(Action::Off) == 0);
    let names = driver.view.pods.iter().map(|pod| pod.name.as_str()).collect::<Vec<_>>();
    assert!(!names.contains(&"db-0") && names.contains(&"db-1"), "{names:?}");
    let asked = driver.did(|one| matches!(one, Effect::GracefulDelete(_)));
    assert_eq!(asked, None, "it runs, and nobody asked for it");
}

#[test]
fn a_node_that_never_lets_go_is_a_persons() {
    let mut driver = cut_off(&[Grade::Partition]);
    let held = vec!["kubernetes.io/csi/csi.example.com^pv-db-0".to_string()];
    driver.view.node.iter_mut().for_each(|node| node.volumes_in_use.clone_from(&held));
    driver.until(Phase::Releasing).until_released().until(Phase::AwaitingPower);
    driver.wakes().until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::SameBootAfterRelease));
    assert!(driver.view.node.as_ref().is_some_and(|node| node.quarantined));
}

#[test]
fn cut_storage_releases_the_pods_of_its_drivers_alone() {
    let mut plan = cutting_plan(storage());
    plan.power.clear();
    let other = Backing::Persistent {
        name: "pv-other".to_string(),
        driver: "other.example.com".to_string(),
        in_use_as: "kubernetes.io/csi/other.example.com^pv-other".to_string(),
    };
    let old = Backing::Persistent {
        name: "pv-old".to_string(),
        driver: String::new(),
        in_use_as: String::new(),
    };
    let pods = vec![
        user("db-0", vec![volume(persistent("pv-db-0"))]),
        user("db-1", vec![volume(persistent("pv-db-1"))]),
        user("both", vec![volume(persistent("pv-both")), volume(other.clone())]),
        user("other", vec![volume(other)]),
        user("shares", vec![volume(persistent("pv-db-1")), volume(old)]),
        user("plain", vec![]),
    ];
    let driver = Driver::new(plan, IncidentPolicy::default());
    let mut driver = with(driver, pods, &["pv-db-0", "pv-db-1", "pv-both", "pv-other", "pv-old"]);
    driver.until(Phase::Releasing).until_released();
    let pods = vec!["db-0".to_string(), "db-1".to_string()];
    assert_eq!(released(&driver), (pods, vec!["va-pv-db-0".to_string()]));
}

/// Every method that names a driver cuts one way to its storage, whatever names the method; of a stage that runs only one,
/// each cuts it whole. What may be another machine's is never cut.
#[test] // promise: P8
fn storage_is_cut_once_every_way_to_it_is() {
    let pods = || vec![user("db-0", vec![volume(persistent("pv-db-0"))])];
    let plan_of = |execution| {
        let mut plan = cutting_plan(storage());
        plan.methods.push(plan.methods[1].clone());
        plan.isolation = vec![stage(execution, &[1, 2])];
        plan
    };
    let of = |execution| {
        let plan = Plan { power: vec![], ..plan_of(execution) };
        with(Driver::new(plan, IncidentPolicy::default()), pods(), &["pv-db-0"])
    };
    of(Execution::All).until(Phase::Releasing);
    let mut beside = plan_of(Execution::All);
    beside.isolation = vec![stage(Execution::All, &[1])];
    beside.beside = vec![2];
    let mut untrusted = plan_of(Execution::All);
    untrusted.methods[2].binding = Binding::Unverified;
    let no_power = |operation: &Operation, plugs: &mut [PlugState]| {
        if operation.method == 0 { silent(operation, plugs) } else { honest(operation, plugs) }
    };
    for (plan, is_cut) in [(plan_of(Execution::All), true), (beside, false), (untrusted, false)] {
        let mut driver = with(Driver::new(plan, IncidentPolicy::default()), pods(), &["pv-db-0"]);
        driver.device = Box::new(no_power);
        for _ in 0..60 {
            driver.go();
        }
        let proof = driver.record.proof.is_some();
        assert_eq!((proof, driver.released()), (is_cut, is_cut), "{:?}", driver.plan.beside);
    }
    let first_alone = |operation: &Operation, plugs: &mut [PlugState]| {
        if operation.method == 1 { honest(operation, plugs) } else { silent(operation, plugs) }
    };
    for (execution, is_cut) in [(Execution::OnlyOne, true), (Execution::All, false)] {
        let mut driver = of(execution);
        driver.device = Box::new(first_alone);
        for _ in 0..60 {
            driver.go();
        }
        assert_eq!(driver.calls.contains(&(2, Action::Off)), !is_cut);
        assert_eq!(
            (driver.record.proof.is_some(), driver.released()),
            (is_cut, is_cut),
            "{execution:?}"
        );
    }
}

/// A boot that goes on has its storage back once its kubelet says that it holds nothing of what was cut.
#[test]
fn storage_stays_cut_while_its_kubelet_uses_it() {
    let mut plan = cutting_plan(storage());
    plan.power.clear();
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    let held = vec!["kubernetes.io/csi/csi.example.com^pv-db-0".to_string()];
    driver.view.node.iter_mut().for_each(|node| node.volumes_in_use.clone_from(&held));
    driver.until(Phase::AwaitingHealthy);
    driver.view.trigger = CLEAR;
    driver.live(BOOT, 9).until(Phase::Parked);
    assert_eq!(driver.plugs, [PlugState::On, PlugState::Off]);
    driver.view.node.iter_mut().for_each(|node| node.volumes_in_use.clear());
    driver.boots().until(Phase::Final(FinalReason::RecoveredByHand));
    assert_eq!(driver.plugs, [PlugState::On; 2]);
}

/// P5: what an exempt pod shares stays attached, or may share as far as anybody knows.
#[test] // promise: P5
fn what_a_pod_that_stays_uses_stays_attached() {
    let daemon = |backing| PodView {
        volumes: vec![volume(backing)],
        ..pod("ds-1", Some(Exempt::DaemonSet))
    };
    let cases = [
        (persistent("pv-db-0"), vec!["va-pv-free"]),
        (persistent("pv-ds"), vec!["va-pv-db-0", "va-pv-free"]),
        (Backing::Inline, vec!["va-pv-db-0", "va-pv-free"]),
        (Backing::Unknown, vec!["va-pv-db-0"]),
    ];
    for (backing, expected) in cases {
        let pods = vec![user("db-0", vec![volume(persistent("pv-db-0"))]), daemon(backing.clone())];
        let driver = Driver::new(bmc_plan(), IncidentPolicy::default());
        let mut driver = with(driver, pods, &["pv-db-0", "pv-free"]);
        driver.until(Phase::Releasing).until_released();
        assert_eq!(released(&driver).1, expected, "{backing:?}");
    }
}

/// What has ended runs nowhere: it stays, and keeps no volume attached.
#[test]
fn what_has_ended_is_not_released_and_keeps_no_volume() {
    let ended = PodView {
        volumes: vec![volume(persistent("pv-job"))],
        ..pod("job-1", Some(Exempt::Ended))
    };
    let pods = vec![user("db-0", vec![volume(persistent("pv-db-0"))]), ended];
    let driver = Driver::new(bmc_plan(), IncidentPolicy::default());
    let mut driver = with(driver, pods, &["pv-db-0", "pv-job"]);
    driver.until(Phase::Releasing).until_released();
    let attachments = vec!["va-pv-db-0".to_string(), "va-pv-job".to_string()];
    assert_eq!(released(&driver), (vec!["db-0".to_string()], attachments));
}

/// A record has room for so many: what holds a volume goes first, and the machine comes back all the same.
#[test]
fn more_pods_than_a_record_holds_keep_no_machine_off() {
    let mut pods: Vec<PodView> =
        (0..RELEASED_MAX).map(|number| user(&number.to_string(), vec![])).collect();
    pods.push(user("db-0", vec![volume(persistent("pv-db-0"))]));
    let mut driver = with(Driver::new(bmc_plan(), IncidentPolicy::default()), pods, &["pv-db-0"]);
    driver.until(Phase::Releasing).until_released();
    let (pods, _) = released(&driver);
    assert_eq!((pods.len(), pods.first().map(String::as_str)), (RELEASED_MAX, Some("db-0")));
    driver.until(Phase::PoweringOn);
}

/// Of what finds no room in the record nobody knows later whether it is still there: the cut does not go back for it.
#[test]
fn a_cut_behind_more_pods_than_a_record_holds_is_not_given_back_for_them() {
    for (more, reason) in [(0, None), (1, Some(ParkReason::StillCut))] {
        let grades = [Grade::PowerOffVerified].into();
        let policy = IncidentPolicy { grades, ..IncidentPolicy::default() };
        let writer = |number: usize| user(&number.to_string(), vec![volume(Backing::Unknown)]);
        let pods = (0..RELEASED_MAX + more).map(writer).collect();
        let mut driver = with(Driver::new(cutting_plan(storage()), policy), pods, &[]);
        driver.until(Phase::ReadingIdentity);
        driver.event(Event::Command(Command::Abort));
        let end = reason.as_ref().map_or(Phase::Final(FinalReason::Aborted), |_| Phase::Parked);
        driver.until(end);
        assert_eq!(driver.parked(), reason.as_ref(), "{more}");
    }
}

/// A restart is about another boot, and what the first one left is still to go before the quarantine.
#[test]
fn what_an_earlier_pass_left_goes_before_the_quarantine_does() {
    let release = ReleaseMode::Paced { pods_per_minute: 1 };
    let mut driver = Driver::new(
        bmc_plan(),
        IncidentPolicy { restarts: 1, release, ..IncidentPolicy::default() },
    );
    driver.view.pods.push(pod("db-1", None));
    driver.view.attachments.clear();
    driver.until(Phase::Releasing).until_released();
    // It boots by itself in the middle of the release, and is never well: another pass, about that boot.
    driver.view.node.iter_mut().for_each(|node| node.liveness = liveness("boot-2", 5));
    driver.until(Phase::AwaitingHealthy);
    let passes = |driver: &Driver| driver.notices.contains(&Notice::Restarting { restart: 1 });
    while !passes(&driver) {
        driver.go();
    }
    driver.until_call(Action::Status);
    driver.live("boot-2", 9).until(Phase::Final(FinalReason::Remedied));
    let left = driver.view.pods.iter().filter(|pod| pod.exempt.is_none()).count();
    assert_eq!(left, 0, "{:?}", driver.done);
}

/// A part is given back behind a proof of less; whoever says meanwhile that the machine is off is heard.
#[test]
fn a_word_that_it_is_off_counts_while_a_part_is_released_and_is_news_to_no_whole_release() {
    let confirm = || Event::Command(Command::ConfirmOff { by: "ada".into(), boot_id: BOOT.into() });
    let ignored = |one: &Notice| matches!(one, Notice::Ignored { .. });
    let mut driver = cut_off(&[Grade::Partition]);
    driver.until(Phase::Releasing);
    driver.event(confirm());
    while driver.did(|one| matches!(one, Effect::OutOfService)).is_none() {
        driver.go();
        assert_eq!(driver.record.phase, Phase::Releasing, "{:?}", driver.notices);
    }
    assert_eq!(driver.record.proof.as_ref().map(|one| one.grade), Some(Grade::OperatorConfirmed));
    assert_eq!((driver.count(Action::Off), driver.notices.iter().any(ignored)), (0, false));
    assert_eq!(released(&driver).0.len(), 6, "all but the DaemonSet's");

    let mut whole = cut_off(&[]);
    whole.until(Phase::Releasing);
    whole.event(confirm());
    assert!(whole.notices.iter().any(ignored), "{:?}", whole.notices);
    assert_eq!(whole.record.proof.as_ref().map(|one| one.grade), Some(Grade::PowerOffVerified));
}

/// A word that a machine is off lasts until it is heard again: then its storage stays cut as it would without
/// the word.
#[test]
fn a_word_that_was_wrong_gives_no_storage_back_to_the_boot_that_goes_on() {
    let mut plan = cutting_plan(storage());
    plan.power.clear();
    let pods = vec![user("db-0", vec![volume(persistent("pv-db-0"))]), user("plain", vec![])];
    let driver = Driver::new(plan, IncidentPolicy::default());
    let mut driver = with(driver, pods, &["pv-db-0"]);
    driver.holders = true;
    let held = vec!["kubernetes.io/csi/csi.example.com^pv-db-0".to_string()];
    driver.view.node.iter_mut().for_each(|node| node.volumes_in_use.clone_from(&held));
    driver.until(Phase::Releasing).until_released();
    assert_eq!(driver.record.proof.as_ref().map(|one| one.grade), Some(Grade::StorageFenced));
    driver.event(Event::Command(Command::ConfirmOff { by: "ada".into(), boot_id: BOOT.into() }));
    while driver.record.proof.as_ref().map(|one| one.grade) != Some(Grade::OperatorConfirmed) {
        driver.go();
    }
    driver.wakes().until(Phase::Parked);
    assert_eq!(driver.plugs, [PlugState::On, PlugState::Off], "{:?}", driver.rules);
    assert_eq!(driver.parked(), Some(&ParkReason::SameBootAfterRelease));
}

/// A dump that gives everything back proves no power-off: a person's word is news.
#[test]
fn a_word_that_it_is_off_counts_while_a_dump_gives_everything_back() {
    let confirm = Event::Command(Command::ConfirmOff { by: "ada".into(), boot_id: BOOT.into() });
    let policy = IncidentPolicy { kdump_releases: KdumpReleases::All, ..IncidentPolicy::default() };
    let mut driver = Driver::new(bmc_plan(), policy);
    driver.holders = true;
    driver.until(Phase::Releasing).until_released();
    let proof = driver.record.proof.as_mut().expect("it was proven");
    proof.grade = Grade::KdumpSeen;
    driver.event(confirm);
    while driver.record.proof.as_ref().map(|one| one.grade) == Some(Grade::KdumpSeen) {
        driver.go();
    }
    assert_eq!(driver.record.proof.as_ref().map(|one| one.grade), Some(Grade::OperatorConfirmed));
}
