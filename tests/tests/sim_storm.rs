//! Forty of a hundred nodes are behind one switch that dies: their last renewals lie within twelve seconds,
//! in any order. None of them is cut, and each is refused with the numbers of all.

use std::collections::BTreeSet;

use node_remedy_simulate::{Part, play};
use node_remedy_swarm::judge::{judge, timeline};
use node_remedy_swarm::scene::Setting;
use node_remedy_world::facts::{Fact, What};

use crate::sim_run::parse;

/// Each seed is another order of arrival, and other last renewals of Leases.
const SEEDS: u64 = 20;
/// How many are behind the switch.
const BEHIND: usize = 40;

/// A run of two minutes: the switch dies after the first, for all of them within a second and a half.
fn run(seed: u64, happens: &str) -> String {
    format!(
        "title: forty of a hundred
seed: {seed}
duration: 2m
nodes:
- {{ name: behind, count: {BEHIND}, zone: behind, labels: {{ node-remedy.io/fence: ipmi }} }}
- {{ name: well, count: 60, zone: well, labels: {{ node-remedy.io/fence: ipmi }} }}
configuration:
- file: ../config/remedy.yaml
- file: ../config/fence-ipmi.yaml
- object:
    apiVersion: v1
    kind: Secret
    metadata: {{ name: bmc-credentials, namespace: node-remedy }}
    stringData: {{ username: admin, password: simulated }}
faults:
- {{ at: 60s, {happens} }}
expect:
- {{ fact: powerChanged, times: 0 }}
"
    )
}

/// The nodes that fell silent, in that order.
fn silent(facts: &[Fact]) -> Vec<&str> {
    let lost = facts.iter().filter_map(|fact| {
        let What::NetworkLost { node } = &fact.what else { return None };
        Some(node.as_str())
    });
    lost.collect()
}

#[test]
fn forty_of_a_hundred_that_fall_silent_in_any_order_are_left_alone() {
    let mut orders = BTreeSet::new();
    for seed in 0..SEEDS {
        let scenario = parse(&run(seed, "within: 1500ms, rackSilent: [behind]"));
        let played = play(&scenario, Part::With).expect("a run");
        let silent = silent(&played.facts);
        assert_eq!(silent.len(), BEHIND, "seed {seed}");
        orders.insert(silent.iter().map(|node| (*node).to_owned()).collect::<Vec<_>>());
        let told = || timeline(&played.facts);
        let judgement = judge(&played.facts, &Setting::default());
        assert_eq!(judgement.broken, [], "seed {seed}: {}", told());
        assert_eq!(judgement.commanded, [], "seed {seed}: {}", told());
        assert_eq!(played.collected.incidents.len(), 0, "seed {seed}: {}", told());
        // Each says in the end how many are unhealthy, and what the limit is.
        for node in silent {
            let mut refused = played.collected.refused.iter().filter(|one| one.node == *node);
            let last = refused.next_back().map(|one| one.reason.to_string()).unwrap_or_default();
            let says = "unhealthy 40 of 100 = 40 % ≥ 30 %";
            assert!(last.contains(says), "seed {seed}, {node}: {last}");
        }
    }
    assert_eq!(orders.len(), usize::try_from(SEEDS).expect("a number"), "each in another order");
}

/// The same cluster, of which one is lost alone: it is the storm that kept the others on.
#[test]
fn one_of_a_hundred_is_fenced() {
    let played = play(&parse(&run(1, "kubeletStops: behind-07")), Part::With).expect("a run");
    let is_cut =
        |fact: &&Fact| matches!(&fact.what, What::PowerChanged { node, .. } if node == "behind-07");
    assert!(played.facts.iter().any(|fact| is_cut(&fact)), "{}", timeline(&played.facts));
}
