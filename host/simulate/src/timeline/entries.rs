//! The lines of the timeline: facts of the world, decisions with their rules, calls, refusals.

use std::collections::{BTreeMap, BTreeSet};

use node_remedy_decide::{Choice, Hold, Notice};
use node_remedy_record::sentences::is_a_persons;
use node_remedy_report::{Entry, Lane, Refusal, Weight};
use node_remedy_world::facts::{Fact, Power, Taken, What};

use crate::recorder::Collected;
use crate::run::CLIENT;
use crate::timeline::words::{Lanes, ms, plug_of};

/// The facts, each as loud as it is in this timeline.
pub(super) fn of_facts(lanes: &Lanes<'_>, facts: &[Fact]) -> Vec<Entry> {
    let mut seen = Seen::default();
    let gone: BTreeSet<&str> = facts.iter().filter_map(uid_of_gone).collect();
    let mut entries = Vec::new();
    for (place, fact) in facts.iter().enumerate().filter(|(_, fact)| !fact.what.is_inner()) {
        let mut entry = entry_of_fact(lanes, fact);
        entry.weight = seen.weight(&fact.what).unwrap_or(entry.weight);
        if let What::PodTerminating { uid, .. } = &fact.what
            && !gone.contains(uid.as_str())
        {
            entry.weight = Weight::Bad;
        }
        if is_ignored(facts, place) {
            entry.text.push_str(" and did nothing");
            entry.weight = Weight::Bad;
        }
        entries.push(entry);
    }
    entries
}

/// What was told before. That something is as it should be is no news the first time, and bad
/// news is told once; that a pod runs again is what all this is for.
#[derive(Default)]
struct Seen<'a> {
    ready: BTreeSet<&'a str>,
    unready: BTreeSet<&'a str>,
    attached: BTreeSet<&'a str>,
    ran: BTreeSet<&'a str>,
}

impl<'a> Seen<'a> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these are told differently")]
    fn weight(&mut self, what: &'a What) -> Option<Weight> {
        let is_no_news = match what {
            What::NodeReady { node, status, .. } if status == "True" => {
                self.unready.remove(node.as_str());
                self.ready.insert(node)
            }
            What::NodeReady { node, .. } => !self.unready.insert(node),
            What::VolumeAttached { volume, .. } => self.attached.insert(volume),
            What::PodPhase { pod, phase, .. } => phase == "Running" && self.ran.insert(pod),
            _ => false,
        };
        is_no_news.then_some(Weight::Detail)
    }
}

fn uid_of_gone(fact: &Fact) -> Option<&str> {
    let What::PodGone { uid, .. } = &fact.what else { return None };
    Some(uid)
}

/// Whether this is a yes to an off that was followed by nothing, before the next yes or ever.
#[expect(clippy::wildcard_enum_match_arm, reason = "only two facts are about power")]
fn is_ignored(facts: &[Fact], place: usize) -> bool {
    let (before, after) = facts.split_at(place);
    let Some((yes, after)) = after.split_first() else { return false };
    let Some(Taken { node, plug, command, .. }) = yes.what.taken() else { return false };
    let power = |fact: &Fact| match &fact.what {
        What::PowerChanged { node: of, power, .. } if plug.0.is_empty() && of == node => {
            Some(*power)
        }
        What::PlugChanged { device, plug: number, power, .. } if (&**device, *number) == plug => {
            Some(*power)
        }
        _ => None,
    };
    let was_on = before.iter().rev().find_map(power) != Some(Power::Off);
    let is_next = |next: Taken<'_>| (next.node, next.plug) == (node, plug);
    let is_before_next = |fact: &&Fact| !fact.what.taken().is_some_and(is_next);
    let mut until_next = after.iter().take_while(is_before_next);
    command == "off" && was_on && until_next.find_map(power).is_none()
}

fn entry_of_fact(lanes: &Lanes<'_>, fact: &Fact) -> Entry {
    let (lane, subject, weight) = place(lanes, &fact.what);
    let sentence = fact.what.to_string();
    // Every sentence begins with whom it is about, which has a column of its own.
    let text = sentence.split_once(": ").map_or(sentence.as_str(), |(_, rest)| rest).to_owned();
    let (rule, grade, journal) = (None, None, None);
    Entry { at_ms: ms(fact.at), lane, subject, text, weight, rule, grade, journal }
}

