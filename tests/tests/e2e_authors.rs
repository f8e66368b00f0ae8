//! The page of plugin authors to its end: a plugin written by `plugin new`, signed, applied to a real control
//! plane by the page's own commands, fences a node.

use std::path::PathBuf;

use anyhow::{Context, Result};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::control_plane::User;
use node_remedy_tests::ipmi::{PASSWORD, PowerFile, USERNAME};
use node_remedy_tests::page::{Page, Walk, build_folder};
use node_remedy_tests::remedy::{Installation, custom, status};
use node_remedy_tests::webhook::{Door, Plugs};
use node_remedy_tests::{Bmc, Controller};

use crate::e2e_methods::place;
use crate::e2e_story::Story;

/// The plugin's name; one's own, for tests build in one folder.
const PLUGIN: &str = "cluster-relay";

/// A folder of the page, outside of this repository; it goes with this value.
struct Elsewhere(PathBuf);

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_authors_ends_in_a_fenced_node() -> Result<()> {
    let mut story = Story::prepare("e2e-authors", Settings::QUICK).await?;
    let mut machines = Vec::new();
    for (node, bmc) in &story.cluster.bmcs {
        machines.push((place(node)?, bmc));
        story.label(node, "relay", &place(node)?.to_string()).await?;
    }
    machines.sort_by_key(|(place, _)| *place);
    let machines: Vec<PowerFile> = machines.iter().map(|(_, bmc)| Bmc::power_file(bmc)).collect();
    let folder = story.cluster.control_plane().folder().join("relays");
    let board = Plugs::wired(&folder, Door::PlainBasic, &machines).await?;
    story.install(&Installation::default()).await?;
    let mut controller = Controller::start(&story.cluster, "one")?;
    controller.until_ready().await?;

    let elsewhere = std::env::temp_dir().join(format!("node-remedy-e2e-{}", std::process::id()));
    std::fs::create_dir_all(&elsewhere)?;
    let elsewhere = Elsewhere(elsewhere);
    let kubeconfig = story.cluster.control_plane().kubeconfig(User::Admin)?.to_owned();
    let wasm = build_folder().join("wasm32-wasip2/release/cluster_relay.wasm");
    let page = Page::read()?;
    let walk = |sections: &[&str]| {
        let walk = Walk {
            folder: &elsewhere.0,
            sections,
            variables: &[
                ("NAME", PLUGIN.to_owned()),
                ("WASM", wasm.display().to_string()),
                ("PORT", board.port().to_string()),
                ("USERNAME", USERNAME.to_owned()),
                ("PASSWORD", PASSWORD.to_owned()),
            ],
            kubeconfig: Some(&kubeconfig),
        };
        // The cluster's kubelets go on meanwhile.
        tokio::task::block_in_place(|| page.walk(&walk))
    };
    walk(&["Begin", "Ship it", "Into a cluster"])?;
    let object = custom(&story.cluster.client(), "FencePlugin").get(PLUGIN).await?;
    let digest = status(&object, "/digest").as_str().context("no digest")?;
    assert!(status(&object, "/verifiedBy").as_str().is_some_and(|id| id.starts_with("sha256:")));

    story.lose_node()?;
    story.ends_well().await?;
    let said = walk(&["A node is lost"])?;
    assert!(said.contains(digest) && said.contains(&story.node), "{said}");
    let metrics = controller.metrics().await?;
    for action in ["off", "on"] {
        let line = format!(
            "node_remedy_plugin_calls_total{{plugin=\"{PLUGIN}\",action=\"{action}\",result=\"ok\"}} 1"
        );
        assert!(metrics.contains(&line), "no {line} in:\n{metrics}");
    }
    controller.terminate().await
}
