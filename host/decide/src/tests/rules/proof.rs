//! The rules of proof and release, P1 to P8: what counts as off, for whom, and what is given
//! back in which order. When power is switched at all is in [`super::automaton`].

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::{cutting_plan, driver, position};
use crate::tests::driver::{Driver, honest, lying, silent};
use crate::tests::fixtures::{BOOT, bmc_plan, liveness, pod, power, stage, storage, succeeded};
use crate::*;

#[test] // promise: P1
fn p1_no_grade_no_release() {
    let mut driver = driver();
    driver.device = Box::new(lying);
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::OffNotVerified { tries: 3 }));
    assert_eq!(driver.count(Action::Off), 3);
    assert!(!driver.released() && driver.hit(Rule::P1));

    let mut unknown = self::driver();
    unknown.device = Box::new(|operation, plugs| {
        honest(operation, plugs);
        let state = if plugs[0] == PlugState::Off { PlugState::Unknown } else { plugs[0] };
        succeeded(state)
    });
    unknown.until(Phase::Parked);
    assert!(!unknown.released(), "unknown is not off");
}

/// A BMC whose off counts once another plugin has read it, too.
fn witnessed() -> Driver {
    let mut plan = bmc_plan();
    let mut witness = power("manager", Feed::Whole);
    witness.kind = Kind::Watch;
    plan.methods[0].witness = Some(1);
    plan.methods.push(witness);
    Driver::new(plan, IncidentPolicy::default())
}

#[test] // promise: P1
fn p1_an_off_with_a_witness_is_proven_by_both_of_them() {
    let mut alone = witnessed();
    alone.until(Phase::Parked);
    assert!(!alone.released(), "the witness still reads on");
    let [method, witness] = ["bmc", "manager"].map(ToString::to_string);
    assert_eq!(alone.parked(), Some(&ParkReason::WitnessReadsOn { method, witness }));
    assert_eq!(alone.plugs[0], PlugState::On, "another machine may have been dark");

    let mut sees_alone = witnessed();
    sees_alone.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, Action::Status) => succeeded(PlugState::On),
        (_, Action::Status) => succeeded(PlugState::Off),
        _ => honest(operation, plugs),
    });
    sees_alone.until(Phase::Parked);
    assert!(!sees_alone.released(), "what it watches still reads on");

    let mut both = witnessed();
    both.device = Box::new(|operation, plugs| {
        let end = honest(operation, plugs);
        plugs[1] = plugs[0];
        end
    });
    both.until(Phase::Releasing);
    let proof = both.record.proof.clone().expect("a proof");
    let reads = both.record.operations.iter().filter(|one| proof.by.names(one.id));
    let readers: Vec<MethodIndex> = reads.map(|one| one.method).collect();
    assert_eq!(readers, [0, 1]);
    assert!(both.calls.iter().all(|(method, action)| *method == 0 || *action == Action::Status));
}

#[test] // promise: P1
fn p8_a_witness_that_sees_another_machine_is_known_before_anything_is_cut() {
    let mut other = witnessed();
    other.device = Box::new(|operation, plugs| match operation.method {
        1 => End::Succeeded {
            state: PlugState::Off,
            identity: vec![("system-uuid".to_string(), "another".to_string())],
        },
        _ => honest(operation, plugs),
    });
    other.until(Phase::Parked);
    assert!(
        matches!(other.parked(), Some(ParkReason::WrongMachine { .. })),
        "{:?}",
        other.parked()
    );
    assert_eq!(other.count(Action::Off), 0);
    assert!(other.hit(Rule::P8));

    let mut broken = witnessed();
    broken.device = Box::new(|operation, plugs| match operation.method {
        1 => End::Failed(Failure {
            kind: FailureKind::Unauthenticated,
            detail: "the password is wrong".to_string(),
        }),
        _ => honest(operation, plugs),
    });
    broken.until(Phase::Parked);
    let is_told = |notice: &Notice| matches!(notice, Notice::Identified { .. });
    assert!(!broken.notices.iter().any(is_told), "nobody says that its machine is known");
    let Some(ParkReason::MethodFailed { detail, .. }) = broken.parked() else {
        panic!("{:?}", broken.parked())
    };
    assert_eq!((detail.as_str(), broken.count(Action::Off)), ("the password is wrong", 0));
}

