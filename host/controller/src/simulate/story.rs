//! Makes a story of what a played scenario left behind.
//!
//! What happened is told from the world's facts, why from the controller's decisions.
//! The outcome is judged by facts alone: what the controller believes proves nothing.

use std::collections::{BTreeMap, BTreeSet};

use node_remedy_decide::{End, Evidence, Hold, Notice, PlugState, Record, Refusal, Time};
use node_remedy_report as report;
use node_remedy_report::{
    Direction, Entry, Incident, JournalRow, Lane, Outcome, Proof, Run, Stretch, Weight,
};
use node_remedy_sandbox as sandbox;
use node_remedy_world::Scenario;
use node_remedy_world::facts::{Fact, Power, PowerCause, What};
use node_remedy_world::scenario::{Expectation, START};

use super::collect::{CallSeen, Collected, what};
use super::{CLIENT, Played};
use crate::record::notices::method_name;
use crate::refusals::refusal_word;

/// Tells one playing, and holds it against what was expected.
pub fn run(scenario: &Scenario, played: &Played, expected: &[Expectation]) -> Run {
    let end_ms = u64::try_from(scenario.duration.as_millis()).unwrap_or(u64::MAX);
    let mut entries = entries_of_facts(&played.facts);
    entries.extend(entries_of_decisions(&played.collected));
    entries.extend(entries_of_refusals(&played.collected));
    entries.sort_by_key(|entry| entry.at_ms);
    Run {
        end_ms,
        entries,
        stretches: stretches(&played.facts, end_ms),
        incidents: incidents(played),
        refusals: refusals(&played.collected),
        outcome: outcome(played, expected),
    }
}

fn ms(at: Time) -> u64 {
    at.0.saturating_sub(START.0)
}

/// That a pod first runs is no news; that it runs again is what all this is for.
fn entries_of_facts(facts: &[Fact]) -> Vec<Entry> {
    let mut ran: BTreeSet<&str> = BTreeSet::new();
    let mut entries = Vec::new();
    for fact in facts {
        let mut entry = entry_of_fact(fact);
        if let What::PodPhase { pod, phase, .. } = &fact.what
            && phase == "Running"
            && ran.insert(pod)
        {
            entry.weight = Weight::Normal;
        }
        entries.push(entry);
    }
    entries
}

fn entry_of_fact(fact: &Fact) -> Entry {
    let (lane, subject, weight) = place(&fact.what);
    let text = fact.what.to_string();
    let text = text.strip_prefix(&format!("{subject}: ")).unwrap_or(&text).to_owned();
    Entry {
        at_ms: ms(fact.at),
        lane,
        subject,
        text,
        weight,
        rule: None,
        grade: None,
        journal: None,
    }
}

/// On whose line a fact is told, about whom, how loudly.
fn place(what: &What) -> (Lane, String, Weight) {
    use {
        Lane::{Device, Node, Workload},
        Weight::{Bad, Detail, Key, Normal},
    };
    match what {
        What::KubeletStopped { node } | What::NetworkLost { node } | What::MachineHung { node } => {
            (Node, node.clone(), Bad)
        }
        What::KubeletStarted { node, .. }
        | What::NetworkBack { node }
        | What::MachineResumed { node } => (Node, node.clone(), Normal),
        What::NodeReady { node, status, .. } => {
            (Node, node.clone(), if status == "True" { Normal } else { Bad })
        }
        What::NodeDeleted { node, .. } => (Node, node.clone(), Bad),
        What::TaintAdded { node, by, .. } | What::TaintRemoved { node, by, .. } => {
            (Node, node.clone(), if by == CLIENT { Normal } else { Detail })
        }
        What::NodeCreated { node } => (Node, node.clone(), Detail),
        What::Cordoned { node, .. } | What::Uncordoned { node, .. } => (Node, node.clone(), Normal),
        What::PowerChanged { node, .. } => (Device, node.clone(), Key),
        What::MachineReset { node, .. } => (Device, node.clone(), Normal),
        What::BmcSaidYes { node, .. } => (Device, node.clone(), Normal),
        What::BmcRefused { node, .. } => (Device, node.clone(), Bad),
        What::PodCreated { pod, .. } | What::PodScheduled { pod, .. } => {
            (Workload, pod.clone(), Detail)
        }
        What::PodPhase { pod, phase, .. } => {
            (Workload, pod.clone(), if phase == "Running" { Key } else { Detail })
        }
        What::PodTerminating { pod, .. } => (Workload, pod.clone(), Normal),
        What::PodGone { pod, .. } => (Workload, pod.clone(), Normal),
        What::VolumeAttached { volume, .. }
        | What::VolumeDetached { volume, .. }
        | What::DetachRequested { volume, .. } => (Workload, volume.clone(), Normal),
        What::WriterStarted { volume, .. } | What::WriterStopped { volume, .. } => {
            (Workload, volume.clone(), Detail)
        }
        What::TwoWriters { volume, .. } => (Workload, volume.clone(), Bad),
        What::FenceState { node, .. } => (Lane::Controller, node.clone(), Detail),
    }
}

