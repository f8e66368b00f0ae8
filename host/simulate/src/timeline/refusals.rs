//! Decisions not to act, folded: one per guard and node.

use std::collections::BTreeMap;

use node_remedy_decide::{Action, End, Hold, PlugState, Refusal};
use node_remedy_record::reason::{Reason, refusal_word};
use node_remedy_report as report;

use crate::recorder::Collected;
use crate::run::Played;
use crate::timeline::words::{journal, ms};

/// What kept incidents from being opened; what passes by itself within a second is left out.
pub(super) fn unopened(collected: &Collected) -> Vec<report::Refusal> {
    let mut folded: BTreeMap<(String, &str), report::Refusal> = BTreeMap::new();
    for refused in &collected.refused {
        for told in told(&refused.reason) {
            let at_ms = ms(refused.at);
            let line = folded.entry((refused.node.clone(), told.guard)).or_insert_with(|| {
                report::Refusal {
                    first_ms: at_ms,
                    last_ms: at_ms,
                    times: 0,
                    node: refused.node.clone(),
                    guard: told.guard.to_owned(),
                    numbers: String::new(),
                    rule: told.rule.to_owned(),
                    next: told.next,
                }
            });
            line.last_ms = at_ms;
            line.times += 1;
            line.numbers = told.numbers;
        }
    }
    let mut all: Vec<report::Refusal> = folded.into_values().collect();
    all.sort_by(|a, b| (a.first_ms, &a.node).cmp(&(b.first_ms, &b.node)));
    all
}

struct RefusalDraft {
    guard: &'static str,
    numbers: String,
    rule: &'static str,
    next: Option<String>,
}

fn told(reason: &Reason) -> Vec<RefusalDraft> {
    let one = |rule, next: &str| {
        let next = Some(next.to_owned());
        vec![RefusalDraft { guard: reason.guard(), numbers: reason.to_string(), rule, next }]
    };
    match reason {
        Reason::Hold(Hold::Gate(refusals)) => {
            let told = refusals.iter().map(|refusal| RefusalDraft {
                guard: refusal_word(refusal),
                numbers: refusal.to_string(),
                rule: "A1, the gate",
                next: next_of(refusal),
            });
            told.collect()
        }
        Reason::Hold(_) => Vec::new(),
        Reason::NotReady(_) => one("A1, the plan", "do what the sentence says"),
        Reason::StillAnswers { .. } => {
            one("second opinion", "nothing: it is decided within a minute")
        }
        Reason::ConditionUnknown { .. } => one(
            "thresholds: what nobody knows",
            "check the types of these conditions and what reports them",
        ),
        Reason::Shadow { .. } => one("mode", "mode: enforce, once you agree with it"),
        Reason::ApiFailed(_) => one("A1, its own view", "look at the API server"),
    }
}

/// Releases that were refused because a device said yes and then read on: no grade, no release.
pub(super) fn unproven(played: &Played) -> Vec<report::Refusal> {
    let incidents = played.collected.incidents.iter();
    let unproven = incidents.filter(|(_, (_, _, record))| record.proof.is_none());
    let refused = unproven.filter_map(|(name, (nodefence, _, _))| {
        let node = &nodefence.spec.node.name;
        let yes = played.facts.iter().filter(|fact| {
            fact.what.taken().is_some_and(|yes| yes.node == node && yes.command == "off")
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
    let storm = matches!(
        refusal,
        Refusal::UnhealthyShare { .. }
            | Refusal::UnhealthyCount { .. }
            | Refusal::SilentAtOnce { .. }
            | Refusal::DomainUnhealthy { .. }
    );
    storm.then(|| "look at what the silent nodes share: power, switch, rack".to_owned())
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use crate::testing::{example, play_behind};
    use crate::timeline;
    use node_remedy_model_cluster::interceptor::Open;

    #[test]
    fn what_keeps_a_lost_node_from_being_helped_is_told_and_is_no_success() {
        let cases = [
            ("name: bmc-credentials", "name: misspelt", "NotReady", "bmc-credentials", false),
            ("mode: enforce", "mode: shadow", "Shadow", "would run remedy fence", true),
        ];
        for (from, to, guard, says, as_expected) in cases {
            let mut scenario = example("lost-node.yaml", |text| text);
            for document in &mut scenario.configuration {
                let text = document.object.to_string();
                let is_secret = text.contains("\"Secret\"");
                if is_secret == (guard == "NotReady") {
                    let (from, to) = (from.replace(": ", "\":\""), to.replace(": ", "\":\""));
                    document.object = serde_json::from_str(&text.replace(&from, &to)).unwrap();
                }
            }
            let played = play_behind(&scenario, &Rc::new(Open));
            let told = timeline::run(&scenario, &played, &[]);
            let refusal = told.refusals.iter().find(|one| one.guard == guard).unwrap();
            assert!(refusal.node == "node-a" && refusal.numbers.contains(says), "{refusal:?}");
            assert!(
                told.outcome
                    .facts
                    .iter()
                    .chain([&told.outcome.verdict])
                    .any(|fact| { fact.starts_with("nothing was cut") && fact.contains(says) })
            );
            assert_eq!(told.outcome.as_expected, as_expected, "{:?}", told.outcome);
        }
    }
}
