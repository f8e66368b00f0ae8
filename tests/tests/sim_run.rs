//! Runs to play: a node is lost in one of many ways while its BMC has one of many faults.
//!
//! A run is a function of its seed, so a seed is all that is needed to see it again, and it is
//! written as the YAML that `node-remedy simulate` reads. How a run must end is not said here.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use node_remedy_world::Scenario;

/// The node that is lost; the first pod of the database runs there.
pub(crate) const LOST: &str = "node-a";
/// When it is lost, seconds from the start.
const LOST_AT_S: u64 = 60;
/// Long enough for three tries to switch off, a slow boot and every give-up, in seconds.
const RUN_S: u64 = 420;
/// When a lost network is repaired by hand: no power cycle can.
const REPAIRED_AT_MS: u64 = 240_000;

/// How a node can be lost.
const MISHAPS: [&str; 3] = ["kubeletStops", "networkLost", "machineHangs"];

/// Boot times, in seconds.
const BOOTS_S: [u64; 4] = [5, 20, 45, 150];

/// A fault of the BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The name that the BMC model knows.
    pub(crate) name: &'static str,
    /// How much of it.
    pub(crate) value: u32,
    /// What a BMC with it is good for.
    pub(crate) kind: Kind,
}

/// What a BMC is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It does as it is told, says so, and can be asked: the node must be remedied.
    Honest,
    /// It cannot be asked, or refuses: nothing may be done that depends on its word.
    Unusable,
    /// It says what is not so, or does what nobody asked for.
    Lying,
}

const fn fault(name: &'static str, value: u32, kind: Kind) -> Fault {
    Fault { name, value, kind }
}

/// Every fault of the model, some in two strengths. `none` stands for a healthy BMC.
pub(crate) const FAULTS: [Fault; 29] = [
    fault("none", 0, Kind::Honest),
    fault("drop", 1, Kind::Honest),
    fault("drop", 4, Kind::Honest),
    fault("delay", 40, Kind::Honest),
    fault("delay", 400, Kind::Honest),
    fault("dup", 1, Kind::Honest),
    fault("no_ciphers", 1, Kind::Honest),
    fault("mute_ciphers", 1, Kind::Honest),
    fault("off_after", 3_000, Kind::Honest),
    fault("reply_lost", 1, Kind::Honest),
    fault("stale", 2_500, Kind::Honest),
    fault("off_after", 45_000, Kind::Lying),
    fault("stale", 50_000, Kind::Lying),
    fault("stuck", 1, Kind::Lying),
    fault("flip_back", 8_000, Kind::Lying),
    fault("delay", 60_000, Kind::Unusable),
    fault("silent", 1, Kind::Unusable),
    fault("dead", 1, Kind::Unusable),
    fault("open_status", 1, Kind::Unusable),
    fault("rakp2_status", 13, Kind::Unusable),
    fault("rakp4_status", 15, Kind::Unusable),
    fault("bad_rakp2", 1, Kind::Unusable),
    fault("bad_rakp4", 1, Kind::Unusable),
    fault("bad_auth", 1, Kind::Unusable),
    fault("bad_tag", 1, Kind::Unusable),
    fault("wrong_sid", 1, Kind::Unusable),
    fault("cc", 0xd5, Kind::Unusable),
    fault("truncate", 20, Kind::Unusable),
    fault("kill_session", 1, Kind::Unusable),
];

/// Since when the BMC has its fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onset {
    /// From the start.
    Start,
    /// From this many milliseconds on, at some point of the remedy.
    At(u64),
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeedRun {
    pub(crate) seed: u64,
    pub(crate) mishap: &'static str,
    pub(crate) replicas: u64,
    pub(crate) boot_s: u64,
    pub(crate) fault: Fault,
    pub(crate) onset: Onset,
    /// When the mishap ends by itself while it may be under remedy, in milliseconds; a machine
    /// that is off is then switched on by hand.
    pub(crate) back_ms: Option<u64>,
}

