//! Nights in which the API server fails for one kind of object only: a KMS that is away keeps Secrets from being
//! read, a webhook forbids one write, one watch stands still or falls silent while all others go on. And nights in
//! which tasks run in an order that is drawn.

use node_remedy_world::rng::Rng;

use super::{Draft, Machines};

/// The class of these nights.
const CLASS: &str = "api of one kind";
/// In so many of a hundred nights.
const PERCENT: u64 = 25;
/// What is asked for in an incident, and what then befalls it.
const FAULTS: [(&str, &str); 15] = [
    ("secrets", "unavailable"),
    ("secrets", "denied"),
    ("pods", "slow"),
    ("pods", "watchesLag"),
    ("pods/status", "denied"),
    ("nodes", "unavailable"),
    ("nodes", "watchesLag"),
    ("nodes", "answerLost"),
    ("leases", "watchesLag"),
    ("leases", "historyGone"),
    ("volumeattachments", "unavailable"),
    ("nodefences/status", "answerLost"),
    ("nodefences", "watchesBreak"),
    ("remedybudgets", "conflict"),
    ("events", "slow"),
];

/// The class of nights in which a watch stays open and tells nothing any more.
pub(super) const FROZEN: &str = "frozen watch";
/// In so many of a hundred nights.
const FROZEN_PERCENT: u64 = 12;
/// What may be silent from then on.
const WATCHED: [&str; 6] = ["nodes", "leases", "pods", "volumeattachments", "nodefences", "events"];
const FROZEN: &str = "frozen watch";
/// The class of nights in which writes are carried out late.
const LATE_WRITES: &str = "api carriedOutLate";
const LATE_PERCENT: u64 = 12;
/// The class of nights with 60 to 200 nodes more.
const CROWD: &str = "many nodes";
const CROWD_PER_MILLE: u64 = 15;
/// The class of nights in which two machines have one identity.
const TWINS: &str = "two of one identity";
const TWINS_PERCENT: u64 = 4;
/// The class of nights in which a kubelet renews its Lease seconds before it tells its new boot.
const LEASE_FIRST: &str = "lease before status";
/// The class of nights in which what a process does next is drawn.
pub(super) const SHUFFLED: &str = "tasks shuffled";
const SHUFFLED: &str = "tasks shuffled";
const FROZEN_PERCENT: u64 = 12;
const WATCHED: [&str; 6] = ["nodes", "leases", "pods", "volumeattachments", "nodefences", "events"];

/// Every class.
pub(super) const CLASSES: [&str; 7] =
    [CLASS, FROZEN, SHUFFLED, LEASE_FIRST, TWINS, LATE_WRITES, CROWD];

impl Draft {
    /// It draws from a seed of its own, so that other nights stay as they were.
    pub(super) fn one_kind(&mut self, seed: u64) {
        let mut rng = Rng::named(seed, CLASS);
        if rng.below(100) >= PERCENT {
            return;
        }
        for _ in 0..rng.within(1, 2) {
            let count = u64::try_from(FAULTS.len()).unwrap_or(1);
            let drawn = usize::try_from(rng.below(count)).unwrap_or_default();
            let Some((resource, fault)) = FAULTS.get(drawn) else { return };
            let takes = match *fault {
                "slow" | "watchesLag" => format!(", takes: {}ms", rng.within(500, 8_000)),
                _ => String::new(),
            };
            let (at, lasts) = (rng.within(60_000, 260_000), rng.within(5_000, 90_000));
            let what = format!(
                "apiFault: {{ fault: {fault}, resource: {resource}{takes}, lasts: {lasts}ms }}"
            );
            self.happens(at, &what, CLASS);
        }
    }

    /// A lost node and another one that say of themselves, and whose BMCs say of them, that they are the same
    /// machine, as boards of one batch do.
    pub(super) fn twins(&mut self, seed: u64, lost: &[String], names: &[String]) -> Vec<String> {
        let Some(one) = lost.first().filter(|node| self.rack.has_bmc(node)) else {
            return Vec::new();
        };
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

    /// Writes that are carried out when nobody waits for them any more.
    pub(super) fn late_writes(&mut self, seed: u64) {
        let mut rng = Rng::named(seed, LATE_WRITES);
        if rng.below(100) >= LATE_PERCENT {
            return;
        }
        let (at, lasts) = (rng.within(60_000, 260_000), rng.within(2_000, 40_000));
        let (takes, percent) = (rng.within(50, 15_000), rng.within(10, 60));
        let what = format!(
            "apiFault: {{ fault: carriedOutLate, takes: {takes}ms, percent: {percent}, lasts: {lasts}ms }}"
        );
        self.happens(at, &what, LATE_WRITES);
    }

    /// What is watched when it freezes stays silent until somebody asks anew.
    pub(super) fn frozen_watch(&mut self, seed: u64) {
        let mut rng = Rng::named(seed, FROZEN);
        if rng.below(100) >= FROZEN_PERCENT {
            return;
        }
        let count = u64::try_from(WATCHED.len()).unwrap_or(1);
        let drawn = usize::try_from(rng.below(count)).unwrap_or_default();
        let Some(resource) = WATCHED.get(drawn) else { return };
        let (at, lasts) = (rng.within(30_000, 260_000), rng.within(100, 20_000));
        let what =
            format!("apiFault: {{ fault: watchesFreeze, resource: {resource}, lasts: {lasts}ms }}");
        self.happens(at, &what, FROZEN);
    }
}
