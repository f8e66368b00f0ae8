//! What others do in a run: people who change the configuration, another remediator, a second
//! policy, a ladder; and clocks that are wrong.

mod people;
mod repairs;

pub(super) use self::repairs::{ONE_METHOD, REPAIR};

use std::fmt::Write as _;
use std::time::Duration;

use node_remedy_world::rng::Rng;
use node_remedy_world::scenario::START;
use node_remedy_world::time::{Time, after};

use super::{CALM_MS, CONFIG, Draft, FENCE, KERNEL_DUMP, LOSSES, Machines};

/// A method that sees dumps, in a stage of its own.
const WATCH_METHOD: &str = "  - name: crash-dump
    plugin: kdump
  isolation:
  - name: see-dumps
    methods: [crash-dump]
";

/// An object of the run, from the text of a file.
pub(super) fn as_object(text: &str) -> String {
    format!("- object:\n{}", indented(text))
}

fn indented(text: &str) -> String {
    text.lines().flat_map(|line| ["    ", line, "\n"]).collect()
}

/// A run's configuration with some lines in place of others; it may still be the file itself.
fn in_place(run: &str, file: &str, from: &str, to: &str) -> String {
    let object = if run.starts_with("- object") { run.to_owned() } else { as_object(file) };
    object.replacen(&indented(from), &indented(to), 1)
}

/// What people do to the configuration, and undo.
pub(super) const EDITS: [&str; 7] = [
    "edit maxInFlight",
    "edit mode",
    "edit nodeSelector",
    "edit policy gone",
    "edit fence gone",
    "edit secret gone",
    "edit wrong bmc",
];

/// The other classes of fault that are drawn here.
pub(super) const CLASSES: [&str; 13] = [
    "two policies",
    "another remediator",
    "clock jumps",
    "clock drifts",
    "server's clock set",
    REPAIR,
    ONE_METHOD,
    DEVICES_LOST,
    PAUSE,
    people::APPROVAL,
    people::OPERATOR_COMMAND,
    people::DRAIN,
    DRIVER_CHECKS,
];
/// The CSI driver detaches nothing that is written to, and the policy knows.
const DRIVER_CHECKS: &str = "driver checks";
/// Nothing is to be cut while it lasts.
const PAUSE: &str = "pause";
/// A process whose management network is lost.
const DEVICES_LOST: &str = "devices lost";

/// A policy as text, and where it counts.
pub(super) struct Policies {
    /// The objects, for the scenario's configuration.
    pub(super) text: String,
    /// `spec` of the first.
    spec: String,
    /// So many nodes may be worked on at once by any of them.
    pub(super) in_flight_max: u64,
    /// How often one may be switched off in one incident.
    pub(super) cycles_max: u64,
    /// So many pods are released a minute, by pool, where a policy paces that.
    pub(super) paces: Vec<Option<u64>>,
    /// So many pods have to serve, by their disruption budget.
    pub(super) available_min: Option<u64>,
    /// The pools that nodes are in, in turn.
    pub(super) pools: &'static [&'static str],
}

impl Policies {
    /// Says what a remedy is that a ladder names.
    pub(super) fn define(&mut self, remedy: &str) {
        for text in [&mut self.text, &mut self.spec] {
            *text = if text.contains("remedyConfigs: [") {
                text.replace("remedyConfigs: [", &format!("remedyConfigs: [{remedy}, "))
            } else {
                text.replace(", policies: {", &format!(", remedyConfigs: [{remedy}], policies: {{"))
            };
        }
    }
}

/// The `nodeLeaseAge` of every policy. The conditions that they name besides are of nodes that are ill, or true
/// only of a kubelet that is heard.
pub(super) const NODE_LEASE_AGE: Duration = Duration::from_secs(20);

