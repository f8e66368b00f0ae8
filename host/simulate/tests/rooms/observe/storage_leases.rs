//! Tests of `node_remedy_observe::storage_leases` in the model cluster or a simulated run.

use std::rc::Rc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use node_remedy_api::policy::{GateLimits, StorageLeases as Asked};
use node_remedy_api::time::Span;
use node_remedy_decide::{StorageLease, Time};
use node_remedy_model_cluster::interceptor::{Guarded, Interceptor, Request};
use node_remedy_observe::storage_leases::*;
use node_remedy_runtime::cluster::{Cluster, ClusterError};
use node_remedy_simulate::testing::{Bench, in_quiet_world};

/// An API server that answers for Leases late, or not at all.
struct Answers(Result<Duration, ClusterError>);

impl Interceptor for Answers {
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

#[test] // promise: G4
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

#[test] // promise: G4
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
