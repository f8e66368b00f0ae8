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

use crate::cluster::{At, Cluster};

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
    fn renewed_at(&self, key: (String, String), stamp: String, now: Time) -> Time {
        let mut seen = self.seen.borrow_mut();
        let (known, at) = seen.entry(key).or_insert_with(|| (stamp.clone(), now));
        if *known != stamp {
            *known = stamp;
            *at = now;
        }
        *at
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use node_remedy_api::policy::StorageLeases as Asked;
    use node_remedy_api::time::Span;

    use super::*;
    use crate::cluster::ClusterError;
    use crate::simulate::door::Guarded;
    use crate::testing::{Bench, Door, Request, in_quiet_world};

    /// An API server that answers for Leases late, or not at all.
    struct Answers(Result<Duration, ClusterError>);

    impl Door for Answers {
        async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
            if request.resource == "leases" {
                tokio::time::sleep(self.0.clone()?).await;
            }
            Ok(())
        }
    }

    async fn read(bench: &Bench, answers: Result<Duration, ClusterError>) -> StorageLease {
        let asked = Asked { namespace: "storage".to_owned(), max_age: Span::from_minutes(1) };
        let limits = GateLimits { storage_leases: Some(asked), ..GateLimits::default() };
        let server = Guarded::new(bench.client("us"), Rc::new(Answers(answers)));
        let leases = StorageLeases::default();
        leases.of_node(&server, &limits, "node-1", || bench.clock.now()).await
    }

    #[test]
    fn a_lease_that_cannot_be_read_or_has_no_stamp_is_unread() {
        in_quiet_world(|bench| async move {
            let soon = Ok(Duration::from_secs(3));
            assert_eq!(read(&bench, soon.clone()).await, StorageLease::Absent);
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some("node-1".to_owned()),
                    namespace: Some("storage".to_owned()),
                    ..ObjectMeta::default()
                },
                spec: Some(LeaseSpec::default()),
            };
            bench.client("storage").create(&lease).await.unwrap();
            let denied = Err(ClusterError::Denied("forbidden".to_owned()));
            for (answers, expected) in [
                (soon, "it has no renewTime"),
                (Ok(Duration::from_secs(5)), "no answer in 4 s"),
                (denied, "the API server denied the request: forbidden"),
            ] {
                let why = expected.to_owned();
                assert_eq!(read(&bench, answers).await, StorageLease::Unread { why });
            }
        });
    }

    #[test]
    fn a_stamp_counts_from_when_it_was_first_read() {
        let leases = StorageLeases::default();
        let read = |stamp: &str, now| {
            leases.renewed_at(("storage".into(), "node-a".into()), stamp.into(), Time(now))
        };
        assert_eq!(read("2026-01-01T00:00:00Z", 10), Time(10), "seen for the first time");
        assert_eq!(read("2026-01-01T00:00:00Z", 50), Time(10));
        assert_eq!(read("2025-01-01T00:00:00Z", 60), Time(60), "whatever the stamp says");
        let other = leases.renewed_at(("storage".into(), "node-b".into()), "x".into(), Time(70));
        assert_eq!(other, Time(70));
    }
}