#[test] // promise: P1
fn p1_what_was_read_while_an_on_could_still_arrive_is_no_evidence() {
    let mut driver = driver();
    driver.until(Phase::VerifyingOff);
    // An `on` that a dead leader sent shortly before our off, and that nobody heard the end of.
    let off = driver.record.operations.iter().position(|one| one.action == Action::Off);
    let off = off.expect("an off");
    let mut on = driver.record.operations[off].clone();
    (on.id, on.action, on.end) = (OpId(0), Action::On, Some(End::Indeterminate));
    driver.record.operations.insert(off, on);
    let settled = driver.now.after(FOREIGN_CALL_MAX);
    driver.until(Phase::Releasing);
    let proof = driver.record.proof.clone().expect("proof");
    let reads = driver.record.operations.iter().filter(|one| proof.by.names(one.id));
    let began: Vec<Time> = reads.map(|one| one.intended_at).collect();
    assert!(!began.is_empty() && began.iter().all(|at| *at >= settled), "{began:?} {settled:?}");
}

#[test] // promise: P1
fn p1_a_proof_whose_reads_stand_nowhere_releases_nothing_more() {
    let mut driver = driver();
    driver.holders = true;
    driver.until(Phase::Releasing);
    let proof = driver.record.proof.as_mut().expect("proof");
    proof.by = Evidence::Reads(vec![OpId(9_999)]);
    driver.todo.clear();
    let before = driver.done.len();
    driver.look();
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::BrokenRecord));
    let gives_away =
        |one: &Effect| matches!(one, Effect::DeletePods(_) | Effect::DeleteAttachments(_));
    assert!(!driver.done[before..].iter().any(gives_away));
}

#[test]
fn p1_a_dump_gives_back_what_does_not_write_where_the_policy_says_so() {
    let believing = || {
        let mut policy =
            IncidentPolicy { kdump_grace: Some(Span::minutes(3)), ..IncidentPolicy::default() };
        policy.grades.insert(Grade::KdumpSeen);
        policy
    };
    let dumping = |policy, dump| {
        let mut driver = Driver::new(bmc_plan(), policy);
        let mut web = pod("web-0", None);
        web.volumes.clear();
        driver.view.pods.push(web);
        driver.view.dump = dump;
        driver.until_call(Action::Off);
        driver
    };
    let deleted = |driver: &Driver| -> Vec<Effect> {
        let is_delete = |one: &&Effect| matches!(one, Effect::DeletePods(_) | Effect::OutOfService);
        driver.done.iter().filter(is_delete).cloned().collect()
    };
    let heard = dumping(believing(), Dump::Heard);
    assert_eq!(deleted(&heard), [Effect::DeletePods(vec!["web-0".to_string()])]);
    assert_eq!(heard.record.proof.as_ref().map(|proof| proof.grade), Some(Grade::KdumpSeen));
    let held = heard.record.dump_held_at.expect("a dump that was waited for");
    assert_eq!(heard.now, held.after(Span::minutes(3)), "the rest waits until the machine is off");

    for (policy, dump) in [
        (believing(), Dump::Told),
        (believing(), Dump::None),
        (
            IncidentPolicy { kdump_grace: Some(Span::minutes(3)), ..IncidentPolicy::default() },
            Dump::Heard,
        ),
    ] {
        let driver = dumping(policy, dump);
        assert_eq!(deleted(&driver), [], "{dump:?}");
        assert_eq!(driver.record.proof, None, "{dump:?}");
    }

    let mut whole = dumping(believing(), Dump::Heard);
    whole.until(Phase::AwaitingHealthy);
    assert_eq!(deleted(&whole).len(), 3, "and then everything, behind the proof of power");
}

