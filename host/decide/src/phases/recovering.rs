//! After the way back: wait for the node to be well, then take off everything of ours.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::releasing::same_boot;
use super::remedying::{describe, stop_unseen};
use super::way_back::{Brought, bring_all_on, restore_all};
use crate::bug::{Bug, guard, is_seeded};
use crate::cut::{holds_all, may_restore_alive};
use crate::draft::{Draft, Flow};
use crate::phases::way_back::is_unanswered;
use crate::phases::wiring::any_labelled;
use crate::plan::{Progress, Want, next_wanted};
use crate::release::Left;
use crate::retry::{
    await_device, climb, give_up, job_left, node_gone, park, retry, try_again, void,
};
use crate::standing::{goes_back, see_it_come_back, still_cut};
use crate::{
    Action, Builtin, Crossing, Deletion, Effect, FinalReason, Goal, Grade, Hold, Kind, LOOK_EVERY,
    Marks, MethodIndex, NodeView, Notice, Operation, ParkReason, Phase, Proof, Record, Remedy,
    RemedyStep, Rule, Span, Time, View,
};

/// A kubelet with nothing new reports every five minutes (`nodeStatusReportFrequency`), sometimes late.
const REPORT_DUE_WITHIN: Span = Span::minutes(6);

/// Done: the machine was given its power back; a boot takes its time.
pub(crate) fn awaiting_healthy(draft: &mut Draft<'_>) -> Flow {
    let Some(view) = draft.look() else { return Flow::Stay };
    let Some(node) = draft.node(view) else { return node_is_gone(draft) };
    draft.rule(Rule::A8);
    if speaks_against_its_proof(draft, node) {
        draft.rule(Rule::P2);
        draft.notice(Notice::ProofVoided { reads_on: None });
        void(draft);
    }
    if draft.is_heard_again(node) && needs_new_boot(&draft.record) {
        let grade = draft.record.proof.as_ref().map(|proof| proof.grade);
        return same_boot(draft, grade.unwrap_or(Grade::NewBootId));
    }
    if draft.is_well(view) {
        if needs_new_boot(&draft.record) && !draft.is_new_boot(&node.liveness) {
            let grade = draft.record.proof.as_ref().map(|proof| proof.grade);
            return same_boot(draft, grade.unwrap_or(Grade::NewBootId));
        }
        if has_let_go(draft, view, node) {
            return Flow::Go(Phase::Recovering);
        }
    }
    let until = draft.record.entered_at.after(patience(draft));
    if draft.now >= until {
        if let Some(flow) = read_plugs_once_more(draft) {
            return flow;
        }
        if let Some(flow) = another_pass(draft) {
            return flow;
        }
        if draft.is_well(view) {
            return park(draft, ParkReason::SameBootAfterRelease);
        }
        let reports_until = draft.record.entered_at.after(REPORT_DUE_WITHIN);
        let may_report =
            draft.now < reports_until && view.trigger_clear() && !draft.is_silent(node);
        if guard(Bug::ReportNotAwaited, may_report) {
            draft.look_at(reports_until);
            return draft.look_in(crate::PROBE_EVERY);
        }
        let reason = not_healthy(draft);
        return park(draft, reason);
    }
    draft.look_at(until);
    draft.look_in(crate::PROBE_EVERY)
}

/// Whether the boot that was proven off reports after all, although all was released already.
fn speaks_against_its_proof(draft: &Draft<'_>, node: &NodeView) -> bool {
    let is_of_the_machine = |proof: &&Proof| match proof.grade {
        Grade::PowerOffVerified
        | Grade::WatchdogDeadline
        | Grade::OperatorConfirmed
        | Grade::JobSucceeded
        | Grade::KdumpSeen => proof.voided_at.is_none(),
        // Cut storage stops no kubelet, and silence is over when it is.
        Grade::StorageFenced | Grade::Partition | Grade::NewBootId => false,
    };
    let proof = draft.record.proof.as_ref().filter(is_of_the_machine);
    proof.is_some_and(|proof| node.liveness.reported > proof.liveness.reported)
        && !draft.is_new_boot(&node.liveness)
}