fn entries_of_decisions(collected: &Collected) -> Vec<Entry> {
    let mut entries = Vec::new();
    for decided in &collected.decided {
        let rules = decided.rules.iter().map(|rule| format!("{rule:?}"));
        let rule = rules.collect::<Vec<_>>().join(" ");
        for (notice, text) in &decided.notices {
            let grade = if let Notice::Proven { grade } = notice {
                Some(grade.word().to_owned())
            } else {
                None
            };
            entries.push(Entry {
                at_ms: ms(decided.at),
                lane: Lane::Controller,
                subject: decided.node.clone(),
                text: text.clone(),
                weight: weight_of_notice(notice),
                rule: (!rule.is_empty()).then(|| rule.clone()),
                grade,
                journal: None,
            });
        }
    }
    let mut before: BTreeMap<&str, String> = BTreeMap::new();
    for call in &collected.calls {
        let text = format!("{}: {}", call.what, call.detail);
        // A device that is read again and again says the same; once is enough to read.
        let again = before.insert(&call.nodefence, text.clone()).as_ref() == Some(&text);
        entries.push(Entry {
            at_ms: ms(call.at),
            lane: Lane::Controller,
            subject: call.node.clone(),
            text,
            weight: if again { Weight::Detail } else { Weight::Normal },
            rule: None,
            grade: None,
            journal: Some((call.nodefence.clone(), call.number)),
        });
    }
    entries
}

fn weight_of_notice(notice: &Notice) -> Weight {
    match notice {
        Notice::Proven { .. } | Notice::Released | Notice::Ended(_) => Weight::Key,
        Notice::MethodFailed { .. }
        | Notice::ProofVoided
        | Notice::ReleaseStalled { .. }
        | Notice::Indeterminate { .. }
        | Notice::DeviceUnreachable { .. }
        | Notice::CloseDevice { .. }
        | Notice::Retrying { .. }
        | Notice::Restarting { .. }
        | Notice::AbortTaken { .. }
        | Notice::Parked(_) => Weight::Bad,
        Notice::Isolating
        | Notice::Identified { .. }
        | Notice::PoweringOff { .. }
        | Notice::Releasing { .. }
        | Notice::PoweringOn { .. }
        | Notice::DeviceBack { .. } => Weight::Normal,
        Notice::Held { .. } | Notice::Ignored { .. } => Weight::Detail,
    }
}

/// The first refusal of each guard and node stands in the timeline.
fn entries_of_refusals(collected: &Collected) -> Vec<Entry> {
    let told = refusals(collected).into_iter().map(|refusal| Entry {
        at_ms: refusal.first_ms,
        lane: Lane::Controller,
        subject: refusal.node,
        text: format!("not acted on: {}", refusal.numbers),
        weight: Weight::Bad,
        rule: Some(refusal.guard),
        grade: None,
        journal: None,
    });
    told.collect()
}

