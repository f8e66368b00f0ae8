//! What people ask of a run, and where it takes effect.
//!
//! A request waits in the record until no call is under way: nothing is ever cut off in the
//! middle of an effect.

use crate::bug::{Bug, is_seeded};
use crate::cut::abort_reason;
use crate::phases::deciding::begin_anew;
use crate::phases::recovering::end;
use crate::phases::remedying::stop_left;
use crate::retry::{begin_pass, end_release, go_back, park};
use crate::run::{Flow, Run};
use crate::standing::still_cut;
use crate::{
    Boundary, Crossing, Evidence, FinalReason, Goal, Grade, Liveness, Notice, ParkReason, Phase,
    Proof, Request, Rule, VIEW_AGE_MAX, cut,
};

/// Takes a waiting request, if there is one.
pub(crate) fn take_request(run: &mut Run<'_>) -> Option<Flow> {
    match run.record.request.clone()? {
        Request::Retry => {
            run.record.request = None;
            retry(run)
        }
        Request::Abort => {
            if let Some(flow) = stop_left(run) {
                return Some(flow);
            }
            run.record.request = None;
            Some(abort(run))
        }
        Request::AbortLeaveOff => {
            if let Some(flow) = stop_left(run) {
                return Some(flow);
            }
            abort_leave_off(run)
        }
        Request::ConfirmOff { by, boot_id } => confirm_off(run, &by, &boot_id),
    }
}

/// A parked or pausing run tries again.
fn retry(run: &mut Run<'_>) -> Option<Flow> {
    run.rule(Rule::A17);
    let still_off = !run.record.powered_off_by_us(run.plan, run.now).is_empty();
    let parked_on_the_way_back = run.record.parked.as_ref().is_some_and(|parked| {
        matches!(
            parked.reason,
            ParkReason::OnFailed | ParkReason::RestoreFailed | ParkReason::Aborted
        )
    });
    let resume = run.record.resume;
    // A plug that may be another machine's is switched on before a new pass begins.
    let refuted = cut::refuted(run).filter(|_| !is_seeded(Bug::WrongPlugHidden)).cloned();
    if run.record.phase == Phase::Parked {
        run.record.aborted_at = None;
        begin_anew(run);
        if !cut::open(run).is_empty() {
            return Some(cut::cut_again(run));
        }
        if still_off && let Some(reason) = refuted {
            return Some(go_on_back(run, Goal::Park(reason)));
        }
        if still_off && (parked_on_the_way_back || waits_on_the_way_back(run)) {
            return Some(go_on_back(run, Goal::BringBack));
        }
        begin_pass(run);
        return Some(Flow::Go(Phase::Waiting));
    }
    run.record.resume = None;
    resume.map(Flow::Go)
}

/// Whether it is parked because a device was silent that was to give back what we took.
pub(crate) fn waits_on_the_way_back(run: &Run<'_>) -> bool {
    let parked = run.record.park_reason();
    is_on_the_way_back(run) && parked == Some(&ParkReason::DeviceUnreachable)
}

/// Whether what was interrupted gives back what we took.
pub(crate) fn is_on_the_way_back(run: &Run<'_>) -> bool {
    matches!(run.record.resume, Some(Phase::Restoring | Phase::PoweringOn | Phase::Recovering))
}

/// A2: takes the way back on from where it was parked, to this goal, whatever the gate says of cutting.
pub(crate) fn go_on_back(run: &mut Run<'_>, goal: Goal) -> Flow {
    // Nothing more is released behind it; it says what may be restored before the machine is on.
    let proof = run.record.proof.take();
    begin_pass(run);
    run.record.proof = proof;
    run.record.goal = goal;
    Flow::Go(Phase::Restoring)
}

/// The Node is gone and something of its machine is still cut: the same word, for the boot that was fenced,
/// gives it back. There is nothing left to release.
fn confirm_off_without_node(run: &mut Run<'_>, by: &str, boot_id: &str) -> Option<Flow> {
    let liveness = run.record.liveness_at_open.clone();
    let refused = if still_cut(run).is_empty() {
        Some("the Node is gone and nothing of its machine is cut; there is nothing to confirm")
    } else if run.record.phase != Phase::Parked {
        Some("the Node is gone and what was cut is being given back; say it again if the run parks")
    } else if liveness.boot_id != boot_id {
        Some("the confirmation is for another boot of this node")
    } else if !run.policy.grades.contains(&Grade::OperatorConfirmed) {
        Some("policy does not release on a person's word")
    } else {
        None
    };
    if let Some(why) = refused {
        run.notice(Notice::Ignored { why });
        return None;
    }
    confirmed(run, by, liveness);
    Some(go_back(run, Goal::Close(FinalReason::NodeGone)))
}