impl Draft {
    /// The numbers that policies differ in most; now and then there are two policies.
    pub(super) fn policies(&mut self) -> Policies {
        let pools: &[&str] = if self.chance(10) {
            self.drawn.push("two policies".to_owned());
            &["a", "b"]
        } else {
            &["a"]
        };
        let mut policies = Policies {
            text: String::new(),
            spec: String::new(),
            in_flight_max: 0,
            cycles_max: 0,
            paces: Vec::new(),
            available_min: None,
            pools,
        };
        for pool in pools {
            let in_flight = if self.chance(25) { 2 } else { 1 };
            let restarts = u64::from(self.chance(25));
            let (recover_s, cool_down_s) = (self.rng.within(100, 900), self.rng.within(30, 600));
            let pace = (self.rng.below(5) == 0).then(|| self.rng.within(2, 60));
            let release =
                pace.map_or("prompt".to_owned(), |pace| format!("paced, podsPerMinute: {pace}"));
            policies.paces.push(pace);
            let spec = format!(
                "{{ mode: enforce, nodeSelector: pool={pool}, thresholdConfigs: [\
                 {{ nodeConditionType: Ready, nodeConditionStatus: false, nodeConditionPeriod: 5s, \
                 remedy1: [{{ name: fence }}] }}, {{ nodeLeaseAge: 20s, remedy1: [{{ name: fence }}] }}], \
                 policies: {{ maxUnhealthyPercent: 30, maxInFlight: {in_flight}, restarts: {restarts}, \
                 recoverTimeout: {recover_s}s, coolDown: {cool_down_s}s, releaseMode: {release} }} }}"
            );
            let text = format!(
                "- object: {{ apiVersion: node-remedy.io/v1alpha1, kind: RemedyConfiguration, \
                 metadata: {{ name: pool-{pool} }}, spec: {spec} }}\n"
            );
            policies.text.push_str(&text);
            policies.in_flight_max = policies.in_flight_max.max(in_flight);
            policies.cycles_max = policies.cycles_max.max(restarts + 1);
            if policies.spec.is_empty() {
                policies.spec = spec;
            }
        }
        policies
    }

    /// Somebody changes the configuration in the middle of it all, and later changes it back.
    pub(super) fn edits(&mut self, policies: &mut Policies, lost: &[String], names: &[String]) {
        let Some(edit) = Some(()).filter(|()| self.chance(20)).and_then(|()| self.one_of(&EDITS))
        else {
            return;
        };
        let policy = "kind: RemedyConfiguration, name: pool-a";
        let fence = format!("kind: FenceConfiguration, name: {}", self.machines.fence());
        let secret =
            format!("kind: Secret, namespace: node-remedy, name: {}", self.machines.secret());
        let (fence, secret) = (fence.as_str(), secret.as_str());
        let merge = |of: &str, fields: &str| format!("edit: {{ {of}, merge: {{ {fields} }} }}");
        let gone = |of: &str| format!("remove: {{ {of} }}");
        let (done, undone) = match edit {
            "edit maxInFlight" => {
                let raised = self.one_of(&[1, 2, 3]).unwrap_or(1);
                policies.in_flight_max = policies.in_flight_max.max(raised);
                let spec = format!("spec: {{ policies: {{ maxInFlight: {raised} }} }}");
                (merge(policy, &spec), merge(policy, "spec: { policies: { maxInFlight: 1 } }"))
            }
            "edit mode" => {
                (merge(policy, "spec: { mode: shadow }"), merge(policy, "spec: { mode: enforce }"))
            }
            "edit nodeSelector" => (
                merge(policy, "spec: { nodeSelector: pool=none }"),
                merge(policy, "spec: { nodeSelector: pool=a }"),
            ),
            "edit policy gone" => {
                (gone(policy), merge(policy, &format!("spec: {}", policies.spec)))
            }
            "edit fence gone" => (gone(fence), merge(fence, &fence_spec(self.machines.file().1))),
            "edit secret gone" => (
                gone(secret),
                merge(secret, "stringData: { username: admin, password: simulated }"),
            ),
            // No annotation says where an instance is.
            _ if self.machines == Machines::Instances => return,
            // The table of a rack says more than addresses.
            _ if self.rack.is_there() => return,
            // The address of another machine's BMC is written for a lost node.
            _ => {
                let place = |node: &String| names.iter().position(|name| name == node);
                let Some((node, own)) = lost.first().and_then(|node| Some((node, place(node)?)))
                else {
                    return;
                };
                let other = (own + 1) % names.len();
                let says = |number: usize| {
                    let mut table = "node,bmc-address".to_owned();
                    for (its_own, name) in names.iter().enumerate() {
                        let number = if name == node { number } else { its_own };
                        let _ = write!(table, "\\n{name},192.0.2.{}", number + 1);
                    }
                    merge(
                        "kind: ConfigMap, namespace: node-remedy, name: machines",
                        &format!("data: {{ nodes.csv: \"{table}\" }}"),
                    )
                };
                (says(other), says(own))
            }
        };
        let at = self.rng.within(5_000, 240_000);
        let back = self.rng.within(at + 1_000, CALM_MS);
        self.happens(at, &done, edit);
        self.happens(back, &undone, edit);
    }

