//! Giving pods and attachments back: only behind proof, only what it covers, by UID.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::contradiction::{Contradiction, ask_again, contradiction};
use crate::bug::{Bug, guard, is_seeded};
use crate::cut::{give_back_disputed, undone};
use crate::draft::{Draft, Flow};
use crate::release::{Cover, Left, snapshot};
use crate::retry::{
    begin_pass, climb_to_an_off, end_release, go_back, node_gone, park, restart, unreachable, void,
};
use crate::standing::{is_round, is_young};
use crate::{
    Action, ClusterAction, Deletion, Effect, End, Evidence, Goal, Grade, LOOK_EVERY, MethodIndex,
    NodeView, Notice, ParkReason, Phase, PlugState, Proof, RESEND_EVERY, ReleaseMode, Released,
    Remedy, Rule, Span, Time, View,
};

/// Releases what the proof covers, as long as the proof holds.
pub(crate) fn releasing(draft: &mut Draft<'_>) -> Flow {
    let Some(view) = draft.look() else { return Flow::Stay };
    let Some(node) = draft.node(view) else { return without_node(draft) };
    let Some(proof) = draft.record.proof.clone() else {
        draft.rule(Rule::P1);
        return park(draft, ParkReason::BrokenRecord);
    };
    if guard(Bug::SignsVoidNothing, node.liveness != proof.liveness && voids(&proof, node)) {
        return voided(draft, node, &proof);
    }
    if let Some(why) = view.gate.dispute().filter(|_| matches!(proof.by, Evidence::Reads(_))) {
        draft.rule(Rule::P2);
        void(draft);
        end_release(draft);
        return give_back_disputed(draft, why);
    }
    if guard(Bug::QuarantineNotAwaited, !node.quarantined) {
        // Whoever comes back later must not be given work before the left-overs are gone.
        draft.rule(Rule::P4);
        if draft.now >= stalls_at(draft) {
            draft.rule(Rule::P5);
            end_release(draft);
            let holders =
                alloc::vec![format!("missing quarantine taint of {}", draft.plan.node.name)];
            draft.notice(Notice::ReleaseStalled { holders });
            return after_release(draft);
        }
        draft.effect(Effect::Quarantine);
        return draft.look_in(LOOK_EVERY);
    }
    let begun = draft.record.released.clone().filter(|released| released.ended_at.is_none());
    let released = match begun {
        Some(released) => released,
        None => begin(draft, view, &proof),
    };
    let left = Left::of(&released, view);
    note_progress(draft, &left, proof.grade);
    // A driver that checks takes its time, and power is not kept waiting for it.
    let is_asked_for = left.pods.is_empty() && left.attachments_not_asked().is_empty();
    let waits_for_none = match proof.grade {
        Grade::Partition => true,
        Grade::StorageFenced => draft.switches_power(),
        Grade::PowerOffVerified
        | Grade::WatchdogDeadline
        | Grade::OperatorConfirmed
        | Grade::JobSucceeded
        | Grade::KdumpSeen
        | Grade::NewBootId => false,
    };
    if left.count() == 0 || waits_for_none && is_asked_for {
        if let Some(flow) = delete_node(draft, &proof) {
            return flow;
        }
        end_release(draft);
        draft.notice(Notice::Released);
        return after_release(draft);
    }
    let served = served_until(draft, &proof, &released, &left);
    let stalls_at = served.map_or(stalls_at(draft), |until| until.after(release_patience(draft)));
    if guard(Bug::StallForgotten, draft.now >= stalls_at && left.count() >= released.left) {
        draft.rule(Rule::P5);
        end_release(draft);
        draft.notice(Notice::ReleaseStalled { holders: left.holders() });
        return after_release(draft);
    }
    if let Some(flow) = read_again(draft, &proof) {
        return flow;
    }
    send(draft, node, &proof, &released, &left);
    draft.look_in(LOOK_EVERY)
}

