//! Decisions not to act, folded: one per guard and node.

use std::collections::BTreeMap;

use node_remedy_decide::{Action, End, Hold, PlugState, Refusal};
use node_remedy_report as report;
use node_remedy_world::facts::What;

use super::incidents::journal;
use super::ms;
use crate::refusals::refusal_word;
use crate::simulate::Played;
use crate::simulate::collect::Collected;

pub(super) fn gated(collected: &Collected) -> Vec<report::Refusal> {
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

/// Releases that were refused because a device said yes and then read on: no grade, no release.
pub(super) fn unproven(played: &Played) -> Vec<report::Refusal> {
    let incidents = played.collected.incidents.iter();
    let unproven = incidents.filter(|(_, (_, _, record))| record.proof.is_none());
    let refused = unproven.filter_map(|(name, (nodefence, _, _))| {
        let node = &nodefence.spec.node.name;
        let yes = played.facts.iter().filter(|fact| {
            matches!(&fact.what, What::BmcSaidYes { node: of, command }
                if of == node && command == "off")
        });
        let yes: Vec<u64> = yes.map(|fact| ms(fact.at)).collect();
        let first_ms = *yes.first()?;
        let reads: Vec<u64> = journal(&played.collected, name)
            .filter(|one| one.action == Action::Status && ms(one.intended_at) > first_ms)
            .filter(|one| matches!(&one.end, Some(End::Succeeded { state: PlugState::On, .. })))
            .map(|one| ms(one.intended_at))
            .collect();
        Some(report::Refusal {
            first_ms: *reads.first()?,
            last_ms: *reads.last()?,
            times: u32::try_from(reads.len()).unwrap_or(u32::MAX),
            node: node.clone(),
            guard: "NoProof".to_owned(),
            numbers: format!("said yes {} times, read on {} times after", yes.len(), reads.len()),
            rule: "P1".to_owned(),
            next: None,
        })
    });
    refused.collect()
}

fn next_of(refusal: &Refusal) -> Option<String> {
    let storm = matches!(refusal, Refusal::UnhealthyShare { .. } | Refusal::UnhealthyCount { .. });
    storm.then(|| "look at what the silent nodes share: power, switch, rack".to_owned())
}
