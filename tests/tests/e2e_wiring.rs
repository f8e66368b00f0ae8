//! `verify-wiring` on a real control plane, with simulated PDUs: what it proves, what it refuses, and that
//! no machine stays dark by it. The controller runs beside it and must fence nobody meanwhile.

use std::process::Output;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, ListParams, Patch, PatchParams};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::controller::{self, NAMESPACE};
use node_remedy_tests::remedy::{self, describe, is_in_phase};
use node_remedy_tests::time::until;
use node_remedy_tests::{Cluster, Controller};
use serde_json::{Value, json};

use crate::e2e_methods::{place, two_feeds};
use crate::e2e_paths::{OUTLET, installed};
use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

const NONE_DARK: [u32; 0] = [];

/// A right outlet is verified, and what the controller does by it then says so. A swapped one is found
/// by the neighbour that falls silent, and is switched on again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_outlet_is_verified_and_a_swapped_one_is_found() -> Result<()> {
    let mut scenario = Scenario::prepare("e2e-wiring", Settings::QUICK).await?;
    let pdu = installed(&mut scenario).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    let [one, other] = idle(&scenario)?;
    let cluster = &scenario.cluster;

    let refused = try_wiring(cluster, &one, &[]).await?;
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr)?;
    assert!(said.contains(&format!("kubectl cordon {one}")), "{said}");
    assert_eq!(pdu.sets()?, [""; 0], "nothing was switched");

    cordon(cluster, &one, true).await?;
    for (consent, says) in [(None, "--yes"), (Some(&other), "expected the name of the node")] {
        let yes = consent.map(|node| format!("--yes={node}"));
        let arguments: Vec<&str> =
            ["verify-wiring", &one].into_iter().chain(yes.as_deref()).collect();
        let refused = controller::ask_for_any_end(cluster, &arguments).await?;
        let said = String::from_utf8(refused.stderr)?;
        assert!(refused.status.code() == Some(1) && said.contains(says), "{said}");
    }
    let refused = controller::ask_typing(cluster, &["verify-wiring", &one], &other).await?;
    let said = String::from_utf8(refused.stdout)?;
    assert!(said.contains("not confirmed; nothing was switched"), "{said}");
    assert_eq!((refused.status.code(), pdu.sets()?), (Some(1), vec![]), "nobody consented: {said}");
    let boot_id = cluster.machine(&one)?.boot_id();
    let typed = controller::ask_typing(cluster, &["verify-wiring", &one], &one).await?;
    let said = String::from_utf8(typed.stdout)?;
    assert!(typed.status.success() && said.contains("verified: outlet (plug"), "{said}");
    assert_eq!(pdu.dark().await?, NONE_DARK);
    assert_eq!(pdu.sets()?.len(), 2, "one off and one on");
    assert_ne!(cluster.machine(&one)?.boot_id(), boot_id, "it booted");
    left_alone(cluster).await?;
    let shown = controller::ask(cluster, &["config", "show", &one]).await?;
    assert!(shown.contains("bound by its wiring, verified at"), "{shown}");
    let told = controller::ask(cluster, &["explain", &one]).await?;
    assert!(told.contains("bound by its wiring, verified at"), "{told}");
    let told = controller::ask(cluster, &["explain", &other]).await?;
    assert!(told.contains("bound by the configuration alone"), "{told}");
    let told = controller::status(cluster).await?;
    assert!(told.contains("wiring never verified of 2 plugs: outlet of"), "{told}");

    // Each has the other's outlet in its label: the machine that goes dark is the other one.
    let outlets = [place(&one)?, place(&other)?].map(|number| number.to_string());
    let [own, swapped] = &outlets;
    scenario.label(&one, OUTLET, swapped).await?;
    scenario.label(&other, OUTLET, own).await?;
    let shown = controller::ask(cluster, &["config", "show", &one]).await?;
    assert!(shown.contains("bound by the configuration alone"), "another outlet: {shown}");
    let wrong = try_wiring(cluster, &one, &[]).await?;
    assert_eq!(found(&wrong)?, (2, vec!["feeds-others".to_owned()]));
    let said = String::from_utf8(wrong.stdout)?;
    assert!(said.contains(&format!("feeds {other}")), "{said}");
    assert_eq!(pdu.dark().await?, NONE_DARK, "it is on again");
    left_alone(cluster).await?;

    // Right again, and of the same outlet and Node as before: what was proven holds.
    scenario.label(&one, OUTLET, own).await?;
    scenario.label(&other, OUTLET, swapped).await?;
    cordon(cluster, &one, false).await?;
    cluster.machine(&one)?.stop_kubelet();
    let incident = until("the incident is Final", INCIDENT_WITHIN, || async {
        let incident = remedy::incidents(&cluster.client(), &one).await?.pop();
        Ok(incident.filter(|incident| is_in_phase(incident, "Final")))
    })
    .await?;
    let methods = incident.data.pointer("/spec/plan/methods").cloned().unwrap_or_default();
    let bindings: Vec<&Value> = methods
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one.pointer("/facts/binding"))
        .collect();
    assert_eq!(bindings, [&json!("verified")], "{}", describe(&incident));
    controller.terminate().await
}

