//! A node that fails again and again is told of: power cycles do not mend it, and somebody should
//! look at the machine, or at what runs on it.

use std::rc::Rc;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::policy::RepeatAlarm;
use node_remedy_context::context::Context;
use node_remedy_runtime::cluster::Cluster;
use node_remedy_runtime::events::Note;
use node_remedy_runtime::metrics::{NodeLabel, ProblemLabels};

/// Counts an incident that was just opened, and tells if there were too many of its node. The
/// telling is beside the path: an Event that takes long must not hold up the incident.
pub fn note<C: Cluster>(context: &Rc<Context<C>>, alarm: Option<&RepeatAlarm>, opened: &NodeFence) {
    let node = opened.spec.node.name.clone();
    let condition = opened.spec.trigger.condition_type.clone();
    let problem = ProblemLabels { node: node.clone(), condition };
    context.metrics.problems.get_or_create(&problem).inc();
    let Some(alarm) = alarm else { return };
    let since = context.clock.now().0.saturating_sub(alarm.window.ms);
    let count = {
        let all = context.caches.nodefences.all();
        incidents_since(all.values().map(|kept| &kept.0), opened, since)
    };
    if count < alarm.count {
        return;
    }
    context.metrics.repeats.get_or_create(&NodeLabel { node: node.clone() }).inc();
    let text = format!(
        "incident {count} of this node within {}; see: node-remedy history {node}",
        alarm.window
    );
    let note = Note { reason: "RepeatedIncidents".to_owned(), text, warning: true };
    tracing::warn!(node, "{}", note.text);
    let (context, about) = (context.clone(), opened.spec.node.clone());
    tokio::task::spawn_local(async move { context.tell(&about, &note).await });
}

/// Incidents of the node that were opened since then, the one just opened among them.
pub fn incidents_since<'a>(
    all: impl Iterator<Item = &'a NodeFence>,
    opened: &NodeFence,
    since_ms: u64,
) -> u32 {
    let others = all.filter(|one| {
        one.spec.node.name == opened.spec.node.name
            && one.name_any() != opened.name_any()
            && one.status.as_ref().is_some_and(|status| status.opened_at.ms >= since_ms)
    });
    u32::try_from(others.count()).unwrap_or(u32::MAX).saturating_add(1)
}
