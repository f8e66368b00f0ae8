//! A remedy that is a plugin, on a real control plane: what it decides is recorded before it is followed,
//! and followed from the record by whoever leads then.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use node_remedy_tests::process::repository;
use node_remedy_tests::remedy::{Installation, apply_all, custom, describe, is_in_phase, status};
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Controller, remedy};
use serde_json::{Value, json};

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};
use crate::e2e_symptoms::deadlock;

/// The label by which the example knows which method to ask.
const METHOD: &str = "polite.example.com/method";
/// Compiled in a child by a debug build, on a busy machine.
const LOADED_WITHIN: Duration = Duration::from_mins(1);

/// The plugin decides, and nothing stands behind it. What cuts waits for a while, so that a controller can
/// be killed between a decision and its act.
fn politely() -> Installation {
    Installation {
        threshold: json!({
            "nodeConditionType": "KernelDeadlock",
            "nodeConditionStatus": "True",
            "nodeConditionPeriod": "1s",
            "remedy1": [{"name": "politely"}, {"period": "1s"}],
        }),
        remedies: json!([{"name": "politely", "plugin": "polite"}]),
        policies: json!({"isolateAfter": "6s"}),
        ..Installation::default()
    }
}

fn command(arguments: &[&str]) -> Result<String> {
    let output = Command::new(Controller::binary()).args(arguments).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The example in a ConfigMap, as its README says, and loaded.
async fn load(scenario: &Scenario) -> Result<()> {
    let file = repository().join("target/outside/polite.wasm").display().to_string();
    let client = scenario.cluster.client();
    apply_all(&client, &command(&["plugin", "configmap", "--fence-plugin", &file])?).await?;
    let plugins = custom(&client, "FencePlugin");
    until("polite is loaded", LOADED_WITHIN, || async {
        let object = plugins.get("polite").await?;
        Ok((*remedy::status(&object, "/kind") == "remedy").then_some(()))
    })
    .await
}

/// What was decided, in order.
fn decided(incident: &DynamicObject) -> Vec<Value> {
    let all = status(incident, "/decisions").as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|one| !one["choice"].is_null()).collect()
}

fn choices(incident: &DynamicObject) -> Vec<Value> {
    decided(incident).iter().map(|one| one["choice"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_followed_from_its_record_by_another_process() -> Result<()> {
    let scenario = Scenario::begin("e2e-remedy-plugin", &politely()).await?;
    scenario.label(&scenario.node, METHOD, "power-cycle").await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    load(&scenario).await?;

    deadlock(&scenario, "True").await?;
    let is_decided = |incident: &DynamicObject| decided(incident).len() == 2;
    let incident = scenario.incident("decided on", is_decided).await?;
    controller.kill9()?;
    let drain = json!({"kind": "cluster", "name": "drain"});
    let method = json!({"kind": "method", "name": "power-cycle"});
    assert_eq!(choices(&incident), [drain.clone(), method.clone()], "{}", describe(&incident));
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "it was killed before the act");

    // Whoever were asked now would decide otherwise.
    scenario.label(&scenario.node, METHOD, "no-such-method").await?;
    let controller = Controller::start(&scenario.cluster, "two")?;
    until("the machine was off and is on", INCIDENT_WITHIN, || async {
        Ok((scenario.asked(&scenario.node)? == (1, 1)).then_some(()))
    })
    .await?;
    until("its kubelet says that it has booted", INCIDENT_WITHIN, || async {
        let info =
            scenario.cluster.node(&scenario.node).await?.status.and_then(|one| one.node_info);
        let boot_id = info.map(|info| info.boot_id);
        Ok((boot_id.is_some() && boot_id != scenario.old_boot_id).then_some(()))
    })
    .await?;
    scenario.cluster.until_ready(&scenario.node, "True").await?;
    deadlock(&scenario, "False").await?;

    let is_final = |incident: &DynamicObject| is_in_phase(incident, "Final");
    let after = scenario.incident("over", is_final).await?;
    assert_eq!(*status(&after, "/finalReason"), "Remedied", "{}", describe(&after));
    assert_eq!(choices(&after), [drain, method], "nobody was asked again");
    let at = |incident: &DynamicObject| decided(incident)[1]["chosenAt"].clone();
    assert_eq!(at(&after), at(&incident), "the decision is the one that was recorded");
    assert_eq!(scenario.asked(&scenario.node)?, (1, 1), "one off and one on");
    scenario.cluster.database_runs(Some(&scenario.node)).await.context("it was drained")?;
    let node = scenario.cluster.node(&scenario.node).await?;
    assert_ne!(node.spec.and_then(|spec| spec.unschedulable), Some(true), "uncordoned");
    let verdict = scenario.cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!((verdict.violations, verdict.refused), (Vec::new(), Vec::new()));
    controller.terminate().await
}
