//! Tells which nodes could be fenced now: the status of FenceConfigurations, a metric and an Event
//! for each node. It does not ask the devices.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use node_remedy_api::conditions::{Condition, ConditionStatus, FENCE_READY};
use node_remedy_api::fenceconfiguration::{DeviceState, DeviceStatus, FenceConfiguration};
use node_remedy_api::nodefence::FencedNode;
use node_remedy_api::time::Moment;
use node_remedy_context::context::Context;
use node_remedy_context::device_health::{Answer, Path, Place};
use node_remedy_runtime::cluster::{At, Cluster};
use node_remedy_runtime::events::Note;
use node_remedy_runtime::metrics::NodeLabel;
use serde_json::json;

/// A status lists so many devices, those that do not answer first; an object has to stay readable.
const DEVICES_MAX: usize = 1_000;
/// Characters of what a device said.
const DETAIL_MAX: usize = 1_000;
/// Nodes and devices that a condition names.
const NAMED_MAX: usize = 3;

/// Tells what is known of these paths: each process by its metrics, and the one that leads by what it
/// writes, where that changed.
pub async fn tell<C: Cluster>(context: &Context<C>, paths: &[Path]) {
    tell_of_nodes(context, paths).await;
    if !context.leads() {
        return;
    }
    let configurations: Vec<FenceConfiguration> =
        context.caches.fences.all().values().map(|kept| kept.0.clone()).collect();
    for configuration in configurations {
        let source = format!("FenceConfiguration/{}", configuration.name_any());
        let of_it: Vec<&Path> = paths.iter().filter(|one| one.sources.contains(&source)).collect();
        write(context, &configuration, &of_it).await;
    }
}

