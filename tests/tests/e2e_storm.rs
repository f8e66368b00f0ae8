//! Ten of thirty nodes fall silent at once, and then four: a network's or a power line's doing, not the nodes'.
//! None of them is switched off, and each says why, with numbers.
//!
//! The kubelets keep a real one's time, so the last renewals lie anywhere in ten seconds.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::control_plane::NodeMonitoring;
use node_remedy_tests::ipmi::Kind;
use node_remedy_tests::remedy::Installation;
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Cluster, Controller, Pace, controller, remedy};
use serde_json::json;

const THIRTY: Settings = Settings {
    nodes: 30,
    pace: Pace::REAL,
    monitoring: NodeMonitoring::DEFAULT,
    bmcs: Kind::IpmiSim,
};
/// The nodes that fall silent.
const RACK: usize = 10;
/// From the first to the last that falls silent: 1.2 times a renewal, less the renewal itself.
const BETWEEN: Duration = Duration::from_millis(150);
/// What the demand calls together.
const TOGETHER_MS: i128 = 12_000;
/// Three times what a node needs to cross its threshold and be judged.
const JUDGED_WITHIN: Duration = Duration::from_secs(75);
const SENTENCE: &str = "unhealthy 10 of 30 = 33 % ≥ 30 %";
/// So few that their share is no storm.
const FEW: usize = 4;
const FEW_SENTENCE: &str = "silent at once: 4 ≥ 3 nodes";

/// In which order they fall silent, by the times of their last renewals.
#[derive(Clone, Copy, Debug)]
enum Order {
    OldestFirst,
    NewestFirst,
    ByName,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_of_thirty_that_fall_silent_together_are_left_alone() -> Result<()> {
    let cluster = Cluster::start("e2e-storm", THIRTY).await?;
    let threshold = json!({"nodeLeaseAge": "20s"});
    remedy::install(&cluster, &Installation { threshold, ..Installation::default() }).await?;
    let mut controller = Controller::start(&cluster, "one")?;
    controller.until_ready().await?;
    let rack: Vec<&str> = cluster.machines.keys().take(RACK).map(String::as_str).collect();
    for order in [Order::OldestFirst, Order::NewestFirst, Order::ByName] {
        fall_silent(&cluster, &rack, order).await?;
        for node in &rack {
            refused(&cluster, node, SENTENCE).await.with_context(|| format!("{order:?}"))?;
        }
        come_back(&cluster, &rack).await?;
    }
    let few = rack.get(..FEW).context("a rack of ten")?;
    fall_silent(&cluster, few, Order::ByName).await?;
    for node in few {
        refused(&cluster, node, FEW_SENTENCE).await?;
    }
    come_back(&cluster, few).await?;
    nothing_was_done(&cluster).await?;
    controller.terminate().await
}

/// Nothing was done about them, and each is well again.
async fn come_back(cluster: &Cluster, rack: &[&str]) -> Result<()> {
    nothing_was_done(cluster).await?;
    for node in rack {
        cluster.machine(node)?.start_kubelet();
    }
    for node in rack {
        acquitted(cluster, node).await?;
    }
    Ok(())
}

/// They fall silent one after another, and their last renewals lie together.
async fn fall_silent(cluster: &Cluster, rack: &[&str], order: Order) -> Result<()> {
    let mut renewals = renewals(cluster, rack).await?;
    match order {
        Order::OldestFirst => renewals.sort_by_key(|(_, at)| *at),
        Order::NewestFirst => renewals.sort_by_key(|(_, at)| std::cmp::Reverse(*at)),
        Order::ByName => renewals.sort(),
    }
    let mut ticks = tokio::time::interval(BETWEEN);
    for (node, _) in &renewals {
        ticks.tick().await;
        cluster.machine(node)?.stop_kubelet();
    }
    let last = self::renewals(cluster, rack).await?;
    let (first, last) = (last.iter().map(|one| one.1).min(), last.iter().map(|one| one.1).max());
    let spread = last.zip(first).context("no renewals")?;
    let spread_ms = spread.0.duration_since(spread.1).as_millis();
    assert!(spread_ms < TOGETHER_MS, "{order:?}: the last renewals lie {spread_ms} ms apart");
    Ok(())
}

async fn renewals(cluster: &Cluster, rack: &[&str]) -> Result<Vec<(String, Timestamp)>> {
    let leases = Api::<Lease>::namespaced(cluster.client(), "kube-node-lease");
    let all = leases.list(&ListParams::default()).await?;
    Ok(all
        .into_iter()
        .filter_map(|lease| Some((lease.metadata.name?, lease.spec?.renew_time?.0)))
        .filter(|(node, _)| rack.contains(&node.as_str()))
        .collect())
}

/// `explain` says why nothing is done about the node, with the numbers.
async fn refused(cluster: &Cluster, node: &str, sentence: &str) -> Result<()> {
    let last = std::sync::Mutex::new(String::new());
    let found = until(&format!("{node} is refused with numbers"), JUDGED_WITHIN, || async {
        let said = controller::ask(cluster, &["explain", node]).await?;
        let is_found = said.contains("not acted on") && said.contains(sentence);
        if let Ok(mut last) = last.lock() {
            *last = said;
        }
        Ok(is_found.then_some(()))
    })
    .await;
    found.with_context(|| last.lock().map(|said| said.clone()).unwrap_or_default())
}

/// The node is heard again, and nothing is held against it.
async fn acquitted(cluster: &Cluster, node: &str) -> Result<()> {
    until(&format!("{node} is well"), JUDGED_WITHIN, || async {
        let said = controller::ask(cluster, &["explain", node]).await?;
        Ok(said.contains("nothing was refused").then_some(()))
    })
    .await
}

async fn nothing_was_done(cluster: &Cluster) -> Result<()> {
    for (name, bmc) in &cluster.bmcs {
        assert_eq!((bmc.offs()?, bmc.ons()?), (0, 0), "{name} was left alone");
    }
    let incidents = remedy::custom(&cluster.client(), "NodeFence");
    assert_eq!(incidents.list(&ListParams::default()).await?.items.len(), 0, "no incident");
    let verdict = cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.releases, []);
    assert_eq!(verdict.refused, [""; 0]);
    Ok(())
}
