//! What the configuration says reaches the incidents that begin after it: shadow mode, edits, deletion
//! and mistakes.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DynamicObject, ListParams};
use node_remedy_tests::audit::AuditEvent;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::ipmi::{Kind, PowerChange, PowerEvent};
use node_remedy_tests::remedy::{FENCE, Installation, REMEDY, is_in_phase};
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Controller, audit, controller, remedy};
use serde_json::{Value, json};

use crate::e2e_scenario::Scenario;

/// An edit is read at once; a refusal's line is written anew every ten seconds.
const TOLD_WITHIN: Duration = Duration::from_mins(1);
/// What shadow mode must not change.
const UNTOUCHED: [&str; 4] = ["nodes", "pods", "volumeattachments", "nodefences"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shadow_mode_says_what_it_would_do_and_does_nothing() -> Result<()> {
    let shadow = Installation { mode: "shadow", ..Installation::default() };
    let scenario = Scenario::begin("e2e-shadow", &shadow).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    let would = "shadow mode: would run remedy fence now";
    until("explain says what would be done", TOLD_WITHIN, || async {
        let said = controller::ask(&scenario.cluster, &["explain", &scenario.node]).await?;
        Ok(said.contains(would).then_some(()))
    })
    .await?;
    let told = (scenario.node.clone(), would.to_owned());
    until("an Event on the node says so, too", TOLD_WITHIN, || async {
        Ok(events(&scenario).await?.contains(&told).then_some(()))
    })
    .await?;
    let first = last_refused(&scenario).await?;
    until("it has been looked at again", TOLD_WITHIN, || async {
        Ok((last_refused(&scenario).await? > first).then_some(()))
    })
    .await?;
    for (name, bmc) in &scenario.cluster.bmcs {
        // Probes read, in any mode.
        let log = bmc.log()?;
        let is_read = |event: &PowerEvent| event.what == PowerChange::Read;
        assert!(log.iter().all(is_read), "{name}: nobody switched it: {log:#?}");
    }
    let asked = audit::read(&scenario.cluster.control_plane().audit_log())?;
    let of_remedy = asked.iter().filter(|event| event.user.username == User::NodeRemedy.name());
    let writes = of_remedy.filter(|event| !matches!(&*event.verb, "get" | "list" | "watch"));
    let touched = writes.filter(|event| UNTOUCHED.contains(&&*event.object_ref.resource));
    assert_eq!(touched.map(AuditEvent::object).collect::<Vec<_>>(), [""; 0]);

    // Nothing else was in the way.
    remedy::configure(&scenario.cluster, &Installation::default()).await?;
    scenario.ends_well().await?;
    controller.terminate().await
}

/// When the node's refusal was last told.
async fn last_refused(scenario: &Scenario) -> Result<String> {
    let budget = remedy::custom(&scenario.cluster.client(), "RemedyBudget").get("default").await?;
    let refusals = remedy::status(&budget, "/refusals").as_array().cloned().unwrap_or_default();
    let line = refusals.iter().find(|line| line["node"] == scenario.node.as_str());
    let last = line.and_then(|line| line["last"].as_str());
    Ok(last.context("nothing is refused about the node")?.to_owned())
}

/// What node-remedy told of whom.
async fn events(scenario: &Scenario) -> Result<Vec<(String, String)>> {
    let events = Api::<Event>::all(scenario.cluster.client()).list(&ListParams::default()).await?;
    let ours = events
        .into_iter()
        .filter(|event| event.reporting_controller.as_deref() == Some("node-remedy.io/controller"));
    Ok(ours
        .map(|event| {
            let about = event.regarding.and_then(|regarding| regarding.name);
            (about.unwrap_or_default(), event.note.unwrap_or_default())
        })
        .collect())
}

/// Words that differ in the numbers of an incident and in what its fence method speaks.
fn words(cipher_suite: &'static str, retries: u32) -> Installation {
    let policies = json!({"retries": retries, "coolDown": "0s"});
    Installation { cipher_suite, policies, ..Installation::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incident_keeps_the_words_it_began_with() -> Result<()> {
    let settings = Settings { bmcs: Kind::Bmc17, ..Settings::QUICK };
    let mut scenario = Scenario::begin_with("e2e-snapshot", settings, &words("3", 7)).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;

    begin_incident(&mut scenario).await?;
    remedy::configure(&scenario.cluster, &words("17", 5)).await?;
    until_read(&scenario, "True").await?;
    end_incident(&mut scenario, "3", 7).await?;

    scenario.again().await?;
    begin_incident(&mut scenario).await?;
    remedy::unconfigure(&scenario.cluster).await?;
    end_incident(&mut scenario, "17", 5).await?;

    remedy::configure(&scenario.cluster, &words("3", 4)).await?;
    until_read(&scenario, "True").await?;
    let broken = Installation { node_selector: "a=b=c", ..words("3", 9) };
    remedy::configure(&scenario.cluster, &broken).await?;
    let sentence = until_read(&scenario, "False").await?;
    assert!(sentence.contains("nodeSelector"), "{sentence}");
    // The Event comes after the status.
    let told = (REMEDY.to_owned(), sentence);
    until("an Event says so, too", TOLD_WITHIN, || async {
        Ok(events(&scenario).await?.contains(&told).then_some(()))
    })
    .await?;
    scenario.again().await?;
    begin_incident(&mut scenario).await?;
    end_incident(&mut scenario, "3", 4).await?;
    controller.terminate().await
}

/// The node is lost, and its incident waits for a BMC that is dead.
async fn begin_incident(scenario: &mut Scenario) -> Result<()> {
    scenario.bmc()?.kill()?;
    scenario.lose_node()?;
    let waits = |incident: &DynamicObject| is_in_phase(incident, "AwaitingDevice");
    scenario.incident("waiting for its device", waits).await?;
    Ok(())
}

/// The BMC comes back, and the incident ends by these words.
async fn end_incident(scenario: &mut Scenario, cipher_suite: &str, retries: u32) -> Result<()> {
    let asked_before = scenario.bmc()?.cipher_suites()?.len();
    scenario.bmc()?.revive().await?;
    scenario.ends_well().await?;
    let ended = scenario.incident("Final", |incident| is_in_phase(incident, "Final")).await?;
    let spec = |pointer: &str| ended.data.pointer(&format!("/spec{pointer}")).cloned();
    assert_eq!(spec("/policy/retries"), Some(json!(retries)));
    assert_eq!(spec("/plan/methods/0/parameters/cipher-suite"), Some(json!(cipher_suite)));
    let spoken = scenario.bmc()?.cipher_suites()?.split_off(asked_before);
    let spoken: BTreeSet<_> = spoken.into_iter().map(|suite| suite.to_string()).collect();
    assert_eq!(spoken, BTreeSet::from([cipher_suite.to_owned()]));
    Ok(())
}

/// Waits until node-remedy says of both objects as they stand now whether they are in force: of
/// the fences that they are, of the remedies what `status` says. Answers the remedies' sentence.
async fn until_read(scenario: &Scenario, status: &str) -> Result<String> {
    accepted(scenario, "FenceConfiguration", FENCE, "True").await?;
    accepted(scenario, "RemedyConfiguration", REMEDY, status).await
}

async fn accepted(scenario: &Scenario, kind: &str, name: &str, status: &str) -> Result<String> {
    let api = remedy::custom(&scenario.cluster.client(), kind);
    until(&format!("{kind} {name} has Accepted {status}"), TOLD_WITHIN, || async {
        let object = api.get(name).await?;
        let conditions = remedy::status(&object, "/conditions").as_array().cloned();
        let mut conditions = conditions.into_iter().flatten();
        let is_told = |condition: &Value| {
            condition["type"] == "Accepted"
                && condition["status"] == status
                && condition["observedGeneration"].as_i64() == object.metadata.generation
        };
        let message = conditions.find(is_told).and_then(|told| told.get("message").cloned());
        Ok(message.and_then(|message| message.as_str().map(str::to_owned)))
    })
    .await
}
