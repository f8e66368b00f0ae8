//! Some nodes carry the control plane, mostly those that are lost; of some the member of etcd is a pod, and some workers have a
//! pod that looks like one.

use std::fmt::Write as _;

use super::{Cast, Guards, drawn};
use crate::seed_run::Draft;

/// The class.
pub(super) const CLASS: &str = "control plane";
const PERCENT: u64 = 4;
const LABEL: &str = ", node-role.kubernetes.io/control-plane: \"\"";

pub(super) fn is_drawn(seed: u64) -> bool {
    drawn(seed, CLASS, PERCENT).is_some()
}

impl Draft {
    pub(super) fn control_plane(&mut self, cast: &Cast<'_>, guards: &mut Guards) {
        let Some(mut rng) = drawn(cast.seed, CLASS, PERCENT) else { return };
        let members = match rng.below(10) {
            0 => 1,
            1 => 2,
            _ => 3,
        };
        let left = if rng.below(100) < 60 { cast.lost.len() } else { 1 };
        let lost = cast.lost.iter().take(left);
        let others = cast.names.iter().filter(|name| !cast.lost.contains(name));
        let members: Vec<&String> = lost.chain(others).take(members).collect();
        let has_pods = rng.below(100) < 50;
        for node in &members {
            guards.labels.entry((*node).clone()).or_default().push_str(LABEL);
            guards.told.control_plane.insert((*node).clone());
            if has_pods {
                let _ = write!(guards.objects, "{}", member(node));
            }
        }
        // Kubelets of workers that lie.
        let liars = if rng.below(100) < 30 { 2 } else { 0 };
        for node in cast.names.iter().filter(|name| !members.contains(name)).take(liars) {
            let _ = write!(guards.objects, "{}", member(node));
        }
        // Of two, or where another one is lost, none is ever cut.
        guards.for_good = true;
        self.drawn.push(CLASS.to_owned());
    }
}

/// A member of etcd as kubeadm has one: a pod of its kubelet's own.
fn member(node: &str) -> String {
    format!(
        "- object:\n    apiVersion: v1\n    kind: Pod\n    metadata:\n      name: etcd-{node}\n      namespace: kube-system\n      \
         labels: {{ component: etcd }}\n      annotations: {{ kubernetes.io/config.mirror: m }}\n      \
         ownerReferences: [{{ apiVersion: v1, kind: Node, name: {node}, uid: n, controller: true }}]\n    \
         spec: {{ nodeName: {node}, tolerations: [{{ operator: Exists }}], containers: [{{ name: etcd }}] }}\n"
    )
}
