//! What people ask of an incident, and where it takes effect.
//!
//! A request waits in the record until no call is under way: nothing is ever cut off in the
//! middle of an effect.

use crate::bug::{Bug, is_seeded};
use crate::cut::abort_reason;
use crate::draft::{Draft, Flow};
use crate::phases::deciding::begin_anew;
use crate::phases::recovering::end;
use crate::phases::remedying::stop_left;
use crate::retry::{begin_pass, end_release, go_back, park};
use crate::standing::still_cut;
use crate::{
    Boundary, Crossing, Evidence, FinalReason, Goal, Grade, Liveness, Notice, ParkReason, Phase,
    Proof, Request, Rule, VIEW_AGE_MAX, cut,
};

/// Takes a waiting request, if there is one.
pub(crate) fn take_request(draft: &mut Draft<'_>) -> Option<Flow> {
    match draft.record.request.clone()? {
        Request::Retry => {
            draft.record.request = None;
            retry(draft)
        }
        Request::Abort => {
            if let Some(flow) = stop_left(draft) {
                return Some(flow);
            }
            draft.record.request = None;
            Some(abort(draft))
        }
        Request::AbortLeaveOff => {
            if let Some(flow) = stop_left(draft) {
                return Some(flow);
            }
            abort_leave_off(draft)
        }
        Request::ConfirmOff { by, boot_id } => confirm_off(draft, &by, &boot_id),
    }
}

/// A parked or pausing incident tries again.
fn retry(draft: &mut Draft<'_>) -> Option<Flow> {
    draft.rule(Rule::A17);
    let still_off = !draft.record.powered_off_by_us(draft.plan, draft.now).is_empty();
    let parked_on_the_way_back = draft.record.parked.as_ref().is_some_and(|parked| {
        matches!(
            parked.reason,
            ParkReason::OnFailed | ParkReason::RestoreFailed | ParkReason::Aborted
        )
    });
    let resume = draft.record.resume;
    // A plug that may be another machine's is switched on before a new pass begins.
    let refuted = cut::refuted(draft).filter(|_| !is_seeded(Bug::WrongPlugHidden)).cloned();
    if draft.record.phase == Phase::Parked {
        draft.record.aborted_at = None;
        begin_anew(draft);
        if !cut::open(draft).is_empty() {
            return Some(cut::cut_again(draft));
        }
        if still_off && let Some(reason) = refuted {
            return Some(go_on_back(draft, Goal::Park(reason)));
        }
        if still_off && (parked_on_the_way_back || waits_on_the_way_back(draft)) {
            return Some(go_on_back(draft, Goal::BringBack));
        }
        begin_pass(draft);
        return Some(Flow::Go(Phase::Waiting));
    }
    draft.record.resume = None;
    resume.map(Flow::Go)
}

/// Whether it is parked because a device was silent that was to give back what we took.
pub(crate) fn waits_on_the_way_back(draft: &Draft<'_>) -> bool {
    let parked = draft.record.park_reason();
    is_on_the_way_back(draft) && parked == Some(&ParkReason::DeviceUnreachable)
}

/// Whether what was interrupted gives back what we took.
pub(crate) fn is_on_the_way_back(draft: &Draft<'_>) -> bool {
    matches!(draft.record.resume, Some(Phase::Restoring | Phase::PoweringOn | Phase::Recovering))
}

/// A2: takes the way back on from where it was parked, to this goal, whatever the gate says of cutting.
pub(crate) fn go_on_back(draft: &mut Draft<'_>, goal: Goal) -> Flow {
    // Nothing more is released behind it; it says what may be restored before the machine is on.
    let proof = draft.record.proof.take();
    begin_pass(draft);
    draft.record.proof = proof;
    draft.record.goal = goal;
    Flow::Go(Phase::Restoring)
}

/// The Node is gone and something of its machine is still cut: the same word, for the boot that was fenced,
/// gives it back. There is nothing left to release.
fn confirm_off_without_node(draft: &mut Draft<'_>, by: &str, boot_id: &str) -> Option<Flow> {
    let liveness = draft.record.liveness_at_open.clone();
    let refused = if still_cut(draft).is_empty() {
        Some("the Node is gone and nothing of its machine is cut; there is nothing to confirm")
    } else if draft.record.phase != Phase::Parked {
        Some(
            "the Node is gone and what was cut is being given back; say it again if the incident parks",
        )
    } else if liveness.boot_id != boot_id {
        Some("the confirmation is for another boot of this node")
    } else if !draft.policy.grades.contains(&Grade::OperatorConfirmed) {
        Some("policy does not release on a person's word")
    } else {
        None
    };
    if let Some(why) = refused {
        draft.notice(Notice::Ignored { why });
        return None;
    }
    confirmed(draft, by, liveness);
    Some(go_back(draft, Goal::Close(FinalReason::NodeGone)))
}

