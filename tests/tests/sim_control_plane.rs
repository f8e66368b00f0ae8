//! Runs of twelve nodes of which three carry the control plane: one that is lost is fenced, and of
//! two that are lost neither, although two of twelve are no storm.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use node_remedy_simulate::{Comparison, Source, tell};

use crate::sim_run::parse;

/// What of a run's expectations did not come true.
fn missed(role: &str, faults: &str, expected: &str) -> Vec<String> {
    let text = format!(
        "title: the control plane
seed: 7
duration: 15m
nodes:
- {{ name: cp, count: 3, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi, {role} }} }}
- {{ name: node, count: 9, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
configuration:
- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: RemedyConfiguration
    metadata: {{ name: all }}
    spec:
      thresholdConfigs: [{{ nodeLeaseAge: 20s, remedy1: [{{ name: fence }}] }}]
- file: ../config/fence-ipmi.yaml
- object:
    apiVersion: v1
    kind: Secret
    metadata: {{ name: bmc-credentials, namespace: node-remedy }}
    stringData: {{ username: admin, password: simulated }}
faults:
{faults}
expect:
- {{ fact: twoWriters, times: 0 }}
{expected}
"
    );
    let source = Source { name: "the control plane".to_owned(), text: text.clone() };
    let timeline =
        tell(&parse(&text), &source, Comparison::Nothing).expect("a timeline that can be told");
    timeline.with.outcome.missed
}

const CONTROL_PLANE: &str = r#"node-role.kubernetes.io/control-plane: """#;
const ONE: &str = "- { at: 60s, kubeletStops: cp-1 }";
const TWO: &str = "- { at: 60s, kubeletStops: cp-1 }
- { at: 62s, kubeletStops: cp-2 }";
const NONE_IS_CUT: &str = "- { fact: powerChanged, times: 0 }";
const FIRST_IS_CUT: &str =
    r#"- { fact: powerChanged, where: { node: cp-1, power: "off", cause: command }, times: 1 }"#;

#[test]
fn of_three_control_plane_nodes_one_is_fenced_and_of_two_lost_ones_none() {
    let none: [String; 0] = [];
    assert_eq!(missed(CONTROL_PLANE, ONE, FIRST_IS_CUT), none);
    assert_eq!(missed(CONTROL_PLANE, TWO, NONE_IS_CUT), none);
    // The same run without the label: it is the guard that holds it back.
    assert_eq!(missed("type: other", TWO, FIRST_IS_CUT), none);
}
