//! Every metric's name and meaning, in one place.
//!
//! Labels are closed sets: plugin names come from configuration, the rest from enums.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

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
    /// Pods and volume attachments released.
    pub released: Counter,
    /// Milliseconds from the opening of the latest incident to its last release write so far.
    pub release_ms: Gauge<i64>,
    /// Datagrams that came to a port that is listened on for kernel dumps.
    pub datagrams: Family<DatagramLabel, Counter>,
    /// Decisions taken.
    pub decisions: Counter<u64, AtomicU64>,
}

impl Metrics {
    /// Registers everything under the prefix `node_remedy`.
    pub fn new() -> Self {
        let metrics = Self::default();
        let mut registry = Registry::with_prefix("node_remedy");
        registry.register("leader", "1 while this process leads", metrics.leader.clone());
        registry.register("incidents_open", "Incidents not Final", metrics.open.clone());
        registry.register(
            "incidents_parked",
            "Incidents that wait for a person",
            metrics.parked.clone(),
        );
        registry.register("nodes", "Nodes known", metrics.nodes.clone());
        registry.register(
            "transitions",
            "Transitions into each state of the automaton",
            metrics.transitions.clone(),
        );
        registry.register("plugin_calls", "Plugin calls by result", metrics.calls.clone());
        registry.register("refusals", "Decisions not to act", metrics.refusals.clone());
        registry.register(
            "released_objects",
            "Pods and volume attachments released",
            metrics.released.clone(),
        );
        registry.register(
            "release_milliseconds",
            "From the opening of the latest incident to its last release write so far",
            metrics.release_ms.clone(),
        );
        registry.register(
            "dump_datagrams",
            "Datagrams to the ports for kernel dumps, by what became of them",
            metrics.datagrams.clone(),
        );
        registry.register("decisions", "Decisions taken", metrics.decisions.clone());
        Self { registry: Mutex::new(registry), ..metrics }
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
