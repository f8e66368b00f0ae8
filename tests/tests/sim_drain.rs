//! Runs of five nodes of which one is ill and alive: it is drained before it is fenced, as far as the
//! disruption budget of the pods on it allows.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use node_remedy_simulate::{Comparison, Source, tell};

use crate::sim_run::parse;

/// What of a run's expectations did not come true. The node is ill from second 60 on; a drain, and
/// the fence four minutes after it.
fn missed(budget: &str, happens: &str, expected: &[&str]) -> Vec<String> {
    let expected =
        expected.iter().map(|one| format!("- {{ {one} }}")).collect::<Vec<_>>().join("\n");
    let text = format!(
        "title: an ill node
seed: 5
duration: 30m
controllers: 2
nodes:
- {{ name: node, count: 5, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
workloads:
  statefulSets:
  - {{ name: db, replicas: 5, volumes: true, toleration: 30s, parallel: true }}
configuration:
- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: RemedyConfiguration
    metadata: {{ name: ill }}
    spec:
      thresholdConfigs:
      - nodeConditionType: KernelDeadlock
        nodeConditionStatus: true
        nodeConditionPeriod: 10s
        remedy1: [{{ name: drain }}, {{ period: 4m }}]
        remedy2: [{{ name: fence }}]
      remedyConfigs: [{{ name: drain, cluster: drain }}]
      policies: {{ pdbPatience: 3m }}
- file: ../config/fence-ipmi.yaml
- object:
    apiVersion: v1
    kind: Secret
    metadata: {{ name: bmc-credentials, namespace: node-remedy }}
    stringData: {{ username: admin, password: simulated }}
- object:
    apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {{ name: db, namespace: default }}
    spec: {{ selector: {{ matchLabels: {{ app: db }} }}, {budget} }}
faults:
- {{ at: 10s, nodeCondition: {{ node: node-1, type: KernelDeadlock, status: \"False\", reason: Fine }} }}
- {{ at: 60s, nodeCondition: {{ node: node-1, type: KernelDeadlock, status: \"True\", reason: Task }} }}
{happens}expect:
- {{ fact: twoWriters, times: 0 }}
{expected}"
    );
    let source = Source { name: "drain".to_owned(), text: text.clone() };
    let timeline =
        tell(&parse(&text), &source, Comparison::Nothing).expect("a timeline that can be told");
    timeline.with.outcome.missed
}

const NONE: [String; 0] = [];
/// A person sees to it.
const MENDED: &str = "- { at: 200s, nodeCondition: { node: node-1, type: KernelDeadlock, status: \"False\", reason: Fine } }\n";
const NOTHING_IS_CUT: &str = "fact: powerChanged, times: 0";
const IS_OVER: &str = "fact: fenceState, where: { node: node-1, state: Final }";

#[test]
fn a_drained_node_that_is_mended_is_not_fenced_and_gets_pods_again() {
    let moved = [
        "fact: podGone, where: { node: node-1 }, times: 1, by: 120s",
        NOTHING_IS_CUT,
        IS_OVER,
        "fact: cordoned, where: { node: node-1 }, times: 1, by: 90s",
        "fact: uncordoned, where: { node: node-1 }, times: 1, after: 200s",
    ];
    assert_eq!(missed("maxUnavailable: 1", MENDED, &moved), NONE);
}

#[test]
fn a_drained_node_that_stays_ill_is_fenced_a_period_later() {
    let fenced = [
        "fact: podGone, where: { node: node-1 }, times: 1, by: 120s",
        r#"fact: powerChanged, where: { node: node-1, power: "off" }, times: 1, after: 310s"#,
        r#"fact: powerChanged, where: { power: "off" }, times: 1"#,
    ];
    assert_eq!(missed("maxUnavailable: 1", "", &fenced), NONE);
}

/// P6: a budget at zero outlasts the drain's patience; the fence has its turn a period after that, and
/// behind its proof the pod goes.
#[test] // promise: P6
fn a_budget_at_zero_holds_a_drain_and_not_a_machine_that_is_off() {
    let held = [
        "fact: podTerminating, where: { node: node-1 }, times: 0, by: 480s",
        r#"fact: powerChanged, where: { node: node-1, power: "off" }, times: 1, after: 480s"#,
        "fact: podGone, where: { node: node-1 }, times: 1, after: 480s",
    ];
    assert_eq!(missed("minAvailable: 5", "", &held), NONE);
    let mended =
        ["fact: podTerminating, where: { node: node-1 }, times: 0", NOTHING_IS_CUT, IS_OVER];
    assert_eq!(missed("minAvailable: \"100%\"", MENDED, &mended), NONE);
}
