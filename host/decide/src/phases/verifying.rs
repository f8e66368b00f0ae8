//! Power-management, second half: is it off, by somebody else's eyes.
//!
//! The order is what makes it evidence:
//! 1. the last off has ended;
//! 2. every outlet that names no machine reads off;
//! 3. the signs of life are noted (the baseline);
//! 4. every feed is read again, each in a call of its own;
//! 5. the signs of life are still the same.

use alloc::vec;
use alloc::vec::Vec;

use super::contradiction::{Contradiction, contradicted, contradiction, fell_silent};
use super::leave::heed_trigger;
use crate::bug::{Bug, guard, is_seeded};
use crate::cut::give_back_disputed;
use crate::draft::{Draft, Flow};
use crate::phases::identity_check::stop_if_other_machine;
use crate::phases::wiring::{Wiring, any_labelled, baseline, wiring};
use crate::retry::{
    await_device, fail, give_up, go_back, node_gone, not_verified, retry, unreachable,
};
use crate::standing::outdated;
use crate::{
    Action, Baseline, End, Evidence, FinalReason, Goal, Grade, LOOK_EVERY, MethodIndex, NodeView,
    Notice, OpId, Operation, ParkReason, Phase, PlugState, Proof, Rule, Span, Time,
};

/// Reads every feed again, then looks whether the node gave a sign of life meanwhile.
pub(crate) fn verifying_off(draft: &mut Draft<'_>) -> Flow {
    if !draft.takes_off() {
        // A reset is no proof. A new boot id settles it, or the wait for well ends.
        draft.rule(Rule::A10);
        return Flow::Go(Phase::AwaitingHealthy);
    }
    let plan = draft.plan;
    // The outlets are read first.
    let is_read = |one: &MethodIndex| {
        draft.record.is_to_verify(plan, *one) && !fell_silent(plan, &draft.record, *one)
    };
    let methods: Vec<MethodIndex> = plan.power_methods().filter(is_read).collect();
    if let Some(flow) = await_outlets(draft, &methods) {
        return flow;
    }
    let Some(baseline_at) = baseline(draft) else { return Flow::Stay };
    let mut reads = Vec::new();
    let mut off = Vec::new();
    for method in methods {
        match confirm(draft, method, baseline_at) {
            Confirmed::By(read) => {
                reads.extend(read);
                off.push(method);
            }
            Confirmed::NotYet(_) if !off.is_empty() && is_seeded(Bug::OneFeedIsAll) => {}
            Confirmed::NotYet(flow) => return flow,
        }
    }
    let is_off = |method| off.contains(&method) || !off.is_empty() && is_seeded(Bug::OneFeedIsAll);
    if draft.plan.machine_is_off(is_off) {
        return prove(draft, reads, &off);
    }
    let reason = not_verified(draft);
    fail(draft, reason)
}

/// P8: outlets that may be another machine's are read as off before the baseline. A neighbour that was heard while a slow one
/// was still on may hang on it.
fn await_outlets(draft: &mut Draft<'_>, methods: &[MethodIndex]) -> Option<Flow> {
    if draft.record.baseline.is_some() || is_seeded(Bug::LateOutletBelieved) {
        return None;
    }
    let first = draft.record.after_power_effects(draft.plan).max(draft.record.phase_first);
    for outlet in methods.iter().copied().filter(|one| any_labelled(draft.plan, &[*one])) {
        let read = draft.record.last_in_phase(outlet, Action::Status).filter(|one| one.id >= first);
        let Some(read) = read.cloned() else { return Some(draft.call(outlet, Action::Status)) };
        if !read.is_read_off() {
            return Some(if unreachable(read.end.as_ref()) {
                await_device(draft, outlet, Phase::VerifyingOff)
            } else {
                not_off_yet(draft, outlet, &read)
            });
        }
    }
    None
}

enum Confirmed {
    By(Vec<OpId>),
    NotYet(Flow),
}

