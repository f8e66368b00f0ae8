//! A1, A3 and A16: what a leader makes of the times in a record that another one wrote.

use alloc::string::ToString;

use super::story;
use crate::tests::fixtures::bmc_plan;
use crate::tests::story::Story;
use crate::*;

/// Another leader takes the run over; its clock shows so much less than its predecessor's.
fn takes_over(story: &mut Story, behind: Span) {
    story.now = Time(story.now.0 - behind.0);
    story.todo.clear();
    story.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
}

#[test] // promise: A1
fn a1_a_leader_whose_clock_is_behind_its_predecessors_goes_on() {
    for behind in [Span::ZERO, Span::minutes(10)] {
        let mut story = story();
        story.until_call(Action::Off);
        takes_over(&mut story, behind);
        let began_at = story.now;
        story.until(Phase::AwaitingWell);
        assert!(story.now.since(began_at) < Span::minutes(5), "{}", story.now.since(began_at));
        assert_eq!(story.count(Action::On), 1);
    }
}

/// Our clock follows the server's in steps, also backwards. A read that would count as older than the signs of life that were
/// noted is not made, or it would be made again and again until then.
#[test]
fn a_read_waits_until_our_clock_is_past_the_signs_of_life() {
    let mut story = story();
    while story.record.baseline.is_none() {
        story.go();
    }
    let until = story.now.after(Span(600));
    story.record.baseline.iter_mut().for_each(|noted| noted.at = until);
    let reads = story.count(Action::Status);
    story.until(Phase::Releasing);
    assert!(story.now >= until && story.count(Action::Status) <= reads + 2);
}

#[test] // promise: A3
fn a3_an_on_waits_for_an_off_of_a_predecessor_whose_clock_was_ahead() {
    let mut plan = bmc_plan();
    plan.methods[0].late_effect = Span::seconds(90);
    let mut story = Story::new(plan, RunPolicy::default());
    story.until_call(Action::Off);
    takes_over(&mut story, Span::minutes(10));
    let began_at = story.now;
    story.plugs[0] = PlugState::Off;
    story.until_call(Action::On);
    assert!(story.now.since(began_at) >= Span::seconds(90));
}

#[test] // promise: A16
fn a16_what_a_predecessor_read_is_read_again_before_anything_is_released() {
    for behind in [Span::ZERO, Span::minutes(10)] {
        let mut story = story();
        story.until(Phase::Releasing);
        assert!(!story.released(), "what was proven stands in the record first");
        let reads = story.count(Action::Status);
        takes_over(&mut story, behind);
        story.until_released();
        assert_eq!(story.count(Action::Status), reads + 1);
    }
}
