//! Objects that this version cannot read, and the nodes that they are about: nobody knows what they say, so
//! nothing is begun there, and somebody is told. Configurations are not among them
//! ([`crate::config`]), nor pauses ([`crate::vetoes`]): those say more than which node.

use node_remedy_runtime::cluster::unread::Unread;
use serde_json::Value;

use crate::caches::{Caches, lease_key};
use crate::config::readout::{InForce, Readout};
use crate::pruned::PrunedNode;

/// The word for a NodeFence's [`State`](node_remedy_api::nodefence::State) that is over.
const FINAL: &str = "Final";

/// Which nodes an object is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom<'a> {
    /// This one.
    Node(&'a str),
    /// None.
    Nobody,
    /// That cannot be told, so it may be any.
    Anybody,
}

/// Why nothing may be begun on a node: what cannot be read, and may be about it.
pub fn about(caches: &Caches, node: &PrunedNode) -> Option<String> {
    let is_about = |whom: Whom<'_>| match whom {
        Whom::Node(name) => name == node.name,
        Whom::Nobody => false,
        Whom::Anybody => true,
    };
    if let Some(why) = self::node(caches, &node.name) {
        return Some(why);
    }
    let lease = lease_key(&node.name);
    if let Some(unread) = caches.leases.unread().get(&lease) {
        return Some(sentence("Lease", &lease, unread));
    }
    let (pods, attachments) = (caches.pods.unread(), caches.attachments.unread());
    let (nodefences, config_maps) = (caches.nodefences.unread(), caches.config_maps.unread());
    let pods = pods.iter().map(|(key, one)| ("Pod", key, one, of_pod(one)));
    let attachments = attachments
        .iter()
        .map(|(key, one)| ("VolumeAttachment", key, one, named(one, "/spec/nodeName")));
    let nodefences = nodefences.iter().map(|(key, one)| ("NodeFence", key, one, of_nodefence(one)));
    // It may say how a node is fenced, or where the devices of all are.
    let config_maps = config_maps.iter().map(|(key, one)| ("ConfigMap", key, one, Whom::Anybody));
    let mut all = nodefences.chain(config_maps).chain(pods).chain(attachments);
    let found = all.find(|(.., whom)| is_about(*whom));
    found.map(|(kind, key, unread, _)| sentence(kind, key, unread))
}

/// Why nothing is known of a node that is there.
pub fn node(caches: &Caches, name: &str) -> Option<String> {
    caches.nodes.unread().get(name).map(|unread| sentence("Node", name, unread))
}

/// Whom a pod is about: one that is not scheduled yet is on no node.
pub fn of_pod(unread: &Unread) -> Whom<'_> {
    unread.text("/spec/nodeName").map_or(Whom::Nobody, Whom::Node)
}

/// Whom a NodeFence is about. One that closes a device may close it for others, too (rule A13).
pub fn of_nodefence(unread: &Unread) -> Whom<'_> {
    let failed = unread.object().pointer("/status/onFailed").and_then(Value::as_array);
    if failed.is_some_and(|failed| !failed.is_empty()) {
        return Whom::Anybody;
    }
    named(unread, "/spec/node/name")
}

/// The nodes whose machines may be in the hands of a NodeFence that cannot be read.
pub fn down(caches: &Caches) -> Vec<String> {
    let is_over = |one: &&Unread| one.text("/status/status") == Some(FINAL);
    let unread = caches.nodefences.unread();
    let open = unread.values().filter(|one| !is_over(one));
    open.filter_map(|one| one.text("/spec/node/name").map(str::to_owned)).collect()
}

/// What is said of NodeFences and pauses that cannot be read.
pub fn readouts(caches: &Caches) -> Vec<Readout> {
    let (nodefences, pauses) = (caches.nodefences.unread(), caches.pauses.unread());
    let readout = |kind, name: &str, problems: String| Readout {
        kind,
        name: name.to_owned(),
        generation: 0,
        in_force: InForce::Nothing,
        problems,
    };
    let nodefences = nodefences.iter().map(|(name, one)| {
        let which = match of_nodefence(one) {
            Whom::Node(node) => format!("node {node} is left alone"),
            Whom::Nobody | Whom::Anybody => "every node is left alone".to_owned(),
        };
        readout("NodeFence", name, format!("it cannot be read, so {which}: {}", one.why()))
    });
    let pauses = pauses.iter().map(|(name, one)| {
        let why = format!("it cannot be read, and counts as a pause without an end: {}", one.why());
        readout("RemedyPause", name, why)
    });
    nodefences.chain(pauses).collect()
}

