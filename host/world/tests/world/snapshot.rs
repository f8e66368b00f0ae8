//! A story made from a cluster's own objects: as they are, pods run on, one node is lost.

use node_remedy_world::Scenario;
use node_remedy_world::api::{Key, Kind};
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

#[test]
fn a_snapshot_goes_on_and_its_node_is_lost() {
    let scenario = Scenario::from_snapshot("c.yaml", &snapshot(), "node-a").unwrap();
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
fn what_a_cluster_only_tells_is_done_in_its_story() {
    let scenario = Scenario::from_snapshot("c.yaml", &snapshot(), "node-a").unwrap();
    assert_eq!(scenario.title, "node-a is lost, and mode: shadow is played as enforce");
    let is_policy = |item: &&Value| item["kind"] == "RemedyConfiguration";
    let policy = scenario.existing.iter().find(is_policy).unwrap();
    assert_eq!(policy["spec"]["mode"], "enforce");
}

#[test]
fn a_node_that_was_silent_stays_silent_and_identities_are_kept() {
    let scenario = Scenario::from_snapshot("c.yaml", &snapshot(), "node-a").unwrap();
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
    let errors = Scenario::from_snapshot("c.yaml", &snapshot(), "node-z").unwrap_err();
    assert_eq!(
        errors.to_string(),
        "c.yaml:0:0: --lose: found \"node-z\", expected one of the nodes node-a, node-b, node-c"
    );
}
