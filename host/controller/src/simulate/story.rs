//! Makes a story of what a played scenario left behind.
//!
//! What happened is told from the world's facts, why from the controller's decisions.

mod entries;
mod incidents;
mod outcome;
mod proof;
mod refusals;
mod stretches;

use node_remedy_decide::Time;
use node_remedy_report::Run;
use node_remedy_world::Scenario;
use node_remedy_world::scenario::{Expectation, START};

use super::Played;

/// Tells one playing, and holds it against what was expected.
pub fn run(scenario: &Scenario, played: &Played, expected: &[Expectation]) -> Run {
    let end_ms = u64::try_from(played.lasted.as_millis()).unwrap_or(u64::MAX);
    let mut refusals = refusals::unopened(&played.collected);
    // In one millisecond a device does, says, and then something is decided on it.
    let mut entries = entries::of_facts(&played.facts);
    entries.extend(entries::of_calls(&played.collected));
    entries.extend(entries::of_decisions(&played.collected));
    entries.extend(entries::of_refusals(&refusals));
    entries.sort_by_key(|entry| entry.at_ms);
    for entry in &mut entries {
        call_instance(scenario, &mut entry.subject);
    }
    let mut stretches = stretches::of_facts(scenario, &played.facts, end_ms);
    stretches.extend(stretches::of_refusals(&refusals));
    for stretch in &mut stretches {
        call_instance(scenario, &mut stretch.subject);
    }
    stretches.sort_by(|a, b| (a.lane, &a.subject, a.from_ms).cmp(&(b.lane, &b.subject, b.from_ms)));
    let outcome = outcome::outcome(played, &refusals, expected);
    // The timeline tells of these line by line already.
    refusals.extend(refusals::unproven(played));
    Run { end_ms, entries, stretches, incidents: incidents::incidents(played), outcome, refusals }
}

/// What the device lane calls the BMC of a node.
fn bmc_of(node: &str) -> String {
    format!("BMC of {node}")
}

/// What it calls a machine that has none, because it is an instance of a cloud.
fn call_instance(scenario: &Scenario, subject: &mut String) {
    let node = scenario.nodes.iter().find(|node| bmc_of(&node.name) == *subject);
    if let Some(node) = node.filter(|node| node.cloud.is_some()) {
        *subject = format!("instance of {}", node.name);
    }
}

fn ms(at: Time) -> u64 {
    at.0.saturating_sub(START.0)
}