    /// Another remediator locks a node that is lost, or one that will be.
    pub(super) fn other_remedy(&mut self, lost: &[String]) {
        let Some(node) = lost.first().filter(|_| self.chance(8)) else { return };
        for _ in 0..self.rng.within(1, 2) {
            let (at, lasts) = (self.rng.within(0, 240_000), self.rng.within(10, 90));
            let what = format!("otherRemedy: {{ node: {node}, lasts: {lasts}s }}");
            self.happens(at, &what, "another remediator");
        }
    }

    /// The fence configuration of the run, with what a kernel dump and a remedy need.
    pub(super) fn fence_configuration(
        &mut self,
        seed: u64,
        policies: &mut Policies,
        lost: &[String],
    ) -> String {
        let fence = self.kernel_dump(seed, policies, lost);
        self.one_method(seed, policies, fence)
    }

    /// Now and then the first node is lost because its kernel crashes, and a dump is written, heard and
    /// mostly waited for. Answers the fence configuration of the run. It draws from a seed of its own,
    /// so that other runs stay as they were.
    fn kernel_dump(&mut self, seed: u64, policies: &mut Policies, lost: &[String]) -> String {
        let mut rng = Rng::named(seed, "kernel dump");
        let node = lost.first().filter(|_| rng.below(100) < 6 && self.machines == Machines::Bmcs);
        let line = node.and_then(|node| {
            let losses = LOSSES.map(|loss| format!("{loss}: {node} }}"));
            losses.into_iter().find(|line| self.faults.contains(line))
        });
        let (Some(node), Some(line)) = (node, line) else {
            return format!("- file: {CONFIG}{}\n", self.machines.file().0);
        };
        let lasts = rng.within(5, 240);
        let mut fields = format!("node: {node}, lasts: {lasts}s");
        for (percent, field) in
            [(30, ", bigEndian: true"), (20, ", controller: 1"), (10, ", from: 203.0.113.9")]
        {
            if rng.below(100) < percent {
                fields.push_str(field);
            }
        }
        let dumps = format!("kernelDumps: {{ {fields} }} }}");
        self.faults = self.faults.replacen(&line, &dumps, 1);
        self.drawn.push(KERNEL_DUMP.to_owned());
        if rng.below(100) < 80 {
            let grades =
                if rng.below(100) < 50 { ", grades: [power-off-verified, kdump-seen]" } else { "" };
            let mut of_volumes = Rng::named(seed, "kernel dump, volumes too");
            let all = !grades.is_empty() && of_volumes.below(100) < 50;
            let grades = format!("{grades}{}", if all { ", kdumpReleases: all" } else { "" });
            let waits = format!("policies: {{ kdumpGrace: {}s{grades}, ", rng.within(10, 150));
            policies.text = policies.text.replace("policies: { ", &waits);
        }
        as_object(
            &FENCE
                .replace("  isolation:\n", WATCH_METHOD)
                .replace("  grants:\n", "  grants:\n  - plugin: kdump\n    cidrs: [10.1.0.0/16]\n"),
        )
    }

    /// A driver that checks, and a policy that gives back what it does: what the cluster says of it.
    pub(super) fn checks_at_detach(&mut self, seed: u64, policies: &mut Policies) -> bool {
        if Rng::named(seed, DRIVER_CHECKS).below(100) >= 8 {
            return false;
        }
        self.drawn.push(DRIVER_CHECKS.to_owned());
        let drivers = "safeDetachDrivers: [block.csi.node-remedy.io]";
        let (power, both) =
            ("grades: [power-off-verified", "grades: [power-off-verified, partition");
        policies.text = if policies.text.contains(power) {
            let named = policies.text.replace(power, both);
            named.replace("policies: { ", &format!("policies: {{ {drivers}, "))
        } else {
            policies.text.replace("policies: { ", &format!("policies: {{ {drivers}, {both}], "))
        };
        true
    }