/// On whose line a fact is told, about whom, how loudly.
fn place(lanes: &Lanes<'_>, what: &What) -> (Lane, String, Weight) {
    use {
        Lane::{Device, Node, Workload},
        Weight::{Bad, Detail, Key, Normal},
    };
    match what {
        What::KubeletStopped { node }
        | What::NetworkLost { node }
        | What::MachineHung { node }
        | What::KernelDumpStarted { node } => (Node, node.clone(), Bad),
        What::KubeletStarted { node, .. }
        | What::NetworkBack { node }
        | What::MachineResumed { node }
        | What::KernelDumpWritten { node } => (Node, node.clone(), Normal),
        What::NodeReady { node, status, .. } => {
            (Node, node.clone(), if status == "True" { Normal } else { Bad })
        }
        What::NodeDeleted { node, .. } => (Node, node.clone(), Bad),
        What::BmcChanged { node, .. } => (Device, lanes.power_of(node), Bad),
        What::TaintAdded { node, by, .. } | What::TaintRemoved { node, by, .. } => {
            (Node, node.clone(), if by == CLIENT { Normal } else { Detail })
        }
        What::NodeCreated { node } => (Node, node.clone(), Detail),
        What::Cordoned { node, .. } | What::Uncordoned { node, .. } => (Node, node.clone(), Normal),
        What::PowerChanged { node, .. } => (Device, lanes.power_of(node), Key),
        What::MachineReset { node, .. } => (Device, lanes.power_of(node), Normal),
        // The controller's own call tells that it was accepted.
        What::BmcAccepted { node, .. } | What::CloudAccepted { node, .. } => {
            (Device, lanes.power_of(node), Detail)
        }
        What::BmcRefused { node, .. }
        | What::CloudRefused { node, .. }
        | What::InstanceTerminated { node } => (Device, lanes.power_of(node), Bad),
        What::PlugChanged { device, plug, .. } => (Device, plug_of(device, *plug), Normal),
        What::PlugAccepted { device, plug, .. } | What::PlugReported { device, plug, .. } => {
            (Device, plug_of(device, *plug), Detail)
        }
        What::PlugRefused { device, plug, .. } => (Device, plug_of(device, *plug), Bad),
        What::PodCreated { pod, .. } | What::PodScheduled { pod, .. } => {
            (Workload, pod.clone(), Detail)
        }
        What::PodPhase { pod, phase, .. } => {
            (Workload, pod.clone(), if phase == "Running" { Key } else { Detail })
        }
        What::PodTerminating { pod, .. } => (Workload, pod.clone(), Normal),
        What::PodGone { pod, .. } => (Workload, pod.clone(), Normal),
        What::VolumeAttached { volume, .. } | What::VolumeDetached { volume, .. } => {
            (Workload, volume.clone(), Normal)
        }
        What::DetachRequested { volume, .. }
        | What::WriterStarted { volume, .. }
        | What::WriterStopped { volume, .. } => (Workload, volume.clone(), Detail),
        What::StorageCut { node } | What::StorageBack { node } => (Node, node.clone(), Normal),
        What::TwoWriters { volume, .. } => (Workload, volume.clone(), Bad),
        What::WriteRepeated { write, .. } => (Lane::Controller, write.clone(), Bad),
        What::BmcReported { node, .. }
        | What::BmcSessions { node, .. }
        | What::CloudReported { node, .. } => (Device, lanes.power_of(node), Detail),
        What::FenceState { node, .. }
        | What::IntentRecorded { node, .. }
        | What::ProofRecorded { node, .. }
        | What::DeviceAwaited { node, .. }
        | What::ParkedRecorded { node, .. } => (Lane::Controller, node.clone(), Detail),
        What::Edited { object, .. } => (Lane::Controller, object.clone(), Normal),
        What::NodeLocked { node, .. } => (Lane::Controller, node.clone(), Normal),
        What::OperatorCommand { node, .. } => (Lane::Controller, node.clone(), Normal),
        What::PolicyMode { policy, .. } => (Lane::Controller, policy.clone(), Detail),
        What::LeaderChanged { process } => (Lane::Controller, process.clone(), Detail),
    }
}