/// The Node that was to be deleted is: its machine comes back as any other, and registers anew.
fn without_node(draft: &mut Draft<'_>) -> Flow {
    let grade = draft.record.proof.as_ref().map(|proof| proof.grade);
    let dumps = draft.policy.kdump_releases;
    if !draft.deletes_node() || !grade.is_some_and(|grade| Cover { grade, dumps }.allows_taint()) {
        return node_gone(draft);
    }
    draft.rule(Rule::A15);
    end_release(draft);
    draft.notice(Notice::Released);
    go_back(draft, Goal::BringBack)
}

/// P3: the Node itself goes last, where that is asked for. It is a release, as pod GC then takes all that is left.
fn delete_node(draft: &mut Draft<'_>, proof: &Proof) -> Option<Flow> {
    let cover = Cover { grade: proof.grade, dumps: draft.policy.kdump_releases };
    if !draft.deletes_node() || !cover.allows_taint() {
        return None;
    }
    draft.rule(Rule::P3);
    if draft.now >= stalls_at(draft) {
        draft.rule(Rule::P5);
        let holders = alloc::vec![format!("Node {}", draft.plan.node.name)];
        draft.notice(Notice::ReleaseStalled { holders });
        return None;
    }
    if let Some(flow) = read_again(draft, proof) {
        return Some(flow);
    }
    note_first(draft, proof.grade);
    draft.effect(Effect::DeleteNode);
    Some(draft.look_in(LOOK_EVERY))
}

/// P5: when a release ends that does not get on, begun or not.
fn stalls_at(draft: &Draft<'_>) -> Time {
    let begun = draft.record.released.as_ref().filter(|released| released.ended_at.is_none());
    let progress_at = begun.map(|released| released.progress_at.max(released.at));
    let since = progress_at.unwrap_or_default().max(draft.record.entered_at);
    since.after(release_patience(draft))
}

/// How long a release may make no progress. With `paced` at least twice the time between two deletes: a pod whose turn has not
/// come is no stall.
fn release_patience(draft: &Draft<'_>) -> Span {
    let ReleaseMode::Paced { pods_per_minute } = draft.policy.release else {
        return draft.policy.release_timeout;
    };
    let minute = Span::minutes(1).0;
    let between_deletes = Span(minute.checked_div(u64::from(pods_per_minute)).unwrap_or_default());
    draft.policy.release_timeout.max(between_deletes.times(2))
}

/// Which signs speak against a proof. Cut storage does not stop a kubelet's heart, so there
/// only another boot does.
fn voids(proof: &Proof, node: &NodeView) -> bool {
    match proof.grade {
        Grade::StorageFenced => node.liveness.boot_id != proof.liveness.boot_id,
        Grade::PowerOffVerified
        | Grade::WatchdogDeadline
        | Grade::OperatorConfirmed
        | Grade::JobSucceeded
        | Grade::KdumpSeen
        | Grade::Partition
        | Grade::NewBootId => true,
    }
}

/// P2: any sign of a newer boot, any renewal or report ends release at once.
fn voided(draft: &mut Draft<'_>, node: &NodeView, proof: &Proof) -> Flow {
    draft.rule(Rule::P2);
    draft.notice(Notice::ProofVoided { reads_on: None });
    void(draft);
    end_release(draft);
    let is_unreleased = draft.record.first_released_at.is_none();
    let is_job = proof.grade == Grade::JobSucceeded;
    // A node that was cut off and is back takes leave of its pods by itself.
    let is_back = proof.grade == Grade::Partition && is_unreleased;
    // Which boot it is says only a report: a kubelet that boots renews its Lease first.
    if !draft.is_heard_again(node) || (is_job && is_unreleased) || is_back {
        return go_back(draft, Goal::BringBack);
    }
    same_boot(draft, proof.grade)
}

