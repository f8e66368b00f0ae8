//! Cuts that are given back: what is lost on the way, what a switch refuses, what vanishes meanwhile, and what people are told.

use super::refuted::{
    outlet_and_storage, proven_by_power, released_and_switched_off, two_cuts, until_over,
};
use super::*;

/// What stood behind the cut is gone: it may run elsewhere.
pub(super) fn vanishes(story: &mut Story) {
    story.view.attachments.clear();
    story.view.pods.retain(|pod| pod.uid != "db-0");
}

fn is_final(story: &Story) -> bool {
    matches!(story.record.phase, Phase::Final(_))
}

/// Its switch refuses to give back.
fn refuses(operation: &Operation, plugs: &mut [PlugState]) -> End {
    match (operation.method, operation.action) {
        (1, Action::On) => failed(FailureKind::Device),
        _ => honest(operation, plugs),
    }
}

/// A storm withdraws a cut, or a person aborts, while all stands behind it. The giving back never reaches the switch, and
/// meanwhile an attachment vanishes.
#[test] // promise: A5
fn a5_a_giving_back_that_was_lost_is_not_sent_again_behind_what_vanished() {
    for is_aborted in [true, false] {
        let policy = RunPolicy { power_after: Span::minutes(30), ..proven_by_power() };
        let mut story = Story::new(cutting_plan(storage()), policy);
        story.until(Phase::AwaitingPower);
        story.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
            (1, Action::On) => End::Indeterminate,
            _ => honest(operation, plugs),
        });
        if is_aborted {
            story.event(Event::Command(Command::Abort));
        } else {
            story.view.gate.refusals = vec![storm()];
        }
        while story.count(Action::On) == 0 {
            story.go();
        }
        story.until_now(Span::seconds(10));
        vanishes(&mut story);
        story.device = Box::new(honest);
        for _ in 0..200 {
            if is_final(&story) || story.record.phase == Phase::Parked {
                break;
            }
            story.go();
        }
        assert_eq!(story.plugs[1], PlugState::Off, "{is_aborted}: {:?}", story.record.phase);
    }
}

/// An hour after the switch refused, a pod is deleted by force; ten minutes later somebody gives the storage back by hand.
#[test] // promise: A16
fn a16_a_cut_that_we_could_not_give_back_is_read_and_made_again() {
    for is_aborted in [false, true] {
        let mut story = if is_aborted {
            let policy = RunPolicy { power_after: Span::minutes(30), ..proven_by_power() };
            let mut story = Story::new(cutting_plan(storage()), policy);
            story.until(Phase::AwaitingPower);
            story
        } else {
            let mut story = Story::new(storage_only(), proven_by_power());
            story.until(Phase::AwaitingWell);
            story
        };
        let in_use = alloc::format!("kubernetes.io/csi/{DRIVER}^pv-db-0");
        story.node(|node| node.volumes_in_use = vec![in_use.clone()]);
        story.device = Box::new(refuses);
        if is_aborted {
            story.event(Event::Command(Command::Abort));
        } else {
            story.wakes();
        }
        story.until(Phase::Parked);
        assert_eq!(story.parked(), Some(&ParkReason::RestoreFailed));
        story.until_now(Span::minutes(60));
        vanishes(&mut story);
        story.until_now(Span::minutes(10));
        story.plugs[1] = PlugState::On;
        story.until_now(Span::minutes(5));
        assert_eq!(story.plugs[1], PlugState::Off, "{is_aborted}");
        assert!(story.notices.contains(&Notice::CutUndone { method: 1 }), "{is_aborted}");
    }
}

/// The BMC says off and the node lives: it is another machine's. Then the switch refuses to give the storage back.
#[test]
fn p8_why_a_machine_is_doubted_is_told_although_a_switch_refuses() {
    let mut story =
        Story::new(cutting_plan(storage()), RunPolicy { retries: 0, ..proven_by_power() });
    story.until(Phase::VerifyingOff);
    story.device = Box::new(refuses);
    story.call_takes = Span(10);
    for life in 10.. {
        if story.record.phase == Phase::Parked {
            break;
        }
        story.node(|node| node.signs = signs(BOOT, life));
        story.go();
    }
    assert_eq!(story.parked(), Some(&ParkReason::AliveThoughOff));
    assert_eq!(story.record.parked.as_ref().unwrap().still_cut, [1]);
    assert_eq!(story.plugs, [PlugState::On, PlugState::Off]);
}

