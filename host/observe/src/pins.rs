//! Which machine a Node was when it was first seen.
//!
//! A kubelet reports its machine's systemUUID itself, at any time. What it said first is kept by Node UID in a
//! ConfigMap of the controller's namespace, which no kubelet can write; a Node that says something else later is
//! another machine, or says that it is one. Not here: who writes it, which is `pinning.rs`.

use std::collections::{BTreeMap, BTreeSet};

use node_remedy_config::plan::identity;

use crate::pruned::PrunedNode;

/// The ConfigMap: systemUUID by Node UID. `deploy/` brings it, so that the controller needs no right to make any.
pub const CONFIG_MAP: &str = "node-identities";
/// What is kept stays below what an object may have, a mebibyte: some ten thousand nodes.
const BYTES_MAX: usize = 900 * 1024;

/// Why a Node may be another machine than it was.
pub fn changed(pins: &BTreeMap<String, String>, node: &PrunedNode) -> Option<String> {
    let first = pins.get(&node.uid)?;
    let is_same = same(first, &node.system_uuid);
    (!is_same).then(|| {
        format!(
            "found systemUUID {:?} of node {}, which said {first:?} when it was first seen, expected the same \
             machine; where it was changed on purpose, take the key {} out of ConfigMap {CONFIG_MAP}",
            node.system_uuid, node.name, node.uid
        )
    })
}

/// Whether a Node is not known to be the machine that said this systemUUID: what many machines say names none.
pub fn is_another(system_uuid: &str, node: &PrunedNode) -> bool {
    identity::machines(system_uuid).is_disjoint(&identity::machines(&node.system_uuid))
}

/// One machine's UUID has a spelling for each order of bytes; what is no UUID has one.
fn same(one: &str, other: &str) -> bool {
    let machines = [identity::machines(one), identity::machines(other)];
    let [of_one, of_other] = &machines;
    if machines.iter().all(BTreeSet::is_empty) {
        return one.eq_ignore_ascii_case(other);
    }
    !of_one.is_disjoint(of_other)
}

/// What is to be added for these Nodes, and which keys are of none of them.
pub fn missing<'a>(
    pins: &BTreeMap<String, String>,
    nodes: impl Iterator<Item = &'a PrunedNode>,
) -> (BTreeMap<String, String>, Vec<String>) {
    let mut gone: BTreeSet<&String> = pins.keys().collect();
    let mut added = BTreeMap::new();
    let mut bytes: usize =
        pins.iter().map(|(uid, uuid)| uid.len().saturating_add(uuid.len())).sum();
    for node in nodes {
        // A Node may be made before its kubelet ever spoke.
        if gone.remove(&node.uid) || pins.contains_key(&node.uid) || node.system_uuid.is_empty() {
            continue;
        }
        let more = bytes.saturating_add(node.uid.len()).saturating_add(node.system_uuid.len());
        if more > BYTES_MAX {
            tracing::warn!(node = node.name, "found no room for the pin of its machine");
            continue;
        }
        bytes = more;
        added.insert(node.uid.clone(), node.system_uuid.clone());
    }
    (added, gone.into_iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(uid: &str, uuid: &str) -> PrunedNode {
        let info = json!({
            "systemUUID": uuid, "bootID": "", "machineID": "", "architecture": "", "kernelVersion": "",
            "osImage": "", "operatingSystem": "", "kubeletVersion": "", "kubeProxyVersion": "",
            "containerRuntimeVersion": "",
        });
        let object = json!({"metadata": {"name": "w1", "uid": uid}, "status": {"nodeInfo": info}});
        PrunedNode::of(serde_json::from_value(object).unwrap()).unwrap()
    }

    fn pins(pins: &[(&str, &str)]) -> BTreeMap<String, String> {
        pins.iter().map(|(uid, uuid)| ((*uid).to_owned(), (*uuid).to_owned())).collect()
    }

    const UUID: &str = "4c4c4544-0051-4810-8031-b8c04f4e3231";

    #[test]
    fn a_node_that_says_another_machine_than_at_first_is_told_and_a_node_made_anew_is_not() {
        let first = pins(&[("u1", UUID)]);
        for (uid, uuid, is_changed) in [
            ("u1", UUID, false),
            ("u1", "44454C4C-5100-1048-8031-B8C04F4E3231", false),
            ("u1", "4c4c4544-0051-4810-8031-b8c04f4e3232", true),
            ("u1", "", true),
            ("u2", "4c4c4544-0051-4810-8031-b8c04f4e3232", false),
        ] {
            assert_eq!(changed(&first, &node(uid, uuid)).is_some(), is_changed, "{uid} {uuid}");
        }
        let vendors = pins(&[("u1", "Not Settable")]);
        assert_eq!(changed(&vendors, &node("u1", "not settable")), None);
        assert!(changed(&vendors, &node("u1", UUID)).unwrap().contains("take the key u1"));
    }

    #[test]
    fn a_node_is_the_same_machine_only_where_both_name_one() {
        for (known, said, is_another_one) in [
            (UUID, UUID, false),
            (UUID, "44454C4C-5100-1048-8031-B8C04F4E3231", false),
            (UUID, "4c4c4544-0051-4810-8031-b8c04f4e3232", true),
            (UUID, "", true),
            ("", "", true),
            ("Not Settable", "Not Settable", true),
        ] {
            assert_eq!(is_another(known, &node("u2", said)), is_another_one, "{known} {said}");
        }
    }

    #[test]
    fn what_was_said_first_is_kept_for_as_long_as_its_node_is_there() {
        let kept = pins(&[("u1", UUID), ("u0", "gone")]);
        let nodes = [node("u1", "another"), node("u2", "second"), node("u3", "")];
        let (added, gone) = missing(&kept, nodes.iter());
        assert_eq!((added, gone), (pins(&[("u2", "second")]), vec!["u0".to_owned()]));
    }

    #[test]
    fn no_more_is_kept_than_an_object_can_hold() {
        let uid = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
        let nodes: Vec<PrunedNode> = (0..20_000).map(|number| node(&uid(number), UUID)).collect();
        let (added, _) = missing(&BTreeMap::new(), nodes.iter());
        assert_eq!(added.len(), BYTES_MAX / (36 + 36));
    }
}
