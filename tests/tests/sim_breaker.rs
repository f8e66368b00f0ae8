//! A run in which node after node is lost, each by itself: from the second on nothing more is begun
//! for twenty minutes, then one is let through, and what becomes of it decides about the last one. The
//! process that led is killed meanwhile: the next one knows the same.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use node_remedy_simulate::{Comparison, Source, tell};

use crate::sim_run::parse;

/// What of a run's expectations did not come true.
fn missed(policies: &str, faults: &str, expected: &str) -> Vec<String> {
    let text = format!(
        "title: one after the other
seed: 7
duration: 90m
controllers: 2
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
- {{ at: 60s, kubeletStops: node-1 }}
- {{ at: 180s, kubeletStops: node-2 }}
- {{ at: 300s, kubeletStops: node-3 }}
- {{ at: 310s, kubeletStops: node-4 }}
- {{ at: 10m, controllerKilled: {{ lasts: 60s }} }}
{faults}expect:
- {{ fact: twoWriters, times: 0 }}
- {{ fact: powerChanged, where: {{ node: node-1, power: \"off\" }}, times: 1, by: 180s }}
- {{ fact: powerChanged, where: {{ node: node-2, power: \"off\" }}, times: 1, by: 300s }}
{expected}
"
    );
    let source = Source { name: "a breaker".to_owned(), text: text.clone() };
    let timeline =
        tell(&parse(&text), &source, Comparison::Nothing).expect("a timeline that can be told");
    timeline.with.outcome.missed
}

const BREAKER: &str = "{ breaker: { maxIncidents: 2, window: 30m, coolDown: 20m } }";
/// The second incident began some 197 s after the start; a machine takes 20 s to boot.
const THIRD_IS_LET_THROUGH: &str = r#"- { fact: powerChanged, where: { node: node-3, power: "off" }, times: 1, after: 1380s, by: 1410s }
- { fact: powerChanged, where: { node: node-4, power: "off" }, times: 0, by: 1415s }"#;
/// The third one's BMC neither switches off nor can be talked into it: its incident parks.
const STUCK: &str = "- { at: 301s, bmcFault: { node: node-3, fault: stuck } }\n";

#[test]
fn from_the_second_on_nothing_is_begun_until_one_that_is_let_through_ends_well() {
    let none: [String; 0] = [];
    let fourth = r#"- { fact: powerChanged, where: { node: node-4, power: "off" }, times: 1, after: 1415s, by: 1440s }"#;
    let after_it = format!("{THIRD_IS_LET_THROUGH}\n{fourth}");
    assert_eq!(missed(BREAKER, "", &after_it), none);

    let failed = r#"- { fact: parkedRecorded, where: { node: node-3 }, times: 1, after: 1380s, by: 1800s }
- { fact: powerChanged, where: { node: node-3, power: "off" }, times: 0 }
- { fact: powerChanged, where: { node: node-4, power: "off" }, times: 1, after: 2580s, by: 3060s }"#;
    assert_eq!(missed(BREAKER, STUCK, failed), none, "another cool-down after it parked");

    // The same runs without it: it is the breaker that holds them back.
    let at_once = r#"- { fact: powerChanged, where: { node: node-3, power: "off" }, times: 1, by: 420s }
- { fact: powerChanged, where: { node: node-4, power: "off" }, times: 1, by: 540s }"#;
    assert_eq!(missed("{}", "", at_once), none);
}