#[test]
fn p1_a_dump_gives_back_everything_where_the_policy_says_all() {
    let policy = |kdump_releases, believed: bool| {
        let grace = Some(Span::minutes(3));
        let mut policy =
            IncidentPolicy { kdump_grace: grace, kdump_releases, ..IncidentPolicy::default() };
        if believed {
            policy.grades.insert(Grade::KdumpSeen);
        }
        policy
    };
    let released = |policy, dump| {
        let mut driver = Driver::new(bmc_plan(), policy);
        driver.view.pods.push(pod("agent", Some(Exempt::DaemonSet)));
        driver.view.dump = dump;
        driver.until_call(Action::Off);
        let is_release = |one: &&Effect| {
            matches!(
                one,
                Effect::DeletePods(_) | Effect::DeleteAttachments(_) | Effect::OutOfService
            )
        };
        driver.done.iter().filter(is_release).cloned().collect::<Vec<Effect>>()
    };
    let first = Driver::new(bmc_plan(), IncidentPolicy::default()).view;
    let pods = first.pods.iter().filter(|pod| pod.exempt.is_none()).map(|pod| pod.uid.clone());
    let attachments = first.attachments.iter().map(|one| one.uid.clone());
    assert_eq!(
        released(policy(KdumpReleases::All, true), Dump::Heard),
        [Effect::DeletePods(pods.collect()), Effect::DeleteAttachments(attachments.collect())],
        "by our deletes alone: a machine that boots by itself needs its network"
    );
    for (policy, dump) in [
        (policy(KdumpReleases::WithoutVolumes, true), Dump::Heard),
        (policy(KdumpReleases::All, true), Dump::Told),
        (policy(KdumpReleases::All, false), Dump::Heard),
    ] {
        assert_eq!(released(policy, dump), [], "{dump:?}");
    }
}

#[test] // promise: P4
fn p1_an_attachment_that_no_pod_uses_is_given_back_behind_full_proof_only() {
    let released = |grades: &[Grade], dump| {
        let mut policy =
            IncidentPolicy { kdump_grace: Some(Span::minutes(3)), ..IncidentPolicy::default() };
        policy.grades = grades.iter().copied().collect();
        let mut driver = Driver::new(bmc_plan(), policy);
        driver.view.pods.clear();
        driver.view.dump = dump;
        let orphan = driver.view.attachments.first().expect("an attachment").uid.clone();
        let asked = |driver: &Driver| {
            let is_it = |one: &Effect| *one == Effect::DeleteAttachments(vec![orphan.clone()]);
            driver.done.iter().any(is_it)
        };
        driver.until_call(Action::Off);
        let before = asked(&driver);
        driver.until(Phase::AwaitingHealthy);
        (before, asked(&driver))
    };
    let (power, dump) = (Grade::PowerOffVerified, Grade::KdumpSeen);
    assert_eq!(released(&[power], Dump::None), (false, true));
    assert_eq!(released(&[power, dump], Dump::Heard), (false, true), "nothing behind part of it");
}