/// A6: pods were released and the boot they ran in lives. It has to end, if a restart is left.
pub(crate) fn same_boot(draft: &mut Draft<'_>, grade: Grade) -> Flow {
    draft.rule(Rule::A6);
    let is_released = draft.record.first_released_at.is_some();
    if is_released && draft.takes_off() && restart(draft).is_some() {
        return Flow::Go(Phase::AwaitingPower);
    }
    if is_released && climb_to_an_off(draft) {
        begin_pass(draft);
        return Flow::Go(Phase::AwaitingPower);
    }
    let goal = if grade == Grade::PowerOffVerified {
        Goal::Park(ParkReason::AliveThoughOff)
    } else if is_released {
        Goal::Park(ParkReason::SameBootAfterRelease)
    } else {
        // No device was wrong: whoever said it was, or the dump that ended.
        Goal::BringBack
    };
    go_back(draft, goal)
}

fn begin(draft: &mut Draft<'_>, view: &View, proof: &Proof) -> Released {
    draft.rule(Rule::P3);
    let cover = Cover { grade: proof.grade, dumps: draft.policy.kdump_releases };
    let released = snapshot(draft.plan, &draft.record, cover, view, draft.now);
    draft.notice(Notice::Releasing {
        pods: u32::try_from(released.pods.len()).unwrap_or(u32::MAX),
        attachments: u32::try_from(released.attachments.len()).unwrap_or(u32::MAX),
    });
    draft.record.released = Some(released.clone());
    released
}

/// Whatever is gone after the proof counts as released, whoever removed it.
fn note_progress(draft: &mut Draft<'_>, left: &Left<'_>, grade: Grade) {
    let now = draft.now;
    if let Some(released) = draft.record.released.as_mut().filter(|one| left.count() < one.left) {
        released.left = left.count();
        released.progress_at = now;
        note_first(draft, grade);
    }
}

/// Notes when something was first released. A pod that somebody else had deleted, and that waits for its finalizers, does
/// not count until it is gone.
fn note_first(draft: &mut Draft<'_>, grade: Grade) {
    let now = draft.now;
    let first = match grade {
        Grade::Partition => &mut draft.record.partly_released_at,
        Grade::PowerOffVerified
        | Grade::StorageFenced
        | Grade::WatchdogDeadline
        | Grade::OperatorConfirmed
        | Grade::JobSucceeded
        | Grade::KdumpSeen
        | Grade::NewBootId => &mut draft.record.first_released_at,
    };
    *first = first.or(Some(now));
}

fn after_release(draft: &mut Draft<'_>) -> Flow {
    let early = draft.record.proof.as_ref().is_some_and(|proof| proof.grade.is_before_off());
    if early && draft.switches_power() {
        // Of the machine is given back what may be; the rest waits until it is off.
        return Flow::Go(Phase::AwaitingPower);
    }
    if early && draft.remedy() == Some(Remedy::Cluster(ClusterAction::Release)) {
        // Or until somebody says that it is.
        return Flow::Go(Phase::Remedying);
    }
    let is_said_off = draft.record.proof.as_ref().is_some_and(|proof| {
        matches!(proof.grade, Grade::OperatorConfirmed | Grade::WatchdogDeadline)
    });
    if !draft.switches_power() && !is_said_off && (draft.isolates() || draft.plan.power.is_empty())
    {
        // The node stays isolated until it is well; its recovery restores what was cut.
        return Flow::Go(Phase::Untainting);
    }
    let goal = draft.record.goal.clone();
    go_back(draft, goal)
}

