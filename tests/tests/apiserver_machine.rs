//! The simulated machine is no kinder than a real one, and nothing that is started outlives a test.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::ResourceExt as _;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::process::{Process, Program, fresh_folder};
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Cluster, Pace};

const VOLUME: &str = "db-0-data";
const WITHIN: Duration = Duration::from_mins(1);

/// Power goes and returns before Kubernetes has noticed: nobody released anything, so the booting
/// node starts the pod that it ran before, in a new boot, and takes its time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cycle_alone_brings_the_old_pod_back_in_a_new_boot() -> Result<()> {
    let cluster = Cluster::start("power-cycle", Settings { nodes: 1, ..Settings::QUICK }).await?;
    cluster.create_database(3_600).await?;
    let node = cluster.database_runs(None).await?;
    let uid = cluster.pod("db-0").await?.and_then(|pod| pod.uid()).context("no UID")?;
    let (machine, bmc) = (cluster.machine(&node)?, cluster.bmc(&node)?);
    let old_boot_id = machine.boot_id().context("it runs")?;

    bmc.press_button(Power::Off)?;
    until("the machine has stopped", WITHIN, || async {
        Ok(machine.boot_id().is_none().then_some(()))
    })
    .await?;
    let writes_when_off = cluster.storage.writes(VOLUME)?.len();
    let off_ms = cluster.clock.now_ms();
    bmc.press_button(Power::On)?;
    let writes = until("the old pod writes again", WITHIN, || async {
        let writes = cluster.storage.writes(VOLUME)?;
        Ok((writes.len() > writes_when_off).then_some(writes))
    })
    .await?;

    let again = writes.last().context("no writes")?;
    assert_eq!(again.uid, uid, "the same pod");
    assert_ne!(again.boot_id, old_boot_id, "in another boot");
    let boot_ms = u128::from(again.at_ms.saturating_sub(off_ms));
    assert!(boot_ms >= Pace::QUICK.boot.as_millis(), "it booted in {boot_ms} ms");
    assert_eq!(cluster.observer(User::NodeRemedy).judge()?.violations, []);
    Ok(())
}

/// A kubelet that was away takes up its pods where they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubelet_that_returns_finds_its_pod_running_in_the_same_boot() -> Result<()> {
    let cluster = Cluster::start("kubelet-back", Settings { nodes: 1, ..Settings::QUICK }).await?;
    cluster.create_database(3_600).await?;
    let node = cluster.database_runs(None).await?;
    let machine = cluster.machine(&node)?;
    let boot_id = machine.boot_id();
    machine.stop_kubelet();
    cluster.until_ready(&node, "Unknown").await?;
    machine.start_kubelet();
    cluster.until_ready(&node, "True").await?;
    cluster.database_runs(None).await?;
    assert_eq!(machine.boot_id(), boot_id);
    let writes = cluster.storage.writes(VOLUME)?;
    assert!(writes.iter().all(|write| Some(&write.boot_id) == boot_id.as_ref()));
    Ok(())
}

#[tokio::test]
async fn a_dropped_process_is_gone() -> Result<()> {
    let logs = fresh_folder("dropped-process")?;
    let arguments = ["3600".to_owned()];
    let program =
        Program { name: "sleep", path: Path::new("sleep"), arguments: &arguments, logs: &logs };
    let process = Process::start(&program)?;
    let pid = process.pid().to_string();
    let lives = || Command::new("kill").args(["-0", &pid]).status().map(|status| status.success());
    assert!(lives()?);
    drop(process);
    assert!(!lives()?);
    Ok(())
}
