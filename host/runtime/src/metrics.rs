//! Every metric's name and meaning, in one place.
//!
//! Labels are bounded: plugin names come from configuration, nodes are those of the cluster, of
//! workloads there are so many, and the rest are enums.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// What every metric's name begins with.
const PREFIX: &str = "node_remedy";
/// Seconds up to which phases are counted together: from one call to a machine's boot.
const PHASE_SECONDS: [f64; 8] = [0.1, 0.5, 2.0, 10.0, 30.0, 120.0, 600.0, 3600.0];
/// Workloads with a series of their own; more would fill a Prometheus, not a screen.
const WORKLOADS_MAX: usize = 1_000;

/// Labels of a plugin call.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct CallLabels {
    /// The plugin's name.
    pub plugin: String,
    /// status, off, on, reset or monitor.
    pub action: &'static str,
    /// ok, failed, not-attempted or indeterminate.
    pub result: &'static str,
}

/// One label: a reason.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ReasonLabel {
    /// A refusal's or parking's reason, as in the record.
    pub reason: String,
}

/// One label: what became of a datagram that came by itself.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct DatagramLabel {
    /// sighting, ignored, stranger, too-large, too-soon, too-many, queue-full or failed.
    pub result: &'static str,
}

/// One label: a state of the automaton.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct StateLabel {
    /// New, Running, Done, Final or Error.
    pub state: &'static str,
}

/// One label: a node.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct NodeLabel {
    /// Its name.
    pub node: String,
}

/// Labels of an incident.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ProblemLabels {
    /// The node's name.
    pub node: String,
    /// What of it asked for the incident.
    pub condition: String,
}

/// One label: a workload.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct PodsLabel {
    /// `namespace/name`.
    pub pods: String,
}

/// One label: a phase of the automaton.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct PhaseLabel {
    /// Its name in a NodeFence.
    pub phase: String,
}

/// All metrics of the process.
#[derive(Default)]
pub struct Metrics {
    registry: Mutex<Registry>,
    /// 1 while this process leads.
    pub leader: Gauge,
    /// Incidents that are not Final.
    pub open: Gauge,
    /// Incidents that wait for a person.
    pub parked: Gauge,
    /// Nodes known.
    pub nodes: Gauge,
    /// Transitions into each state.
    pub transitions: Family<StateLabel, Counter>,
    /// Plugin calls by result.
    pub calls: Family<CallLabels, Counter>,
    /// Decisions not to act.
    pub refusals: Family<ReasonLabel, Counter>,
    /// Incidents that wait for a device.
    pub waiting: Gauge,
    /// Nodes that are not acted on now.
    pub refused: Family<ReasonLabel, Gauge>,
    /// Pods and volume attachments released.
    pub released: Counter,
    /// Seconds from the opening of the latest incident to its last release write so far.
    pub release_seconds: Gauge<f64, AtomicU64>,
    /// Datagrams that came to a port that is listened on for kernel dumps.
    pub datagrams: Family<DatagramLabel, Counter>,
    /// Decisions taken.
    pub decisions: Counter<u64, AtomicU64>,
    /// Incidents opened.
    pub problems: Family<ProblemLabels, Counter>,
    /// Incidents from whose nodes a workload's pods were released.
    pub pods: Family<PodsLabel, Counter>,
    /// How long incidents stayed in each phase, seconds.
    pub phases: Phases,
    /// Whether each node's devices answer.
    pub fence_ready: Family<NodeLabel, Gauge>,
    /// Incidents that made too many of one node.
    pub repeats: Family<NodeLabel, Counter>,
    /// The workloads that have a series.
    workloads: Mutex<BTreeSet<String>>,
}

/// A histogram for each phase.
#[derive(Debug, Clone)]
pub struct Phases(Family<PhaseLabel, Histogram, Buckets>);

impl Default for Phases {
    fn default() -> Self {
        Self(Family::new_with_constructor(Buckets))
    }
}

impl Phases {
    /// Notes that an incident stayed in this phase for so many seconds.
    pub fn observe(&self, phase: String, seconds: f64) {
        self.0.get_or_create(&PhaseLabel { phase }).observe(seconds);
    }
}

