//! Tells which nodes could be fenced now: the status of FenceConfigurations, a metric and an Event
//! for each node. It does not ask the devices.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use node_remedy_api::conditions::{Condition, ConditionStatus, FENCE_READY};
use node_remedy_api::fenceconfiguration::{DeviceState, DeviceStatus, FenceConfiguration};
use node_remedy_api::nodefence::FencedNode;
use node_remedy_api::time::Moment;
use serde_json::json;

use super::events::Note;
use super::metrics::NodeLabel;
use crate::cluster::{At, Cluster};
use crate::controller::Parts;
use crate::probing::{Answer, Path};

/// A status lists so many devices, those that do not answer first; an object has to stay readable.
const DEVICES_MAX: usize = 1_000;
/// Characters of what a device said.
const DETAIL_MAX: usize = 1_000;
/// Devices that a condition names.
const NAMED_MAX: usize = 3;

/// Tells what is known of these paths: each process by its metrics, and the one that leads by what it
/// writes, where that changed.
pub async fn tell<C: Cluster>(parts: &Parts<C>, paths: &[Path]) {
    tell_of_nodes(parts, paths).await;
    if !parts.leads() {
        return;
    }
    let configurations: Vec<FenceConfiguration> =
        parts.mirror.fences.all().values().map(|kept| kept.0.clone()).collect();
    for configuration in configurations {
        let source = format!("FenceConfiguration/{}", configuration.name_any());
        let of_it: Vec<&Path> = paths.iter().filter(|one| one.sources.contains(&source)).collect();
        write(parts, &configuration, &of_it).await;
    }
}

/// A metric for each node, and an Event where it can be fenced no more, or again.
async fn tell_of_nodes<C: Cluster>(parts: &Parts<C>, paths: &[Path]) {
    let is_there = |node: &String| paths.iter().any(|path| path.node == *node);
    let gone = |node: &String| !is_there(node);
    let before = parts.paths.told.borrow().clone();
    for node in before.keys().filter(|node| gone(node)) {
        parts.metrics.fence_ready.remove(&NodeLabel { node: node.clone() });
        parts.paths.told.borrow_mut().remove(node);
    }
    for path in paths {
        let Some(answer) = path.state(&parts.paths.answers.borrow()) else { continue };
        let label = NodeLabel { node: path.node.clone() };
        let is_ready = answer.state == DeviceState::Active;
        parts.metrics.fence_ready.get_or_create(&label).set(i64::from(is_ready));
        let told = parts.paths.told.borrow_mut().insert(path.node.clone(), answer.state);
        let was_ready = told.is_none_or(|state| state == DeviceState::Active);
        if was_ready == is_ready || !parts.leads() {
            continue;
        }
        let node =
            FencedNode { name: path.node.clone(), uid: path.uid.clone(), ..FencedNode::default() };
        parts.tell(&node, &note(&answer)).await;
    }
}

fn note(answer: &Answer) -> Note {
    match answer.state {
        DeviceState::Active => Note {
            reason: "FencePathActive".to_owned(),
            text: "its devices answer again".to_owned(),
            warning: false,
        },
        DeviceState::Inactive => Note {
            reason: "FencePathInactive".to_owned(),
            text: format!("it could not be fenced now: {}", answer.detail),
            warning: true,
        },
    }
}

async fn write<C: Cluster>(parts: &Parts<C>, configuration: &FenceConfiguration, paths: &[&Path]) {
    let status = configuration.status.clone().unwrap_or_default();
    let before = status.conditions.iter().find(|condition| condition.kind == FENCE_READY);
    let devices = devices(parts, paths);
    let mut condition = ready(paths.len(), &devices, parts.clock.now().0);
    condition.observed_generation = configuration.metadata.generation;
    if let Some(before) = before.filter(|before| before.status == condition.status) {
        condition.last_transition_time = before.last_transition_time;
    }
    let shown: Vec<&DeviceStatus> = devices.iter().take(DEVICES_MAX).collect();
    let is_said = shown.iter().copied().eq(status.devices.iter());
    if is_said && before == Some(&condition) {
        return;
    }
    let others = status.conditions.iter().filter(|one| one.kind != FENCE_READY);
    let conditions: Vec<&Condition> = others.chain([&condition]).collect();
    let patch = json!({"status": {"conditions": conditions, "devices": shown}});
    let name = configuration.name_any();
    let at = At::cluster(&name);
    if let Err(error) = parts.cluster.merge_status::<FenceConfiguration>(at, &patch).await {
        tracing::debug!(%error, name, "failed to write which devices answer; with the next round");
    }
}