/// How long the node may take to be well. A machine that boots takes its time, whoever is next; any other
/// remedy has done what it could, and the next one has its turn a period later (A11).
pub(crate) fn patience(draft: &Draft<'_>) -> Span {
    let remedy_step = draft.plan.ladder.get(draft.record.remedy_step);
    match remedy_step.filter(|_| draft.has_next()) {
        Some(RemedyStep { period, .. }) if !(draft.switches_power() && draft.sent_off()) => *period,
        Some(RemedyStep { period, .. }) => draft.policy.recover_timeout.max(*period),
        None => draft.policy.recover_timeout,
    }
}

/// What is tried before a person is told, unless they aborted: the fence once more, then the next remedy. A node that is cut
/// off, and nothing else, does not come back by being cut off once more.
fn another_pass(draft: &mut Draft<'_>) -> Option<Flow> {
    if guard(Bug::AbortForgotten, draft.record.aborted_at.is_some()) {
        return None;
    }
    let fences = draft.remedy() == Some(Remedy::Fence) && !draft.record.failed.is_empty();
    let again = if fences || draft.switches_power() { try_again(draft) } else { None };
    again.or_else(|| climb(draft))
}

fn not_healthy(draft: &Draft<'_>) -> ParkReason {
    let remedy_step = draft
        .plan
        .ladder
        .get(draft.record.remedy_step)
        .filter(|remedy_step| remedy_step.remedy == Remedy::Plugin);
    if let Some(RemedyStep { name, .. }) = remedy_step {
        let detail = "its plugin has done what it could".to_string();
        return ParkReason::RemediesExhausted { remedy: name.clone(), detail };
    }
    if let Some(job) =
        draft.record.jobs.last().filter(|job| job.remedy_step == draft.record.remedy_step)
    {
        let name =
            draft.plan.ladder.get(job.remedy_step).map(|remedy_step| remedy_step.name.clone());
        let detail = job.end.as_ref().map(describe);
        return ParkReason::RemediesExhausted {
            remedy: name.unwrap_or_default(),
            detail: detail.unwrap_or_default(),
        };
    }
    if draft.isolates() && !draft.switches_power() {
        ParkReason::Isolated
    } else {
        ParkReason::NotHealthy
    }
}

/// Whoever is told that a node does not come back hears what its plugs read now: an off may have
/// landed after all, or a hand may have been at work. Nothing is switched for it; a person is.
fn read_plugs_once_more(draft: &mut Draft<'_>) -> Option<Flow> {
    read_once_more(draft, |_| true)
}

/// Reads those of the plugs that we switched, each once in this phase; `None` when all are read. What a
/// device answered counts, also that it cannot say.
fn read_once_more(draft: &mut Draft<'_>, plugs: impl Fn(MethodIndex) -> bool) -> Option<Flow> {
    let is_read = |plug: &MethodIndex| {
        let read = draft.record.last_in_phase(*plug, Action::Status);
        read.is_some_and(|read| !read.is_held_back())
    };
    let touched = |plug: &MethodIndex| draft.record.last_effect(*plug).is_some() && plugs(*plug);
    let unread = draft.plan.power_methods().filter(touched).find(|plug| !is_read(plug))?;
    Some(draft.call(unread, Action::Status))
}

/// A machine is well on one of several feeds, and an off that its device was slow to carry out may have
/// reached another one after its `on`. Once no off can come late any more they are read again, and what is off
/// is switched on. A feed that a person was told of after a try in vain is left to them; after an abort, every feed is.
fn switch_on_dark_feeds(draft: &mut Draft<'_>) -> Option<Flow> {
    let parked = draft.record.parked.as_ref();
    let is_stopped = parked.is_some_and(|parked| parked.reason == ParkReason::Aborted);
    if is_stopped || is_seeded(Bug::LateOffForgotten) || is_seeded(Bug::DarkFeedForgotten) {
        return None;
    }
    let plan = draft.plan;
    let told = parked.map(|parked| parked.powered_off_by_us.as_slice()).unwrap_or_default();
    let is_try = |one: &Operation| one.action == Action::On && !one.is_held_back();
    let is_tried = |plug: &MethodIndex| {
        let off = draft.record.last_effect(*plug).filter(|one| one.cuts()).map(|one| one.id);
        let mut later = draft.record.operations.iter().filter(|one| one.method == *plug);
        later.any(|one| is_try(one) && Some(one.id) > off)
    };
    let left: Vec<MethodIndex> = told.iter().copied().filter(is_tried).collect();
    let counts = |plug: MethodIndex| plan.is_part(plug) && !left.contains(&plug);
    let parts = plan.power_methods().filter(|part| counts(*part));
    let settled = parts.map(|part| draft.record.may_land_until(plan, part)).max()?;
    if draft.now < settled {
        draft.rule(Rule::A3);
        draft.look_at(settled);
        return Some(Flow::Stay);
    }
    if let Some(flow) = read_once_more(draft, counts) {
        return Some(flow);
    }
    let dark = draft.record.powered_off_by_us(plan, draft.now);
    dark.into_iter().any(counts).then_some(Flow::Go(Phase::Untainting))
}