fn refusals(collected: &Collected) -> Vec<report::Refusal> {
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
                    rule: "gate".to_owned(),
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

/// A state of something that may end later.
struct Open {
    from_ms: u64,
    state: String,
    weight: Weight,
}

fn stretches(facts: &[Fact], end_ms: u64) -> Vec<Stretch> {
    let mut open: BTreeMap<(Lane, String), Open> = BTreeMap::new();
    let mut done = Vec::new();
    for fact in facts {
        let Some((lane, subject, state)) = state_of(&fact.what) else { continue };
        let at = ms(fact.at);
        let key = (lane, subject);
        if let Some(before) = open.remove(&key) {
            done.push(close(&key, before, at));
        }
        if let Some((state, weight)) = state {
            open.insert(key, Open { from_ms: at, state, weight });
        }
    }
    done.extend(open.into_iter().map(|(key, before)| close(&key, before, end_ms)));
    done.retain(|stretch| stretch.to_ms > stretch.from_ms);
    done.sort_by(|a, b| (a.lane, &a.subject, a.from_ms).cmp(&(b.lane, &b.subject, b.from_ms)));
    done
}

fn close((lane, subject): &(Lane, String), before: Open, to_ms: u64) -> Stretch {
    Stretch {
        from_ms: before.from_ms,
        to_ms,
        lane: *lane,
        subject: subject.clone(),
        state: before.state,
        weight: before.weight,
    }
}

/// Whose state a fact changes, and to what; `None` inside: it has none any more.
#[expect(clippy::type_complexity, reason = "a private triple, read in one place")]
#[expect(clippy::wildcard_enum_match_arm, reason = "most facts change no state")]
fn state_of(what: &What) -> Option<(Lane, String, Option<(String, Weight)>)> {
    use Weight::{Bad, Key, Normal};
    let some = |state: &str, weight| Some((state.to_owned(), weight));
    Some(match what {
        What::NodeReady { node, status, .. } => {
            let weight = if status == "True" { Normal } else { Bad };
            let word = if status == "True" { "Ready" } else { "not Ready" };
            (Lane::Node, node.clone(), some(word, weight))
        }
        What::PowerChanged { node, power, .. } => {
            let (word, weight) = match power {
                Power::On => ("on", Normal),
                Power::Off => ("off", Key),
            };
            (Lane::Device, node.clone(), some(word, weight))
        }
        What::PodPhase { pod, node, phase, .. } => {
            (Lane::Workload, pod.clone(), some(&format!("{phase} on {node}"), Normal))
        }
        What::PodTerminating { pod, node, .. } => {
            (Lane::Workload, pod.clone(), some(&format!("Terminating on {node}"), Bad))
        }
        What::PodGone { pod, .. } => (Lane::Workload, pod.clone(), None),
        What::WriterStarted { volume, node, .. } => {
            (Lane::Workload, volume.clone(), some(&format!("written on {node}"), Normal))
        }
        What::WriterStopped { volume, .. } => (Lane::Workload, volume.clone(), None),
        What::TwoWriters { volume, .. } => {
            (Lane::Workload, volume.clone(), some("TWO WRITERS", Bad))
        }
        What::FenceState { node, step, state, .. } => {
            let weight = if state == "Error" { Bad } else { Key };
            let ended = state == "Final";
            let state = some(&format!("{step} {state}"), weight).filter(|_| !ended);
            (Lane::Controller, node.clone(), state)
        }
        _ => return None,
    })
}

fn incidents(played: &Played) -> Vec<Incident> {
    let collected = &played.collected;
    let told = collected.incidents.iter().map(|(name, (nodefence, plan, record))| {
        let parked = record.parked.as_ref().map(|parked| parked.reason.to_string());
        let row = |operation: &node_remedy_decide::Operation| {
            let mut calls = collected.calls.iter();
            let call = calls.rfind(|call| call.nodefence == *name && call.number == operation.id.0);
            JournalRow {
                number: operation.id.0,
                intended_ms: ms(operation.intended_at),
                ended_ms: operation.ended_at.map(ms),
                what: what(plan, operation),
                end: end_words(operation.end.as_ref(), call),
                exchanges: call
                    .map(|call| exchanges(operation.intended_at, call))
                    .unwrap_or_default(),
            }
        };
        Incident {
            name: name.clone(),
            node: nodefence.spec.node.name.clone(),
            state: format!("{:?}", record.phase.state()),
            parked: parked.map(|text| text.replace("NODEFENCE", name)),
            journal: journal(collected, name).map(row).collect(),
            proof: proof(collected, name, record),
        }
    });
    told.collect()
}

/// Everything an incident ever did, in order.
fn journal<'a>(
    collected: &'a Collected,
    name: &str,
) -> impl Iterator<Item = &'a node_remedy_decide::Operation> {
    collected.journals.get(name).into_iter().flat_map(BTreeMap::values)
}