/// One feed: read as off by calls that began after the baseline, its own and, where it has one, its
/// witness's.
fn confirm(draft: &mut Draft<'_>, method: MethodIndex, baseline_at: Time) -> Confirmed {
    let witness = draft.plan.method(method).and_then(|one| one.witness);
    let mut reads = Vec::new();
    for reader in [method].into_iter().chain(witness) {
        match confirm_by(draft, reader, method, baseline_at) {
            Confirmed::By(read) => reads.extend(read),
            not_yet @ Confirmed::NotYet(_) => return not_yet,
        }
    }
    Confirmed::By(reads)
}

/// One feed, read by one method.
fn confirm_by(
    draft: &mut Draft<'_>,
    reader: MethodIndex,
    method: MethodIndex,
    baseline_at: Time,
) -> Confirmed {
    let first = draft.record.after_power_effects(draft.plan).max(draft.record.phase_first);
    if let Some(yes) = draft.record.last_effect(method).filter(|_| is_seeded(Bug::ReplyIsProof)) {
        return Confirmed::By(vec![yes.id]);
    }
    let read = draft.record.last_in_phase(reader, Action::Status);
    let read = read.filter(|read| read.id >= first && read.intended_at >= baseline_at).cloned();
    let Some(read) = read else {
        if draft.now < baseline_at {
            // Our clock was set back since: a read would count as older, and be made again and again.
            draft.look_at(baseline_at);
            return Confirmed::NotYet(Flow::Stay);
        }
        return Confirmed::NotYet(draft.call(reader, Action::Status));
    };
    match &read.end {
        Some(End::Succeeded { identity, .. }) if stop_if_other(draft, reader, identity) => {
            Confirmed::NotYet(Flow::Go(Phase::Parked))
        }
        Some(End::Succeeded { state: PlugState::Terminated, .. }) => {
            draft.rule(Rule::A15);
            draft.record.goal = Goal::Close(FinalReason::Replaced);
            Confirmed::By(vec![read.id])
        }
        Some(End::Succeeded { state, .. }) if state.is_off() => Confirmed::By(vec![read.id]),
        end @ Some(End::Failed(_) | End::NotAttempted(_)) if unreachable(end.as_ref()) => {
            Confirmed::NotYet(await_device(draft, reader, Phase::VerifyingOff))
        }
        Some(
            End::Succeeded {
                state:
                    PlugState::Off | PlugState::On | PlugState::Transitioning | PlugState::Unknown,
                ..
            }
            | End::Failed(_)
            | End::NotAttempted(_)
            | End::Indeterminate,
        )
        | None => Confirmed::NotYet(not_off_yet(draft, method, &read)),
    }
}

fn stop_if_other(
    draft: &mut Draft<'_>,
    method: MethodIndex,
    identity: &[(alloc::string::String, alloc::string::String)],
) -> bool {
    stop_if_other_machine(draft, method, identity).is_some()
}

/// Reads again for a while; then this try of the plug has failed.
fn not_off_yet(draft: &mut Draft<'_>, method: MethodIndex, read: &Operation) -> Flow {
    let names_none = read.method == method && any_labelled(draft.plan, &[method]);
    // The outlet is still on: signs of life that were noted before now prove nothing about it.
    if guard(Bug::LateOutletBelieved, names_none) {
        draft.record.baseline = None;
    }
    let asked_at = draft.record.last_effect(method).and_then(|effect| effect.ended_at);
    // What may still come by itself is not asked for again.
    let late = draft.plan.method(method).map_or(Span::ZERO, |method| method.late_effect);
    let patience = draft.policy.off_timeout.max(late);
    let until = asked_at.unwrap_or(draft.record.entered_at).after(patience);
    if draft.now < until {
        let again_at = read.ended_at.unwrap_or(read.intended_at).after(LOOK_EVERY);
        if draft.now >= again_at {
            return draft.call(read.method, Action::Status);
        }
        draft.look_at(again_at);
        return Flow::Stay;
    }
    draft.rule(Rule::P1);
    draft.record.baseline = None;
    // Only a plug that was read, and not as off, is asked again; else it is the read's turn.
    let resume = match read.state() {
        Some(_) => Phase::PoweringOff,
        None => Phase::VerifyingOff,
    };
    if let Some(flow) = retry(draft, resume) {
        return flow;
    }
    give_up(draft, method);
    Flow::Go(Phase::PoweringOff)
}