/// The outlet is another machine's, and the switch of this one's storage refuses, or is silent.
#[test]
fn p8_another_machine_is_switched_on_whatever_the_switch_of_this_one_says() {
    for is_silent in [false, true] {
        let policy = RunPolicy { retries: 0, ..proven_by_power() };
        let mut story = Story::new(outlet_and_storage(), policy);
        story.until(Phase::VerifyingOff);
        story.view.neighbours = Neighbours::Silent("node-b".into());
        story.device = Box::new(move |operation, plugs| match operation.method {
            1 if is_silent => silent(operation, plugs),
            _ => refuses(operation, plugs),
        });
        until_over(&mut story);
        assert_eq!(story.parked(), Some(&ParkReason::WrongPlug { neighbour: "node-b".into() }));
        assert_eq!(story.plugs[0], PlugState::On, "{is_silent}");
    }
}

/// Two switches take ten seconds and more to answer. Somebody reboots the machine, and it is well.
#[test]
fn a16_slow_reads_of_cuts_do_not_hide_a_node_that_is_well() {
    for seconds in [4, 10, 15] {
        let mut plan = two_cuts();
        plan.power = vec![];
        let mut parked = story_of(plan);
        parked.plugs.resize(3, PlugState::On);
        parked.call_takes = Span::seconds(seconds);
        parked.until(Phase::AwaitingWell).until(Phase::Parked);

        let mut waits = story_of(two_cuts());
        waits.plugs.resize(3, PlugState::On);
        waits.device = Box::new(|operation, plugs| match operation.method {
            0 => silent(operation, plugs),
            _ => honest(operation, plugs),
        });
        waits.call_takes = Span::seconds(seconds);
        waits.until(Phase::Releasing).until(Phase::AwaitingDevice);
        for mut story in [parked, waits] {
            let phase = story.record.phase;
            story.until_now(Span::minutes(5));
            story.boots();
            let until = story.now.after(Span::minutes(24 * 60));
            while story.now < until && !is_final(&story) {
                story.go();
            }
            assert!(is_final(&story), "{phase:?}, {seconds} s: {:?}", story.record.phase);
        }
    }
}

/// A leader dies with its cut unsent, so that it reads as open for minutes. Then a pod leaves, and the node is well.
#[test]
fn a5_a_cut_that_was_never_made_holds_no_node() {
    let policy = RunPolicy { power_after: Span::minutes(20), ..proven_by_power() };
    let mut story = Story::new(cutting_plan(storage()), policy);
    story.until_call(Action::Off);
    story.todo.clear();
    story.event(Event::Adopted { epoch: 2, process: "p2".into() });
    story.view.gate.refusals = vec![storm()];
    story.todo.push(Effect::Look);
    story.until_now(Span::minutes(5));
    assert_eq!(story.plugs, [PlugState::On, PlugState::On]);
    vanishes(&mut story);
    story.until_now(Span::minutes(1));
    story.wakes();
    story.until(Phase::Final(FinalReason::Recovered));
}

/// An undone cut is made again by a call whose answer is lost, as is the read after it. From then on it reads off.
#[test]
fn a17_that_a_cut_could_not_be_made_again_is_said_for_as_long_as_it_is_so() {
    let mut story = Story::new(storage_only(), RunPolicy { retries: 0, ..RunPolicy::default() });
    story.until(Phase::AwaitingWell);
    story.plugs[1] = PlugState::On;
    story.until(Phase::Isolating);
    story.device = Box::new(|operation, plugs| {
        if operation.action != Action::Off {
            return not_attempted(FailureKind::Timeout);
        }
        plugs[1] = PlugState::Off;
        End::Indeterminate
    });
    story.until(Phase::Parked);
    assert!(matches!(story.parked(), Some(ParkReason::CutUndone { failure: Some(_), .. })));
    story.device = Box::new(honest);
    story.until_now(Span::minutes(5));
    assert_eq!(story.parked(), Some(&cut_undone(None)));
}

/// Storage is cut for good, somebody deletes a pod by force, and the node is well in the same boot.
#[test]
fn a17_a_person_is_told_of_a_node_that_stays_cut() {
    let mut story = Story::new(storage_only(), proven_by_power());
    story.until(Phase::AwaitingWell);
    vanishes(&mut story);
    let in_use = alloc::format!("kubernetes.io/csi/{DRIVER}^pv-db-0");
    story.node(|node| node.volumes_in_use = vec![in_use.clone()]);
    story.until_now(Span::seconds(20));
    story.wakes();
    story.until_now(Span::minutes(24 * 60));
    assert_eq!(story.parked(), Some(&ParkReason::StillCut));
    let times = story.notices.iter().filter(|one| **one == Notice::Parked(ParkReason::StillCut));
    assert_eq!((story.record.phase, times.count()), (Phase::Parked, 1));
}

