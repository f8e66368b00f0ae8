//! Draws a night: who is lost and how, what its BMC does, what befalls node-remedy, what people do.

use std::fmt::Write as _;
use std::time::Duration;

use node_remedy_world::Scenario;
use node_remedy_world::rng::Rng;
use node_remedy_world::scenario::ScenarioErrors;

/// Where the shown configuration lies, seen from where nights are written.
const CONFIG: &str = "../../examples/config/";
const REMEDY: &str = include_str!("../../../examples/config/remedy.yaml");
const FENCE: &str = include_str!("../../../examples/config/fence-ipmi.yaml");

/// When the last trouble is over; what is left is for the night to end well.
const CALM_MS: u64 = 420_000;
/// How long a night lasts, where nobody says.
pub const LASTS: Duration = Duration::from_mins(25);

/// How a node is lost.
const LOSSES: [&str; 4] = ["kubeletStops", "networkLost", "machineHangs", "powerOffByHand"];

/// What a BMC does wrong, and how much of it.
const BMC_FAULTS: [(&str, u64, u64); 16] = [
    ("delay", 10, 3_000),
    ("drop", 1, 10),
    ("dup", 1, 1),
    ("silent", 1, 1),
    ("dead", 1, 1),
    ("stuck", 1, 1),
    ("off_after", 1_000, 40_000),
    ("reply_lost", 1, 1),
    ("flip_back", 1_000, 20_000),
    ("stale", 1_000, 15_000),
    ("cc", 0xC0, 0xC1),
    ("bad_auth", 1, 1),
    ("kill_session", 1, 1),
    ("mute_ciphers", 1, 1),
    ("wrong_sid", 1, 1),
    ("rakp4_status", 2, 2),
];

const API_FAULTS: [&str; 5] = ["unavailable", "answerLost", "throttled", "conflict", "slow"];

/// What people do who do not know that node-remedy is at work.
const DEEDS: [&str; 5] =
    ["cordon", "deleteNode", "taintOutOfService", "deleteAttachments", "powerOnByHand"];

/// A night, and what was drawn for it.
#[derive(Debug, Clone)]
pub struct Night {
    /// What it follows from.
    pub seed: u64,
    /// The scenario.
    pub text: String,
    /// Every class of fault in it, such as `bmc stuck`.
    pub drawn: Vec<String>,
    /// Nodes that are lost in it.
    pub lost: Vec<String>,
    /// Whether people did things behind node-remedy's back.
    pub has_deeds: bool,
}

impl Night {
    /// The night of a seed.
    pub fn of(seed: u64, lasts: Duration) -> Self {
        let mut draft =
            Draft { rng: Rng::named(seed, "night"), happenings: String::new(), drawn: Vec::new() };
        let nodes = 3 + draft.rng.below(3);
        let controllers = 1 + u64::from(draft.rng.below(100) < 60);
        let replicas = 1 + draft.rng.below(nodes - 1);
        let names: Vec<String> = ('a'..)
            .take(usize::try_from(nodes).unwrap_or(3))
            .map(|letter| format!("node-{letter}"))
            .collect();
        let lost = draft.losses(&names);
        draft.bmc_faults(&names, &lost);
        draft.processes(controllers);
        draft.api_faults();
        let has_deeds = draft.deeds(&lost);
        let mut text = format!(
            "# node-remedy simulate {}, drawn by cargo xtask sim --replay {seed}\n\
             title: Night {seed}\nseed: {seed}\nduration: {}ms\ncontrollers: {controllers}\nnodes:\n",
            path(seed),
            lasts.as_millis()
        );
        for name in &names {
            let boot = draft.rng.within(20_000, 90_000);
            let _ = writeln!(
                text,
                "- {{ name: {name}, bootTime: {boot}ms, labels: {{ node-remedy.io/fence: ipmi }} }}"
            );
        }
        let _ = write!(
            text,
            "workloads:\n  statefulSets:\n  - {{ name: db, replicas: {replicas}, volumes: true, toleration: 30s, parallel: true }}\n\
             configuration:\n- file: {CONFIG}remedy.yaml\n- file: {CONFIG}fence-ipmi.yaml\n- object:\n    apiVersion: v1\n    kind: Secret\n    \
             metadata: {{ name: bmc-credentials, namespace: node-remedy }}\n    stringData: {{ username: admin, password: simulated }}\n\
             happenings:\n{}expect:\n- {{ fact: nodeCreated, times: {nodes} }}\n",
            draft.happenings
        );
        Self { seed, text, drawn: draft.drawn, lost, has_deeds }
    }

    /// The night as the simulator takes it.
    pub fn scenario(&self) -> Result<Scenario, ScenarioErrors> {
        let load = |file: &str| match file.strip_prefix(CONFIG) {
            Some("remedy.yaml") => Ok(REMEDY.to_owned()),
            Some("fence-ipmi.yaml") => Ok(FENCE.to_owned()),
            Some(_) | None => Err(format!("no night names {file}")),
        };
        Scenario::parse(&path(self.seed), &self.text, &load)
    }
}