/// A line for each device of each node that was asked, those that do not answer first.
fn devices<C: Cluster>(parts: &Parts<C>, paths: &[&Path]) -> Vec<DeviceStatus> {
    let answers = parts.paths.answers.borrow();
    let line = |node: &str, device: &str, answer: &Answer| DeviceStatus {
        node: node.to_owned(),
        device: device.to_owned(),
        state: answer.state,
        detail: answer.detail.chars().take(DETAIL_MAX).collect(),
    };
    let mut lines = Vec::new();
    for path in paths {
        let places = path.places.as_deref().unwrap_or_default();
        let known = places.iter().filter_map(|place| Some((place, answers.get(place)?)));
        let mut of_node: BTreeMap<&str, DeviceStatus> = BTreeMap::new();
        for (place, answer) in known {
            let line = line(&path.node, &place.device, answer);
            // Of two plugs on one device the one that cannot be had counts.
            let kept = of_node.entry(&place.device).or_insert_with(|| line.clone());
            if kept.state < line.state {
                *kept = line;
            }
        }
        lines.extend(of_node.into_values());
    }
    lines.sort_by(|a, b| (b.state, &a.node, &a.device).cmp(&(a.state, &b.node, &b.device)));
    lines
}

/// The condition over so many nodes and what their devices said.
fn ready(nodes: usize, devices: &[DeviceStatus], now_ms: u64) -> Condition {
    let dead: Vec<&DeviceStatus> =
        devices.iter().filter(|one| one.state == DeviceState::Inactive).collect();
    let (status, reason, message) = if nodes == 0 {
        (ConditionStatus::Unknown, "NoNodes", "no node that a policy fences is selected".to_owned())
    } else if devices.is_empty() {
        (ConditionStatus::Unknown, "NotProbed", "no device was asked yet".to_owned())
    } else if dead.is_empty() {
        let text = format!("{} devices of {nodes} nodes answer", devices.len());
        (ConditionStatus::True, "Active", text)
    } else {
        let named = dead.iter().take(NAMED_MAX);
        let named: Vec<String> =
            named.map(|one| format!("{} at {}: {}", one.node, one.device, one.detail)).collect();
        let more = if dead.len() > NAMED_MAX { "; …" } else { "" };
        let text =
            format!("{} of {} INACTIVE: {}{more}", dead.len(), devices.len(), named.join("; "));
        (ConditionStatus::False, "Inactive", text)
    };
    Condition {
        kind: FENCE_READY.to_owned(),
        status,
        reason: reason.to_owned(),
        message,
        last_transition_time: Moment::from_ms(now_ms),
        observed_generation: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_says_how_many_and_which() {
        let line = |node: &str, state| DeviceStatus {
            node: node.to_owned(),
            device: format!("{node}-bmc"),
            state,
            detail: if state == DeviceState::Active { "" } else { "no answer" }.to_owned(),
        };
        let active = line("node-b", DeviceState::Active);
        let dead = line("node-a", DeviceState::Inactive);
        let said = |nodes, devices: &[DeviceStatus]| {
            let condition = ready(nodes, devices, 7);
            (condition.status, condition.reason, condition.message)
        };
        let told = |status, reason: &str, text: &str| (status, reason.to_owned(), text.to_owned());
        assert_eq!(
            said(2, std::slice::from_ref(&active)),
            told(ConditionStatus::True, "Active", "1 devices of 2 nodes answer")
        );
        assert_eq!(
            said(2, &[dead, active]),
            told(
                ConditionStatus::False,
                "Inactive",
                "1 of 2 INACTIVE: node-a at node-a-bmc: no answer"
            )
        );
        assert_eq!(said(2, &[]).0, ConditionStatus::Unknown);
        assert_eq!(said(0, &[]).1, "NoNodes");
    }
}
