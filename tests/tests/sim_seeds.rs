//! What the proposals print, played: seed 000's whole Configuration, and seed 001's objects for one node.
//! Placeholders are filled in, and only what no API server takes is changed: a list of one for `metadata`,
//! names with underscores, which stand in the label for them, and numbers where strings must be.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use node_remedy::simulate::{Part, Played, play};
use node_remedy_decide::Action;
use node_remedy_swarm::judge::{judge, timeline};
use node_remedy_swarm::scene::Setting;
use node_remedy_world::facts::{Power, What};
use serde_json::{Value, json};

use crate::sim_night::parse;

/// Seed 000's remedies, for nodes of one type.
const CONFIGURATION: &str = include_str!("../../host/api/tests/seeds/000-configuration.yaml");
/// Seed 001's objects.
const OBJECTS: [&str; 7] = [
    include_str!("../../host/api/tests/seeds/001-fence-method.yaml"),
    include_str!("../../host/api/tests/seeds/001-fence-method-template.yaml"),
    include_str!("../../host/api/tests/seeds/001-node-fence-config.yaml"),
    include_str!("../../host/api/tests/seeds/001-fence-stage-power.yaml"),
    include_str!("../../host/api/tests/seeds/001-fence-stage-cordon.yaml"),
    include_str!("../../host/api/tests/seeds/001-fence-stage-keep-away.yaml"),
    include_str!("../../host/api/tests/seeds/001-fence-stage-uncordon.yaml"),
];

/// Three nodes of the type that the Configuration selects, a database, and these objects; w1 is ill.
fn night(objects: &[Value], happenings: &str) -> Played {
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
{}happenings:
{happenings}expect:
- {{ fact: twoWriters, times: 0 }}
",
        objects.collect::<String>()
    );
    let scenario = parse(&text);
    let played = play(&scenario, Part::With).expect("a night");
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
fn the_configuration_of_seed_000_repairs_and_then_terminates() {
    let terminated = "- { at: 60s, kubeletStops: w1 }
- { when: { fact: podPhase, where: { pod: node-remedy/w1-1-job-2-0, phase: Running } }, after: 5s, powerOffByHand: w1 }
";
    let played = night(&configuration(), terminated);
    breaks_no_promise(&played, &Setting::default());
    let (nodefence, _, record) = &played.collected.incidents["w1-1"];
    let rungs: Vec<&str> = nodefence.spec.ladder.iter().map(|rung| rung.name.as_str()).collect();
    assert_eq!(rungs, ["repair", "terminate"], "{}", timeline(&played.facts));
    assert_eq!(record.jobs.len(), 2, "{}", timeline(&played.facts));
    assert!(record.operations.is_empty(), "no device was asked for anything");
    assert!(is_gone(&played, "default/db-0", "w1"), "{}", timeline(&played.facts));
}

/// w1's disk is full from second 60 on, and somebody sees to it at second 1500, with such happenings before.
fn night_of_a_full_disk(mended: &str) -> Played {
    let full = |status: &str| {
        format!(
            "nodeCondition: {{ node: w1, type: DiskPressure, status: \"{status}\", reason: Full }}"
        )
    };
    let (pressed, free) = (full("True"), full("False"));
    let happenings = format!(
        "- {{ at: 60s, {pressed} }}\n- {{ at: 600s, {pressed} }}\n{mended}- {{ at: 1500s, {free} }}\n"
    );
    let played = night(&configuration(), &happenings);
    // Its kubelet lives; its storage keeps it from writing.
    let ill = Setting {
        cuts_storage: true,
        ill: BTreeSet::from(["w1".to_owned()]),
        ..Setting::default()
    };
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
fn the_configuration_of_seed_000_fences_storage_of_a_full_disk() {
    let rebooted = "- { at: 1400s, powerOffByHand: w1 }\n- { at: 1410s, powerOnByHand: w1 }\n";
    let played = night_of_a_full_disk(rebooted);
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

/// An object of seed 001 as an API server takes it, at the address that w1's BMC has here.
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

#[test]
fn the_objects_of_seed_001_keep_pods_away_cordon_switch_off_and_on_and_uncordon() {
    let mut objects: Vec<Value> = OBJECTS.iter().map(|text| object(text)).collect();
    objects.push(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "bmc-credentials", "namespace": "node-remedy"},
        "stringData": {"username": "admin", "password": "simulated"},
    }));
    objects.push(json!({
        "apiVersion": "node-remedy.io/v1alpha1", "kind": "RemedyConfiguration",
        "metadata": {"name": "all"},
        "spec": {"thresholdConfigs": [{"nodeLeaseAge": "20s", "remedy1": [{"name": "fence"}]}]},
    }));
    let played = night(&objects, "- { at: 60s, kubeletStops: w1 }\n");
    breaks_no_promise(&played, &Setting::default());
    let told = || timeline(&played.facts);
    let words: Vec<&str> = played.facts.iter().filter_map(|fact| word(&fact.what)).collect();
    assert_eq!(words, ["kept away", "cordoned", "off", "on", "uncordoned"], "{}", told());
    assert!(is_gone(&played, "default/db-0", "w1"), "{}", told());
    let (nodefence, ..) = &played.collected.incidents["w1-1"];
    let names: Vec<&str> =
        nodefence.spec.plan.methods.iter().map(|method| method.name.as_str()).collect();
    assert!(names.contains(&"fence_method"), "its method has the name that was printed: {names:?}");
}
