//! What the core is shown of an open incident.

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::plan::{Method, NodePlan};
use node_remedy_config::plan::gate_policy_of;
use node_remedy_config::symptoms::threshold_of;
use node_remedy_context::context::Context;
use node_remedy_decide as decide;
use node_remedy_decide::bug::{Bug, is_seeded};
use node_remedy_decide::{People, Time, View};
use node_remedy_observe::config::Tables;
use node_remedy_observe::live::Facts;
use node_remedy_observe::nodefences::is_approved;
use node_remedy_observe::offs::is_labelled_outlet;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_observe::view::{gate_view, node_view, note_symptom, view};
use node_remedy_observe::{claims, device_quarantine, kdump, pins, vetoes};
use node_remedy_runtime::cluster::Cluster;

use crate::state::Incident;

/// The view of an open incident.
pub fn of_incident<C: Cluster>(incident: &Incident<C>, facts: &Facts) -> View {
    let context = &incident.context;
    let now = context.clock.now();
    let spec = &incident.nodefence.spec;
    let threshold = threshold_of(&spec.trigger);
    let node = facts.node.as_ref().map(|node| {
        let (lease, events) = (facts.lease.as_ref(), facts.events.as_deref());
        node_view(node, lease, events, &context.caches, &context.clock)
    });
    let trigger = node
        .as_ref()
        .map_or(decide::Crossing::Unclear, |node| decide::crossed(node, &threshold, now));
    let mut gate = gate_view(
        &context.caches,
        &context.clock,
        &spec.gate,
        &spec.node.name,
        Some(&incident.name()),
    );
    gate.held_by.clone_from(&incident.locked_by);
    let lost = context.caches.not_followed();
    gate.not_followed = (!lost.is_empty()).then(|| lost.join(", "));
    note_symptom(&mut gate, node.as_ref(), &trigger);
    // Released pods may still run in this boot, so it has to end although no sign is left.
    let released = incident.nodefence.status.as_ref().and_then(|status| status.first_released_at);
    gate.symptom_since = gate.symptom_since.or(released.map(|at| Time(at.ms)));
    gate.vetoes = match &facts.node {
        Some(seen) => {
            vetoes::of_node(&facts.live, seen, &context.caches.changes, &spec.gate, &context.clock)
        }
        None => vetoes::of_gone(&facts.live, &spec.node.name, &spec.gate, now),
    };
    gate.closed_device =
        device_quarantine::device_of(&spec.plan, &context.caches, Some(&incident.name()));
    let named = facts.node.as_ref().filter(|node| node.uid == spec.node.uid);
    gate.disputed = match named {
        Some(node) => disputed(context, &spec.plan, node),
        None if is_seeded(Bug::GoneCutAgain) => None,
        None => {
            claims::given_to_another(&spec.plan, &spec.node, context.caches.nodes.all().values())
        }
    };
    gate.unverified = unverified(incident);
    gate.storage.clone_from(&incident.storage);
    let policy = gate_policy_of(&spec.gate);
    let hosts_us = context.host_node.as_deref() == Some(spec.node.name.as_str());
    let looked = view(facts, &incident.volumes, node, trigger, decide::gate(&policy, &gate, now));
    let is_another_machine = facts.node.as_ref().is_some_and(|node| {
        node.uid != spec.node.uid && pins::is_another(&spec.node.system_uuid, node)
    });
    let dump = kdump::seen(&context.dumps, &context.clock, facts);
    let people = people_of(incident);
    let reached_elsewhere = is_reached_elsewhere(incident);
    let job = incident.job.clone();
    let fence_is_due = crate::fence_due::is_fence_due(incident, facts, looked.node.as_ref());
    View {
        is_another_machine,
        hosts_us,
        reached_elsewhere,
        dump,
        people,
        job,
        fence_is_due,
        ..looked
    }
}

/// Why a pinned plan may cut another Node's machine.
pub fn disputed<C: Cluster>(
    context: &Context<C>,
    plan: &NodePlan,
    node: &PrunedNode,
) -> Option<String> {
    let (config, nodes) = (context.config.borrow(), context.caches.nodes.all());
    let present = config.plan_with(node, &mut Tables::new());
    // A configuration that is gone or invalid corrects nothing.
    let is_outlet = |method: &Method| {
        // What cannot be told may be one.
        let facts = method.plugin.as_deref().map(|plugin| context.calls.facts_of(plugin));
        facts.is_some_and(|facts| facts.map_or(true, |facts| facts.is_outlet()))
    };
    let corrected = || claims::corrected(plan, &present.ok()?, is_outlet);
    let changed = config.pin_changed(node).or_else(corrected);
    let rival = || context.claims().rival(&node.name, plan);
    changed.or_else(rival).or_else(|| claims::claimed(plan, node, nodes.values()))
}

/// Whether another process says that it reaches the device that is waited for.
pub fn is_reached_elsewhere<C: Cluster>(incident: &Incident<C>) -> bool {
    let kept = incident.context.caches.nodefences.find(&incident.name());
    kept.is_some_and(|kept| {
        node_remedy_probe::reached_elsewhere::is_reached_elsewhere(&incident.context, &kept.0)
    })
}

/// What people said of an incident and still stands.
pub fn people_of<C: Cluster>(incident: &Incident<C>) -> People {
    let kept = incident.context.caches.nodefences.find(&incident.name());
    let is_same = |nodefence: &NodeFence| nodefence.uid() == incident.nodefence.uid();
    People { approved: kept.is_some_and(|kept| is_same(&kept.0) && is_approved(&kept.0)) }
}

/// The node whose off has to be proven before this one's plugs of the same device are switched.
pub fn unverified<C: Cluster>(incident: &Incident<C>) -> Option<String> {
    let methods = incident.plan.methods.iter().filter(|method| is_labelled_outlet(method));
    let devices: BTreeSet<&str> = methods.map(|method| method.device.as_str()).collect();
    let context = &incident.context;
    context.unproven.in_the_way(incident.node(), &devices, context.clock.now())
}