/// Whether a plug is off because of us, or may be, although the machine is well: one of several feeds, or an outlet that names
/// no machine and may be another's. It is still ours to switch on, or to tell a person of.
pub(crate) fn has_dark_feed(draft: &Draft<'_>) -> bool {
    let dark = draft.record.powered_off_by_us(draft.plan, draft.now);
    let may_be_anothers = |plug| any_labelled(draft.plan, &[plug]);
    dark.into_iter().any(|plug| draft.plan.is_part(plug) || may_be_anothers(plug))
}

/// Whether the boot that was fenced must have ended before the node counts as well.
fn needs_new_boot(record: &Record) -> bool {
    record.first_released_at.is_some()
        || record.proof.as_ref().is_some_and(|proof| proof.grade == Grade::PowerOffVerified)
}

/// Whether a node that was cut off, and goes on with the boot that pods were released from, holds no volume
/// but of pods that are still its own.
pub(crate) fn has_let_go(draft: &Draft<'_>, view: &View, node: &NodeView) -> bool {
    if draft.record.partly_released_at.is_none() || draft.is_new_boot(&node.liveness) {
        return true;
    }
    let before = draft.record.proof.as_ref().map(|proof| &proof.liveness);
    let is_newer =
        node.liveness.reported > before.unwrap_or(&draft.record.liveness_at_open).reported;
    let volumes = || view.pods.iter().flat_map(|pod| &pod.volumes);
    let is_a_pods = |held: &String| volumes().any(|one| one.in_use_as() == Some(held));
    is_newer && node.volumes_in_use.iter().all(is_a_pods)
}

/// The node is well, or nothing was done to it: left-overs, cuts, recovery stages, feeds, marks.
pub(crate) fn recovering(draft: &mut Draft<'_>) -> Flow {
    let Some(view) = draft.look() else { return Flow::Stay };
    let Some(node) = draft.node(view) else { return node_is_gone(draft) };
    if node.out_of_service_by_us {
        // A booting kubelet's DaemonSets need it gone; whoever gave the machine power could not.
        draft.rule(Rule::P2);
        draft.effect(Effect::LiftOutOfService);
    }
    if draft.record.goal == Goal::BringBack {
        if !draft.is_well(view) {
            if let Some(until) = waits_for_a_renewal(draft, view, node) {
                draft.look_at(until);
                return Flow::Stay;
            }
            draft.rule(Rule::A7);
            draft.record.retries = draft.record.retries.saturating_add(1);
            if draft.record.retries > draft.policy.retries {
                return park(draft, ParkReason::NotHealthy);
            }
            return Flow::Go(Phase::AwaitingHealthy);
        }
        if let Some(flow) = clear_left_overs(draft, view, node) {
            return flow;
        }
    }
    let cuts = still_cut(draft);
    if guard(Bug::CutsForgotten, !cuts.is_empty()) {
        if goes_back(draft, &cuts) {
            return see_it_come_back(draft, &cuts);
        }
        if !(holds_all(draft, view) || may_restore_alive(draft, view)) {
            let plan = draft.plan;
            let names = cuts.iter().filter_map(|cut| plan.method(*cut));
            let left = names.map(|method| format!("cut by {}", method.name)).collect();
            if say_what_stays(draft, left) {
                return park(draft, ParkReason::StillCut);
            }
            return draft.look_in(LOOK_EVERY);
        }
        draft.rule(Rule::A5);
        if let Some(flow) = restore_all(draft, &cuts) {
            return flow;
        }
    }
    if let Some(flow) = run_recovery_stages(draft).or_else(|| switch_on_dark_feeds(draft)) {
        return flow;
    }
    unmark(draft, node)
}

