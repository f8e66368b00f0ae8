//! Tests of `node_remedy_act::node_lock` in the model cluster or a simulated run.

use std::rc::Rc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use node_remedy_act::node_lock::*;
use node_remedy_decide::Time;
use node_remedy_model_cluster::client::ModelCluster;
use node_remedy_model_cluster::interceptor::{Guarded, Interceptor, Request};
use node_remedy_runtime::clock::{Clock, timestamp};
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow};
use node_remedy_simulate::testing::{Bench, in_quiet_world};

fn locks_of(bench: &Bench) -> NodeLocks<ModelCluster> {
    NodeLocks::new(bench.client("us"), bench.clock.clone())
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
        let locks = locks_of(&bench);
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
        assert_eq!(locks_of(&bench).held_by_other("a").await, Ok(None));
    });
}

#[test]
fn no_setting_of_the_servers_clock_ends_a_lock_or_makes_it_last() {
    for set_ms in [-3_600_000_i64, 3_600_000] {
        in_quiet_world(|bench| async move {
            let (locks, clock) = (locks_of(&bench), bench.clock.clone());
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
        let locks = locks_of(&bench);
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
        machine.drift(100);
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
        let locks = locks_of(&bench);
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

impl Interceptor for TakenMeanwhile {
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
        let locks = locks_of(&bench);
        assert_eq!(locks.take("a").await, Ok(Lock::Ours));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let interceptor = Rc::new(TakenMeanwhile(locks_of(&bench)));
        let late = Guarded::new(bench.client("us"), interceptor);
        NodeLocks::new(late, bench.clock.clone()).release("a").await.unwrap();
        let at = At::within(NAMESPACE, "node-a");
        let lease = bench.client("us").get::<Lease>(at).await.unwrap();
        assert!(lease.is_some(), "it was renewed since");
    });
}
