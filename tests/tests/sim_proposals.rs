//! What the proposals print, played: proposal 000's whole Configuration, and proposal 001's objects for one node.
//! Placeholders are filled in, and only what no API server takes is changed: a list of one for `metadata`,
//! names with underscores, which stand in the label for them, and numbers where strings must be.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use node_remedy_decide::{Action, Notice};
use node_remedy_simulate::{Part, Played, play};
use node_remedy_swarm::judge::{judge, timeline};
use node_remedy_swarm::scene::Setting;
use node_remedy_tests::process::repository;
use node_remedy_world::facts::{Power, What};
use serde_json::{Value, json};

use crate::sim_run::{example, parse};

/// Proposal 000's remedies, for nodes of one type.
const CONFIGURATION: &str = include_str!("../../host/api/tests/proposals/000-configuration.yaml");
/// Proposal 001's objects.
const OBJECTS: [&str; 7] = [
    include_str!("../../host/api/tests/proposals/001-fence-method.yaml"),
    include_str!("../../host/api/tests/proposals/001-fence-method-template.yaml"),
    include_str!("../../host/api/tests/proposals/001-node-fence-config.yaml"),
    include_str!("../../host/api/tests/proposals/001-fence-stage-power.yaml"),
    include_str!("../../host/api/tests/proposals/001-fence-stage-cordon.yaml"),
    include_str!("../../host/api/tests/proposals/001-fence-stage-keep-away.yaml"),
    include_str!("../../host/api/tests/proposals/001-fence-stage-uncordon.yaml"),
];

/// Three nodes of the type that the Configuration selects, a database, and these objects; w1 is ill.
fn run(objects: &[Value], faults: &str) -> Played {
    let objects = objects.iter().map(|object| format!("- object: {object}\n"));
    let text = format!(
        "title: as printed
seed: 3
duration: 45m
nodes:
- {{ name: w1, bootTime: 20s, labels: {{ type: compute }} }}
- {{ name: w2, bootTime: 20s, labels: {{ type: compute }} }}
- {{ name: w3, bootTime: 20s, labels: {{ type: compute }} }}
workloads:
  statefulSets:
  - {{ name: db, replicas: 3, volumes: true, toleration: 30s, parallel: true }}
configuration:
{}faults:
{faults}expect:
- {{ fact: twoWriters, times: 0 }}
",
        objects.collect::<String>()
    );
    let scenario = parse(&text);
    let played = play(&scenario, Part::With).expect("a run");
    for one in &scenario.expect {
        assert!(one.judge(&played.facts).is_ok(), "{}", timeline(&played.facts));
    }
    played
}

fn breaks_no_promise(played: &Played, setting: &Setting) {
    assert_eq!(judge(&played.facts, setting).broken, [], "{}", timeline(&played.facts));
}

fn is_gone(played: &Played, pod: &str, from: &str) -> bool {
    let is_it = |what: &What| matches!(what, What::PodGone { pod: gone, node, by, .. } if gone == pod && node == from && by == "node-remedy");
    played.facts.iter().any(|fact| is_it(&fact.what))
}

/// The Configuration in a ConfigMap of the controller's namespace, and what it asks for.
fn configuration() -> Vec<Value> {
    let config_map = |name: &str, key: &str, text: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "node-remedy"}, "data": {key: text},
        })
    };
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "secret-key", "namespace": "node-remedy"}, "stringData": {"KEY": "x"},
    });
    vec![
        config_map("remedies", "configuration.yaml", CONFIGURATION),
        config_map("fence-method-config", "key", "value"),
        secret,
        storage_fence(),
    ]
}

/// What isolates a node here: its storage.
fn storage_fence() -> Value {
    let parameters = json!({
        "driver": "block.csi.node-remedy.io", "secretName": "s", "secretNamespace": "ns", "pool": "a",
    });
    json!({
        "apiVersion": "node-remedy.io/v1alpha1", "kind": "FenceConfiguration",
        "metadata": {"name": "storage"},
        "spec": {
            "nodeSelector": "type=compute",
            "methods": [{
                "name": "storage", "builtin": "network-fence", "parameters": parameters,
                "storageDrivers": ["block.csi.node-remedy.io"],
            }],
            "isolation": [{"name": "cut", "methods": ["storage"]}],
            "recovery": [{"name": "back", "methods": ["storage"]}],
        },
    })
}

