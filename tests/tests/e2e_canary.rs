//! S15 on a real control plane: two passwords that are known when they are seen again, one that a device refuses
//! and one that it takes, and no byte of them in anything that node-remedy says, writes or is started with.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Event, Node, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use node_remedy_swarm::corpus::canary;
use node_remedy_tests::controller::{NAMESPACE, ask, ask_for_any_end};
use node_remedy_tests::ipmi::PASSWORD;
use node_remedy_tests::remedy::{SECRET, apply_all, custom, is_in_phase};
use node_remedy_tests::{Cluster, Controller};
use serde::Serialize;
use serde_json::json;

use crate::e2e_outside::{on_relays, printed, until_ready};

/// All of our kinds.
const KINDS: [&str; 6] = [
    "FenceConfiguration",
    "FencePlugin",
    "NodeFence",
    "RemedyBudget",
    "RemedyConfiguration",
    "RemedyPause",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_no_byte_of_a_password_is_said_written_or_shown() -> Result<()> {
    // What is searched for is what is used.
    assert!(canary::sings_not(PASSWORD).is_err());
    let (scenario, board) = on_relays("e2e-canary").await?;
    let client = scenario.cluster.client();
    let (map, plugin) = printed()?;
    let allowed = format!("grants: [{{cidrs: [127.0.0.1/32], ports: [{}]}}]", board.port());
    apply_all(&client, &map).await?;
    apply_all(&client, &plugin.replace("grants: []", &allowed)).await?;
    let folder = scenario.cluster.control_plane().folder().to_owned();
    let audit = format!("--audit-log={}", folder.join("node-remedy-audit.jsonl").display());
    // Everything that there is to say, but for the libraries that would print every frame.
    let log = "--log=trace,h2=info,hyper=info,hyper_util=info,rustls=info,tower=info";
    let mut controller = Controller::start_saying(&scenario.cluster, "one", &[&audit, log])?;
    controller.until_ready().await?;
    until_ready(&scenario, "True", "Loaded").await?;

    let refused = canary::COMMUNITY.trim_start_matches("Canary-");
    set_password(&scenario.cluster, refused).await?;
    scenario.lose_node()?;
    let parked = scenario.incident("parked", |incident| is_in_phase(incident, "Parked")).await?;
    let metrics = controller.metrics().await?;
    let explained = ask(&scenario.cluster, &["explain", &scenario.node]).await?;
    set_password(&scenario.cluster, PASSWORD).await?;
    ask(&scenario.cluster, &["retry", &parked.name_any()]).await?;
    scenario.ends_well().await?;

    let shown = ask_for_any_end(&scenario.cluster, &["config", "show", &scenario.node]).await?;
    let shown = String::from_utf8([shown.stdout, shown.stderr].concat())?;
    for (what, said) in [
        ("metrics", metrics),
        ("explain", explained),
        ("metrics at the end", controller.metrics().await?),
        ("history", ask(&scenario.cluster, &["history", "--output", "json"]).await?),
        ("config show", shown),
        ("snapshot", ask(&scenario.cluster, &["snapshot"]).await?),
        ("arguments", arguments_of_ours()?),
    ] {
        ensure!(!said.is_empty(), "{what} says nothing");
        canary::sings_not(&said).context(what)?;
    }
    nothing_of_the_cluster_sings(&scenario.cluster).await?;
    controller.terminate().await?;
    let searched = nothing_in_files_sings(&folder)?;
    assert!(searched.iter().any(|name| name.contains("audit")), "{searched:?}");
    assert!(searched.iter().any(|name| name.ends_with("one.log")), "{searched:?}");
    Ok(())
}

pub(crate) async fn set_password(cluster: &Cluster, password: &str) -> Result<()> {
    let secrets = Api::<Secret>::namespaced(cluster.client(), NAMESPACE);
    let patch = Patch::Merge(json!({"stringData": {"password": password}}));
    secrets.patch(SECRET, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// What the API server has of ours, and of what we write to: everything but the Secrets.
pub(crate) async fn nothing_of_the_cluster_sings(cluster: &Cluster) -> Result<()> {
    let client = cluster.client();
    for kind in KINDS {
        let all = custom(&client, kind).list(&ListParams::default()).await?;
        sings_not(&all, kind)?;
    }
    sings_not(&Api::<Node>::all(client.clone()).list(&ListParams::default()).await?, "Nodes")?;
    let events = Api::<Event>::all(client).list(&ListParams::default()).await?;
    ensure!(!events.items.is_empty(), "no Events");
    sings_not(&events, "Events")
}

fn sings_not(objects: &impl Serialize, what: &str) -> Result<()> {
    canary::sings_not(&serde_json::to_string(objects)?).with_context(|| what.to_owned())
}

/// Every file of node-remedy's in the cluster's folder: its log and its audit.
pub(crate) fn nothing_in_files_sings(folder: &Path) -> Result<Vec<String>> {
    let mut searched = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("node-remedy") && entry.file_type()?.is_file() {
            canary::sings_not_in(&fs::read(entry.path())?).with_context(|| name.clone())?;
            searched.push(name);
        }
    }
    Ok(searched)
}

/// What each process of node-remedy was started with.
pub(crate) fn arguments_of_ours() -> Result<String> {
    let mut all = String::new();
    for entry in fs::read_dir("/proc")? {
        let folder = entry?.path();
        // A process may be gone by now.
        let Ok(arguments) = fs::read(folder.join("cmdline")) else { continue };
        let arguments = String::from_utf8_lossy(&arguments);
        let program = Path::new(arguments.split('\0').next().unwrap_or_default());
        if program.file_name().is_some_and(|name| name == "node-remedy") {
            all.push_str(&arguments);
            // Its environment is shown to nobody but root.
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            all.push_str(&String::from_utf8_lossy(&environment));
        }
    }
    Ok(all)
}
