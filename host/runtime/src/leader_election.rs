//! Who may act: one leader by Lease, with an epoch that only grows.
//!
//! The leader may send bytes to devices until [`RENEW_DEADLINE`] after the *start* of
//! its last good renewal; a successor waits [`LEASE_DURATION`] of silence on its own
//! clock. Between the two lies the longest device call. What no lease can prevent, a
//! process paused between check and send, is answered elsewhere: a late off is waited
//! out before `on` (rule A3), and every record write is conditional on the epoch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use node_remedy_decide::bug::{Bug, guard, is_seeded};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use crate::clock::{BootClock, Clock, timestamp};
use crate::cluster::{At, Cluster, ClusterError};

/// A successor acts after this much silence.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// The last byte leaves a leader no later than this after its last good renewal began.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(8);
/// How often a leader renews and a standby looks.
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// The leader Lease's name.
pub const LEASE_NAME: &str = "node-remedy-leader";
/// Where the leader Lease is, whatever namespace a controller runs in: a cluster has one leader.
pub const LEASE_NAMESPACE: &str = "kube-system";
/// Carries the epoch on the Lease.
pub const EPOCH_ANNOTATION: &str = "node-remedy.io/epoch";
/// Carries the holder's namespace on the Lease.
const INSTALLATION_ANNOTATION: &str = "node-remedy.io/installation";

/// Open while this process may send to devices.
pub struct LeaseGate {
    clock: Arc<dyn BootClock>,
    open_until_ms: AtomicU64,
    renewed: Notify,
}

impl LeaseGate {
    /// A closed gate.
    pub fn new(clock: Arc<dyn BootClock>) -> Arc<Self> {
        Arc::new(Self { clock, open_until_ms: AtomicU64::new(0), renewed: Notify::new() })
    }

    /// Milliseconds for which bytes may still be sent; zero: none.
    pub fn remaining_ms(&self) -> u64 {
        let left = self.open_until_ms.load(Ordering::SeqCst).saturating_sub(self.clock.now_ms());
        if is_seeded(Bug::SendsWithoutLease) { millis(RENEW_DEADLINE) } else { left }
    }

    /// Waits until bytes may be sent for so long.
    pub async fn opens_for(&self, ms: u64) {
        loop {
            let renewed = self.renewed.notified();
            tokio::pin!(renewed);
            // From here on no renewal is missed.
            renewed.as_mut().enable();
            if self.remaining_ms() >= ms {
                return;
            }
            renewed.await;
        }
    }

    fn renewed_at(&self, started_ms: u64) {
        let until = started_ms.saturating_add(millis(RENEW_DEADLINE));
        self.open_until_ms.store(until, Ordering::SeqCst);
        self.renewed.notify_waiters();
    }

    fn close(&self) {
        self.open_until_ms.store(0, Ordering::SeqCst);
    }
}

/// This process's part in the election.
pub struct Leadership<C> {
    cluster: C,
    clock: Clock,
    namespace: String,
    identity: String,
    gate: Arc<LeaseGate>,
    /// The Lease's resourceVersion as last seen, and since when it has not changed.
    watched: Option<(String, u64)>,
    /// The largest resourceVersion that this process saw it have, or that of its own last take-over. They grow, and
    /// can be compared (KEP-5504).
    newest: u64,
    /// Another installation that leads, by its namespace, as it was last told of.
    told_of: Option<String>,
    /// The Lease as this process last wrote it, until a write of it fails: to renew takes one
    /// request, so that a slow API server costs the lease as late as can be.
    written: Option<Lease>,
}

impl<C: Cluster> Leadership<C> {
    /// `namespace` is the one that this process runs in. `identity` must differ between any two processes that ever
    /// run.
    pub fn new(
        cluster: C,
        clock: Clock,
        namespace: String,
        identity: String,
        gate: Arc<LeaseGate>,
    ) -> Self {
        Self {
            cluster,
            clock,
            namespace,
            identity,
            gate,
            watched: None,
            newest: 0,
            told_of: None,
            written: None,
        }
    }

