//! Runs in which no device proves that a node is off, and runs in which its Node is deleted.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use node_remedy_simulate::{Comparison, Source, tell};

use crate::sim_run::{examples, parse};

/// What of a run's expectations did not come true: node-a's machine loses its power at second 60.
fn missed(remedy: &str, last: &str, happens: &str, expected: &str) -> Vec<String> {
    let path = examples().join("config/fence-ipmi.yaml");
    let fence = std::fs::read_to_string(path).expect("an example");
    let fence = fence.replace("methods: [quarantine]", &format!("methods: [quarantine{last}]"));
    let fence = format!("    {}", fence.replace('\n', "\n    "));
    let text = format!(
        "title: no device, no Node
seed: 3
duration: 15m
controllers: 2
nodes:
- {{ name: node-a, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
- {{ name: node-b, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
- {{ name: node-c, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
workloads:
  statefulSets:
  - {{ name: db, replicas: 2, volumes: true, toleration: 30s, parallel: true }}
configuration:
- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: RemedyConfiguration
    metadata: {{ name: all }}
    spec:
      thresholdConfigs: [{{ nodeLeaseAge: 20s, remedy1: [{{ name: mine }}] }}]
      remedyConfigs: [{{ name: mine, {remedy} }}]
- object:
{fence}
- object:
    apiVersion: v1
    kind: Secret
    metadata: {{ name: bmc-credentials, namespace: node-remedy }}
    stringData: {{ username: admin, password: simulated }}
faults:
- {{ at: 60s, powerOffByHand: node-a }}
{happens}expect:
- {{ fact: twoWriters, times: 0 }}
{expected}
"
    );
    let source = Source { name: "no device, no Node".to_owned(), text: text.clone() };
    let timeline =
        tell(&parse(&text), &source, Comparison::Nothing).expect("a timeline that can be told");
    timeline.with.outcome.missed
}

/// A machine that lost its power at 60 s is seen off by a person at 300 s, and repaired at 600 s.
const SEEN: &str = "- { at: 300s, operatorCommand: { node: node-a, command: confirm-off } }
- { at: 600s, nodeComesBack: node-a }
";
const NONE: [String; 0] = [];

#[test]
fn a_release_waits_for_whoever_has_seen_the_machine_off() {
    let expected = "- { fact: podGone, where: { pod: default/db-0, node: node-a, by: node-remedy }, times: 1, after: 299s, by: 320s }
- { fact: proofRecorded, where: { node: node-a, grade: operator-confirmed }, times: 1 }
- { fact: nodeDeleted, times: 0 }
- { fact: fenceState, where: { node: node-a, state: Final }, after: 600s }";
    assert_eq!(missed("cluster: release", "", SEEN, expected), NONE);
    let expected = "- { fact: podGone, where: { by: node-remedy }, times: 0 }";
    assert_eq!(missed("cluster: release", "", "", expected), NONE, "nobody said so");
}

#[test]
fn a_node_is_deleted_once_somebody_has_seen_its_machine_off() {
    let expected = "- { fact: nodeDeleted, where: { node: node-a, by: node-remedy }, times: 1, after: 299s, by: 320s }
- { fact: podGone, where: { pod: default/db-0, node: node-a, by: node-remedy }, times: 1, after: 299s }
- { fact: fenceState, where: { node: node-a, state: Final }, by: 330s }
- { fact: nodeCreated, where: { node: node-a }, times: 1, after: 600s }";
    assert_eq!(missed("cluster: delete-node", "", SEEN, expected), NONE);
}

#[test]
fn a_fence_deletes_the_node_and_its_machine_registers_anew() {
    let expected = "- { fact: nodeDeleted, where: { node: node-a, by: node-remedy }, times: 1 }
- { fact: powerChanged, where: { node: node-a, power: \"on\", cause: command }, times: 1 }
- { fact: nodeCreated, where: { node: node-a }, times: 1, after: 61s }
- { fact: nodeReady, where: { node: node-a, status: \"True\" }, after: 90s }
- { fact: fenceState, where: { node: node-a, state: Final } }";
    assert_eq!(missed("fence: {}", ", delete-node", "", expected), NONE);
}
