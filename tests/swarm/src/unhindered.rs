//! Which lost nodes of a scenario nothing holds up in the end: they have to be well then, whatever a person is told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::Scenario;
use node_remedy_world::api::Kind;
use node_remedy_world::scenario::{Document, Event, Fault, NodeSpec};
use serde_json::Value;

/// Long enough for every pause between tries.
const AFTERMATH: Duration = Duration::from_hours(1);

/// What ends every fault of a device.
const NO_FAULT: &str = "none";

/// What has a fault at the end of a scenario: nodes for their BMC or cloud, PDUs and switches by their names.
pub(crate) fn faulty(scenario: &Scenario) -> BTreeSet<String> {
    let mut faults: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for device in &scenario.devices {
        let named = device.faults.iter().map(|(fault, _)| fault.as_str());
        faults.insert(&device.name, named.collect());
    }
    for node in &scenario.nodes {
        let is_well = node.bmc.as_ref().is_none_or(|bmc| is_default(&bmc.faults))
            && node.cloud.as_ref().is_none_or(|cloud| is_default(&cloud.faults));
        if !is_well {
            faults.entry(&node.name).or_default().insert("from the start");
        }
    }
    for Fault { what, .. } in in_order(scenario) {
        let (Event::BmcFault { node: of, fault, value }
        | Event::CloudFault { node: of, fault, value }
        | Event::DeviceFault { device: of, fault, value }) = what
        else {
            continue;
        };
        let its = faults.entry(of).or_default();
        if fault == NO_FAULT {
            its.clear();
        } else if *value == 0 {
            its.remove(fault.as_str());
        } else {
            its.insert(fault);
        }
    }
    let faulty = faults.into_iter().filter(|(_, its)| !its.is_empty());
    faulty.map(|(of, _)| of.to_owned()).collect()
}

/// What hits the cluster, in order of time; what waits for something counts from the start.
fn in_order(scenario: &Scenario) -> Vec<&Fault> {
    let mut faults: Vec<&Fault> = scenario.faults.iter().collect();
    faults.sort_by_key(|one| one.at);
    faults
}

/// The lost node of a scenario, if only one is lost, its power can be switched at the end, no person wants it otherwise, and an
/// hour is left.
pub(crate) fn unhindered(scenario: &Scenario) -> BTreeSet<String> {
    let mut lost = scenario.faults.iter().filter_map(|one| loses(&one.what));
    let Some(node) = lost.next() else { return BTreeSet::new() };
    let last = scenario.faults.iter().map(|one| one.at).max().unwrap_or_default();
    let is_alone = lost.all(|other| other == node);
    let is_free = scenario.faults.iter().all(|one| holds_nothing_up(&one.what));
    let is_over = last.saturating_add(AFTERMATH) <= scenario.duration;
    let spec = scenario.nodes.iter().find(|one| one.name == node);
    let has_power = spec.is_some_and(|spec| has_power(scenario, spec));
    let is_unhindered = is_alone && is_free && is_over && has_power && !stays_away(scenario);
    is_unhindered.then(|| node.to_owned()).into_iter().collect()
}

/// Whether a network is lost until the end: no power cycle brings such a node back.
fn stays_away(scenario: &Scenario) -> bool {
    let is_lost = |one: &Event| matches!(one, Event::NetworkLost(_));
    let about_it = |one: &&Event| is_lost(one) || matches!(one, Event::NodeComesBack(_));
    let faults = in_order(scenario);
    faults.iter().map(|one| &one.what).rfind(about_it).is_some_and(is_lost)
}

fn loses(what: &Event) -> Option<&str> {
    if let Event::KubeletStops(node) | Event::NetworkLost(node) | Event::MachineHangs(node) = what {
        return Some(node);
    }
    None
}

/// Whether it is over by itself, or a fault, and nothing that somebody wants. A Secret that is removed is taken to be made
/// again, and a cut that somebody undoes is no reason to leave its machine as it is.
fn holds_nothing_up(what: &Event) -> bool {
    if let Event::Edit { key, .. } | Event::Remove { key } = what {
        return matches!(key.kind, Kind::Secret | Kind::NetworkFence);
    }
    let is_fault = matches!(
        what,
        Event::BmcFault { .. } | Event::DeviceFault { .. } | Event::CloudFault { .. }
    );
    let is_symptom = matches!(what, Event::NodeCondition { .. } | Event::NodeEvent { .. });
    let passes = matches!(what, Event::NodeComesBack(_) | Event::OfController(_));
    loses(what).is_some() || is_fault || is_symptom || passes
}

/// Whether each stage of the power management of a node's FenceConfigurations can be done with what has no fault in the
/// end.
fn has_power(scenario: &Scenario, node: &NodeSpec) -> bool {
    let is_its = |one: &&Document| {
        let selector = one.object.pointer("/spec/nodeSelector").and_then(Value::as_str);
        let label = selector.unwrap_or_default().split_once('=').unwrap_or_default();
        let is_fence = text(&one.object, "kind") == Some("FenceConfiguration");
        is_fence && node.labels.iter().any(|(key, value)| (key.as_str(), value.as_str()) == label)
    };
    let faulty = faulty(scenario);
    let is_sound = |plugin: &str| match plugin {
        "ipmi" | "redfish" => node.bmc.is_some() && !faulty.contains(&node.name),
        pdu if pdu.ends_with("-pdu") => {
            node.feeds.iter().all(|feed| !faulty.contains(&feed.device))
        }
        _ => false,
    };
    let is_possible = |fence: &Document, stage: &Value| {
        let names = list(stage, "/methods").iter().filter_map(Value::as_str);
        let mut methods = names.map(|name| plugin(&fence.object, name).is_some_and(is_sound));
        if text(stage, "run") == Some("only-one") {
            methods.any(|one| one)
        } else {
            methods.all(|one| one)
        }
    };
    let fences = scenario.configuration.iter().filter(is_its);
    let stages = fences.flat_map(|fence| {
        list(&fence.object, "/spec/powerManagement").iter().map(move |stage| (fence, stage))
    });
    let mut stages = stages.peekable();
    stages.peek().is_some() && stages.all(|(fence, stage)| is_possible(fence, stage))
}

/// The plugin of a method, which its template may say.
fn plugin<'f>(fence: &'f Value, method: &str) -> Option<&'f str> {
    let named =
        |at: &str, name: &str| list(fence, at).iter().find(|one| text(one, "name") == Some(name));
    let method = named("/spec/methods", method)?;
    let template = || named("/spec/templates", text(method, "template")?);
    text(method, "plugin").or_else(|| text(template()?, "plugin"))
}

fn text<'v>(one: &'v Value, key: &str) -> Option<&'v str> {
    one.get(key)?.as_str()
}

fn list<'v>(one: &'v Value, at: &str) -> &'v [Value] {
    one.pointer(at).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn is_default<T: Default + PartialEq>(one: &T) -> bool {
    *one == T::default()
}