    /// Waits until this process leads; returns its epoch.
    ///
    /// `largest` reads the largest epoch found outside the Lease: in the budget and in
    /// unfinished records. It is read before the Lease is written, so an epoch never
    /// stands in the Lease that is not larger than all others.
    pub async fn acquire<F>(&mut self, largest: impl Fn() -> F) -> u64
    where
        F: Future<Output = Result<u64, ClusterError>>,
    {
        loop {
            match self.try_acquire(&largest).await {
                Ok(Some(epoch)) => return epoch,
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "failed to ask for the leader lease"),
            }
            tokio::time::sleep(RETRY_PERIOD).await;
        }
    }

    /// What lets bytes out while the Lease is held.
    pub fn gate(&self) -> &LeaseGate {
        &self.gate
    }

    /// The other installation that was last found to hold the Lease.
    pub fn other_installation(&self) -> Option<&str> {
        self.told_of.as_deref()
    }

    /// Notes that the Lease had this resourceVersion: an older answer no longer counts.
    pub fn saw_version(&mut self, resource_version: u64) {
        self.newest = self.newest.max(resource_version);
    }

    /// Renews until the lease is lost; the gate is closed when this returns.
    pub async fn keep(&mut self) {
        let mut ticks = tokio::time::interval(RETRY_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            match self.renew().await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => tracing::warn!(%error, "failed to renew the leader lease"),
            }
            if self.gate.remaining_ms() == 0 {
                break;
            }
        }
        self.gate.close();
    }

    /// Gives the lease up, so that a standby need not wait it out.
    pub async fn release(&mut self) {
        self.gate.close();
        let Ok(Some(mut lease)) = self.read().await else { return };
        if holder(&lease) != Some(self.identity.as_str()) {
            return;
        }
        if let Some(spec) = lease.spec.as_mut() {
            spec.holder_identity = None;
        }
        if let Err(error) = self.cluster.replace(&lease).await {
            tracing::info!(%error, "failed to give up the leader lease; it will expire");
        }
    }

    /// Takes the Lease if it is free, or renews it; the epoch while this process holds it.
    pub async fn try_acquire<F>(
        &mut self,
        largest: &impl Fn() -> F,
    ) -> Result<Option<u64>, ClusterError>
    where
        F: Future<Output = Result<u64, ClusterError>>,
    {
        let started = self.clock.boot_ms();
        let found = self.read().await?;
        self.saw_version(order(&version(found.as_ref())));
        let is_held = found.as_ref().is_some_and(|lease| holder(lease).is_some());
        // Where somebody led there was a Lease: whoever deleted it may have done so under a leader.
        let is_missed = found.is_none() && largest().await? > 0;
        let is_doubtful = is_held || is_missed || self.is_set_back(found.as_ref());
        if is_doubtful && self.is_taken(found.as_ref()) {
            if let Some(lease) = found.as_ref().filter(|_| is_held) {
                self.tell_of(lease);
            }
            return Ok(None);
        }
        let epoch = 1 + epoch_of(found.as_ref()).max(largest().await?);
        let lease = self.claim(found, epoch);
        let written = match lease.metadata.resource_version {
            Some(_) => self.cluster.replace(&lease).await,
            None => self.cluster.create(&lease).await,
        };
        match written {
            Ok(written) => {
                self.gate.renewed_at(started);
                self.newest = order(&version(Some(&written)));
                self.written = Some(written);
                Ok(Some(epoch))
            }
            Err(ClusterError::Conflict(_) | ClusterError::AlreadyExists(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Says once that another installation leads.
    fn tell_of(&mut self, lease: &Lease) {
        let other = installation(lease).filter(|other| **other != self.namespace);
        if other.is_some() && other != self.told_of.as_ref() {
            tracing::warn!(
                other = other.map(String::as_str),
                "another installation, in that namespace, leads this cluster; this one stands by: remove one of them"
            );
        }
        self.told_of = other.cloned();
    }

    /// Whether the Lease is older than it was, or gone: the cluster's data was set back, or somebody deleted it.
    /// Whoever led a moment ago may not know.
    fn is_set_back(&self, found: Option<&Lease>) -> bool {
        order(&version(found)) < self.newest
    }

    /// Whether whoever had it last may still lead.
    fn is_taken(&mut self, lease: Option<&Lease>) -> bool {
        let is_taken = guard(Bug::TakesLeaseAtOnce, !self.has_been_silent(lease));
        is_taken || is_seeded(Bug::NeverTakesOver)
    }

    /// Whether the Lease has not changed for its whole duration on our own clock.
    fn has_been_silent(&mut self, lease: Option<&Lease>) -> bool {
        let now = self.clock.boot_ms();
        let version = version(lease);
        match &self.watched {
            Some((seen, since)) if *seen == version => {
                now.saturating_sub(*since) >= millis(LEASE_DURATION)
            }
            Some(_) | None => {
                self.watched = Some((version, now));
                false
            }
        }
    }

    fn claim(&self, found: Option<Lease>, epoch: u64) -> Lease {
        let now = MicroTime(timestamp(self.clock.server_now()));
        let mut lease = found.unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(LEASE_NAME.to_owned()),
                namespace: Some(self.lease_namespace().to_owned()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(INSTALLATION_ANNOTATION.to_owned(), self.namespace.clone());
        annotations.insert(EPOCH_ANNOTATION.to_owned(), epoch.to_string());
        let spec = lease.spec.get_or_insert_default();
        let transitions = spec.lease_transitions.map_or(0, |count| count.saturating_add(1));
        *spec = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        };
        lease
    }

    async fn renew(&mut self) -> Result<bool, ClusterError> {
        let started = self.clock.boot_ms();
        let found = match self.written.take() {
            Some(lease) => Some(lease),
            None => self.read().await?,
        };
        let Some(mut lease) = found.filter(|one| holder(one) == Some(&self.identity)) else {
            return Ok(false);
        };
        if let Some(spec) = lease.spec.as_mut() {
            spec.renew_time = Some(MicroTime(timestamp(self.clock.server_now())));
        }
        match self.cluster.replace(&lease).await {
            Ok(written) => {
                self.gate.renewed_at(started);
                self.written = Some(written);
                Ok(true)
            }
            Err(ClusterError::Conflict(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn lease_namespace(&self) -> &str {
        if is_seeded(Bug::LeaseOfItsOwn) { &self.namespace } else { LEASE_NAMESPACE }
    }

    async fn read(&self) -> Result<Option<Lease>, ClusterError> {
        self.cluster.get::<Lease>(At::within(self.lease_namespace(), LEASE_NAME)).await
    }
}

/// Its resourceVersion; nothing where there is no Lease.
fn version(lease: Option<&Lease>) -> String {
    lease.and_then(|lease| lease.metadata.resource_version.clone()).unwrap_or_default()
}

fn order(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

/// Who has it, if anybody.
pub fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    (!holder.is_empty()).then_some(holder)
}

/// The namespace of the installation that holds it, or did last.
fn installation(lease: &Lease) -> Option<&String> {
    lease.metadata.annotations.as_ref()?.get(INSTALLATION_ANNOTATION)
}

/// The largest whole number that JSON keeps, as the budget's schema has it. No leader writes one like that.
const EPOCH_MAX: u64 = (1 << 53) - 1;

/// The epoch that a Lease names; 0 where it names none.
pub fn epoch_of(lease: Option<&Lease>) -> u64 {
    lease
        .and_then(|lease| lease.metadata.annotations.as_ref()?.get(EPOCH_ANNOTATION))
        .and_then(|epoch| epoch.parse().ok())
        .filter(|epoch| *epoch < EPOCH_MAX)
        .unwrap_or_default()
}

/// Milliseconds, at most what fits.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
