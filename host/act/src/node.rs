//! Writes to Node objects: our taints, our cordon. Nothing of anybody else.
//!
//! `spec.taints` is one atomic list, so every write is a JSON patch that first tests the
//! resourceVersion and the list it was computed from (rule P7). A failed test reads the
//! node again; each function is idempotent and says whether the node is now as asked.

use json_patch::Patch;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt as _;
use node_remedy_api::annotations::{
    CORDONED_BY, OUT_OF_SERVICE_BY, REMEDIATION_POD, REMEDIATION_TIME,
};
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_observe::pruned::{OUT_OF_SERVICE, OUT_OF_SERVICE_VALUE, QUARANTINE};
use node_remedy_runtime::cluster::{At, Cluster, ClusterError};
use serde_json::{Value, json};

/// How often a write that lost a race is computed anew before the caller hears of it.
const RACES_MAX: usize = 5;

/// Keeps the cluster autoscaler from taking a machine away that we are about to switch.
pub const NO_SCALE_DOWN: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
/// The same for Karpenter.
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// What each autoscaler reads, and what says on the Node that this is ours: a person's own is left standing.
pub const AUTOSCALERS: [(&str, &str); 2] = [
    (NO_SCALE_DOWN, "node-remedy.io/scale-down-disabled"),
    (DO_NOT_DISRUPT, "node-remedy.io/do-not-disrupt"),
];

/// The effect of our taints: nothing new comes, and nothing goes.
const NO_SCHEDULE: &str = "NoSchedule";

/// A change to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeChange {
    /// Nothing new may be scheduled here.
    Quarantine,
    /// Lift our quarantine.
    Unquarantine,
    /// Pods may be force-deleted and volumes detached: the node is proven off. Noted as ours.
    OutOfService {
        /// The incident's name.
        nodefence: String,
    },
    /// Lift the out-of-service taint, if we had set it.
    LiftOutOfService,
    /// Mark unschedulable, and note that we did.
    Cordon {
        /// The incident's name.
        nodefence: String,
    },
    /// Mark schedulable, if we had marked it unschedulable.
    Uncordon,
    /// Say which pod remedies the node, and since when. In one patch: a node that half of it was written to would be
    /// signed anew at each look, with another time.
    RemediationPod {
        /// The pod's name.
        pod: String,
        /// RFC 3339.
        since: String,
    },
    /// Keep or let go an annotation.
    Annotate {
        /// The annotation's key.
        key: String,
        /// `None` removes it.
        value: Option<String>,
    },
}