/// All feeds read off: proof, if the node gave no sign of life since the baseline.
fn prove(draft: &mut Draft<'_>, reads: Vec<OpId>, off: &[MethodIndex]) -> Flow {
    let Some(view) = draft.look() else { return Flow::Stay };
    let Some(node) = draft.node(view) else { return node_gone(draft) };
    let Some(baseline) = draft.record.baseline.clone() else { return Flow::Stay };
    if guard(Bug::SignsOfLifeIgnored, node.liveness != baseline.liveness) {
        return sign_of_life(draft, &baseline, node);
    }
    if let Some(why) = view.gate.dispute() {
        return give_back_disputed(draft, why);
    }
    match contradiction(draft, off, baseline.at) {
        Contradiction::Nothing => {}
        Contradiction::Asking(flow) => return flow,
        Contradiction::NotOff(method) | Contradiction::NoState(method) => {
            return contradicted(draft, off, method);
        }
    }
    if !draft.committed() {
        // No off of ours: a plug that reads off against a node that is well tells old news, or is
        // not what feeds it.
        if let Err(flow) = heed_trigger(draft, view, node) {
            draft.rule(Rule::P2);
            return flow;
        }
    }
    if !is_seeded(Bug::WiringTrusted) {
        match wiring(draft, view, node, off, baseline.at) {
            Wiring::Right => {}
            Wiring::Unsure => return Flow::Stay,
            Wiring::Wrong(neighbour) => {
                return go_back(draft, Goal::Park(ParkReason::WrongPlug { neighbour }));
            }
        }
    }
    let settled = draft.plan.power_methods();
    let settled = settled.map(|one| draft.record.pending_until(draft.plan, one, Action::On));
    if let Some(until) = settled.max().filter(|until| *until > earliest(draft, &reads)) {
        // A dead leader's `on` may still arrive: off is not off before that, and what was read
        // before it is no evidence.
        if draft.now < until {
            draft.look_at(until);
            return Flow::Stay;
        }
        draft.rule(Rule::A3);
        draft.record.baseline = None;
        return Flow::Go(Phase::VerifyingOff);
    }
    if !draft.policy.grades.contains(&Grade::PowerOffVerified) {
        draft.rule(Rule::P1);
        return go_back(draft, Goal::BringBack);
    }
    let outdated =
        outdated(draft, Grade::PowerOffVerified, &reads).filter(|_| !is_seeded(Bug::ReplyIsProof));
    if let Some(feed) = outdated {
        draft.rule(Rule::P1);
        return draft.call(feed, Action::Status);
    }
    draft.notice(Notice::Proven { grade: Grade::PowerOffVerified });
    draft.record.retries = 0;
    let liveness =
        if is_seeded(Bug::SignsOfLifeIgnored) { node.liveness.clone() } else { baseline.liveness };
    draft.record.proof = Some(Proof {
        grade: Grade::PowerOffVerified,
        at: draft.now,
        by: Evidence::Reads(reads),
        liveness,
        voided_at: None,
    });
    Flow::Go(Phase::Releasing)
}

/// When the first of these reads began.
fn earliest(draft: &Draft<'_>, reads: &[OpId]) -> Time {
    let begun = draft.record.operations.iter().filter(|one| reads.contains(&one.id));
    begun.map(|one| one.intended_at).min().unwrap_or_default()
}

/// A machine that is slow to go off may renew once more: read again. One that keeps giving
/// signs of life with the same boot is not the one that was cut.
fn sign_of_life(draft: &mut Draft<'_>, baseline: &Baseline, node: &NodeView) -> Flow {
    draft.rule(Rule::P2);
    if node.liveness.boot_id != baseline.liveness.boot_id {
        return go_back(draft, Goal::BringBack);
    }
    let last = draft.record.last_power_effect(draft.plan).and_then(|effect| effect.ended_at);
    let until = last.unwrap_or(draft.record.entered_at).after(draft.policy.off_timeout);
    draft.record.baseline = None;
    if draft.now < until {
        return draft.look_in(LOOK_EVERY);
    }
    go_back(draft, Goal::Park(ParkReason::AliveThoughOff))
}
