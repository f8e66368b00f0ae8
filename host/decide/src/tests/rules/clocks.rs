//! A1, A3 and A16: what a leader makes of the times in a record that another one wrote.

use alloc::string::ToString;

use super::driver;
use crate::tests::driver::Driver;
use crate::tests::fixtures::bmc_plan;
use crate::*;

/// Another leader takes the incident over; its clock shows so much less than its predecessor's.
fn takes_over(driver: &mut Driver, behind: Span) {
    driver.now = Time(driver.now.0 - behind.0);
    driver.todo.clear();
    driver.event(Event::Adopted { epoch: 2, process: "p2".to_string() });
}

#[test] // promise: A1
fn a1_a_leader_whose_clock_is_behind_its_predecessors_goes_on() {
    for behind in [Span::ZERO, Span::minutes(10)] {
        let mut driver = driver();
        driver.until_call(Action::Off);
        takes_over(&mut driver, behind);
        let began_at = driver.now;
        driver.until(Phase::AwaitingHealthy);
        assert!(driver.now.since(began_at) < Span::minutes(5), "{}", driver.now.since(began_at));
        assert_eq!(driver.count(Action::On), 1);
    }
}

/// Our clock follows the server's in steps, also backwards. A read that would count as older than the signs of life that were
/// noted is not made, or it would be made again and again until then.
#[test]
fn a_read_waits_until_our_clock_is_past_the_signs_of_life() {
    let mut driver = driver();
    while driver.record.baseline.is_none() {
        driver.go();
    }
    let until = driver.now.after(Span(600));
    driver.record.baseline.iter_mut().for_each(|noted| noted.at = until);
    let reads = driver.count(Action::Status);
    driver.until(Phase::Releasing);
    assert!(driver.now >= until && driver.count(Action::Status) <= reads + 2);
}

#[test] // promise: A3
fn a3_an_on_waits_for_an_off_of_a_predecessor_whose_clock_was_ahead() {
    let mut plan = bmc_plan();
    plan.methods[0].late_effect = Span::seconds(90);
    let mut driver = Driver::new(plan, IncidentPolicy::default());
    driver.until_call(Action::Off);
    takes_over(&mut driver, Span::minutes(10));
    let began_at = driver.now;
    driver.plugs[0] = PlugState::Off;
    driver.until_call(Action::On);
    assert!(driver.now.since(began_at) >= Span::seconds(90));
}

#[test] // promise: A16
fn a16_what_a_predecessor_read_is_read_again_before_anything_is_released() {
    for behind in [Span::ZERO, Span::minutes(10)] {
        let mut driver = driver();
        driver.until(Phase::Releasing);
        assert!(!driver.released(), "what was proven stands in the record first");
        let reads = driver.count(Action::Status);
        takes_over(&mut driver, behind);
        driver.until_released();
        assert_eq!(driver.count(Action::Status), reads + 1);
    }
}
