//! A node that is ill and alive is drained on a real control plane: the real eviction, and the real
//! disruption controller, have the say.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use node_remedy_tests::Controller;
use node_remedy_tests::remedy::{Installation, is_in_phase, status};
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use serde_json::{Value, json};

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};
use crate::e2e_symptoms::deadlock;

/// A drain as soon as the detector says so, and nothing after it.
fn drains() -> Installation {
    Installation {
        threshold: json!({
            "nodeConditionType": "KernelDeadlock",
            "nodeConditionStatus": "True",
            "nodeConditionPeriod": "1s",
            "remedy1": [{"name": "drain"}],
        }),
        remedies: json!([{"name": "drain", "cluster": "drain"}]),
        ..Installation::default()
    }
}

/// The database is the last of its kind: none may go.
async fn budget(scenario: &Scenario, at_least: u32) -> Result<()> {
    let budgets = Api::<PodDisruptionBudget>::namespaced(scenario.cluster.client(), "default");
    let budget = serde_json::from_value(json!({
        "metadata": {"name": "db"},
        "spec": {"minAvailable": at_least, "selector": {"matchLabels": {"app": "db"}}},
    }))?;
    budgets.create(&PostParams::default(), &budget).await?;
    until("the budget is worked out", INCIDENT_WITHIN, || async {
        let status = budgets.get("db").await?.status;
        Ok(status.and_then(|status| status.observed_generation))
    })
    .await?;
    Ok(())
}

async fn database(scenario: &Scenario) -> Result<Pod> {
    let pods = Api::<Pod>::namespaced(scenario.cluster.client(), "default");
    Ok(pods.get("db-0").await?)
}

/// The node is cordoned and nothing leaves it; as soon as the budget allows, the pod moves, gracefully.
/// The node is well when its detector says so, and takes pods again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)] // promise: P6
async fn a_budget_at_zero_holds_a_drain_until_it_allows_one() -> Result<()> {
    let scenario = Scenario::begin("e2e-drain", &drains()).await?;
    budget(&scenario, 1).await?;
    let before = database(&scenario).await?.metadata.uid;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    deadlock(&scenario, "True").await?;
    let is_draining = |incident: &_| is_in_phase(incident, "Remedying");
    scenario.incident("draining", is_draining).await?;
    told(&scenario, "Draining").await?;
    until("two evictions were held back", INCIDENT_WITHIN, || async {
        let held_back = scenario.cluster.observer(User::NodeRemedy).judge()?.held_back;
        Ok((held_back >= 2).then_some(()))
    })
    .await?;
    let held = database(&scenario).await?;
    assert_eq!(held.metadata.uid, before);
    assert_eq!(held.metadata.deletion_timestamp, None);
    let node = scenario.cluster.node(&scenario.node).await?;
    assert_eq!(node.spec.and_then(|spec| spec.unschedulable), Some(true));

    let budgets = Api::<PodDisruptionBudget>::namespaced(scenario.cluster.client(), "default");
    let allows = Patch::Merge(json!({"spec": {"minAvailable": 0}}));
    budgets.patch("db", &PatchParams::default(), &allows).await?;
    scenario.cluster.database_runs(Some(&scenario.node)).await?;
    deadlock(&scenario, "False").await?;
    let incident = scenario.incident("over", |incident| is_in_phase(incident, "Final")).await?;
    assert_eq!(*status(&incident, "/finalReason"), "Remedied");
    assert_eq!(*status(&incident, "/proof"), Value::Null);
    let node = scenario.cluster.node(&scenario.node).await?;
    assert_ne!(node.spec.and_then(|spec| spec.unschedulable), Some(true), "uncordoned");
    let verdict = scenario.cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!((verdict.violations, verdict.releases), (Vec::new(), Vec::new()));
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "its power is its own");
    controller.terminate().await
}

/// Waits for an Event of this reason about the node.
async fn told(scenario: &Scenario, reason: &str) -> Result<()> {
    let events = Api::<Event>::all(scenario.cluster.client());
    until(&format!("an Event {reason}"), INCIDENT_WITHIN, || async {
        let all = events.list(&ListParams::default()).await?.items;
        Ok(all.iter().any(|event| event.reason.as_deref() == Some(reason)).then_some(()))
    })
    .await
}
