//! What people are told, one sentence per notice of the automaton.
//!
//! Reasons are CamelCase and never change; sentences may. Both go to Events and logs.

use std::fmt;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::time::Moment;
use node_remedy_config::symptoms;
use node_remedy_decide::{
    Choice, Closure, Hold, JobOutcome, Kind, MethodIndex, Notice, Phase, Plan, Refusal, Span,
    VIEW_AGE_MAX,
};
use node_remedy_runtime::events::Note;

/// `1 pod`, `3 pods`.
pub fn count_of<N: Copy + fmt::Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// A sentence with the commands to type: what `decide` calls NODEFENCE and NODE by their names.
pub fn by_name(sentence: &str, nodefence: &str, node: &str) -> String {
    // Elsewhere the word may be another's, such as a device's.
    ["ack", "explain"].iter().fold(sentence.replace("NODEFENCE", nodefence), |text, command| {
        let command = format!("node-remedy {command} ");
        text.replace(&format!("{command}NODE"), &format!("{command}{node}"))
    })
}

/// A notice in words; the names are the incident's and the node's, for commands to type.
pub fn note(notice: &Notice, plan: &Plan, nodefence: &str, node: &str) -> Note {
    let name = |method: &MethodIndex| method_name(plan, *method);
    let normal =
        |reason: &str, text: String| Note { reason: reason.to_owned(), text, warning: false };
    let warning =
        |reason: &str, text: String| Note { reason: reason.to_owned(), text, warning: true };
    match notice {
        Notice::Isolating => normal("Isolating", "isolation begins".to_owned()),
        Notice::MethodFailed { method } => {
            warning("MethodFailed", format!("{} failed and is given up on", name(method)))
        }
        Notice::Identified { method } => {
            normal("Identified", format!("{} answers, and names no other machine", name(method)))
        }
        Notice::PoweringOff { method } => {
            let kind = plan.method(*method).map(|method| &method.kind);
            let does = if kind == Some(&Kind::ResetOnly) { "resetting" } else { "switching off" };
            normal("PoweringOff", format!("{does} by {}", name(method)))
        }
        Notice::Proven { grade } => normal("Proven", format!("proof: {grade}")),
        Notice::Confirmed { by } => {
            normal("Confirmed", format!("{by} says that the machine is off"))
        }
        Notice::ProofVoided { reads_on: None } => warning(
            "ProofVoided",
            "a sign of life voided the proof; nothing more is released".to_owned(),
        ),
        Notice::ProofVoided { reads_on: Some(method) } => warning(
            "ProofVoided",
            format!(
                "{} reads on again, which voids the proof; nothing more is released",
                name(method)
            ),
        ),
        Notice::CutUndone { method } => warning(
            "CutUndone",
            format!(
                "{} reads on again: somebody gave it back; it is cut again, unless a person wants the node left alone",
                name(method)
            ),
        ),
        Notice::Releasing { pods, attachments } => normal(
            "Releasing",
            format!(
                "releasing {}, {}",
                count_of(*pods, "pod"),
                count_of(*attachments, "attachment")
            ),
        ),
        Notice::Released => {
            normal("Released", "everything that was to be released is gone".to_owned())
        }
        Notice::ReleaseStalled { holders } => warning(
            "ReleaseStalled",
            format!("release ended with something left: {}", holders.join(", ")),
        ),
        Notice::PoweringOn { method } => {
            normal("PoweringOn", format!("switching on by {}", name(method)))
        }
        Notice::Indeterminate { op } => warning(
            "Indeterminate",
            format!("the result of operation {} is unknown; the device is read next", op.0),
        ),
        Notice::DeviceUnreachable { method, detail } => {
            let why = detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
            let text = format!("{} cannot be reached{why}; probing", name(method));
            warning("DeviceUnreachable", text)
        }
        Notice::DeviceBack { method } => {
            normal("DeviceBack", format!("{} answers again", name(method)))
        }
        Notice::VetoLifted => {
            normal("VetoLifted", "nobody wants the node left alone any more".to_owned())
        }
        Notice::CloseDevice { device, scope, .. } => {
            let what = match scope {
                Closure::Device => "no machine is switched off through it",
                Closure::Kind => "no machine is switched off through any device of its kind",
            };
            warning("DeviceClosed", format!("{device} failed to switch a machine on: {what}"))
        }
        Notice::Retrying { retry, of } => warning("Retrying", format!("retry {retry} of {of}")),
        Notice::StartingJob { remedy } => {
            normal("StartingJob", format!("remedy {remedy}: its Job is started"))
        }
        Notice::JobEnded { remedy, outcome, detail } => job_ended(remedy, *outcome, detail),
        Notice::Draining { pods } => {
            normal("Draining", format!("cordoned; asked to leave: {}", count_of(*pods, "pod")))
        }
        Notice::Decided { remedy, choice: Choice::Fail(why) } => {
            warning("RemedyDecided", format!("remedy {remedy}: its plugin gives up: {why}"))
        }
        Notice::Decided { remedy, choice } => {
            normal("RemedyDecided", format!("remedy {remedy}: its plugin decided: {choice}"))
        }
        Notice::AskingAgain { remedy } => normal(
            "AskingAgain",
            format!("the condition still holds; remedy {remedy}: its plugin is asked again"),
        ),
        Notice::NextRemedy { remedy } => warning("NextRemedy", format!("next remedy: {remedy}")),
        Notice::RemedyFailed(reason) => warning(
            "RemedyFailed",
            by_name(&format!("this remedy failed: {}", reason.found()), nodefence, node),
        ),
        Notice::Restarting { restart } => {
            warning("Restarting", format!("back to New, restart {restart}"))
        }
        Notice::Held { reason } if is_a_persons(reason) => {
            warning("Held", by_name(&hold(reason), nodefence, node))
        }
        Notice::Held { reason } => normal("Held", hold(reason)),
        Notice::AbortTaken { boundary } => warning("Aborted", boundary.to_string()),
        Notice::Parked(reason) => {
            warning("Parked", by_name(&format!("parked: {reason}"), nodefence, node))
        }
        Notice::Ended(reason) => normal("Final", format!("the incident is over: {reason:?}")),
        Notice::Ignored { why } => normal("Ignored", (*why).to_owned()),
    }
}

