//! Settings that are sound one by one and say nothing sensible together: each row is an error, a warning, or what is
//! meant by it although it looks odd. A sentence of docs/configuration.md stands for each that is neither.

use expect_test::{Expect, expect};

use super::{FENCE, POLICY};
use crate::{lines, read};

const JOB: &str =
    "remedyConfigs:\n- name: mend\n  podTemplate: {spec: {containers: [{name: a, image: b}]}}\n";

/// What is said of POLICY with these policies.
fn policies(policies: &str, expected: Expect) {
    said(&format!("{POLICY}policies: {policies}\n"), expected);
}

fn said(text: &str, expected: Expect) {
    let configuration = read(&[("f.yaml", text)]);
    assert_eq!(configuration.policies.is_empty(), configuration.problems.has_errors(), "{text}");
    expected.assert_eq(&lines(&configuration.problems));
}

#[test]
fn policies_that_contradict_themselves_are_told_by_their_place() {
    policies(
        "{minSchedulablePercent: 100}",
        expect![[r#"
        f.yaml:10:35: policies.minSchedulablePercent: found 100, expected a number from 1 to 99
    "#]],
    );
    policies(
        "{maxUnhealthyPercent: 0}",
        expect![[r#"
        f.yaml:10:33: policies.maxUnhealthyPercent: found 0, expected a number from 1 to 100
    "#]],
    );
    policies(
        "{maxUnhealthyPercent: 100}",
        expect![[r#"
        f.yaml:10:33: policies.maxUnhealthyPercent: warning: found 100: nothing but the loss of all nodes at once is taken for a storm
    "#]],
    );
    policies(
        "{maxUnhealthyCount: 1}",
        expect![[r#"
        f.yaml:10:31: policies.maxUnhealthyCount: warning: found 1, which is read as 2: one lost node alone is never a storm
    "#]],
    );
    policies(
        "{maxInFlight: 0}",
        expect![[r#"
        f.yaml:10:25: policies.maxInFlight: found 0, expected a number from 1 to 1000
    "#]],
    );
    policies(
        "{topologies: [{key: zone, maxInFlight: 3}, {key: zone}], maxInFlight: 2}",
        expect![[r#"
        f.yaml:10:50: policies.topologies[0].maxInFlight: warning: found 3, which is never reached: maxInFlight is 2
        f.yaml:10:60: policies.topologies[1].key: found "zone" a second time, expected another label
    "#]],
    );
    policies(
        "{grades: [kdump-seen]}",
        expect![[r#"
        f.yaml:10:20: policies.grades: warning: found no power-off-verified: a machine that is proven off releases nothing
        f.yaml:10:20: policies.grades: warning: found kdump-seen without kdumpGrace: power is cut in the middle of the dump
    "#]],
    );
    policies(
        "{grades: [power-off-verified, kdump-seen]}",
        expect![[r#"
        f.yaml:10:20: policies.grades: warning: found kdump-seen without kdumpGrace: power is cut in the middle of the dump
    "#]],
    );
    policies(
        "{grades: [power-off-verified, power-off-verified]}",
        expect![[r#"
        f.yaml:10:41: policies.grades[1]: found it a second time, expected it once
    "#]],
    );
    policies(
        "{kdumpReleases: all}",
        expect![[r#"
        f.yaml:10:27: policies.kdumpReleases: warning: found it while grades leaves out kdump-seen, where it does nothing
    "#]],
    );
    policies(
        "{kdumpGrace: 0s}",
        expect![[r#"
        f.yaml:10:24: policies.kdumpGrace: found 0s, expected more than 0s, up to 31d
    "#]],
    );
    policies(
        "{podsPerMinute: 5}",
        expect![[r#"
        f.yaml:10:27: policies.podsPerMinute: warning: found it without releaseMode: paced, where it does nothing
    "#]],
    );
    policies(
        "{repeatAlarm: {count: 4, window: 15m}}",
        expect![[r#"
        f.yaml:10:44: policies.repeatAlarm.window: warning: found 15m, in which no node has 4 incidents: coolDown keeps them 10m apart
    "#]],
    );
    policies(
        "{conditionStaleAfter: 1m}",
        expect![[r#"
        f.yaml:10:33: policies.conditionStaleAfter: warning: found 1m, and conditions that do not change are reported every 5m: between two reports they are not known
    "#]],
    );
    policies(
        "{storageLeases: {namespace: A_b, maxAge: 0s}}",
        expect![[r#"
        f.yaml:10:39: policies.storageLeases.namespace: found "A_b", expected a namespace's name
        f.yaml:10:52: policies.storageLeases.maxAge: found 0s, expected more than 0s, up to 31d
    "#]],
    );
    policies(
        "{backoff: 5m}",
        expect![[r#"
        f.yaml:10:21: policies.backoff: warning: found 5m, which is read as 1m: no pause is longer
    "#]],
    );
    policies(
        "{releaseTimeout: 0s, offTimeout: 0s, powerAfter: 90d}",
        expect![[r#"
        f.yaml:10:28: policies.releaseTimeout: found 0s, expected more than 0s, up to 31d
        f.yaml:10:44: policies.offTimeout: found 0s, expected more than 0s, up to 31d
        f.yaml:10:60: policies.powerAfter: found 90d, expected 0s to 31d
    "#]],
    );
    policies(
        "{pauseWindows: [{cron: 0 0 * * 1, duration: 7d, reason: ever}]}",
        expect![[r#"
        f.yaml:10:26: policies.pauseWindows: warning: found windows of which one is always open: nothing is ever cut
    "#]],
    );
    let halves =
        "{cron: 0 0 * * *, duration: 12h, reason: a}, {cron: 0 12 * * *, duration: 12h, reason: b}";
    policies(
        &format!("{{pauseWindows: [{halves}]}}"),
        expect![[r#"
        f.yaml:10:26: policies.pauseWindows: warning: found windows of which one is always open: nothing is ever cut
    "#]],
    );
}

#[test]
fn ladders_that_ask_for_something_in_vain_are_told_by_their_place() {
    let fence = POLICY.replace("- name: fence", "- name: fence\n  - clean-resource: true");
    said(&fence, expect![[""]]);
    let drain = "remedyConfigs:\n- name: mend\n  cluster: drain\n";
    let job = POLICY.replace("- name: fence", "- name: mend\n  - clean-resource: true");
    said(
        &format!("{job}{drain}"),
        expect![[r#"
        f.yaml:9:5: thresholdConfigs[0].remedy1: warning: found clean-resource at drain, which releases nothing
    "#]],
    );
    said(&format!("{job}{JOB}"), expect![[""]]);
    said(
        &format!("{job}{JOB}policies: {{grades: [power-off-verified]}}\n"),
        expect![[r#"
        f.yaml:9:5: thresholdConfigs[0].remedy1: warning: found clean-resource while policies.grades leaves out job-succeeded: its success releases nothing
    "#]],
    );
    let twice = "- nodeLeaseAge: 20s\n  remedy1: [{name: fence}]\n";
    let other = "- nodeLeaseAge: 40s\n  remedy1: [{name: storage-fence}]\n";
    said(
        &format!("{POLICY}{twice}{other}"),
        expect![[r#"
            f.yaml:12:3: thresholdConfigs[2]: found the same symptom as in an earlier threshold, expected one threshold for it
        "#]],
    );
}

/// Odd, and meant so somewhere.
#[test]
fn what_is_only_odd_is_taken_as_it_is() {
    for odd in [
        // Whoever isolates right before a window opens is told (LeftAlone) and goes on after it.
        "{gateTimeout: 1m, pauseWindows: [{cron: 0 8 * * *, duration: 8h, reason: work}]}",
        "{breaker: {maxIncidents: 3, window: 5m, coolDown: 1d}, coolDown: 1h}",
        // A Lease that vouches for an hour holds a node back for an hour.
        "{storageLeases: {namespace: a, maxAge: 1h}}",
        // A release waits for budgets first, and for the time-out from then on.
        "{pdbPatience: 1h, releaseTimeout: 1s}",
        "{gateTimeout: 0s, coolDown: 0s, pdbPatience: 0s, isolateAfter: 0s}",
        "{minSchedulablePercent: 99}",
        "{pauseWindows: [{cron: 15 * * * *, duration: 59m, reason: nearly}]}",
    ] {
        policies(odd, expect![[""]]);
    }
    // What shadow mode would ask a person for is worth knowing beforehand.
    let shadow = POLICY.replace("kind: Configuration", "kind: Configuration\nmode: shadow");
    said(&format!("{shadow}policies: {{approval: true}}\n"), expect![[""]]);
}

/// `check` is given all files together: what no labels of nodes can make right is told before there are any.
#[test]
fn selectors_that_select_the_same_nodes_are_told() {
    let everywhere = POLICY.replace("nodeSelector: type=compute\n", "");
    let other_fence = FENCE.replace("node-remedy.io/fence=ipmi", "node-remedy.io/fence=other");
    let told = |files: &[(&str, &str)], expected: Expect| {
        let configuration = read(files);
        assert!(!configuration.problems.has_errors());
        expected.assert_eq(&lines(&configuration.problems));
    };
    let elsewhere = POLICY.replace("type=compute", "type=storage");
    told(&[("a.yaml", POLICY), ("b.yaml", &elsewhere)], expect![[""]]);
    told(
        &[("a.yaml", POLICY), ("b.yaml", POLICY)],
        expect![[r#"
        b.yaml:3:15: nodeSelector: warning: found nodes that a.yaml selects, too: one that both select is not acted on; expected selectors that exclude each other
    "#]],
    );
    told(
        &[("a.yaml", POLICY), ("b.yaml", &everywhere)],
        expect![[r#"
        b.yaml:1:1: nodeSelector: warning: found nodes that a.yaml selects, too: one that both select is not acted on; expected selectors that exclude each other
    "#]],
    );
    told(
        &[("a.yaml", &everywhere), ("b.yaml", POLICY)],
        expect![[r#"
        b.yaml:3:15: nodeSelector: warning: found nodes that a.yaml selects, too: one that both select is not acted on; expected selectors that exclude each other
    "#]],
    );
    told(
        &[("a.yaml", FENCE), ("b.yaml", FENCE)],
        expect![[r#"
            b.yaml:14:17: spec.nodeSelector: warning: found nodes that ipmi (a.yaml) selects, too: one that both select is not acted on; expected selectors that exclude each other
        "#]],
    );
    told(&[("a.yaml", FENCE), ("b.yaml", &other_fence)], expect![[""]]);
}

/// An Event is anybody's word who may create one; a machine is cut for it only where a symptom of its own stands beside it.
#[test]
fn events_alone_that_cut_are_warned_of() {
    let event = "nodeEvent: {reason: [KernelOops], count: 3, window: 30m}";
    let ready = "{nodeConditionType: Ready, nodeConditionStatus: false}";
    // Conditions and compounds of them hold for a time.
    let with = |symptom: &str, remedy: &str| {
        let begin =
            "apiVersion: node-remedy/v1alpha\nkind: Configuration\nnodeSelector: type=compute\n";
        let period = if symptom.starts_with('a') { "  period: 5s\n" } else { "" };
        format!("{begin}thresholdConfigs:\n- {symptom}\n{period}  remedy1:\n  - {remedy}\n")
    };
    let any = format!("any: [{{{event}}}, {ready}]");
    for (symptom, remedy, is_told) in [
        (event, "name: fence", true),
        (&any, "name: fence", true),
        (&format!("all: [{{{event}}}, {ready}]"), "name: fence", false),
        (&format!("all: [{{{event}}}, {{not: {ready}}}]"), "name: fence", false),
        (event, "name: mend\nremedyConfigs:\n- name: mend\n  cluster: drain", false),
    ] {
        let text = with(symptom, remedy);
        let configuration = read(&[("f.yaml", &text)]);
        assert!(!configuration.problems.has_errors(), "{text}: {}", lines(&configuration.problems));
        let told = lines(&configuration.problems);
        assert_eq!(told.contains("warning: found nodeEvent alone"), is_told, "{text}: {told}");
        assert!(!is_told || told.contains("thresholdConfigs[0]"), "{told}");
    }
}

#[test]
fn a_lease_that_is_as_old_between_two_renewals_is_warned_of() {
    let with = |symptom: &str| {
        let begin =
            "apiVersion: node-remedy/v1alpha\nkind: Configuration\nnodeSelector: type=compute\n";
        format!("{begin}thresholdConfigs:\n- {symptom}\n  remedy1:\n  - name: fence\n")
    };
    for (symptom, is_told) in [
        ("nodeLeaseAge: 1s", true),
        ("nodeLeaseAge: 10s", true),
        ("nodeLeaseAge: 11s", false),
        ("nodeLeaseAge: 20s", false),
    ] {
        let told = lines(&read(&[("f.yaml", &with(symptom))]).problems);
        assert_eq!(told.contains("healthy nodes cross that"), is_told, "{symptom}: {told}");
    }
}
