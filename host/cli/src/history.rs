//! `history`: incidents that are over or go on, how long each step took and what was released; and
//! which pods were released from the nodes that failed again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::time::{Moment, Span};
use node_remedy_device_cli::args::{ClusterArgs, Output};
use node_remedy_device_cli::output::{out, outln};
use node_remedy_record::sentences::count_of;
use node_remedy_record::workload::workload;
use node_remedy_runtime::cluster::kube::KubeCluster;
use serde::Serialize;

use crate::operator::{incidents, reason, word};

/// `history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Only this node
    #[arg(value_name = "NODE")]
    pub node: Option<String>,
    /// Which pods were on nodes that failed, most often first
    #[arg(long)]
    pub pods: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// One incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Past {
    incident: String,
    node: String,
    condition: String,
    status: String,
    remedy: String,
    opened_at: Moment,
    /// From the opening to the last transition.
    lasted: Span,
    /// Ended how, parked why, or in which phase.
    outcome: String,
    /// What plugins that are remedies decided, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decided: Vec<String>,
    /// How long each phase took that has ended, in the order they were first entered.
    phases: Vec<(String, Span)>,
    proof: Option<String>,
    /// Whose word the proof is.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed_by: Option<String>,
    pods: Vec<String>,
    attachments: usize,
}

/// A workload whose pods were released from nodes that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct OnFailedNodes {
    /// `namespace/name`; what a ReplicaSet or a Job makes is one under its name.
    pods: String,
    incidents: usize,
    nodes: BTreeSet<String>,
    last: Moment,
}

/// Prints what has happened, the latest last.
pub async fn history(args: &HistoryArgs) -> anyhow::Result<ExitCode> {
    let cluster = KubeCluster::connect(args.cluster.kubeconfig.as_deref()).await?;
    let mut all = incidents(&cluster).await?;
    all.retain(|one| args.node.as_ref().is_none_or(|node| one.spec.node.name == *node));
    let mut past: Vec<Past> = all.iter().filter_map(past).collect();
    past.sort_by_key(|one| one.opened_at);
    match (args.output, args.pods) {
        (Output::Json, false) => outln!("{}", serde_json::to_string_pretty(&past)?),
        (Output::Json, true) => {
            outln!("{}", serde_json::to_string_pretty(&on_failed_nodes(&past))?);
        }
        (Output::Text, _) if past.is_empty() => outln!("no incidents"),
        (Output::Text, false) => past.iter().try_for_each(|one| {
            out!("{}", told(one));
            anyhow::Ok(())
        })?,
        (Output::Text, true) => out!("{}", table(&on_failed_nodes(&past))),
    }
    Ok(ExitCode::SUCCESS)
}

/// An incident with a record.
fn past(incident: &NodeFence) -> Option<Past> {
    let status = incident.status.as_ref()?;
    let mut phases: Vec<(String, Span)> = Vec::new();
    for pair in status.history.windows(2) {
        let [from, to] = pair else { continue };
        let (name, took) = (word(&from.phase), Span::from_ms(to.at.ms.saturating_sub(from.at.ms)));
        match phases.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => sum.ms = sum.ms.saturating_add(took.ms),
            None => phases.push((name, took)),
        }
    }
    let released = status.released.as_ref();
    let pods = released.map(|released| {
        released.pods.iter().map(|pod| format!("{}/{}", pod.namespace, pod.name)).collect()
    });
    let outcome = match (&status.parked, status.final_reason) {
        (_, Some(ended)) => word(&ended),
        (Some(parked), None) => format!("parked, {}", reason(&parked.why)),
        (None, None) => format!("open, {}", word(&status.phase)),
    };
    Some(Past {
        incident: incident.name_any(),
        node: incident.spec.node.name.clone(),
        condition: incident.spec.trigger.condition_type.clone(),
        status: incident.spec.trigger.status.clone(),
        remedy: incident.spec.remedy.clone(),
        opened_at: status.opened_at,
        lasted: Span::from_ms(status.entered_at.ms.saturating_sub(status.opened_at.ms)),
        outcome,
        decided: status
            .decisions
            .iter()
            .filter_map(|one| Some(one.choice.as_ref()?.to_string()))
            .collect(),
        phases,
        proof: status.proof.as_ref().map(|proof| word(&proof.grade)),
        confirmed_by: status.proof.as_ref().and_then(|proof| proof.by.person.clone()),
        pods: pods.unwrap_or_default(),
        attachments: released.map_or(0, |released| released.attachments.len()),
    })
}

