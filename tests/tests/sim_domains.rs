//! A run in which two nodes of one rack are lost in the same moment, where one of a rack may be worked on at
//! a time: one after the other.

use node_remedy_simulate::{Comparison, Source, tell};

use crate::sim_run::parse;

const SCENARIO: &str = "title: two of a rack
seed: 7
duration: 20m
nodes:
- { name: a, count: 6, zone: r1, bootTime: 20s, labels: { node-remedy.io/fence: ipmi } }
- { name: b, count: 6, zone: r2, bootTime: 20s, labels: { node-remedy.io/fence: ipmi } }
configuration:
- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: RemedyConfiguration
    metadata: { name: all }
    spec:
      thresholdConfigs:
      - nodeConditionType: KernelDeadlock
        nodeConditionStatus: true
        nodeConditionPeriod: 30s
        remedy1: [{ name: fence }]
      policies:
        maxInFlight: 2
        topologies: [{ key: topology.kubernetes.io/zone, maxUnhealthyPercent: 90, maxInFlight: 1 }]
- file: ../config/fence-ipmi.yaml
- object:
    apiVersion: v1
    kind: Secret
    metadata: { name: bmc-credentials, namespace: node-remedy }
    stringData: { username: admin, password: simulated }
faults:
- { at: 60s, nodeCondition: { node: a-1, type: KernelDeadlock, status: \"True\", reason: Task } }
- { at: 60s, nodeCondition: { node: a-2, type: KernelDeadlock, status: \"True\", reason: Task } }
- { when: { fact: kubeletStarted, where: { node: a-1 } }, after: 1s, nodeCondition: { node: a-1, type: KernelDeadlock, status: \"False\", reason: Fine } }
- { when: { fact: kubeletStarted, where: { node: a-2 } }, after: 1s, nodeCondition: { node: a-2, type: KernelDeadlock, status: \"False\", reason: Fine } }
- { at: 60s, bmcFault: { node: a-1, fault: off_after, value: 8000 } }
expect:
- { fact: powerChanged, where: { node: a-1, power: off, cause: command }, times: 1, by: 105s }
- { fact: powerChanged, where: { node: a-2, power: off, cause: command }, times: 1, after: 98s, by: 300s }
- { fact: fenceState, where: { node: a-1, state: Final } }
- { fact: fenceState, where: { node: a-2, state: Final } }
- { fact: twoWriters, times: 0 }
";

#[test] // promise: A19
fn two_of_a_rack_that_are_lost_at_once_are_fenced_one_after_the_other() {
    let source = Source { name: "domains".to_owned(), text: SCENARIO.to_owned() };
    let timeline =
        tell(&parse(SCENARIO), &source, Comparison::Nothing).expect("a timeline that can be told");
    let none: [String; 0] = [];
    assert_eq!(timeline.with.outcome.missed, none);
}
