//! A snapshot of a real control plane, and the questions that it answers: it holds no password, and what a
//! simulation of it does is what the controller would do.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, Patch, PatchParams, PostParams};
use node_remedy_tests::Controller;
use node_remedy_tests::controller::{self, NAMESPACE};
use node_remedy_tests::remedy::{Installation, install_secret};
use serde_json::json;

use crate::e2e_scenario::Scenario;

/// A password in a Secret, and one that somebody left in a historical configuration. (That of the BMCs here is a
/// word that configurations have.)
const KEPT: &str = "kept-in-a-secret-7";
const LITERAL: &str = "hunter2-of-the-pdu";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_answers_what_would_be_done_and_holds_no_password() -> Result<()> {
    let scenario = Scenario::begin("e2e-snapshot", &Installation::default()).await?;
    let cluster = &scenario.cluster;
    let nodes = Api::<Node>::all(cluster.client());
    for (name, bmc) in &cluster.bmcs {
        // Where a snapshot says that there is a BMC.
        let annotations = json!({"node-remedy.io/bmc-address": bmc.address()});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        nodes.patch(name, &PatchParams::default(), &patch).await?;
    }
    install_secret(cluster, "kept", &json!({"username": "fence", "password": KEPT})).await?;
    let old: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "fence-method-template-old"},
        "data": {"template.properties": format!("agent_name=fence_eaton_snmp\npasswd={LITERAL}")},
    }))?;
    let config_maps = Api::<ConfigMap>::namespaced(cluster.client(), NAMESPACE);
    config_maps.create(&PostParams::default(), &old).await?;

    let namespace = format!("--namespace={NAMESPACE}");
    let snapshot = controller::ask(cluster, &["snapshot", &namespace]).await?;
    for secret in [KEPT, LITERAL] {
        assert!(!snapshot.contains(secret), "{secret} is in it");
    }
    assert!(snapshot.contains("fence-method-template-old"));
    let file = cluster.folder_for("snapshot")?.join("c.yaml");
    std::fs::write(&file, &snapshot)?;

    let lost = simulate(&file, &["--lose", &scenario.node])?;
    let said = told(&lost)?;
    assert!(said.contains(&format!("{} is lost", scenario.node)), "{said}");
    assert!(said.contains("proof: power-off-verified"), "{said}");
    assert!(said.contains("BMC off 1, on 1"), "{said}");
    assert!(said.contains("db-0 back on"), "{said}");

    // All of them lose power at once: nothing is cut, and why.
    let dark = simulate(&file, &["--power-loss", "kubernetes.io/os=linux"])?;
    let said = told(&dark)?;
    assert!(said.contains("goes dark") && said.contains("Not done, and why"), "{said}");
    assert!(!said.contains("power off by a command"), "{said}");
    Ok(())
}

fn simulate(file: &Path, asked: &[&str]) -> Result<Output> {
    let mut command = Command::new(Controller::binary());
    command.args(["simulate", "--no-baseline"]).arg(file).args(asked);
    command.output().context("failed to start node-remedy")
}

fn told(output: &Output) -> Result<String> {
    let said = String::from_utf8(output.stdout.clone())?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complaint}");
    Ok(said)
}
