//! Runs in which the API server fails for one kind of object only: a KMS that is away keeps Secrets from being
//! read, a webhook forbids one write, one watch stands still or falls silent while all others go on. And runs in
//! which writes are carried out when nobody waits for them any more.

use node_remedy_world::rng::Rng;

use super::{Draft, SeedRun};

/// The class of these runs.
const CLASS: &str = "api of one kind";
/// In so many of a hundred runs.
const PERCENT: u64 = 25;
/// What is asked for in an incident, and what then hits it.
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

/// The class of runs in which a watch stays open and tells nothing any more.
const FROZEN: &str = "frozen watch";
/// In so many of a hundred runs.
const FROZEN_PERCENT: u64 = 12;
/// What may be silent from then on.
const WATCHED: [&str; 6] = ["nodes", "leases", "pods", "volumeattachments", "nodefences", "events"];
/// The class of runs in which writes are carried out late.
const LATE_WRITES: &str = "api carriedOutLate";
const LATE_PERCENT: u64 = 12;

/// The class of runs in which the data of the cluster is set back.
const SET_BACK: &str = "etcd set back";
const SET_BACK_PERCENT: u64 = 3;
/// What an incident has come to when its data is saved, or when it is set back.
const MOMENTS: [(&str, &str); 4] = [
    ("intentRecorded", "action: \"off\""),
    ("proofRecorded", "grade: power-off-verified"),
    ("intentRecorded", "action: \"on\""),
    ("fenceState", "state: Final"),
];

/// Every class.
pub(super) const CLASSES: [&str; 4] = [CLASS, FROZEN, LATE_WRITES, SET_BACK];

impl SeedRun {
    /// Whether somebody sets the data of the cluster back.
    pub fn is_set_back(&self) -> bool {
        self.drawn.iter().any(|class| class == SET_BACK)
    }
}

impl Draft {
    /// An API server that fails in part.
    pub(super) fn fails_in_part(&mut self, seed: u64) {
        self.one_kind(seed);
        self.frozen_watch(seed);
        self.late_writes(seed);
    }

    /// It draws from a seed of its own, so that other runs stay as they were.
    fn one_kind(&mut self, seed: u64) {
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

    /// Somebody saves the data of the cluster, and sets it back later: what was recorded, written and released since
    /// is forgotten; machines and storage are not. Answers whether they did.
    pub(super) fn set_back(&mut self, seed: u64, lost: &[String]) -> bool {
        let mut rng = Rng::named(seed, SET_BACK);
        let node = lost.first().filter(|_| rng.below(100) < SET_BACK_PERCENT);
        let Some(node) = node else { return false };
        let mut of_incident = |draft: &mut Self, longest: u64, what: &str| {
            let drawn = usize::try_from(rng.below(4)).unwrap_or_default();
            if let Some((fact, fields)) = MOMENTS.get(drawn) {
                draft.blow(node, fact, fields, rng.below(longest), what);
            }
        };
        of_incident(self, 2_000, "etcd: saved");
        of_incident(self, 60_000, "etcd: restored");
        let (saved, restored) = (rng.within(20_000, 120_000), rng.within(130_000, 400_000));
        if rng.below(2) == 0 {
            self.happens(saved, "etcd: saved", SET_BACK);
        }
        self.happens(restored, "etcd: restored", SET_BACK);
        true
    }

    /// Writes that are carried out when nobody waits for them any more.
    fn late_writes(&mut self, seed: u64) {
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
    fn frozen_watch(&mut self, seed: u64) {
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
