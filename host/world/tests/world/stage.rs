//! Running scenarios and reading their facts.

use std::time::Duration;

use node_remedy_world::facts::Fact;
use node_remedy_world::scenario::START;
use node_remedy_world::time::{after, between};
use node_remedy_world::{Scenario, World};

/// A scenario of three nodes and a StatefulSet `db` of two, with what is to happen.
pub(crate) fn scenario(faults: &str) -> Scenario {
    parse(&format!(
        "title: test
seed: 7
duration: 10m
cluster: {{ nodeMonitorGrace: 16s, nodeMonitorPeriod: 2s }}
nodes:
- {{ name: node-a }}
- {{ name: node-b }}
- {{ name: node-c }}
workloads:
  statefulSets:
  - {{ name: db, replicas: 2, toleration: 10s }}
expect:
- {{ fact: podCreated }}
faults:
{faults}"
    ))
}

/// Reads a scenario that names no files.
pub(crate) fn parse(text: &str) -> Scenario {
    let read = Scenario::parse("test.yaml", text, &|name| Err(format!("no file {name}")));
    read.map_err(|errors| errors.to_string()).expect("a good scenario")
}

/// Runs a scenario to its end.
pub(crate) fn run(scenario: &Scenario) -> World {
    let mut world = World::new(scenario);
    world.advance(after(START, scenario.duration));
    world
}

/// Seconds from the start at which the first fact with this sentence happened, from
/// `from` on.
pub(crate) fn first(world: &World, from: f64, sentence: &str) -> Option<f64> {
    let seconds = |fact: &Fact| between(START, fact.at).as_secs_f64();
    let told = |fact: &&Fact| seconds(fact) >= from && fact.what.to_string().contains(sentence);
    world.facts().iter().find(told).map(seconds)
}

/// The facts as lines, for a look at them.
pub(crate) fn timeline(world: &World) -> String {
    let line = |fact: &Fact| {
        let at = between(START, fact.at).as_secs_f64();
        format!("{at:9.3} {}\n", fact.what)
    };
    world.facts().iter().map(line).collect()
}

/// So many seconds.
pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