fn end_words(end: Option<&End>, call: Option<&CallSeen>) -> String {
    match end {
        None => "not known yet".to_owned(),
        Some(End::Succeeded { state, .. }) => format!("read: {}", state_word(*state)),
        Some(End::Failed(failure)) => format!("failed: {}", failure.detail),
        Some(End::NotAttempted(failure)) => format!("not attempted: {}", failure.detail),
        Some(End::Indeterminate) => {
            format!("indeterminate: {}", call.map_or("nobody knows", |call| &call.detail))
        }
    }
}

fn state_word(state: PlugState) -> &'static str {
    match state {
        PlugState::On => "on",
        PlugState::Off => "off",
        PlugState::Transitioning => "transitioning",
        PlugState::Unknown => "unknown",
        PlugState::Terminated => "terminated",
    }
}

fn exchanges(began: Time, call: &CallSeen) -> Vec<report::Exchange> {
    let told = call.exchanges.iter().map(|exchange| report::Exchange {
        at_ms: ms(began).saturating_add(exchange.at_ms),
        direction: match exchange.direction {
            sandbox::Direction::Sent | sandbox::Direction::Farewell => Direction::Sent,
            sandbox::Direction::Received => Direction::Received,
        },
        hex: crate::hex::hex(&exchange.bytes),
        decoded: super::decode::words(&exchange.bytes),
    });
    told.collect()
}

fn proof(collected: &Collected, name: &str, record: &Record) -> Option<Proof> {
    let proof = record.proof.as_ref()?;
    let (_, plan, _) = collected.incidents.get(name)?;
    let reads: Vec<_> = match &proof.by {
        Evidence::Reads(ids) => {
            journal(collected, name).filter(|one| ids.contains(&one.id)).collect()
        }
        Evidence::Person(_) | Evidence::Report(_) => Vec::new(),
    };
    let last = reads.last();
    let reader = match &proof.by {
        Evidence::Reads(_) => last.map_or_else(String::new, |read| {
            let method = plan.method(read.method);
            let kind = method.map_or("", |method| method.device_kind.as_str());
            let device = method.map_or("", |method| method.device.as_str());
            format!("{} ({kind}) reading {device}", method_name(plan, read.method))
        }),
        Evidence::Person(who) | Evidence::Report(who) => who.clone(),
    };
    let mut facts = Vec::new();
    for read in &reads {
        if let Some(End::Succeeded { state, identity }) = &read.end {
            facts.push(format!("operation {} read {}", read.id.0, state_word(*state)));
            let named = identity.iter().map(|(field, value)| format!("{field} {value}"));
            facts.extend(named);
        }
    }
    facts.push(format!("boot {}", proof.signs.boot_id));
    let released = record.released.as_ref();
    let count = released.map_or((0, 0), |all| (all.pods.len(), all.attachments.len()));
    Some(Proof {
        grade: proof.grade.word().to_owned(),
        read_ms: last.map_or(ms(proof.at), |read| ms(read.intended_at)),
        reader,
        facts,
        because: "a read in a fresh sandbox, after the off, says every feed is off, and the node \
                  gave no sign of life since"
            .to_owned(),
        released: format!("{}, {}", count_of(count.0, "pod"), count_of(count.1, "attachment")),
        journal: last.map_or(0, |read| read.id.0),
    })
}

