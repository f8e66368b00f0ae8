//! Whether a machine reads off on the way back, and nothing speaks against that.

use alloc::vec::Vec;

use super::contradiction::{Contradiction, contradiction};
use crate::bug::{Bug, guard, is_seeded};
use crate::draft::{Draft, Flow};
use crate::phases::identity_check::is_other_machine;
use crate::phases::wiring::{Wiring, any_labelled, baseline, silence, wiring};
use crate::retry::{await_device, unreachable};
use crate::{
    Action, Grade, LOOK_EVERY, MethodIndex, NodeView, Operation, Phase, PlugState, Rule, Span,
    Time, cut,
};

/// How long feeds are read that say nothing; by then the `on` will not reach them either.
const FEEDS_PATIENCE: Span = Span::seconds(30);

/// Whether all feeds of the machine are off.
pub(super) enum Feeds {
    Off,
    NotOff,
    /// They are read, or something is waited for, first.
    Reading(Flow),
}

/// A5: are all feeds off, by reads of this very phase, and nothing that speaks against them? One that came to nothing is made
/// again for a while: a machine that is switched on behind a cut comes back to nobody.
pub(super) fn feeds_read_off(draft: &mut Draft<'_>) -> Feeds {
    if !may_be_off(draft) {
        return Feeds::NotOff;
    }
    if let Some(outlet) = unread_outlet(draft) {
        return Feeds::Reading(draft.call(outlet, Action::Status));
    }
    let Some(since) = baseline(draft) else { return Feeds::Reading(Flow::Stay) };
    let mut feeds: Vec<MethodIndex> = draft.plan.power_methods().collect();
    // What was read off says it again, and a BMC without power need not be asked then.
    feeds.sort_by_key(|feed| !draft.record.reads_off(*feed));
    let (mut off, mut silent) = (Vec::new(), None);
    for feed in feeds {
        if draft.plan.machine_is_off(|feed| off.contains(&feed)) {
            break;
        }
        let witness = draft.plan.method(feed).and_then(|one| one.witness);
        // With a proof the witness has had its say, and may be dead by now.
        let witness =
            witness.filter(|_| !is_proven_off(draft) && !is_seeded(Bug::RefutedOffBelieved));
        let mut readers = [feed].into_iter().chain(witness);
        match readers.find_map(|reader| not_off(draft, reader, since)) {
            None => off.push(feed),
            Some(NotOff::Denied) => {}
            Some(NotOff::Reading(flow)) => return Feeds::Reading(flow),
            Some(NotOff::Silent(reader)) => {
                // The others may show that it has no power to answer with.
                silent = silent.or(Some(reader));
            }
        }
    }
    if !draft.plan.machine_is_off(|feed| off.contains(&feed)) {
        return silent.map_or(Feeds::NotOff, |feed| {
            Feeds::Reading(await_device(draft, feed, Phase::Restoring))
        });
    }
    match contradiction(draft, &off, draft.record.entered_at) {
        Contradiction::Nothing => doubt(draft, &off),
        Contradiction::Asking(flow) => Feeds::Reading(flow),
        Contradiction::NotOff(_) | Contradiction::NoState(_) => Feeds::NotOff,
    }
}

/// P8: an outlet that names no machine, and that was not read yet in this phase. It has to read off before the signs of life
/// are noted: see [`not_off`].
fn unread_outlet(draft: &Draft<'_>) -> Option<MethodIndex> {
    let is_unread = |feed: &MethodIndex| {
        any_labelled(draft.plan, &[*feed])
            && draft.record.last_in_phase(*feed, Action::Status).is_none()
    };
    let is_early = draft.record.baseline.is_none();
    draft.plan.power_methods().filter(|_| is_early).find(is_unread)
}

/// Whether reads may show at all that the machine is off: we switched it off, and nothing has refuted that.
fn may_be_off(draft: &Draft<'_>) -> bool {
    if guard(Bug::RefutedOffBelieved, cut::refuted(draft).is_some()) {
        return false;
    }
    match draft.record.proof.as_ref() {
        Some(proof) if proof.voided_at.is_some() => false,
        Some(proof) => match proof.grade {
            Grade::PowerOffVerified => true,
            // Its device may be dead, and is not waited for: the word stands.
            Grade::OperatorConfirmed | Grade::WatchdogDeadline => false,
            Grade::StorageFenced
            | Grade::JobSucceeded
            | Grade::KdumpSeen
            | Grade::Partition
            | Grade::NewBootId => draft.sent_off(),
        },
        None => draft.sent_off(),
    }
}

/// Why a reader does not show its feed off.
enum NotOff {
    /// It reads on, names another machine, or has told nothing for too long.
    Denied,
    /// It is read first.
    Reading(Flow),
    /// It was not reached.
    Silent(MethodIndex),
}

