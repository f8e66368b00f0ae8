//! Whose machine is cut where a kubelet says that it is another one, on a real control plane.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use node_remedy_tests::controller::{self, Controller, NAMESPACE};
use node_remedy_tests::remedy::{self, Installation};
use node_remedy_tests::time::until;
use serde_json::json;

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

/// A look for new nodes, with a margin.
const PINNED_WITHIN: Duration = Duration::from_secs(40);
/// A machine that no node is.
const NOBODY: &str = "4c4c4544-0051-4810-8031-b8c04f4e3231";

/// While another node says that it is the lost node's machine, nothing is cut; once it no longer does, the lost
/// node is fenced. What each node said first is kept, and a node that says something else is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_two_nodes_claim_is_cut_for_neither() -> Result<()> {
    let scenario = Scenario::begin("e2e-identity", &Installation::default()).await?;
    let client = scenario.cluster.client();
    let mut controller = Controller::start_saying(&scenario.cluster, "one", &["--probe-every=5s"])?;
    controller.until_ready().await?;

    let nodes = Api::<Node>::all(client.clone());
    let uuid_of = async |name: &str| -> Result<(String, String)> {
        let node = nodes.get(name).await?;
        let uid = node.uid().context("a UID")?;
        let info = node.status.and_then(|status| status.node_info).context("nodeInfo")?;
        Ok((uid, info.system_uuid))
    };
    let mut expected = BTreeMap::new();
    for name in scenario.cluster.bmcs.keys() {
        let (uid, uuid) = uuid_of(name).await?;
        expected.insert(uid, uuid);
    }
    let kept = Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE);
    until("the nodes are known", PINNED_WITHIN, || async {
        let kept = kept.get("node-identities").await?.data.unwrap_or_default();
        Ok((kept == expected).then_some(()))
    })
    .await?;

    let other = scenario.cluster.bmcs.keys().find(|name| **name != scenario.node);
    let other = other.context("a cluster of one node")?;
    let says = async |uuid: &str| -> Result<()> {
        let status = Patch::Merge(json!({"status": {"nodeInfo": {"systemUUID": uuid}}}));
        nodes.patch_status(other, &PatchParams::default(), &status).await?;
        Ok(())
    };
    let told = async |command: &[&str], words: &str| -> Result<()> {
        until(&format!("{command:?} says: {words}"), INCIDENT_WITHIN, || async {
            let said = controller::ask_for_any_end(&scenario.cluster, command).await?;
            let said = String::from_utf8(said.stdout)?;
            Ok(said.contains(words).then_some(()))
        })
        .await
    };
    let (_, own) = uuid_of(&scenario.node).await?;
    let (_, true_one) = uuid_of(other).await?;

    says(&own).await?;
    scenario.lose_node()?;
    let claimed = format!("is claimed by node {} and by node {other}", scenario.node);
    told(&["explain", &scenario.node], &claimed).await?;
    told(&["explain", &scenario.node], &format!("not acted on {}", scenario.node)).await?;
    assert!(remedy::incidents(&client, &scenario.node).await?.is_empty(), "an incident was opened");
    let bmc = scenario.cluster.bmc(&scenario.node)?;
    assert_eq!((bmc.offs()?, bmc.ons()?), (0, 0));

    says(&true_one).await?;
    scenario.ends_well().await?;

    says(NOBODY).await?;
    told(&["status"], "when it was first seen").await?;
    controller.terminate().await
}
