//! Signs of illness beside silence: each is a run of five nodes, of which one is to be remedied
//! and the others are not.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use node_remedy_simulate::{Comparison, Part, Source, play, tell};

use crate::sim_run::parse;

/// What of a run's expectations did not come true.
fn missed(thresholds: &str, happens: &[String], expected: &[&str]) -> Vec<String> {
    let text = run(thresholds, happens, expected);
    let source = Source { name: "a sign".to_owned(), text: text.clone() };
    let timeline =
        tell(&parse(&text), &source, Comparison::Nothing).expect("a timeline that can be told");
    timeline.with.outcome.missed
}

fn run(thresholds: &str, happens: &[String], expected: &[&str]) -> String {
    let mut text = format!(
        "title: a sign
seed: 5
duration: 45m
untilCalm: 20m
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
    metadata: {{ name: signs }}
    spec:
      thresholdConfigs:
{thresholds}
        remedy1: [{{ name: fence }}]
      policies: {{ identity: prefer }}
- file: ../config/fence-ipmi.yaml
- object:
    apiVersion: v1
    kind: Secret
    metadata: {{ name: bmc-credentials, namespace: node-remedy }}
    stringData: {{ username: admin, password: simulated }}
faults:
"
    );
    for one in happens {
        writeln!(text, "- {{ {one} }}").expect("text takes text");
    }
    text += "expect:\n- { fact: twoWriters, times: 0 }\n";
    for one in expected {
        writeln!(text, "- {{ {one} }}").expect("text takes text");
    }
    text
}

const NONE: [String; 0] = [];
const NOTHING_IS_CUT: &[&str] = &["fact: powerChanged, times: 0"];
/// Machine 1 is switched off and on, and no other is; the incident ends.
const FIRST_IS_REMEDIED: [&str; 5] = [
    r#"fact: powerChanged, where: { power: "off" }, times: 1"#,
    r#"fact: powerChanged, where: { node: node-1, power: "off", cause: command }, times: 1"#,
    r#"fact: powerChanged, where: { node: node-1, power: "on", cause: command }, times: 1"#,
    "fact: proofRecorded, where: { node: node-1, grade: power-off-verified }, times: 1",
    "fact: fenceState, where: { node: node-1, state: Final }",
];