/// Until when a sign that is not there for long yet may only be a late renewal, which is no relapse: no longer than a Lease
/// lasts.
fn waits_for_a_renewal(draft: &Draft<'_>, view: &View, node: &NodeView) -> Option<Time> {
    let Crossing::Ripening { since, crosses_at } = view.trigger else { return None };
    let until = crosses_at.min(since.after(node.lease_duration));
    guard(Bug::LateIsRelapse, draft.now < until).then_some(until)
}

/// P2: on a new boot what is left of the snapshot is deleted as its kubelet is asked to. Of a boot that may
/// go on, those go whose deletion was asked for; the others run.
fn clear_left_overs(draft: &mut Draft<'_>, view: &View, node: &NodeView) -> Option<Flow> {
    let released = draft.record.released.clone()?;
    let mut left = Left::of(&released, view);
    let may_go_on =
        draft.record.partly_released_at.is_some() && draft.record.first_released_at.is_none();
    if may_go_on && !draft.is_new_boot(&node.liveness) {
        left.pods.retain(|pod| pod.deletion != Deletion::NotAsked);
        left.attachments.retain(|one| one.deleting);
    }
    if left.count() == 0 {
        return None;
    }
    let pods = left.pods_before(Deletion::Graceful);
    if !pods.is_empty() {
        draft.effect(Effect::GracefulDelete(pods));
    }
    if say_what_stays(draft, left.holders()) {
        draft.rule(Rule::P5);
    }
    Some(draft.look_in(crate::RESEND_EVERY))
}

/// Tells people what keeps the incident here once that takes longer than `cleanup_timeout`; says whether it does.
fn say_what_stays(draft: &mut Draft<'_>, left: Vec<String>) -> bool {
    let is_long = draft.now >= draft.record.entered_at.after(draft.policy.cleanup_timeout);
    if is_long {
        draft.hold(Hold::CleanUp { left });
    }
    is_long
}

/// Recovery stages give things back; a failure is told and waits for nobody.
fn run_recovery_stages(draft: &mut Draft<'_>) -> Option<Flow> {
    let plan = draft.plan;
    loop {
        let progress = |index| {
            let device = plan.method(index).is_some_and(|method| match &method.kind {
                Kind::Fabric(_) | Kind::Storage { .. } => true,
                Kind::Builtin(
                    Builtin::MarkSchedulable
                    | Builtin::MarkUnschedulable
                    | Builtin::Quarantine
                    | Builtin::CleanResources
                    | Builtin::DeleteNode,
                )
                | Kind::Power(_)
                | Kind::ResetOnly
                | Kind::Watch => false,
            });
            let on = draft.record.last_effect(index).is_some_and(|one| one.action == Action::On)
                && draft.record.state_since_effect(index) == Some(crate::PlugState::On);
            let is_kept = guard(Bug::AnothersOpened, is_shut_by_others(draft, index));
            match (draft.record.failed.contains(&index), device && !on && !is_kept) {
                (true, _) => Progress::Failed,
                (false, true) => Progress::Open,
                (false, false) => Progress::Met,
            }
        };
        let method = match next_wanted(plan, &plan.recovery, progress) {
            Want::Method(method) => method,
            Want::Nothing | Want::Failed(_) => return None,
        };
        let brought = if guard(Bug::RecoveryWaits, has_gone_unanswered(draft, method)) {
            let refused = || Brought::Failed(alloc::vec![method]);
            retry(draft, Phase::Recovering).map_or_else(refused, Brought::NotYet)
        } else {
            bring_all_on(draft, &[method])
        };
        match brought {
            Brought::On => return None,
            Brought::NotYet(flow) => return Some(flow),
            Brought::Silent(silent) => return Some(await_device(draft, silent, Phase::Recovering)),
            Brought::Failed(_) => give_up(draft, method),
        }
    }
}

/// A4: whether the plan cuts what this method opens, and we did not: if it is shut, somebody else shut it.
fn is_shut_by_others(draft: &Draft<'_>, method: MethodIndex) -> bool {
    let Some(opens) = draft.plan.method(method) else { return false };
    let is_same = |index: &MethodIndex| {
        let one = draft.plan.method(*index);
        one.is_some_and(|one| one.device == opens.device && one.plug == opens.plug)
    };
    let mut same = (0..draft.plan.methods.len()).filter(is_same);
    draft.plan.cut_methods().any(|cut| is_same(&cut))
        && same.all(|index| draft.record.last_effect(index).is_none())
}

