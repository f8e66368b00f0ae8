//! What a real API server fills in when an object is created.
//!
//! Only the defaults and admission plugins whose effect somebody here relies on; no
//! validation of specs.

use serde_json::{Value, json};

use super::kind::Kind;
use super::object::{list, name, number, part, set, text};

/// `tolerationSeconds` that admission gives a pod for a node that is not ready or
/// unreachable, where the pod says nothing itself.
pub const DEFAULT_TOLERATION_S: u64 = 300;
/// `terminationGracePeriodSeconds` where the pod says nothing.
pub const DEFAULT_GRACE_S: u64 = 30;

/// Completes a new object.
pub(super) fn admit(kind: Kind, object: &mut Value) {
    match kind {
        Kind::Pod => admit_pod(object),
        Kind::Node => admit_node(object),
        Kind::Secret => encode_string_data(object),
        Kind::Namespace
        | Kind::ConfigMap
        | Kind::CoreEvent
        | Kind::Event
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::Lease
        | Kind::StatefulSet
        | Kind::DaemonSet
        | Kind::Job
        | Kind::PodDisruptionBudget
        | Kind::VolumeAttachment
        | Kind::CsiNode
        | Kind::CsiDriver
        | Kind::RemedyConfiguration
        | Kind::FenceConfiguration
        | Kind::FencePlugin
        | Kind::NodeFence
        | Kind::RemedyBudget
        | Kind::RemedyPause
        | Kind::NodeMaintenance
        | Kind::NetworkFence => {}
    }
}

/// Why an object may not become this: the rules in the definitions of our own kinds, and of the
/// built-in validation what somebody here can run into. Schemas are not modelled.
pub(super) fn refusal(kind: Kind, old: Option<&Value>, new: &Value) -> Option<&'static str> {
    let shrinks = |epoch: &str| {
        let before = old.and_then(|old| number(old, epoch));
        before.is_some_and(|before| number(new, epoch).is_some_and(|now| now < before))
    };
    let rules: [(Kind, bool, &'static str); 5] = [
        (
            Kind::Node,
            are_unique(list(new, "/spec/taints")),
            "taints must be unique by key and effect",
        ),
        (
            Kind::RemedyBudget,
            name(new) == "default",
            "there is one RemedyBudget, and its name is default",
        ),
        (Kind::RemedyBudget, !shrinks("/spec/epoch"), "an epoch only grows"),
        (
            Kind::NodeFence,
            old.is_none_or(|old| old.get("spec") == new.get("spec")),
            "the spec of a NodeFence is fixed when its incident is opened",
        ),
        (
            Kind::NodeFence,
            !shrinks("/status/epoch"),
            "a record with a larger epoch belongs to a newer leader",
        ),
    ];
    let mut broken = rules.into_iter().filter(|(of, holds, _)| *of == kind && !holds);
    broken.next().map(|(_, _, rule)| rule)
}

fn are_unique(taints: &[Value]) -> bool {
    let name = |taint| (text(taint, "/key"), text(taint, "/effect"));
    taints
        .iter()
        .enumerate()
        .all(|(place, taint)| taints.iter().take(place).all(|other| name(other) != name(taint)))
}

fn admit_pod(pod: &mut Value) {
    if text(pod, "/status/phase").is_empty() {
        set(part(pod, "status"), "phase", json!("Pending"));
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let has = list(pod, "/spec/tolerations").iter().any(|toleration| {
            let tolerated = text(toleration, "/key");
            (tolerated == key || tolerated.is_empty())
                && matches!(text(toleration, "/effect"), "NoExecute" | "")
        });
        if !has {
            push(
                part(part(pod, "spec"), "tolerations"),
                json!({
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": DEFAULT_TOLERATION_S,
                }),
            );
        }
    }
    let grace = part(part(pod, "spec"), "terminationGracePeriodSeconds");
    if grace.is_null() {
        *grace = json!(DEFAULT_GRACE_S);
    }
}

/// A new node takes no pods until the node lifecycle controller has seen it Ready.
fn admit_node(node: &mut Value) {
    let key = "node.kubernetes.io/not-ready";
    if !list(node, "/spec/taints").iter().any(|taint| text(taint, "/key") == key) {
        push(part(part(node, "spec"), "taints"), json!({ "key": key, "effect": "NoSchedule" }));
    }
}

/// `stringData` is for writing only: it ends in `data`, encoded.
fn encode_string_data(secret: &mut Value) {
    let Some(plain) = secret.as_object_mut().and_then(|fields| fields.remove("stringData")) else {
        return;
    };
    for (key, value) in plain.as_object().into_iter().flatten() {
        let encoded = base64(value.as_str().unwrap_or_default().as_bytes());
        set(part(secret, "data"), key, json!(encoded));
    }
}

fn push(value: &mut Value, item: Value) {
    match value {
        Value::Array(items) => items.push(item),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            *value = json!([item]);
        }
    }
}

/// Base64 with padding, as Secrets carry it.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = (at(0) << 16) | (at(1) << 8) | at(2);
        for place in 0..4_usize {
            let letter = ALPHABET.get((bits >> (18 - 6 * place) & 63) as usize);
            let letter = letter.filter(|_| place <= chunk.len());
            text.push(letter.map_or('=', |letter| char::from(*letter)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_kinds_keep_their_rules() {
        let budget = |name: &str, epoch: u64| json!({ "metadata": { "name": name }, "spec": { "epoch": epoch } });
        let fence = |remedy: &str, epoch: u64| json!({ "spec": { "remedy": remedy }, "status": { "epoch": epoch } });
        for (kind, old, new, allowed) in [
            (Kind::RemedyBudget, None, budget("another", 1), false),
            (Kind::RemedyBudget, Some(budget("default", 2)), budget("default", 1), false),
            (Kind::RemedyBudget, Some(budget("default", 2)), budget("default", 2), true),
            (Kind::NodeFence, None, fence("repair", 1), true),
            (Kind::NodeFence, Some(fence("repair", 2)), fence("repair", 3), true),
            (Kind::NodeFence, Some(fence("repair", 2)), fence("repair", 1), false),
            (Kind::NodeFence, Some(fence("repair", 2)), fence("terminate", 2), false),
            (Kind::NodeFence, Some(json!({ "spec": { "remedy": "a" } })), fence("a", 1), true),
        ] {
            assert_eq!(refusal(kind, old.as_ref(), &new).is_none(), allowed, "{old:?} {new}");
        }
    }

    #[test]
    fn a_pod_gets_the_tolerations_it_does_not_state() {
        let mut pod = json!({ "spec": { "tolerations": [{
            "key": "node.kubernetes.io/unreachable",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 10,
        }] } });
        admit(Kind::Pod, &mut pod);
        let seconds: Vec<_> = list(&pod, "/spec/tolerations")
            .iter()
            .map(|toleration| (text(toleration, "/key"), toleration["tolerationSeconds"].as_u64()))
            .collect();
        assert_eq!(
            seconds,
            [
                ("node.kubernetes.io/unreachable", Some(10)),
                ("node.kubernetes.io/not-ready", Some(300)),
            ]
        );
        assert_eq!(pod["status"]["phase"], "Pending");
        assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 30);
    }

    #[test]
    fn secrets_are_stored_encoded() {
        for (plain, encoded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob>?", "Zm9vYj4/")]
        {
            let mut secret = json!({ "stringData": { "password": plain } });
            admit(Kind::Secret, &mut secret);
            assert_eq!(secret, json!({ "data": { "password": encoded } }));
        }
    }
}
