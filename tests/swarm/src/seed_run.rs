//! Draws a run: who is lost and how, what its BMC or its cloud does, what happens to node-remedy, what people do.

mod cloud;
mod cluster;
mod cuts;
mod guards;
mod kinds;
mod others;
mod rack;
mod slow;
mod sound;
mod wiring;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::time::Duration;

use node_remedy_world::Scenario;
use node_remedy_world::rng::Rng;
use node_remedy_world::scenario::ScenarioErrors;
use node_remedy_world::time::Time;

use self::cloud::Machines;
use self::guards::Guards;
use self::others::{CLASSES, EDITS};
use self::rack::{DEVICE_FAULTS, Rack};
use crate::scene::Setting;

/// Where the shown configuration lies, seen from where runs are written.
const CONFIG: &str = "../../examples/config/";
const FENCE: &str = include_str!("../../../examples/config/fence-ipmi.yaml");

/// When the last trouble is over; what is left is for the run to end well.
const CALM_MS: u64 = 330_000;
/// Once all is well for so long, a run is over.
const UNTIL_CALM_S: u64 = 120;
/// Where requests may be slow, what is decided on may be some seconds old.
const SEEN_BY_SLOW_API: Duration = Duration::from_secs(26);
/// And where watches lag, a call that is under way is withdrawn some seconds later.
const WELL_BY_SLOW_API: Duration = Duration::from_secs(10);
/// And where a device drops datagrams, a command that was sent in time is taken so much later: its
/// fourth sending comes three seconds after the first, and a second more for a slow agent.
const TAKEN_BY_DROPS: Duration = Duration::from_secs(4);
/// How long a run lasts, where nobody says.
pub const LASTS: Duration = Duration::from_mins(25);

/// How a node is lost.
const LOSSES: [&str; 4] = ["kubeletStops", "networkLost", "machineHangs", "powerOffByHand"];

