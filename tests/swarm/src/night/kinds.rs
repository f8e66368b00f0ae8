//! Nights in which the API server fails for one kind of object only: a KMS that is away keeps Secrets from being
//! read, a webhook forbids one write, one watch stands still while all others go on.

use node_remedy_world::rng::Rng;

use super::Draft;

/// The class of these nights.
pub(super) const CLASS: &str = "api of one kind";
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
}
