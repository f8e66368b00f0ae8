//! Runs of nine nodes of which some are cordoned: one that is lost is fenced only while enough of the
//! others can take its pods.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use node_remedy_simulate::{Comparison, Source, tell};

use crate::sim_run::parse;

/// What of a run's expectations did not come true.
fn missed(policies: &str, faults: &str, expected: &str) -> Vec<String> {
    let text = format!(
        "title: no room
seed: 7
duration: 15m
nodes:
- {{ name: node, count: 9, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
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
- {{ at: 10s, cordon: node-8 }}
- {{ at: 10s, cordon: node-9 }}
{faults}- {{ at: 60s, kubeletStops: node-1 }}
expect:
- {{ fact: twoWriters, times: 0 }}
{expected}
"
    );
    let source = Source { name: "headroom".to_owned(), text: text.clone() };
    let timeline =
        tell(&parse(&text), &source, Comparison::Nothing).expect("a timeline that can be told");
    timeline.with.outcome.missed
}

/// Without the lost node and two that are cordoned six of nine are left, and five with a third.
const ASKED: &str = "{ minSchedulablePercent: 60 }";
const A_THIRD: &str = "- { at: 10s, cordon: node-7 }\n";
const UNTIL_TEN_MINUTES: &str = "- { at: 10s, cordon: node-7 }
- { at: 600s, edit: { kind: Node, name: node-7, merge: { spec: { unschedulable: false } } } }\n";

const CUT: &str =
    r#"- { fact: powerChanged, where: { node: node-1, power: "off" }, times: 1, by: 120s }"#;
const CUT_LATE: &str = r#"- { fact: powerChanged, where: { node: node-1, power: "off" }, times: 1, after: 600s, by: 615s }"#;
const NONE_IS_CUT: &str = "- { fact: powerChanged, times: 0 }";

#[test]
fn a_node_is_cut_only_while_enough_others_can_take_its_pods() {
    let none: [String; 0] = [];
    assert_eq!(missed(ASKED, "", CUT), none);
    assert_eq!(missed(ASKED, A_THIRD, NONE_IS_CUT), none);
    assert_eq!(missed(ASKED, UNTIL_TEN_MINUTES, CUT_LATE), none);
    assert_eq!(missed("{}", A_THIRD, CUT), none, "nobody asked");
}