/// The repair ran and the node is not Ready three minutes later: it is terminated, and its resources are
/// cleaned.
#[test]
fn the_configuration_of_proposal_000_repairs_and_then_terminates() {
    let terminated = "- { at: 60s, kubeletStops: w1 }
- { when: { fact: podPhase, where: { pod: node-remedy/w1-1-job-2-0, phase: Running } }, after: 5s, powerOffByHand: w1 }
";
    let played = run(&configuration(), terminated);
    breaks_no_promise(&played, &Setting::default());
    let (nodefence, _, record) = &played.collected.incidents["w1-1"];
    let remedy_steps: Vec<&str> =
        nodefence.spec.ladder.iter().map(|remedy_step| remedy_step.name.as_str()).collect();
    assert_eq!(remedy_steps, ["repair", "terminate"], "{}", timeline(&played.facts));
    assert_eq!(record.jobs.len(), 2, "{}", timeline(&played.facts));
    assert!(record.operations.is_empty(), "no device was asked for anything");
    assert!(is_gone(&played, "default/db-0", "w1"), "{}", timeline(&played.facts));
}

/// w1's disk is full from second 60 on, and somebody sees to it at second 1500, with such faults before.
fn run_of_a_full_disk(mended: &str) -> Played {
    let full = |status: &str| {
        format!(
            "nodeCondition: {{ node: w1, type: DiskPressure, status: \"{status}\", reason: Full }}"
        )
    };
    let (pressed, free) = (full("True"), full("False"));
    let faults = format!(
        "- {{ at: 60s, {pressed} }}\n- {{ at: 600s, {pressed} }}\n{mended}- {{ at: 1500s, {free} }}\n"
    );
    let played = run(&configuration(), &faults);
    // Its kubelet lives; its storage keeps it from writing.
    let ill = Setting { ill: BTreeSet::from(["w1".to_owned()]), ..Setting::default() };
    breaks_no_promise(&played, &ill);
    played
}

/// The last state of w1's NodeFence.
fn last_state(played: &Played) -> Option<&str> {
    played.facts.iter().rev().find_map(|fact| {
        let What::FenceState { node, state, .. } = &fact.what else { return None };
        (node == "w1").then_some(state.as_str())
    })
}

/// Its disk is full for ten minutes: storage is cut and what used it runs elsewhere. When it was rebooted
/// and there is room, its storage is given back.
#[test]
fn the_configuration_of_proposal_000_fences_storage_of_a_full_disk() {
    let rebooted = "- { at: 1400s, powerOffByHand: w1 }\n- { at: 1410s, powerOnByHand: w1 }\n";
    let played = run_of_a_full_disk(rebooted);
    let told = || timeline(&played.facts);
    let (nodefence, _, record) =
        played.collected.incidents.get("w1-1").unwrap_or_else(|| panic!("{}", told()));
    assert_eq!(nodefence.spec.remedy, "storage-fence");
    let opened_s = (record.opened_at.0 - node_remedy_world::scenario::START.0) / 1_000;
    assert!((660..720).contains(&opened_s), "ten minutes after it began: {opened_s} s");

    // What cannot write any more is deleted by us, and then writes on another node.
    let goes = |what: &What| matches!(what, What::PodGone { pod, node, by, .. } if pod == "default/db-0" && node == "w1" && by == "node-remedy");
    let gone = played.facts.iter().position(|fact| goes(&fact.what));
    let gone = gone.unwrap_or_else(|| panic!("{}", told()));
    let writes_on = |what: &What| {
        let What::WriterStarted { pod, node, .. } = what else { return None };
        (pod == "default/db-0").then(|| node.clone())
    };
    let elsewhere = played.facts.iter().skip(gone).find_map(|fact| writes_on(&fact.what));
    assert!(elsewhere.is_some_and(|node| node != "w1"), "{}", told());

    let mut actions: Vec<Action> = record.operations.iter().map(|one| one.action).collect();
    actions.retain(|action| *action != Action::Status);
    assert_eq!(actions, [Action::Off, Action::On], "cut, and given back: {}", told());
    assert_eq!(last_state(&played), Some("Final"), "{}", told());
}