/// A16: others may power the machine or let it back to its storage, so what the proof rests on is read
/// again before a batch if the last read is old. Only an off read within this time allows the next delete.
fn read_again(draft: &mut Draft<'_>, proof: &Proof) -> Option<Flow> {
    let is_read_again = match proof.grade {
        Grade::PowerOffVerified => guard(Bug::NoReadAgain, true),
        Grade::StorageFenced => guard(Bug::CutNotReadAgain, true),
        Grade::WatchdogDeadline
        | Grade::OperatorConfirmed
        | Grade::JobSucceeded
        | Grade::KdumpSeen
        | Grade::Partition
        | Grade::NewBootId => false,
    };
    if !is_read_again {
        return None;
    }
    // Those that said off, whoever had switched them off.
    let feeds = draft.record.read_by(proof);
    if feeds.is_empty() {
        // What the proof rests on stands nowhere: that is no proof.
        draft.rule(Rule::P1);
        return Some(park(draft, ParkReason::BrokenRecord));
    }
    let in_round = is_round(draft, &feeds);
    for feed in feeds {
        let called = draft.record.last_ended(feed, Action::Status);
        let fresh = called.filter(|one| {
            // How long ago another process read it nobody can tell by our clock.
            let is_ours = one.epoch == draft.record.epoch;
            is_ours && (in_round || is_young(one, proof.grade, draft.now))
        });
        let read_at = called.and_then(|one| one.ended_at).unwrap_or(draft.now);
        match fresh.and_then(|one| one.end.clone()) {
            Some(End::Succeeded { state, .. }) if state.is_off() => {}
            Some(End::Succeeded { state: PlugState::On, .. })
                if proof.grade == Grade::StorageFenced =>
            {
                return Some(undone(draft, feed));
            }
            Some(End::Succeeded { state: PlugState::On, .. }) => {
                return Some(reads_on(draft, feed));
            }
            Some(
                end @ (End::Succeeded {
                    state:
                        PlugState::Off
                        | PlugState::Terminated
                        | PlugState::Transitioning
                        | PlugState::Unknown,
                    ..
                }
                | End::Failed(_)
                | End::NotAttempted(_)
                | End::Indeterminate),
            ) => {
                draft.rule(Rule::A16);
                // Not known: nothing is deleted until a read says off again.
                let pause = if unreachable(Some(&end)) { crate::PROBE_EVERY } else { LOOK_EVERY };
                if draft.now >= read_at.after(pause) {
                    return Some(draft.call(feed, Action::Status));
                }
                draft.look_at(read_at.after(pause));
                return Some(Flow::Stay);
            }
            None => {
                draft.rule(Rule::A16);
                return Some(draft.call(feed, Action::Status));
            }
        }
    }
    if proof.grade != Grade::PowerOffVerified {
        return None;
    }
    let off: Vec<MethodIndex> = draft.record.read_by(proof).into_iter().collect();
    match contradiction(draft, &off, Time::default()) {
        Contradiction::Nothing => None,
        Contradiction::Asking(flow) => Some(flow),
        Contradiction::NotOff(method) => Some(reads_on(draft, method)),
        Contradiction::NoState(method) => Some(ask_again(draft, method)),
    }
}

/// P2: the machine is on, by whatever device: nothing more is released.
fn reads_on(draft: &mut Draft<'_>, method: MethodIndex) -> Flow {
    draft.rule(Rule::A16);
    draft.rule(Rule::P2);
    draft.notice(Notice::ProofVoided { reads_on: Some(method) });
    void(draft);
    end_release(draft);
    go_back(draft, Goal::BringBack)
}

