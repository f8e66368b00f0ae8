//! What speaks against switching a node's plug off to try it. Pure: it looks at what was read.

use node_remedy_decide::{ClosedDevice, OperatorVetoes};
use node_remedy_observe::pods::PrunedPod;
use node_remedy_observe::pruned::PrunedNode;

/// What was read of the cluster before a plug is switched off.
#[derive(Debug, Clone)]
pub(super) struct Looked {
    /// The node.
    pub(super) node: PrunedNode,
    /// What people and other controllers said of it; of pauses those in force, without our own.
    pub(super) vetoes: OperatorVetoes,
    /// The pods on it.
    pub(super) pods: Vec<PrunedPod>,
    /// Whether pods may be lost with it.
    pub(super) allow_pods: bool,
    /// Incidents that go on, of whatever node.
    pub(super) incidents: Vec<String>,
    /// A device of its plan that failed to switch a machine on.
    pub(super) closed: Option<ClosedDevice>,
    /// Another remediator that works on the node.
    pub(super) held_by: Option<String>,
    /// How many nodes carry the control plane, where the node is one of them.
    pub(super) control_plane: Option<usize>,
}

/// Control planes of so many nodes go on without one.
const CONTROL_PLANE_MIN: usize = 3;
/// Pods, or incidents, that are named.
const NAMED_MAX: usize = 3;

/// Every reason not to, each with what to do; none: the node is safe to lose.
pub(super) fn against(looked: &Looked) -> Vec<String> {
    let Looked { node, vetoes, .. } = looked;
    let name = &node.name;
    let mut against = Vec::new();
    if !is_ready(node) {
        against.push(format!("{name} is not Ready: nothing could be seen of its plug"));
    }
    if !vetoes.cordoned_by_other {
        against.push(format!("{name} is not cordoned by a person: kubectl cordon {name}"));
    }
    let pods: Vec<String> = looked
        .pods
        .iter()
        .filter(|pod| is_lost(pod))
        .map(|pod| format!("{}/{}", pod.namespace, pod.name))
        .collect();
    if !pods.is_empty() && !looked.allow_pods {
        against.push(format!(
            "{name} runs {}: kubectl drain {name} --ignore-daemonsets, or --allow-pods to lose them",
            named(&pods)
        ));
    }
    if !looked.incidents.is_empty() {
        against.push(format!(
            "incidents go on: {}; see: node-remedy status",
            named(&looked.incidents)
        ));
    }
    if let Some(closed) = &looked.closed {
        against.push(format!(
            "{} failed to switch {} on: see to it, then node-remedy ack {}",
            closed.device, closed.node, closed.node
        ));
    }
    if let Some(holder) = &looked.held_by {
        against.push(format!("{holder} works on {name}"));
    }
    if let Some(count) = looked.control_plane.filter(|count| *count < CONTROL_PLANE_MIN) {
        against.push(format!("{name} carries the control plane, which {count} nodes do"));
    }
    against.extend(vetoes.excluded_by.iter().map(|by| format!("{name} is marked {by}")));
    against.extend(vetoes.removed_by.iter().map(|by| format!("{name} is about to go: {by}")));
    against.extend(vetoes.maintenance.clone());
    let paused = vetoes.pauses.iter();
    against.extend(paused.map(|pause| format!("paused by {}: {}", pause.by, pause.reason)));
    against.extend(vetoes.unread.iter().map(|why| format!("not known: {why}")));
    against
}

/// Whether a node is Ready, as far as it is known.
pub(super) fn is_ready(node: &PrunedNode) -> bool {
    node.conditions.get("Ready").is_some_and(|ready| ready.status == "True")
}

/// Whether a pod is lost with its node: DaemonSets' and static pods belong to it, ended ones run no more.
fn is_lost(pod: &PrunedPod) -> bool {
    !pod.of_daemon_set && !pod.mirror && !matches!(pod.phase.as_str(), "Succeeded" | "Failed")
}

fn named(all: &[String]) -> String {
    let shown = all.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use node_remedy_decide::Pause;
    use serde_json::{Value, json};

    use super::*;

    fn node(ready: &str) -> PrunedNode {
        let object = json!({
            "metadata": {"name": "w1", "uid": "u"},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        PrunedNode::of(serde_json::from_value(object).unwrap()).unwrap()
    }

    fn pod(name: &str, phase: &str, metadata: &Value) -> PrunedPod {
        let mut object = json!({
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"containers": []}, "status": {"phase": phase},
        });
        json_patch::merge(&mut object, &json!({"metadata": metadata}));
        PrunedPod::of(serde_json::from_value(object).unwrap()).unwrap()
    }

    fn looked() -> Looked {
        let daemon = json!({"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"},
        ]});
        let mirror = json!({"annotations": {"kubernetes.io/config.mirror": "x"}});
        let pods = vec![
            pod("daemon", "Running", &daemon),
            pod("static", "Running", &mirror),
            pod("done", "Succeeded", &json!({})),
        ];
        Looked {
            node: node("True"),
            vetoes: OperatorVetoes { cordoned_by_other: true, ..OperatorVetoes::default() },
            pods,
            allow_pods: false,
            incidents: Vec::new(),
            closed: None,
            held_by: None,
            control_plane: None,
        }
    }

    #[test]
    fn only_a_node_that_is_cordoned_drained_and_left_alone_is_safe_to_lose() {
        assert_eq!(against(&looked()), [""; 0]);
        assert_eq!(against(&Looked { control_plane: Some(3), ..looked() }), [""; 0]);
        let vetoes = |change: fn(&mut OperatorVetoes)| {
            let mut looked = looked();
            change(&mut looked.vetoes);
            looked
        };
        let with_pod = |allow_pods| {
            let mut looked = Looked { allow_pods, ..looked() };
            looked.pods.push(pod("db-0", "Running", &json!({})));
            looked
        };
        assert_eq!(against(&with_pod(true)), [""; 0]);
        let pause = Pause { reason: "new fans".into(), by: "alice".into(), until: None };
        let closed = ClosedDevice { device: "pdu".into(), node: "w2".into() };
        let some = |text: &str| Some(text.to_owned());
        let mut paused = looked();
        paused.vetoes.pauses.push(pause);
        for (looked, why) in [
            (Looked { node: node("Unknown"), ..looked() }, "not Ready"),
            (vetoes(|one| one.cordoned_by_other = false), "kubectl cordon w1"),
            (with_pod(false), "runs default/db-0: kubectl drain w1"),
            (Looked { incidents: vec!["w2-1".into()], ..looked() }, "incidents go on: w2-1"),
            (Looked { closed: Some(closed), ..looked() }, "node-remedy ack w2"),
            (Looked { held_by: some("nhc"), ..looked() }, "nhc works on w1"),
            (Looked { control_plane: Some(2), ..looked() }, "which 2 nodes do"),
            (vetoes(|one| one.excluded_by = Some("x/exclude".into())), "marked x/exclude"),
            (vetoes(|one| one.removed_by = Some("x/taint".into())), "about to go: x/taint"),
            (vetoes(|one| one.maintenance = Some("NodeMaintenance m: fans".into())), "fans"),
            (vetoes(|one| one.unread.push("RemedyPauses: denied".into())), "not known"),
            (paused, "paused by alice: new fans"),
        ] {
            let said = against(&looked);
            assert!(said.len() == 1 && said.concat().contains(why), "{why}: {said:?}");
        }
    }
}
