//! Tests of `node_remedy_observe::reflector` in the model cluster or a simulated run.

use std::rc::Rc;

use k8s_openapi::api::core::v1::Node;
use node_remedy_api::remedypause::RemedyPause;
use node_remedy_observe::caches::Cached;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_observe::reflector::*;
use node_remedy_observe::store::Store;
use node_remedy_runtime::cluster::Scope;
use node_remedy_simulate::testing::in_quiet_world;
use node_remedy_world::api::{Key, Kind};
use tokio::sync::mpsc;

#[test]
fn a_store_follows_the_server_also_after_its_history_was_dropped() {
    in_quiet_world(|bench| async move {
        let (changes, mut changed) = mpsc::unbounded_channel();
        let store = Store::new("Node", changes);
        let see = |node: Node, _: Option<&PrunedNode>| PrunedNode::of(node);
        let cluster = bench.client("a");
        let kept = reflect(cluster, Scope::all(), store.clone(), see, Rc::new(|| ()));
        let kept = tokio::task::spawn_local(kept);
        while store.all().len() < 3 {
            changed.recv().await.unwrap();
        }
        let name = store.all().keys().next().cloned().unwrap();
        bench.shared.with(|world| {
            world.api().compact();
            let key = Key::cluster(Kind::Node, &name);
            let label = serde_json::json!({"metadata": {"labels": {"seen": "yes"}}});
            let part = node_remedy_world::api::Part::Main;
            world.api().client("test").merge_patch(&key, &label, part).unwrap();
            world.api().compact();
        });
        while store.find(&name).is_none_or(|node| !node.labels.contains_key("seen")) {
            changed.recv().await.unwrap();
        }
        kept.abort();
    });
}

/// In the list and in the watch: what comes after it is followed, and it itself once it can be read.
#[test]
fn an_object_that_cannot_be_read_hides_no_other() {
    in_quiet_world(|bench| async move {
        let write = |name: &str, until: &str| {
            bench.shared.with(|world| {
                let key = Key::cluster(Kind::RemedyPause, name);
                let spec = serde_json::json!({"reason": "r", "by": "b", "until": until});
                let api = world.api();
                let mut client = api.client("test");
                let part = node_remedy_world::api::Part::Main;
                let pause = serde_json::json!({"spec": spec});
                if client.merge_patch(&key, &pause, part).is_err() {
                    let object = serde_json::json!({
                        "apiVersion": "node-remedy.io/v1alpha1", "kind": "RemedyPause",
                        "metadata": {"name": name}, "spec": spec,
                    });
                    client.create(Kind::RemedyPause, object).unwrap();
                }
            });
        };
        let good = "2026-01-31T12:00:00Z";
        write("a", "soon");
        write("b", good);
        let (changes, mut changed) = mpsc::unbounded_channel();
        let store = Store::new("RemedyPause", changes);
        let see = |pause: RemedyPause, _: Option<&Cached<RemedyPause>>| Some(Cached(pause));
        let cluster = bench.client("a");
        let kept = reflect(cluster, Scope::all(), store.clone(), see, Rc::new(|| ()));
        let kept = tokio::task::spawn_local(kept);
        let mut until = async |read: &[&str], unread: &[&str]| {
            let names = |all: Vec<String>, named: &[&str]| all == named;
            while !names(store.keys(), read)
                || !names(store.unread().keys().cloned().collect(), unread)
            {
                changed.recv().await.unwrap();
            }
            assert!(store.is_followed());
        };
        until(&["b"], &["a"]).await;
        write("c", "later");
        write("d", good);
        until(&["b", "d"], &["a", "c"]).await;
        write("a", good);
        write("b", "never");
        until(&["a", "d"], &["b", "c"]).await;
        bench.shared.with(|world| {
            let how = node_remedy_world::api::DeleteOptions::default();
            let key = Key::cluster(Kind::RemedyPause, "c");
            world.api().client("test").delete(&key, &how).unwrap();
        });
        until(&["a", "d"], &["b"]).await;
        kept.abort();
    });
}
