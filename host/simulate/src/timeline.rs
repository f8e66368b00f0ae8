//! Makes a timeline of what a played scenario left behind.
//!
//! What happened is told from the world's facts, why from the controller's decisions.

pub mod entries;
pub mod incidents;
pub mod intervals;
pub mod outcome;
pub mod proof;
pub mod refusals;
mod words;

use node_remedy_report::Run;
use node_remedy_world::Scenario;
use node_remedy_world::scenario::Expectation;

use crate::run::Played;
use crate::timeline::words::Lanes;

/// Tells one playing, and holds it against what was expected.
pub fn run(scenario: &Scenario, played: &Played, expected: &[Expectation]) -> Run {
    let end_ms = u64::try_from(played.lasted.as_millis()).unwrap_or(u64::MAX);
    let mut refusals = crate::timeline::refusals::unopened(&played.collected);
    // In one millisecond a device does, says, and then something is decided on it.
    let lanes = Lanes::of(scenario);
    let mut entries = crate::timeline::entries::of_facts(&lanes, &played.facts);
    entries.extend(crate::timeline::entries::of_calls(&lanes, &played.collected));
    entries.extend(crate::timeline::entries::of_decisions(&played.collected));
    entries.extend(crate::timeline::entries::of_refusals(&refusals));
    entries.sort_by_key(|entry| entry.at_ms);
    let mut intervals =
        crate::timeline::intervals::of_facts(scenario, &lanes, &played.facts, end_ms);
    intervals.extend(crate::timeline::intervals::of_refusals(&refusals));
    intervals.sort_by(|a, b| (a.lane, &a.subject, a.from_ms).cmp(&(b.lane, &b.subject, b.from_ms)));
    let outcome = crate::timeline::outcome::outcome(played, &refusals, expected);
    // The timeline tells of these line by line already.
    refusals.extend(crate::timeline::refusals::unproven(played));
    Run {
        end_ms,
        entries,
        intervals,
        incidents: crate::timeline::incidents::incidents(played),
        outcome,
        refusals,
    }
}