/// What the controller told of what it decided, with the rules behind it.
pub(super) fn of_decisions(collected: &Collected) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut held: BTreeSet<(&str, &str)> = BTreeSet::new();
    for decided in &collected.decided {
        let rules = decided.rules.iter().map(|rule| format!("{rule:?}"));
        let rule = rules.collect::<Vec<_>>().join(" ");
        for (notice, text) in &decided.notices {
            let grade = if let Notice::Proven { grade } = notice {
                Some(grade.word().to_owned())
            } else {
                None
            };
            // A hold is decided on at each look; once is enough to read.
            let is_hold = matches!(notice, Notice::Held { .. });
            let is_again = is_hold && !held.insert((&decided.nodefence, text));
            entries.push(Entry {
                at_ms: ms(decided.at),
                lane: Lane::Controller,
                subject: decided.node.clone(),
                text: text.clone(),
                weight: if is_again { Weight::Detail } else { weight_of_notice(notice) },
                rule: (!rule.is_empty()).then(|| rule.clone()),
                grade,
                journal: None,
            });
        }
    }
    entries
}

/// How device calls ended.
pub(super) fn of_calls(lanes: &Lanes<'_>, collected: &Collected) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut before: BTreeMap<&str, String> = BTreeMap::new();
    for call in &collected.calls {
        let text = format!("{}: {}", call.what, call.detail);
        // A device that is read again and again says the same; once is enough to read.
        let again = before.insert(&call.nodefence, text.clone()).as_ref() == Some(&text);
        entries.push(Entry {
            at_ms: ms(call.at),
            lane: Lane::Device,
            subject: if call.cuts {
                format!("network of {}", call.node)
            } else {
                lanes.power_of(&call.node)
            },
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
        Notice::Confirmed { .. } | Notice::Proven { .. } | Notice::Released | Notice::Ended(_) => {
            Weight::Key
        }
        Notice::MethodFailed { .. }
        | Notice::ProofVoided { .. }
        | Notice::CutUndone { .. }
        | Notice::ReleaseStalled { .. }
        | Notice::Indeterminate { .. }
        | Notice::DeviceUnreachable { .. }
        | Notice::CloseDevice { .. }
        | Notice::Retrying { .. }
        | Notice::Restarting { .. }
        | Notice::NextRemedy { .. }
        | Notice::Decided { choice: Choice::Fail(_), .. }
        | Notice::RemedyFailed(_)
        | Notice::AbortTaken { .. }
        | Notice::Parked(_) => Weight::Bad,
        Notice::Held { reason } if is_a_persons(reason) => Weight::Bad,
        Notice::Held { reason: Hold::Dump { .. } }
        | Notice::Isolating
        | Notice::Identified { .. }
        | Notice::PoweringOff { .. }
        | Notice::Releasing { .. }
        | Notice::Draining { .. }
        | Notice::PoweringOn { .. }
        | Notice::StartingJob { .. }
        | Notice::Decided { .. }
        | Notice::AskingAgain { .. }
        | Notice::JobEnded { .. }
        | Notice::DeviceBack { .. }
        | Notice::VetoLifted => Weight::Normal,
        Notice::Held { .. } | Notice::Ignored { .. } => Weight::Detail,
    }
}

/// The guard that waits to hear of the other nodes.
const TOO_EARLY: &str = "SilenceNotJudged";

/// The first refusal of each guard and node stands in the timeline.
pub(super) fn of_refusals(refusals: &[Refusal]) -> Vec<Entry> {
    let told = refusals.iter().map(|refusal| Entry {
        at_ms: refusal.first_ms,
        lane: Lane::Controller,
        subject: refusal.node.clone(),
        text: format!("not cut: {}", refusal.numbers),
        // Too early to tell is over in seconds; the other guards stand.
        weight: if refusal.guard == TOO_EARLY { Weight::Normal } else { Weight::Bad },
        rule: Some(format!("A1 {}", refusal.guard)),
        grade: None,
        journal: None,
    });
    told.collect()
}