/// Makes the histogram of a phase.
#[derive(Debug, Clone, Copy, Default)]
pub struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(PHASE_SECONDS)
    }
}

/// A metric as the reference tells of it.
struct Described {
    name: &'static str,
    kind: &'static str,
    labels: &'static str,
    help: &'static str,
}

const fn described(
    name: &'static str,
    kind: &'static str,
    labels: &'static str,
    help: &'static str,
) -> Described {
    Described { name, kind, labels, help }
}

/// Every metric, in the order of the exposition; each is registered under its name here.
const REFERENCE: [Described; 18] = [
    described("leader", "gauge", "", "1 while this process leads. Alert: sum ≠ 1 for a minute"),
    described("incidents_open", "gauge", "", "Incidents not Final"),
    described("incidents_parked", "gauge", "", "Incidents that wait for a person. Alert: > 0"),
    described(
        "incidents_waiting_for_device",
        "gauge",
        "",
        "Incidents that wait for a device to answer. Alert: > 0 for ten minutes",
    ),
    described(
        "nodes_refused",
        "gauge",
        "reason",
        "Nodes that are not acted on though their threshold is crossed, by guard. Alert: > 0 for ten minutes",
    ),
    described("nodes", "gauge", "", "Nodes known"),
    described(
        "transitions",
        "counter",
        "state",
        "Transitions into New, Running, Done, Final, Error",
    ),
    described(
        "plugin_calls",
        "counter",
        "plugin, action, result",
        "Plugin calls by result: ok, failed, not-attempted, indeterminate",
    ),
    described("refusals", "counter", "reason", "Decisions not to act, by guard"),
    described("released_objects", "counter", "", "Pods and volume attachments released"),
    described(
        "release_seconds",
        "gauge",
        "",
        "From the opening of the latest incident to its last release write so far",
    ),
    described(
        "dump_datagrams",
        "counter",
        "result",
        "Datagrams to the ports for kernel dumps: sighting, ignored, stranger, too-large, too-soon, \
         too-many, queue-full, failed",
    ),
    described("decisions", "counter", "", "Decisions taken"),
    described(
        "problems",
        "counter",
        "node, condition",
        "Incidents opened, by node and by the condition that asked for them",
    ),
    described(
        "pod_incidents",
        "counter",
        "pods",
        "Incidents whose node a workload's pods were released from; of the first 1000 workloads, the \
         others as other",
    ),
    described(
        "phase_seconds",
        "histogram",
        "phase",
        "How long incidents stayed in each phase of the automaton",
    ),
    described(
        "fence_ready",
        "gauge",
        "node",
        "1 while every device of the node's plan answers, 0 while one does not. Alert: == 0 for ten \
         minutes",
    ),
    described(
        "repeat_alarms",
        "counter",
        "node",
        "Incidents that made as many of one node as repeatAlarm names. Alert: increase",
    ),
];

/// The page docs/metrics.md.
pub fn reference() -> String {
    let mut out = String::from(
        "<!-- Generated by `cargo xtask codegen`; do not edit. -->\n# Metrics\n\nOn `/metrics`, \
         OpenMetrics; the address is `run --admin-address`. Counters end in `_total`.\n\n\
         | metric | kind | labels | means |\n|---|---|---|---|\n",
    );
    for Described { name, kind, labels, help } in &REFERENCE {
        let end = if *kind == "counter" { "_total" } else { "" };
        let labels = if labels.is_empty() { "–" } else { labels };
        // Writing into a String does not fail.
        let _ = writeln!(out, "| `{PREFIX}_{name}{end}` | {kind} | {labels} | {help} |");
    }
    out
}

