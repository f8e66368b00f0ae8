//! How a run ended, judged by facts alone: what the controller believes proves nothing.

use std::collections::BTreeMap;

use node_remedy_decide::Notice;
use node_remedy_record::sentences::{by_name, count_of};
use node_remedy_report::{Outcome, Refusal};
use node_remedy_world::facts::{Power, PowerCause, What};
use node_remedy_world::scenario::Expectation;

use crate::run::{CLIENT, Played};
use crate::timeline::words::ms;

/// The verdict is the first of the facts, in the order of what people ask in the morning.
pub(super) fn outcome(played: &Played, refused: &[Refusal], expected: &[Expectation]) -> Outcome {
    let unmet = expected.iter().filter_map(|one| one.judge(&played.facts).err());
    let mut missed: Vec<String> = unmet
        .map(|unmet| {
            let at = &unmet.expectation.place;
            format!("{at}: expected {}, found {} times", unmet.expectation, unmet.found)
        })
        .collect();
    if expected.is_empty() {
        // Nobody wrote what to expect; a plan that cannot be carried out is not it.
        let not_ready = refused.iter().filter(|one| one.guard == "NotReady");
        missed.extend(not_ready.map(|one| format!("{}: {}", one.node, one.numbers)));
    }
    let mut facts = back_again(played);
    let (two_writers, whole) = writers(played);
    let is_whole_last = facts.is_empty() && two_writers == 0;
    if !is_whole_last {
        facts.push(whole.clone());
    }
    facts.extend(cut(played, refused));
    for (name, (nodefence, _, record)) in &played.collected.incidents {
        if let Some(parked) = &record.parked {
            let sentence = format!("parked: {}", parked.reason);
            facts.push(by_name(&sentence, name, &nodefence.spec.node.name));
        }
    }
    facts.extend(stuck(played));
    if is_whole_last {
        facts.push(whole);
    }
    let verdict = facts.remove(0);
    Outcome { verdict, as_expected: missed.is_empty(), facts, missed }
}

fn count(played: &Played, test: impl Fn(&What) -> bool) -> usize {
    played.facts.iter().filter(|fact| test(&fact.what)).count()
}

fn writers(played: &Played) -> (usize, String) {
    match count(played, |what| matches!(what, What::TwoWriters { .. })) {
        0 => (0, "no volume ever had two writers".to_owned()),
        times => (times, format!("TWO WRITERS {times} times")),
    }
}

/// What was switched and released, or that nothing was and why.
fn cut(played: &Played, refused: &[Refusal]) -> Vec<String> {
    let power = |wanted: Power| {
        count(played, |what| {
            matches!(what, What::PowerChanged { power, cause: PowerCause::Command, .. }
                if *power == wanted)
        })
    };
    let (off, on) = (power(Power::Off), power(Power::On));
    let is_yes = |what: &What| what.taken().is_some_and(|taken| taken.command == "off");
    let is_plug = |what: &What| matches!(what, What::PlugAccepted { .. });
    let is_cloud = |what: &What| matches!(what, What::CloudAccepted { .. });
    // Two outlets are switched off for one machine; what they did is told plug by plug.
    let by_plugs = count(played, is_plug) > 0;
    let said_yes = if by_plugs { off } else { count(played, is_yes) };
    let device = if count(played, is_cloud) > 0 { "EC2" } else { "the BMC" };
    let pods = count(played, |what| matches!(what, What::PodGone { by, .. } if by == CLIENT));
    let is_ours = |what: &What| matches!(what, What::DetachRequested { by, .. } if by == CLIENT);
    let attachments = count(played, is_ours);
    let mut facts = Vec::new();
    let is_storm = |one: &Refusal| {
        matches!(&*one.guard, "UnhealthyShare" | "DomainUnhealthy" | "SilentAtOnce")
    };
    let never_begun = played.collected.incidents.is_empty();
    let why = refused.iter().filter(|one| is_storm(one) || never_begun);
    if let (0, Some(refusal)) = (off, why.max_by_key(|one| (is_storm(one), one.last_ms))) {
        facts.push(format!("nothing was cut: {}", refusal.numbers));
    }
    let lie = format!("{device} said yes {said_yes} times, status still on");
    if said_yes > off && pods + attachments == 0 {
        facts.push(format!("nothing was released: {lie}"));
        return facts;
    }
    if said_yes > off {
        facts.push(lie);
    } else if off + on > 0 {
        let what = if by_plugs { "power" } else { device.trim_start_matches("the ") };
        facts.push(format!("{what} off {off}, on {on}"));
    }
    if !played.collected.incidents.is_empty() {
        let attachments = count_of(attachments, "attachment");
        facts.push(format!("released {}, {attachments}", count_of(pods, "pod")));
    }
    facts
}

/// `db-0 back on node-b 0.4 s after proof`, for every pod that moved. The time counts from the last proof before the move; a
/// pod that moved before any gets none.
fn back_again(played: &Played) -> Vec<String> {
    let is_proof = |(notice, _): &(Notice, String)| matches!(notice, Notice::Proven { .. });
    let decided = played.collected.decided.iter();
    let proven = decided.filter(|decided| decided.notices.iter().any(is_proof));
    let proofs: Vec<_> = proven.map(|decided| decided.at).collect();
    let mut home: BTreeMap<&str, &str> = BTreeMap::new();
    let mut moved = Vec::new();
    for fact in &played.facts {
        let What::PodPhase { pod, node, phase, .. } = &fact.what else { continue };
        if phase != "Running" {
            continue;
        }
        if home.insert(pod, node).is_some_and(|before| before != node) {
            let pod = pod.rsplit('/').next().unwrap_or(pod);
            let last_proof = proofs.iter().filter(|at| **at <= fact.at).max();
            let after = last_proof.map_or(String::new(), |proven| {
                let ms = fact.at.0.saturating_sub(proven.0);
                format!(" {}.{} s after proof", ms / 1_000, ms % 1_000 / 100)
            });
            moved.push(format!("{pod} back on {node}{after}"));
        }
    }
    moved
}

/// Pods that were marked for deletion and never went.
#[expect(clippy::wildcard_enum_match_arm, reason = "only two facts are about this")]
fn stuck(played: &Played) -> Vec<String> {
    let mut marked: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for fact in &played.facts {
        match &fact.what {
            What::PodTerminating { pod, uid, .. } => {
                marked.entry((pod, uid)).or_insert_with(|| ms(fact.at));
            }
            What::PodGone { pod, uid, .. } => {
                marked.remove(&(pod.as_str(), uid.as_str()));
            }
            _ => {}
        }
    }
    let told = marked.iter().map(|((pod, _), since)| {
        let pod = pod.rsplit('/').next().unwrap_or(pod);
        let s = since / 1_000;
        format!("{pod} Terminating since {}:{:02}, for ever", s / 60, s % 60)
    });
    told.collect()
}
