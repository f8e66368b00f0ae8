//! What people say to an incident, on a real control plane: approve, abort in the middle, retry, confirm-off,
//! ack, and a pause for some nodes.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams};
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::observer::Violation;
use node_remedy_tests::remedy::{Installation, is_in_phase, status};
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Controller, controller};
use serde_json::{Value, json};

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario, is_being_switched_off};
use crate::e2e_words::until_refused;

/// Nothing is switched off before somebody approved it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incident_that_needs_approval_waits_for_it() -> Result<()> {
    let policies = json!({"approval": true});
    let installation = Installation { policies, ..Installation::default() };
    let scenario = Scenario::begin("e2e-approve", &installation).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    let waits = |incident: &_| is_in_phase(incident, "AwaitingPower");
    let incident = scenario.incident("waiting for approval", waits).await?;
    told(&scenario, "Held", "waits for a person's approval").await?;
    let said = controller::ask(&scenario.cluster, &["explain", &scenario.node]).await?;
    assert!(said.contains("  held: waits for a person's approval: node-remedy approve"), "{said}");
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "nobody approved it");
    controller::ask(&scenario.cluster, &["approve", &incident.name_any()]).await?;
    scenario.ends_well().await?;
    controller.terminate().await
}

/// An off was sent and the machine takes its time: the machine is switched on again, nothing is
/// released, and it is said at which boundary the abort took effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_after_the_off_switches_on_and_releases_nothing() -> Result<()> {
    let mut scenario = Scenario::begin("e2e-abort", &Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.bmc()?.set_faults("delay 20")?;
    scenario.lose_node()?;
    let incident = scenario.incident("being switched off", is_being_switched_off).await?;
    controller::ask(&scenario.cluster, &["abort", &incident.name_any()]).await?;
    let parked = scenario.incident("parked", |incident| is_in_phase(incident, "Parked")).await?;
    assert_eq!(status(&parked, "/parked/reason"), "Aborted");
    told(&scenario, "Aborted", "undone where that is safe, then parked").await?;
    scenario.cluster.until_power(&scenario.node, Power::On).await?;
    assert_eq!(scenario.asked(&scenario.node)?, (1, 1));
    let verdict = scenario.cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.releases, []);
    let said = controller::ask(&scenario.cluster, &["explain", &scenario.node]).await?;
    assert!(said.contains("a person stopped the incident after an off or a release"), "{said}");
    controller.terminate().await
}

/// The same, and the machine is to stay as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_that_leaves_off_switches_nothing_on() -> Result<()> {
    let mut scenario = Scenario::begin("e2e-leave-off", &Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.bmc()?.set_faults("delay 20")?;
    scenario.lose_node()?;
    let incident = scenario.incident("being switched off", is_being_switched_off).await?;
    controller::ask(&scenario.cluster, &["abort", &incident.name_any(), "--leave-off"]).await?;
    let parked = scenario.incident("parked", |incident| is_in_phase(incident, "Parked")).await?;
    assert_eq!(status(&parked, "/parked/reason"), "Aborted");
    told(&scenario, "Aborted", "the machine stays as it is").await?;
    scenario.cluster.until_power(&scenario.node, Power::Off).await?;
    assert_eq!(scenario.asked(&scenario.node)?, (1, 0));
    let verdict = scenario.cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.releases, []);
    controller.terminate().await
}

/// A BMC that refuses every off: the incident is parked. Once it is repaired, a person has it tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_incident_that_is_retried_goes_on() -> Result<()> {
    let policies = json!({"retries": 0});
    let installation = Installation { policies, ..Installation::default() };
    let mut scenario = Scenario::begin("e2e-retry", &installation).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.bmc()?.set_faults("fail 1")?;
    scenario.lose_node()?;
    let parked = scenario.incident("parked", |incident| is_in_phase(incident, "Parked")).await?;
    scenario.bmc()?.set_faults("")?;
    let said = controller::ask(&scenario.cluster, &["retry", &parked.name_any()]).await?;
    assert!(said.contains("is asked to try again"), "{said}");
    scenario.cluster.database_runs(Some(&scenario.node)).await?;
    let ended = scenario.incident("over", |incident| is_in_phase(incident, "Final")).await?;
    assert_eq!(*status(&ended, "/proof/grade"), "power-off-verified");
    scenario.cluster.until_ready(&scenario.node, "True").await?;
    assert_eq!(scenario.asked(&scenario.node)?.1, 1, "one on");
    assert_eq!(scenario.cluster.observer(User::NodeRemedy).judge()?.violations, []);
    controller.terminate().await
}

