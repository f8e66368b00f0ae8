//! The StatefulSet controller: one pod per ordinal, never two of one name.
//!
//! It waits for an old pod's object to be gone before it makes the next of that name:
//! this is why a pod of a lost node is Terminating for ever. Rolling updates, scaling
//! down and claim templates are not modelled; claims exist from the start.

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
    for set in sets.iter().filter(|set| !is_terminating(set)) {
        reconcile(stage, set);
    }
}

fn reconcile(stage: &mut Stage<'_>, owner: &Value) {
    let parallel = text(owner, "/spec/podManagementPolicy") == "Parallel";
    let replicas = number(owner, "/spec/replicas").unwrap_or(1);
    let mut ready = 0_u64;
    let mut blocked = false;
    for ordinal in 0..replicas {
        let key = pod_key(owner, ordinal);
        let pod = stage.api.peek(&key).cloned();
        let healthy = pod.as_ref().is_some_and(is_healthy);
        ready += u64::from(healthy);
        if blocked {
            continue;
        }
        match pod {
            None => create(stage, owner, ordinal),
            Some(pod) if is_over(&pod) && !is_terminating(&pod) => {
                let how = DeleteOptions { uid: Some(uid(&pod).to_owned()), ..Default::default() };
                // Gone already is what was wanted; a successor is not to be touched.
                drop(stage.api.client(NAME).delete(&key, &how));
            }
            Some(_) => {}
        }
        blocked = !parallel && !healthy;
    }
    let mut counted = owner.clone();
    let status = part(&mut counted, "status");
    set(status, "replicas", json!(replicas));
    set(status, "readyReplicas", json!(ready));
    // Counts are level: the next change brings the next try.
    drop(stage.api.client(NAME).update(Kind::StatefulSet, counted, Part::Status));
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
