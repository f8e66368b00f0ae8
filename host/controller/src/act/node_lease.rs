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

use crate::clock::{Clock, time_of, timestamp};
use crate::cluster::{At, Cluster, ClusterError, DeleteHow};

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

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use node_remedy_decide::Time;
    use node_remedy_world::scenario::ClockChange;

    use super::*;
    use crate::simulate::cluster::ModelCluster;
    use crate::simulate::door::Guarded;
    use crate::testing::{Bench, Door, Request, in_quiet_world};

    impl Bench {
        fn locks(&self) -> NodeLocks<ModelCluster> {
            NodeLocks::new(self.client("us"), self.clock.clone())
        }
    }

    async fn put(bench: &Bench, holder: &str) {
        put_at(bench, holder, bench.now()).await;
    }

    async fn put_at(bench: &Bench, holder: &str, renewed: Time) {
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some("node-a".to_owned()),
                namespace: Some(NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(60),
                renew_time: Some(MicroTime(timestamp(renewed))),
                ..LeaseSpec::default()
            }),
        };
        bench.client("other").create(&lease).await.unwrap();
    }

    /// A minute, an eighth more, and what clocks may be apart.
    const HELD: Duration = Duration::from_millis(70_500);
    const STILL_HELD: Duration = Duration::from_secs(69);

    async fn renew(bench: &Bench, at: Time) {
        let how = DeleteHow::default();
        bench.client("other").delete::<Lease>(At::within(NAMESPACE, "node-a"), &how).await.unwrap();
        put_at(bench, "node-healthcheck", at).await;
    }

    #[test]
    fn a_lock_of_another_is_honoured_until_it_expires() {
        in_quiet_world(|bench| async move {
            put(&bench, "node-healthcheck").await;
            let locks = bench.locks();
            let theirs = Lock::Theirs { holder: "node-healthcheck".to_owned() };
            assert_eq!(locks.take("a").await, Ok(theirs));
            locks.release("a").await.unwrap();
            let holder = locks.held_by_other("a").await.unwrap();
            assert_eq!(holder.as_deref(), Some("node-healthcheck"), "only ours is given up");
            tokio::time::sleep(STILL_HELD).await;
            let holder = locks.held_by_other("a").await.unwrap();
            assert_eq!(holder.as_deref(), Some("node-healthcheck"));
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(locks.held_by_other("a").await, Ok(None));
            assert_eq!(locks.take("a").await, Ok(Lock::Ours));
        });
    }

    #[test]
    fn a_lock_that_ended_before_it_was_seen_holds_nobody_up_where_clocks_agree() {
        in_quiet_world(|bench| async move {
            put(&bench, "node-healthcheck").await;
            tokio::time::sleep(Duration::from_secs(64)).await;
            assert_eq!(bench.locks().held_by_other("a").await, Ok(None));
        });
    }

    #[test]
    fn no_setting_of_the_servers_clock_ends_a_lock_or_makes_it_last() {
        for set_ms in [-3_600_000_i64, 3_600_000] {
            in_quiet_world(|bench| async move {
                let (locks, clock) = (bench.locks(), bench.clock.clone());
                clock.correct(clock.now());
                put(&bench, "node-healthcheck").await;
                assert!(locks.held_by_other("a").await.unwrap().is_some(), "{set_ms}");
                clock.correct(Time(clock.now().0.saturating_add_signed(set_ms)));
                tokio::time::sleep(STILL_HELD).await;
                assert!(locks.held_by_other("a").await.unwrap().is_some(), "{set_ms}");
                tokio::time::sleep(Duration::from_secs(2)).await;
                assert_eq!(locks.held_by_other("a").await, Ok(None), "{set_ms}");
                // Renewed, and seen a while later: their clock may be right or follow the server's.
                for by_server in [false, true] {
                    let renewed = if by_server { clock.server_now() } else { bench.now() };
                    renew(&bench, renewed).await;
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    assert!(locks.held_by_other("a").await.unwrap().is_some(), "{set_ms}");
                    tokio::time::sleep(HELD).await;
                    assert_eq!(locks.held_by_other("a").await, Ok(None), "{set_ms}");
                }
            });
        }
    }

    #[test]
    fn a_process_that_starts_when_clocks_disagree_believes_no_stamp() {
        in_quiet_world(|bench| async move {
            bench.clock.correct(Time(bench.now().0 + 3_600_000));
            let locks = bench.locks();
            put_at(&bench, "node-healthcheck", bench.now()).await;
            assert!(locks.held_by_other("a").await.unwrap().is_some());
            tokio::time::sleep(HELD).await;
            assert_eq!(locks.held_by_other("a").await, Ok(None));
        });
    }

    #[test]
    fn a_clock_that_runs_a_tenth_too_fast_ends_no_lock() {
        in_quiet_world(|bench| async move {
            let machine = bench.machine();
            machine.change(ClockChange::Drift(100));
            let locks = NodeLocks::new(bench.client("us"), Clock::simulated(machine));
            put(&bench, "node-healthcheck").await;
            assert!(locks.held_by_other("a").await.unwrap().is_some());
            tokio::time::sleep(Duration::from_mins(1)).await;
            assert!(locks.held_by_other("a").await.unwrap().is_some());
        });
    }

    #[test]
    fn a_lock_that_was_given_up_is_gone() {
        in_quiet_world(|bench| async move {
            let locks = bench.locks();
            assert_eq!(locks.take("a").await, Ok(Lock::Ours));
            assert_eq!(locks.held_by_other("a").await, Ok(None), "ours");
            locks.release("a").await.unwrap();
            let at = At::within(NAMESPACE, "node-a");
            let lease = bench.client("us").get::<Lease>(at).await.unwrap();
            assert!(lease.is_none(), "{lease:?}");
        });
    }

    /// Its client has given this delete up, and taken the lock anew.
    struct TakenMeanwhile(NodeLocks<ModelCluster>);

    impl Door for TakenMeanwhile {
        async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
            if request.verb == "delete" {
                assert_eq!(self.0.take("a").await, Ok(Lock::Ours));
            }
            Ok(())
        }
    }

    #[test]
    fn a_lock_that_is_given_up_late_is_not_taken_from_who_has_it_by_then() {
        in_quiet_world(|bench| async move {
            let locks = bench.locks();
            assert_eq!(locks.take("a").await, Ok(Lock::Ours));
            tokio::time::sleep(Duration::from_secs(2)).await;
            let door = Rc::new(TakenMeanwhile(bench.locks()));
            let late = Guarded::new(bench.client("us"), door);
            NodeLocks::new(late, bench.clock.clone()).release("a").await.unwrap();
            let at = At::within(NAMESPACE, "node-a");
            let lease = bench.client("us").get::<Lease>(at).await.unwrap();
            assert!(lease.is_some(), "it was renewed since");
        });
    }
}