/// An object of proposal 001 as an API server takes it, at the address that w1's BMC has here.
fn object(text: &str) -> Value {
    let text = text.replace("ipaddr: 192.0.2.11", "ipaddr: 192.0.2.1").replace("6230", "623");
    let printed: Value = serde_saphyr::from_str(&text).expect("an object of the seed");
    let name = printed.pointer("/metadata/0/name").and_then(Value::as_str).expect("its name");
    let data = printed.get("data").and_then(Value::as_object).expect("its data");
    let data = data.iter().map(|(key, value)| {
        let text = match (value.as_str(), value.as_bool()) {
            (Some(text), _) => text.to_owned(),
            (None, Some(word)) => if word { "yes" } else { "no" }.to_owned(),
            (None, None) => value.to_string(),
        };
        (key.clone(), Value::String(text))
    });
    let data: serde_json::Map<String, Value> = data.collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {
            "name": name.replace('_', "-"), "namespace": "node-remedy",
            "labels": {"node-remedy.io/name": name},
        },
    })
}

/// What a fact says of w1, if it is one of these.
fn word(what: &What) -> Option<&'static str> {
    if let What::NodeReady { node, status, .. } = what {
        return (node == "w1" && status == "True").then_some("well");
    }
    if let What::TaintAdded { node, key, .. } = what {
        return (node == "w1" && key.contains("quarantine")).then_some("kept away");
    }
    if let What::PowerChanged { node, power, .. } = what {
        return (node == "w1").then_some(if *power == Power::Off { "off" } else { "on" });
    }
    if let What::Cordoned { node, .. } = what {
        return (node == "w1").then_some("cordoned");
    }
    if let What::Uncordoned { node, .. } = what {
        return (node == "w1").then_some("uncordoned");
    }
    None
}

/// A BMC's account in a Secret.
fn secret(name: &str, password: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": "node-remedy"},
        "stringData": {"username": "admin", "password": password},
    })
}

/// w1 is lost with proposal 001's objects, each of them changed so, and with these.
fn run_of_objects(change: impl Fn(&str) -> String, more: &[Value]) -> Played {
    let mut objects: Vec<Value> = OBJECTS.iter().map(|text| object(&change(text))).collect();
    objects.extend_from_slice(more);
    objects.push(secret("bmc-credentials", "simulated"));
    objects.push(json!({
        "apiVersion": "node-remedy.io/v1alpha1", "kind": "RemedyConfiguration",
        "metadata": {"name": "all"},
        "spec": {"thresholdConfigs": [{"nodeLeaseAge": "20s", "remedy1": [{"name": "fence"}]}]},
    }));
    let played = run(&objects, "- { at: 60s, kubeletStops: w1 }\n");
    breaks_no_promise(&played, &Setting::default());
    played
}

fn words(played: &Played) -> Vec<&'static str> {
    played.facts.iter().filter_map(|fact| word(&fact.what)).collect()
}

/// The steps and states of w1's NodeFence, one after the other.
fn states_of(played: &Played) -> Vec<(&str, &str)> {
    let of_w1 = played.facts.iter().filter_map(|fact| {
        let What::FenceState { node, step, state, .. } = &fact.what else { return None };
        (node == "w1").then_some((step.as_str(), state.as_str()))
    });
    of_w1.collect()
}

/// Its recover stage comes last, once the node is well again, and its record tells each step.
#[test]
fn the_objects_of_proposal_001_keep_pods_away_cordon_switch_off_and_on_and_uncordon() {
    let played = run_of_objects(str::to_owned, &[]);
    let told = || timeline(&played.facts);
    let expected = ["well", "kept away", "cordoned", "off", "on", "well", "uncordoned"];
    assert_eq!(words(&played), expected, "{}", told());
    assert!(is_gone(&played, "default/db-0", "w1"), "{}", told());
    let states = [
        ("Isolation", "New"),
        ("Power-Management", "Running"),
        ("Recovery", "Done"),
        ("Recovery", "Final"),
    ];
    assert_eq!(states_of(&played), states, "{}", told());
    let (nodefence, ..) = &played.collected.incidents["w1-1"];
    let names: Vec<&str> =
        nodefence.spec.plan.methods.iter().map(|method| method.name.as_str()).collect();
    assert!(names.contains(&"fence_method"), "its method has the name that was printed: {names:?}");
}

