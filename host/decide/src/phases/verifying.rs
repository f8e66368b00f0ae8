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
use crate::phases::identity_check::stop_if_other_machine;
use crate::phases::wiring::{Wiring, any_labelled, baseline, wiring};
use crate::retry::{
    await_device, fail, give_up, go_back, node_gone, not_verified, retry, unreachable,
};
use crate::run::{Flow, Run};
use crate::standing::outdated;
use crate::{
    Action, Baseline, End, Evidence, FinalReason, Goal, Grade, LOOK_EVERY, MethodIndex, NodeView,
    Notice, OpId, Operation, ParkReason, Phase, PlugState, Proof, Rule, Span, Time,
};

/// Reads every feed again, then looks whether the node gave a sign of life meanwhile.
pub(crate) fn verifying_off(run: &mut Run<'_>) -> Flow {
    if !run.takes_off() {
        // A reset is no proof. A new boot id settles it, or the wait for well ends.
        run.rule(Rule::A10);
        return Flow::Go(Phase::AwaitingHealthy);
    }
    let plan = run.plan;
    // The outlets are read first.
    let is_read = |one: &MethodIndex| {
        run.record.is_to_verify(plan, *one) && !fell_silent(plan, &run.record, *one)
    };
    let methods: Vec<MethodIndex> = plan.power_methods().filter(is_read).collect();
    if let Some(flow) = await_outlets(run, &methods) {
        return flow;
    }
    let Some(baseline_at) = baseline(run) else { return Flow::Stay };
    let mut reads = Vec::new();
    let mut off = Vec::new();
    for method in methods {
        match confirm(run, method, baseline_at) {
            Confirmed::By(read) => {
                reads.extend(read);
                off.push(method);
            }
            Confirmed::NotYet(_) if !off.is_empty() && is_seeded(Bug::OneFeedIsAll) => {}
            Confirmed::NotYet(flow) => return flow,
        }
    }
    let is_off = |method| off.contains(&method) || !off.is_empty() && is_seeded(Bug::OneFeedIsAll);
    if run.plan.machine_is_off(is_off) {
        return prove(run, reads, &off);
    }
    let reason = not_verified(run);
    fail(run, reason)
}

