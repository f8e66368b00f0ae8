//! The per-node lock that other remediators honour: a Lease in `medik8s-leases`.
//!
//! Valid while renewTime + duration lies ahead. A namespace that does not exist means
//! that nobody in this cluster uses such locks.

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
/// Our clock is ahead of theirs by no more, or it is corrected.
const CLOCKS_APART_MS: u64 = 3_000;
/// Renewed this often while an incident is open.
pub const RENEW_EVERY: Span = Span::seconds(150);

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

/// Who else holds the lock of `node` now, if anybody does. Takes nothing.
pub async fn held_by_other<C: Cluster>(
    cluster: &C,
    clock: &Clock,
    node: &str,
) -> Result<Option<String>, ClusterError> {
    let found = cluster.get::<Lease>(At::within(NAMESPACE, &name_of(node))).await?;
    Ok(found.and_then(|lease| other_holder(&lease, clock)))
}

/// Takes or renews the lock of `node`.
pub async fn take<C: Cluster>(
    cluster: &C,
    clock: &Clock,
    node: &str,
) -> Result<Lock, ClusterError> {
    let name = name_of(node);
    let found = cluster.get::<Lease>(At::within(NAMESPACE, &name)).await?;
    if let Some(holder) = found.as_ref().and_then(|lease| other_holder(lease, clock)) {
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
    let stamp = MicroTime(timestamp(clock.server_now()));
    let before = lease.spec.take().filter(|spec| spec.holder_identity.as_deref() == Some(HOLDER));
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(HOLDER.to_owned()),
        lease_duration_seconds: Some(DURATION_S),
        acquire_time: before.and_then(|spec| spec.acquire_time).or_else(|| Some(stamp.clone())),
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
    let name = name_of(node);
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

fn name_of(node: &str) -> String {
    format!("node-{node}")
}

/// The holder of a lock that is valid and not ours. Where the server's clock was set, the holder's may
/// follow it or not: a lock is valid as long as either reckoning says so, unless it was renewed when
/// the server's clock is still to come to.
fn other_holder(lease: &Lease, clock: &Clock) -> Option<String> {
    let (now, server_now) = (clock.now().0, clock.server_now().0);
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.as_deref().filter(|name| !name.is_empty())?;
    let renewed = spec.renew_time.as_ref().map_or(0, |stamp| time_of(&stamp.0).0);
    let duration_s = u64::try_from(spec.lease_duration_seconds.unwrap_or_default());
    let duration_ms = duration_s.unwrap_or_default().saturating_mul(1_000);
    let valid_until = renewed.saturating_add(duration_ms).saturating_add(CLOCKS_APART_MS);
    let is_by_server = renewed <= server_now.saturating_add(CLOCKS_APART_MS);
    let is_valid = valid_until >= now || is_by_server && valid_until >= server_now;
    let is_theirs = holder != HOLDER && is_valid;
    guard(Bug::LocksIgnored, is_theirs).then(|| holder.to_owned())
}

#[cfg(test)]
mod tests {
    use node_remedy_decide::Time;

    use super::*;
    use crate::testing::{Bench, in_quiet_world};

    async fn put(bench: &Bench, holder: &str) {
        put_at(bench, holder, bench.clock.now()).await;
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

    #[test]
    fn a_lock_of_another_is_honoured_until_it_expires() {
        in_quiet_world(|bench| async move {
            put(&bench, "node-healthcheck").await;
            let (cluster, clock) = (bench.client("us"), bench.clock.clone());
            let theirs = Lock::Theirs { holder: "node-healthcheck".to_owned() };
            assert_eq!(take(&cluster, &clock, "a").await, Ok(theirs));
            release(&cluster, "a").await.unwrap();
            let holder = held_by_other(&cluster, &clock, "a").await.unwrap();
            assert_eq!(holder.as_deref(), Some("node-healthcheck"), "only ours is given up");
            // Ours may be the clock that is ahead.
            tokio::time::sleep(std::time::Duration::from_secs(61)).await;
            let holder = held_by_other(&cluster, &clock, "a").await.unwrap();
            assert_eq!(holder.as_deref(), Some("node-healthcheck"));
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            assert_eq!(held_by_other(&cluster, &clock, "a").await, Ok(None));
            assert_eq!(take(&cluster, &clock, "a").await, Ok(Lock::Ours));
        });
    }

    #[test]
    fn a_lock_outlives_no_setting_of_the_servers_clock_and_none_ends_it() {
        for set_ms in [-3_600_000_i64, 3_600_000] {
            in_quiet_world(|bench| async move {
                let (cluster, clock) = (bench.client("us"), bench.clock.clone());
                clock.correct(clock.now());
                put(&bench, "node-healthcheck").await;
                clock.correct(Time(clock.now().0.saturating_add_signed(set_ms)));
                assert!(held_by_other(&cluster, &clock, "a").await.unwrap().is_some(), "{set_ms}");
                tokio::time::sleep(std::time::Duration::from_secs(64)).await;
                assert_eq!(held_by_other(&cluster, &clock, "a").await, Ok(None), "{set_ms}");
                // Renewed by a clock that follows the server's.
                cluster
                    .delete::<Lease>(At::within(NAMESPACE, "node-a"), &DeleteHow::default())
                    .await
                    .unwrap();
                put_at(&bench, "node-healthcheck", clock.server_now()).await;
                assert!(held_by_other(&cluster, &clock, "a").await.unwrap().is_some(), "{set_ms}");
            });
        }
    }

    #[test]
    fn a_lock_that_was_given_up_is_gone() {
        in_quiet_world(|bench| async move {
            let (cluster, clock) = (bench.client("us"), bench.clock.clone());
            assert_eq!(take(&cluster, &clock, "a").await, Ok(Lock::Ours));
            assert_eq!(held_by_other(&cluster, &clock, "a").await, Ok(None), "ours");
            release(&cluster, "a").await.unwrap();
            let lease = cluster.get::<Lease>(At::within(NAMESPACE, "node-a")).await.unwrap();
            assert!(lease.is_none(), "{lease:?}");
        });
    }
}
