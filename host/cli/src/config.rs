//! `config show`: what is in force for one node, and where each value comes from. It reads what a
//! controller reads, from the cluster or from files, and calls no device.

pub mod shown;
pub mod text;
pub mod witness;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use node_remedy_api::document::{Document, Tree};
use node_remedy_api::fenceconfiguration::FenceConfiguration;
use node_remedy_api::fenceplugin::FencePlugin;
use node_remedy_api::limits::DOCUMENT_BYTES_MAX;
use node_remedy_api::remedyconfiguration::RemedyConfiguration;
use node_remedy_device_cli::args::Output;
use node_remedy_device_cli::files::read_text;
use node_remedy_device_cli::output::{complain, out, outln};
use node_remedy_observe::config::json;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_runtime::cluster::kube::KubeCluster;
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{At, Cluster as _, Object, Scope};
use node_remedy_sandbox::{Sandbox, SystemNames};
use node_remedy_store::store::Plugins;

use crate::args::ConfigShowArgs;
use crate::config::shown::Shown;

/// Everything that `config show` looks at.
struct Looked {
    node: PrunedNode,
    /// Everything but the node.
    documents: Vec<Document>,
}

/// Shows one node.
pub async fn show(args: &ConfigShowArgs) -> anyhow::Result<ExitCode> {
    let looked = if args.files.is_empty() { from_cluster(args).await? } else { from_files(args)? };
    let plugins = Plugins::new(Sandbox::new().context("failed to start the sandbox")?);
    let shown = Shown::of(&looked.node, &looked.documents, &plugins, &SystemNames).await;
    match args.output {
        Output::Json => outln!("{}", serde_json::to_string_pretty(&shown)?),
        Output::Text => out!("{shown}"),
    }
    Ok(if shown.missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn from_cluster(args: &ConfigShowArgs) -> anyhow::Result<Looked> {
    let cluster = KubeCluster::connect(args.cluster.kubeconfig.as_deref()).await?;
    let node = cluster.get::<Node>(At::cluster(&args.node)).await?;
    let Some(node) = node.and_then(PrunedNode::of) else {
        bail!("there is no node {:?}; see: kubectl get nodes", args.node)
    };
    let mut documents = Vec::new();
    let all = Scope::all();
    documents.extend(listed::<RemedyConfiguration>(&cluster, &all, "RemedyConfiguration").await?);
    documents.extend(listed::<FenceConfiguration>(&cluster, &all, "FenceConfiguration").await?);
    match listed::<FencePlugin>(&cluster, &all, "FencePlugin").await {
        Ok(plugins) => documents.extend(plugins),
        // Who uses none need not be allowed to see them.
        Err(error) => complain(format_args!("plugins from outside are not known: {error:#}")),
    }
    let own = Scope::within(&args.cluster.namespace);
    documents.extend(listed::<ConfigMap>(&cluster, &own, "ConfigMap").await?);
    Ok(Looked { node, documents })
}

async fn listed<K: Object>(
    cluster: &KubeCluster,
    scope: &Scope,
    kind: &str,
) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    let keep = |read: Read<K>| {
        let object = match &read {
            Ok(object) => json(kind, object),
            Err(unread) => json(kind, unread.object()),
        };
        documents.push(Document::from_object(&object));
    };
    let listed = cluster.list_each(scope, keep).await;
    listed.with_context(|| format!("failed to list {kind}s"))?;
    Ok(documents)
}

fn from_files(args: &ConfigShowArgs) -> anyhow::Result<Looked> {
    let (mut node, mut documents) = (None, Vec::new());
    let mut is_broken = false;
    for file in &args.files {
        let name = file.display().to_string();
        let text = read_text(file, DOCUMENT_BYTES_MAX)
            .with_context(|| format!("failed to read {name}"))?;
        let reading = Document::read_all(&name, &text);
        if reading.problems.has_errors() {
            complain(format_args!("{}", reading.problems));
            is_broken = true;
        }
        let read = reading.value.unwrap_or_default();
        for document in read.into_iter().flat_map(Document::items) {
            if document.root.get("kind").and_then(Tree::text) != Some("Node") {
                documents.push(document);
            } else if is_named(&document, &args.node) {
                node = Some(node_of(&document)?);
            }
        }
    }
    if is_broken {
        bail!("nothing is shown of files that are not YAML");
    }
    let Some(node) = node else {
        bail!(
            "found no Node {name} in the files, expected one; try: kubectl get node {name} -o yaml",
            name = args.node
        )
    };
    Ok(Looked { node, documents })
}

fn is_named(document: &Document, name: &str) -> bool {
    let metadata = document.metadata();
    metadata.and_then(|metadata| metadata.get("name")).and_then(Tree::text) == Some(name)
}

/// A Node that somebody wrote may have no UID; what is shown does not depend on it.
fn node_of(document: &Document) -> anyhow::Result<PrunedNode> {
    let origin = &document.origin;
    let mut node: Node = serde_json::from_value(document.root.to_json())
        .with_context(|| format!("{origin}: found a Node that cannot be read"))?;
    node.metadata.uid.get_or_insert_default();
    PrunedNode::of(node).with_context(|| format!("{origin}: found a Node without a name"))
}

#[cfg(test)]
mod tests;