fn sentence(kind: &str, key: &str, unread: &Unread) -> String {
    format!(
        "{kind} {key}, which may be about this node, cannot be read: {}; correct it, delete it, or install \
         the version that wrote it",
        unread.why()
    )
}

fn named<'a>(unread: &'a Unread, place: &str) -> Whom<'a> {
    unread.text(place).map_or(Whom::Anybody, Whom::Node)
}

#[cfg(test)]
mod tests {
    use node_remedy_api::nodefence::NodeFence;
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::*;
    use node_remedy_runtime::cluster::{Object, unread};

    fn node(name: &str) -> PrunedNode {
        let object = json!({"metadata": {"name": name, "uid": "u"}});
        PrunedNode::of(serde_json::from_value(object).unwrap()).unwrap()
    }

    fn broken<K: Object>(object: &Value) -> Unread {
        unread::read::<K>(object.clone()).unwrap_err()
    }

    #[test]
    fn the_nodes_that_an_unreadable_object_may_be_about_are_left_alone() {
        let caches = Caches::new(&mpsc::unbounded_channel().0);
        let left_alone = || ["a", "b"].map(|name| about(&caches, &node(name)).is_some());
        let fence = |spec: &Value, status: &Value| {
            let object = json!({"metadata": {"name": "a-1"}, "spec": spec, "status": status});
            caches.nodefences.apply_unread("a-1".to_owned(), broken::<NodeFence>(&object));
        };
        assert_eq!(left_alone(), [false, false]);
        let of_a = json!({"node": {"name": "a"}, "policy": {"releaseMode": "a-newer-word"}});
        fence(&of_a, &json!({"status": "Running"}));
        assert_eq!((left_alone(), down(&caches)), ([true, false], vec!["a".to_owned()]));
        let said = readouts(&caches);
        assert!(said[0].problems.contains("node a is left alone"), "{}", said[0].problems);
        fence(&of_a, &json!({"status": "Final"}));
        assert_eq!((left_alone(), down(&caches)), ([true, false], Vec::new()), "over");
        fence(&of_a, &json!({"onFailed": [{}]}));
        assert_eq!(left_alone(), [true, true], "its device may be closed");
        fence(&json!({"node": 7}), &json!({}));
        assert_eq!(left_alone(), [true, true], "nobody knows whose it is");
        caches.nodefences.remove("a-1");

        let pod = |spec: &Value| {
            let object = json!({"metadata": {"name": "p"}, "spec": spec, "status": 7});
            let pod = broken::<k8s_openapi::api::core::v1::Pod>(&object);
            caches.pods.apply_unread("ns/p".to_owned(), pod);
        };
        pod(&json!({"nodeName": "b", "containers": []}));
        assert_eq!(left_alone(), [false, true]);
        pod(&json!({"containers": []}));
        assert_eq!(left_alone(), [false, false], "it is on no node");
        caches.pods.remove("ns/p");

        let lease = json!({"metadata": {"name": "a"}, "spec": {"renewTime": "soon"}});
        let lease = broken::<k8s_openapi::api::coordination::v1::Lease>(&lease);
        caches.leases.apply_unread(lease_key("a"), lease);
        assert_eq!(left_alone(), [true, false]);
        let object = json!({"metadata": {"name": "b"}, "spec": 7});
        let object = broken::<k8s_openapi::api::core::v1::Node>(&object);
        caches.nodes.apply_unread("b".to_owned(), object);
        assert_eq!(left_alone(), [true, true]);
        assert!(super::node(&caches, "b").is_some() && super::node(&caches, "a").is_none());
        let config_map = json!({"metadata": {"name": "c"}, "data": 7});
        let config_map = broken::<k8s_openapi::api::core::v1::ConfigMap>(&config_map);
        caches.config_maps.apply_unread("ns/c".to_owned(), config_map);
        assert!(about(&caches, &node("c")).is_some(), "it may say how any node is fenced");
    }
}