impl Metrics {
    /// Registers everything under the prefix `node_remedy`.
    pub fn new() -> Self {
        let metrics = Self::default();
        let mut registry = Registry::with_prefix(PREFIX);
        for Described { name, help, .. } in &REFERENCE {
            match *name {
                "fence_ready" => registry.register(*name, *help, metrics.fence_ready.clone()),
                "leader" => registry.register(*name, *help, metrics.leader.clone()),
                "incidents_open" => registry.register(*name, *help, metrics.open.clone()),
                "incidents_parked" => registry.register(*name, *help, metrics.parked.clone()),
                "incidents_waiting_for_device" => {
                    registry.register(*name, *help, metrics.waiting.clone());
                }
                "nodes_refused" => registry.register(*name, *help, metrics.refused.clone()),
                "nodes" => registry.register(*name, *help, metrics.nodes.clone()),
                "transitions" => registry.register(*name, *help, metrics.transitions.clone()),
                "plugin_calls" => registry.register(*name, *help, metrics.calls.clone()),
                "refusals" => registry.register(*name, *help, metrics.refusals.clone()),
                "released_objects" => registry.register(*name, *help, metrics.released.clone()),
                "release_seconds" => {
                    registry.register(*name, *help, metrics.release_seconds.clone());
                }
                "dump_datagrams" => registry.register(*name, *help, metrics.datagrams.clone()),
                "decisions" => registry.register(*name, *help, metrics.decisions.clone()),
                "problems" => registry.register(*name, *help, metrics.problems.clone()),
                "pod_incidents" => registry.register(*name, *help, metrics.pods.clone()),
                "phase_seconds" => registry.register(*name, *help, metrics.phases.0.clone()),
                "repeat_alarms" => registry.register(*name, *help, metrics.repeats.clone()),
                // A test holds every line of the table against the exposition.
                _ => {}
            }
        }
        Self { registry: Mutex::new(registry), ..metrics }
    }

    /// Counts an incident in which pods of these workloads were released.
    pub fn count_pods(&self, workloads: impl IntoIterator<Item = String>) {
        let Ok(mut known) = self.workloads.lock() else { return };
        for pods in workloads {
            let is_counted = known.contains(&pods) || known.len() < WORKLOADS_MAX;
            let pods = if is_counted { pods } else { "other".to_owned() };
            known.insert(pods.clone());
            self.pods.get_or_create(&PodsLabel { pods }).inc();
        }
    }

    /// The exposition in OpenMetrics text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if let Ok(registry) = self.registry.lock() {
            // Writing into a String does not fail.
            let _ = encode(&mut out, &registry);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_what_is_exposed_and_what_is_shipped() {
        let metrics = Metrics::new();
        let word = || "w".to_owned();
        metrics.transitions.get_or_create(&StateLabel { state: "New" }).inc();
        let call = CallLabels { plugin: word(), action: "on", result: "ok" };
        metrics.calls.get_or_create(&call).inc();
        metrics.refusals.get_or_create(&ReasonLabel { reason: word() }).inc();
        metrics.refused.get_or_create(&ReasonLabel { reason: word() }).set(1);
        metrics.datagrams.get_or_create(&DatagramLabel { result: "ignored" }).inc();
        metrics.problems.get_or_create(&ProblemLabels { node: word(), condition: word() }).inc();
        metrics.phases.observe(word(), 1.0);
        metrics.repeats.get_or_create(&NodeLabel { node: word() }).inc();
        metrics.fence_ready.get_or_create(&NodeLabel { node: word() }).set(1);
        metrics.count_pods([word()]);
        let text = metrics.text();
        for Described { name, kind, labels, .. } in &REFERENCE {
            assert!(text.contains(&format!("# TYPE {PREFIX}_{name} {kind}\n")), "{name}: {text}");
            let own = |line: &&str| line.starts_with(&format!("{PREFIX}_{name}"));
            let series: Vec<&str> = text.lines().filter(own).collect();
            for label in labels.split(", ").filter(|label| !label.is_empty()) {
                let has = series.iter().any(|line| line.contains(&format!("{label}=\"")));
                assert!(has, "{name} {label}: {series:?}");
            }
        }
        assert_eq!(text.matches("# TYPE ").count(), REFERENCE.len());
        let shipped = include_str!("../../../docs/metrics.md");
        assert_eq!(shipped, reference(), "run `cargo xtask codegen`");
    }

    #[test]
    fn only_so_many_workloads_have_a_series() {
        let metrics = Metrics::new();
        metrics.count_pods((0..WORKLOADS_MAX + 5).map(|number| format!("a/{number}")));
        assert!(metrics.text().contains("node_remedy_pod_incidents_total{pods=\"other\"} 5\n"));
    }
}
