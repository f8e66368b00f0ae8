//! What a scenario file can get wrong, and what is said about it.

use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::Value;

use super::*;
use crate::facts::{Fact, VOCABULARY, What};
use crate::time::Time;

const GOOD: &str = "title: a timeline
duration: 5m
nodes:
- { name: node-a, zone: rack-1, bmc: { password: secret, faults: { stuck: 1 } } }
- { name: spare, count: 12, zone: rack-2, bootTime: 90s }
workloads:
  statefulSets:
  - { name: db, replicas: 2, toleration: 10s }
configuration:
- file: two.yaml
- object: { apiVersion: v1, kind: Secret, metadata: { name: s, namespace: d } }
faults:
- { at: 90s, nodeComesBack: node-a }
- { at: 60s, kubeletStops: node-a }
- { at: 70s, within: 12s, rackSilent: [rack-2] }
expect:
- { fact: podGone, where: { pod: default/db-0 }, times: 1, by: 3m }
";

fn load(name: &str) -> Result<String, String> {
    match name {
        "two.yaml" => Ok("apiVersion: v1
kind: ConfigMap
metadata: { name: one, namespace: d }
data: { power: off }
---
apiVersion: node-remedy.io/v1alpha1
kind: FenceConfiguration
metadata: { name: two }
"
        .to_owned()),
        "bad.yaml" => Ok("a: [".to_owned()),
        _ => Err(format!("failed to read {name}: no such file")),
    }
}

fn parse(text: &str) -> Result<Scenario, ScenarioErrors> {
    Scenario::parse("s.yaml", text, &load)
}

fn check(text: &str, expected: &Expect) {
    let said = match parse(text) {
        Ok(_) => "accepted".to_owned(),
        Err(errors) => errors.to_string(),
    };
    expected.assert_eq(&said);
}

#[test]
fn a_good_scenario_is_read_whole() {
    let read = parse(GOOD).unwrap();
    assert_eq!((read.title.as_str(), read.seed), ("a timeline", 1));
    let names: Vec<&str> = read.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        (names.len(), names[0], names[1], names[12]),
        (13, "node-a", "spare-01", "spare-12")
    );
    assert_eq!(read.nodes[1].boot_time, Duration::from_secs(90));
    let bmc = read.nodes[0].bmc.as_ref().unwrap();
    assert_eq!((bmc.user.as_str(), bmc.password.as_str()), ("admin", "secret"));
    assert!(bmc.faults.stuck);
    assert_ne!(read.nodes[0].system_uuid, read.nodes[1].system_uuid);
    let objects: Vec<&str> =
        read.configuration.iter().map(|document| document.source.as_str()).collect();
    assert_eq!(objects, ["two.yaml", "two.yaml", "s.yaml"]);
    assert_eq!(read.configuration[0].object["data"]["power"], "off");
    assert_eq!(read.faults.len(), 14);
    assert_eq!(read.faults[0].what, Event::KubeletStops("node-a".to_owned()));
    let silent: Vec<Duration> = read
        .faults
        .iter()
        .filter(|fault| matches!(fault.what, Event::NetworkLost(_)))
        .map(|fault| fault.at)
        .collect();
    assert_eq!(silent.len(), 12);
    let (first, last) = (silent.iter().min().unwrap(), silent.iter().max().unwrap());
    assert!(*first >= Duration::from_secs(70) && *last <= Duration::from_secs(82));
    assert_ne!(first, last);
}

#[test]
fn a_guid_is_the_machines_uuid_unless_it_is_said_otherwise() {
    let with = |node: &str| {
        let text =
            format!("title: t\nduration: 1m\nnodes: [{node}]\nexpect: [{{ fact: podGone }}]");
        let node = parse(&text).unwrap().nodes.remove(0);
        (node.system_uuid, node.bmc.unwrap().guid[0])
    };
    let guid = "guid: a123456789abcdefa123456789abcdef";
    assert_eq!(
        with(&format!("{{ name: a, bmc: {{ {guid} }} }}")),
        ("a1234567-89ab-cdef-a123-456789abcdef".to_owned(), 0xa1)
    );
    assert_eq!(
        with(&format!("{{ name: a, systemUUID: OTHER, bmc: {{ {guid} }} }}")),
        ("other".to_owned(), 0xa1)
    );
}