/// The stage that switches off has another method, which fails. It is asked where all are to be run, and
/// where the first that succeeds comes after it.
#[test]
fn a_stage_of_proposal_001_runs_all_its_methods_or_the_first_that_succeeds() {
    let [method, ..] = OBJECTS;
    let other = method.replace("fence_method\n", "fence_method_other\n");
    let other = other.replace("192.0.2.11", "192.0.2.2\n  secret: wrong-credentials");
    let more = [object(&other), secret("wrong-credentials", "wrong")];
    let both = ["fence_method", "fence_method_other"];
    for (policy, [first, second], asked) in [
        ("all", both, both.as_slice()),
        ("only one", both, &both[..1]),
        ("only one", ["fence_method_other", "fence_method"], &both),
    ] {
        let methods = format!("  fence_method1: {first}\n  fence_method2: {second}\n");
        let change = |text: &str| {
            let text = text.replace("must_success: yes", "must_success: no");
            text.replace("execution_policy: all", &format!("execution_policy: {policy}"))
                .replace("  fence_method1: fence_method\n", &methods)
        };
        let played = run_of_objects(change, &more);
        let told = || format!("{policy}, {first} first: {}", timeline(&played.facts));
        let (nodefence, ..) = &played.collected.incidents["w1-1"];
        let journal = played.collected.journals.values().next().expect("an incident");
        let names = journal.values().map(|one| &*nodefence.spec.plan.methods[one.method].name);
        assert!(
            names.collect::<BTreeSet<&str>>().into_iter().eq(asked.iter().copied()),
            "{}",
            told()
        );
        let switched = words(&played).into_iter().filter(|word| ["off", "on"].contains(word));
        assert_eq!(switched.collect::<Vec<_>>(), ["off", "on"], "{}", told());
    }
}

/// The admin takes care of the stages: without one that is named a node is not fenced by the others.
#[test]
fn a_node_of_proposal_001_whose_stage_is_missing_is_left_alone_and_says_why() {
    let change = |text: &str| text.replace("fence_stage1: power", "fence_stage1: powr");
    let played = run_of_objects(change, &[]);
    assert_eq!(words(&played), ["well"], "{}", timeline(&played.facts));
    let mut refused = played.collected.refused.iter().filter(|one| one.node == "w1");
    let names_it = refused.any(|one| one.reason.to_string().contains("powr"));
    assert!(names_it, "{:?}", played.collected.refused);
}

/// A run of a cloud whose nodes no object says anything about, and the same with this ConfigMap.
fn run_of_a_cloud(config_map: Option<&str>) -> Played {
    let path = repository().join("tests/scenarios/cloud-loss.yaml");
    let text = std::fs::read_to_string(path).expect("a scenario").replace("node-a", "w1");
    let own = config_map.map_or_else(String::new, |config| {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "fence-config-w1", "namespace": "node-remedy"},
            "data": {"config.properties": config},
        });
        format!("- object: {object}\n")
    });
    let text = text.replace("- file: ../../examples/config/fence-aws.yaml\n", &own);
    play(&parse(&text), Part::With).expect("a run")
}

#[test]
fn a_cloud_node_is_fenced_by_default_and_otherwise_where_its_config_map_says_so() {
    let own = "node_name=w1\npower_management=restart-instance\n";
    let cordons = ["well", "cordoned", "off", "on", "well", "uncordoned"].as_slice();
    let plain = ["well", "off", "on", "well"].as_slice();
    for (config_map, expected) in [(None, cordons), (Some(own), plain)] {
        let played = run_of_a_cloud(config_map);
        let mut words = words(&played);
        words.retain(|word| *word != "kept away");
        assert_eq!(words, expected, "{config_map:?}: {}", timeline(&played.facts));
    }
}

/// w1 is lost; its recovery brings up a port that somebody cut by hand.
fn run_of_a_recovery(happens: &str) -> Played {
    let read = |file: &str| std::fs::read_to_string(repository().join(file)).expect("a file");
    let fence = read("examples/config/fence-snmp-switch.yaml")
        .replace("${inventory['switch-port']}", "Gi1/0/8")
        .replace("  - name: cut-the-network\n    methods: [cut]\n", "")
        .replace("action: off", "action: on")
        .replace("  grants:", "  recovery:\n  - name: back\n    methods: [cut]\n  grants:");
    let fence = format!("- object:\n    {}\n", fence.trim_end().replace('\n', "\n    "));
    let happens = format!("faults:\n- {{ at: 1s, plugOffByHand: leaf/8 }}\n{happens}");
    let text = read("tests/scenarios/port-before-power.yaml").replace("node-a", "w1");
    // The port is one node's alone.
    let text = text
        .replace("snmp-switch }, port: leaf/2", "other }, port: leaf/2")
        .replace("snmp-switch }, port: leaf/3", "other }, port: leaf/3")
        .replace("- file: ../../examples/config/fence-snmp-switch.yaml\n", &fence)
        .replace("faults:\n", &happens);
    play(&parse(&text), Part::With).expect("a run")
}

