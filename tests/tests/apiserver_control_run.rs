//! What Kubernetes does without node-remedy, and whether the judge would notice cheating.
//!
//! The control runs to the end-to-end tests: the same cluster, the same loss, no controller.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::observer::Violation;
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Cluster, by_hand, remedy};

const TOLERATION_S: u32 = 2;
const VOLUME: &str = "db-0-data";
/// Enough for a loss to be noticed and a pod to be moved, on a busy machine.
const WITHIN: Duration = Duration::from_mins(1);

struct Lost {
    node: String,
    pod: Pod,
}

/// A database runs; the kubelet of its node dies while the machine runs on; Kubernetes notices.
async fn lose_the_database(cluster: &Cluster) -> Result<Lost> {
    cluster.create_database(TOLERATION_S).await?;
    let node = cluster.database_runs(None).await?;
    cluster.machine(&node)?.stop_kubelet();
    cluster.until_ready(&node, "Unknown").await?;
    let pod = until("db-0 is Terminating", WITHIN, || async {
        let pod = cluster.pod("db-0").await?;
        Ok(pod.filter(|pod| pod.metadata.deletion_timestamp.is_some()))
    })
    .await?;
    Ok(Lost { node, pod })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_node_remedy_the_pod_stays_terminating_while_its_machine_writes() -> Result<()> {
    let cluster = Cluster::start("control-run", Settings::QUICK).await?;
    let lost = lose_the_database(&cluster).await?;
    let writes_at_loss = cluster.storage.writes(VOLUME)?.len();

    // Whatever Kubernetes does about such a pod, pod GC would be the one to do it.
    cluster.pod_gc_round().await?;
    cluster.pod_gc_round().await?;

    let pod = cluster.pod("db-0").await?.context("db-0 is gone")?;
    assert_eq!(pod.uid(), lost.pod.uid(), "it is the same pod");
    assert_eq!(pod.spec.and_then(|spec| spec.node_name).as_deref(), Some(lost.node.as_str()));
    assert_eq!(cluster.attachments().await?, [(VOLUME.to_owned(), lost.node.clone())]);
    let writes = cluster.storage.writes(VOLUME)?;
    let seconds_of_writes = 10 * 20;
    assert!(writes.len() > writes_at_loss + seconds_of_writes, "the machine wrote on");
    assert!(writes.iter().all(|write| Some(write.uid.as_str()) == lost.pod.uid().as_deref()));
    assert_eq!(cluster.observer(User::NodeRemedy).judge()?.violations, []);
    Ok(())
}

/// The test of the test: whoever releases without proof is caught, by the deletes and by the
/// volume itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_without_proof_is_caught_as_two_writers() -> Result<()> {
    let cluster = Cluster::start("proofless-release", Settings::QUICK).await?;
    let lost = lose_the_database(&cluster).await?;
    remedy::grant(&cluster.client()).await?;
    by_hand::release(&cluster, User::NodeRemedy, &lost.node).await?;
    cluster.database_runs(Some(&lost.node)).await?;

    let verdict = until("the volume has two writers", WITHIN, || async {
        let verdict = cluster.observer(User::NodeRemedy).judge()?;
        let is_found = |violation: &Violation| matches!(violation, Violation::TwoWriters { .. });
        Ok(verdict.violations.iter().any(is_found).then_some(verdict))
    })
    .await?;
    let early: Vec<_> = verdict
        .violations
        .iter()
        .filter_map(|violation| match violation {
            Violation::ReleasedWhileOn(release) => Some(release.what.as_str()),
            Violation::TwoWriters { .. }
            | Violation::ReleasedWithoutRead(_)
            | Violation::ReleasedFromNowhere(_) => None,
        })
        .collect();
    assert_eq!(early, ["taint out-of-service", "pods default/db-0"]);
    // The machine's pod object was deleted by node-remedy's user; the admin did nothing.
    assert_eq!(cluster.observer(User::Admin).judge()?.releases, []);
    Ok(())
}

/// The same release after a power-off that a read confirmed is what node-remedy is for, and the
/// judge has nothing against it. Power returns, and the machine comes back as a new boot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_behind_proof_moves_the_database_with_one_writer() -> Result<()> {
    let cluster = Cluster::start("proven-release", Settings::QUICK).await?;
    let lost = lose_the_database(&cluster).await?;
    let machine = cluster.machine(&lost.node)?;
    let old_boot_id = machine.boot_id();
    let bmc = cluster.bmc(&lost.node)?;

    ipmitool(bmc, "off").await?;
    until("a read says off", WITHIN, || async {
        Ok(ipmitool(bmc, "status").await?.contains("is off").then_some(()))
    })
    .await?;
    remedy::grant(&cluster.client()).await?;
    by_hand::release(&cluster, User::NodeRemedy, &lost.node).await?;
    cluster.database_runs(Some(&lost.node)).await?;

    by_hand::lift_taint(&cluster, User::NodeRemedy, &lost.node).await?;
    ipmitool(bmc, "on").await?;
    cluster.until_power(&lost.node, Power::On).await?;
    cluster.until_ready(&lost.node, "True").await?;
    let node = cluster.node(&lost.node).await?;
    let boot_id = node.status.and_then(|status| status.node_info).map(|info| info.boot_id);
    assert!(boot_id.is_some() && boot_id == machine.boot_id() && boot_id != old_boot_id);

    let verdict = cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.releases.len(), 2, "the taint and the pod: {:?}", verdict.releases);
    assert_eq!((bmc.offs()?, bmc.ons()?), (1, 1));
    Ok(())
}

/// An independent client of the BMC.
async fn ipmitool(bmc: &node_remedy_tests::Bmc, action: &str) -> Result<String> {
    crate::apiserver_bmc::ipmitool(bmc, &["-C", "3"], &["chassis", "power", action]).await
}
