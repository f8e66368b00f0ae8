//! A timeline made from a cluster's own objects: as they are, pods run on, one node is lost.

use std::collections::BTreeMap;

use node_remedy_world::Scenario;
use node_remedy_world::api::{Key, Kind};
use node_remedy_world::scenario::{Loss, LossHow, ScenarioErrors};
use serde_json::{Value, json};

use crate::stage::{first, run, scenario, timeline};

/// The objects of a cluster with three nodes and a set of two, as a snapshot shows them.
fn snapshot() -> String {
    let mut world = run(&scenario("- { at: 9m, kubeletStops: node-c }"));
    let kinds = [
        Kind::Node,
        Kind::Pod,
        Kind::PersistentVolume,
        Kind::PersistentVolumeClaim,
        Kind::VolumeAttachment,
        Kind::StatefulSet,
        Kind::Lease,
    ];
    let api = world.api();
    let mut items: Vec<Value> = kinds.iter().flat_map(|kind| api.all(*kind)).cloned().collect();
    items.push(json!({
        "apiVersion": "node-remedy.io/v1alpha1",
        "kind": "FenceConfiguration",
        "metadata": { "name": "ipmi" },
        "spec": { "templates": [{ "credentials": [{ "secret": "bmc" }] }] },
    }));
    items.push(json!({
        "apiVersion": "node-remedy.io/v1alpha1",
        "kind": "RemedyConfiguration",
        "metadata": { "name": "default" },
        "spec": { "mode": "shadow" },
    }));
    items.push(json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "x" } }));
    json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string()
}

/// The timeline in which the kubelet of this node stops.
fn losing(node: &str) -> Result<Scenario, ScenarioErrors> {
    let is_lost = |name: &str, _: &BTreeMap<String, String>| name == node;
    let loss = Loss { said: node, is_lost: &is_lost, how: LossHow::KubeletStops };
    Scenario::from_snapshot("c.yaml", &snapshot(), &loss)
}

#[test]
fn a_snapshot_goes_on_and_its_node_is_lost() {
    let scenario = losing("node-a").unwrap();
    let mut world = run(&scenario);
    let told = timeline(&world);
    assert_eq!(first(&world, 0.1, "pv-default-db-0: attached"), None, "{told}");
    assert_eq!(first(&world, 0.1, "default/db-0: created"), None, "{told}");
    let written = first(&world, 0.0, "pv-default-db-0: written by default/db-0 on node-a");
    assert!(written.unwrap() < 5.0, "{told}");
    assert!(first(&world, 60.0, "node-a: Ready Unknown").is_some(), "{told}");
    assert!(first(&world, 60.0, "db-0: Terminating on node-a").is_some(), "{told}");
    assert_eq!(first(&world, 0.0, "TWO WRITERS"), None);
    let secret = Key::within(Kind::Secret, "node-remedy", "bmc");
    let data = &world.api().peek(&secret).unwrap()["data"];
    assert_eq!(*data, json!({ "username": "YWRtaW4=", "password": "c2ltdWxhdGVk" }));
}

#[test]
fn what_a_cluster_only_tells_is_done_in_its_timeline() {
    let scenario = losing("node-a").unwrap();
    assert_eq!(scenario.title, "node-a is lost, and mode: shadow is played as enforce");
    let is_policy = |item: &&Value| item["kind"] == "RemedyConfiguration";
    let policy = scenario.existing.iter().find(is_policy).unwrap();
    assert_eq!(policy["spec"]["mode"], "enforce");
}

#[test]
fn a_node_that_was_silent_stays_silent_and_identities_are_kept() {
    let scenario = losing("node-a").unwrap();
    let world = run(&scenario);
    assert_eq!(first(&world, 0.0, "node-c: the network is gone"), Some(0.0));
    assert_eq!(first(&world, 0.1, "node-c: Ready True"), None);
    for node in &scenario.nodes {
        let guid = node.bmc.as_ref().unwrap().guid;
        let digits = format!("{:032x}", u128::from_be_bytes(guid));
        assert_eq!(node.system_uuid.replace('-', ""), digits);
        assert!(world.bmc_address(&node.name).is_some());
    }
}

#[test]
fn a_node_that_the_snapshot_does_not_show_cannot_be_lost() {
    let errors = losing("node-z").unwrap_err();
    assert_eq!(
        errors.to_string(),
        "c.yaml: --lose, --power-loss: found \"node-z\", expected one of the nodes node-a, node-b, node-c, \
         or a selector that selects some"
    );
}

#[test]
fn a_rack_loses_its_network_or_its_power() {
    let timeline = |how| {
        let is_lost = |name: &str, _: &BTreeMap<String, String>| name != "node-b";
        let loss = Loss { said: "rack=b", is_lost: &is_lost, how };
        Scenario::from_snapshot("c.yaml", &snapshot(), &loss).unwrap()
    };
    let switch = timeline(LossHow::NetworkLost);
    assert!(switch.title.starts_with("rack=b loses its network"), "{}", switch.title);
    let world = run(&switch);
    assert!(first(&world, 59.0, "node-a: the network is gone").is_some());
    assert_eq!(first(&world, 59.0, "node-a: power off"), None);
    assert_eq!(first(&world, 59.0, "node-b: the network is gone"), None);
    let power = timeline(LossHow::Dark);
    assert!(power.title.starts_with("rack=b goes dark"), "{}", power.title);
    let world = run(&power);
    assert!(first(&world, 59.0, "node-a: power off").is_some());
    assert_eq!(first(&world, 59.0, "node-b: power off"), None);
}