#[test]
fn mistakes_are_named_with_their_place() {
    let rows: [(&str, &str, Expect); 48] = [
        (
            "kubeletStops: node-a",
            "clockFault: { controller: 1, ahead: 5s, drift: 3 }",
            expect!["s.yaml:14:40: faults.clockFault: expected one of ahead, back and drift"],
        ),
        (
            "kubeletStops: node-a",
            "clockFault: { controller: 1, drift: 101 }",
            expect![
                "s.yaml:14:50: faults.clockFault.drift: found 101, expected thousandths from -100 to 100"
            ],
        ),
        (
            "kubeletStops: node-a",
            "edit: { kind: Nod, name: node-a, merge: { a: 1 } }",
            expect![[
                r#"s.yaml:14:28: faults.edit.kind: found "Nod", expected one of Node, Pod, Namespace, ConfigMap, Secret, Event, Event, PersistentVolume, PersistentVolumeClaim, Lease, StatefulSet, DaemonSet, Job, PodDisruptionBudget, VolumeAttachment, CSINode, CSIDriver, RemedyConfiguration, FenceConfiguration, FencePlugin, NodeFence, RemedyBudget, RemedyPause, NodeMaintenance, NetworkFence"#
            ]],
        ),
        (
            "kubeletStops: node-a",
            "edit: { kind: Node, name: node-a }",
            expect![
                "s.yaml:14:20: faults.edit.merge: expected fields with edit, and none with remove"
            ],
        ),
        (
            "kubeletStops: node-a",
            "remove: { kind: Secret, name: bmc }",
            expect!["s.yaml:14:22: faults.remove.namespace: expected one for a Secret"],
        ),
        (
            "kubeletStops: node-a",
            "nodeCondition: { node: node-z, type: KernelDeadlock, status: 'True', reason: Hung }",
            expect![[
                r#"s.yaml:14:37: faults.nodeCondition.node: found "node-z", expected a node of this scenario"#
            ]],
        ),
        (
            "kubeletStops: node-a",
            "nodeCondition: { node: node-a, type: KernelDeadlock, status: Yes, reason: Hung }",
            expect![[
                r#"s.yaml:14:75: faults.nodeCondition.status: found "Yes", expected True, False or Unknown"#
            ]],
        ),
        (
            "kubeletStops: node-a",
            "nodeEvent: { node: node-z, reason: KernelOops }",
            expect![[
                r#"s.yaml:14:33: faults.nodeEvent.node: found "node-z", expected a node of this scenario"#
            ]],
        ),
        (
            "kubeletStops: node-a",
            "serverClock: { ahead: 5s, back: 3s }",
            expect!["s.yaml:14:27: faults.serverClock: expected one of ahead and back"],
        ),
        (
            "kubeletStops: node-a",
            "cloudFault: { node: node-a, fault: gremlin }",
            expect![[r#"
            s.yaml:14:34: faults.cloudFault.node: found "node-a", expected a node that is an instance
            s.yaml:14:49: faults.cloudFault.fault: found "gremlin", expected one of silent, unreachable, delay, throttled, unavailable, denied, blind, unknown, no_capacity, forgets, stuck, slow_stop, slow_start, stale, reply_lost, fails_inside, garbled, hibernated, truncate, none"#]],
        ),
        (
            "bmc: { password: secret, faults: { stuck: 1 } }",
            "bmc: { password: secret }, providerID: \"gce://p/z/i\", \
             cloud: { replaces: node-a, faults: { gremlin: 1 } }",
            expect![[r#"
            s.yaml:4:94: nodes.bmc: expected none beside cloud: an instance has no BMC
            s.yaml:4:94: nodes.providerID: found "gce://p/z/i", expected aws:///ZONE/i-… of one node and of the zone of its cloud, or none
            s.yaml:4:133: nodes.cloud.faults: found "gremlin", expected one of silent, unreachable, delay, throttled, unavailable, denied, blind, unknown, no_capacity, forgets, stuck, slow_stop, slow_start, stale, reply_lost, fails_inside, garbled, hibernated, truncate, none
            s.yaml:4:106: nodes.cloud.replaces: found "node-a", expected another node that is an instance"#]],
        ),
        (
            "kubeletStops: node-a",
            "otherRemedy: { node: node-z, lasts: 5s }",
            expect![[
                r#"s.yaml:14:35: faults.otherRemedy.node: found "node-z", expected a node of this scenario"#
            ]],
        ),
        (
            "kubeletStops: node-a",
            "operatorCommand: { node: node-a, command: maybe }",
            expect![[
                r#"s.yaml:14:56: faults.operatorCommand.command: found "maybe", expected one of approve, retry, abort, abort-leave-off, confirm-off"#
            ]],
        ),
        (
            "duration: 5m",
            "duration: 5m\ncontrollers: 0",
            expect!["s.yaml:3:14: controllers: found 0, expected 1 to 5"],
        ),
        (
            "kubeletStops: node-a",
            "controllerKilled: { controller: 2, lasts: 5s }",
            expect![
                "s.yaml:14:46: faults.controllerKilled.controller: found 2, expected 1 to 1, the scenario's controllers"
            ],
        ),
        (
            "kubeletStops: node-a",
            "controllerPaused: { controller: 1 }",
            expect!["s.yaml:14:34: missing field `lasts`"],
        ),
        (
            "kubeletStops: node-a",
            "apiFault: { fault: gone, lasts: 5s }",
            expect![[
                r#"s.yaml:14:33: faults.apiFault.fault: found "gone", expected one of unavailable, answerLost, carriedOutLate, throttled, conflict, slow, watchesBreak, historyGone, watchesLag, watchesFreeze, denied, and takes with slow, carriedOutLate and watchesLag only"#
            ]],
        ),
        (
            "kubeletStops: node-a",
            "apiFault: { fault: throttled, percent: 101, lasts: 5s }",
            expect!["s.yaml:14:53: faults.apiFault.percent: found 101, expected 1 to 100"],
        ),
        (
            "kubeletStops: node-a",
            "apiFault: { fault: denied, verb: read, lasts: 5s }",
            expect![[
                r#"s.yaml:14:47: faults.apiFault.verb: found "read", expected one of create, delete, get, list, patch, update, watch"#
            ]],
        ),
        (
            "kubeletStops: node-a",
            "apiFault: { fault: denied, resource: secret, lasts: 5s }",
            expect![[
                r#"s.yaml:14:51: faults.apiFault.resource: found "secret", expected one of configmaps, events, fenceconfigurations, fenceconfigurations/status, fenceplugins, fenceplugins/status, jobs, leases, networkfences, nodefences, nodefences/status, nodes, persistentvolumeclaims, persistentvolumes, pods, pods/eviction, pods/status, remedybudgets, remedybudgets/status, remedyconfigurations, remedyconfigurations/status, remedypauses, secrets, volumeattachments"#
            ]],
        ),
        (
            "at: 60s, kubeletStops: node-a",
            "when: { fact: nodeReddy }, kubeletStops: node-a",
            expect![[
                r#"s.yaml:14:19: faults.when.fact: found "nodeReddy", expected one of kubeletStopped, kubeletStarted, networkLost, networkBack, machineHung, machineResumed, kernelDumpStarted, kernelDumpWritten, powerChanged, machineReset, bmcAccepted, bmcReported, bmcChanged, bmcRefused, bmcSessions, plugChanged, plugAccepted, plugReported, plugRefused, cloudAccepted, cloudReported, cloudRefused, instanceTerminated, nodeReady, nodeCreated, nodeDeleted, taintAdded, taintRemoved, cordoned, uncordoned, podCreated, podScheduled, podPhase, podTerminating, podGone, volumeAttached, volumeDetached, detachRequested, writerStarted, writerStopped, storageCut, storageBack, twoWriters, writeRepeated, fenceState, intentRecorded, proofRecorded, deviceAwaited, parkedRecorded, edited, nodeLocked, operatorCommand, policyMode, leaderChanged"#
            ]],
        ),
        (
            "at: 60s, kubeletStops: node-a",
            "when: { fact: podGone, time: 0 }, kubeletStops: node-a",
            expect!["s.yaml:14:34: faults.when.time: found 0, expected 1 or more"],
        ),
        (
            "at: 60s, kubeletStops",
            "kubeletStops",
            expect![
                "s.yaml:14:3: faults: found neither at nor when, expected at, or when (and after)"
            ],
        ),
        (
            "at: 60s, kubeletStops",
            "at: 60s, after: 5s, kubeletStops",
            expect!["s.yaml:14:3: faults: found at with after, expected at, or when (and after)"],
        ),
        (
            "title: a timeline",
            "titel: a timeline",
            expect![
                "s.yaml:1:1: unknown field `titel`, expected one of title, seed, duration, untilCalm, shuffle, cluster, nodes, pdus, switches, controllers, secondInstallation, workloads, configuration, faults, expect, expectWithout"
            ],
        ),
        (
            "duration: 5m",
            "duration: 5",
            expect![[
                r#"s.yaml:2:11: duration: found "5", expected a duration such as 90s, 1m30s or 250ms, up to a week"#
            ]],
        ),
        ("duration: 5m", "duration: [5m]", expect!["s.yaml:2:11: expected string scalar"]),
        (
            "name: node-a",
            "name: Node_A",
            expect![[r#"
            s.yaml:4:11: nodes.name: found "Node_A", expected lower-case letters, digits and dashes, at most 63
            s.yaml:13:29: faults.nodeComesBack: found "node-a", expected a node of this scenario
            s.yaml:14:28: faults.kubeletStops: found "node-a", expected a node of this scenario"#]],
        ),
        (
            "name: node-a",
            "name: spare-01",
            expect![[r#"
            s.yaml:5:11: nodes.name: found "spare-01" twice, expected distinct names
            s.yaml:13:29: faults.nodeComesBack: found "node-a", expected a node of this scenario
            s.yaml:14:28: faults.kubeletStops: found "node-a", expected a node of this scenario"#]],
        ),
        (
            "count: 12",
            "count: 0",
            expect![[r#"
            s.yaml:5:25: nodes.count: found 0, expected 1 to 15000
            s.yaml:15:40: faults.rackSilent: found "rack-2", expected a node or a zone of this scenario"#]],
        ),
        ("count: 12", "count: many", expect![[r#"s.yaml:5:25: found "many", expected u64"#]]),
        (
            "stuck: 1",
            "stuk: 1",
            expect![[
                r#"s.yaml:4:74: nodes.bmc.faults: found "stuk", expected one of drop, delay, dup, silent, dead, open_status, rakp2_status, rakp4_status, lose_rakp4, strict_rakp3, bad_rakp2, bad_rakp4, bad_auth, bad_tag, wrong_sid, no_ciphers, mute_ciphers, stuck, cc, off_after, reply_lost, flip_back, stale, truncate, kill_session, only_suite_zero, another_guid, none"#
            ]],
        ),
        (
            "password: secret",
            "guid: xyz",
            expect![[
                r#"s.yaml:4:46: nodes.bmc.guid: found "xyz", expected 32 hexadecimal digits"#
            ]],
        ),
        (
            "password: secret",
            "suites: [0]",
            expect!["s.yaml:4:49: nodes.bmc.suites: found 0, expected 3 or 17"],
        ),
        ("replicas: 2", "replicas: -1", expect![[r#"s.yaml:8:27: found "-1", expected u64"#]]),
        (
            "file: two.yaml",
            "file: three.yaml",
            expect!["s.yaml:10:9: configuration.file: failed to read three.yaml: no such file"],
        ),
        ("file: two.yaml", "file: bad.yaml", expect!["bad.yaml:1:4: unclosed bracket '['"]),
        (
            "kind: Secret",
            "kind: Secrets",
            expect![[
                r#"s.yaml:11:3: configuration: found apiVersion "v1", kind "Secrets", expected an object of a kind that a simulated cluster has"#
            ]],
        ),
        (
            ", namespace: d",
            "",
            expect![
                "s.yaml:11:3: configuration: Secret: expected metadata.name and metadata.namespace"
            ],
        ),
        (
            "kubeletStops: node-a",
            "kubeletStops: node-z",
            expect![[
                r#"s.yaml:14:28: faults.kubeletStops: found "node-z", expected a node of this scenario"#
            ]],
        ),
        (
            "kubeletStops: node-a",
            "kubeletStopps: node-a",
            expect![
                "s.yaml:14:14: unknown field `kubeletStopps`, expected one of at, when, after, within, kubeletStops, networkLost, machineHangs, kernelDumps, powerOffByHand, powerOnByHand, nodeComesBack, rackSilent, rackComesBack, bmcFault, deviceFault, plugOffByHand, plugOnByHand, cloudFault, instanceTerminated, deleteNode, cordon, taintOutOfService, forceDeletePod, holdPod, letPodGo, deleteAttachments, controllerKilled, controllerPaused, devicesLost, apiFault, clockFault, edit, remove, nodeCondition, nodeEvent, otherRemedy, operatorCommand, serverClock, etcd"
            ],
        ),
        (
            "{ at: 60s, kubeletStops: node-a }",
            "{ at: 60s }",
            expect!["s.yaml:14:3: faults: found 0 things that happen, expected one an entry"],
        ),
        (
            "rackSilent: [rack-2]",
            "rackSilent: [rack-3]",
            expect![[
                r#"s.yaml:15:40: faults.rackSilent: found "rack-3", expected a node or a zone of this scenario"#
            ]],
        ),
        (
            "at: 60s",
            "at: 5m",
            expect![[
                r#"s.yaml:14:9: faults.at: found "5m", expected that it happens before the scenario is over, whose duration is 5m"#
            ]],
        ),
        (
            "at: 60s",
            "at: 60s, within: 6m",
            expect![[
                r#"s.yaml:14:22: faults.within: found "6m", expected that it happens before the scenario is over, whose duration is 5m"#
            ]],
        ),
        (
            "fact: podGone",
            "fact: podgone",
            expect![[
                r#"s.yaml:17:11: expect.fact: found "podgone", expected one of kubeletStopped, kubeletStarted, networkLost, networkBack, machineHung, machineResumed, kernelDumpStarted, kernelDumpWritten, powerChanged, machineReset, bmcAccepted, bmcReported, bmcChanged, bmcRefused, bmcSessions, plugChanged, plugAccepted, plugReported, plugRefused, cloudAccepted, cloudReported, cloudRefused, instanceTerminated, nodeReady, nodeCreated, nodeDeleted, taintAdded, taintRemoved, cordoned, uncordoned, podCreated, podScheduled, podPhase, podTerminating, podGone, volumeAttached, volumeDetached, detachRequested, writerStarted, writerStopped, storageCut, storageBack, twoWriters, writeRepeated, fenceState, intentRecorded, proofRecorded, deviceAwaited, parkedRecorded, edited, nodeLocked, operatorCommand, policyMode, leaderChanged"#
            ]],
        ),
        (
            "pod: default",
            "node: a, pdo: default",
            expect![[
                r#"s.yaml:17:43: expect.where: found "pdo", expected one of pod, uid, node, by"#
            ]],
        ),
        (
            "expect:\n- { fact: podGone, where: { pod: default/db-0 }, times: 1, by: 3m }",
            "",
            expect![
                "s.yaml:2:11: expect: found nothing, expected at least one fact: a scenario that asserts nothing shows nothing"
            ],
        ),
    ];
    for (good, bad, expected) in rows {
        assert!(GOOD.contains(good), "{good}");
        check(&GOOD.replacen(good, bad, 1), &expected);
    }
}

#[test]
fn every_mistake_is_reported_not_only_the_first() {
    let bad = GOOD.replace("5m", "5").replace("stuck", "stuk").replace("podGone", "gone");
    assert_eq!(parse(&bad).unwrap_err().0.len(), 3);
}

#[test]
fn what_is_no_scenario_is_refused() {
    check("", &expect!["s.yaml: found 0 YAML documents, expected one scenario"]);
    check(
        "a: 1\n---\nb: 2",
        &expect![
            "s.yaml:1:1: unknown field `a`, expected one of title, seed, duration, untilCalm, shuffle, cluster, nodes, pdus, switches, controllers, secondInstallation, workloads, configuration, faults, expect, expectWithout"
        ],
    );
    check("title: a\ntitle: b", &expect!["s.yaml:2:1: duplicate mapping key: title"]);
    check(
        &"#".repeat((1 << 20) + 1),
        &expect!["s.yaml: found 1048577 bytes, expected at most 1048576"],
    );
}

#[test]
fn what_aliases_repeat_is_bounded_in_values_and_in_bytes() {
    let aliases = vec!["*a"; 2_000].join(",");
    let long = "y".repeat(300 * 1024);
    let object = "metadata: { name: s, namespace: d } }";
    let metadata = format!("metadata: {{ namespace: d, name: &a {long}, b: [{aliases}] }} }}");
    let bomb = GOOD.replacen(object, &metadata, 1);
    assert_ne!(bomb, GOOD);
    check(
        &bomb,
        &expect!["s.yaml:11:78: alias replay limit exceeded: total_replayed_events=856 > 855"],
    );
    let short = GOOD.replacen(object, &metadata.replace(&long, "y"), 1);
    assert!(parse(&short).is_ok(), "what is short may be said again and again");
}

#[test]
fn expectations_count_within_their_limits() {
    let at = |seconds: u64, node: &str| Fact {
        at: Time(START.0 + seconds * 1_000),
        what: What::NetworkLost { node: node.to_owned() },
    };
    let facts = [at(10, "a"), at(20, "b"), at(30, "a")];
    let rows = [
        ("{ fact: networkLost }", Ok(())),
        ("{ fact: networkLost, times: 3 }", Ok(())),
        ("{ fact: networkLost, times: 2 }", Err(3)),
        ("{ fact: networkLost, where: { node: a }, times: 2 }", Ok(())),
        ("{ fact: networkLost, where: { node: c } }", Err(0)),
        ("{ fact: networkLost, where: { node: c }, times: 0 }", Ok(())),
        ("{ fact: networkLost, where: { node: a }, after: 11s, times: 1 }", Ok(())),
        ("{ fact: networkLost, by: 9s }", Err(0)),
        ("{ fact: networkLost, by: 10s, times: 1 }", Ok(())),
        ("{ fact: networkBack }", Err(0)),
    ];
    for (expectation, expected) in rows {
        let text =
            format!("title: t\nduration: 1m\nnodes: [{{ name: a }}]\nexpect: [{expectation}]");
        let judged = parse(&text).unwrap().expect[0].judge(&facts);
        assert_eq!(judged.map_err(|unmet| unmet.found), expected, "{expectation}");
    }
}

#[test]
fn an_unmet_expectation_says_what_was_found_instead() {
    let text = "title: t\nduration: 1m\nnodes: [{ name: a }]
expect:\n- { fact: networkLost, where: { node: a }, by: 5s }";
    let facts =
        [Fact { at: Time(START.0 + 7_500), what: What::NetworkLost { node: "a".to_owned() } }];
    let unmet = parse(text).unwrap().expect[0].judge(&facts).unwrap_err();
    expect!["s.yaml:5:11: expected networkLost node=a, at least once, by 5s; found 0, happened at [7.5s]"].assert_eq(&unmet.to_string());
}

/// The names that expectations may use are those under which facts are told.
#[test]
fn the_vocabulary_is_that_of_the_facts() {
    for (name, fields) in VOCABULARY {
        let mut value = serde_json::Map::new();
        for field in fields {
            let sample = match *field {
                "code" | "plug" | "operation" | "leftOff" | "lasts" | "open" | "times" => {
                    serde_json::json!(1)
                }
                "graceful" | "ofAnother" => serde_json::json!(true),
                "power" => serde_json::json!("off"),
                "cause" => serde_json::json!("byHand"),
                _ => serde_json::json!("x"),
            };
            value.insert((*field).to_owned(), sample);
        }
        value.insert("fact".to_owned(), serde_json::json!(name));
        let told: What = serde_json::from_value(Value::Object(value.clone())).unwrap();
        assert_eq!(serde_json::to_value(&told).unwrap(), Value::Object(value));
    }
}
