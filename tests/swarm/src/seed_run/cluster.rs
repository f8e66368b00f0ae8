//! What clusters the runs hit: how many nodes, whose identities are theirs alone or not, how soon kubelets tell
//! their new boot, in which order a process does what it could do next. Each draws from a seed of its own, so that
//! other runs stay as they were.

use std::time::Duration;

use node_remedy_world::rng::Rng;

use super::{Draft, Machines, SeedRun};

/// What a BMC says whose machine is another one.
const OF_OTHER: &str = ", systemUUID: 4c4c4544-0051-4810-8031-b8c04f4e3231, \
     bmc: { guid: 9d3a7c52-61f0-4b1e-8d24-70f5c2a81b66 }";
/// What two machines say that are one, as far as anybody can tell.
const OF_TWINS: &str = ", systemUUID: 4c4c4544-0037-4a10-8052-b4c04f564433, \
     bmc: { guid: 4c4c454400374a108052b4c04f564433 }";
/// The class of runs with 60 to 200 nodes more.
const CROWD: &str = "many nodes";
const CROWD_PER_MILLE: u64 = 15;
/// The class of runs in which two machines have one identity.
const TWINS: &str = "two of one identity";
const TWINS_PERCENT: u64 = 4;
/// The class of runs in which a kubelet renews its Lease seconds before it tells its new boot.
const LEASE_FIRST: &str = "lease before status";
/// The class of runs in which a kubelet's requests wait when its network is back.
pub(super) const NETWORK_BACK: &str = "late after a network";
/// How long they wait at most.
pub(super) const NETWORK_BACK_MAX: Duration = Duration::from_secs(14);
/// The class of runs in which what a process does next is drawn.
const SHUFFLED: &str = "tasks shuffled";
/// The class of runs in which the definitions in the cluster are older than node-remedy.
const OLDER_DEFINITIONS: &str = "older definitions";

/// Every class.
pub(super) const CLASSES: [&str; 6] =
    [CROWD, TWINS, LEASE_FIRST, NETWORK_BACK, SHUFFLED, OLDER_DEFINITIONS];

impl SeedRun {
    /// Whether the cluster has the definitions of an older node-remedy.
    pub fn has_older_definitions(&self) -> bool {
        self.drawn.iter().any(|class| class == OLDER_DEFINITIONS)
    }
}

impl Draft {
    /// A lost node and another one that say of themselves, and whose BMCs say of them, that they are the same
    /// machine, as boards of one batch do.
    pub(super) fn twins(&mut self, seed: u64, lost: &[String], names: &[String]) -> Vec<String> {
        let is_bmcs = self.machines == Machines::Bmcs;
        let first = lost.first().filter(|node| is_bmcs && self.rack.has_bmc(node));
        let Some(one) = first else { return Vec::new() };
        let other = names.iter().find(|node| *node != one && self.rack.has_bmc(node));
        let Some(other) = other.filter(|_| Rng::named(seed, TWINS).below(100) < TWINS_PERCENT)
        else {
            return Vec::new();
        };
        self.drawn.push(TWINS.to_owned());
        vec![one.clone(), other.clone()]
    }

    /// What a node's machine says of itself.
    pub(super) fn identity(&self, is_twin: bool, is_impostor: bool) -> &'static str {
        match (is_twin, is_impostor) {
            (true, _) => OF_TWINS,
            (false, true) => OF_OTHER,
            (false, false) => self.machines.fields(),
        }
    }

    /// Many more nodes, some of which fall silent at once for a while: the line that makes them, and how many. None
    /// where somebody asks for a number of nodes.
    pub(super) fn crowd(&mut self, seed: u64, is_asked_for: bool) -> (String, u64) {
        let mut rng = Rng::named(seed, CROWD);
        if is_asked_for || self.machines != Machines::Bmcs || rng.below(1_000) >= CROWD_PER_MILLE {
            return (String::new(), 0);
        }
        let count = rng.within(60, 200);
        let (silent, at) = (rng.within(0, 12), rng.within(60_000, 200_000));
        let width = count.to_string().len();
        for number in 1..=silent {
            let node = format!("crowd-{number:0width$}");
            let falls = at + rng.below(3_000);
            self.happens(falls, &format!("kubeletStops: {node}"), CROWD);
            let back = falls + rng.within(5_000, 60_000);
            self.happens(back, &format!("nodeComesBack: {node}"), CROWD);
        }
        self.drawn.push(CROWD.to_owned());
        let labels = "{ node-remedy.io/fence: ipmi, pool: a }";
        let line =
            format!("- {{ name: crowd, count: {count}, bootTime: 60s, labels: {labels} }}\n");
        (line, count)
    }

    /// How fast the cluster is, and what its driver does.
    pub(super) fn cluster(&mut self, seed: u64, drivers_check: bool) -> String {
        let mut rng = Rng::named(seed, LEASE_FIRST);
        let mut fields = Vec::new();
        if drivers_check {
            fields.push("checksAtDetach: true".to_owned());
        }
        if Rng::named(seed, OLDER_DEFINITIONS).below(100) < 3 {
            self.drawn.push(OLDER_DEFINITIONS.to_owned());
        }
        if rng.below(2) == 0 {
            self.drawn.push(LEASE_FIRST.to_owned());
            fields.push(format!("firstStatus: {}ms", rng.within(4_000, 9_000)));
        }
        if rng.below(3) == 0 {
            let waits_max_ms = u64::try_from(NETWORK_BACK_MAX.as_millis()).unwrap_or(u64::MAX);
            self.drawn.push(NETWORK_BACK.to_owned());
            fields.push(format!("networkBack: {}ms", rng.within(2_000, waits_max_ms)));
        }
        if fields.is_empty() {
            String::new()
        } else {
            format!("cluster: {{ {} }}\n", fields.join(", "))
        }
    }

    /// In which order a process does what it could do next.
    pub(super) fn order(&mut self, seed: u64) -> &'static str {
        if Rng::named(seed, SHUFFLED).below(2) == 0 {
            return "";
        }
        self.drawn.push(SHUFFLED.to_owned());
        "shuffle: true\n"
    }
}

/// A pod as a DaemonSet has one on every node.
pub(super) fn daemon(node: &str) -> String {
    format!(
        "- object:\n    apiVersion: v1\n    kind: Pod\n    metadata:\n      name: agent-{node}\n      namespace: kube-system\n      \
         ownerReferences: [{{ apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: d, controller: true }}]\n    \
         spec: {{ nodeName: {node}, tolerations: [{{ operator: Exists }}], containers: [{{ name: agent }}] }}\n"
    )
}
