//! A rack of ten of forty nodes loses its switch, on a real control plane: none of them is switched off,
//! each says why on one screen, and a node that is lost in another rack meanwhile is fenced. Then
//! a whole zone is out.

use anyhow::{Context, Result};
use kube::api::ListParams;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::remedy::{self, Installation};
use node_remedy_tests::time::until;
use node_remedy_tests::{Controller, controller};
use serde_json::json;

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

const NODES: u32 = 40;
/// Nodes in a rack; two racks are a zone.
const RACK: usize = 10;
/// Lines of a terminal.
const SCREEN: usize = 24;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rack_that_loses_its_switch_is_left_alone_and_a_node_elsewhere_is_fenced() -> Result<()> {
    let settings = Settings { nodes: NODES, ..Settings::QUICK };
    let mut scenario = Scenario::prepare("e2e-rack", settings).await?;
    let topologies = json!([{"key": "rack"}, {"key": "zone", "maxUnhealthyPercent": 60}]);
    let policies = json!({"topologies": topologies, "maxUnhealthyPercent": 40});
    scenario.install(&Installation { policies, ..Installation::default() }).await?;
    let racks = racks(&scenario).await?;
    let [own, behind_switch, in_zone, ..] = racks.as_slice() else { anyhow::bail!("no racks") };
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;

    for node in behind_switch {
        scenario.cluster.machine(node)?.stop_kubelet();
    }
    for node in behind_switch {
        refused(&scenario, node, "rack=rack-1: unhealthy 10 of 10 = 100 % ≥ 50 %").await?;
    }
    let metrics = controller.metrics().await?;
    let refusals = "node_remedy_refusals_total{reason=\"SilentAtOnce\"} ";
    let count = metrics.lines().find_map(|line| line.strip_prefix(refusals)?.parse::<usize>().ok());
    assert!(count.is_some_and(|count| count >= RACK), "{count:?} in {metrics}");
    let incidents = remedy::custom(&scenario.cluster.client(), "NodeFence");
    assert_eq!(incidents.list(&ListParams::default()).await?.items.len(), 0, "no incident");

    // One more is lost, in a rack that is well.
    assert!(own.contains(&scenario.node));
    scenario.lose_node()?;
    scenario.ends_well().await?;

    // The other rack of that zone, too: it is the whole zone's trouble.
    for node in in_zone {
        scenario.cluster.machine(node)?.stop_kubelet();
    }
    for node in in_zone {
        refused(&scenario, node, "unhealthy 20 of 40 = 50 % ≥ 40 %").await?;
        refused(&scenario, node, "zone=zone-1: unhealthy 20 of 20 = 100 % ≥ 60 %").await?;
    }
    for node in behind_switch.iter().chain(in_zone) {
        assert_eq!(scenario.asked(node)?, (0, 0), "{node} was left alone");
    }
    controller.terminate().await
}

/// Labels every node with its rack and zone. The database's node is in the first rack; the second and
/// the third make a zone.
async fn racks(scenario: &Scenario) -> Result<Vec<Vec<String>>> {
    let mut nodes: Vec<String> = scenario.cluster.machines.keys().cloned().collect();
    nodes.sort_by_key(|node| *node != scenario.node);
    let racks: Vec<Vec<String>> = nodes.chunks(RACK).map(<[String]>::to_vec).collect();
    for (number, rack) in racks.iter().enumerate() {
        for node in rack {
            scenario.label(node, "rack", &format!("rack-{number}")).await?;
            scenario.label(node, "zone", &format!("zone-{}", number.div_ceil(2) % 2)).await?;
        }
    }
    Ok(racks)
}

/// Waits until `explain` says that nothing is done about the node, and this is among the reasons.
async fn refused(scenario: &Scenario, node: &str, why: &str) -> Result<()> {
    let last = std::sync::Mutex::new(String::new());
    let found = until(&format!("{node} is refused: {why}"), INCIDENT_WITHIN, || async {
        let said = controller::ask(&scenario.cluster, &["explain", node]).await?;
        let is_found = said.contains("not acted on") && said.contains(why);
        let fits = said.lines().count() <= SCREEN;
        if let Ok(mut last) = last.lock() {
            *last = said;
        }
        Ok((is_found && fits).then_some(()))
    })
    .await;
    found.with_context(|| last.lock().map(|said| said.clone()).unwrap_or_default())
}
