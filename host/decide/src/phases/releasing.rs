//! Giving pods and attachments back: only behind proof, only what it covers, by UID.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::contradiction::{Contradiction, ask_again, contradiction};
use crate::bug::{Bug, guard, is_seeded};
use crate::cut::{give_back_disputed, undone};
use crate::release::{Cover, Left, snapshot};
use crate::retry::{
    begin_pass, climb_to_an_off, end_release, go_back, node_gone, park, restart, unreachable, void,
};
use crate::run::{Flow, Run};
use crate::standing::{is_round, is_young};
use crate::{
    Action, ClusterAction, Deletion, Effect, End, Evidence, Goal, Grade, LOOK_EVERY, MethodIndex,
    NodeView, Notice, ParkReason, Phase, PlugState, Proof, RESEND_EVERY, ReleaseMode, Released,
    Remedy, Rule, Span, Time, View,
};

/// Releases what the proof covers, as long as the proof holds.
pub(crate) fn releasing(run: &mut Run<'_>) -> Flow {
    let Some(view) = run.look() else { return Flow::Stay };
    let Some(node) = run.node(view) else { return without_node(run) };
    let Some(proof) = run.record.proof.clone() else {
        run.rule(Rule::P1);
        return park(run, ParkReason::BrokenRecord);
    };
    if guard(Bug::SignsVoidNothing, node.liveness != proof.liveness && voids(&proof, node)) {
        return voided(run, node, &proof);
    }
    if let Some(why) = view.gate.dispute().filter(|_| matches!(proof.by, Evidence::Reads(_))) {
        run.rule(Rule::P2);
        void(run);
        end_release(run);
        return give_back_disputed(run, why);
    }
    if guard(Bug::QuarantineNotAwaited, !node.quarantined) {
        // Whoever comes back later must not be given work before the left-overs are gone.
        run.rule(Rule::P4);
        if run.now >= stalls_at(run) {
            run.rule(Rule::P5);
            end_release(run);
            let holders =
                alloc::vec![format!("missing quarantine taint of {}", run.plan.node.name)];
            run.notice(Notice::ReleaseStalled { holders });
            return after_release(run);
        }
        run.effect(Effect::Quarantine);
        return run.look_in(LOOK_EVERY);
    }
    let begun = run.record.released.clone().filter(|released| released.ended_at.is_none());
    let released = match begun {
        Some(released) => released,
        None => begin(run, view, &proof),
    };
    let left = Left::of(&released, view);
    note_progress(run, &left, proof.grade);
    // A driver that checks takes its time, and power is not kept waiting for it.
    let is_asked_for = left.pods.is_empty() && left.attachments_not_asked().is_empty();
    let waits_for_none = match proof.grade {
        Grade::Partition => true,
        Grade::StorageFenced => run.switches_power(),
        Grade::PowerOffVerified
        | Grade::WatchdogDeadline
        | Grade::OperatorConfirmed
        | Grade::JobSucceeded
        | Grade::KdumpSeen
        | Grade::NewBootId => false,
    };
    if left.count() == 0 || waits_for_none && is_asked_for {
        if let Some(flow) = delete_node(run, &proof) {
            return flow;
        }
        end_release(run);
        run.notice(Notice::Released);
        return after_release(run);
    }
    let served = served_until(run, &proof, &released, &left);
    let stalls_at = served.map_or(stalls_at(run), |until| until.after(release_patience(run)));
    if guard(Bug::StallForgotten, run.now >= stalls_at && left.count() >= released.left) {
        run.rule(Rule::P5);
        end_release(run);
        run.notice(Notice::ReleaseStalled { holders: left.holders() });
        return after_release(run);
    }
    if let Some(flow) = read_again(run, &proof) {
        return flow;
    }
    send(run, node, &proof, &released, &left);
    run.look_in(LOOK_EVERY)
}

/// The Node that was to be deleted is: its machine comes back as any other, and registers anew.
fn without_node(run: &mut Run<'_>) -> Flow {
    let grade = run.record.proof.as_ref().map(|proof| proof.grade);
    let dumps = run.policy.kdump_releases;
    if !run.deletes_node() || !grade.is_some_and(|grade| Cover { grade, dumps }.allows_taint()) {
        return node_gone(run);
    }
    run.rule(Rule::A15);
    end_release(run);
    run.notice(Notice::Released);
    go_back(run, Goal::BringBack)
}