/// Takes a person's word for the proof: the machine that gave these signs is off.
fn confirmed(run: &mut Run<'_>, by: &str, liveness: Liveness) {
    run.record.parked = None;
    run.record.proof = Some(Proof {
        grade: Grade::OperatorConfirmed,
        at: run.now,
        by: Evidence::Person(by.into()),
        liveness,
        voided_at: None,
    });
    run.notice(Notice::Confirmed { by: by.into() });
    run.notice(Notice::Proven { grade: Grade::OperatorConfirmed });
}

fn abort(run: &mut Run<'_>) -> Flow {
    run.rule(Rule::A17);
    run.record.aborted_at = Some(run.now);
    end_release(run);
    if run.committed() {
        run.notice(Notice::AbortTaken { boundary: Boundary::AfterOffPowersOn });
        return go_back(run, Goal::Park(abort_reason(run)));
    }
    run.notice(Notice::AbortTaken { boundary: Boundary::BeforeOff });
    go_back(run, Goal::Close(FinalReason::Aborted))
}

/// The machine stays as it is. Said of a run that waits, and whose Node is gone, it ends the run: a machine that was
/// scrapped answers no device, and a Node that gets its name would have no incident of its own. While something of the
/// machine is still cut it ends nothing: a parked run says so, any other one parks.
fn abort_leave_off(run: &mut Run<'_>) -> Option<Flow> {
    if !run.committed() {
        run.record.request = None;
        return Some(abort(run));
    }
    let is_parked = run.record.phase == Phase::Parked;
    let waits = is_parked || run.record.phase == Phase::AwaitingDevice;
    if waits && run.look().is_none() {
        run.look_in(VIEW_AGE_MAX);
        return Some(Flow::Stay);
    }
    run.record.request = None;
    let is_gone = run.seen().is_some_and(|view| run.node(view).is_none());
    let is_cut = !still_cut(run).is_empty();
    if is_parked && is_gone && is_cut {
        let why = "the Node is gone and something of its machine is still cut: confirm-off gives it back; if the run then \
                   waits for its device, abort --leave-off ends it";
        run.notice(Notice::Ignored { why });
        return None;
    }
    run.rule(Rule::A17);
    run.record.aborted_at = Some(run.now);
    end_release(run);
    run.notice(Notice::AbortTaken { boundary: Boundary::AfterOffLeftOff });
    let is_scrapped = waits && (is_gone || is_seeded(Bug::LeaveOffEnds));
    if is_scrapped && !is_cut {
        return Some(end(run, FinalReason::NodeGone));
    }
    Some(park(run, abort_reason(run)))
}

/// A person's word is proof only for this node, this boot, and while the node is silent.
fn confirm_off(run: &mut Run<'_>, by: &str, boot_id: &str) -> Option<Flow> {
    let Some(view) = run.look() else {
        // Until the look comes back nothing else begins: the word may change what is to do.
        run.look_in(VIEW_AGE_MAX);
        return Some(Flow::Stay);
    };
    run.record.request = None;
    run.rule(Rule::A17);
    let Some(node) = run.node(view) else { return confirm_off_without_node(run, by, boot_id) };
    let has_job = run.record.jobs.last().is_some_and(|job| job.end.is_none());
    let refused = if run.record.phase == Phase::Remedying && has_job {
        Some("a remedy's Job runs; wait for its end, or abort the run")
    } else if node.liveness.boot_id != boot_id {
        Some("the confirmation is for another boot of this node")
    } else if !matches!(view.trigger, Crossing::Crossed { .. }) {
        Some("the node gives signs of life; it is not off")
    } else if !run.is_silent(node) {
        Some(
            "its Lease was renewed lately, so it is not off; say it again once the Lease has run out",
        )
    } else if !run.policy.grades.contains(&Grade::OperatorConfirmed) {
        Some("policy does not release on a person's word")
    } else {
        None
    };
    if let Some(why) = refused {
        run.notice(Notice::Ignored { why });
        return None;
    }
    let liveness = node.liveness.clone();
    run.record.marks.quarantine = true;
    end_release(run);
    run.record.goal = Goal::BringBack;
    confirmed(run, by, liveness);
    Some(Flow::Go(Phase::Releasing))
}