/// Of two feeds each is proven with the other one off. One that is another machine's proves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_feeds_each_is_tried_alone() -> Result<()> {
    let mut scenario = Scenario::prepare("e2e-wiring-feeds", Settings::QUICK).await?;
    let (a, b) = two_feeds(&mut scenario, false).await?;
    let [one, other] = idle(&scenario)?;
    let cluster = &scenario.cluster;
    let before = controller::ask_for_any_end(cluster, &["config", "show", &one]).await?;
    let before = String::from_utf8(before.stdout)?;
    assert!(before.contains("the wiring of its outlets was never verified"), "{before}");
    cordon(cluster, &one, true).await?;
    let tried = found(&try_wiring(cluster, &one, &[]).await?)?;
    assert_eq!(tried, (0, vec!["verified".to_owned(), "verified".to_owned()]));
    for pdu in [&a, &b] {
        assert_eq!(pdu.dark().await?, NONE_DARK);
        assert_eq!(pdu.sets()?.len(), 4, "off and on in each trial: {:?}", pdu.sets()?);
    }
    let shown = controller::ask(cluster, &["config", "show", &one]).await?;
    assert_eq!(shown.matches("bound by its wiring, verified at").count(), 2, "{shown}");

    // Both outlets of its plan are the neighbour's: one off alone silences nobody.
    cordon(cluster, &other, true).await?;
    scenario.label(&other, "place", &place(&one)?.to_string()).await?;
    let wrong = try_wiring(cluster, &other, &["--method", "outlet-a"]).await?;
    assert_eq!(found(&wrong)?, (2, vec!["feeds-others".to_owned()]));
    let said = String::from_utf8(wrong.stdout)?;
    assert!(said.contains(&format!("feeds {one}")), "{said}");
    for pdu in [&a, &b] {
        assert_eq!(pdu.dark().await?, NONE_DARK);
    }
    Ok(())
}

/// Whoever interrupts a trial gets the machine back first, and nothing is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_trial_switched_off_is_switched_on_when_it_is_interrupted() -> Result<()> {
    let mut scenario = Scenario::prepare("e2e-wiring-end", Settings::QUICK).await?;
    let pdu = installed(&mut scenario).await?;
    let [one, _] = idle(&scenario)?;
    let cluster = &scenario.cluster;
    cordon(cluster, &one, true).await?;
    let arguments = ["verify-wiring", one.as_str(), "--yes", one.as_str()];
    let mut trial = controller::ask_and_go_on(cluster, "verify-wiring", &arguments)?;
    until("the outlet is off", INCIDENT_WITHIN, || async {
        Ok((pdu.dark().await? == [place(&one)?]).then_some(()))
    })
    .await?;
    let second = try_wiring(cluster, &one, &[]).await?;
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8(second.stderr)?;
    assert!(said.contains("another trial goes on") || said.contains("not Ready"), "{said}");
    trial.terminate()?;
    until("it ends", INCIDENT_WITHIN, || {
        let ended = trial.has_ended();
        async move { Ok(ended?.then_some(())) }
    })
    .await?;
    assert_eq!(pdu.dark().await?, NONE_DARK);
    let said = std::fs::read_to_string(trial.log())?;
    assert!(said.contains("not-proven") && said.contains("interrupted"), "{said}");
    left_alone(cluster).await?;
    let config_maps = Api::<ConfigMap>::namespaced(cluster.client(), NAMESPACE);
    assert!(config_maps.get_opt(&format!("wiring-{one}")).await?.is_none());
    Ok(())
}

/// Two nodes without the database.
fn idle(scenario: &Scenario) -> Result<[String; 2]> {
    let others = scenario.cluster.bmcs.keys().filter(|node| **node != scenario.node).cloned();
    let others: Vec<String> = others.collect();
    others.try_into().ok().context("three nodes")
}

async fn cordon(cluster: &Cluster, node: &str, is_cordoned: bool) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"unschedulable": is_cordoned}}));
    Api::<Node>::all(cluster.client()).patch(node, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn try_wiring(cluster: &Cluster, node: &str, more: &[&str]) -> Result<Output> {
    let arguments = [&["verify-wiring", node, "--yes", node, "--output", "json"], more].concat();
    controller::ask_for_any_end(cluster, &arguments).await
}

/// The exit code, and what was found of each plug.
fn found(output: &Output) -> Result<(i32, Vec<String>)> {
    let said = String::from_utf8_lossy(&output.stderr);
    let document: Value =
        serde_json::from_slice(&output.stdout).with_context(|| format!("no JSON; said: {said}"))?;
    let plugs = document.get("plugs").and_then(Value::as_array).context("no plugs")?;
    let findings = plugs.iter().filter_map(|plug| plug.get("finding")?.as_str());
    let code = output.status.code().context("killed")?;
    ensure!(document.get("exitCode") == Some(&json!(code)), "{document}");
    Ok((code, findings.map(str::to_owned).collect()))
}

/// Nothing was fenced, and nothing is paused any more.
async fn left_alone(cluster: &Cluster) -> Result<()> {
    for kind in ["NodeFence", "RemedyPause"] {
        let listed = remedy::custom(&cluster.client(), kind).list(&ListParams::default()).await?;
        assert_eq!(listed.items.len(), 0, "{kind}: {:#?}", listed.items);
    }
    Ok(())
}