/// What a device does wrong, and how much of it.
type DeviceFault = (&'static str, u64, u64);
const BMC_FAULTS: [DeviceFault; 23] = [
    ("delay", 10, 3_000),
    ("drop", 1, 10),
    ("dup", 1, 1),
    ("silent", 1, 1),
    ("dead", 1, 1),
    ("stuck", 1, 1),
    // What the plugin's manifest says that an effect may take at most is 30 s.
    ("off_after", 1_000, 28_000),
    ("reply_lost", 1, 1),
    ("flip_back", 1_000, 20_000),
    ("stale", 1_000, 90_000),
    ("cc", 0xC0, 0xC1),
    ("bad_auth", 1, 1),
    ("kill_session", 1, 1),
    ("mute_ciphers", 1, 1),
    ("wrong_sid", 1, 1),
    ("rakp4_status", 2, 2),
    // All its sessions are taken (insufficient resources).
    ("open_status", 1, 1),
    // The password was rotated, or the user is locked out (unauthorized name).
    ("rakp2_status", 13, 13),
    ("bad_rakp2", 1, 1),
    ("bad_rakp4", 1, 1),
    ("bad_tag", 1, 1),
    ("no_ciphers", 1, 1),
    ("truncate", 20, 60),
];

const API_FAULTS: [&str; 8] = [
    "unavailable",
    "answerLost",
    "throttled",
    "conflict",
    "slow",
    "watchesBreak",
    "historyGone",
    "watchesLag",
];

/// Moments of an incident in which a blow hurts most: a fact about the lost node, and its fields.
const MOMENTS: [(&str, &str); 11] = [
    ("fenceState", "step: Power-Management, state: Running"),
    ("intentRecorded", "action: \"off\""),
    ("bmcAccepted", "command: \"off\""),
    ("bmcReported", "power: \"off\""),
    ("proofRecorded", "grade: power-off-verified"),
    ("taintAdded", "key: node.kubernetes.io/out-of-service"),
    ("detachRequested", "by: node-remedy"),
    ("taintRemoved", "key: node.kubernetes.io/out-of-service"),
    ("intentRecorded", "action: \"on\""),
    ("bmcAccepted", "command: \"on\""),
    ("fenceState", "step: Recovery, state: Done"),
];

/// A class of fault.
const ANOTHER_LOST: &str = "another is lost meanwhile";

/// Another.
const KERNEL_DUMP: &str = "kernel dump";

/// What people do who do not know that node-remedy is at work.
const DEEDS: [&str; 5] =
    ["cordon", "deleteNode", "taintOutOfService", "deleteAttachments", "powerOnByHand"];

/// A run, and what was drawn for it.
#[derive(Debug, Clone)]
pub struct SeedRun {
    /// What it follows from.
    pub seed: u64,
    /// The scenario.
    pub text: String,
    /// Every class of fault in it, such as `bmc stuck`.
    pub drawn: Vec<String>,
    /// What its judges know beforehand.
    pub setting: Setting,
}

impl SeedRun {
    /// The run of a seed.
    pub fn of(seed: u64, lasts: Duration) -> Self {
        Self::with_nodes(seed, lasts, None)
    }

    /// The run of a seed, with so many nodes: one number drawn from these; if `None`, as [`Self::of`]
    /// draws it.
    pub fn with_nodes(seed: u64, lasts: Duration, nodes: Option<&RangeInclusive<u64>>) -> Self {
        let machines = Machines::of(seed);
        let mut draft = Draft {
            rng: Rng::named(seed, "night"),
            machines,
            rack: Rack::of(seed, &[]),
            faults: String::new(),
            drawn: machines.classes(),
            server_skips: Vec::new(),
        };
        // In the larger ones two may be lost and that is no storm.
        let drawn = if draft.chance(15) { 7 } else { 3 + draft.rng.below(3) };
        let drawn = wiring::nodes(seed).or(Guards::nodes(seed)).unwrap_or(drawn);
        let is_asked_for = nodes.is_some();
        let nodes = nodes
            .map_or(drawn, |nodes| Rng::named(seed, "nodes").within(*nodes.start(), *nodes.end()));
        let controllers = 1 + u64::from(draft.rng.below(100) < 60);
        let replicas = 1 + draft.rng.below(nodes - 1);
        let names: Vec<String> = ('a'..)
            .take(usize::try_from(nodes).unwrap_or(3))
            .map(|letter| format!("node-{letter}"))
            .collect();
        if machines == Machines::Bmcs {
            draft.rack = Rack::of(seed, &names);
        }
        let mut policies = draft.policies();
        draft.repairs(seed, &mut policies);
        let lost = draft.losses(&names);
        if let Some(node) = lost.first() {
            draft.rack.fence_by_outlet(node);
        }
        let mut impostors = draft.impostors(&lost);
        impostors.retain(|node| draft.rack.has_bmc(node));
        let twins = draft.twins(seed, &lost, &names);
        impostors.extend(twins.iter().cloned());
        draft.device_faults(&names, &lost);
        draft.processes(controllers);
        draft.api_faults();
        draft.aimed(&names, &lost);
        draft.slow_incident(&names, &lost);
        draft.late_off(&lost);
        draft.held_pods(replicas, &lost);
        let has_people = draft.deeds(&lost);
        draft.edits(&mut policies, &lost, &names);
        draft.other_remedy(&lost);
        draft.clocks(seed, controllers);
        let ill = draft.people(seed, &mut policies, &lost, &names);
        draft.rack_faults(seed, &names, &lost);
        draft.terminations(seed, &lost);
        let fence = draft.fence_configuration(seed, &mut policies, &lost);
        let (fence, cut_by_people) = draft.storage_cut(seed, &lost, fence);
        let outlet_by_people = draft.people_at_its_machine(seed, &lost);
        let has_people = has_people || cut_by_people || outlet_by_people;
        draft.fails_in_part(seed);
        // Who forgets what was switched off cannot tell whose outlet it is.
        let has_people = !draft.rack.is_fed() && draft.set_back(seed, &lost) || has_people;
        let drivers_check = draft.checks_at_detach(seed, &mut policies);
        let cluster = draft.cluster(seed, drivers_check);
        let guards = draft.guards(seed, &mut policies, &names, &lost, ill.as_ref());
        let ill = ill.or_else(|| guards.ill.clone());
        let replicas = guards.replicas.unwrap_or(replicas);
        let order = draft.order(seed);
        let (crowd, more_nodes) = draft.crowd(seed, is_asked_for);
        let miswired = draft.choose_outlet(seed, &lost, &names);
        let mut text = format!(
            "title: Run {seed}\nseed: {seed}\nduration: {}ms\nuntilCalm: {UNTIL_CALM_S}s\n{order}controllers: {controllers}\n{cluster}{}nodes:\n",
            lasts.as_millis(),
            draft.rack.devices(),
        );
        let in_pools = names.iter().zip(policies.pools.iter().cycle());
        for (number, (name, pool)) in in_pools.enumerate() {
            let (way, hangs_on) = match machines {
                Machines::Bmcs => draft.rack.node(name, number),
                Machines::Instances => (machines.fence(), String::new()),
            };
            let boot = draft.rng.within(5_000, 90_000);
            let _ = writeln!(
                text,
                "- {{ name: {name}, bootTime: {boot}ms, labels: {{ node-remedy.io/fence: {way}, pool: {pool}{} }}{hangs_on}{} }}",
                guards.labels(name),
                draft.identity(twins.contains(name), impostors.contains(name)),
            );
        }
        let _ = write!(
            text,
            "{crowd}workloads:\n  statefulSets:\n  - {{ name: db, replicas: {replicas}, volumes: true, toleration: 30s, parallel: true }}\n\
             configuration:\n{policies}{by_rack}{fence}{objects}- object:\n    apiVersion: v1\n    kind: Secret\n    \
             metadata: {{ name: {}, namespace: node-remedy }}\n    stringData: {{ username: admin, password: simulated }}\n{}\
             faults:\n{}expect:\n- {{ fact: nodeCreated, times: {all_nodes} }}\n",
            machines.secret(),
            names.iter().map(|node| cluster::daemon(node)).collect::<String>(),
            draft.faults,
            all_nodes = nodes + more_nodes,
            policies = policies.text,
            by_rack = draft.rack.configuration(),
            objects = guards.objects,
        );
        // Where several are lost, or ill, the gate may hold back for ever.
        let more = !twins.is_empty()
            || ill.is_some()
            || !miswired.is_empty()
            || draft.drawn.iter().any(|class| class == ANOTHER_LOST);
        let lost = if lost.len() == 1 && !more && !guards.for_good { lost } else { Vec::new() };
        let is_api_slow = draft.faults.contains("apiFault");
        let plain = Setting::default();
        let seen_after = if is_api_slow { SEEN_BY_SLOW_API } else { plain.seen_after };
        let well_after = if is_api_slow { WELL_BY_SLOW_API } else { plain.well_after };
        let has = |class: &str| draft.drawn.iter().any(|drawn| drawn == class);
        let well_after = if has("device drop") { well_after + TAKEN_BY_DROPS } else { well_after };
        // Nobody can hear a kubelet whose requests still wait.
        let is_late = has(cluster::NETWORK_BACK);
        let well_after = if is_late { well_after + cluster::NETWORK_BACK_MAX } else { well_after };
        // Our clock follows a server's that was set by up to an eighth of the time, and may run a tenth too fast.
        let is_set = draft.faults.contains("serverClock");
        let told_early = if is_set { others::NODE_LEASE_AGE / 4 } else { Duration::ZERO };
        let as_count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let setting = Setting {
            in_flight_max: as_count(policies.in_flight_max),
            cycles_max: as_count(policies.cycles_max),
            has_stale_bmc: draft.drawn.iter().any(|class| class.ends_with(" stale")),
            // Clocks that run a tenth too slow count a tenth less.
            seen_after: seen_after + seen_after / 9,
            well_after,
            sound_bmcs: draft.sound_bmcs(&names),
            is_sound: draft.is_sound(),
            switches: draft.rack.switches(),
            impostors,
            twins: twins.into_iter().collect(),
            lost,
            drivers_check,
            dumps_release_all: policies.text.contains("kdumpReleases: all"),
            needs_approval: policies.text.contains("approval: true"),
            silent_for: Some(others::NODE_LEASE_AGE.saturating_sub(told_early)),
            ill: ill.into_iter().collect(),
            has_people,
            skips: draft.skips(),
            miswired,
            guards: guards.told,
            ..plain
        };
        Self { seed, text, drawn: draft.drawn, setting }
    }

    /// The run as the simulator takes it.
    pub fn scenario(&self) -> Result<Scenario, ScenarioErrors> {
        let load = |file: &str| {
            let mut all = named_files().into_iter();
            let named = all.find(|(name, _)| name == file).map(|(_, text)| text.to_owned());
            named.ok_or_else(|| format!("no run names {file}"))
        };
        Scenario::parse(&path(self.seed), &self.text, &load)
    }
}

/// Classes of fault besides those of the tables.
const OTHER_CLASSES: [&str; 13] = [
    KERNEL_DUMP,
    "nodeComesBack",
    "controllerKilled",
    "controllerPaused",
    "bmc of another machine",
    "leader killed",
    "leader paused",
    "a bad way",
    "comes back meanwhile",
    "switched on meanwhile",
    "switched off meanwhile",
    ANOTHER_LOST,
    "pod held",
];

/// Every class of fault that runs draw from.
pub fn classes() -> Vec<String> {
    let named = LOSSES.iter().chain(&DEEDS).chain(&OTHER_CLASSES).map(|name| (*name).to_owned());
    let bmc = BMC_FAULTS.iter().map(|(fault, ..)| format!("bmc {fault}"));
    let api = API_FAULTS.iter().map(|fault| format!("api {fault}"));
    let devices = DEVICE_FAULTS.iter().map(|(fault, ..)| format!("device {fault}"));
    let of_others = EDITS
        .iter()
        .chain(&CLASSES)
        .chain(&rack::CLASSES)
        .chain(&guards::CLASSES)
        .chain(&cuts::CLASSES)
        .chain(&wiring::CLASSES)
        .chain(&kinds::CLASSES)
        .chain(&cluster::CLASSES);
    let of_others = of_others.map(|name| (*name).to_owned());
    named.chain(bmc).chain(api).chain(devices).chain(of_others).chain(cloud::classes()).collect()
}

/// Where the run of a seed is written.
pub fn path(seed: u64) -> String {
    format!("target/runs/{seed}.yaml")
}

/// The files that the configurations of runs name, as they are named there, and their texts.
pub fn named_files() -> [(String, &'static str); 2] {
    [Machines::Bmcs, Machines::Instances].map(|machines| {
        let (name, text) = machines.file();
        (format!("{CONFIG}{name}"), text)
    })
}

struct Draft {
    rng: Rng,
    rack: Rack,
    machines: Machines,
    faults: String,
    drawn: Vec<String>,
    /// When the server's clock is set ahead, and by how much.
    server_skips: Vec<(Time, Duration)>,
}

impl Draft {
    fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let drawn = self.rng.below(u64::try_from(all.len()).unwrap_or(u64::MAX));
        all.get(usize::try_from(drawn).unwrap_or_default()).copied()
    }

    /// A fault of what gives a node its power begins or, with the value 0, ends; and its class.
    fn fault(&self, node: &str, fault: &str, value: u64) -> (String, String) {
        match self.machines {
            Machines::Bmcs => self.rack.fault(node, fault, value),
            Machines::Instances => {
                (self.machines.fault(node, fault, value), self.machines.class(fault))
            }
        }
    }

    fn happens(&mut self, at_ms: u64, what: &str, class: &str) {
        let _ = writeln!(self.faults, "- {{ at: {at_ms}ms, {what} }}");
        self.drawn.push(class.to_owned());
    }

    /// Something that happens after a fact about a node.
    fn blow(&mut self, node: &str, fact: &str, fields: &str, after_ms: u64, what: &str) {
        let fact = self.rack.fact(node, fact);
        let _ = writeln!(
            self.faults,
            "- {{ when: {{ fact: {fact}, where: {{ node: {node}, {fields} }} }}, after: {after_ms}ms, {what} }}"
        );
    }

    /// Mostly one node; now and then two, or so many that it looks like a network.
    fn losses(&mut self, names: &[String]) -> Vec<String> {
        let count = match self.rng.below(100) {
            _ if self.rack.is_fed() => 1,
            _ if names.len() >= 7 => 2,
            0..75 => 1,
            75..92 => 2,
            _ => names.len() - 1,
        };
        let mut left = names.to_vec();
        let mut lost = Vec::new();
        let first = self.rng.within(60_000, 150_000);
        for _ in 0..count {
            let drawn = self.rng.below(u64::try_from(left.len()).unwrap_or(1));
            let node = left.swap_remove(usize::try_from(drawn).unwrap_or_default());
            let at = first
                + if self.chance(60) { self.rng.below(3_000) } else { self.rng.below(20_000) };
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

    fn device_faults(&mut self, names: &[String], lost: &[String]) {
        for node in lost {
            if !self.chance(self.machines.faulty_percent()) {
                continue;
            }
            let Some((fault, low, high)) = self.one_of(self.machines.faults()) else { continue };
            let (at, value) = (self.rng.below(180_000), self.rng.within(low, high));
            let (begins, class) = self.fault(node, fault, value);
            self.happens(at, &begins, &class);
            if self.chance(40) {
                let over = at + self.rng.within(3_000, 90_000);
                let (ends, class) = self.fault(node, fault, 0);
                self.happens(over, &ends, &class);
            }
        }
        for node in names {
            let over = self.machines.no_fault(node);
            let _ = writeln!(self.faults, "- {{ at: {CALM_MS}ms, {over} }}");
        }
    }

    /// Now and then the BMC at a lost node's address is another machine's.
    fn impostors(&mut self, lost: &[String]) -> BTreeSet<String> {
        let mut impostors = BTreeSet::new();
        for node in lost {
            // A providerID names the instance that it names.
            if self.chance(5) && self.machines == Machines::Bmcs {
                impostors.insert(node.clone());
                self.drawn.push("bmc of another machine".to_owned());
            }
        }
        impostors
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
            let (at, lasts) = (self.rng.within(0, 260_000), self.rng.within(2_000, 60_000));
            let what = self.bad_way(lasts);
            let fault = API_FAULTS.iter().find(|fault| what.contains(**fault));
            self.happens(at, &what, &format!("api {}", fault.unwrap_or(&"")));
        }
    }

    /// Blows that come at a moment of the incident, and not at a time of the run.
    fn aimed(&mut self, names: &[String], lost: &[String]) {
        if !self.chance(60) {
            return;
        }
        for _ in 0..self.rng.within(1, 3) {
            let (Some(node), Some((fact, fields))) = (lost.first(), self.one_of(&MOMENTS)) else {
                return;
            };
            let (fact, fields) = self.machines.moment(fact, fields);
            let after = match self.rng.below(10) {
                0..5 => self.rng.below(12),
                5..7 => self.rng.below(40),
                _ => self.rng.below(12_000),
            };
            let (least, most) = if self.chance(50) { (20, 3_000) } else { (3_000, 25_000) };
            let lasts = self.rng.within(least, most);
            let (blow, class) = match self.rng.below(100) {
                0..25 => (format!("controllerKilled: {{ lasts: {lasts}ms }}"), "leader killed"),
                25..45 => {
                    // Longer than the Lease lasts, so that another one leads meanwhile.
                    let lasts = lasts + if self.chance(60) { 12_000 } else { 0 };
                    (format!("controllerPaused: {{ lasts: {lasts}ms }}"), "leader paused")
                }
                45..70 => (self.bad_way(lasts), "a bad way"),
                70..80 => (format!("nodeComesBack: {node}"), "comes back meanwhile"),
                80..87 => (format!("powerOnByHand: {node}"), "switched on meanwhile"),
                87..93 => (format!("powerOffByHand: {node}"), "switched off meanwhile"),
                _ => {
                    let other = self.rng.below(u64::try_from(names.len()).unwrap_or(1));
                    let other = names.get(usize::try_from(other).unwrap_or_default());
                    let other = other.unwrap_or(node);
                    (format!("kubeletStops: {other}"), ANOTHER_LOST)
                }
            };
            self.blow(node, fact, fields, after, &blow);
            self.drawn.push(class.to_owned());
        }
    }

    fn bad_way(&mut self, lasts_ms: u64) -> String {
        let fault = self.one_of(&API_FAULTS).unwrap_or("unavailable");
        let percent = self.one_of(&[30, 60, 100]).unwrap_or(100);
        let takes = match fault {
            "slow" | "watchesLag" => format!(", takes: {}ms", self.rng.within(100, 4_000)),
            _ => String::new(),
        };
        format!("apiFault: {{ fault: {fault}, percent: {percent}{takes}, lasts: {lasts_ms}ms }}")
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
mod tests;
