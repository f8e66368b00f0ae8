//! A node that fails again and again is told of: power cycles do not mend it, and somebody should
//! look at the machine, or at what runs on it.

use std::rc::Rc;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::policy::RepeatAlarm;

use super::events::Note;
use super::metrics::{NodeLabel, ProblemLabels};
use crate::cluster::Cluster;
use crate::controller::Parts;

/// Counts an incident that was just opened, and tells if there were too many of its node. The
/// telling is beside the path: an Event that takes long must not hold up the incident.
pub fn note<C: Cluster>(parts: &Rc<Parts<C>>, alarm: Option<&RepeatAlarm>, opened: &NodeFence) {
    let node = opened.spec.node.name.clone();
    let condition = opened.spec.trigger.condition_type.clone();
    let problem = ProblemLabels { node: node.clone(), condition };
    parts.metrics.problems.get_or_create(&problem).inc();
    let Some(alarm) = alarm else { return };
    let since = parts.clock.now().0.saturating_sub(alarm.window.ms);
    let count = {
        let all = parts.mirror.nodefences.all();
        incidents_since(all.values().map(|kept| &kept.0), opened, since)
    };
    if count < alarm.count {
        return;
    }
    parts.metrics.repeats.get_or_create(&NodeLabel { node: node.clone() }).inc();
    let text = format!(
        "incident {count} of this node within {}; see: node-remedy history {node}",
        alarm.window
    );
    let note = Note { reason: "RepeatedIncidents".to_owned(), text, warning: true };
    tracing::warn!(node, "{}", note.text);
    let (parts, about) = (parts.clone(), opened.spec.node.clone());
    tokio::task::spawn_local(async move { parts.tell(&about, &note).await });
}

/// Incidents of the node that were opened since then, the one just opened among them.
fn incidents_since<'a>(
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use node_remedy_api::time::Moment;

    use super::*;
    use crate::cluster::ClusterError;
    use crate::testing::{Door, Open, Request, example, play_behind};

    /// Warnings of repeated incidents.
    #[derive(Default)]
    struct Warned(Cell<u32>);

    impl Door for Warned {
        async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
            if request.resource == "events" && request.verb == "create" {
                let event = request.object().unwrap_or_default();
                let is_it = event["reason"] == "RepeatedIncidents" && event["type"] == "Warning";
                self.0.set(self.0.get() + u32::from(is_it));
            }
            Ok(())
        }
    }

    /// A node is lost at one minute and at twenty-five.
    #[test]
    fn a_node_that_is_lost_again_is_warned_of_where_the_policy_says_how_often() {
        for (alarm, warnings) in [
            ("{ count: 2, window: 1h }", 1),
            ("{ count: 2, window: 15m }", 0),
            ("{ count: 3, window: 1h }", 0),
        ] {
            let policy = format!(
                "- object: {{ apiVersion: node-remedy.io/v1alpha1, kind: RemedyConfiguration, \
                 metadata: {{ name: all }}, spec: {{ thresholdConfigs: [{{ nodeLeaseAge: 20s, \
                 remedy1: [{{ name: fence }}] }}], policies: {{ repeatAlarm: {alarm} }} }} }}"
            );
            let again = "happenings:\n- { at: 25m, kubeletStops: node-a }";
            let night = example("lost-node.yaml", |text| {
                let text = text.replace("- file: ../config/remedy.yaml", &policy);
                text.replace("duration: 10m", "duration: 30m").replace("happenings:", again)
            });
            let warned = Rc::new(Warned::default());
            let played = play_behind(&night, &warned);
            assert_eq!(
                (warned.0.get(), played.collected.incidents.len()),
                (warnings, 2),
                "{alarm}"
            );
        }
    }

    #[test]
    fn only_incidents_of_the_node_within_the_time_count() {
        let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
        let opened = played.collected.incidents.into_values().next().unwrap().0;
        let other = |name: &str, node: &str, at: u64| {
            let mut one = opened.clone();
            one.metadata.name = Some(name.to_owned());
            one.spec.node.name = node.to_owned();
            one.status.as_mut().unwrap().opened_at = Moment::from_ms(at);
            one
        };
        let node = opened.spec.node.name.clone();
        let all = [
            opened.clone(),
            other("before", &node, 99),
            other("within", &node, 100),
            other("elsewhere", "another", 200),
        ];
        assert_eq!(incidents_since(all.iter(), &opened, 100), 2);
    }
}
