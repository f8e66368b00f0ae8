//! The facts of one played scenario, as plain values.
//!
//! Times are milliseconds since the scenario began. Everything is ordered by time;
//! what happened in one millisecond keeps the order in which it happened.

use serde::{Deserialize, Serialize};

/// One scenario, played with node-remedy and, on the same seed, without.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// What reproduces it.
    pub inputs: Inputs,
    /// With node-remedy.
    pub with: Run,
    /// The same seed without it.
    pub without: Option<Run>,
}

/// All that is needed to play the scenario again and get the same timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// The scenario's name, such as `lost-node`.
    pub name: String,
    /// One sentence of what is about to happen.
    pub title: String,
    /// The seed in force.
    pub seed: u64,
    /// Wall-clock start, milliseconds since the Unix epoch.
    pub start_unix_ms: u64,
    /// The scenario file's whole text, with the configuration it names put in.
    pub scenario: String,
    /// sha256 of that text.
    pub scenario_digest: String,
    /// The plugins that ran, byte for byte.
    pub plugins: Vec<PluginUsed>,
    /// node-remedy's version.
    pub version: String,
}

/// A plugin that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginUsed {
    /// Such as `ipmi`.
    pub name: String,
    /// From its manifest.
    pub version: String,
    /// sha256 of its component.
    pub digest: String,
}

/// One playing of the scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// How long it was played.
    pub end_ms: u64,
    /// What happened, in order.
    pub entries: Vec<Entry>,
    /// States that lasted: the bars of the swim-lanes.
    pub intervals: Vec<Interval>,
    /// The incidents, in order of opening.
    pub incidents: Vec<Incident>,
    /// Every decision not to act, folded: one per guard and node.
    pub refusals: Vec<Refusal>,
    /// How it ended.
    pub outcome: Outcome,
}

/// Whose line an entry or stretch is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Lane {
    /// node-remedy.
    Controller,
    /// The node, its kubelet and machine.
    Node,
    /// BMC, PDU, switch, cloud API.
    Device,
    /// Pods and their volumes.
    Workload,
}

/// How loudly an entry is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Weight {
    /// Only in the full log.
    Detail,
    /// In the timeline.
    Normal,
    /// A turning point: lost, proven off, released, running again, final.
    Key,
    /// Bad news: refused, failed, parked, two writers.
    Bad,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When.
    pub at_ms: u64,
    /// On whose line.
    pub lane: Lane,
    /// The node, pod, volume or device it is about.
    pub subject: String,
    /// One sentence without full stop.
    pub text: String,
    /// How loudly.
    pub weight: Weight,
    /// The rule that decided it, such as `A1` or `P4`.
    pub rule: Option<String>,
    /// The grade of proof that allowed it, such as `power-off-verified`.
    pub grade: Option<String>,
    /// The incident it belongs to, and the number of the journal row behind it.
    pub journal: Option<(String, u32)>,
}

/// A state that lasted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// From.
    pub from_ms: u64,
    /// To; the end of the run if it never ended.
    pub to_ms: u64,
    /// On whose line.
    pub lane: Lane,
    /// The node, pod, volume or device.
    pub subject: String,
    /// Such as `Ready`, `Unknown`, `Running on node-a`, `Terminating`, `on`, `off`.
    pub state: String,
    /// Whether the state is good, bad or neither: `Key`, `Bad`, `Normal`.
    pub weight: Weight,
}

/// One incident: a NodeFence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// The NodeFence's name.
    pub name: String,
    /// The node.
    pub node: String,
    /// `status.status` at the end: New, Running, Done, Final or Error.
    pub state: String,
    /// Why it is parked, and the next thing to do.
    pub parked: Option<String>,
    /// The journal, in order.
    pub journal: Vec<JournalRow>,
    /// What was proven.
    pub proof: Option<Proof>,
}

/// One operation of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalRow {
    /// Its number within the incident.
    pub number: u32,
    /// When its intent was written.
    pub intended_ms: u64,
    /// When its end was known.
    pub ended_ms: Option<u64>,
    /// Such as `ipmi status`.
    pub what: String,
    /// Such as `succeeded: off` or `failed: wrong password`.
    pub end: String,
    /// What went over the wire.
    pub exchanges: Vec<Exchange>,
}

/// Which way bytes went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// To the device.
    Sent,
    /// From the device.
    Received,
}

/// One datagram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// When.
    pub at_ms: u64,
    /// Which way.
    pub direction: Direction,
    /// The bytes, in hexadecimal; no secret is ever among them.
    pub hex: String,
    /// What they mean, where it is known, such as `chassis status: power off, fault none`; after
    /// ` · ` the numbers to look it up by.
    pub decoded: Option<String>,
    /// What stood encrypted inside, in hexadecimal, where the host encrypted or decrypted it; no
    /// secret is ever among it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plaintext: Option<String>,
}

/// What was proven, by whom, and what it allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Such as `power-off-verified`.
    pub grade: String,
    /// When the proving read began.
    pub read_ms: u64,
    /// Who read it: plugin, version, device.
    pub reader: String,
    /// What was read: device's name of the machine, power state, last sign of life.
    pub facts: Vec<String>,
    /// Why it allows what was released.
    pub because: String,
    /// What it released, such as `3 pods, 1 attachment`.
    pub released: String,
    /// The journal row of the proving read.
    pub journal: u32,
}

/// A decision not to act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// When first.
    pub first_ms: u64,
    /// When last.
    pub last_ms: u64,
    /// How often.
    pub times: u32,
    /// The node that was not acted on.
    pub node: String,
    /// The guard, such as `UnhealthyShare`.
    pub guard: String,
    /// The numbers, such as `unhealthy 10 of 30 = 33 % ≥ 30 %`.
    pub numbers: String,
    /// The rule or paragraph behind it.
    pub rule: String,
    /// What to do about it, where there is something.
    pub next: Option<String>,
}

/// How a run ended, as facts of the world and not as the controller believes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// One sentence.
    pub verdict: String,
    /// Whether that is what the scenario expected.
    pub as_expected: bool,
    /// The facts, such as `its volume never had two writers` or `BMC off 1, on 1`.
    pub facts: Vec<String>,
    /// What was expected and did not come true.
    pub missed: Vec<String>,
}
