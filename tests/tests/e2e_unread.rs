//! Another team's policy was let in by an older definition and cannot be read: it hides no other object, and
//! keeps nobody from leading.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use node_remedy_tests::ipmi::{PowerChange, PowerEvent};
use node_remedy_tests::remedy::{self, Installation};
use node_remedy_tests::time::until;
use node_remedy_tests::{Controller, controller};
use serde_json::{Value, json};

use crate::e2e_scenario::Scenario;

/// A definition is served anew after a moment, and an edit is read at once.
const TOLD_WITHIN: Duration = Duration::from_mins(1);
/// The policy that cannot be read.
const THEIRS: &str = "another-team";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_cannot_be_read_hides_no_other_and_keeps_nobody_from_leading() -> Result<()> {
    let scenario = Scenario::begin("e2e-unread", &Installation::default()).await?;
    let mut one = Controller::start(&scenario.cluster, "one")?;
    let mut two = Controller::start(&scenario.cluster, "two")?;
    one.until_ready().await?;
    two.until_ready().await?;
    create_theirs(&scenario).await?;
    until_told(&scenario).await?;

    // What comes after it in the same watch is heard.
    let shadow = Installation { mode: "shadow", ..Installation::default() };
    remedy::configure(&scenario.cluster, &shadow).await?;
    scenario.lose_node()?;
    until_in_shadow(&scenario).await?;

    // And by processes that list it.
    one.kill9()?;
    two.kill9()?;
    let mut one = Controller::start(&scenario.cluster, "one")?;
    let mut two = Controller::start(&scenario.cluster, "two")?;
    one.until_ready().await?;
    two.until_ready().await?;
    until_in_shadow(&scenario).await?;
    for (name, bmc) in &scenario.cluster.bmcs {
        let log = bmc.log()?;
        let is_read = |event: &PowerEvent| event.what == PowerChange::Read;
        assert!(log.iter().all(is_read), "{name}: nobody switched it: {log:#?}");
    }
    let status = controller::status(&scenario.cluster).await?;
    assert!(status.contains(&format!("RemedyConfiguration {THEIRS} cannot be read")), "{status}");

    // One of them leads.
    remedy::configure(&scenario.cluster, &Installation::default()).await?;
    scenario.ends_well().await?;
    one.terminate().await?;
    two.terminate().await
}

/// As the definition was before lengths of time had one form.
async fn create_theirs(scenario: &Scenario) -> Result<()> {
    let client = scenario.cluster.client();
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    let crd = crds.get("remedyconfigurations.node-remedy.io").await?;
    let mut schema = serde_json::to_value(&crd.spec.versions)?;
    loosen(&mut schema);
    let patch = Patch::Merge(json!({"spec": {"versions": schema}}));
    let name = crd.metadata.name.as_deref().context("a definition without a name")?;
    crds.patch(name, &PatchParams::default(), &patch).await?;
    let theirs: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "node-remedy.io/v1alpha1", "kind": "RemedyConfiguration",
        "metadata": {"name": THEIRS},
        "spec": {
            "mode": "enforce", "nodeSelector": "team=other",
            "thresholdConfigs": [{
                "nodeConditionType": "Ready", "nodeConditionStatus": false,
                "nodeConditionPeriod": "30m1h", "remedy1": [{"name": "fence"}],
            }],
        },
    }))?;
    let policies = remedy::custom(&client, "RemedyConfiguration");
    until("the older definition is served", TOLD_WITHIN, || async {
        Ok(policies.create(&PostParams::default(), &theirs).await.ok().map(|_| ()))
    })
    .await
}

/// Takes the patterns away.
fn loosen(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("pattern");
            fields.values_mut().for_each(loosen);
        }
        Value::Array(items) => items.iter_mut().for_each(loosen),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Its own condition says what is wrong with it.
async fn until_told(scenario: &Scenario) -> Result<()> {
    let policies = remedy::custom(&scenario.cluster.client(), "RemedyConfiguration");
    until("their policy says that it is not in force", TOLD_WITHIN, || async {
        let theirs = policies.get(THEIRS).await?;
        let told = remedy::status(&theirs, "/conditions/0/message").as_str().unwrap_or_default();
        Ok(told.contains("30m1h").then_some(()))
    })
    .await
}

async fn until_in_shadow(scenario: &Scenario) -> Result<()> {
    let would = "shadow mode: would run remedy fence now";
    until("explain says what would be done", TOLD_WITHIN, || async {
        let said = controller::ask(&scenario.cluster, &["explain", &scenario.node]).await?;
        Ok(said.contains(would).then_some(()))
    })
    .await
}
