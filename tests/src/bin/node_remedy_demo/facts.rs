//! What can be known from outside right now, each fact in words under a name of its own.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{Api, ListParams};
use node_remedy_tests::Cluster;
use node_remedy_tests::cluster::{is_running, ready_status};
use node_remedy_tests::ipmi::{Power, PowerChange, PowerEvent};
use node_remedy_tests::remedy::{self, status};

/// Facts by lane and subject.
pub(crate) type Facts = BTreeMap<(&'static str, String), String>;

/// Everything about this node and the database.
pub(crate) async fn look(cluster: &Cluster, node: &str) -> Result<Facts> {
    let mut facts = Facts::new();
    let object = cluster.node(node).await?;
    let ready = ready_status(&object).unwrap_or("missing");
    facts.insert(("node", node.to_owned()), format!("Ready {ready}"));
    let taints = object.spec.and_then(|spec| spec.taints).into_iter().flatten();
    let taints: Vec<_> =
        taints.map(|taint| format!("{}:{}", short(&taint.key), taint.effect)).collect();
    if !taints.is_empty() {
        facts.insert(("node", format!("{node}'s taints")), taints.join(", "));
    }
    if let Some(pod) = cluster.pod("db-0").await? {
        facts.insert(("workload", "db-0".to_owned()), pod_in_words(&pod));
    }
    let attachments = Api::<VolumeAttachment>::all(cluster.client());
    for attachment in attachments.list(&ListParams::default()).await? {
        let is_attached = attachment.status.is_some_and(|status| status.attached);
        let state = match (attachment.metadata.deletion_timestamp.is_some(), is_attached) {
            (true, _) => "being detached from",
            (false, true) => "attached to",
            (false, false) => "being attached to",
        };
        let volume = attachment.spec.source.persistent_volume_name.unwrap_or_default();
        let words = format!("{state} {}", attachment.spec.node_name);
        facts.insert(("workload", volume), words);
    }
    let bmc = cluster.bmc(node)?;
    // Every read would be a line; the last word on the power is what counts.
    for event in bmc.log()? {
        facts.insert(("device", bmc_subject(&event)), power_in_words(&event));
    }
    if let Some(incident) = incident(cluster, node).await? {
        facts.insert(("controller", node.to_owned()), incident);
    }
    Ok(facts)
}

/// A taint's key without whose it is: two would not fit into a line.
fn short(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

fn pod_in_words(pod: &Pod) -> String {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or("no node");
    if pod.metadata.deletion_timestamp.is_some() {
        return format!("Terminating on {node}");
    }
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let ready = if is_running(pod) { ", Ready" } else { "" };
    format!("{}{ready} on {node}", phase.unwrap_or("without phase"))
}

fn bmc_subject(event: &PowerEvent) -> String {
    match event.what {
        PowerChange::Read => "BMC, read".to_owned(),
        PowerChange::Asked => "BMC, asked".to_owned(),
        PowerChange::Became => "machine".to_owned(),
    }
}

fn power_in_words(event: &PowerEvent) -> String {
    let power = match event.power {
        Power::On => "on",
        Power::Off => "off",
    };
    match event.what {
        PowerChange::Read => format!("says that power is {power}"),
        PowerChange::Asked => format!("for power {power}"),
        PowerChange::Became => format!("power {power}"),
    }
}

/// The NodeFence's own words.
async fn incident(cluster: &Cluster, node: &str) -> Result<Option<String>> {
    // Before node-remedy is installed its kinds are unknown to the API server.
    let Ok(found) = remedy::incident(&cluster.client(), node).await else { return Ok(None) };
    Ok(found.map(|incident| {
        let word = |pointer| status(&incident, pointer).as_str().unwrap_or_default().to_owned();
        let grade = status(&incident, "/proof/grade").as_str().map(str::to_owned);
        let proof = grade.map(|grade| format!(", proof {grade}")).unwrap_or_default();
        match word("/phase").as_str() {
            "" => "NodeFence created".to_owned(),
            phase => format!("{phase} {}{proof}", word("/step")),
        }
    }))
}