/// Takes a person's word for the proof: the machine that gave these signs is off.
fn confirmed(draft: &mut Draft<'_>, by: &str, liveness: Liveness) {
    draft.record.parked = None;
    draft.record.proof = Some(Proof {
        grade: Grade::OperatorConfirmed,
        at: draft.now,
        by: Evidence::Person(by.into()),
        liveness,
        voided_at: None,
    });
    draft.notice(Notice::Confirmed { by: by.into() });
    draft.notice(Notice::Proven { grade: Grade::OperatorConfirmed });
}

fn abort(draft: &mut Draft<'_>) -> Flow {
    draft.rule(Rule::A17);
    draft.record.aborted_at = Some(draft.now);
    end_release(draft);
    if draft.committed() {
        draft.notice(Notice::AbortTaken { boundary: Boundary::AfterOffPowersOn });
        return go_back(draft, Goal::Park(abort_reason(draft)));
    }
    draft.notice(Notice::AbortTaken { boundary: Boundary::BeforeOff });
    go_back(draft, Goal::Close(FinalReason::Aborted))
}

/// The machine stays as it is. Said of an incident that waits, and whose Node is gone, it ends the incident: a machine
/// that was scrapped answers no device, and a Node that gets its name would have no incident of its own. While
/// something of the machine is still cut it ends nothing: a parked incident says so, any other one parks.
fn abort_leave_off(draft: &mut Draft<'_>) -> Option<Flow> {
    if !draft.committed() {
        draft.record.request = None;
        return Some(abort(draft));
    }
    let is_parked = draft.record.phase == Phase::Parked;
    let waits = is_parked || draft.record.phase == Phase::AwaitingDevice;
    if waits && draft.look().is_none() {
        draft.look_in(VIEW_AGE_MAX);
        return Some(Flow::Stay);
    }
    draft.record.request = None;
    let is_gone = draft.seen().is_some_and(|view| draft.node(view).is_none());
    let is_cut = !still_cut(draft).is_empty();
    if is_parked && is_gone && is_cut {
        let why = "the Node is gone and something of its machine is still cut: confirm-off gives it back; if it then \
                   waits for its device, abort --leave-off ends it";
        draft.notice(Notice::Ignored { why });
        return None;
    }
    draft.rule(Rule::A17);
    draft.record.aborted_at = Some(draft.now);
    end_release(draft);
    draft.notice(Notice::AbortTaken { boundary: Boundary::AfterOffLeftOff });
    let is_scrapped = waits && (is_gone || is_seeded(Bug::LeaveOffEnds));
    if is_scrapped && !is_cut {
        return Some(end(draft, FinalReason::NodeGone));
    }
    Some(park(draft, abort_reason(draft)))
}

/// A person's word is proof only for this node, this boot, and while the node is silent.
fn confirm_off(draft: &mut Draft<'_>, by: &str, boot_id: &str) -> Option<Flow> {
    let Some(view) = draft.look() else {
        // Until the look comes back nothing else begins: the word may change what is to do.
        draft.look_in(VIEW_AGE_MAX);
        return Some(Flow::Stay);
    };
    draft.record.request = None;
    draft.rule(Rule::A17);
    let Some(node) = draft.node(view) else { return confirm_off_without_node(draft, by, boot_id) };
    let has_job = draft.record.jobs.last().is_some_and(|job| job.end.is_none());
    let refused = if draft.record.phase == Phase::Remedying && has_job {
        Some("a remedy's Job runs; wait for its end, or abort the incident")
    } else if node.liveness.boot_id != boot_id {
        Some("the confirmation is for another boot of this node")
    } else if !matches!(view.trigger, Crossing::Crossed { .. }) {
        Some("the node gives signs of life; it is not off")
    } else if !draft.is_silent(node) {
        Some(
            "its Lease was renewed lately, so it is not off; say it again once the Lease has run out",
        )
    } else if !draft.policy.grades.contains(&Grade::OperatorConfirmed) {
        Some("policy does not release on a person's word")
    } else {
        None
    };
    if let Some(why) = refused {
        draft.notice(Notice::Ignored { why });
        return None;
    }
    let liveness = node.liveness.clone();
    draft.record.marks.quarantine = true;
    end_release(draft);
    draft.record.goal = Goal::BringBack;
    confirmed(draft, by, liveness);
    Some(Flow::Go(Phase::Releasing))
}