/// Where the night of a seed is written.
pub fn path(seed: u64) -> String {
    format!("target/nights/{seed}.yaml")
}

struct Draft {
    rng: Rng,
    happenings: String,
    drawn: Vec<String>,
}

impl Draft {
    fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let drawn = self.rng.below(u64::try_from(all.len()).unwrap_or(u64::MAX));
        all.get(usize::try_from(drawn).unwrap_or_default()).copied()
    }

    fn happens(&mut self, at_ms: u64, what: &str, class: &str) {
        let _ = writeln!(self.happenings, "- {{ at: {at_ms}ms, {what} }}");
        self.drawn.push(class.to_owned());
    }

    /// Mostly one node; now and then two, or so many that it looks like a network.
    fn losses(&mut self, names: &[String]) -> Vec<String> {
        let count = match self.rng.below(100) {
            0..80 => 1,
            80..92 => 2,
            _ => names.len() - 1,
        };
        let mut left = names.to_vec();
        let mut lost = Vec::new();
        let first = self.rng.within(60_000, 150_000);
        for _ in 0..count {
            let drawn = self.rng.below(u64::try_from(left.len()).unwrap_or(1));
            let node = left.swap_remove(usize::try_from(drawn).unwrap_or_default());
            let at = first + self.rng.below(20_000);
            let Some(loss) = self.one_of(&LOSSES) else { break };
            self.happens(at, &format!("{loss}: {node}"), loss);
            if self.chance(25) {
                let back = at + self.rng.within(5_000, 120_000);
                self.happens(back, &format!("nodeComesBack: {node}"), "nodeComesBack");
            } else if loss == "networkLost" {
                // No remedy mends a cable.
                self.happens(CALM_MS, &format!("nodeComesBack: {node}"), "nodeComesBack");
            }
            lost.push(node);
        }
        lost
    }

    fn bmc_faults(&mut self, names: &[String], lost: &[String]) {
        for node in lost {
            if !self.chance(50) {
                continue;
            }
            let Some((fault, low, high)) = self.one_of(&BMC_FAULTS) else { continue };
            let (at, value) = (self.rng.below(180_000), self.rng.within(low, high));
            let begins = format!("bmcFault: {{ node: {node}, fault: {fault}, value: {value} }}");
            self.happens(at, &begins, &format!("bmc {fault}"));
        }
        for node in names {
            let _ = writeln!(
                self.happenings,
                "- {{ at: {CALM_MS}ms, bmcFault: {{ node: {node}, fault: none }} }}"
            );
        }
    }

    fn processes(&mut self, controllers: u64) {
        for (what, percent, most, longest) in
            [("controllerKilled", 45, 3, 20_000), ("controllerPaused", 25, 2, 30_000)]
        {
            if !self.chance(percent) {
                continue;
            }
            for controller in 1..=controllers {
                let mut at = self.rng.within(1_000, 100_000);
                for _ in 0..self.rng.within(0, most) {
                    let lasts = self.rng.within(100, longest);
                    let outage =
                        format!("{what}: {{ controller: {controller}, lasts: {lasts}ms }}");
                    self.happens(at, &outage, what);
                    // The next one comes after this one is over.
                    at += lasts + self.rng.within(100, 90_000);
                }
            }
        }
    }

    fn api_faults(&mut self) {
        if !self.chance(45) {
            return;
        }
        for _ in 0..self.rng.within(1, 2) {
            let Some(fault) = self.one_of(&API_FAULTS) else { return };
            let percent = self.one_of(&[10, 30, 60, 100]).unwrap_or(30);
            let (at, lasts) = (self.rng.within(0, 300_000), self.rng.within(2_000, 60_000));
            let takes = match fault {
                "slow" => format!(", takes: {}ms", self.rng.within(100, 4_000)),
                _ => String::new(),
            };
            let what = format!(
                "apiFault: {{ fault: {fault}, percent: {percent}{takes}, lasts: {lasts}ms }}"
            );
            self.happens(at, &what, &format!("api {fault}"));
        }
    }

    fn deeds(&mut self, lost: &[String]) -> bool {
        let Some(node) = lost.first().filter(|_| self.chance(20)) else { return false };
        let Some(deed) = self.one_of(&DEEDS) else { return false };
        let at = self.rng.within(60_000, 300_000);
        self.happens(at, &format!("{deed}: {node}"), deed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_is_a_function_of_its_seed_and_can_be_played() {
        for seed in 0..500 {
            let night = Night::of(seed, LASTS);
            assert_eq!(night.text, Night::of(seed, LASTS).text);
            night.scenario().unwrap();
        }
        assert_ne!(Night::of(1, LASTS).text, Night::of(2, LASTS).text);
    }

    #[test]
    fn every_class_of_fault_is_drawn() {
        let drawn: std::collections::BTreeSet<String> =
            (0..2_000).flat_map(|seed| Night::of(seed, LASTS).drawn).collect();
        let classes = LOSSES.len() + BMC_FAULTS.len() + API_FAULTS.len() + DEEDS.len() + 3;
        assert_eq!(drawn.len(), classes, "{drawn:?}");
    }
}