#[test] // promise: P2
fn p2_a_proof_covers_one_boot() {
    for boot in [BOOT, "boot-2"] {
        let mut driver = driver();
        driver.holders = true;
        driver.until(Phase::Releasing);
        driver.until_released();
        driver.view.node.iter_mut().for_each(|node| node.liveness = liveness(boot, 7));
        driver.todo.clear();
        let before = driver.done.len();
        driver.look();
        assert!(driver.record.proof.as_ref().expect("proof").voided_at.is_some());
        driver.until(Phase::PoweringOn);
        let later = driver.done.get(before..).expect("later");
        assert!(later.contains(&Effect::LiftOutOfService), "{later:?}");
        assert!(!later.iter().any(|one| matches!(one, Effect::DeletePods(_))), "{later:?}");
        assert!(driver.hit(Rule::P2));
    }

    // Found off, and the node is well: the device tells old news, or the plug feeds another machine.
    for boot in [BOOT, "boot-2"] {
        let mut found_off = driver();
        found_off.plugs[0] = PlugState::Off;
        found_off.until(Phase::VerifyingOff);
        found_off.live(boot, 9).until(Phase::Final(FinalReason::Recovered));
        assert!(!found_off.released() && found_off.record.proof.is_none());
    }

    // The device says off and the node goes on renewing: the plug is not its own.
    let mut alive = driver();
    alive.until(Phase::VerifyingOff);
    for life in 10..200 {
        alive.view.node.iter_mut().for_each(|node| node.liveness = liveness(BOOT, life));
        if alive.record.phase != Phase::Parked {
            alive.go();
        }
    }
    assert_eq!(alive.parked(), Some(&ParkReason::AliveThoughOff));
    assert_eq!((alive.count(Action::On), alive.released()), (1, false));
}

#[test] // promise: P3
fn p3_a_release_stands_behind_proof_wherever_it_is_configured() {
    let plan = cutting_plan(Kind::Builtin(Builtin::CleanResources));
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.until(Phase::VerifyingOff);
    assert!(!driver.released());
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.released() && driver.hit(Rule::P3));
}

#[test] // promise: P4
fn p4_quarantine_first_then_by_mode() {
    let mut prompt = driver();
    prompt.until(Phase::Releasing);
    prompt.view.node.iter_mut().for_each(|node| node.quarantined = false);
    prompt.todo.clear();
    prompt.look();
    assert_eq!(prompt.todo, [Effect::Quarantine]);
    prompt.until(Phase::AwaitingHealthy);

    let policy = IncidentPolicy {
        release: ReleaseMode::Paced { pods_per_minute: 6 },
        ..IncidentPolicy::default()
    };
    let mut paced = Driver::new(bmc_plan(), policy);
    paced.view.pods = vec![pod("a", None), pod("b", None), pod("d", Some(Exempt::DaemonSet))];
    paced.until(Phase::AwaitingHealthy);
    let deletes: Vec<&Effect> =
        paced.done.iter().filter(|one| matches!(one, Effect::DeletePods(_))).collect();
    let one = |name: &str| Effect::DeletePods(vec![name.to_string()]);
    assert_eq!(deletes, [&one("a"), &one("b")]);
    let last = position(&paced, |effect| *effect == one("b"));
    assert!(position(&paced, |effect| *effect == Effect::OutOfService) > last);
    assert!(position(&paced, |effect| matches!(effect, Effect::DeleteAttachments(_))) > last);
    assert!(paced.hit(Rule::P4));
}

/// Two pods a minute apart, and a `releaseTimeout` of ten seconds: our own pace stalls no release.
#[test] // promise: P5
fn p5_a_pace_slower_than_the_release_timeout_stalls_nothing() {
    let policy = IncidentPolicy {
        release: ReleaseMode::Paced { pods_per_minute: 1 },
        release_timeout: Span::seconds(10),
        ..IncidentPolicy::default()
    };
    let mut paced = Driver::new(bmc_plan(), policy);
    paced.view.pods = vec![pod("a", None), pod("b", None), pod("c", None)];
    paced.until(Phase::AwaitingHealthy);
    let deletes = paced.done.iter().filter(|one| matches!(one, Effect::DeletePods(_)));
    assert_eq!(deletes.count(), 3);
    assert!(!paced.notices.iter().any(|one| matches!(one, Notice::ReleaseStalled { .. })));
}