/// No device can say that the machine is off: somebody switched it off by hand, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_who_switched_a_machine_off_gives_its_pods_back() -> Result<()> {
    let policies = json!({"retries": 0});
    let installation = Installation { policies, ..Installation::default() };
    let mut scenario = Scenario::begin("e2e-confirm-off", &installation).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.bmc()?.set_faults("fail 1")?;
    scenario.lose_node()?;
    let parked = scenario.incident("parked", |incident| is_in_phase(incident, "Parked")).await?;
    let observer = scenario.cluster.observer(User::NodeRemedy);
    assert_eq!(observer.judge()?.releases, [], "nobody knows whether it is off");
    scenario.bmc()?.press_button(Power::Off)?;
    let name = parked.name_any();
    let refused = controller::ask_for_any_end(&scenario.cluster, &["confirm-off", &name]).await?;
    assert_eq!(refused.status.code(), Some(1), "without a terminal it needs --yes");
    controller::ask(&scenario.cluster, &["confirm-off", &name, "--yes"]).await?;
    scenario.cluster.database_runs(Some(&scenario.node)).await?;
    let proven = |incident: &_| status(incident, "/proof").is_object();
    let incident = scenario.incident("proven off", proven).await?;
    assert_eq!(*status(&incident, "/proof/grade"), "operator-confirmed");
    let verdict = observer.judge()?;
    // No device said so: what goes goes on a person's word.
    let is_unread = |one: &Violation| matches!(one, Violation::ReleasedWithoutRead(_));
    assert!(verdict.violations.iter().all(is_unread), "{:#?}", verdict.violations);
    assert!(!verdict.releases.is_empty(), "its pods are given back");
    controller.terminate().await
}

/// A remedy that gives pods back waits for somebody who has seen the machine off, and takes their word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remedy_that_waits_for_a_word_takes_it() -> Result<()> {
    let mut installation = Installation::default();
    installation.threshold["remedy1"] = json!([{"name": "give-back"}]);
    installation.remedies = json!([{"name": "give-back", "cluster": "release"}]);
    let mut scenario = Scenario::begin("e2e-release-on-a-word", &installation).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.bmc()?.press_button(Power::Off)?;
    let waits = scenario.incident("waiting", |incident| is_in_phase(incident, "Remedying")).await?;
    let (name, observer) = (waits.name_any(), scenario.cluster.observer(User::NodeRemedy));
    assert_eq!(observer.judge()?.releases, [], "nobody said that it is off");
    let says = ["confirm-off", &name, "--yes"];
    controller::ask(&scenario.cluster, &says).await?;
    // It counts once the Lease has run out, and is said again until then.
    until("its pods are given back", INCIDENT_WITHIN, || async {
        if !observer.judge()?.releases.is_empty() {
            return Ok(Some(()));
        }
        controller::ask_for_any_end(&scenario.cluster, &says).await?;
        Ok(None)
    })
    .await?;
    scenario.cluster.database_runs(Some(&scenario.node)).await?;
    controller.terminate().await
}