/// Whether the method's device did not answer in this phase, and the method holds no cut of ours.
fn has_gone_unanswered(draft: &Draft<'_>, method: MethodIndex) -> bool {
    !still_cut(draft).contains(&method) && is_unanswered(draft, method)
}

/// S9: our marks go last, and only ours; then the incident ends where its goal says.
fn unmark(draft: &mut Draft<'_>, node: &NodeView) -> Flow {
    // A late off of a dead leader would hit a node that is in use again, and so would a reset that has not come yet.
    let is_reset = draft.is_new_boot(&node.liveness);
    let switches = draft.plan.methods.iter().enumerate().filter(|(_, one)| one.switches_power());
    let late = switches.map(|(index, _)| {
        let until = |action| draft.record.pending_until(draft.plan, index, action);
        if is_reset { until(Action::Off) } else { until(Action::Off).max(until(Action::Reset)) }
    });
    let late = late.max();
    if let Some(until) = late.filter(|until| draft.now < *until) {
        draft.rule(Rule::A3);
        draft.look_at(until);
        return Flow::Stay;
    }
    // A15: what will never run again may look ready for a while, and gets no new pods.
    let is_back = draft.record.goal != Goal::Close(FinalReason::Replaced);
    let quarantined = is_back && node.quarantined && draft.record.marks.quarantine;
    let cordoned = is_back && node.cordoned_by_us && draft.record.marks.cordon;
    if guard(Bug::MarksStay, node.out_of_service_by_us || quarantined || cordoned) {
        draft.rule(Rule::P7);
        if quarantined {
            draft.effect(Effect::Unquarantine);
        }
        if cordoned {
            draft.effect(Effect::Uncordon);
        }
        let marks = [
            (node.out_of_service_by_us, "out-of-service taint"),
            (quarantined, "quarantine taint"),
            (cordoned, "cordon"),
        ];
        let name = &draft.plan.node.name;
        let stand = marks.iter().filter(|(stands, _)| *stands);
        let left = stand.map(|(_, mark)| format!("{mark} of {name}")).collect();
        say_what_stays(draft, left);
        return draft.look_in(LOOK_EVERY);
    }
    draft.record.marks = Marks::default();
    match draft.record.goal.clone() {
        Goal::BringBack if draft.record.parked.is_some() => {
            end(draft, FinalReason::RecoveredByHand)
        }
        Goal::BringBack => end(draft, FinalReason::Remedied),
        Goal::Close(reason) => end(draft, reason),
        Goal::Withdraw => {
            crate::retry::begin_pass(draft);
            Flow::Go(Phase::Waiting)
        }
        Goal::Park(reason) => park(draft, reason),
    }
}

/// A15: nothing is left to take marks off from. What is off because of us is given back first, and what is
/// cut, where that is safe; else a person has to see to the machine.
fn node_is_gone(draft: &mut Draft<'_>) -> Flow {
    let is_on = draft.record.powered_off_by_us(draft.plan, draft.now).is_empty();
    let is_cut = !still_cut(draft).is_empty();
    let was_on_the_way_back = matches!(draft.record.goal, Goal::Close(_));
    if is_on && is_cut && was_on_the_way_back {
        draft.rule(Rule::A15);
        return park(draft, ParkReason::StillCut);
    }
    if !is_on || is_cut {
        return node_gone(draft);
    }
    draft.rule(Rule::A15);
    let reason = match draft.record.goal {
        Goal::Close(reason) => reason,
        Goal::BringBack | Goal::Withdraw | Goal::Park(_) => FinalReason::NodeGone,
    };
    end(draft, reason)
}

/// The incident is over, and a Job of it that may still go on is stopped.
pub(crate) fn end(draft: &mut Draft<'_>, reason: FinalReason) -> Flow {
    if let Some(flow) = stop_unseen(draft) {
        return flow;
    }
    if let Some(number) = job_left(draft) {
        draft.effect(Effect::StopJob(number));
    }
    draft.notice(Notice::Ended(reason));
    Flow::Go(Phase::Final(reason))
}
