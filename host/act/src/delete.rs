//! Gives pods and volume attachments back, one object at a time, by UID.
//!
//! The decision and the UID snapshot are `decide`'s and stand in the record before
//! anything here runs. A pod is first marked Failed, as pod GC does, so that whoever
//! watches it sees why it went. Finalizers are never touched.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use node_remedy_api::conditions::NODE_FENCED;
use node_remedy_decide::bug::{Bug, is_seeded};
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow};
use serde_json::json;

/// A pod by its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodId {
    /// `metadata.uid`; a pod of the same name with another UID is never touched.
    pub uid: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `status.phase`, as it was last seen.
    pub phase: String,
}

impl PodId {
    /// Whether its containers ended by themselves: what it says of its end is true.
    fn has_ended(&self) -> bool {
        ["Succeeded", "Failed"].contains(&self.phase.as_str())
    }
}

/// How a pod is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodDelete {
    /// At once: its machine is proven off.
    Force,
    /// As its kubelet is asked to: its machine is running again.
    Graceful,
    /// The same, where its disruption budgets allow it.
    Evict,
    /// At once, where its disruption budgets allow it.
    EvictAtOnce,
}

/// Deletes one pod; a pod that is gone, or replaced by another UID, is success.
pub async fn delete_pod<C: Cluster>(
    cluster: &C,
    pod: &PodId,
    delete: PodDelete,
) -> Result<(), ClusterError> {
    let at = At::within(&pod.namespace, &pod.name);
    let grace_s = match delete {
        PodDelete::Force => {
            if !pod.has_ended() {
                mark_failed(cluster, pod).await?;
            }
            Some(0)
        }
        // Marked as failed it would be no budget's any more.
        PodDelete::EvictAtOnce => Some(0),
        PodDelete::Graceful | PodDelete::Evict => None,
    };
    let uid = (!is_seeded(Bug::DeletesByName)).then(|| pod.uid.clone());
    let how = DeleteHow { grace_s, uid, ..DeleteHow::default() };
    settled(match delete {
        PodDelete::Force | PodDelete::Graceful => cluster.delete::<Pod>(at, &how).await,
        PodDelete::Evict | PodDelete::EvictAtOnce if is_seeded(Bug::BudgetIgnored) => {
            cluster.delete::<Pod>(at, &how).await
        }
        PodDelete::Evict | PodDelete::EvictAtOnce => cluster.evict(at, &how).await,
    })
}

/// Deletes one volume attachment; its attacher's finalizer decides when it is gone.
pub async fn delete_attachment<C: Cluster>(
    cluster: &C,
    name: &str,
    uid: &str,
) -> Result<(), ClusterError> {
    let how = DeleteHow { uid: Some(uid.to_owned()), ..DeleteHow::default() };
    settled(cluster.delete::<VolumeAttachment>(At::cluster(name), &how).await)
}

/// Deletes the Node, after which pod GC takes whatever is still bound to it.
pub async fn delete_node<C: Cluster>(
    cluster: &C,
    name: &str,
    uid: &str,
) -> Result<(), ClusterError> {
    let how = DeleteHow { uid: Some(uid.to_owned()), ..DeleteHow::default() };
    settled(cluster.delete::<Node>(At::cluster(name), &how).await)
}

/// A conflict here is the UID precondition: the object we meant is gone. A budget that forbids is asked
/// again at the next look.
fn settled(answer: Result<bool, ClusterError>) -> Result<(), ClusterError> {
    match answer {
        Ok(_) | Err(ClusterError::Conflict(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn mark_failed<C: Cluster>(cluster: &C, pod: &PodId) -> Result<(), ClusterError> {
    // The UID in the patch makes the API server refuse it for any other pod.
    let patch = json!({
        "metadata": {"uid": pod.uid},
        "status": {"phase": "Failed", "reason": NODE_FENCED},
    });
    let at = At::within(&pod.namespace, &pod.name);
    match cluster.merge_status::<Pod>(at, &patch).await {
        Ok(_)
        | Err(ClusterError::NotFound(_) | ClusterError::Conflict(_) | ClusterError::Invalid(_)) => {
            Ok(())
        }
        // A mark is for those who watch; a webhook that forbids it keeps no pod.
        Err(ClusterError::Denied(why)) => {
            let PodId { namespace, name, .. } = pod;
            tracing::warn!(
                pod = format!("{namespace}/{name}"),
                why,
                "failed to mark a pod as failed"
            );
            Ok(())
        }
        Err(error) => Err(error),
    }
}