/// A giving back showed late, so that it read off first. A person retries, and the switch is slow to show its new cut.
#[test]
fn a16_a_cut_that_shows_late_was_undone_by_nobody() {
    let mut story = Story::new(cutting_plan(storage()), proven_by_power());
    story.until(Phase::Restoring);
    let mut lags = true;
    story.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (1, Action::Status) if plugs[1] == PlugState::On && lags => {
            lags = false;
            succeeded(PlugState::Off)
        }
        _ => honest(operation, plugs),
    });
    story.until(Phase::AwaitingWell).until(Phase::Parked);
    assert_eq!(story.plugs, [PlugState::On, PlugState::On]);
    let mut lags = true;
    story.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (1, Action::Status) if plugs[1] == PlugState::Off && lags => {
            lags = false;
            succeeded(PlugState::On)
        }
        _ => honest(operation, plugs),
    });
    story.event(Event::Command(Command::Retry));
    story.until(Phase::PoweringOff);
    assert!(!story.notices.contains(&Notice::CutUndone { method: 1 }));
}

/// A machine that was read off gets its storage by hand, as its switch refuses: that is no other writer.
#[test]
fn a16_what_is_given_back_by_hand_to_a_machine_that_reads_off_was_not_undone() {
    let mut story = released_and_switched_off(cutting_plan(storage()));
    story.device = Box::new(refuses);
    story.event(Event::Command(Command::Abort));
    until_over(&mut story);
    story.until_now(Span::minutes(5));
    story.plugs[1] = PlugState::On;
    story.until_now(Span::minutes(5));
    assert_eq!(story.parked(), Some(&ParkReason::RestoreFailed));
    assert_eq!(story.plugs, [PlugState::Off, PlugState::On]);
}

fn is_read_after_two_offs(story: &Story) -> bool {
    let mut offs = story.record.operations.iter().filter(|one| one.cuts());
    let second = offs.nth(1);
    second.is_some_and(|off| story.record.last_read(1).is_some_and(|read| read.id > off.id))
}

/// Nobody hears the end of the first cut, the second one is refused, and a person aborts. The first one is made late.
#[test] // promise: A3
fn a3_the_first_of_two_cuts_may_be_made_last() {
    let policy = RunPolicy { power_after: Span::minutes(30), ..proven_by_power() };
    let mut story = Story::new(cutting_plan(storage()), policy);
    let mut offs = 0;
    story.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (1, Action::Off) => {
            offs += 1;
            if offs == 1 { End::Indeterminate } else { failed(FailureKind::Device) }
        }
        _ => honest(operation, plugs),
    });
    story.until_call(Action::Off);
    let lands_at = story.now.after(Span::seconds(15));
    while !is_read_after_two_offs(&story) {
        story.go();
    }
    story.event(Event::Command(Command::Abort));
    while story.now < lands_at {
        assert!(!is_final(&story), "nothing is over while a cut may still be made");
        story.go();
    }
    story.plugs[1] = PlugState::Off;
    story.device = Box::new(honest);
    story.until(Phase::Final(FinalReason::Aborted));
    assert_eq!(story.plugs[1], PlugState::On);
}

/// The outlet takes its time to go off on the way back. A neighbour that was heard before that may hang on it.
#[test] // promise: P8
fn p8_on_the_way_back_too_an_outlet_reads_off_before_the_signs_of_life_are_noted() {
    let mut story = released_and_switched_off(outlet_and_storage());
    let off_at = story.now.after(Span::seconds(15));
    story.device = Box::new(move |operation, plugs| match (operation.method, operation.action) {
        (0, Action::Status) if operation.intended_at < off_at => {
            succeeded(PlugState::Transitioning)
        }
        _ => honest(operation, plugs),
    });
    story.call_takes = Span(10);
    story.event(Event::Command(Command::Abort));
    while !story.calls.contains(&(1, Action::On)) {
        story.go();
    }
    assert!(story.record.baseline.as_ref().unwrap().at >= off_at);
}

/// A cut that was undone could not be made again; then the machine boots. Nobody is told that the cut was made after all.
#[test]
fn a16_a_machine_that_boots_makes_no_cut() {
    let mut story = Story::new(storage_only(), RunPolicy { retries: 0, ..RunPolicy::default() });
    story.until_released();
    story.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (1, Action::Off) => failed(FailureKind::Device),
        _ => honest(operation, plugs),
    });
    story.plugs[1] = PlugState::On;
    let told = |story: &Story| match story.parked() {
        Some(ParkReason::CutUndone { failure, .. }) => Some(failure.is_some()),
        _ => None,
    };
    while told(&story) != Some(true) {
        story.go();
    }
    story.node(|node| node.signs = signs("boot-2", 9));
    for _ in 0..200 {
        if story.next_look.is_none() && story.todo.is_empty() {
            break;
        }
        story.go();
        assert_ne!(told(&story), Some(false), "no read says that it is cut");
    }
}
