//! `cargo xtask demo --cluster`: a lost node on a real control plane, told as it happens.
//!
//! First nobody helps, and the database stays down while its machine writes on; then node-remedy is
//! started. Everything that is printed was read from the API server, the BMC's log or the volume's
//! file; the verdict is the outside observer's. With `--keep` the cluster stays until Ctrl-C.

mod facts;
mod told;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::control_plane::Kubernetes;
use node_remedy_tests::observer::Verdict;
use node_remedy_tests::remedy::{Installation, is_in_phase};
use node_remedy_tests::user::User;
use node_remedy_tests::{Cluster, Controller, remedy};

use crate::told::Narrator;

const STEPS: usize = 5;
/// How long the database's pods tolerate a node that is not Ready, in seconds.
const TOLERATION_S: u32 = 2;
/// A whole incident takes about half a minute.
const WITHIN: Duration = Duration::from_mins(2);
/// Long enough to see that nothing happens.
const NOBODY_HELPS_FOR: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let keeps = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => false,
        ["--keep"] => true,
        unknown => bail!("unknown arguments {unknown:?}; there is --keep"),
    };
    step(1, "three machines with BMCs join a real control plane, one runs a database");
    let cluster = Cluster::start("demo-cluster", Settings::QUICK).await?;
    cluster.create_database(TOLERATION_S).await?;
    let node = cluster.database_runs(None).await?;
    let mut told = Narrator::start(node.clone());
    told.news(&cluster).await?;

    step(2, "its kubelet stops; the machine runs on; nobody helps");
    cluster.machine(&node)?.stop_kubelet();
    told.until(&cluster, "the pod is Terminating", WITHIN, async || {
        let pod = cluster.pod("db-0").await?.context("db-0 is gone by itself")?;
        Ok(pod.metadata.deletion_timestamp.is_some())
    })
    .await?;
    let before = writes(&cluster)?;
    told.pass(&cluster, NOBODY_HELPS_FOR).await?;
    let since = writes(&cluster)? - before;
    ensure!(since > 0, "the lost machine was to write on");
    println!("         so it stays, for ever: db-0 is down for its users, and its machine wrote");
    println!("         {since} times more to the volume. Nobody may start it elsewhere.");

    step(3, "node-remedy is installed and started");
    remedy::install(&cluster, &Installation::default()).await?;
    let mut controller = Controller::start(&cluster, "demo")?;
    controller.until_ready().await?;
    let client = cluster.client();
    told.until(&cluster, "the incident is Final", WITHIN, async || {
        let incident = remedy::incident(&client, &node).await?;
        Ok(incident.is_some_and(|incident| is_in_phase(&incident, "Final")))
    })
    .await?;
    cluster.database_runs(Some(&node)).await?;
    told.news(&cluster).await?;

    step(4, "what node-remedy says of it: node-remedy explain NODE");
    let explained = node_remedy_tests::controller::ask(&cluster, &["explain", &node]).await?;
    for line in explained.lines() {
        println!("         {line}");
    }

    step(5, "what an observer outside says of it");
    let verdict = cluster.observer(User::NodeRemedy).judge()?;
    judge(&cluster, &node, &told, &verdict)?;
    if keeps {
        keep(&cluster).await?;
    }
    controller.terminate().await
}

fn step(number: usize, title: &str) {
    println!("\nstep {number} of {STEPS}: {title}");
}

/// How often the database's volume was written.
fn writes(cluster: &Cluster) -> Result<usize> {
    Ok(cluster.storage.writes("db-0-data")?.len())
}

/// Facts only; and an error where they are not what the demo promised.
fn judge(cluster: &Cluster, node: &str, told: &Narrator, verdict: &Verdict) -> Result<()> {
    let bmc = cluster.bmc(node)?;
    let (offs, ons) = (bmc.offs()?, bmc.ons()?);
    let released: Vec<_> = verdict.releases.iter().map(|release| release.what.as_str()).collect();
    for violation in &verdict.violations {
        println!("         ✗ {violation}");
    }
    let back = told.proof_to_ready(&bmc.log()?).context("db-0 is not back after a proof")?;
    ensure!(verdict.violations.is_empty(), "the observer found what must never happen");
    ensure!((offs, ons) == (1, 1), "BMC off {offs}, on {ons}");
    println!(
        "         ✓ db-0 back {:.1} s after proof · no volume ever had two writers · BMC off {offs}, \
         on {ons}",
        back.as_secs_f64()
    );
    println!("           released: {}", released.join(", "));
    println!("\n  logs, audit log and BMC logs: {}", cluster.control_plane().folder().display());
    Ok(())
}

/// Leaves the cluster to a person until Ctrl-C.
async fn keep(cluster: &Cluster) -> Result<()> {
    let kubeconfig = cluster.control_plane().kubeconfig(User::Admin)?;
    let kubectl = Kubernetes::V1_37.binary();
    println!("\nthe cluster stays until Ctrl-C. In another terminal:");
    println!("  export KUBECONFIG={}", kubeconfig.display());
    println!("  {} kubectl get nodefences,nodes,pods", kubectl.display());
    println!("  {} status", Controller::binary().display());
    tokio::signal::ctrl_c().await.context("failed to wait for Ctrl-C")
}