#[test]
fn p4_what_is_asked_for_already_is_not_asked_for_again() {
    let mut driver = driver();
    driver.holders = true;
    driver.until(Phase::Releasing);
    let mut written = 0;
    while driver.record.phase == Phase::Releasing {
        let before = driver.record.clone();
        driver.go();
        written += usize::from(driver.record != before);
    }
    let looks = driver.done.iter().filter(|one| **one == Effect::Look).count();
    assert!(written < 20, "{written} records in two minutes of waiting, {looks} looks");
    let asked = |wanted: fn(&Effect) -> bool| driver.done.iter().filter(|one| wanted(one)).count();
    assert_eq!(asked(|one| matches!(one, Effect::OutOfService)), 1);
    assert_eq!(asked(|one| matches!(one, Effect::DeletePods(_))), 1);
    // A pod that its kubelet was asked for in vain is deleted at once, and one whose delete was
    // lost is asked for again.
    let mut waits = self::driver();
    waits.view.pods.iter_mut().for_each(|pod| pod.deletion = Deletion::Graceful);
    waits.until(Phase::Releasing);
    while !waits.released() {
        waits.go();
    }
    let delete = Effect::DeletePods(vec!["db-0".to_string()]);
    assert!(waits.todo.contains(&delete), "{:?}", waits.todo);
    waits.todo.clear();
    waits.look();
    assert!(waits.todo.contains(&delete), "{:?}", waits.todo);
}

#[test]
fn p4_attachments_are_asked_for_as_soon_as_the_pods_are_gone() {
    let mut driver = driver();
    driver.view.pods.iter_mut().for_each(|pod| pod.deletion = Deletion::Graceful);
    driver.until(Phase::Releasing);
    let delete = Effect::DeletePods(vec!["db-0".to_string()]);
    let is_asked = |driver: &Driver| driver.todo.contains(&delete);
    driver.until_released();
    // The first delete is lost, and the pods go with the second.
    driver.todo.clear();
    driver.now = driver.now.after(LOOK_EVERY);
    driver.look();
    assert!(is_asked(&driver), "{:?}", driver.todo);
    driver.view.pods.clear();
    driver.todo.clear();
    driver.look();
    let asked = |one: &Effect| matches!(one, Effect::DeleteAttachments(_));
    assert!(driver.todo.iter().any(asked), "{:?}", driver.todo);
}

#[test] // promise: P5
fn p5_on_waits_for_what_is_released_but_not_for_ever() {
    let mut driver = driver();
    driver.holders = true;
    driver.until(Phase::Releasing);
    let since = driver.now;
    driver.until(Phase::PoweringOn);
    assert!(driver.now.since(since) >= RELEASE_TIMEOUT && driver.hit(Rule::P5));
    let told = driver.notices.iter().any(|notice| {
        matches!(notice, Notice::ReleaseStalled { holders }
            if holders.iter().any(|one| one.contains("external-attacher/csi")) || holders.len() == 2)
    });
    assert!(told, "{:?}", driver.notices);
}

#[test] // promise: P6
fn p6_pods_that_still_answer_are_their_budgets_for_a_while() {
    let mut plan = cutting_plan(storage());
    plan.power.clear();
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.view.pods.iter_mut().for_each(|pod| pod.ready = true);
    driver.budget_at_zero = true;
    driver.until(Phase::Releasing);
    let since = driver.now;
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.now.since(since) >= PDB_PATIENCE && driver.hit(Rule::P6));
    assert_eq!(driver.did(|one| *one == Effect::OutOfService), None, "it would take all pods");
}

#[test] // promise: P7
fn p7_only_our_own_marks_are_lifted() {
    let mut driver = Driver::new(
        cutting_plan(Kind::Builtin(Builtin::MarkUnschedulable)),
        IncidentPolicy::default(),
    );
    driver.view.node.iter_mut().for_each(|node| node.cordoned = true);
    driver.until(Phase::AwaitingHealthy);
    driver.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(driver.did(|one| *one == Effect::Cordon), None, "somebody else's cordon");
    assert_eq!(driver.did(|one| *one == Effect::Uncordon), None);
    assert!(driver.hit(Rule::P7));

    let mut ours = Driver::new(
        cutting_plan(Kind::Builtin(Builtin::MarkUnschedulable)),
        IncidentPolicy::default(),
    );
    ours.until(Phase::AwaitingHealthy);
    ours.boots().until(Phase::Final(FinalReason::Remedied));
    assert!(position(&ours, |one| *one == Effect::Uncordon) > 0);
}