/// A metric for each node, and an Event where it can be fenced no more, or again.
async fn tell_of_nodes<C: Cluster>(context: &Context<C>, paths: &[Path]) {
    let is_there = |node: &String| paths.iter().any(|path| path.node == *node);
    let gone = |node: &String| !is_there(node);
    let before = context.paths.told.borrow().clone();
    for node in before.keys().filter(|node| gone(node)) {
        context.metrics.fence_ready.remove(&NodeLabel { node: node.clone() });
        context.paths.told.borrow_mut().remove(node);
    }
    for path in paths {
        let Some(answer) = path.state(&context.paths.answers.borrow()) else { continue };
        let label = NodeLabel { node: path.node.clone() };
        let is_ready = answer.state == DeviceState::Active;
        context.metrics.fence_ready.get_or_create(&label).set(i64::from(is_ready));
        let told = context.paths.told.borrow_mut().insert(path.node.clone(), answer.state);
        let was_ready = told.is_none_or(|state| state == DeviceState::Active);
        if was_ready == is_ready || !context.leads() {
            continue;
        }
        let node =
            FencedNode { name: path.node.clone(), uid: path.uid.clone(), ..FencedNode::default() };
        context.tell(&node, &note(&answer)).await;
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

async fn write<C: Cluster>(
    context: &Context<C>,
    configuration: &FenceConfiguration,
    paths: &[&Path],
) {
    let status = configuration.status.clone().unwrap_or_default();
    let before = status.conditions.iter().find(|condition| condition.kind == FENCE_READY);
    let devices = devices(&context.paths.answers.borrow(), paths);
    let now_ms = context.clock.now().0;
    let mut condition = ready(paths, &context.paths.answers.borrow(), &devices, now_ms);
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
    if let Err(error) = context.cluster.merge_status::<FenceConfiguration>(at, &patch).await {
        tracing::debug!(%error, name, "failed to write which devices answer; with the next round");
    }
}

/// A line for each device of each node that was asked, those that do not answer first.
fn devices(answers: &BTreeMap<Place, Answer>, paths: &[&Path]) -> Vec<DeviceStatus> {
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

/// The condition over these nodes and what their devices said. True only where every one of them could
/// be fenced; `devices` are the answers as they are shown.
fn ready(
    paths: &[&Path],
    answers: &BTreeMap<Place, Answer>,
    devices: &[DeviceStatus],
    now_ms: u64,
) -> Condition {
    let nodes = paths.len();
    let planless: Vec<String> = paths
        .iter()
        .filter_map(|path| {
            let why: String = path.places.as_ref().err()?.chars().take(DETAIL_MAX).collect();
            Some(format!("{}: {why}", path.node))
        })
        .collect();
    let dead: Vec<String> = devices
        .iter()
        .filter(|one| one.state == DeviceState::Inactive)
        .map(|one| format!("{} at {}: {}", one.node, one.device, one.detail))
        .collect();
    let (mut all, mut unasked) = (BTreeSet::new(), BTreeSet::new());
    for path in paths {
        for place in path.places.as_deref().unwrap_or_default() {
            let device = (path.node.as_str(), place.device.as_str());
            all.insert(device);
            if !answers.contains_key(place) {
                unasked.insert(device);
            }
        }
    }
    let (status, reason, message) = if nodes == 0 {
        (ConditionStatus::Unknown, "NoNodes", "no node that a policy fences is selected".to_owned())
    } else if !planless.is_empty() || !dead.is_empty() {
        let without = (!planless.is_empty()).then(|| {
            format!("{} of {nodes} nodes without a plan: {}", planless.len(), some(&planless))
        });
        let silent = (!dead.is_empty())
            .then(|| format!("{} of {} INACTIVE: {}", dead.len(), devices.len(), some(&dead)));
        let reason = if without.is_some() { "NoPlan" } else { "Inactive" };
        let text: Vec<String> = without.into_iter().chain(silent).collect();
        (ConditionStatus::False, reason, text.join("; "))
    } else if devices.is_empty() {
        (ConditionStatus::Unknown, "NotProbed", "no device was asked yet".to_owned())
    } else if !unasked.is_empty() {
        let text = format!(
            "{} of {} devices of {nodes} nodes were not asked yet, or said nothing",
            unasked.len(),
            all.len()
        );
        (ConditionStatus::Unknown, "NotProbed", text)
    } else {
        let text = format!("{} devices of {nodes} nodes answer", devices.len());
        (ConditionStatus::True, "Active", text)
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

/// The first few, with a mark where there are more.
fn some(lines: &[String]) -> String {
    let named: Vec<&str> = lines.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if lines.len() > NAMED_MAX { "; …" } else { "" };
    format!("{}{more}", named.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_PLAN: &str = "found node node-c without annotation x, expected one";

    /// The condition over node-a with two devices, node-b with one, and node-c without a plan.
    fn said(nodes: &[&str], answered: &[(&str, bool)]) -> (ConditionStatus, String, String) {
        let place = |device: &str| Place { device: device.to_owned(), plug: "1".to_owned() };
        let path = |node: &&str| Path {
            node: (*node).to_owned(),
            uid: "u".to_owned(),
            sources: Vec::new(),
            places: match *node {
                "node-a" => Ok(vec![place("pdu-1"), place("pdu-2")]),
                "node-b" => Ok(vec![place("bmc-b")]),
                _ => Err(NO_PLAN.to_owned()),
            },
        };
        let paths: Vec<Path> = nodes.iter().map(path).collect();
        let paths: Vec<&Path> = paths.iter().collect();
        let answer = |answers: bool| Answer {
            state: if answers { DeviceState::Active } else { DeviceState::Inactive },
            detail: if answers { "" } else { "no answer" }.to_owned(),
        };
        let answers: BTreeMap<Place, Answer> =
            answered.iter().map(|(device, is_so)| (place(device), answer(*is_so))).collect();
        let condition = ready(&paths, &answers, &devices(&answers, &paths), 7);
        (condition.status, condition.reason, condition.message)
    }

    fn told(
        status: ConditionStatus,
        reason: &str,
        text: &str,
    ) -> (ConditionStatus, String, String) {
        (status, reason.to_owned(), text.to_owned())
    }

    const BOTH: [&str; 2] = ["node-a", "node-b"];
    const ALL: [(&str, bool); 3] = [("pdu-1", true), ("pdu-2", true), ("bmc-b", true)];

    #[test]
    fn a_condition_is_true_only_when_every_device_of_every_node_answered() {
        assert_eq!(
            said(&BOTH, &ALL),
            told(ConditionStatus::True, "Active", "3 devices of 2 nodes answer")
        );
        let some = "2 of 3 devices of 2 nodes were not asked yet, or said nothing";
        assert_eq!(said(&BOTH, &ALL[..1]), told(ConditionStatus::Unknown, "NotProbed", some));
        assert_eq!(said(&BOTH, &ALL[..2]).0, ConditionStatus::Unknown, "node-b was not asked");
        let none = "no device was asked yet";
        assert_eq!(said(&BOTH, &[]), told(ConditionStatus::Unknown, "NotProbed", none));
        assert_eq!(said(&[], &[]).1, "NoNodes");
        // One that does not answer is enough, whatever the others would say.
        let dead = "1 of 1 INACTIVE: node-b at bmc-b: no answer";
        assert_eq!(
            said(&BOTH, &[("bmc-b", false)]),
            told(ConditionStatus::False, "Inactive", dead)
        );
        let dead = "1 of 3 INACTIVE: node-b at bmc-b: no answer";
        let answered = [ALL[0], ALL[1], ("bmc-b", false)];
        assert_eq!(said(&BOTH, &answered), told(ConditionStatus::False, "Inactive", dead));
    }

    #[test]
    fn a_condition_is_not_true_while_a_node_has_no_plan_and_says_why() {
        let three = ["node-a", "node-b", "node-c"];
        let planless = format!("1 of 3 nodes without a plan: node-c: {NO_PLAN}");
        let no_plan = |text: &str| told(ConditionStatus::False, "NoPlan", text);
        assert_eq!(said(&three, &ALL), no_plan(&planless));
        assert_eq!(said(&three, &[]), no_plan(&planless), "before any device was asked, too");
        let dead = format!("{planless}; 1 of 2 INACTIVE: node-b at bmc-b: no answer");
        assert_eq!(said(&three, &[ALL[0], ("bmc-b", false)]), no_plan(&dead));
        let alone = format!("1 of 1 nodes without a plan: node-c: {NO_PLAN}");
        assert_eq!(said(&["node-c"], &[]), no_plan(&alone));
        let many = said(&["node-c"; 5], &[]).2;
        let named = format!("node-c: {NO_PLAN}");
        assert_eq!(many, format!("5 of 5 nodes without a plan: {named}; {named}; {named}; …"));
    }
}