/// P3: the Node itself goes last, where that is asked for. It is a release, as pod GC then takes all that is left.
fn delete_node(run: &mut Run<'_>, proof: &Proof) -> Option<Flow> {
    let cover = Cover { grade: proof.grade, dumps: run.policy.kdump_releases };
    if !run.deletes_node() || !cover.allows_taint() {
        return None;
    }
    run.rule(Rule::P3);
    if run.now >= stalls_at(run) {
        run.rule(Rule::P5);
        let holders = alloc::vec![format!("Node {}", run.plan.node.name)];
        run.notice(Notice::ReleaseStalled { holders });
        return None;
    }
    if let Some(flow) = read_again(run, proof) {
        return Some(flow);
    }
    note_first(run, proof.grade);
    run.effect(Effect::DeleteNode);
    Some(run.look_in(LOOK_EVERY))
}

/// P5: when a release ends that does not get on, begun or not.
fn stalls_at(run: &Run<'_>) -> Time {
    let begun = run.record.released.as_ref().filter(|released| released.ended_at.is_none());
    let progress_at = begun.map(|released| released.progress_at.max(released.at));
    let since = progress_at.unwrap_or_default().max(run.record.entered_at);
    since.after(release_patience(run))
}

/// How long a release may make no progress. With `paced` at least twice the time between two deletes: a pod whose turn has not
/// come is no stall.
fn release_patience(run: &Run<'_>) -> Span {
    let ReleaseMode::Paced { pods_per_minute } = run.policy.release else {
        return run.policy.release_timeout;
    };
    let minute = Span::minutes(1).0;
    let between_deletes = Span(minute.checked_div(u64::from(pods_per_minute)).unwrap_or_default());
    run.policy.release_timeout.max(between_deletes.times(2))
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
fn voided(run: &mut Run<'_>, node: &NodeView, proof: &Proof) -> Flow {
    run.rule(Rule::P2);
    run.notice(Notice::ProofVoided { reads_on: None });
    void(run);
    end_release(run);
    let is_unreleased = run.record.first_released_at.is_none();
    let is_job = proof.grade == Grade::JobSucceeded;
    // A node that was cut off and is back takes leave of its pods by itself.
    let is_back = proof.grade == Grade::Partition && is_unreleased;
    // Which boot it is says only a report: a kubelet that boots renews its Lease first.
    if !run.is_heard_again(node) || (is_job && is_unreleased) || is_back {
        return go_back(run, Goal::BringBack);
    }
    same_boot(run, proof.grade)
}

/// A6: pods were released and the boot they ran in lives. It has to end, if a restart is left.
pub(crate) fn same_boot(run: &mut Run<'_>, grade: Grade) -> Flow {
    run.rule(Rule::A6);
    let is_released = run.record.first_released_at.is_some();
    if is_released && run.takes_off() && restart(run).is_some() {
        return Flow::Go(Phase::AwaitingPower);
    }
    if is_released && climb_to_an_off(run) {
        begin_pass(run);
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
    go_back(run, goal)
}

fn begin(run: &mut Run<'_>, view: &View, proof: &Proof) -> Released {
    run.rule(Rule::P3);
    let cover = Cover { grade: proof.grade, dumps: run.policy.kdump_releases };
    let released = snapshot(run.plan, &run.record, cover, view, run.now);
    run.notice(Notice::Releasing {
        pods: u32::try_from(released.pods.len()).unwrap_or(u32::MAX),
        attachments: u32::try_from(released.attachments.len()).unwrap_or(u32::MAX),
    });
    run.record.released = Some(released.clone());
    released
}

/// Whatever is gone after the proof counts as released, whoever removed it.
fn note_progress(run: &mut Run<'_>, left: &Left<'_>, grade: Grade) {
    let now = run.now;
    if let Some(released) = run.record.released.as_mut().filter(|one| left.count() < one.left) {
        released.left = left.count();
        released.progress_at = now;
        note_first(run, grade);
    }
}

/// Notes when something was first released. A pod that somebody else had deleted, and that waits for its finalizers, does
/// not count until it is gone.
fn note_first(run: &mut Run<'_>, grade: Grade) {
    let now = run.now;
    let first = match grade {
        Grade::Partition => &mut run.record.partly_released_at,
        Grade::PowerOffVerified
        | Grade::StorageFenced
        | Grade::WatchdogDeadline
        | Grade::OperatorConfirmed
        | Grade::JobSucceeded
        | Grade::KdumpSeen
        | Grade::NewBootId => &mut run.record.first_released_at,
    };
    *first = first.or(Some(now));
}

fn after_release(run: &mut Run<'_>) -> Flow {
    let early = run.record.proof.as_ref().is_some_and(|proof| proof.grade.is_before_off());
    if early && run.switches_power() {
        // Of the machine is given back what may be; the rest waits until it is off.
        return Flow::Go(Phase::AwaitingPower);
    }
    if early && run.remedy() == Some(Remedy::Cluster(ClusterAction::Release)) {
        // Or until somebody says that it is.
        return Flow::Go(Phase::Remedying);
    }
    let is_said_off = run.record.proof.as_ref().is_some_and(|proof| {
        matches!(proof.grade, Grade::OperatorConfirmed | Grade::WatchdogDeadline)
    });
    if !run.switches_power() && !is_said_off && (run.isolates() || run.plan.power.is_empty()) {
        // The node stays isolated until it is well; its recovery restores what was cut.
        return Flow::Go(Phase::Untainting);
    }
    let goal = run.record.goal.clone();
    go_back(run, goal)
}

/// A16: others may power the machine or let it back to its storage, so what the proof rests on is read
/// again before a batch if the last read is old. Only an off read within this time allows the next delete.
fn read_again(run: &mut Run<'_>, proof: &Proof) -> Option<Flow> {
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
    let feeds = run.record.read_by(proof);
    if feeds.is_empty() {
        // What the proof rests on stands nowhere: that is no proof.
        run.rule(Rule::P1);
        return Some(park(run, ParkReason::BrokenRecord));
    }
    let in_round = is_round(run, &feeds);
    for feed in feeds {
        let called = run.record.last_ended(feed, Action::Status);
        let fresh = called.filter(|one| {
            // How long ago another process read it nobody can tell by our clock.
            let is_ours = one.epoch == run.record.epoch;
            is_ours && (in_round || is_young(one, proof.grade, run.now))
        });
        let read_at = called.and_then(|one| one.ended_at).unwrap_or(run.now);
        match fresh.and_then(|one| one.end.clone()) {
            Some(End::Succeeded { state, .. }) if state.is_off() => {}
            Some(End::Succeeded { state: PlugState::On, .. })
                if proof.grade == Grade::StorageFenced =>
            {
                return Some(undone(run, feed));
            }
            Some(End::Succeeded { state: PlugState::On, .. }) => {
                return Some(reads_on(run, feed));
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
                run.rule(Rule::A16);
                // Not known: nothing is deleted until a read says off again.
                let pause = if unreachable(Some(&end)) { crate::PROBE_EVERY } else { LOOK_EVERY };
                if run.now >= read_at.after(pause) {
                    return Some(run.call(feed, Action::Status));
                }
                run.look_at(read_at.after(pause));
                return Some(Flow::Stay);
            }
            None => {
                run.rule(Rule::A16);
                return Some(run.call(feed, Action::Status));
            }
        }
    }
    if proof.grade != Grade::PowerOffVerified {
        return None;
    }
    let off: Vec<MethodIndex> = run.record.read_by(proof).into_iter().collect();
    match contradiction(run, &off, Time::default()) {
        Contradiction::Nothing => None,
        Contradiction::Asking(flow) => Some(flow),
        Contradiction::NotOff(method) => Some(reads_on(run, method)),
        Contradiction::NoState(method) => Some(ask_again(run, method)),
    }
}

/// P2: the machine is on, by whatever device: nothing more is released.
fn reads_on(run: &mut Run<'_>, method: MethodIndex) -> Flow {
    run.rule(Rule::A16);
    run.rule(Rule::P2);
    run.notice(Notice::ProofVoided { reads_on: Some(method) });
    void(run);
    end_release(run);
    go_back(run, Goal::BringBack)
}

/// Asks for the next batch: pods first, attachments when their pods are gone. What is asked for
/// already is not asked for again; a write that was lost shows as an object that nobody asks for.
fn send(run: &mut Run<'_>, node: &NodeView, proof: &Proof, released: &Released, left: &Left<'_>) {
    let prompt = run.policy.release == ReleaseMode::Prompt;
    let quota = match run.policy.release {
        ReleaseMode::Prompt => released.pods.len(),
        ReleaseMode::Paced { .. } if is_seeded(Bug::PaceIgnored) => released.pods.len(),
        ReleaseMode::Paced { pods_per_minute } => {
            quota(pods_per_minute.max(1), run.now.since(released.at)).min(released.pods.len())
        }
    };
    let allowed: Vec<&String> = released.pods.iter().take(quota).collect();
    let mut pods = left.pods_before(Deletion::AtOnce);
    pods.retain(|uid| allowed.contains(&uid));
    let evicted = take_served(run, proof, released, left, &mut pods);
    let attachments = if left.pods.is_empty() { left.attachments_not_asked() } else { Vec::new() };
    // The taint detaches every volume, and pod GC deletes what terminates: not for a proof of less.
    let taint = released.everything && ((prompt && evicted.is_empty()) || left.pods.is_empty());
    run.record.marks.out_of_service |= taint && !node.out_of_service;
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
        if released.sent_at.is_none_or(|at| run.now >= at.after(LOOK_EVERY)) {
            asked.push(Effect::Look);
        }
    }
    if !attachments.is_empty() {
        asked.push(Effect::DeleteAttachments(attachments));
    }
    let quota = u32::try_from(quota).unwrap_or(u32::MAX);
    if asked.is_empty() || is_asked_already(run, quota, &asked) {
        return;
    }
    run.rule(Rule::P4);
    let now = run.now;
    note_first(run, proof.grade);
    if let Some(released) = run.record.released.as_mut() {
        released.sent_at = Some(now);
        released.sent = quota;
    }
    for effect in asked {
        run.effect(effect);
    }
}

/// Whether the same was asked a moment ago, and nothing went since. A budget that allows no eviction is asked less
/// often than a delete is sent again.
fn is_asked_already(run: &Run<'_>, quota: u32, asked: &[Effect]) -> bool {
    // From the record: this look may have noted progress that the caller's copy lacks.
    let Some(released) = run.record.released.as_ref() else { return false };
    let Some(sent_at) = released.sent_at else { return false };
    let evicts_only = asked.iter().all(|effect| matches!(effect, Effect::Evict { .. }));
    let pause = if evicts_only { RESEND_EVERY } else { LOOK_EVERY };
    let is_same = released.progress_at < sent_at && released.sent == quota;
    guard(Bug::AskedWithoutPause, is_same && run.now < sent_at.after(pause))
}

/// P6: until when pods that still serve, on a node that is not proven off, are their budgets'; `None`
/// where there are none.
fn served_until(
    run: &Run<'_>,
    proof: &Proof,
    released: &Released,
    left: &Left<'_>,
) -> Option<Time> {
    let serves = proof.grade != Grade::PowerOffVerified && left.pods.iter().any(|pod| pod.ready);
    serves.then(|| released.at.after(run.policy.pdb_patience))
}

/// P6: takes those that still serve out of `pods` as long as their budgets are asked.
fn take_served(
    run: &mut Run<'_>,
    proof: &Proof,
    released: &Released,
    left: &Left<'_>,
    pods: &mut Vec<String>,
) -> Vec<String> {
    if served_until(run, proof, released, left).is_none_or(|until| run.now >= until) {
        return Vec::new();
    }
    let serves = |uid: &mut String| left.pods.iter().any(|pod| pod.uid == *uid && pod.ready);
    let served: Vec<String> = pods.extract_if(.., serves).collect();
    if !served.is_empty() {
        run.rule(Rule::P6);
    }
    served
}

/// How many pods may have been deleted after this long at so many a minute; the first at once.
fn quota(pods_per_minute: u32, elapsed: Span) -> usize {
    let due = elapsed.0.saturating_mul(u64::from(pods_per_minute)) / Span::minutes(1).0;
    usize::try_from(due).unwrap_or(usize::MAX).saturating_add(1)
}