fn outcome(played: &Played, expected: &[Expectation]) -> Outcome {
    let missed: Vec<String> = expected
        .iter()
        .filter_map(|one| one.judge(&played.facts).err())
        .map(|unmet| {
            let at = &unmet.expectation.place;
            format!("{at}: expected {}, found {} times", unmet.expectation, unmet.found)
        })
        .collect();
    let count =
        |test: &dyn Fn(&What) -> bool| played.facts.iter().filter(|fact| test(&fact.what)).count();
    let power = |wanted: Power| {
        count(&|what| {
            matches!(what, What::PowerChanged { power, cause: PowerCause::Command, .. }
                if *power == wanted)
        })
    };
    let (off, on) = (power(Power::Off), power(Power::On));
    let said_yes =
        count(&|what| matches!(what, What::BmcSaidYes { command, .. } if command == "off"));
    let two_writers = count(&|what| matches!(what, What::TwoWriters { .. }));
    let pods = count(&|what| matches!(what, What::PodGone { by, .. } if by == CLIENT));
    let attachments =
        count(&|what| matches!(what, What::DetachRequested { by, .. } if by == CLIENT));
    let mut facts = back_again(played);
    let whole = match two_writers {
        0 => "no volume ever had two writers".to_owned(),
        times => format!("TWO WRITERS {times} times"),
    };
    let moved = !facts.is_empty();
    if moved || two_writers > 0 {
        facts.push(whole.clone());
    }
    let refused = refusals(&played.collected);
    let storm = refused.iter().filter(|one| one.guard == "UnhealthyShare");
    if off == 0
        && let Some(refusal) = storm.max_by_key(|one| one.last_ms)
    {
        facts.push(refusal.numbers.clone());
        facts.push("cut 0".to_owned());
    }
    if said_yes > off {
        facts.push(format!("BMC said yes {said_yes} times, status still on"));
    } else if off + on > 0 {
        facts.push(format!("BMC off {off}, on {on}"));
    }
    if !played.collected.incidents.is_empty() {
        facts.push(format!(
            "released {}, {}",
            count_of(pods, "pod"),
            count_of(attachments, "attachment")
        ));
    }
    for (name, (_, _, record)) in &played.collected.incidents {
        if let Some(parked) = &record.parked {
            facts.push(format!("parked: {}", parked.reason).replace("NODEFENCE", name));
        }
    }
    facts.extend(stuck(played));
    if !moved && two_writers == 0 {
        facts.push(whole);
    }
    let verdict = facts.remove(0);
    Outcome { verdict, as_expected: missed.is_empty(), facts, missed }
}

/// `1 pod`, `3 pods`.
fn count_of(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// `db-0 back on node-b 0.4 s after proof`, for every pod that moved.
fn back_again(played: &Played) -> Vec<String> {
    let proven = played.collected.decided.iter().find_map(|decided| {
        let proof = |(notice, _): &(Notice, String)| matches!(notice, Notice::Proven { .. });
        decided.notices.iter().any(proof).then_some(decided.at)
    });
    let mut home: BTreeMap<&str, &str> = BTreeMap::new();
    let mut moved = Vec::new();
    for fact in &played.facts {
        let What::PodPhase { pod, node, phase, .. } = &fact.what else { continue };
        if phase != "Running" {
            continue;
        }
        if home.insert(pod, node).is_some_and(|before| before != node) {
            let pod = pod.rsplit('/').next().unwrap_or(pod);
            let after = proven.map_or(String::new(), |proven| {
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
                marked.insert((pod, uid), ms(fact.at));
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
