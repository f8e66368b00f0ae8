//! How the machines behind plugs are known to be their nodes, for `status` and `explain`. It calls no
//! device. Who may not read the configuration is told that, and nothing else of the command is lost.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use node_remedy_api::plan::{Binding, Method, PluginKind};
use node_remedy_config::plan::snapshot;
use node_remedy_config::wiring::how_bound;
use node_remedy_observe::caches::{Cached, Caches};
use node_remedy_observe::config::{Config, Tables};
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_observe::store::Store;
use node_remedy_runtime::cluster::kube::KubeCluster;
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{At, Cluster as _, ClusterError, Object, Scope};
use node_remedy_sandbox::Sandbox;
use node_remedy_store::describe;
use node_remedy_store::store::Plugins;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::plugin_docs;

/// Plugs that `status` names.
const NAMED_MAX: usize = 3;

/// A plug of a node, and what binds it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bound {
    method: String,
    device: String,
    plug: String,
    bound_by: String,
    #[serde(skip)]
    is_labelled: bool,
}

/// What `status` says: how many plugs nobody ever tried, and which; nothing where there are none.
pub async fn told(cluster: &KubeCluster, namespace: &str) -> String {
    match all_labelled(cluster, namespace).await {
        Ok(labelled) if labelled.is_empty() => String::new(),
        Ok(labelled) => {
            let shown = labelled.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
            let more = if labelled.len() > NAMED_MAX { ", …" } else { "" };
            format!(
                "wiring never verified of {}: {shown}{more}; see: node-remedy verify-wiring --help\n",
                node_remedy_record::sentences::count_of(labelled.len(), "plug")
            )
        }
        // Who is on call may not read ConfigMaps, where passwords may stand; `explain` says so.
        Err(error) if is_denied(&error) => String::new(),
        Err(error) => format!("how plugs are bound to nodes cannot be told: {error:#}\n"),
    }
}

fn is_denied(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<ClusterError>(), Some(ClusterError::Denied(_)))
}

/// What `explain` says of one node.
pub fn lines(bound: &anyhow::Result<Vec<Bound>>, node: &str) -> String {
    let mut out = String::new();
    match bound {
        Ok(bound) => {
            for Bound { method, device, plug, bound_by, .. } in bound {
                let plug = if plug.is_empty() { String::new() } else { format!("plug {plug} of ") };
                let _ = writeln!(out, "{node} by {method} ({plug}{device}): bound by {bound_by}");
            }
        }
        Err(error) => {
            let _ = writeln!(out, "how the plugs of {node} are bound cannot be told: {error:#}");
        }
    }
    out
}

/// The plugs of one node; none where there is no such node, or nobody knows how it is fenced.
///
/// # Errors
/// Where the configuration cannot be read.
pub async fn of_node(
    cluster: &KubeCluster,
    namespace: &str,
    node: &str,
) -> anyhow::Result<Vec<Bound>> {
    let found = cluster.get::<Node>(At::cluster(node)).await.context("failed to read the node")?;
    let Some(seen) = found.and_then(PrunedNode::of) else { return Ok(Vec::new()) };
    let (config, plugins) = read(cluster, namespace).await?;
    Ok(plugs_of(&config, &plugins, &seen, &mut Tables::new()))
}

/// The plugs of all nodes that nobody ever tried, in words.
async fn all_labelled(cluster: &KubeCluster, namespace: &str) -> anyhow::Result<Vec<String>> {
    let (config, plugins) = read(cluster, namespace).await?;
    let mut nodes: Vec<PrunedNode> = Vec::new();
    let all = Scope::all();
    let listed = cluster
        .list_each(&all, |node: Read<Node>| nodes.extend(node.ok().and_then(PrunedNode::of)));
    listed.await.context("failed to list nodes")?;
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    let (mut tables, mut labelled) = (Tables::new(), Vec::new());
    for node in &nodes {
        let plugs = plugs_of(&config, &plugins, node, &mut tables);
        let never_tried = plugs.iter().filter(|plug| plug.is_labelled);
        labelled.extend(never_tried.map(|plug| format!("{} of {}", plug.method, node.name)));
    }
    Ok(labelled)
}

/// The configuration in force, as the controller reads it, and the plugins that it names.
async fn read(cluster: &KubeCluster, namespace: &str) -> anyhow::Result<(Config, Plugins)> {
    // Nobody listens for changes of what was read once.
    let (changes, _) = mpsc::unbounded_channel();
    let mirror = Caches::new(&changes);
    let (all, own) = (Scope::all(), Scope::within(namespace));
    fill(cluster, &all, &mirror.fences).await.context("failed to list FenceConfigurations")?;
    fill(cluster, &own, &mirror.config_maps).await.context("failed to list ConfigMaps")?;
    match fill(cluster, &all, &mirror.plugins).await {
        // Who may not see them is told of plugins that are built in.
        Ok(()) | Err(ClusterError::Denied(_) | ClusterError::NotFound(_)) => {}
        Err(error) => return Err(error).context("failed to list FencePlugins"),
    }
    let plugins = Plugins::new(Sandbox::new().context("failed to start the sandbox")?);
    plugin_docs::by_objects(&plugins, mirror.plugins.all().values().map(|kept| &kept.0));
    Ok((Config::read(&mirror, &Config::default()).0, plugins))
}

async fn fill<K: Object>(
    cluster: &KubeCluster,
    scope: &Scope,
    store: &Store<Cached<K>>,
) -> Result<(), ClusterError> {
    let (mut objects, mut unread) = (Vec::new(), BTreeMap::new());
    let keep = |read: Read<K>| match read {
        Ok(object) => objects.push((object.name_any().into(), Cached(object))),
        Err(one) => drop(unread.insert(one.name().to_owned(), one)),
    };
    cluster.list_each(scope, keep).await?;
    store.replace(objects, unread);
    Ok(())
}

fn plugs_of(
    config: &Config,
    plugins: &Plugins,
    node: &PrunedNode,
    tables: &mut Tables,
) -> Vec<Bound> {
    let wiring = config.wiring_of(&node.name);
    let find = |plugin: &str| describe::facts_of(plugins, plugin);
    // A node without a plan has no plug; `config show` says why.
    let plan = config.plan_with(node, tables).ok();
    let plan = plan.and_then(|plan| snapshot(&plan, &node.fenced(), &wiring, find).ok());
    let bound = |method: &Method| {
        let facts = method.facts.as_ref()?;
        Some(Bound {
            bound_by: how_bound(method, &wiring, &node.fenced())?,
            method: method.name.clone(),
            device: method.device.clone(),
            plug: method.plug.clone(),
            // No trial could tell whose storage it cuts.
            is_labelled: facts.kind != PluginKind::Storage
                && matches!(facts.binding, Binding::Labelled | Binding::Unverified),
        })
    };
    plan.iter().flat_map(|plan| &plan.methods).filter_map(bound).collect()
}
