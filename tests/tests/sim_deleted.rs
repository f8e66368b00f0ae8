//! NodeFences that are deleted in the middle of their incident, every few seconds of it: where their finalizer holds
//! them, the incident ends first; where somebody takes that off, its task ends with it, whatever is left on the
//! node is swept, and the node is looked at anew.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use node_remedy_simulate::{Part, Played, play};
use node_remedy_swarm::judge::timeline;
use node_remedy_world::facts::What;

use crate::sim_run::parse;

/// One node is lost after a minute; what `run` gives is said besides.
struct SeedRun {
    name: &'static str,
    policies: &'static str,
    node: &'static str,
    happens: &'static str,
    /// The seconds at which its NodeFence is deleted.
    at_s: std::ops::Range<u64>,
    step: usize,
}

const RUNS: [SeedRun; 4] = [
    SeedRun {
        name: "from its opening to its end",
        policies: "{ coolDown: 1s }",
        node: "",
        happens: "",
        at_s: 82..115,
        step: 4,
    },
    SeedRun {
        name: "while a person is waited for",
        policies: "{ coolDown: 1s, approval: true }",
        node: "",
        happens: "- { at: 200s, nodeComesBack: node-a }",
        at_s: 84..150,
        step: 30,
    },
    SeedRun {
        name: "while a device is waited for",
        policies: "{ coolDown: 1s }",
        node: "",
        happens: "- { at: 1s, bmcFault: { node: node-a, fault: dead } }
- { at: 200s, bmcFault: { node: node-a, fault: dead, value: 0 } }",
        at_s: 90..170,
        step: 30,
    },
    SeedRun {
        name: "while it is parked",
        policies: "{ coolDown: 1s }",
        node: ", systemUUID: 4c4c4544-0051-4810-8031-b8c04f4e3231, bmc: { guid: 9d3a7c52-61f0-4b1e-8d24-70f5c2a81b66 }",
        happens: "- { at: 300s, nodeComesBack: node-a }",
        at_s: 120..170,
        step: 30,
    },
];

fn played(run: &SeedRun, deletes: &str) -> Played {
    let SeedRun { policies, node, happens, .. } = run;
    let text = format!(
        "title: a NodeFence is deleted
seed: 3
duration: 15m
nodes:
- {{ name: node-a, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }}{node} }}
- {{ name: node-b, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
- {{ name: node-c, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
workloads:
  statefulSets:
  - {{ name: db, replicas: 2, volumes: true, toleration: 30s }}
configuration:
- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: RemedyConfiguration
    metadata: {{ name: all }}
    spec:
      thresholdConfigs: [{{ nodeLeaseAge: 20s, remedy1: [{{ name: fence }}] }}]
      policies: {policies}
- file: ../config/fence-ipmi.yaml
- object:
    apiVersion: v1
    kind: Secret
    metadata: {{ name: bmc-credentials, namespace: node-remedy }}
    stringData: {{ username: admin, password: simulated }}
faults:
- {{ at: 60s, kubeletStops: node-a }}
{deletes}
{happens}
expect:
- {{ fact: twoWriters, times: 0 }}
"
    );
    play(&parse(&text), Part::With).expect("a run")
}

/// In the end the node is Ready, nothing of ours stands on it, and no incident is open.
fn check(played: &Played, of: &str) {
    let mut ready = played.facts.iter().filter_map(|fact| {
        let What::NodeReady { node, status, .. } = &fact.what else { return None };
        (node == "node-a").then_some(status.as_str())
    });
    let ready = ready.next_back();
    let told = || format!("{of}:\n{}", timeline(&played.facts));
    assert_eq!(ready, Some("True"), "{}", told());
    let is_ours = |key: &str| key.contains("node-remedy") || key.contains("out-of-service");
    let added = played
        .facts
        .iter()
        .filter(|fact| matches!(&fact.what, What::TaintAdded { key, .. } if is_ours(key)));
    let removed = played
        .facts
        .iter()
        .filter(|fact| matches!(&fact.what, What::TaintRemoved { key, .. } if is_ours(key)));
    assert_eq!(added.count(), removed.count(), "taints of ours stand, {}", told());
    let two = played.facts.iter().any(|fact| matches!(fact.what, What::TwoWriters { .. }));
    assert!(!two, "two writers, {}", told());
}

const REMOVE: &str = "remove: { kind: NodeFence, name: node-a-1 } }";

#[test] // promise: P7
fn a_nodefence_that_is_deleted_stays_until_its_incident_is_over_whatever_its_phase() {
    for run in &RUNS {
        for at in run.at_s.clone().step_by(run.step) {
            let played = played(run, &format!("- {{ at: {at}s, {REMOVE}"));
            check(&played, &format!("{} at {at} s", run.name));
        }
    }
}

#[test] // promise: P7
fn the_task_of_a_nodefence_that_is_gone_ends_whatever_its_phase_and_leaves_nothing() {
    let edit =
        "edit: { kind: NodeFence, name: node-a-1, merge: { metadata: { finalizers: null } } } }";
    for run in &RUNS {
        for at in run.at_s.clone().step_by(run.step) {
            let deletes = format!("- {{ at: {at}s, {edit}\n- {{ at: {at}001ms, {REMOVE}");
            let played = played(run, &deletes);
            check(&played, &format!("{} at {at} s, past its finalizer", run.name));
        }
    }
}