/// P8: outlets that may be another machine's are read as off before the baseline. A neighbour that was heard while a slow one
/// was still on may hang on it.
fn await_outlets(run: &mut Run<'_>, methods: &[MethodIndex]) -> Option<Flow> {
    if run.record.baseline.is_some() || is_seeded(Bug::LateOutletBelieved) {
        return None;
    }
    let first = run.record.after_power_effects(run.plan).max(run.record.phase_first);
    for outlet in methods.iter().copied().filter(|one| any_labelled(run.plan, &[*one])) {
        let read = run.record.last_in_phase(outlet, Action::Status).filter(|one| one.id >= first);
        let Some(read) = read.cloned() else { return Some(run.call(outlet, Action::Status)) };
        if !read.is_read_off() {
            return Some(if unreachable(read.end.as_ref()) {
                await_device(run, outlet, Phase::VerifyingOff)
            } else {
                not_off_yet(run, outlet, &read)
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
fn confirm(run: &mut Run<'_>, method: MethodIndex, baseline_at: Time) -> Confirmed {
    let witness = run.plan.method(method).and_then(|one| one.witness);
    let mut reads = Vec::new();
    for reader in [method].into_iter().chain(witness) {
        match confirm_by(run, reader, method, baseline_at) {
            Confirmed::By(read) => reads.extend(read),
            not_yet @ Confirmed::NotYet(_) => return not_yet,
        }
    }
    Confirmed::By(reads)
}

/// One feed, read by one method.
fn confirm_by(
    run: &mut Run<'_>,
    reader: MethodIndex,
    method: MethodIndex,
    baseline_at: Time,
) -> Confirmed {
    let first = run.record.after_power_effects(run.plan).max(run.record.phase_first);
    if let Some(yes) = run.record.last_effect(method).filter(|_| is_seeded(Bug::ReplyIsProof)) {
        return Confirmed::By(vec![yes.id]);
    }
    let read = run.record.last_in_phase(reader, Action::Status);
    let read = read.filter(|read| read.id >= first && read.intended_at >= baseline_at).cloned();
    let Some(read) = read else {
        if run.now < baseline_at {
            // Our clock was set back since: a read would count as older, and be made again and again.
            run.look_at(baseline_at);
            return Confirmed::NotYet(Flow::Stay);
        }
        return Confirmed::NotYet(run.call(reader, Action::Status));
    };
    match &read.end {
        Some(End::Succeeded { identity, .. }) if stop_if_other(run, reader, identity) => {
            Confirmed::NotYet(Flow::Go(Phase::Parked))
        }
        Some(End::Succeeded { state: PlugState::Terminated, .. }) => {
            run.rule(Rule::A15);
            run.record.goal = Goal::Close(FinalReason::Replaced);
            Confirmed::By(vec![read.id])
        }
        Some(End::Succeeded { state, .. }) if state.is_off() => Confirmed::By(vec![read.id]),
        end @ Some(End::Failed(_) | End::NotAttempted(_)) if unreachable(end.as_ref()) => {
            Confirmed::NotYet(await_device(run, reader, Phase::VerifyingOff))
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
        | None => Confirmed::NotYet(not_off_yet(run, method, &read)),
    }
}

fn stop_if_other(
    run: &mut Run<'_>,
    method: MethodIndex,
    identity: &[(alloc::string::String, alloc::string::String)],
) -> bool {
    stop_if_other_machine(run, method, identity).is_some()
}

/// Reads again for a while; then this try of the plug has failed.
fn not_off_yet(run: &mut Run<'_>, method: MethodIndex, read: &Operation) -> Flow {
    let names_none = read.method == method && any_labelled(run.plan, &[method]);
    // The outlet is still on: signs of life that were noted before now prove nothing about it.
    if guard(Bug::LateOutletBelieved, names_none) {
        run.record.baseline = None;
    }
    let asked_at = run.record.last_effect(method).and_then(|effect| effect.ended_at);
    // What may still come by itself is not asked for again.
    let late = run.plan.method(method).map_or(Span::ZERO, |method| method.late_effect);
    let patience = run.policy.off_timeout.max(late);
    let until = asked_at.unwrap_or(run.record.entered_at).after(patience);
    if run.now < until {
        let again_at = read.ended_at.unwrap_or(read.intended_at).after(LOOK_EVERY);
        if run.now >= again_at {
            return run.call(read.method, Action::Status);
        }
        run.look_at(again_at);
        return Flow::Stay;
    }
    run.rule(Rule::P1);
    run.record.baseline = None;
    // Only a plug that was read, and not as off, is asked again; else it is the read's turn.
    let resume = match read.state() {
        Some(_) => Phase::PoweringOff,
        None => Phase::VerifyingOff,
    };
    if let Some(flow) = retry(run, resume) {
        return flow;
    }
    give_up(run, method);
    Flow::Go(Phase::PoweringOff)
}

/// All feeds read off: proof, if the node gave no sign of life since the baseline.
fn prove(run: &mut Run<'_>, reads: Vec<OpId>, off: &[MethodIndex]) -> Flow {
    let Some(view) = run.look() else { return Flow::Stay };
    let Some(node) = run.node(view) else { return node_gone(run) };
    let Some(baseline) = run.record.baseline.clone() else { return Flow::Stay };
    if guard(Bug::SignsOfLifeIgnored, node.liveness != baseline.liveness) {
        return sign_of_life(run, &baseline, node);
    }
    if let Some(why) = view.gate.dispute() {
        return give_back_disputed(run, why);
    }
    match contradiction(run, off, baseline.at) {
        Contradiction::Nothing => {}
        Contradiction::Asking(flow) => return flow,
        Contradiction::NotOff(method) | Contradiction::NoState(method) => {
            return contradicted(run, off, method);
        }
    }
    if !run.committed() {
        // No off of ours: a plug that reads off against a node that is well tells old news, or is
        // not what feeds it.
        if let Err(flow) = heed_trigger(run, view, node) {
            run.rule(Rule::P2);
            return flow;
        }
    }
    if !is_seeded(Bug::WiringTrusted) {
        match wiring(run, view, node, off, baseline.at) {
            Wiring::Right => {}
            Wiring::Unsure => return Flow::Stay,
            Wiring::Wrong(neighbour) => {
                return go_back(run, Goal::Park(ParkReason::WrongPlug { neighbour }));
            }
        }
    }
    let settled = run.plan.power_methods();
    let settled = settled.map(|one| run.record.pending_until(run.plan, one, Action::On));
    if let Some(until) = settled.max().filter(|until| *until > earliest(run, &reads)) {
        // A dead leader's `on` may still arrive: off is not off before that, and what was read
        // before it is no evidence.
        if run.now < until {
            run.look_at(until);
            return Flow::Stay;
        }
        run.rule(Rule::A3);
        run.record.baseline = None;
        return Flow::Go(Phase::VerifyingOff);
    }
    if !run.policy.grades.contains(&Grade::PowerOffVerified) {
        run.rule(Rule::P1);
        return go_back(run, Goal::BringBack);
    }
    let outdated =
        outdated(run, Grade::PowerOffVerified, &reads).filter(|_| !is_seeded(Bug::ReplyIsProof));
    if let Some(feed) = outdated {
        run.rule(Rule::P1);
        return run.call(feed, Action::Status);
    }
    run.notice(Notice::Proven { grade: Grade::PowerOffVerified });
    run.record.retries = 0;
    let liveness =
        if is_seeded(Bug::SignsOfLifeIgnored) { node.liveness.clone() } else { baseline.liveness };
    run.record.proof = Some(Proof {
        grade: Grade::PowerOffVerified,
        at: run.now,
        by: Evidence::Reads(reads),
        liveness,
        voided_at: None,
    });
    Flow::Go(Phase::Releasing)
}

/// When the first of these reads began.
fn earliest(run: &Run<'_>, reads: &[OpId]) -> Time {
    let begun = run.record.operations.iter().filter(|one| reads.contains(&one.id));
    begun.map(|one| one.intended_at).min().unwrap_or_default()
}

/// A machine that is slow to go off may renew once more: read again. One that keeps giving
/// signs of life with the same boot is not the one that was cut.
fn sign_of_life(run: &mut Run<'_>, baseline: &Baseline, node: &NodeView) -> Flow {
    run.rule(Rule::P2);
    if node.liveness.boot_id != baseline.liveness.boot_id {
        return go_back(run, Goal::BringBack);
    }
    let last = run.record.last_power_effect(run.plan).and_then(|effect| effect.ended_at);
    let until = last.unwrap_or(run.record.entered_at).after(run.policy.off_timeout);
    run.record.baseline = None;
    if run.now < until {
        return run.look_in(LOOK_EVERY);
    }
    go_back(run, Goal::Park(ParkReason::AliveThoughOff))
}
