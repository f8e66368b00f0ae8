//! What the control plane itself needs once it may move a pod.
//!
//! The machine is off before the clock starts, and the release is one admin's two commands.

use anyhow::Result;
use kube::ResourceExt as _;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::time::{Clock, until};
use node_remedy_tests::user::User;
use node_remedy_tests::{Cluster, Timings, by_hand};

use crate::{RUNS, WITHIN, attached_elsewhere};

const TOLERATION_S: u32 = 1;

pub(crate) async fn measure() -> Result<()> {
    let mut timings = Timings::default();
    for run in 1..=RUNS {
        let clock = Clock::start();
        let cluster = Cluster::start("bench-floor", Settings::QUICK).await?;
        timings.add("control plane and three nodes up", clock.now_ms());
        release_once(&cluster, &mut timings).await?;
        println!("run {run} of {RUNS}");
    }
    print!("{timings}");
    Ok(())
}

async fn release_once(cluster: &Cluster, timings: &mut Timings) -> Result<()> {
    cluster.create_database(TOLERATION_S).await?;
    let node = cluster.database_runs(None).await?;
    cluster.bmc(&node)?.press_button(Power::Off)?;
    let lost = Clock::start();
    cluster.until_ready(&node, "Unknown").await?;
    timings.add("power lost → Ready Unknown (1 s renewals, 4 s grace)", lost.now_ms());
    let old = until("db-0 is Terminating", WITHIN, || async {
        let pod = cluster.pod("db-0").await?;
        Ok(pod.filter(|pod| pod.metadata.deletion_timestamp.is_some()))
    })
    .await?;

    let clock = Clock::start();
    by_hand::release(cluster, User::Admin, &node).await?;
    timings.add("release → both writes answered", clock.now_ms());
    until("the old pod is gone", WITHIN, || async {
        let is_gone = cluster.pod("db-0").await?.is_none_or(|pod| pod.uid() != old.uid());
        Ok(is_gone.then_some(()))
    })
    .await?;
    timings.add("release → old pod gone", clock.now_ms());
    attached_elsewhere(cluster, &node).await?;
    timings.add("release → volume attached elsewhere", clock.now_ms());
    cluster.database_runs(Some(&node)).await?;
    timings.add("release → new pod Ready", clock.now_ms());
    Ok(())
}