/// Makes `change` true of the node; `false` where the node, or that node by UID, is gone.
pub async fn change_node<C: Cluster>(
    cluster: &C,
    name: &str,
    uid: &str,
    change: &NodeChange,
) -> Result<bool, ClusterError> {
    let mut last = ClusterError::Conflict("the node keeps changing".to_owned());
    for _ in 0..RACES_MAX {
        let Some(node) = cluster.get::<Node>(At::cluster(name)).await? else { return Ok(false) };
        if node.uid().as_deref() != Some(uid) {
            return Ok(false);
        }
        let Some(patch) = patch_for(&node, change)? else { return Ok(true) };
        match cluster.patch::<Node>(At::cluster(name), &patch).await {
            Ok(_) => return Ok(true),
            Err(error @ (ClusterError::Conflict(_) | ClusterError::Invalid(_))) => last = error,
            Err(ClusterError::NotFound(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// The patch that makes `change` true of `node`, or `None` where it is true already.
fn patch_for(node: &Node, change: &NodeChange) -> Result<Option<Patch>, ClusterError> {
    let edits = match change {
        NodeChange::Quarantine => quarantine(node),
        NodeChange::Unquarantine => unquarantine(node),
        NodeChange::OutOfService { nodefence } => out_of_service(node, nodefence),
        NodeChange::LiftOutOfService => in_service(node),
        NodeChange::Cordon { nodefence } => cordon(node, nodefence),
        NodeChange::Uncordon => uncordon(node),
        NodeChange::RemediationPod { pod, since } => {
            annotate_all(node, &[(REMEDIATION_TIME, since), (REMEDIATION_POD, pod)])
        }
        NodeChange::Annotate { key, value } => annotate(node, key, value.as_deref()),
    };
    if edits.is_empty() {
        return Ok(None);
    }
    let version = node.resource_version().unwrap_or_default();
    let mut patch = vec![test("/metadata/resourceVersion", &json!(version))];
    patch.extend(edits);
    serde_json::from_value(Value::Array(patch))
        .map(Some)
        .map_err(|error| ClusterError::Invalid(error.to_string()))
}

fn taints(node: &Node) -> Option<&Vec<Taint>> {
    node.spec.as_ref()?.taints.as_ref()
}

fn has_taint(node: &Node, key: &str) -> bool {
    taints(node).is_some_and(|taints| taints.iter().any(|taint| taint.key == key))
}

fn put_taint(node: &Node, key: &str, value: &str, effect: &str) -> Vec<Value> {
    if has_taint(node, key) {
        return Vec::new();
    }
    let mut taint = json!({"key": key, "effect": effect});
    if let (false, Some(fields)) = (value.is_empty(), taint.as_object_mut()) {
        fields.insert("value".to_owned(), json!(value));
    }
    match taints(node) {
        Some(before) => {
            vec![test("/spec/taints", &json!(before)), add("/spec/taints/-", &taint)]
        }
        None => vec![add("/spec/taints", &json!([taint]))],
    }
}

fn drop_taints(node: &Node, is_ours: impl Fn(&Taint) -> bool) -> Vec<Value> {
    let before = taints(node).cloned().unwrap_or_default();
    if !before.iter().any(&is_ours) {
        return Vec::new();
    }
    let others = before.iter().filter(|taint| guard(Bug::TaintsWiped, !is_ours(taint)));
    let after: Vec<&Taint> = others.collect();
    let edit = if after.is_empty() {
        remove("/spec/taints")
    } else {
        json!({"op": "replace", "path": "/spec/taints", "value": after})
    };
    vec![test("/spec/taints", &json!(before)), edit]
}

/// A16: while it is ours to bring back, no autoscaler takes it away.
fn quarantine(node: &Node) -> Vec<Value> {
    let mut edits = put_taint(node, QUARANTINE, "", NO_SCHEDULE);
    if !edits.is_empty() {
        let free =
            AUTOSCALERS.iter().filter(|(theirs, _)| !node.annotations().contains_key(*theirs));
        let ours: Vec<_> = free.flat_map(|(key, by)| [(*key, "true"), (*by, "true")]).collect();
        edits.extend(annotate_all(node, &ours));
    }
    edits
}

fn unquarantine(node: &Node) -> Vec<Value> {
    let mut edits = drop_taints(node, |taint| taint.key == QUARANTINE);
    for (key, by) in AUTOSCALERS {
        if node.annotations().contains_key(by) {
            edits.extend(annotate(node, by, None));
            edits.extend(annotate(node, key, None));
        }
    }
    edits
}

/// A node that somebody else declared out of service stays theirs, as with a cordon.
///
/// Both readers of this taint, the attach-detach controller and pod GC, look at its key alone. With `NoExecute`
/// taint eviction would read it too, which deletes pods by name: it hits the successors of those that we delete.
fn out_of_service(node: &Node, nodefence: &str) -> Vec<Value> {
    if has_taint(node, OUT_OF_SERVICE) {
        return Vec::new();
    }
    let mut edits = annotate(node, OUT_OF_SERVICE_BY, Some(nodefence));
    edits.extend(put_taint(node, OUT_OF_SERVICE, OUT_OF_SERVICE_VALUE, NO_SCHEDULE));
    edits
}

fn in_service(node: &Node) -> Vec<Value> {
    if !node.annotations().contains_key(OUT_OF_SERVICE_BY) {
        return Vec::new();
    }
    let is_ours = |taint: &Taint| taint.key == OUT_OF_SERVICE && taint.effect == NO_SCHEDULE;
    let has_ours = taints(node).is_some_and(|taints| taints.iter().any(is_ours));
    let mut edits = annotate(node, OUT_OF_SERVICE_BY, None);
    // An older node-remedy put it with another effect. Beside ours that one is a person's.
    edits.extend(drop_taints(node, |taint| {
        taint.key == OUT_OF_SERVICE && (!has_ours || taint.effect == NO_SCHEDULE)
    }));
    edits
}

/// A node that somebody else cordoned stays theirs: nothing is noted, nothing undone.
fn cordon(node: &Node, nodefence: &str) -> Vec<Value> {
    if node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default() {
        return Vec::new();
    }
    let mut edits = annotate(node, CORDONED_BY, Some(nodefence));
    edits.push(add("/spec/unschedulable", &json!(true)));
    edits
}

fn uncordon(node: &Node) -> Vec<Value> {
    if !node.annotations().contains_key(CORDONED_BY) {
        return Vec::new();
    }
    let mut edits = annotate(node, CORDONED_BY, None);
    if node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default() {
        edits.push(remove("/spec/unschedulable"));
    }
    edits
}

fn annotate(node: &Node, key: &str, value: Option<&str>) -> Vec<Value> {
    let path = format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
    let before = node.annotations().get(key).map(String::as_str);
    match (before, value) {
        (before, value) if before == value => Vec::new(),
        (_, Some(value)) if node.metadata.annotations.is_none() => {
            vec![add("/metadata/annotations", &json!({ key: value }))]
        }
        (_, Some(value)) => vec![add(&path, &json!(value))],
        (_, None) => vec![remove(&path)],
    }
}

/// Several annotations at once.
fn annotate_all(node: &Node, all: &[(&str, &str)]) -> Vec<Value> {
    if node.metadata.annotations.is_none() && !all.is_empty() {
        let all: serde_json::Map<_, _> =
            all.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        return vec![add("/metadata/annotations", &Value::Object(all))];
    }
    all.iter().flat_map(|(key, value)| annotate(node, key, Some(value))).collect()
}

fn test(path: &str, value: &Value) -> Value {
    json!({"op": "test", "path": path, "value": value})
}

fn add(path: &str, value: &Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}

fn remove(path: &str) -> Value {
    json!({"op": "remove", "path": path})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "rows read better")]
    fn node(spec: Value, annotations: Value) -> Node {
        let object = json!({
            "metadata": {
                "name": "a", "uid": "u", "resourceVersion": "7", "annotations": annotations
            },
            "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    /// The node after the patch, as an API server would compute it.
    fn after(node: &Node, change: &NodeChange) -> Option<Value> {
        let patch = patch_for(node, change).unwrap()?;
        let mut object = serde_json::to_value(node).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        Some(object)
    }

    #[test]
    fn foreign_taints_survive_ours_coming_and_going() {
        let foreign = json!({"key": "x", "effect": "NoSchedule"});
        let before = node(json!({"taints": [foreign]}), Value::Null);
        let declare = NodeChange::OutOfService { nodefence: "a-1".to_owned() };
        let tainted = after(&before, &declare).unwrap();
        assert_eq!(tainted["metadata"]["annotations"][OUT_OF_SERVICE_BY], "a-1");
        assert_eq!(tainted["spec"]["taints"][0], foreign);
        assert_eq!(tainted["spec"]["taints"][1]["key"], OUT_OF_SERVICE);
        assert_eq!(tainted["spec"]["taints"][1]["value"], "nodeshutdown");
        assert_eq!(tainted["spec"]["taints"][1]["effect"], "NoSchedule", "it evicts nothing");
        let tainted: Node = serde_json::from_value(tainted).unwrap();
        let lifted = after(&tainted, &NodeChange::LiftOutOfService).unwrap();
        assert_eq!(lifted["spec"]["taints"], json!([foreign]));
        assert_eq!(lifted["metadata"]["annotations"], json!({}));
    }

    #[test] // promise: P7
    fn only_our_own_word_that_a_node_is_out_of_service_is_taken_back() {
        let taint = json!({"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"});
        let theirs = node(json!({"taints": [taint]}), Value::Null);
        let declare = NodeChange::OutOfService { nodefence: "a-1".to_owned() };
        assert_eq!(after(&theirs, &declare), None);
        assert_eq!(after(&theirs, &NodeChange::LiftOutOfService), None);

        let ours = json!({"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoSchedule"});
        for taints in [json!([ours, taint]), json!([taint, ours])] {
            let both = node(json!({"taints": taints}), json!({OUT_OF_SERVICE_BY: "a-1"}));
            let lifted = after(&both, &NodeChange::LiftOutOfService).unwrap();
            assert_eq!(lifted["spec"]["taints"], json!([taint]), "a person put it beside ours");
        }
        let by_an_older = node(json!({"taints": [taint]}), json!({OUT_OF_SERVICE_BY: "a-1"}));
        let lifted = after(&by_an_older, &NodeChange::LiftOutOfService).unwrap();
        assert_eq!(lifted["spec"].get("taints"), None);
    }

    #[test]
    fn a_patch_computed_from_an_older_list_is_refused() {
        let before = node(json!({"taints": [{"key": "x", "effect": "NoSchedule"}]}), Value::Null);
        let patch = patch_for(&before, &NodeChange::Quarantine).unwrap().unwrap();
        let mut changed = serde_json::to_value(&before).unwrap();
        changed["spec"]["taints"] = json!([{"key": "y", "effect": "NoSchedule"}]);
        assert!(json_patch::patch(&mut changed, &patch).is_err());
        let mut newer = serde_json::to_value(&before).unwrap();
        newer["metadata"]["resourceVersion"] = json!("8");
        assert!(json_patch::patch(&mut newer, &patch).is_err());
    }

    #[test]
    fn only_our_own_cordon_is_lifted() {
        let theirs = node(json!({"unschedulable": true}), Value::Null);
        let cordon = NodeChange::Cordon { nodefence: "a-1".to_owned() };
        assert_eq!(after(&theirs, &cordon), None);
        assert_eq!(after(&theirs, &NodeChange::Uncordon), None);
        let free = node(json!({}), json!({"k": "v"}));
        let ours = after(&free, &cordon).unwrap();
        assert_eq!(ours["spec"]["unschedulable"], true);
        assert_eq!(ours["metadata"]["annotations"][CORDONED_BY], "a-1");
        let ours: Node = serde_json::from_value(ours).unwrap();
        let lifted = after(&ours, &NodeChange::Uncordon).unwrap();
        assert_eq!(lifted["spec"].get("unschedulable"), None);
        assert_eq!(lifted["metadata"]["annotations"], json!({"k": "v"}));
    }

    #[test]
    fn pod_and_time_of_a_remedy_are_written_at_once() {
        let change = NodeChange::RemediationPod { pod: "p".to_owned(), since: "s".to_owned() };
        let all = json!({REMEDIATION_TIME: "s", REMEDIATION_POD: "p"});
        for before in [Value::Null, json!({REMEDIATION_TIME: "r", REMEDIATION_POD: "o"})] {
            let signed = after(&node(json!({}), before), &change).unwrap();
            assert_eq!(signed["metadata"]["annotations"], all);
        }
        assert_eq!(after(&node(json!({}), all), &change), None);
    }

    #[test] // promise: A16
    fn a16_no_autoscaler_takes_a_node_that_is_quarantined_by_us() {
        for annotations in [Value::Null, json!({"k": "v"})] {
            let before = node(json!({}), annotations.clone());
            let ours = after(&before, &NodeChange::Quarantine).unwrap();
            for key in [NO_SCALE_DOWN, DO_NOT_DISRUPT] {
                assert_eq!(ours["metadata"]["annotations"][key], "true");
            }
            let ours: Node = serde_json::from_value(ours).unwrap();
            let lifted = after(&ours, &NodeChange::Unquarantine).unwrap();
            let left = if annotations.is_null() { json!({}) } else { annotations };
            assert_eq!(lifted["metadata"]["annotations"], left);
        }
        for key in [NO_SCALE_DOWN, DO_NOT_DISRUPT] {
            let theirs = json!({key: "true"});
            let ours = after(&node(json!({}), theirs.clone()), &NodeChange::Quarantine).unwrap();
            let ours: Node = serde_json::from_value(ours).unwrap();
            let lifted = after(&ours, &NodeChange::Unquarantine).unwrap();
            assert_eq!(lifted["metadata"]["annotations"], theirs, "a person's own stays");
        }
    }

    #[test]
    fn what_is_true_already_is_not_written() {
        let tainted =
            node(json!({"taints": [{"key": QUARANTINE, "effect": "NoSchedule"}]}), Value::Null);
        assert_eq!(after(&tainted, &NodeChange::Quarantine), None);
        assert_eq!(after(&tainted, &NodeChange::LiftOutOfService), None);
    }
}