/// One reader of a feed, by a read of this phase that began after the signs of life were noted; `None` if it reads off. One that
/// names no machine has to read off before they are noted, too: a neighbour that was heard while it was still on may hang on it.
fn not_off(draft: &mut Draft<'_>, reader: MethodIndex, since: Time) -> Option<NotOff> {
    let names_none = any_labelled(draft.plan, &[reader]) && !is_seeded(Bug::LateOutletBelieved);
    let counts = |read: &&Operation| read.intended_at >= since || names_none && !read.is_read_off();
    let read = draft.record.last_in_phase(reader, Action::Status).filter(counts).cloned();
    let Some(read) = read else {
        if draft.now < since {
            // Our clock was set back since: a read would count as older, and be made again and again.
            draft.look_at(since);
            return Some(NotOff::Reading(Flow::Stay));
        }
        return Some(NotOff::Reading(draft.call(reader, Action::Status)));
    };
    match read.state() {
        Some(_) if is_other_machine(draft, &read) => Some(NotOff::Denied),
        Some(PlugState::Off | PlugState::Terminated) => None,
        Some(PlugState::On) => Some(NotOff::Denied),
        None if unreachable(read.end.as_ref()) => Some(NotOff::Silent(reader)),
        Some(PlugState::Transitioning | PlugState::Unknown) | None => {
            let again_at = read.ended_at.unwrap_or(read.intended_at).after(LOOK_EVERY);
            // By time: the journal keeps the last reads only. A read that was begun after it, as who
            // leads may have changed meanwhile.
            if read.intended_at >= draft.record.entered_at.after(FEEDS_PATIENCE) {
                return Some(NotOff::Denied);
            }
            if names_none {
                draft.record.baseline = None;
            }
            if draft.now >= again_at {
                return Some(NotOff::Reading(draft.call(reader, Action::Status)));
            }
            draft.look_at(again_at);
            Some(NotOff::Reading(Flow::Stay))
        }
    }
}

/// How long other nodes are waited for that have to be heard. One that is silent is told of after a minute.
const NEIGHBOURS_PATIENCE: Span = Span::minutes(5);

fn is_proven_off(draft: &Draft<'_>) -> bool {
    draft.record.proof.as_ref().is_some_and(|proof| proof.grade == Grade::PowerOffVerified)
}

/// P1, P2, P8: a machine that was proven off is off until it is heard again. What was not proven is believed only once its node
/// was silent for two Lease intervals, and every other node was heard, where one of these feeds knows no machine. Without its
/// Node such a feed is not believed.
fn doubt(draft: &mut Draft<'_>, off: &[MethodIndex]) -> Feeds {
    if is_seeded(Bug::RefutedOffBelieved) {
        return Feeds::Off;
    }
    let Some(view) = draft.look() else { return Feeds::Reading(Flow::Stay) };
    draft.rule(Rule::P8);
    let Some(node) = draft.node(view) else {
        let is_alive = view.machine().is_some_and(|node| is_same_boot(draft, node));
        let is_known = is_proven_off(draft) || !any_labelled(draft.plan, off);
        return if is_known && !is_alive { Feeds::Off } else { Feeds::NotOff };
    };
    if let Some(proof) = draft.record.proof.as_ref().filter(|_| is_proven_off(draft)) {
        return if node.liveness == proof.liveness { Feeds::Off } else { Feeds::NotOff };
    }
    let Some(baseline) = draft.record.baseline.clone() else { return Feeds::Reading(Flow::Stay) };
    if node.liveness != baseline.liveness {
        // One that is slow to go off may renew its Lease once more.
        if draft.now >= draft.record.entered_at.after(draft.policy.off_timeout) {
            return Feeds::NotOff;
        }
        draft.record.baseline = None;
        return Feeds::Reading(draft.look_in(LOOK_EVERY));
    }
    match wiring(draft, view, node, off, baseline.at) {
        Wiring::Wrong(_) => Feeds::NotOff,
        Wiring::Unsure if draft.now >= draft.record.entered_at.after(NEIGHBOURS_PATIENCE) => {
            Feeds::NotOff
        }
        Wiring::Unsure => Feeds::Reading(Flow::Stay),
        Wiring::Right => match silence(draft, node, baseline.at) {
            Some(flow) => Feeds::Reading(flow),
            None => Feeds::Off,
        },
    }
}

/// Whether a machine goes on with the boot that was cut.
fn is_same_boot(draft: &Draft<'_>, node: &NodeView) -> bool {
    !node.liveness.boot_id.is_empty() && !draft.is_new_boot(&node.liveness)
}
