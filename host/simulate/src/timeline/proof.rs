//! What was proven: who read what and when, why that allows a release, and what was released.

use node_remedy_decide::{End, Evidence, Grade, Operation, Plan, Record, Released};
use node_remedy_record::sentences::{count_of, method_name};
use node_remedy_report::{Proof, clock};
use node_remedy_world::facts::{Fact, What};

use crate::run::{CLIENT, Played};
use crate::timeline::words::{journal, ms, state_word};

/// More names than this would push the grade off the card.
const NAMES_MAX: usize = 6;

/// The proof of an incident, if there was one.
pub(super) fn proof(played: &Played, name: &str, record: &Record) -> Option<Proof> {
    // One that was void from the beginning says that a cut was undone.
    let proof = record.proof.as_ref().filter(|proof| proof.voided_at != Some(proof.at))?;
    let (nodefence, plan, _) = played.collected.incidents.get(name)?;
    let reads: Vec<&Operation> = match &proof.by {
        Evidence::Reads(ids) => {
            journal(&played.collected, name).filter(|one| ids.contains(&one.id)).collect()
        }
        Evidence::Person(_) | Evidence::Report(_) => Vec::new(),
    };
    let last = reads.last();
    let reader = match &proof.by {
        Evidence::Reads(_) => last.map(|read| reader(plan, read)).unwrap_or_default(),
        Evidence::Person(who) | Evidence::Report(who) => who.clone(),
    };
    let mut facts: Vec<String> = reads.iter().flat_map(|read| found(read)).collect();
    if let Some(at) = proof.liveness.lease_renewed.max(proof.liveness.reported) {
        facts.push(format!("the node's last sign of life came at {}", clock(ms(at))));
    }
    facts.push(format!("it was of boot {}", proof.liveness.boot_id));
    Some(Proof {
        grade: proof.grade.word().to_owned(),
        read_ms: last.map_or(ms(proof.at), |read| ms(read.intended_at)),
        reader,
        facts,
        because: reason(proof.grade).to_owned(),
        released: released(&played.facts, &nodefence.spec.node.name, record.released.as_ref()),
        journal: last.map_or(0, |read| read.id.0),
    })
}

fn reader(plan: &Plan, read: &Operation) -> String {
    let method = plan.method(read.method);
    let kind = method.map_or("", |method| method.device_kind.as_str());
    let device = method.map_or("", |method| method.device.as_str());
    format!("{} ({kind}) from {device}", method_name(plan, read.method))
}

fn found(read: &Operation) -> Vec<String> {
    let Some(End::Succeeded { state, identity }) = &read.end else { return Vec::new() };
    let state = format!("operation {} read {}", read.id.0, state_word(*state));
    let named = identity.iter().map(|(field, value)| format!("{field} {value}"));
    std::iter::once(state).chain(named).collect()
}

/// Why a grade allows what it allows.
fn reason(grade: Grade) -> &'static str {
    match grade {
        Grade::PowerOffVerified => {
            "a read in a fresh sandbox, later than the off, says every feed is off, and the node \
             gave no sign of life since: nothing on it can still write, so everything may go"
        }
        Grade::StorageFenced => {
            "its storage is cut and reads as cut: pods may go all of whose volumes it cut"
        }
        Grade::WatchdogDeadline => {
            "its agent was armed and the attested worst case has passed: everything may go"
        }
        Grade::OperatorConfirmed => {
            "a person with the right confirmed that this boot is over: everything may go"
        }
        Grade::JobSucceeded => "the admin's own remedy succeeded: what it was meant for may go",
        Grade::KdumpSeen => {
            "it told a trusted network that its kernel crashed: pods without RWO volumes may go"
        }
        Grade::Partition => "this is no proof: only pods may go whose drivers check at detach",
        Grade::NewBootId => "it came back with another boot: left-overs may go, gracefully",
    }
}

/// `1 pod (default/db-0), 1 attachment (pv-default-db-0)`.
fn released(facts: &[Fact], node: &str, released: Option<&Released>) -> String {
    let Some(released) = released else { return "nothing".to_owned() };
    let pods = facts.iter().filter_map(|fact| {
        let What::PodCreated { pod, uid } = &fact.what else { return None };
        released.pods.contains(uid).then_some(pod.as_str())
    });
    // The world knows attachments by their volumes.
    let volumes = facts.iter().filter_map(|fact| {
        let What::DetachRequested { volume, node: from, by } = &fact.what else { return None };
        (by == CLIENT && from == node).then_some(volume.as_str())
    });
    let pods = named(released.pods.len(), "pod", &pods.collect::<Vec<_>>());
    let attachments = named(released.attachments.len(), "attachment", &volumes.collect::<Vec<_>>());
    format!("{pods}, {attachments}")
}

fn named(count: usize, what: &str, names: &[&str]) -> String {
    let told = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMES_MAX) {
        _ if names.is_empty() => count_of(count, what),
        None | Some(0) => format!("{} ({told})", count_of(count, what)),
        Some(_) => format!("{} ({told}, …)", count_of(count, what)),
    }
}
