//! S8: only what was on the node when it was cut, read or said to be off, crashed, or given up, is released: nothing that
//! came later, and nothing that a DaemonSet keeps there.

use node_remedy_simulate::CLIENT;
use node_remedy_world::facts::What;
use node_remedy_world::time::Time;

use crate::checks::check::Check;
use crate::scene::Scene;

/// What the names of the pods begin with that a run's DaemonSet has on each node.
pub(crate) const DAEMONS: &str = "kube-system/agent-";

pub(super) struct Selection;

impl Check for Selection {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        // One that its kubelet is asked to end runs on until that is done.
        let (What::PodGone { pod, uid, node, by }
        | What::PodTerminating { pod, uid, node, by, graceful: false }) = what
        else {
            return None;
        };
        if by != CLIENT {
            return None;
        }
        if pod.starts_with(DAEMONS) {
            return Some("it belongs to a DaemonSet".to_owned());
        }
        let off = scene.off_at.get(node).max(scene.read_off_at.get(node));
        let gone = off.max(scene.crashed.get(node)).max(scene.partitioned_at(node, at));
        let gone = gone.max(scene.storage_cut.get(node));
        let Some(cut) = gone else {
            let is_said = scene.said_off.contains(node);
            return (!is_said).then(|| format!("{node} was never off"));
        };
        let came_later = scene.bound_at.get(uid).is_some_and(|bound| bound > cut);
        // A pod may still be bound to a node that nobody knows to be off yet.
        let is_back = !scene.off.contains_key(node) && !scene.crashed.contains_key(node);
        (came_later && is_back).then(|| format!("it came to {node} after the off"))
    }
}
