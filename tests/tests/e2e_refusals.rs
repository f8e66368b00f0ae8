//! What node-remedy must not do, on a real control plane.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch, PatchParams};
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::remedy::{Installation, is_in_phase, status};
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Controller, controller, remedy};

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

/// The BMC that the configuration names is another machine's: its GUID is not the node's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wrong_machine_is_not_powered_off() -> Result<()> {
    let scenario = Scenario::begin("e2e-wrong-bmc", &Installation::default()).await?;
    let other = scenario.cluster.bmcs.keys().find(|name| **name != scenario.node);
    let other = other.context("a cluster of one node")?;
    // Each has the other's address: one that both have would be refused before anything is asked.
    let of = |name: &str| Ok::<_, anyhow::Error>(scenario.cluster.bmc(name)?.address());
    let addresses =
        BTreeMap::from([(scenario.node.clone(), of(other)?), (other.clone(), of(&scenario.node)?)]);
    remedy::install(&scenario.cluster, &Installation { addresses, ..Installation::default() })
        .await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    let parked = scenario.incident("parked", |incident| is_in_phase(incident, "Parked"));
    let reason = status(&parked.await?, "/parked").to_string();
    assert!(reason.contains("WrongMachine"), "{reason}");
    nothing_was_done(&scenario)
}

/// A record that contradicts itself is not guessed at: nothing goes on until a person looked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_record_is_parked_and_its_machine_left_alone() -> Result<()> {
    let scenario = Scenario::begin("e2e-broken-record", &Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    let off = |incident: &DynamicObject| status(incident, "/proof").is_object();
    let incident = scenario.incident("proven off", off).await?;
    controller.kill9()?;
    let asked = scenario.cluster.bmc(&scenario.node)?.offs()?;

    // The journal says that an operation has no number of its own.
    let broken = serde_json::json!({"status": {"nextOperation": 1}});
    let api = remedy::custom(&scenario.cluster.client(), "NodeFence");
    let (name, patch) = (incident.name_any(), Patch::Merge(broken));
    api.patch_status(&name, &PatchParams::default(), &patch).await?;
    let mut again = Controller::start(&scenario.cluster, "one")?;
    again.until_ready().await?;
    let is_parked = |incident: &DynamicObject| is_in_phase(incident, "Parked");
    let parked = scenario.incident("parked", is_parked).await?;
    assert_eq!(status(&parked, "/parked/reason"), "BrokenRecord");
    assert!(!status(&parked, "/parked/plugs").as_array().is_none_or(Vec::is_empty), "which plugs");
    let bmc = scenario.cluster.bmc(&scenario.node)?;
    assert_eq!((bmc.offs()?, bmc.ons()?), (asked, 0), "nobody guesses");
    let verdict = scenario.cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.refused, [""; 0]);

    let explained = controller::ask(&scenario.cluster, &["explain", &scenario.node]).await?;
    assert!(explained.contains("BrokenRecord"), "{explained}");
    again.terminate().await
}

/// The BMC says yes to off and does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bmc_that_says_yes_and_does_nothing_releases_nothing() -> Result<()> {
    let policies = serde_json::json!({"offTimeout": "3s", "retries": 1, "backoff": "1s"});
    let installation = Installation { policies, ..Installation::default() };
    let scenario = Scenario::begin("e2e-lying-bmc", &installation).await?;
    scenario.cluster.bmc(&scenario.node)?.set_faults("stuck 1")?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.incident("parked", |incident| is_in_phase(incident, "Parked")).await?;
    assert!(scenario.cluster.bmc(&scenario.node)?.offs()? > 0, "it was asked");
    assert_eq!(scenario.cluster.bmc(&scenario.node)?.power(), Power::On);
    nothing_was_released(&scenario)
}

/// Somebody asked for the isolation of a plan that isolates nothing: `config show` says so before a node is lost,
/// and the controller says the same when one is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_is_refused_is_shown_to_be_before_a_node_is_lost() -> Result<()> {
    let refusal = "the plan neither isolates nor switches off";
    let fence = serde_json::json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "powerManagement": [{"name": "cordon", "methods": ["mark-unschedulable"]}],
    });
    let threshold = serde_json::json!({
        "nodeConditionType": "Ready", "nodeConditionStatus": false, "nodeConditionPeriod": "1s",
        "remedy1": [{"name": "storage-fence"}],
    });
    let installation = Installation { fence: Some(fence), threshold, ..Installation::default() };
    let scenario = Scenario::begin("e2e-refused-plan", &installation).await?;
    let shown = ["config", "show", &scenario.node];
    let shown = controller::ask_for_any_end(&scenario.cluster, &shown).await?;
    let said = String::from_utf8(shown.stdout)?;
    assert!(shown.status.code() == Some(1) && said.contains(refusal), "{said}");
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    until("explain says the same", INCIDENT_WITHIN, || async {
        let said = controller::ask(&scenario.cluster, &["explain", &scenario.node]).await?;
        Ok(said.contains(refusal).then_some(()))
    })
    .await?;
    nothing_was_done(&scenario)?;
    controller.terminate().await
}

fn nothing_was_done(scenario: &Scenario) -> Result<()> {
    for (name, bmc) in &scenario.cluster.bmcs {
        assert_eq!((bmc.offs()?, bmc.ons()?), (0, 0), "{name} was left alone");
    }
    nothing_was_released(scenario)
}

fn nothing_was_released(scenario: &Scenario) -> Result<()> {
    let verdict = scenario.cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.releases, []);
    assert_eq!(verdict.refused, [""; 0]);
    Ok(())
}
