//! A node that is ill and not lost: a problem detector's condition and Events, on a real control
//! plane. Its kubelet renews its Lease all the time.

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::api::{Api, Patch, PatchParams, PostParams};
use node_remedy_tests::remedy::Installation;
use node_remedy_tests::time::until;
use node_remedy_tests::{Controller, controller};
use serde_json::{Value, json};

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

/// The condition for its reason, and three Events in ten minutes: both, or nothing.
fn sick() -> Value {
    json!({
        "all": [
            {
                "nodeConditionType": "KernelDeadlock",
                "nodeConditionStatus": "True",
                "nodeConditionReason": ["DockerHung"],
            },
            {"nodeEvent": {
                "reason": ["KernelOops"], "type": "Warning", "source": ["kernel-monitor"],
                "count": 3, "window": "10m",
            }},
        ],
        "period": "1s",
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_ready_and_ill_is_remedied() -> Result<()> {
    let installation = Installation { threshold: sick(), ..Installation::default() };
    let scenario = Scenario::begin("e2e-symptoms", &installation).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;

    deadlock(&scenario, "True").await?;
    let oops = oops(&scenario).await?;
    count(&scenario, &oops, 3).await?;
    let incident = scenario.incident("opened", |_| true).await?;
    let trigger = incident.data.pointer("/spec/trigger").context("a trigger")?;
    let words = "KernelDeadlock=True (DockerHung) and 3 Warning Events KernelOops of \
                 kernel-monitor in 10m";
    assert_eq!(trigger["conditionType"], words);
    assert_eq!(trigger["symptom"], sick_as_written());
    until("explain says why", INCIDENT_WITHIN, || async {
        let said = controller::ask(&scenario.cluster, &["explain", &scenario.node]).await?;
        Ok(said.contains(&format!("{words} holds since")).then_some(()))
    })
    .await?;
    // The condition still says so and the Events are still there: they are of the boot before.
    scenario.ends_well().await?;
    controller.terminate().await
}

/// The sign alone, as a record keeps it.
fn sick_as_written() -> Value {
    let mut symptom = sick();
    if let Some(fields) = symptom.as_object_mut() {
        fields.remove("period");
    }
    symptom
}

/// A problem detector's condition, which no kubelet takes away.
pub(crate) async fn deadlock(scenario: &Scenario, status: &str) -> Result<()> {
    let now = Timestamp::now().to_string();
    let condition = json!({
        "type": "KernelDeadlock", "status": status, "reason": "DockerHung",
        "message": "task docker:20744 blocked for more than 120 seconds.",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    });
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    let nodes = Api::<Node>::all(scenario.cluster.client());
    nodes.patch_status(&scenario.node, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Its first Event.
async fn oops(scenario: &Scenario) -> Result<String> {
    let now = Timestamp::now().to_string();
    let name = format!("{}.oops", scenario.node);
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": scenario.node, "uid": scenario.node},
        "reason": "KernelOops", "type": "Warning",
        "message": "BUG: unable to handle kernel NULL pointer dereference",
        "source": {"component": "kernel-monitor", "host": scenario.node},
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    }))?;
    let events = Api::<Event>::namespaced(scenario.cluster.client(), "default");
    events.create(&PostParams::default(), &event).await?;
    Ok(name)
}

/// The same happened again.
async fn count(scenario: &Scenario, event: &str, count: u32) -> Result<()> {
    let again = json!({"count": count, "lastTimestamp": Timestamp::now().to_string()});
    let events = Api::<Event>::namespaced(scenario.cluster.client(), "default");
    events.patch(event, &PatchParams::default(), &Patch::Merge(again)).await?;
    Ok(())
}