/// The detector of a node says this of its kernel, at second `at`.
fn deadlock(at: u64, node: &str, reason: &str) -> String {
    let node_condition =
        format!(r#"{{ node: {node}, type: KernelDeadlock, status: "True", reason: {reason} }}"#);
    format!("at: {at}s, nodeCondition: {node_condition}")
}

/// A condition of a node becomes this.
fn says(node: &str, kind: &str, status: &str) -> String {
    format!(r#"nodeCondition: {{ node: {node}, type: {kind}, status: "{status}", reason: Told }}"#)
}

/// This happens once machine 1 was switched on again.
fn after_a_boot(what: &str) -> String {
    let when = r#"{ fact: powerChanged, where: { node: node-1, power: "on" } }"#;
    format!("when: {when}, after: 30s, {what}")
}

/// It starts with the machine and finds nothing wrong.
fn detector_starts() -> String {
    after_a_boot(&says("node-1", "KernelDeadlock", "False"))
}

const DEADLOCK: &str = "
      - all:
        - nodeConditionType: KernelDeadlock
          nodeConditionStatus: true
          nodeConditionReason: [DockerHung]
        - not: { nodeConditionType: Ready, nodeConditionStatus: false }
        period: 1m";

#[test]
fn a_node_that_is_ready_and_ill_is_remedied_for_the_reason_that_is_named() {
    let happens =
        [deadlock(60, "node-1", "DockerHung"), deadlock(60, "node-2", "Other"), detector_starts()];
    let at = r#"fact: powerChanged, where: { power: "off" }, times: 1, after: 119s, by: 130s"#;
    let expected = [&[at], FIRST_IS_REMEDIED.as_slice()].concat();
    assert_eq!(missed(DEADLOCK, &happens, &expected), NONE);
}

#[test]
fn a_symptom_that_goes_before_it_is_ripe_is_left_alone() {
    let fine = r#"{ node: node-1, type: KernelDeadlock, status: "False", reason: Fine }"#;
    let happens =
        [deadlock(60, "node-1", "DockerHung"), format!("at: 110s, nodeCondition: {fine}")];
    assert_eq!(missed(DEADLOCK, &happens, NOTHING_IS_CUT), NONE);
}

/// All of them are Ready and renew their Leases; a rollout that makes a detector cry is no reason to
/// go through the cluster with power cycles.
#[test]
fn a_symptom_that_many_nodes_show_is_a_storm() {
    let happens = ["node-1", "node-2", "node-3"].map(|node| deadlock(60, node, "DockerHung"));
    assert_eq!(missed(DEADLOCK, &happens, NOTHING_IS_CUT), NONE);
}

#[test]
fn a_condition_that_nobody_reports_any_more_is_no_symptom() {
    let threshold = "
      - nodeConditionType: KernelDeadlock
        nodeConditionStatus: true
        nodeConditionPeriod: 20m";
    let once = [deadlock(60, "node-1", "DockerHung")];
    assert_eq!(missed(threshold, &once, NOTHING_IS_CUT), NONE);
    // A detector reports every five minutes what is still there.
    let mut reports: Vec<String> =
        (0..6).map(|round| deadlock(60 + round * 300, "node-1", "DockerHung")).collect();
    reports.push(detector_starts());
    let at = r#"fact: powerChanged, where: { power: "off" }, times: 1, after: 1259s, by: 1270s"#;
    let expected = [&[at], FIRST_IS_REMEDIED.as_slice()].concat();
    assert_eq!(missed(threshold, &reports, &expected), NONE);
}

/// A lost node with a compound threshold by a condition that nobody reports any more: it is not cut, and that is told.
#[test]
fn a_lost_node_whose_compound_threshold_nobody_can_decide_is_told_of() {
    let compound = "
      - all:
        - nodeLeaseAge: 20s
        - not: { nodeConditionType: Maintenance, nodeConditionStatus: true }
        period: 1s";
    let said = |reported_s: u64| {
        let reported = format!("at: {reported_s}s, {}", says("node-1", "Maintenance", "False"));
        let lost = "at: 25m, machineHangs: node-1".to_owned();
        let text = run(compound, &[reported, lost], &["fact: nodeReady, times: 1"]);
        let played = play(&parse(&text), Part::With).expect("a run");
        let reasons = played.collected.refused.iter().map(|refused| &refused.reason);
        let unknown = reasons.filter(|reason| reason.guard() == "ConditionUnknown");
        unknown.map(ToString::to_string).collect::<BTreeSet<String>>()
    };
    let sentence = "the node is silent, and a threshold cannot be decided: missing, Unknown or stale conditions: \
                    Maintenance; check their types and what reports them, or add a threshold without them";
    assert_eq!(said(30), BTreeSet::from([sentence.to_owned()]));
    assert_eq!(said(24 * 60), BTreeSet::new(), "it was reported a minute before");
}

const OOPSES: &str = "
      - nodeEvent: { reason: [KernelOops], type: Warning, source: [kernel-monitor], count: 3, window: 10m }";

fn event(at: u64, node: &str, reason: &str) -> String {
    format!("at: {at}s, nodeEvent: {{ node: {node}, reason: {reason} }}")
}

#[test]
fn a_node_with_so_many_events_in_a_window_is_remedied() {
    let happens = [
        event(60, "node-1", "KernelOops"),
        event(120, "node-1", "KernelOops"),
        event(180, "node-1", "KernelOops"),
        // Too few, too slowly, of another kind.
        event(60, "node-2", "KernelOops"),
        event(120, "node-2", "KernelOops"),
        event(800, "node-2", "KernelOops"),
        event(60, "node-3", "TaskHung"),
        event(70, "node-3", "TaskHung"),
        event(80, "node-3", "TaskHung"),
    ];
    let at = r#"fact: powerChanged, where: { power: "off" }, times: 1, after: 180s, by: 210s"#;
    let expected = [&[at], FIRST_IS_REMEDIED.as_slice()].concat();
    assert_eq!(missed(OOPSES, &happens, &expected), NONE);
}

/// Whoever leads then lists the Events, and those of before its time count as they say.
#[test]
fn events_are_counted_on_by_a_process_that_has_just_started() {
    let mut happens: Vec<String> =
        [60, 120, 180].map(|at| event(at, "node-1", "KernelOops")).into();
    happens.push("at: 150s, controllerKilled: { controller: 1, lasts: 5s }".to_owned());
    happens.push("at: 150s, controllerKilled: { controller: 2, lasts: 5s }".to_owned());
    assert_eq!(missed(OOPSES, &happens, &FIRST_IS_REMEDIED), NONE);
}

#[test]
fn a_node_that_flaps_is_remedied_although_no_period_is_ever_fulfilled() {
    let thresholds = "
      - nodeConditionType: Ready
        nodeConditionStatus: false
        nodeConditionPeriod: 5m
        remedy1: [{ name: fence }]
      - nodeConditionFlaps: { type: Ready, count: 4, window: 10m }";
    let mut happens = Vec::new();
    for round in 0..2 {
        happens.push(format!("at: {}s, networkLost: node-1", 60 + round * 120));
        happens.push(format!("at: {}s, nodeComesBack: node-1", 120 + round * 120));
    }
    // Three changes are not four.
    happens.push("at: 60s, networkLost: node-2".to_owned());
    happens.push("at: 120s, nodeComesBack: node-2".to_owned());
    let at = r#"fact: powerChanged, where: { power: "off" }, times: 1, after: 240s, by: 270s"#;
    let expected = [&[at], FIRST_IS_REMEDIED.as_slice()].concat();
    assert_eq!(missed(thresholds, &happens, &expected), NONE);
}

#[test]
fn a_node_that_never_joined_is_remedied() {
    let threshold = "
      - neverJoined: 10m";
    // Somebody makes the Node object of a machine that hangs before its kubelet ever speaks.
    let happens = [
        "at: 0s, machineHangs: node-1".to_owned(),
        "at: 30s, edit: { kind: Node, name: node-1, merge: { metadata: { \
         labels: { node-remedy.io/fence: ipmi }, \
         annotations: { node-remedy.io/bmc-address: 192.0.2.1 } } } }"
            .to_owned(),
    ];
    let at = r#"fact: powerChanged, where: { power: "off" }, times: 1, after: 630s, by: 640s"#;
    let expected = [&[at], FIRST_IS_REMEDIED.as_slice()].concat();
    assert_eq!(missed(threshold, &happens, &expected), NONE);
}

/// One machine is switched off, within 15 seconds after this one.
fn cut_after(second: u64) -> String {
    let by = second + 15;
    let off = r#"where: { power: "off" }, times: 1"#;
    format!("fact: powerChanged, {off}, after: {second}s, by: {by}s")
}

/// Its kubelet is well and says so; the network of its pods is out of order, until it was rebooted.
#[test]
fn a_node_whose_network_is_out_of_order_is_rebooted_and_its_pods_run_elsewhere() {
    let threshold = "
      - nodeConditionType: NetworkUnavailable
        nodeConditionStatus: true
        nodeConditionPeriod: 1m";
    let network = |status: &str| says("node-1", "NetworkUnavailable", status);
    let happens = [
        format!("at: 30s, {}", says("node-2", "NetworkUnavailable", "False")),
        format!("at: 60s, {}", network("True")),
        after_a_boot(&network("False")),
    ];
    let at = cut_after(119);
    let moved = [
        at.as_str(),
        r#"fact: nodeReady, where: { node: node-1, status: "Unknown" }, times: 0, by: 119s"#,
        "fact: podGone, where: { pod: default/db-0, node: node-1, by: node-remedy }, times: 1",
        "fact: writerStarted, where: { pod: default/db-0, node: node-1 }, times: 1, by: 60s",
        "fact: writerStarted, where: { pod: default/db-0 }, times: 1, after: 119s, by: 160s",
    ];
    let expected = [&moved, FIRST_IS_REMEDIED.as_slice()].concat();
    assert_eq!(missed(threshold, &happens, &expected), NONE);
    let silence = "
      - nodeConditionType: Ready
        nodeConditionStatus: false
        nodeConditionPeriod: 5s";
    assert_eq!(missed(silence, &happens, NOTHING_IS_CUT), NONE, "nobody asked for it");
}

/// What a daemon of the node takes grows until little is left; after a boot all of it is there again.
/// Another node has more again by itself.
#[test]
fn a_node_whose_resources_leak_is_restarted_and_has_them_back() {
    let threshold = "
      - nodeConditionType: MemoryPressure
        nodeConditionStatus: true
        nodeConditionPeriod: 10m";
    let memory = |node: &str, status: &str| says(node, "MemoryPressure", status);
    let happens = [
        format!("at: 60s, {}", memory("node-1", "True")),
        after_a_boot(&memory("node-1", "False")),
        format!("at: 60s, {}", memory("node-2", "True")),
        format!("at: 400s, {}", memory("node-2", "False")),
    ];
    let at = cut_after(659);
    let boots = "fact: kubeletStarted, where: { node: node-1 }, times: 1, after: 659s";
    let expected = [&[at.as_str(), boots], FIRST_IS_REMEDIED.as_slice()].concat();
    assert_eq!(missed(threshold, &happens, &expected), NONE);
}

/// The detector of machine 1 says whether it reaches its storage.
fn storage_is_lost(at: u64, status: &str) -> String {
    format!("at: {at}s, {}", says("node-1", "StorageUnreachable", status))
}

/// A runtime that hangs because its storage is away hangs after a reboot, too.
#[test]
fn a_node_that_said_it_lost_its_storage_is_left_alone_until_it_has_it_back() {
    let hangs = "
      - all:
        - nodeConditionType: KernelDeadlock
          nodeConditionStatus: true
        - not: { nodeConditionType: StorageUnreachable, nodeConditionStatus: true }
        period: 1m";
    let missed = |said: &[String], expected: &[&str]| {
        let hangs_at_60 = [deadlock(60, "node-1", "DockerHung"), detector_starts()];
        missed(hangs, &[said, &hangs_at_60].concat(), expected)
    };
    let (lost, still) = (storage_is_lost(50, "True"), storage_is_lost(500, "True"));
    assert_eq!(missed(&[lost.clone(), still], NOTHING_IS_CUT), NONE);
    for (said, second) in [
        (vec![storage_is_lost(50, "False")], 119),
        (vec![lost, storage_is_lost(300, "False")], 359),
    ] {
        let at = cut_after(second);
        let expected = [&[at.as_str()], FIRST_IS_REMEDIED.as_slice()].concat();
        assert_eq!(missed(&said, &expected), NONE, "{said:?}");
    }
}

/// One that is silent says nothing any more: its last word counts, and without one nobody knows.
#[test]
fn a_silent_node_is_left_alone_where_its_last_word_was_that_it_lost_its_storage() {
    let lost = "
      - all:
        - { nodeConditionType: Ready, nodeConditionStatus: false }
        - not: { nodeConditionType: StorageUnreachable, nodeConditionStatus: true }
        period: 10s";
    let missed = |said: &[String], expected: &[&str]| {
        let stops = ["at: 60s, kubeletStops: node-1".to_owned()];
        missed(lost, &[said, &stops].concat(), expected)
    };
    assert_eq!(missed(&[storage_is_lost(50, "True")], NOTHING_IS_CUT), NONE);
    assert_eq!(missed(&[storage_is_lost(50, "False")], &FIRST_IS_REMEDIED), NONE);
    assert_eq!(missed(&[], NOTHING_IS_CUT), NONE, "it has no such detector");
}