impl SeedRun {
    /// The run of a seed: every fault comes with every mishap, boot time and number of replicas
    /// within as many seeds as there are faults, mishaps and boot times multiplied.
    pub(crate) fn of(seed: u64) -> Self {
        let round = seed / FAULTS.len() as u64;
        // Moments are spread evenly over where things happen, by steps that share no divisor
        // with the other cycles.
        let onset = Onset::At(72_000 + seed * 389 % 6_000);
        let mishap = pick(&MISHAPS, round);
        Self {
            seed,
            mishap,
            replicas: 1 + round % 2,
            boot_s: pick(&BOOTS_S, round),
            fault: pick(&FAULTS, seed),
            onset: if round % 5 < 3 { Onset::Start } else { onset },
            back_ms: (round % 4 == 3).then_some(61_000 + seed * 577 % 59_000),
        }
    }

    /// The run as a scenario file, as it would stand in `examples/scenarios`.
    pub(crate) fn yaml(&self) -> String {
        let Self { seed, mishap, replicas, boot_s, fault, .. } = self;
        let from_start = match self.onset {
            Onset::Start => format!(", bmc: {{ faults: {{ {}: {} }} }}", fault.name, fault.value),
            Onset::At(_) => String::new(),
        };
        let labels = "labels: { node-remedy.io/fence: ipmi }";
        let mut yaml = format!(
            "title: a run of the sweep
seed: {seed}
duration: {RUN_S}s
nodes:
- {{ name: {LOST}, bootTime: {boot_s}s, {labels}{from_start} }}
- {{ name: node-b, bootTime: {boot_s}s, {labels} }}
- {{ name: node-c, bootTime: {boot_s}s, {labels} }}
workloads:
  statefulSets:
  - {{ name: db, replicas: {replicas}, volumes: true, toleration: 30s }}
configuration:
- file: ../config/remedy.yaml
- file: ../config/fence-ipmi.yaml
- object:
    apiVersion: v1
    kind: Secret
    metadata: {{ name: bmc-credentials, namespace: node-remedy }}
    stringData: {{ username: admin, password: simulated }}
expect:
- {{ fact: twoWriters, times: 0 }}
faults:
- {{ at: {LOST_AT_S}s, {mishap}: {LOST} }}
"
        );
        if let Onset::At(ms) = self.onset {
            let Fault { name, value, .. } = fault;
            let fault = format!("{{ node: {LOST}, fault: {name}, value: {value} }}");
            writeln!(yaml, "- {{ at: {ms}ms, bmcFault: {fault} }}").expect("text takes text");
        }
        let repaired = (self.mishap == "networkLost").then_some(REPAIRED_AT_MS);
        for ms in self.back_ms.into_iter().chain(repaired) {
            writeln!(yaml, "- {{ at: {ms}ms, nodeComesBack: {LOST} }}").expect("text takes text");
        }
        yaml
    }

    /// The run to be played.
    pub(crate) fn scenario(&self) -> Scenario {
        parse(&self.yaml())
    }
}

fn pick<T: Copy>(all: &[T], number: u64) -> T {
    let place = usize::try_from(number % all.len() as u64).expect("a place");
    *all.get(place).expect("a place in the list")
}

/// The folder with the scenarios that people read.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// Reads a scenario that names files as those in `examples/scenarios` do.
pub(crate) fn parse(yaml: &str) -> Scenario {
    let load = |file: &str| {
        let path = examples().join("scenarios").join(file);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let read = Scenario::parse("run.yaml", yaml, &load);
    read.unwrap_or_else(|errors| panic!("{errors}\n{yaml}"))
}

/// The text and the scenario of an example.
pub(crate) fn example(name: &str) -> (String, Scenario) {
    let path = examples().join(format!("scenarios/{name}.yaml"));
    let text = std::fs::read_to_string(&path).expect("an example");
    let scenario = parse(&text);
    assert!(scenario.duration > Duration::ZERO);
    (text, scenario)
}
