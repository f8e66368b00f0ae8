//! The finalizer that keeps a NodeFence for as long as its incident goes on: whoever deletes one, says that it is
//! to end, and what it left on its node and its machine is taken back first.
//!
//! Not here: what a deletion asks of an incident (`wait.rs`), and what of ours stands on a node whose
//! NodeFence went all the same (`sweep.rs`).

use json_patch::Patch;
use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError};
use serde_json::{Value, json};

/// Ours. Whoever uninstalls node-remedy in the middle of an incident takes it off by hand.
pub const FINALIZER: &str = "node-remedy.io/incident";
/// How often a write that lost a race is computed anew.
const RACES_MAX: usize = 5;

/// Whether our finalizer stands on it.
pub fn is_kept(nodefence: &NodeFence) -> bool {
    nodefence.finalizers().iter().any(|one| one == FINALIZER)
}

/// Takes our finalizer off a NodeFence whose incident is over.
pub async fn let_go<C: Cluster>(cluster: &C, nodefence: &NodeFence) -> Result<(), ClusterError> {
    let name = nodefence.name_any();
    let mut last = ClusterError::Conflict("the NodeFence keeps changing".to_owned());
    for _ in 0..RACES_MAX {
        let found = cluster.get::<NodeFence>(At::cluster(&name)).await?;
        let is_same = |found: &NodeFence| found.uid() == nodefence.uid();
        let Some(found) = found.filter(is_same).filter(is_kept) else { return Ok(()) };
        match cluster.patch::<NodeFence>(At::cluster(&name), &without(&found)?).await {
            Ok(_) | Err(ClusterError::NotFound(_)) => return Ok(()),
            Err(error @ (ClusterError::Conflict(_) | ClusterError::Invalid(_))) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// A patch that fails where anybody wrote in between.
fn without(nodefence: &NodeFence) -> Result<Patch, ClusterError> {
    let others: Vec<&String> =
        nodefence.finalizers().iter().filter(|one| *one != FINALIZER).collect();
    let version = nodefence.resource_version().unwrap_or_default();
    let patch: Value = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": "/metadata/finalizers", "value": others},
    ]);
    serde_json::from_value(patch).map_err(|error| ClusterError::Invalid(error.to_string()))
}
