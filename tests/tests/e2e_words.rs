//! What people and other controllers say of a node, on a real control plane: nothing of it is cut
//! while the word stands, and what is off comes back whatever is said.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Event, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams,
};
use node_remedy_tests::remedy::{Installation, status};
use node_remedy_tests::time::until;
use node_remedy_tests::{Controller, controller, remedy};
use serde_json::{Value, json};

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_between_off_and_on_leaves_no_machine_off_and_lets_no_other_be_cut() -> Result<()> {
    let mut scenario = Scenario::begin("e2e-paused", &Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.incident("proven off", |incident| status(incident, "/proof").is_object()).await?;
    let reason = "new switches";
    controller::ask(&scenario.cluster, &["pause", "--reason", reason, "--for", "2h"]).await?;
    scenario.ends_well().await?;
    let told = controller::ask(&scenario.cluster, &["history", "--pods"]).await?;
    assert!(told.contains("default/db-0") && told.contains(&scenario.node), "{told}");
    let told = controller::ask(&scenario.cluster, &["status"]).await?;
    assert!(told.contains("every node by admin") && told.contains(reason), "{told}");

    scenario.again().await?;
    scenario.lose_node()?;
    until_refused(&scenario, "Paused").await?;
    let told = controller::ask(&scenario.cluster, &["explain", &scenario.node]).await?;
    assert!(told.contains("paused by admin") && told.contains(", until 20"), "{told}");
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0));
    controller::ask(&scenario.cluster, &["resume", "--all"]).await?;
    scenario.ends_well().await?;
    controller.terminate().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_excluded_removed_cordoned_or_in_maintenance_is_left_alone() -> Result<()> {
    let scenario = Scenario::begin("e2e-left-alone", &Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    let maintenances = maintenances(&scenario).await?;
    // The word that the operator of medik8s writes.
    let fans: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "nodemaintenance.medik8s.io/v1beta1",
        "kind": "NodeMaintenance",
        "metadata": {"name": "fans"},
        "spec": {"nodeName": scenario.node, "reason": "new fans"},
    }))?;
    maintenances.create(&PostParams::default(), &fans).await?;
    scenario.lose_node()?;
    until_refused(&scenario, "Maintenance").await?;

    let nodes = Api::<Node>::all(scenario.cluster.client());
    let edit = async |merge: Value| {
        nodes.patch(&scenario.node, &PatchParams::default(), &Patch::Merge(merge)).await
    };
    edit(json!({"spec": {"unschedulable": true}})).await?;
    maintenances.delete("fans", &DeleteParams::default()).await?;
    until_refused(&scenario, "Cordoned").await?;

    let exclude = "remediation.medik8s.io/exclude-from-remediation";
    scenario.label(&scenario.node, exclude, "true").await?;
    edit(json!({"spec": {"unschedulable": null}})).await?;
    until_refused(&scenario, "Excluded").await?;

    let taint = json!({"op": "add", "path": "/spec/taints/-", "value": {
        "key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}});
    let patch: json_patch::Patch = serde_json::from_value(json!([taint]))?;
    let patch = Patch::Json::<Node>(patch);
    nodes.patch(&scenario.node, &PatchParams::default(), &patch).await?;
    scenario.label(&scenario.node, exclude, "false").await?;
    until_refused(&scenario, "BeingRemoved").await?;
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "left alone all the time");

    // The autoscaler thinks better of it.
    let node = nodes.get(&scenario.node).await?;
    let mut taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    taints.retain(|taint| taint.key != "ToBeDeletedByClusterAutoscaler");
    edit(json!({"spec": {"taints": taints}})).await?;
    scenario.ends_well().await?;
    controller.terminate().await
}

/// Waits until the lost node is not acted on because of this guard.
pub(crate) async fn until_refused(scenario: &Scenario, guard: &str) -> Result<()> {
    let budgets = remedy::custom(&scenario.cluster.client(), "RemedyBudget");
    until(&format!("refused by {guard}"), INCIDENT_WITHIN, || async {
        let Some(budget) = budgets.get_opt("default").await? else { return Ok(None) };
        let refusals = status(&budget, "/refusals").as_array().cloned().unwrap_or_default();
        let is_it = |one: &Value| one["node"] == scenario.node.as_str() && one["guard"] == guard;
        let is_refused = refusals.iter().any(is_it);
        Ok((is_refused || is_held(scenario, guard).await?).then_some(()))
    })
    .await
}

/// A word that comes while the one before is taken back may find an incident that waits already: it is held then.
async fn is_held(scenario: &Scenario, guard: &str) -> Result<bool> {
    let says = match guard {
        "Maintenance" => "in maintenance",
        "Cordoned" => "cordoned by somebody else",
        "Excluded" => "exclude-from-remediation",
        "BeingRemoved" => "ToBeDeletedByClusterAutoscaler",
        _ => return Ok(false),
    };
    let events = Api::<Event>::all(scenario.cluster.client()).list(&ListParams::default()).await?;
    let is_so = |event: &Event| {
        event.reason.as_deref() == Some("Held")
            && event.involved_object.name.as_deref() == Some(&scenario.node)
            && event.message.as_deref().is_some_and(|said| said.contains(says))
    };
    Ok(events.iter().any(is_so))
}

/// Serves the kind of the Node Maintenance Operator, which is not installed.
async fn maintenances(scenario: &Scenario) -> Result<Api<DynamicObject>> {
    let client = scenario.cluster.client();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodemaintenances.nodemaintenance.medik8s.io"},
        "spec": {
            "group": "nodemaintenance.medik8s.io",
            "scope": "Cluster",
            "names": {"kind": "NodeMaintenance", "plural": "nodemaintenances"},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let crd: CustomResourceDefinition = serde_json::from_value(crd)?;
    Api::all(client.clone()).create(&PostParams::default(), &crd).await?;
    let kind = GroupVersionKind::gvk("nodemaintenance.medik8s.io", "v1beta1", "NodeMaintenance");
    let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&kind));
    until("NodeMaintenances are served", INCIDENT_WITHIN, || async {
        Ok(api.list(&kube::api::ListParams::default()).await.ok().map(|_| ()))
    })
    .await
    .context("the kind is not served")?;
    Ok(api)
}