/// One that fails is told of, and keeps no node that is well from being at an end.
#[test]
fn a_recovery_stage_is_run_once_its_node_is_well() {
    let refuses = "- { at: 2s, deviceFault: { device: leaf, fault: set_status, value: 17 } }\n";
    let up = ["well", "off", "on", "well", "up"].as_slice();
    for (happens, expected, failures) in [("", up, 0), (refuses, &up[..4], 1)] {
        let played = run_of_a_recovery(happens);
        let words = played.facts.iter().filter_map(|fact| {
            if let What::PlugChanged { plug: 8, power: Power::On, .. } = &fact.what {
                return Some("up");
            }
            word(&fact.what).filter(|word| ["off", "on", "well"].contains(word))
        });
        assert_eq!(words.collect::<Vec<_>>(), expected, "{}", timeline(&played.facts));
        assert_eq!(last_state(&played), Some("Final"), "{}", timeline(&played.facts));
        let told = played.collected.decided.iter().flat_map(|decided| &decided.notices);
        let failed = told.filter(|(notice, _)| matches!(notice, Notice::MethodFailed { .. }));
        assert_eq!(failed.count(), failures, "{}", timeline(&played.facts));
    }
}

/// A node may be left out by a label or an annotation; the same on a set or a pod says nothing.
#[test]
fn a_set_cannot_be_left_out_and_a_node_can() {
    for (whose, is_cut) in [
        ("kind: StatefulSet, namespace: default, name: db", true),
        ("kind: Pod, namespace: default, name: db-0", true),
        ("kind: Node, name: node-a", false),
    ] {
        let marks = "{ node-remedy.io/exclude: \"true\", \
                     remediation.medik8s.io/exclude-from-remediation: \"true\" }";
        let merge = format!("{{ metadata: {{ labels: {marks}, annotations: {marks} }} }}");
        let edit = format!("faults:\n- {{ at: 50s, edit: {{ {whose}, merge: {merge} }} }}");
        let scenario = parse(&example("lost-node").0.replace("faults:", &edit));
        let played = play(&scenario, Part::With).expect("a run");
        let cut = |what: &What| matches!(what, What::PowerChanged { power: Power::Off, .. });
        let is_off = played.facts.iter().any(|fact| cut(&fact.what));
        let is_released = is_gone(&played, "default/db-0", "node-a");
        let told = || timeline(&played.facts);
        assert_eq!((is_off, is_released), (is_cut, is_cut), "{whose}: {}", told());
    }
}

/// A run of a cloud without an autoscaler: the set is to have one member while its last one is on the
/// lost instance, and three again later.
#[test]
fn a_stateful_set_of_a_cloud_shrinks_and_grows_after_a_member_was_lost() {
    let path = repository().join("tests/scenarios/cloud-loss.yaml");
    let text = std::fs::read_to_string(path).expect("a scenario");
    let resize = |at: &str, replicas: u32| {
        format!(
            "- {{ at: {at}, edit: {{ kind: StatefulSet, namespace: default, name: db, \
             merge: {{ spec: {{ replicas: {replicas} }} }} }} }}\n"
        )
    };
    let happens = format!("faults:\n{}{}", resize("65s", 1), resize("4m", 3));
    let text = text.replace("replicas: 2", "replicas: 3").replace(", parallel: true", "");
    let text = text.replace("kubeletStops: node-a", "kubeletStops: node-c");
    let scenario = parse(&text.replace("faults:\n", &happens));
    for (part, is_resized) in [(Part::With, true), (Part::Without, false)] {
        let played = play(&scenario, part).expect("a run");
        let is_of = |pod: &str, number: u32| *pod == *format!("default/db-{number}");
        let told = played.facts.iter().map(|fact| &fact.what);
        let shrunk = told
            .clone()
            .position(|what| matches!(what, What::PodGone { pod, .. } if is_of(pod, 1)));
        let mut later = told.skip(shrunk.unwrap_or_default());
        let has_grown = later.any(|what| {
            matches!(what, What::PodPhase { pod, phase, .. } if is_of(pod, 2) && phase == "Running")
        });
        let found = (shrunk.is_some(), shrunk.is_some() && has_grown);
        assert_eq!(found, (is_resized, is_resized), "{part:?}: {}", timeline(&played.facts));
    }
}
