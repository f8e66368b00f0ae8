//! Tests of `node_remedy_runtime::leader_election` in the model cluster or a simulated run.

use k8s_openapi::api::coordination::v1::Lease;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow};
use node_remedy_runtime::leader_election::*;
use node_remedy_simulate::testing::{Bench, in_quiet_world};

fn contender(bench: &Bench, name: &str) -> Leadership<impl Cluster + use<>> {
    contender_of(bench, "node-remedy", name)
}

fn contender_of(bench: &Bench, namespace: &str, name: &str) -> Leadership<impl Cluster + use<>> {
    let gate = LeaseGate::new(bench.clock.boot_clock());
    Leadership::new(
        bench.client(name),
        bench.clock.clone(),
        namespace.to_owned(),
        name.to_owned(),
        gate,
    )
}

async fn nothing() -> Result<u64, ClusterError> {
    Ok(0)
}

#[test]
fn a_silent_leader_is_succeeded_after_the_lease_and_not_before() {
    in_quiet_world(|bench| async move {
        let (mut first, mut second) = (contender(&bench, "a"), contender(&bench, "b"));
        assert_eq!(first.acquire(nothing).await, 1);
        let silent_since = bench.clock.boot_ms();
        assert_eq!(second.acquire(nothing).await, 2, "an epoch only grows");
        let waited = bench.clock.boot_ms() - silent_since;
        assert!(waited >= millis(LEASE_DURATION), "took over after {waited} ms");
        assert_eq!(first.gate().remaining_ms(), 0, "the old leader must not send any more");
    });
}

#[test]
fn a_leader_that_renews_is_not_succeeded() {
    in_quiet_world(|bench| async move {
        let (mut first, mut second) = (contender(&bench, "a"), contender(&bench, "b"));
        first.acquire(nothing).await;
        tokio::select! {
            () = first.keep() => panic!("lost a lease that it renews"),
            _ = second.acquire(nothing) => panic!("took over a lease that is renewed"),
            () = tokio::time::sleep(LEASE_DURATION * 10) => {}
        }
        assert!(first.gate().remaining_ms() > 0);
        assert_eq!(second.gate().remaining_ms(), 0);
    });
}

/// Somebody deleted it, or set the cluster's data back to before it was there: its leader may not know yet.
#[test]
fn a_lease_that_is_gone_or_older_than_it_was_is_not_taken_at_once() {
    in_quiet_world(|bench| async move {
        let (mut first, mut second) = (contender(&bench, "a"), contender(&bench, "b"));
        first.acquire(nothing).await;
        assert!(second.try_acquire(&nothing).await.is_ok_and(|epoch| epoch.is_none()));
        let at = At::within(LEASE_NAMESPACE, LEASE_NAME);
        let how = DeleteHow::default();
        bench.client("somebody").delete::<Lease>(at, &how).await.unwrap();
        assert!(first.gate().remaining_ms() > 0);
        let deleted_at = bench.clock.boot_ms();
        second.acquire(nothing).await;
        let waited = bench.clock.boot_ms() - deleted_at;
        assert!(waited >= millis(LEASE_DURATION), "took over after {waited} ms");
        assert_eq!(first.gate().remaining_ms(), 0);

        second.saw_version(u64::MAX);
        second.release().await;
        let released_at = bench.clock.boot_ms();
        second.acquire(nothing).await;
        assert!(bench.clock.boot_ms() - released_at >= millis(LEASE_DURATION));
    });
}

/// One that has just started has not seen that there was one, but what its leader wrote.
#[test]
fn a_lease_that_is_gone_is_not_taken_at_once_where_somebody_led() {
    in_quiet_world(|bench| async move {
        let (mut first, mut fresh) = (contender(&bench, "a"), contender(&bench, "b"));
        first.acquire(nothing).await;
        let at = At::within(LEASE_NAMESPACE, LEASE_NAME);
        bench.client("somebody").delete::<Lease>(at, &DeleteHow::default()).await.unwrap();
        assert!(first.gate().remaining_ms() > 0);
        let deleted_at = bench.clock.boot_ms();
        assert_eq!(fresh.acquire(|| async { Ok(1) }).await, 2);
        let waited = bench.clock.boot_ms() - deleted_at;
        assert!(waited >= millis(LEASE_DURATION), "took over after {waited} ms");
        assert_eq!(first.gate().remaining_ms(), 0);
    });
}

/// Somebody installed it twice, in two namespaces.
#[test]
fn of_two_installations_one_leads() {
    in_quiet_world(|bench| async move {
        let mut first = contender_of(&bench, "node-remedy", "a");
        let mut second = contender_of(&bench, "fencing", "b");
        first.acquire(nothing).await;
        assert!(second.try_acquire(&nothing).await.is_ok_and(|epoch| epoch.is_none()));
        assert_eq!(second.other_installation(), Some("node-remedy"));
        first.release().await;
        assert_eq!(second.acquire(nothing).await, 2);
        assert!(first.try_acquire(&nothing).await.is_ok_and(|epoch| epoch.is_none()));
        assert_eq!(first.other_installation(), Some("fencing"));
    });
}

#[test]
fn a_released_lease_is_taken_at_once_with_a_larger_epoch_than_any_record() {
    in_quiet_world(|bench| async move {
        let (mut first, mut second) = (contender(&bench, "a"), contender(&bench, "b"));
        first.acquire(nothing).await;
        first.release().await;
        assert_eq!(first.gate().remaining_ms(), 0);
        let before = bench.clock.boot_ms();
        assert_eq!(second.acquire(|| async { Ok(41) }).await, 42);
        assert!(bench.clock.boot_ms() - before < 1_000);
        let lease = bench
            .client("test")
            .get::<Lease>(At::within(LEASE_NAMESPACE, LEASE_NAME))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(epoch_of(Some(&lease)), 42);
    });
}

#[test]
fn the_gate_closes_before_a_successor_may_act() {
    in_quiet_world(|bench| async move {
        let mut first = contender(&bench, "a");
        first.acquire(nothing).await;
        tokio::time::sleep(RENEW_DEADLINE).await;
        assert_eq!(first.gate().remaining_ms(), 0);
        assert!(RENEW_DEADLINE < LEASE_DURATION);
    });
}