fn job_ended(remedy: &str, outcome: JobOutcome, detail: &str) -> Note {
    let (word, warning) = match outcome {
        JobOutcome::Succeeded => ("JobSucceeded", false),
        JobOutcome::Failed => ("JobFailed", true),
        JobOutcome::Lost => ("JobLost", true),
    };
    let what = match outcome {
        JobOutcome::Succeeded => "succeeded",
        JobOutcome::Failed => "failed",
        JobOutcome::Lost => "was lost",
    };
    let text = format!("remedy {remedy}: its Job {what}");
    let text = if detail.is_empty() { text } else { format!("{text}: {detail}") };
    Note { reason: word.to_owned(), text, warning }
}

/// Whether it ends only when a person does something.
pub fn is_a_persons(hold: &Hold) -> bool {
    match hold {
        Hold::Approval { .. } | Hold::Proof | Hold::JobRefused { .. } | Hold::CleanUp { .. } => {
            true
        }
        Hold::NotYet { .. }
        | Hold::Gate(_)
        | Hold::NoSlot
        | Hold::OwnNode
        | Hold::Dump { .. }
        | Hold::NotDecided { .. }
        | Hold::TriggerClear
        | Hold::StaleView => false,
    }
}

/// Why an incident waits, in words.
pub fn hold(hold: &Hold) -> String {
    match hold {
        Hold::NotYet { .. } => "its time has not come yet".to_owned(),
        Hold::Gate(refusals) => {
            let all: Vec<String> = refusals.iter().map(refusal).collect();
            format!("nothing is cut: {}", all.join("; "))
        }
        Hold::NoSlot => "no slot of the RemedyBudget is free, of all nodes or of its failure domain".to_owned(),
        Hold::Approval { cut } => {
            let waits = "waits for a person's approval: node-remedy approve NODEFENCE";
            match cut.join(", ") {
                none if none.is_empty() => waits.to_owned(),
                cut => format!("{waits}; until then it stays cut off by {cut}"),
            }
        }
        Hold::Dump { until } => format!(
            "the node writes a kernel dump and boots by itself afterwards; its power is not cut before {}",
            Moment::from_ms(until.0)
        ),
        Hold::JobRefused { why } => format!(
            "the remedy's Job cannot be created or read: {why}; if that is a 403, apply the rights of this version (node-remedy rbac --jobs)"
        ),
        Hold::CleanUp { left } => {
            format!("still there, and asked again to go: {}; find what holds it", left.join(", "))
        }
        Hold::Proof => {
            "no device proves that the node is off; who has seen it off says: node-remedy confirm-off \
             NODEFENCE"
                .to_owned()
        }
        Hold::NotDecided { why } => format!("the remedy's plugin cannot be asked: {why}"),
        Hold::TriggerClear => "the condition that opened the incident does not hold now".to_owned(),
        Hold::OwnNode => "the leader runs on this node, and no other replica takes over: start one on another node".to_owned(),
        Hold::StaleView => "the last look at it is too old to act on".to_owned(),
    }
}