/// A machine that could not be switched on closes its device for the next off, until somebody saw to it
/// and says so; and a node that fails again is told of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_failed_to_switch_on_is_closed_until_it_is_acknowledged() -> Result<()> {
    let repeat_alarm = json!({"count": 2, "window": "1h"});
    let policies = json!({"retries": 0, "coolDown": "0s", "repeatAlarm": repeat_alarm});
    let installation = Installation { policies, ..Installation::default() };
    let mut scenario = Scenario::begin("e2e-ack", &installation).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    let node = scenario.node.clone();
    // What is released waits for a finalizer, and the on for what is released.
    hold(&scenario, json!(["example.com/held"])).await?;
    scenario.lose_node()?;
    scenario.incident("proven off", |incident| status(incident, "/proof").is_object()).await?;
    scenario.bmc()?.set_faults("fail 1")?;
    hold(&scenario, Value::Null).await?;
    let parked = scenario.incident("parked", |incident| is_in_phase(incident, "Parked")).await?;
    let said = controller::ask(&scenario.cluster, &["explain", &node]).await?;
    assert!(said.contains(&format!("node-remedy ack {node}")), "{said}");
    scenario.bmc()?.set_faults("")?;
    scenario.bmc()?.press_button(Power::On)?;
    let ended = scenario.incident("over", |incident| is_in_phase(incident, "Final")).await?;
    assert_eq!(*status(&ended, "/finalReason"), "RecoveredByHand", "{}", parked.name_any());
    scenario.cluster.until_ready(&node, "True").await?;

    scenario.again().await?;
    scenario.node.clone_from(&node);
    scenario.lose_node()?;
    until_refused(&scenario, "DeviceClosed").await?;
    let said = controller::ask(&scenario.cluster, &["ack", &node]).await?;
    assert!(said.contains("may switch machines off again"), "{said}");
    let ended = scenario.incident("over", |incident| is_in_phase(incident, "Final")).await?;
    assert_eq!(*status(&ended, "/finalReason"), "Remedied");
    assert_eq!(scenario.asked(&node)?, (1, 1));
    assert_eq!(scenario.cluster.observer(User::NodeRemedy).judge()?.violations, []);
    let metrics = controller.metrics().await?;
    for line in [
        format!("node_remedy_repeat_alarms_total{{node=\"{node}\"}} 1"),
        format!("node_remedy_problems_total{{node=\"{node}\",condition=\"Ready\"}} 2"),
    ] {
        assert!(metrics.contains(&line), "no {line} in {metrics}");
    }
    controller.terminate().await
}

/// A pause for some nodes keeps these on, and lets another be fenced meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_of_some_nodes_is_for_these_and_no_other() -> Result<()> {
    let scenario = Scenario::begin("e2e-pause-nodes", &Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.label(&scenario.node, "rack", "a").await?;
    let pause = ["pause", "--reason", "new switches", "--nodes"];
    controller::ask(&scenario.cluster, &[&pause[..], &["rack=b"]].concat()).await?;
    let said = controller::ask(&scenario.cluster, &[&pause[..], &["rack=a"]].concat()).await?;
    let name = said.split(':').next().context("a name")?;
    scenario.lose_node()?;
    until_refused(&scenario, "Paused").await?;
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0));
    // The one for other nodes stands.
    controller::ask(&scenario.cluster, &["resume", name]).await?;
    scenario.ends_well().await?;
    let said = controller::status(&scenario.cluster).await?;
    assert!(said.contains("rack=b") && !said.contains("rack=a"), "{said}");
    controller.terminate().await
}

/// Sets or lifts what keeps the database's pod from going.
async fn hold(scenario: &Scenario, finalizers: Value) -> Result<()> {
    let pods = Api::<Pod>::namespaced(scenario.cluster.client(), "default");
    let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    pods.patch("db-0", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until an Event of this reason about the lost node says this.
async fn told(scenario: &Scenario, reason: &str, says: &str) -> Result<()> {
    let events = Api::<Event>::all(scenario.cluster.client());
    let found = until(&format!("an Event {reason}: {says}"), INCIDENT_WITHIN, || async {
        let all = events.list(&ListParams::default()).await?.items;
        let is_it = |event: &&Event| {
            let about = event.regarding.as_ref().and_then(|about| about.name.as_deref());
            event.reason.as_deref() == Some(reason)
                && about == Some(scenario.node.as_str())
                && event.note.as_deref().is_some_and(|note| note.contains(says))
        };
        Ok(all.iter().find(is_it).map(|_| ()))
    })
    .await;
    found.context("nobody was told")
}
