//! The scheduler: binds each new pod to the node that tolerates it and has fewest pods.
//!
//! No resources or priorities, of selectors only `nodeSelector`, of affinities only which nodes are to
//! be avoided: pods of one owner are spread first, then pods at large, then the name decides, so that
//! the choice is the same every time.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::taints::{Patience, patience};
use crate::api::object::{
    Key, is_terminating, is_true, list, name, part, set, set_condition, text,
};
use crate::api::{Kind, Part};
use crate::stage::Stage;
use crate::time::seconds_stamp;

const TERMS: &str =
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
const NAME: &str = "kube-scheduler";

/// Binds what can be bound now; a change in the API is what brings the next turn.
pub(crate) fn run(stage: &mut Stage<'_>) {
    let waiting: Vec<Value> = stage
        .api
        .all(Kind::Pod)
        .filter(|pod| text(pod, "/spec/nodeName").is_empty() && !is_terminating(pod))
        .cloned()
        .collect();
    if waiting.is_empty() {
        return;
    }
    let mut loads = loads(stage);
    for pod in waiting {
        let owner = owner(&pod).to_owned();
        let mut fitting: Vec<(usize, usize, String)> = stage
            .api
            .all(Kind::Node)
            .filter(|node| fits(&pod, node))
            .map(|node| {
                let load = loads.get(name(node)).cloned().unwrap_or_default();
                let siblings = load.iter().filter(|other| **other == owner).count();
                (siblings, load.len(), name(node).to_owned())
            })
            .collect();
        fitting.sort();
        match fitting.into_iter().next() {
            Some((_, _, node)) => {
                bind(stage, &pod, &node);
                loads.entry(node).or_default().push(owner);
            }
            None => mark_unschedulable(stage, &pod),
        }
    }
}

/// The owners of the pods on each node.
fn loads(stage: &Stage<'_>) -> BTreeMap<String, Vec<String>> {
    let mut loads: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in stage.api.all(Kind::Pod) {
        let node = text(pod, "/spec/nodeName");
        if !node.is_empty() {
            loads.entry(node.to_owned()).or_default().push(owner(pod).to_owned());
        }
    }
    loads
}

fn owner(pod: &Value) -> &str {
    text(pod, "/metadata/ownerReferences/0/uid")
}

fn fits(pod: &Value, node: &Value) -> bool {
    let refuses = |taint: &Value| {
        matches!(text(taint, "/effect"), "NoSchedule" | "NoExecute")
            && patience(pod, taint) == Patience::None
    };
    !is_true(node, "/spec/unschedulable")
        && !is_terminating(node)
        && is_selected(pod, node)
        && !is_avoided(pod, node)
        && !list(node, "/spec/taints").iter().any(refuses)
}

fn is_selected(pod: &Value, node: &Value) -> bool {
    let labels = node.pointer("/metadata/labels");
    let mut wanted =
        pod.pointer("/spec/nodeSelector").and_then(Value::as_object).into_iter().flatten();
    wanted.all(|(label, value)| labels.and_then(|labels| labels.get(label)) == Some(value))
}

/// Of node affinity only what keeps a pod away from nodes by name, in each of its terms.
fn is_avoided(pod: &Value, node: &Value) -> bool {
    let terms = list(pod, TERMS);
    let avoids = |term: &Value| {
        list(term, "/matchFields").iter().any(|field| {
            text(field, "/key") == "metadata.name"
                && text(field, "/operator") == "NotIn"
                && list(field, "/values").iter().any(|value| value == name(node))
        })
    };
    !terms.is_empty() && terms.iter().all(avoids)
}

fn bind(stage: &mut Stage<'_>, pod: &Value, node: &str) {
    let stamp = seconds_stamp(stage.now);
    let key = Key::of(Kind::Pod, pod);
    let mut bound = pod.clone();
    set(part(&mut bound, "spec"), "nodeName", json!(node));
    let mut client = stage.api.client(NAME);
    // A pod that changed meanwhile comes up again with that very change.
    if client.update(Kind::Pod, bound, Part::Main).is_ok()
        && let Ok(bound) = client.get(&key)
    {
        let mut scheduled = Value::clone(&bound);
        set_condition(&mut scheduled, "PodScheduled", "True", &stamp, json!({ "reason": null }));
        drop(client.update(Kind::Pod, scheduled, Part::Status));
    }
}

fn mark_unschedulable(stage: &mut Stage<'_>, pod: &Value) {
    let stamp = seconds_stamp(stage.now);
    let mut marked = pod.clone();
    let more = json!({ "reason": "Unschedulable", "message": "no node takes the pod" });
    set_condition(&mut marked, "PodScheduled", "False", &stamp, more);
    // A pod that changed meanwhile comes up again with that very change.
    drop(stage.api.client(NAME).update(Kind::Pod, marked, Part::Status));
}