/// A refusal in words, with the time at which it ends where that is known.
fn refusal(refusal: &Refusal) -> String {
    match refusal.lasts_until() {
        Some(until) => format!("{refusal}, until {}", Moment::from_ms(until.0)),
        None => refusal.to_string(),
    }
}

/// An incident begins.
pub fn opened(nodefence: &NodeFence) -> Note {
    let (name, trigger) = (nodefence.name_any(), &nodefence.spec.trigger);
    let (words, remedy) = (symptoms::words(trigger), &nodefence.spec.remedy);
    let text = format!("{name}: {words} since {}, remedy {remedy}", trigger.since);
    Note { reason: "Opened".to_owned(), text, warning: false }
}

/// A phase begins; nothing where a notice says so, or what the incident waits for.
pub fn entered(phase: Phase) -> Option<Note> {
    let (reason, text) = match phase {
        Phase::VerifyingOff => ("VerifyingOff", "every feed is read again"),
        Phase::Restoring => ("Restoring", "what was cut is given back"),
        Phase::AwaitingHealthy => ("AwaitingHealthy", "waiting for the node to be well"),
        Phase::Recovering => ("Recovering", "left-overs and our marks are taken off"),
        Phase::Waiting
        | Phase::Isolating
        | Phase::Remedying
        | Phase::AwaitingPower
        | Phase::ReadingIdentity
        | Phase::PoweringOff
        | Phase::Releasing
        | Phase::Untainting
        | Phase::PoweringOn
        | Phase::AwaitingDevice
        | Phase::Backoff
        | Phase::Parked
        | Phase::Final(_) => return None,
    };
    Some(Note { reason: reason.to_owned(), text: text.to_owned(), warning: false })
}

/// Somebody deleted a NodeFence whose incident cannot end at once.
pub fn deleted() -> Note {
    let text = "its NodeFence is deleted and stays until the incident is over: what was switched off or released \
                is given back first";
    Note { reason: "DeletionWaits".to_owned(), text: text.to_owned(), warning: true }
}

/// The NodeFence of an incident vanished before the incident was over, by an etcd that was set back or by whoever took its
/// finalizer off. Nothing remembers what was done any more but this.
pub fn vanished(nodefence: &str, left: &str) -> Note {
    let text = format!(
        "NodeFence {nodefence} vanished before its incident was over; nothing undoes what it did any more{left}: see to it \
         by hand"
    );
    Note { reason: "NodeFenceVanished".to_owned(), text, warning: true }
}

/// The record of an incident does not stand there as it was meant, or was refused for this reason.
pub fn pruned(nodefence: &str, refusal: &str) -> Note {
    let (what, rest) = if refusal.is_empty() {
        (String::new(), "its definition is older than node-remedy")
    } else {
        (
            format!(": the API server refused it: {refusal}"),
            "where its definition is older than node-remedy",
        )
    };
    Note {
        reason: "RecordPruned".to_owned(),
        text: format!(
            "NodeFence {nodefence} was not stored as it was written{what}; nothing is done about the node until it \
             is; {rest}: kubectl apply -f deploy/crds"
        ),
        warning: true,
    }
}

/// The reason of [`stands_still`].
pub const REQUESTS_FAILING: &str = "RequestsFailing";

/// An incident does nothing, because one of its requests to the API server fails.
pub fn stands_still(nodefence: &str, what: &str, lasts: Span, error: &str) -> Note {
    let text = format!(
        "{nodefence} has stood still for {} s: {what}: {error}; what is off stays off until the API server carries it out",
        lasts.0 / 1_000
    );
    Note { reason: REQUESTS_FAILING.to_owned(), text, warning: true }
}

/// Something was not carried out because the evidence for it had grown old.
pub fn late() -> Note {
    let text = format!(
        "held back: what is decided on may be {} s old when it is carried out, and the API server \
         answers too slowly for that; looking again",
        VIEW_AGE_MAX.0 / 1_000
    );
    Note { reason: "StaleView".to_owned(), text, warning: true }
}

/// The name that people gave a method.
pub fn method_name(plan: &Plan, method: MethodIndex) -> String {
    plan.method(method).map_or_else(|| format!("method {method}"), |method| method.name.clone())
}
