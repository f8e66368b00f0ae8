//! A NodeFence that is deleted in the middle of its incident, on a real control plane: it stays until the incident
//! is over, and where somebody takes its finalizer off, nothing of it stays on the node.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use node_remedy_tests::Controller;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::remedy::{self, Installation, is_in_phase};
use node_remedy_tests::time::until;
use serde_json::json;

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario, is_being_switched_off};

const FINALIZER: &str = "node-remedy.io/incident";
const QUARANTINE: &str = "node-remedy.io/quarantine";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nodefence_that_is_deleted_stays_until_its_incident_is_over() -> Result<()> {
    let scenario = Scenario::begin("e2e-deleted", &Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    let incident = scenario.incident("being switched off", is_being_switched_off).await?;
    assert_eq!(incident.finalizers(), [FINALIZER]);
    let nodefences = remedy::custom(&scenario.cluster.client(), "NodeFence");
    nodefences.delete(&incident.name_any(), &DeleteParams::default()).await?;

    // It goes by itself, and not before its node is on again.
    until("the NodeFence is gone", INCIDENT_WITHIN, || async {
        let found = nodefences.get_opt(&incident.name_any()).await?;
        Ok(found.is_none().then_some(()))
    })
    .await?;
    scenario.cluster.database_runs(Some(&scenario.node)).await?;
    scenario.cluster.until_power(&scenario.node, Power::On).await?;
    assert_eq!(scenario.asked(&scenario.node)?, (1, 1), "one off and one on");
    nothing_of_ours_stands(&scenario).await?;
    controller.terminate().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_nodefence_leaves_that_was_taken_away_is_swept() -> Result<()> {
    let policies = json!({"powerAfter": "10m"});
    let installation = Installation { policies, ..Installation::default() };
    let scenario = Scenario::begin("e2e-swept", &installation).await?;
    let client = scenario.cluster.client();
    let stages = json!({"spec": {"isolation": [{"name": "away", "methods": ["quarantine"]}]}});
    let fences = remedy::custom(&client, "FenceConfiguration");
    for fence in fences.list(&ListParams::default()).await? {
        let stages = Patch::Merge(&stages);
        fences.patch(&fence.name_any(), &PatchParams::default(), &stages).await?;
    }
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    let is_waiting = |incident: &DynamicObject| is_in_phase(incident, "AwaitingPower");
    let incident = scenario.incident("waiting for its time", is_waiting).await?;
    until("the quarantine stands", INCIDENT_WITHIN, || async {
        Ok(taints(&scenario).await?.iter().any(|key| key == QUARANTINE).then_some(()))
    })
    .await?;
    // So that no other incident takes it over.
    remedy::configure_policy(&scenario.cluster, &Installation { mode: "shadow", ..installation })
        .await?;
    let nodefences = remedy::custom(&client, "NodeFence");
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    nodefences.patch(&incident.name_any(), &PatchParams::default(), &none).await?;
    nodefences.delete(&incident.name_any(), &DeleteParams::default()).await?;

    scenario.cluster.machine(&scenario.node)?.start_kubelet();
    nothing_of_ours_stands(&scenario).await?;
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "its time had not come");
    let events = Api::<Event>::namespaced(client, "default");
    until("it is told", INCIDENT_WITHIN, || async {
        let events = events.list(&ListParams::default()).await?;
        let is_it = |event: &Event| event.reason.as_deref() == Some("MarksSwept");
        Ok(events.items.iter().any(is_it).then_some(()))
    })
    .await?;
    controller.terminate().await
}

/// As a predecessor may have left it: a node with this taint that boots gets no pods of its own back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_out_of_service_taint_that_no_proof_stands_behind_is_lifted() -> Result<()> {
    let scenario = Scenario::begin("e2e-taint-left", &Installation::default()).await?;
    let left = json!({
        "metadata": {"annotations": {"node-remedy.io/out-of-service-by": "w1-1"}},
        "spec": {"taints": [{
            "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute",
        }]},
    });
    let nodes = Api::<Node>::all(scenario.cluster.client());
    nodes.patch(&scenario.node, &PatchParams::default(), &Patch::Merge(left)).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    nothing_of_ours_stands(&scenario).await?;
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "a node that is well is left alone");
    controller.terminate().await
}

async fn taints(scenario: &Scenario) -> Result<Vec<String>> {
    let node = scenario.cluster.node(&scenario.node).await?;
    let taints = node.spec.context("no spec")?.taints.unwrap_or_default();
    Ok(taints.into_iter().map(|taint| taint.key).collect())
}

/// The node is Ready, and no taint of ours stands on it.
async fn nothing_of_ours_stands(scenario: &Scenario) -> Result<()> {
    scenario.cluster.until_ready(&scenario.node, "True").await?;
    until("nothing of ours stands on the node", INCIDENT_WITHIN, || async {
        let is_ours = |key: &String| key.contains("node-remedy") || key.contains("out-of-service");
        Ok((!taints(scenario).await?.iter().any(is_ours)).then_some(()))
    })
    .await
}
