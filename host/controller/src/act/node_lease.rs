//! The per-node lock that other remediators honour: a Lease in `medik8s-leases`.
//!
//! Valid while renewTime + duration lies ahead. A namespace that does not exist means
//! that nobody in this cluster uses such locks.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use crate::clock::{Clock, time_of, timestamp};
use crate::cluster::{At, Cluster, ClusterError, DeleteHow};

/// Where the locks live.
pub const NAMESPACE: &str = "medik8s-leases";
/// Who we are in them.
pub const HOLDER: &str = "node-remedy";
/// As long as the longest incident may go without a decision.
const DURATION_S: i32 = 600;

/// Who holds a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lock {
    /// We do, or nobody could.
    Ours,
    /// Somebody else does.
    Theirs {
        /// Their name, as the Lease says it.
        holder: String,
    },
}

/// Takes or renews the lock of `node`.
pub async fn take<C: Cluster>(cluster: &C, clock: &Clock, node: &str) -> Result<Lock, ClusterError> {
    let name = format!("node-{node}");
    let found = cluster.get::<Lease>(At::within(NAMESPACE, &name)).await?;
    let now = clock.now();
    if let Some(spec) = found.as_ref().and_then(|lease| lease.spec.as_ref()) {
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let renewed = spec.renew_time.as_ref().map_or(0, |stamp| time_of(&stamp.0).0);
        let duration = u64::try_from(spec.lease_duration_seconds.unwrap_or_default());
        let valid_until = renewed.saturating_add(duration.unwrap_or_default() * 1_000);
        if !holder.is_empty() && holder != HOLDER && valid_until >= now.0 {
            return Ok(Lock::Theirs { holder });
        }
    }
    let mut lease = found.unwrap_or_else(|| Lease {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        spec: None,
    });
    let stamp = MicroTime(timestamp(now));
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(HOLDER.to_owned()),
        lease_duration_seconds: Some(DURATION_S),
        acquire_time: Some(stamp.clone()),
        renew_time: Some(stamp),
        ..LeaseSpec::default()
    });
    let written = match lease.metadata.resource_version {
        Some(_) => cluster.replace(&lease).await,
        None => cluster.create(&lease).await,
    };
    match written {
        Ok(_) | Err(ClusterError::NotFound(_)) => Ok(Lock::Ours),
        Err(error) => Err(error),
    }
}

/// Gives the lock of `node` up.
pub async fn release<C: Cluster>(cluster: &C, node: &str) -> Result<(), ClusterError> {
    let name = format!("node-{node}");
    let at = At::within(NAMESPACE, &name);
    let Some(lease) = cluster.get::<Lease>(at).await? else { return Ok(()) };
    if lease.spec.and_then(|spec| spec.holder_identity).as_deref() != Some(HOLDER) {
        return Ok(());
    }
    let how = DeleteHow { grace_s: None, uid: lease.metadata.uid };
    match cluster.delete::<Lease>(at, &how).await {
        Ok(_) | Err(ClusterError::Conflict(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
