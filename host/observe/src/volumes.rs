//! Which storage stands behind the claims of a node's pods.
//!
//! Claims and PersistentVolumes are not watched: a cluster has thousands, and they matter of the few nodes
//! that something is done about. They are read by name, once for a pod: a claim that a pod uses keeps its
//! volume, and a volume its driver. What cannot be read is unknown, which no grade covers that covers some.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use node_remedy_decide::{
    Access, Backing, Grade, IncidentPolicy, KdumpReleases, Method, Plan, VolumeView,
};
use node_remedy_runtime::cluster::{At, Cluster, ClusterError};

use crate::pods::{Mounted, PrunedPod};
use crate::pruned::PrunedAttachment;

/// Claims read at once.
const READS_AT_ONCE: usize = 16;
/// An answer that takes longer lets the rest of the look grow old: evidence keeps for five seconds.
const READ_MAX: Duration = Duration::from_secs(4);
/// Access modes under which many nodes use a volume, and none, or each, may write.
const MANY: [&str; 2] = ["ReadWriteMany", "ReadOnlyMany"];

/// What one incident knows of its pods' volumes.
#[derive(Debug, Default)]
pub struct Volumes {
    /// CSI drivers that check at detach.
    safe: BTreeSet<String>,
    /// By the pod's UID and the claim's name.
    known: RefCell<BTreeMap<(String, String), Volume>>,
}

#[derive(Debug, Clone)]
struct Volume {
    backing: Backing,
    access: Access,
    /// No other node may write to it while it is attached to one.
    exclusive: bool,
}

impl Volumes {
    /// Nothing is known yet; `safe` are the policy's `safeDetachDrivers`.
    pub fn new(safe: impl IntoIterator<Item = String>) -> Self {
        Self { safe: safe.into_iter().collect(), known: RefCell::default() }
    }

    /// Reads what is not known yet of these pods' claims.
    pub async fn look<C: Cluster>(&self, cluster: &C, pods: &[PrunedPod], node: &str) {
        let claims = claims_of(pods);
        self.known.borrow_mut().retain(|key, _| claims.contains_key(key));
        let unknown: Vec<_> =
            claims.into_iter().filter(|(key, _)| !self.known.borrow().contains_key(key)).collect();
        let reads = stream::iter(unknown).map(|((pod, claim), namespace)| async move {
            let found = read(cluster, namespace, &claim).await;
            ((pod, claim), found)
        });
        let noting = reads.buffer_unordered(READS_AT_ONCE).for_each(async |(key, found)| {
            match found {
                Ok(Some(volume)) => {
                    self.known.borrow_mut().insert(key, volume);
                }
                // Not bound, or gone.
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(node, claim = key.1, %error, "failed to read a claim's volume");
                }
            }
        });
        if tokio::time::timeout(READ_MAX, noting).await.is_err() {
            tracing::warn!(node, "failed to read all claims in time; the others are unknown");
        }
    }

    /// What a pod mounts; a driver that checks at detach has to have something attached to check.
    pub fn view<'a>(
        &self,
        pod: &PrunedPod,
        mounted: &Mounted,
        attached: impl IntoIterator<Item = &'a PrunedAttachment>,
    ) -> VolumeView {
        let unclear = |backing| VolumeView { backing, safe_detach: false, access: Access::One };
        let claim = match mounted {
            Mounted::Inline => return unclear(Backing::Inline),
            Mounted::Claim(claim) => claim,
        };
        let known = self.known.borrow();
        let Some(volume) = known.get(&(pod.uid.clone(), claim.clone())) else {
            return unclear(Backing::Unknown);
        };
        let mut attached = attached.into_iter();
        let safe_detach = match &volume.backing {
            Backing::Persistent { name, driver, .. } => {
                volume.exclusive
                    && self.safe.contains(driver)
                    && attached.any(|one| one.volume == *name && one.driver == *driver)
            }
            Backing::Unknown | Backing::Inline => false,
        };
        VolumeView { backing: volume.backing.clone(), safe_detach, access: volume.access }
    }
}

/// Whether an incident has to know this pod's volumes: every pod's where the plan can cut storage or a grade may cover only some
/// pods, else those of pods that stay, for what they share.
pub fn wanted(pod: &PrunedPod, plan: &Plan, policy: &IncidentPolicy) -> bool {
    let cuts_storage = || {
        let mut methods = plan.cut_methods().filter_map(|index| plan.method(index));
        methods.any(Method::cuts_storage)
    };
    let may_come = |grade: &Grade| match grade {
        Grade::KdumpSeen => policy.kdump_releases == KdumpReleases::WithoutVolumes,
        Grade::Partition => true,
        Grade::StorageFenced
        | Grade::PowerOffVerified
        | Grade::WatchdogDeadline
        | Grade::OperatorConfirmed
        | Grade::JobSucceeded
        | Grade::NewBootId => false,
    };
    pod.exempt().is_some() || cuts_storage() || policy.grades.iter().any(may_come)
}

/// The claims of these pods and the namespaces they are in.
fn claims_of(pods: &[PrunedPod]) -> BTreeMap<(String, String), &str> {
    let of_pod = |pod: &'_ PrunedPod| {
        let claims = pod.volumes.iter().filter_map(|one| match one {
            Mounted::Claim(claim) => Some(claim.clone()),
            Mounted::Inline => None,
        });
        claims.map(|claim| (pod.uid.clone(), claim)).collect::<Vec<_>>()
    };
    let with_namespace = |pod| of_pod(pod).into_iter().map(|key| (key, pod.namespace.as_str()));
    pods.iter().flat_map(with_namespace).collect()
}

/// The volume that a claim is bound to; `None` where there is none.
async fn read<C: Cluster>(
    cluster: &C,
    namespace: &str,
    claim: &str,
) -> Result<Option<Volume>, ClusterError> {
    let claim = cluster.get::<PersistentVolumeClaim>(At::within(namespace, claim)).await?;
    let Some(spec) = claim.and_then(|claim| claim.spec) else { return Ok(None) };
    let Some(name) = spec.volume_name.clone().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let volume = cluster.get::<PersistentVolume>(At::cluster(&name)).await?;
    let Some(volume) = volume.and_then(|volume| volume.spec) else { return Ok(None) };
    let asked = spec.access_modes.unwrap_or_default();
    let offered = volume.access_modes.unwrap_or_default();
    let is_many = |mode: &String| MANY.contains(&mode.as_str());
    let shares = |mode: &String| mode == "ReadWriteMany";
    let (driver, in_use_as) = match volume.csi {
        Some(csi) => {
            let in_use_as = format!("kubernetes.io/csi/{}^{}", csi.driver, csi.volume_handle);
            (csi.driver, in_use_as)
        }
        None => (String::new(), String::new()),
    };
    Ok(Some(Volume {
        backing: Backing::Persistent { name, driver, in_use_as },
        access: if !asked.is_empty() && asked.iter().all(is_many) {
            Access::Many
        } else {
            Access::One
        },
        exclusive: !asked.iter().chain(&offered).any(shares),
    }))
}

#[cfg(test)]
mod tests;