/// Asks for the next batch: pods first, attachments when their pods are gone. What is asked for
/// already is not asked for again; a write that was lost shows as an object that nobody asks for.
fn send(
    draft: &mut Draft<'_>,
    node: &NodeView,
    proof: &Proof,
    released: &Released,
    left: &Left<'_>,
) {
    let prompt = draft.policy.release == ReleaseMode::Prompt;
    let quota = match draft.policy.release {
        ReleaseMode::Prompt => released.pods.len(),
        ReleaseMode::Paced { .. } if is_seeded(Bug::PaceIgnored) => released.pods.len(),
        ReleaseMode::Paced { pods_per_minute } => {
            quota(pods_per_minute.max(1), draft.now.since(released.at)).min(released.pods.len())
        }
    };
    let allowed: Vec<&String> = released.pods.iter().take(quota).collect();
    let mut pods = left.pods_before(Deletion::AtOnce);
    pods.retain(|uid| allowed.contains(&uid));
    let evicted = take_served(draft, proof, released, left, &mut pods);
    let attachments = if left.pods.is_empty() { left.attachments_not_asked() } else { Vec::new() };
    // The taint detaches every volume, and pod GC deletes what terminates: not for a proof of less.
    let taint = released.everything && ((prompt && evicted.is_empty()) || left.pods.is_empty());
    draft.record.marks.out_of_service |= taint && !node.out_of_service;
    let mut asked = Vec::new();
    if taint && !node.out_of_service {
        asked.push(Effect::OutOfService);
    }
    if !evicted.is_empty() {
        asked.push(Effect::Evict { pods: evicted, at_once: true });
    }
    if !pods.is_empty() {
        asked.push(Effect::DeletePods(pods));
        // The attachments wait for these pods only, which most often are gone at once.
        if released.sent_at.is_none_or(|at| draft.now >= at.after(LOOK_EVERY)) {
            asked.push(Effect::Look);
        }
    }
    if !attachments.is_empty() {
        asked.push(Effect::DeleteAttachments(attachments));
    }
    let quota = u32::try_from(quota).unwrap_or(u32::MAX);
    if asked.is_empty() || is_asked_already(draft, quota, &asked) {
        return;
    }
    draft.rule(Rule::P4);
    let now = draft.now;
    note_first(draft, proof.grade);
    if let Some(released) = draft.record.released.as_mut() {
        released.sent_at = Some(now);
        released.sent = quota;
    }
    for effect in asked {
        draft.effect(effect);
    }
}

/// Whether the same was asked a moment ago, and nothing went since. A budget that allows no eviction is asked less
/// often than a delete is sent again.
fn is_asked_already(draft: &Draft<'_>, quota: u32, asked: &[Effect]) -> bool {
    // From the record: this look may have noted progress that the caller's copy lacks.
    let Some(released) = draft.record.released.as_ref() else { return false };
    let Some(sent_at) = released.sent_at else { return false };
    let evicts_only = asked.iter().all(|effect| matches!(effect, Effect::Evict { .. }));
    let pause = if evicts_only { RESEND_EVERY } else { LOOK_EVERY };
    let is_same = released.progress_at < sent_at && released.sent == quota;
    guard(Bug::AskedWithoutPause, is_same && draft.now < sent_at.after(pause))
}

/// P6: until when pods that still serve, on a node that is not proven off, are their budgets'; `None`
/// where there are none.
fn served_until(
    draft: &Draft<'_>,
    proof: &Proof,
    released: &Released,
    left: &Left<'_>,
) -> Option<Time> {
    let serves = proof.grade != Grade::PowerOffVerified && left.pods.iter().any(|pod| pod.ready);
    serves.then(|| released.at.after(draft.policy.pdb_patience))
}

/// P6: takes those that still serve out of `pods` as long as their budgets are asked.
fn take_served(
    draft: &mut Draft<'_>,
    proof: &Proof,
    released: &Released,
    left: &Left<'_>,
    pods: &mut Vec<String>,
) -> Vec<String> {
    if served_until(draft, proof, released, left).is_none_or(|until| draft.now >= until) {
        return Vec::new();
    }
    let serves = |uid: &mut String| left.pods.iter().any(|pod| pod.uid == *uid && pod.ready);
    let served: Vec<String> = pods.extract_if(.., serves).collect();
    if !served.is_empty() {
        draft.rule(Rule::P6);
    }
    served
}

/// How many pods may have been deleted after this long at so many a minute; the first at once.
fn quota(pods_per_minute: u32, elapsed: Span) -> usize {
    let due = elapsed.0.saturating_mul(u64::from(pods_per_minute)) / Span::minutes(1).0;
    usize::try_from(due).unwrap_or(usize::MAX).saturating_add(1)
}
