//! What clusters the nights befall: how many nodes, whose identities are theirs alone or not, how soon kubelets tell
//! their new boot, in which order a process does what it could do next. Each draws from a seed of its own, so that
//! other nights stay as they were.

use node_remedy_world::rng::Rng;

use super::{Draft, Machines};

/// The class of nights with 60 to 200 nodes more.
const CROWD: &str = "many nodes";
const CROWD_PER_MILLE: u64 = 15;
/// The class of nights in which two machines have one identity.
const TWINS: &str = "two of one identity";
const TWINS_PERCENT: u64 = 4;
/// The class of nights in which a kubelet renews its Lease seconds before it tells its new boot.
const LEASE_FIRST: &str = "lease before status";
/// The class of nights in which what a process does next is drawn.
const SHUFFLED: &str = "tasks shuffled";

/// Every class.
pub(super) const CLASSES: [&str; 4] = [CROWD, TWINS, LEASE_FIRST, SHUFFLED];

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

    /// Many more nodes, some of which fall silent at once for a while: the line that makes them, and how many.
    pub(super) fn crowd(&mut self, seed: u64) -> (String, u64) {
        let mut rng = Rng::named(seed, CROWD);
        if self.machines != Machines::Bmcs || rng.below(1_000) >= CROWD_PER_MILLE {
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
        if rng.below(2) == 0 {
            self.drawn.push(LEASE_FIRST.to_owned());
            fields.push(format!("firstStatus: {}ms", rng.within(4_000, 9_000)));
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
