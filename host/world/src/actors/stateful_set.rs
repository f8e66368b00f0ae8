//! The StatefulSet controller: one pod per ordinal, never two of one name.
//!
//! It waits for an old pod's object to be gone before it makes the next of that name:
//! this is why a pod of a lost node is Terminating for ever. A set that shrinks loses its
//! last pods first; an ordered one waits for each to be gone. Rolling updates and claim
//! templates are not modelled; claims exist from the start.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};

use crate::api::object::{
    Key, condition_status, is_terminating, list, name, namespace, number, part, set, text, uid,
};
use crate::api::{DeleteOptions, Kind, Part};
use crate::stage::Stage;

const NAME: &str = "statefulset-controller";

/// Brings every set one step on; a change in the API is what brings the next turn.
pub(crate) fn run(stage: &mut Stage<'_>) {
    let sets: Vec<Value> = stage.api.all(Kind::StatefulSet).cloned().collect();
    let surplus = surplus(stage, &sets);
    for set in sets.iter().filter(|set| !is_terminating(set)) {
        let surplus = surplus.get(uid(set)).map(Vec::as_slice).unwrap_or_default();
        reconcile(stage, set, surplus);
    }
}

/// The pods beyond their sets' ordinals, by the sets' UIDs, the last one first.
fn surplus(stage: &Stage<'_>, sets: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let wanted: BTreeMap<&str, Range<u64>> =
        sets.iter().map(|set| (uid(set), ordinals(set))).collect();
    let mut surplus: BTreeMap<String, Vec<(u64, Value)>> = BTreeMap::new();
    for pod in stage.api.all(Kind::Pod) {
        let owner = text(pod, "/metadata/ownerReferences/0/uid");
        let Some(wanted) = wanted.get(owner) else { continue };
        let ordinal = name(pod).rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse().ok());
        if let Some(ordinal) = ordinal.filter(|ordinal| !wanted.contains(ordinal)) {
            surplus.entry(owner.to_owned()).or_default().push((ordinal, pod.clone()));
        }
    }
    let in_order = |(owner, mut pods): (String, Vec<(u64, Value)>)| {
        pods.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        (owner, pods.into_iter().map(|(_, pod)| pod).collect())
    };
    surplus.into_iter().map(in_order).collect()
}

fn ordinals(set: &Value) -> Range<u64> {
    let start = number(set, "/spec/ordinals/start").unwrap_or_default();
    start..start.saturating_add(number(set, "/spec/replicas").unwrap_or(1))
}

fn reconcile(stage: &mut Stage<'_>, owner: &Value, surplus: &[Value]) {
    let parallel = text(owner, "/spec/podManagementPolicy") == "Parallel";
    let mut ready = 0_u64;
    let mut blocked = false;
    for ordinal in ordinals(owner) {
        let key = pod_key(owner, ordinal);
        let pod = stage.api.peek(&key).cloned();
        let healthy = pod.as_ref().is_some_and(is_healthy);
        ready += u64::from(healthy);
        if blocked {
            continue;
        }
        match pod {
            None => create(stage, owner, ordinal),
            Some(pod) if is_over(&pod) && !is_terminating(&pod) => delete(stage, &pod),
            Some(_) => {}
        }
        blocked = !parallel && !healthy;
    }
    for pod in surplus {
        if blocked {
            break;
        }
        if !is_terminating(pod) {
            delete(stage, pod);
        }
        blocked = !parallel;
    }
    let replicas = ordinals(owner).count().saturating_add(surplus.len());
    let mut counted = owner.clone();
    let status = part(&mut counted, "status");
    set(status, "replicas", json!(replicas));
    set(status, "readyReplicas", json!(ready));
    // Counts are level: the next change brings the next try.
    drop(stage.api.client(NAME).update(Kind::StatefulSet, counted, Part::Status));
}

/// Asks for the pod's end, of its kubelet.
fn delete(stage: &mut Stage<'_>, pod: &Value) {
    let how = DeleteOptions { uid: Some(uid(pod).to_owned()), ..Default::default() };
    // Gone already is what was wanted; a successor is not to be touched.
    drop(stage.api.client(NAME).delete(&Key::of(Kind::Pod, pod), &how));
}

fn create(stage: &mut Stage<'_>, owner: &Value, ordinal: u64) {
    let key = pod_key(owner, ordinal);
    let mut spec = owner.pointer("/spec/template/spec").cloned().unwrap_or_else(|| json!({}));
    let claims = list(owner, "/spec/volumeClaimTemplates").iter().map(|template| {
        let claim = format!("{}-{}", name(template), key.name);
        json!({ "name": name(template), "persistentVolumeClaim": { "claimName": claim } })
    });
    set(&mut spec, "volumes", Value::Array(claims.collect()));
    set(&mut spec, "hostname", json!(key.name));
    let mut labels =
        owner.pointer("/spec/template/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    set(&mut labels, "statefulset.kubernetes.io/pod-name", json!(key.name));
    set(&mut labels, "apps.kubernetes.io/pod-index", json!(ordinal.to_string()));
    let pod = json!({
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": labels,
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "name": name(owner),
                "uid": uid(owner),
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
    });
    // If it exists by now, the change that made it brings the next turn.
    drop(stage.api.client(NAME).create(Kind::Pod, pod));
}

fn pod_key(owner: &Value, ordinal: u64) -> Key {
    Key::within(Kind::Pod, namespace(owner), &format!("{}-{ordinal}", name(owner)))
}

fn is_healthy(pod: &Value) -> bool {
    text(pod, "/status/phase") == "Running"
        && condition_status(pod, "Ready") == "True"
        && !is_terminating(pod)
}

fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Failed" | "Succeeded")
}
