//! Conditions of a NodeFence, for tools that wait; they follow from the rest of its status.

use node_remedy_api::conditions::{Condition, ConditionStatus, PARKED, RELEASED};
use node_remedy_api::nodefence::{
    Action, EndKind, FinalReason, Grade, NodeFenceStatus, Phase, Proof,
};
use node_remedy_api::time::Moment;
use node_remedy_config::enums::Twin as _;
use node_remedy_decide as decide;

/// The node is proven off or isolated now; the reason names the grade.
pub(super) const FENCED: &str = "Fenced";
/// The incident is over; the reason says how.
pub(super) const FINISHED: &str = "Finished";

/// All conditions, each with the time its status last changed.
pub(super) fn of(
    status: &NodeFenceStatus,
    before: Option<&NodeFenceStatus>,
    now: Moment,
) -> Vec<Condition> {
    let said = [
        (FENCED, fenced(status)),
        (RELEASED, released(status)),
        (PARKED, parked(status)),
        (FINISHED, finished(status)),
    ];
    let before = before.map_or(&[][..], |status| &status.conditions);
    let timed = said.map(|(kind, said)| {
        let earlier = before.iter().find(|one| one.kind == kind && one.status == said.status);
        Condition {
            kind: kind.to_owned(),
            status: said.status,
            reason: said.reason,
            message: said.message,
            last_transition_time: earlier.map_or(now, |one| one.last_transition_time),
            observed_generation: None,
        }
    });
    timed.into()
}

/// What a phase is about, for people.
pub(super) const fn phase_sentence(phase: Phase) -> &'static str {
    match phase {
        Phase::Waiting => "waits for its time, the gate, a slot or an approval",
        Phase::Isolating => "isolates the node",
        Phase::Remedying => "a remedy before the fence runs",
        Phase::AwaitingPower => "isolation has ended; waits before power is cut",
        Phase::ReadingIdentity => "reads which machine the device powers, and whether it is on",
        Phase::PoweringOff => "switches the machine off",
        Phase::VerifyingOff => "reads every feed again",
        Phase::Releasing => "gives pods and volume attachments back",
        Phase::Restoring => "restores what isolation cut",
        Phase::Untainting => "lifts the out-of-service taint",
        Phase::PoweringOn => "switches the machine on",
        Phase::AwaitingHealthy => "waits for the node to be well",
        Phase::Recovering => "undoes what isolation did",
        Phase::AwaitingDevice => "the device cannot be reached; it is probed",
        Phase::Backoff => "a step failed; pauses before the next try",
        Phase::Parked => "stopped for a person",
        Phase::Final => "over",
    }
}

/// How an incident ended, for people.
pub(super) const fn final_sentence(reason: FinalReason) -> &'static str {
    match reason {
        FinalReason::Remedied => "the node is well again",
        FinalReason::Recovered => "the node was well again before its machine was switched off",
        FinalReason::RecoveredByHand => "the parked node came back well",
        FinalReason::Aborted => "a person stopped it before the machine was switched off",
        FinalReason::Replaced => "the provider terminated the instance",
        FinalReason::NodeGone => "the Node object is gone or is another one",
        FinalReason::Superseded => "another threshold was crossed whose remedy fences the node",
        FinalReason::Unreported => "nothing was cut, and nobody reports the condition any more",
    }
}

struct ConditionDraft {
    status: ConditionStatus,
    reason: String,
    message: String,
}

fn yes(reason: impl Into<String>, message: impl Into<String>) -> ConditionDraft {
    ConditionDraft { status: ConditionStatus::True, reason: reason.into(), message: message.into() }
}

fn no(reason: impl Into<String>, message: impl Into<String>) -> ConditionDraft {
    ConditionDraft {
        status: ConditionStatus::False,
        reason: reason.into(),
        message: message.into(),
    }
}

fn fenced(status: &NodeFenceStatus) -> ConditionDraft {
    let Some(proof) = &status.proof else {
        return no("NotProven", "nothing proves the node off or isolated");
    };
    if let Some(at) = proof.voided_at {
        if at == proof.at {
            return no(
                "NotProven",
                format!(
                    "nothing is proven: what was cut read as given back at {at}, or the node gave a sign of life"
                ),
            );
        }
        return no(
            "ProofVoided",
            format!(
                "the proof is void since {at}: the node gave a sign of life, or what was off reads on"
            ),
        );
    }
    if given_back_since(status, proof) {
        return no("SwitchedOn", "the proof was good until power or paths were given back");
    }
    let grade: decide::Grade = proof.grade.twin();
    yes(grade_reason(proof.grade), format!("{grade} at {}", proof.at))
}

/// Whether anything that may have reached a device was to end what was proven.
fn given_back_since(status: &NodeFenceStatus, proof: &Proof) -> bool {
    status.operations.iter().any(|one| {
        let sent = one.end.as_ref().is_none_or(|end| end.kind != EndKind::NotAttempted);
        matches!(one.action, Action::On | Action::Reset) && sent && one.intended_at >= proof.at
    })
}

/// The grade as a reason: one CamelCase word.
fn grade_reason(grade: Grade) -> String {
    format!("{grade:?}")
}

fn released(status: &NodeFenceStatus) -> ConditionDraft {
    let Some(released) = &status.released else {
        return no("NothingReleased", "no proof has released anything");
    };
    let of = released.pods.len().saturating_add(released.attachments.len());
    match (released.ended_at, released.left) {
        (None, left) => no("Releasing", format!("{left} of {of} are still there")),
        (Some(_), 0) => yes("AllGone", format!("all {of} pods and attachments are gone")),
        (Some(_), left) => no("LeftBehind", format!("release ended with {left} of {of} left")),
    }
}

fn parked(status: &NodeFenceStatus) -> ConditionDraft {
    match (&status.parked, status.phase) {
        (Some(parked), Phase::Parked) => {
            let next = if parked.next.is_empty() { "" } else { "; " };
            let message = format!("{}{next}{}", parked.sentence, parked.next);
            yes(format!("{:?}", parked.why.reason), message)
        }
        (None, Phase::Parked) => yes("Unknown", phase_sentence(Phase::Parked)),
        (_, phase) => no("NotParked", phase_sentence(phase)),
    }
}

fn finished(status: &NodeFenceStatus) -> ConditionDraft {
    match status.final_reason {
        Some(reason) => yes(format!("{reason:?}"), final_sentence(reason)),
        None => no(format!("{:?}", status.phase), phase_sentence(status.phase)),
    }
}
