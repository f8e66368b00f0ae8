//! Storage Leases: kept per node, in a namespace that the policy names, by whoever sees the node use
//! its storage. They are read live, by name, right before something is allowed.
//!
//! A stamp is another's clock and says nothing here; what counts is when this process first read
//! another one than before. A Lease that it sees for the first time counts as renewed just now.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use node_remedy_api::policy::GateLimits;
use node_remedy_decide::{StorageLease, Time};
use node_remedy_runtime::cluster::{At, Cluster};

/// An answer that takes longer lets the rest of the look grow old: evidence keeps for five seconds.
const READ_MAX: Duration = Duration::from_secs(4);

/// What this process saw of them.
#[derive(Debug, Default)]
pub struct StorageLeases {
    /// The stamp by namespace and name, and when it was first read.
    seen: RefCell<BTreeMap<(String, String), (String, Time)>>,
}

impl StorageLeases {
    /// Reads the Lease of `node`, where the limits ask for one; `now` is the clock's time.
    pub async fn of_node<C: Cluster>(
        &self,
        cluster: &C,
        limits: &GateLimits,
        node: &str,
        now: impl Fn() -> Time,
    ) -> StorageLease {
        let Some(asked) = &limits.storage_leases else { return StorageLease::NotAsked };
        let unread = |why: String| StorageLease::Unread { why };
        let at = At::within(&asked.namespace, node);
        match tokio::time::timeout(READ_MAX, cluster.get::<Lease>(at)).await {
            Err(_) => unread(format!("no answer in {} s", READ_MAX.as_secs())),
            Ok(Err(error)) => unread(error.to_string()),
            Ok(Ok(None)) => StorageLease::Absent,
            Ok(Ok(Some(lease))) => match lease.spec.and_then(|spec| spec.renew_time) {
                Some(stamp) => {
                    let key = (asked.namespace.clone(), node.to_owned());
                    StorageLease::Renewed { at: self.renewed_at(key, stamp.0.to_string(), now()) }
                }
                None => unread("it has no renewTime".to_owned()),
            },
        }
    }

    /// When this stamp was first read; another one than before was written just now.
    pub fn renewed_at(&self, key: (String, String), stamp: String, now: Time) -> Time {
        let mut seen = self.seen.borrow_mut();
        let (known, at) = seen.entry(key).or_insert_with(|| (stamp.clone(), now));
        if *known != stamp {
            *known = stamp;
            *at = now;
        }
        *at
    }
}
