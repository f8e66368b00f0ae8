//! Decisions not to act, folded: one per guard and node.

use std::collections::BTreeMap;

use node_remedy_decide::{Hold, Refusal};
use node_remedy_report as report;

use super::ms;
use crate::refusals::refusal_word;
use crate::simulate::collect::Collected;

pub(super) fn refusals(collected: &Collected) -> Vec<report::Refusal> {
    let mut folded: BTreeMap<(String, &str), report::Refusal> = BTreeMap::new();
    for held in &collected.held {
        let Hold::Gate(refused) = &held.hold else { continue };
        for refusal in refused {
            let guard = refusal_word(refusal);
            let at_ms = ms(held.at);
            let line =
                folded.entry((held.node.clone(), guard)).or_insert_with(|| report::Refusal {
                    first_ms: at_ms,
                    last_ms: at_ms,
                    times: 0,
                    node: held.node.clone(),
                    guard: guard.to_owned(),
                    numbers: String::new(),
                    rule: "A1, the gate".to_owned(),
                    next: next_of(refusal),
                });
            line.last_ms = at_ms;
            line.times += 1;
            line.numbers = refusal.to_string();
        }
    }
    let mut all: Vec<report::Refusal> = folded.into_values().collect();
    all.sort_by(|a, b| (a.first_ms, &a.node).cmp(&(b.first_ms, &b.node)));
    all
}

fn next_of(refusal: &Refusal) -> Option<String> {
    let storm = matches!(refusal, Refusal::UnhealthyShare { .. } | Refusal::UnhealthyCount { .. });
    storm.then(|| "look at what the silent nodes share: power, switch, rack".to_owned())
}
