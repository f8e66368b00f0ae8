//! A run is a function of its scenario: same seed, same facts.

use std::time::Duration;

use node_remedy_world::World;
use node_remedy_world::scenario::START;
use node_remedy_world::time::after;

use crate::stage::{parse, run, scenario, timeline};

const SCENARIO: &str = "- { at: 60s, powerOffByHand: node-a }
- { at: 120s, taintOutOfService: node-a }
- { at: 180s, powerOnByHand: node-a }";

#[test]
fn the_same_seed_gives_the_same_facts_and_another_seed_others() {
    let mut other = scenario(SCENARIO);
    let (one, two) = (run(&scenario(SCENARIO)), run(&scenario(SCENARIO)));
    assert_eq!(one.facts(), two.facts());
    assert_eq!(one.turns(), two.turns());
    other.seed += 1;
    assert_ne!(timeline(&run(&other)), timeline(&one));
}

#[test]
fn the_steps_in_which_time_passes_do_not_matter() {
    let scenario = scenario(SCENARIO);
    let whole = run(&scenario);
    let mut stepped = World::new(&scenario);
    for ms in (0..=600_000).step_by(137) {
        stepped.advance(after(START, Duration::from_millis(ms)));
    }
    stepped.advance(after(START, scenario.duration));
    assert_eq!(stepped.facts(), whole.facts());
}

#[test]
fn another_boot_time_changes_the_timeline() {
    let mut slow = scenario(SCENARIO);
    slow.nodes[0].boot_time *= 2;
    assert_ne!(timeline(&run(&slow)), timeline(&run(&scenario(SCENARIO))));
}

#[test]
fn a_world_can_be_moved_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&World::new(&scenario(SCENARIO)));
}

/// Prints the simulation's speed; asserts only that there was something to measure.
#[test]
fn how_fast_it_is() {
    let world = |nodes: usize| {
        parse(&format!(
            "title: speed
duration: 20m
nodes: [{{ name: n, count: {nodes} }}]
workloads: {{ statefulSets: [{{ name: db, replicas: {nodes}, parallel: true }}] }}
expect: [{{ fact: podCreated }}]
faults: [{{ at: 60s, powerOffByHand: n-1 }}]"
        ))
    };
    for nodes in [3, 9] {
        #[expect(clippy::disallowed_methods, reason = "measures the simulation, not in it")]
        let begun = std::time::Instant::now();
        let world = run(&world(nodes));
        let took = begun.elapsed();
        assert!(world.turns() > 300);
        let (turns, writes) = (world.turns(), world.writes());
        let a_second = Duration::from_secs(1).as_nanos() * u128::from(turns) / took.as_nanos();
        println!(
            "{nodes} nodes, 20 min: {turns} turns, {writes} writes in {took:?}: {a_second} turns/s"
        );
    }
}
