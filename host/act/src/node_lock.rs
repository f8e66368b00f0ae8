//! The per-node lock that other remediators honour: a Lease in `medik8s-leases`.
//!
//! What is written there ends by a stamp: valid while renewTime + duration lies ahead. Clocks that
//! disagree do not agree on that, so another's lock also counts for its whole duration from when its
//! renewal was first seen, by a clock that nobody can set. A namespace that does not exist means that
//! nobody in this cluster uses such locks.

use std::cell::RefCell;
use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use node_remedy_decide::Span;
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_runtime::clock::{Clock, time_of, timestamp};
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow};

/// Where the locks live.
pub const NAMESPACE: &str = "medik8s-leases";
/// Who we are in them.
pub const HOLDER: &str = "node-remedy";
/// As long as a fence method may take, and a change of leaders after it.
const DURATION_S: i32 = 600;
/// Clocks that are said to agree may be apart by so much.
const CLOCKS_APART_MS: u64 = 3_000;
/// A renewal that was seen so long ago is forgotten.
const FORGOTTEN_AFTER_MS: u64 = 24 * 60 * 60 * 1_000;
/// Renewed this often while an incident is open.
pub const RENEW_EVERY: Span = Span::seconds(150);
/// The same where clocks disagree: by others' clocks ours may have ended, and be taken, as soon as it is written.
pub const RENEW_IN_DOUBT_EVERY: Span = Span::seconds(1);
/// A lock that could not be renewed for three times as long, and at least for this long, may be another's.
pub const LOST_AFTER_MIN: Span = Span::seconds(15);

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

/// The locks of all nodes, as this process takes them and sees others hold them.
pub struct NodeLocks<C> {
    cluster: C,
    clock: Clock,
    seen: RefCell<BTreeMap<String, Sighting>>,
}

/// A renewal of another's lock.
struct Sighting {
    lease: LeaseSpec,
    /// When it was first seen, by [`Clock::boot_ms`].
    first_seen_ms: u64,
    /// How long it counts from then on.
    counts_for_ms: u64,
}

impl<C: Cluster> NodeLocks<C> {
    /// None seen so far.
    pub fn new(cluster: C, clock: Clock) -> Self {
        Self { cluster, clock, seen: RefCell::default() }
    }

    /// Who else holds the lock of `node` now, if anybody does. Takes nothing.
    pub async fn held_by_other(&self, node: &str) -> Result<Option<String>, ClusterError> {
        let found = self.cluster.get::<Lease>(At::within(NAMESPACE, &name_of(node))).await?;
        Ok(self.other_holder(node, found.as_ref()))
    }

    /// Takes or renews the lock of `node`.
    pub async fn take(&self, node: &str) -> Result<Lock, ClusterError> {
        let name = name_of(node);
        let found = self.cluster.get::<Lease>(At::within(NAMESPACE, &name)).await?;
        if let Some(holder) = self.other_holder(node, found.as_ref()) {
            return Ok(Lock::Theirs { holder });
        }
        let mut lease = found.unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        // Of two clocks the later: to whom it is still to come, the lock is valid for longer.
        let stamp = MicroTime(timestamp(self.clock.server_now().max(self.clock.now())));
        let before =
            lease.spec.take().filter(|spec| spec.holder_identity.as_deref() == Some(HOLDER));
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(HOLDER.to_owned()),
            lease_duration_seconds: Some(DURATION_S),
            acquire_time: before.and_then(|spec| spec.acquire_time).or_else(|| Some(stamp.clone())),
            renew_time: Some(stamp),
            ..LeaseSpec::default()
        });
        let written = match lease.metadata.resource_version {
            Some(_) => self.cluster.replace(&lease).await,
            None => self.cluster.create(&lease).await,
        };
        match written {
            Ok(_) | Err(ClusterError::NotFound(_)) => Ok(Lock::Ours),
            Err(error) => Err(error),
        }
    }

    /// Gives the lock of `node` up.
    pub async fn release(&self, node: &str) -> Result<(), ClusterError> {
        let name = name_of(node);
        let at = At::within(NAMESPACE, &name);
        let Some(lease) = self.cluster.get::<Lease>(at).await? else { return Ok(()) };
        if lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()) != Some(HOLDER) {
            return Ok(());
        }
        // Carried out late, it must not take a lock away that was taken anew meanwhile.
        let ObjectMeta { uid, resource_version, .. } = lease.metadata;
        let how = DeleteHow { uid, resource_version, ..DeleteHow::default() };
        match self.cluster.delete::<Lease>(at, &how).await {
            Ok(_) | Err(ClusterError::Conflict(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The holder of the lock of `node`, where it counts and is not ours.
    fn other_holder(&self, node: &str, lease: Option<&Lease>) -> Option<String> {
        let spec = lease.and_then(|lease| lease.spec.as_ref());
        let holder = |spec: &&LeaseSpec| {
            spec.holder_identity.as_deref().is_some_and(|who| !who.is_empty() && who != HOLDER)
        };
        let Some(spec) = spec.filter(holder) else {
            self.seen.borrow_mut().remove(node);
            return None;
        };
        let counts = guard(Bug::LocksIgnored, self.counts(node, spec));
        counts.then(|| spec.holder_identity.clone()).flatten()
    }

    /// Whether another's lock counts now. How long it does is settled when its renewal is first seen.
    fn counts(&self, node: &str, spec: &LeaseSpec) -> bool {
        let boot_ms = self.clock.boot_ms();
        let mut seen = self.seen.borrow_mut();
        let age_ms = |one: &Sighting| boot_ms.saturating_sub(one.first_seen_ms);
        seen.retain(|_, one| age_ms(one) < one.counts_for_ms.max(FORGOTTEN_AFTER_MS));
        if seen.get(node).is_none_or(|before| before.lease != *spec) {
            let counts_for_ms = self.counts_from_now_for(spec);
            let sighting = Sighting { lease: spec.clone(), first_seen_ms: boot_ms, counts_for_ms };
            seen.insert(node.to_owned(), sighting);
        }
        seen.get(node).is_some_and(|one| age_ms(one) < one.counts_for_ms)
    }

    /// How long a renewal counts that is seen now for the first time: its duration, and as much more
    /// as a clock of ours that is not corrected may gain. Where clocks agree, one that has ended has
    /// ended; where they do not, nobody can tell that by its stamp.
    fn counts_from_now_for(&self, spec: &LeaseSpec) -> u64 {
        let duration_s = u64::try_from(spec.lease_duration_seconds.unwrap_or_default());
        let duration_ms = duration_s.unwrap_or_default().saturating_mul(1_000);
        let renewed = spec.renew_time.as_ref().map_or(0, |stamp| time_of(&stamp.0).0);
        let ended = renewed.saturating_add(duration_ms).saturating_add(CLOCKS_APART_MS);
        if ended <= self.clock.now().0 && !self.clock.is_doubtful() {
            return 0;
        }
        duration_ms.saturating_add(duration_ms / 8).saturating_add(CLOCKS_APART_MS)
    }
}

fn name_of(node: &str) -> String {
    format!("node-{node}")
}
