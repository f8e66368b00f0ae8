//! The page of plugin authors to its end: a plugin written by `plugin new`, signed, applied to a real control
//! plane by the page's own commands, fences a node.

use std::path::PathBuf;

use anyhow::{Context, Result};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::ipmi::{PASSWORD, PowerFile, USERNAME};
use node_remedy_tests::page::{Page, Walk, build_folder};
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::registry::{Door, Registry};
use node_remedy_tests::remedy::{Installation, custom, status};
use node_remedy_tests::user::User;
use node_remedy_tests::webhook::{Door as Relays, Plugs};
use node_remedy_tests::{Bmc, Controller};

use crate::e2e_methods::place;
use crate::e2e_scenario::Scenario;

/// A folder of the page, outside of this repository; it goes with this value.
struct Elsewhere(PathBuf);

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// By a ConfigMap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_authors_ends_in_a_fenced_node() -> Result<()> {
    let digest = fences("cluster-relay", None).await?;
    assert!(digest.starts_with("sha256:"), "{digest}");
    Ok(())
}

/// By docker-registry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_authors_ends_in_a_fenced_node_by_a_registry() -> Result<()> {
    let registry = Registry::start(&fresh_folder("e2e-authors-registry")?, Door::Open).await?;
    let digest = fences("registry-relay", Some(&registry)).await?;
    let blob = registry.get(&format!("/v2/plugins/registry-relay/blobs/{digest}")).await?;
    assert!(!blob.is_empty(), "it came from there");
    Ok(())
}

/// Walks the page with a plugin of this name, for tests build in one folder, until it has fenced a node; gives the
/// component's digest.
async fn fences(plugin: &str, registry: Option<&Registry>) -> Result<String> {
    let mut scenario = Scenario::prepare(&format!("e2e-{plugin}"), Settings::QUICK).await?;
    let mut machines = Vec::new();
    for (node, bmc) in &scenario.cluster.bmcs {
        machines.push((place(node)?, bmc));
        scenario
            .label(node, "node-restriction.kubernetes.io/relay", &place(node)?.to_string())
            .await?;
    }
    machines.sort_by_key(|(place, _)| *place);
    let machines: Vec<PowerFile> = machines.iter().map(|(_, bmc)| Bmc::power_file(bmc)).collect();
    let folder = scenario.cluster.control_plane().folder().join("relays");
    let board = Plugs::wired(&folder, Relays::PlainBasic, &machines).await?;
    scenario.install(&Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;

    let folder = format!("node-remedy-{plugin}-{}", std::process::id());
    let elsewhere = std::env::temp_dir().join(folder);
    std::fs::create_dir_all(&elsewhere)?;
    let elsewhere = Elsewhere(elsewhere);
    let kubeconfig = scenario.cluster.control_plane().kubeconfig(User::Admin)?.to_owned();
    let library = plugin.replace('-', "_");
    let wasm = build_folder().join(format!("wasm32-wasip2/release/{library}.wasm"));
    let address = registry.map(Registry::address).unwrap_or_default();
    let page = Page::read()?;
    let walk = |sections: &[&str]| {
        let walk = Walk {
            folder: &elsewhere.0,
            sections,
            variables: &[
                ("NAME", plugin.to_owned()),
                ("WASM", wasm.display().to_string()),
                ("PORT", board.port().to_string()),
                ("USERNAME", USERNAME.to_owned()),
                ("PASSWORD", PASSWORD.to_owned()),
                ("REGISTRY", address.clone()),
            ],
            kubeconfig: Some(&kubeconfig),
        };
        // The cluster's kubelets go on meanwhile.
        tokio::task::block_in_place(|| page.walk(&walk))
    };
    match registry {
        None => walk(&["Begin", "Ship it", "Into a cluster"])?,
        Some(_) => walk(&["Begin", "Ship it", "By a registry", "Into a cluster"])?,
    };
    let object = custom(&scenario.cluster.client(), "FencePlugin").get(plugin).await?;
    let is_by_registry = object.data.pointer("/spec/source/oci").is_some();
    assert_eq!(is_by_registry, registry.is_some(), "{:?}", object.data);
    let digest = status(&object, "/digest").as_str().context("no digest")?.to_owned();
    assert!(status(&object, "/verifiedBy").as_str().is_some_and(|id| id.starts_with("sha256:")));

    scenario.lose_node()?;
    scenario.ends_well().await?;
    let said = walk(&["A node is lost"])?;
    assert!(said.contains(&digest) && said.contains(&scenario.node), "{said}");
    let metrics = controller.metrics().await?;
    for action in ["off", "on"] {
        let line = format!(
            "node_remedy_plugin_calls_total{{plugin=\"{plugin}\",action=\"{action}\",result=\"ok\"}} 1"
        );
        assert!(metrics.contains(&line), "no {line} in:\n{metrics}");
    }
    controller.terminate().await?;
    Ok(digest)
}