/// Two PDUs that take their time: when the second has answered, the first one's answer is old. What was
/// read without a pause between is one answer all the same, and any sign of life is newer than it.
#[test] // promise: A16
fn a16_slow_feeds_are_read_in_one_round() {
    for each in [Span::seconds(1), Span::seconds(8), Span::seconds(40)] {
        let mut slow = slow_feeds(each);
        slow.until_released();
        // Longer than a round counts: all feeds are read again before anything more is deleted.
        let reads = slow.count(Action::Status);
        slow.todo.clear();
        slow.now = slow.now.after(Span::seconds(16));
        slow.look();
        for _ in 0..20 {
            slow.go();
        }
        assert!(slow.count(Action::Status) >= reads + 2, "each: {each:?}");
        assert!(slow.hit(Rule::A16));
    }

    // Somebody switched a feed on after its answer: its machine lives, and that is newer than any read.
    let mut lives = slow_feeds(Span::seconds(8));
    lives.until_released();
    lives.view.node.iter_mut().for_each(|node| node.liveness = liveness(BOOT, 9));
    lives.todo.clear();
    lives.look();
    assert!(lives.record.proof.as_ref().expect("proof").voided_at.is_some());
    assert!(!lives.todo.iter().any(|one| matches!(one, Effect::DeletePods(_))));
}

/// One feed is slow to go off, and the other comes on meanwhile: what was read of it before that is no proof.
#[test]
fn p1_a_read_that_is_old_when_the_last_feed_goes_off_is_made_again() {
    let mut plan = bmc_plan();
    plan.methods = vec![power("pdu-a", Feed::Part), power("pdu-b", Feed::Part)];
    plan.power = vec![stage(Execution::All, &[0, 1])];
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.until(Phase::VerifyingOff);
    driver.device = Box::new(honest);
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span(PROOF_READ_AGE_MAX.0 + 5000));
    assert_eq!(driver.record.phase, Phase::VerifyingOff, "pdu-b takes its time");
    (driver.plugs[0], driver.plugs[1]) = (PlugState::On, PlugState::Off);
    let offs = driver.count(Action::Off);
    driver.until_now(Span::seconds(10));
    assert!(driver.record.proof.is_none() && !driver.released(), "pdu-a is on again");
    driver.until_released();
    assert!(driver.count(Action::Off) > offs, "it is asked to go off once more");
    assert_eq!(driver.plugs[..2], [PlugState::Off; 2]);
}

/// A machine on two PDUs, off and about to be released; each read takes so long.
fn slow_feeds(each: Span) -> Driver {
    let mut plan = bmc_plan();
    plan.methods = vec![power("pdu-a", Feed::Part), power("pdu-b", Feed::Part)];
    plan.power = vec![stage(Execution::All, &[0, 1])];
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.call_takes = each;
    driver.holders = true;
    driver.until(Phase::Releasing);
    driver
}

/// The machine takes its time to go off and renews its Lease once more; its BMC is silent meanwhile.
#[test]
fn p2_a_renewal_before_the_machine_went_off_is_no_life_after_it() {
    let mut driver = driver();
    driver.until(Phase::VerifyingOff);
    while driver.record.baseline.is_none() {
        driver.go();
    }
    driver.device = Box::new(silent);
    driver.until(Phase::AwaitingDevice);
    driver.node(|node| node.liveness = liveness(BOOT, 2));
    driver.until_now(Span::seconds(40));
    driver.device = Box::new(honest);
    driver.until(Phase::Releasing);
}