    /// When a clock is set, and how; and by how much it is then ahead, in milliseconds.
    fn clock_is_set(&mut self) -> (u64, String, u64) {
        let (at, by) = (self.rng.below(260_000), jump(&mut self.rng));
        let is_ahead = self.chance(50);
        let way = if is_ahead { "ahead" } else { "back" };
        (at, format!("{way}: {by}ms"), if is_ahead { by } else { 0 })
    }

    /// The clock of the API server's machine is set.
    fn server_clock(&mut self) {
        if self.chance(10) {
            for _ in 0..self.rng.within(1, 2) {
                let (at, set, ahead_ms) = self.clock_is_set();
                let set_at = after(START, Duration::from_millis(at));
                self.server_skips.push((set_at, Duration::from_millis(ahead_ms)));
                let what = format!("serverClock: {{ {set} }}");
                self.happens(at, &what, "server's clock set");
            }
        }
    }

    /// When the server's clock is set ahead, and by how much, where processes start again.
    pub(super) fn skips(&self) -> Vec<(Time, Duration)> {
        let starts = self.faults.contains("controllerKilled");
        if starts { self.server_skips.clone() } else { Vec::new() }
    }

    /// The clocks of node-remedy's machines: set by hand, or running too fast or too slow.
    pub(super) fn clocks(&mut self, seed: u64, controllers: u64) {
        self.devices_lost(seed, controllers);
        self.pause(seed);
        for controller in 1..=controllers {
            if self.chance(12) {
                for _ in 0..self.rng.within(1, 3) {
                    let (at, set, _) = self.clock_is_set();
                    let what = format!("clockFault: {{ controller: {controller}, {set} }}");
                    self.happens(at, &what, "clock jumps");
                }
            }
            if self.chance(10) {
                let at = self.rng.below(100_000);
                let drift = i64::try_from(self.rng.below(201)).unwrap_or_default() - 100;
                let what = format!("clockFault: {{ controller: {controller}, drift: {drift} }}");
                self.happens(at, &what, "clock drifts");
            }
        }
        self.server_clock();
    }

    /// Somebody pauses everything, and ends it later.
    fn pause(&mut self, seed: u64) {
        let mut rng = Rng::named(seed, PAUSE);
        if rng.below(100) >= 8 {
            return;
        }
        let at = rng.within(10_000, 150_000);
        let ends = rng.within(at + 5_000, CALM_MS);
        let pause = "kind: RemedyPause, name: stop";
        let spec = "merge: { spec: { reason: new switches, by: alice } }";
        self.happens(at, &format!("edit: {{ {pause}, {spec} }}"), PAUSE);
        let _ = writeln!(self.faults, "- {{ at: {ends}ms, remove: {{ {pause} }} }}");
    }

    /// A process reaches no device for a while: another one may lead meanwhile.
    fn devices_lost(&mut self, seed: u64, controllers: u64) {
        let mut rng = Rng::named(seed, DEVICES_LOST);
        if rng.below(100) >= 10 {
            return;
        }
        let controller = rng.within(1, controllers);
        let (at, lasts) = (rng.within(1_000, 150_000), rng.within(5_000, 120_000));
        let what = format!("devicesLost: {{ controller: {controller}, lasts: {lasts}ms }}");
        self.happens(at, &what, DEVICES_LOST);
    }
}

/// From a tenth of a second to three hours, in milliseconds, every order of them alike.
fn jump(rng: &mut Rng) -> u64 {
    let order = 10_u64.pow(u32::try_from(rng.within(2, 6)).unwrap_or(2));
    rng.within(order, order * 10)
}

/// `spec: …` of the shown FenceConfiguration; JSON, which is YAML on one line.
fn fence_spec(file: &str) -> String {
    let object: serde_json::Value = serde_saphyr::from_str(file).unwrap_or_default();
    format!("spec: {}", object.get("spec").cloned().unwrap_or_default())
}
