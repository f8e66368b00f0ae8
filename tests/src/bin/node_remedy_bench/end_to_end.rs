//! From the last heartbeat of a node to the end of its incident, with kubelets that renew every
//! 10 s and Kubernetes' own grace period.
//!
//! Each moment is read where it happened: the Lease, the BMC's log, the API server. All clocks are
//! this machine's.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;
use kube::api::Api;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::control_plane::NodeMonitoring;
use node_remedy_tests::ipmi::{Kind, Power, PowerChange};
use node_remedy_tests::remedy::{Installation, is_in_phase};
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Cluster, Controller, Pace, Timings, remedy};
use serde_json::json;

use crate::{RUNS, WITHIN, attached_elsewhere};

/// As most pods have it; node-remedy does not wait for it.
const TOLERATION_S: u32 = 300;
/// Two renewals and a bit: what the budget is set for.
const LEASE_AGE: &str = "20s";

const REAL: Settings = Settings {
    nodes: 3,
    pace: Pace::REAL,
    monitoring: NodeMonitoring::DEFAULT,
    bmcs: Kind::IpmiSim,
};

pub(crate) async fn measure() -> Result<()> {
    let mut timings = Timings::default();
    for run in 1..=RUNS {
        measure_once(&mut timings).await?;
        println!("run {run} of {RUNS}");
    }
    print!("{timings}");
    Ok(())
}

async fn measure_once(timings: &mut Timings) -> Result<()> {
    let cluster = Cluster::start("bench-end-to-end", REAL).await?;
    let threshold = json!({"nodeLeaseAge": LEASE_AGE});
    remedy::install(&cluster, &Installation { threshold, ..Installation::default() }).await?;
    cluster.create_database(TOLERATION_S).await?;
    let node = cluster.database_runs(None).await?;
    let old = cluster.pod("db-0").await?.and_then(|pod| pod.uid());
    let mut controller = Controller::start(&cluster, "one")?;
    controller.until_ready().await?;

    cluster.machine(&node)?.stop_kubelet();
    let heartbeat = last_renewal(&cluster, &node).await?;
    let since = |moment: Timestamp| -> Result<u64> {
        Ok(u64::try_from(moment.duration_since(heartbeat).as_millis())?)
    };
    until("the old pod is gone", WITHIN, || async {
        Ok(cluster.pod("db-0").await?.is_none_or(|pod| pod.uid() != old).then_some(()))
    })
    .await?;
    let gone = Timestamp::now();
    attached_elsewhere(&cluster, &node).await?;
    let attached = Timestamp::now();
    cluster.database_runs(Some(&node)).await?;
    let ready = Timestamp::now();
    let client = cluster.client();
    until("the incident is Final", WITHIN, || async {
        let incident = remedy::incident(&client, &node).await?;
        Ok(incident.filter(|incident| is_in_phase(incident, "Final")).map(|_| ()))
    })
    .await?;
    let ended = Timestamp::now();

    let log = cluster.bmc(&node)?.log()?;
    let first = |what: PowerChange, from: Timestamp| {
        let mut offs = log.iter().filter(|event| event.power == Power::Off && event.at >= from);
        let found = offs.find(|event| event.what == what);
        found.map(|event| event.at).with_context(|| format!("the BMC logged no {what:?} off"))
    };
    let asked = first(PowerChange::Asked, heartbeat)?;
    let became = first(PowerChange::Became, asked)?;
    let proven = first(PowerChange::Read, became)?;
    for (phase, moment) in [
        ("last heartbeat → off asked", asked),
        ("last heartbeat → off", became),
        ("last heartbeat → proof", proven),
        ("last heartbeat → old pod gone", gone),
        ("last heartbeat → volume attached elsewhere", attached),
        ("last heartbeat → new pod Ready", ready),
        ("last heartbeat → Final", ended),
    ] {
        timings.add(phase, since(moment)?);
    }
    timings.add("proof → old pod gone", since(gone)?.saturating_sub(since(proven)?));
    timings.add("proof → new pod Ready", since(ready)?.saturating_sub(since(proven)?));
    let violations = cluster.observer(User::NodeRemedy).judge()?.violations;
    ensure!(violations.is_empty(), "a measurement of a wrong run: {violations:?}");
    controller.terminate().await
}

async fn last_renewal(cluster: &Cluster, node: &str) -> Result<Timestamp> {
    let leases = Api::<Lease>::namespaced(cluster.client(), "kube-node-lease");
    let lease = leases.get(node).await?;
    let renewed = lease.spec.and_then(|spec| spec.renew_time).context("a Lease never renewed")?;
    Ok(renewed.0)
}
