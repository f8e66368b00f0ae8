//! A PDU that hangs is told of before anybody needs it, on a real control plane: its nodes' paths are
//! INACTIVE. A node that is lost meanwhile waits for it, and is fenced when it answers again.

use anyhow::{Context, Result};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DynamicObject, ListParams};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::ipmi::PowerFile;
use node_remedy_tests::remedy::{Installation, install_secret, is_in_phase, status};
use node_remedy_tests::snmp::{Agent, Model, WRITER, Wired};
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Bmc, Controller, controller, remedy};
use serde_json::{Value, json};

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

/// Which outlet a node hangs on.
pub(crate) const OUTLET: &str = "outlet";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)] // promise: G16
async fn a_pdu_that_hangs_is_inactive_before_a_node_is_lost() -> Result<()> {
    let mut scenario = Scenario::prepare("e2e-paths", Settings::QUICK).await?;
    let pdu = installed(&mut scenario).await?;
    let mut controller = Controller::start_saying(&scenario.cluster, "one", &["--probe-every=5s"])?;
    controller.until_ready().await?;
    ready(&scenario, "True").await?;
    metric(&scenario, &controller, 1).await?;

    pdu.hang()?;
    let configuration = ready(&scenario, "False").await?;
    let devices = status(&configuration, "/devices").as_array().cloned().unwrap_or_default();
    assert_eq!(devices.len(), scenario.cluster.bmcs.len(), "one line a node: {devices:#?}");
    for device in &devices {
        let is = (&device["state"], &device["device"]);
        assert_eq!(is, (&json!("INACTIVE"), &json!(format!("apc-pdu/{}", pdu.address()))));
        assert!(device["detail"].as_str().is_some_and(|why| !why.is_empty()), "{device}");
    }
    metric(&scenario, &controller, 0).await?;
    told(&scenario, "FencePathInactive").await?;
    let said = controller::status(&scenario.cluster).await?;
    assert!(said.contains("3 of 3 INACTIVE"), "{said}");
    let said = controller::ask(&scenario.cluster, &["explain", &scenario.node]).await?;
    assert!(said.contains(&format!("{} could not be fenced now", scenario.node)), "{said}");

    scenario.lose_node()?;
    scenario.incident("waiting", |incident| is_in_phase(incident, "AwaitingDevice")).await?;
    assert_eq!(scenario.cluster.observer(User::NodeRemedy).judge()?.releases, []);
    pdu.go_on()?;
    scenario.ends_well().await?;
    ready(&scenario, "True").await?;
    metric(&scenario, &controller, 1).await?;
    told(&scenario, "FencePathActive").await?;
    controller.terminate().await
}

/// Every machine hangs on an outlet of one PDU, its only feed.
pub(crate) async fn installed(scenario: &mut Scenario) -> Result<Agent> {
    let folder = scenario.cluster.control_plane().folder().join("pdu");
    let pdu = Agent::start(&folder, Model::ApcRpdu2).await?;
    let files: Vec<_> = scenario.cluster.bmcs.values().map(Bmc::power_file).collect();
    let feeds: Vec<_> = (1..).take(files.len()).map(|plug| [(&pdu, plug)]).collect();
    let wired = (1..).zip(&files).zip(&feeds);
    let wired: Vec<_> = wired
        .map(|((plug, file), feeds)| Wired { plug, chassis: PowerFile::path(file), feeds })
        .collect();
    pdu.wire(&wired)?;
    let nodes: Vec<String> = scenario.cluster.bmcs.keys().cloned().collect();
    for (plug, node) in (1_u32..).zip(&nodes) {
        scenario.label(node, OUTLET, &plug.to_string()).await?;
    }
    install_secret(&scenario.cluster, "community", &json!({"password": WRITER})).await?;
    let fence = json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "trustedNodeFields": ["${node.labels['outlet']}"],
        "templates": [{
            "name": "pdu", "plugin": "apc-pdu",
            "parameters": {"address": pdu.address(), "version": "2c"},
            "credentials": [{"name": "community", "secret": "community", "identityKey": ""}],
        }],
        "methods": [{
            "name": "outlet", "template": "pdu", "plug": "${node.labels['outlet']}",
            "action": "reboot", "soleFeed": true, "trustWiring": true,
        }],
        "powerManagement": [{"name": "power", "methods": ["outlet"]}],
        "grants": [{
            "plugin": "apc-pdu", "cidrs": ["127.0.0.1/32"], "ports": [pdu.port()],
            "reveal": ["community"],
        }],
    });
    scenario.install(&Installation { fence: Some(fence), ..Installation::default() }).await?;
    Ok(pdu)
}

/// Waits until the only FenceConfiguration says so of its condition FenceReady.
async fn ready(scenario: &Scenario, is: &str) -> Result<DynamicObject> {
    let configurations = remedy::custom(&scenario.cluster.client(), "FenceConfiguration");
    until(&format!("FenceReady is {is}"), INCIDENT_WITHIN, || async {
        let configuration = configurations.list(&ListParams::default()).await?.items.pop();
        let configuration = configuration.context("no FenceConfiguration")?;
        let conditions = status(&configuration, "/conditions").as_array().cloned();
        let said = |one: &Value| {
            one.get("type") == Some(&json!("FenceReady")) && one.get("status") == Some(&json!(is))
        };
        let is_so = conditions.unwrap_or_default().iter().any(said);
        Ok(is_so.then_some(configuration))
    })
    .await
}

/// Waits until the metric of every node is this.
async fn metric(scenario: &Scenario, controller: &Controller, is: u8) -> Result<()> {
    until(&format!("every fence_ready is {is}"), INCIDENT_WITHIN, || async {
        let metrics = controller.metrics().await?;
        let line = |node: &String| format!("node_remedy_fence_ready{{node=\"{node}\"}} {is}");
        let are_so = scenario.cluster.bmcs.keys().all(|node| metrics.contains(&line(node)));
        Ok(are_so.then_some(()))
    })
    .await
}

/// Waits until an Event of this reason about the node is there.
async fn told(scenario: &Scenario, reason: &str) -> Result<()> {
    let events = Api::<Event>::all(scenario.cluster.client());
    until(&format!("an Event {reason}"), INCIDENT_WITHIN, || async {
        let all = events.list(&ListParams::default()).await?.items;
        let is_it = |event: &&Event| {
            let about = event.regarding.as_ref().and_then(|about| about.name.as_deref());
            event.reason.as_deref() == Some(reason) && about == Some(scenario.node.as_str())
        };
        Ok(all.iter().find(is_it).map(|_| ()))
    })
    .await
}