fn told(past: &Past) -> String {
    let Past { incident, node, condition, status, remedy, opened_at, lasted, outcome, .. } = past;
    let mut out = format!(
        "{opened_at} {incident}: {outcome} after {lasted} ({condition} {status} on {node}, \
         remedy {remedy})\n"
    );
    let phases: Vec<String> =
        past.phases.iter().map(|(name, took)| format!("{name} {took}")).collect();
    if !phases.is_empty() {
        let _ = writeln!(out, "  took: {}", phases.join(", "));
    }
    if !past.decided.is_empty() {
        let _ = writeln!(out, "  decided: {}", past.decided.join(", "));
    }
    if let Some(grade) = &past.proof {
        let (pods, attachments) =
            (count_of(past.pods.len(), "pod"), count_of(past.attachments, "attachment"));
        let by = past.confirmed_by.as_ref().map(|by| format!(" by the word of {by}"));
        let by = by.unwrap_or_default();
        let names = if past.pods.is_empty() { "" } else { ": " };
        let pods_by_name = past.pods.join(", ");
        let _ = writeln!(
            out,
            "  released behind {grade}{by}: {pods}, {attachments}{names}{pods_by_name}"
        );
    }
    out
}

/// Which workloads were on nodes that failed, most often first.
fn on_failed_nodes(past: &[Past]) -> Vec<OnFailedNodes> {
    let mut found: BTreeMap<String, OnFailedNodes> = BTreeMap::new();
    for one in past {
        let workloads: BTreeSet<String> = one.pods.iter().map(|pod| workload(pod)).collect();
        for pods in workloads {
            let entry = found.entry(pods.clone()).or_insert_with(|| OnFailedNodes {
                pods,
                incidents: 0,
                nodes: BTreeSet::new(),
                last: one.opened_at,
            });
            entry.incidents = entry.incidents.saturating_add(1);
            entry.nodes.insert(one.node.clone());
            entry.last = entry.last.max(one.opened_at);
        }
    }
    let mut found: Vec<OnFailedNodes> = found.into_values().collect();
    found.sort_by(|a, b| b.incidents.cmp(&a.incidents).then_with(|| a.pods.cmp(&b.pods)));
    found
}

fn table(all: &[OnFailedNodes]) -> String {
    let mut out = format!("{:<9} {:<26} {:<40} {}\n", "INCIDENTS", "LAST", "PODS", "NODES");
    for one in all {
        let nodes = one.nodes.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let last = one.last.to_string();
        let _ = writeln!(out, "{:<9} {last:<26} {:<40} {nodes}", one.incidents, one.pods);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use node_remedy_model_cluster::interceptor::Open;
    use node_remedy_simulate::testing::{example, play_behind};

    /// The incident of a played run.
    fn played() -> NodeFence {
        let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
        played.collected.incidents.into_values().next().unwrap().0
    }

    #[test]
    fn an_incident_is_told_with_its_steps_and_what_was_released() {
        let past = past(&played()).unwrap();
        assert_eq!(past.outcome, "Remedied");
        assert!(!past.pods.is_empty() && past.proof.as_deref() == Some("power-off-verified"));
        let sum: u64 = past.phases.iter().map(|(_, took)| took.ms).sum();
        assert_eq!(Span::from_ms(sum), past.lasted, "{:?}", past.phases);
        let told = told(&past);
        for part in ["Remedied after ", "took: ", "AwaitingHealthy ", "released behind power-off"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn the_workload_that_is_always_there_stands_first() {
        let first = past(&played()).unwrap();
        let names = |pods: &[&str]| pods.iter().map(|pod| (*pod).to_owned()).collect();
        let one = Past { pods: names(&["a/web-7d4b9c6f5-x2x7k", "a/db-0"]), ..first.clone() };
        let two = Past {
            pods: names(&["a/web-7d4b9c6f5-bbbbb", "a/web-7d4b9c6f5-ccccc"]),
            node: "another".to_owned(),
            ..first
        };
        let found = on_failed_nodes(&[one, two]);
        let rows: Vec<(&str, usize, usize)> =
            found.iter().map(|one| (one.pods.as_str(), one.incidents, one.nodes.len())).collect();
        assert_eq!(rows, [("a/web", 2, 2), ("a/db-0", 1, 1)]);
    }

    #[test]
    fn only_what_kubernetes_drew_is_no_part_of_a_name() {
        for (pod, name) in [
            ("a/db-0", "a/db-0"),
            ("a/web-7d4b9c6f5-x2x7k", "a/web"),
            ("a/job-x2x7k", "a/job"),
            ("a/my-cache", "a/my-cache"),
            ("a/node-exporter", "a/node-exporter"),
            ("a/plain", "a/plain"),
        ] {
            assert_eq!(workload(pod), name, "{pod}");
        }
    }
}
