//! Which cuts stand, and which are on their way back, by what the journal says.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::bug::{Bug, is_seeded};
use crate::draft::{Draft, Flow};
use crate::{
    Action, CUT_READ_AGE_MAX, End, Grade, LOOK_EVERY, Method, MethodIndex, OpId, Operation,
    PROOF_READ_AGE_MAX, Plan, PlugState, ROUND_PAUSES_MAX, Record, Span, Time,
};

/// Methods whose cut may still stand.
pub(crate) fn still_cut(draft: &Draft<'_>) -> Vec<MethodIndex> {
    draft.record.still_cut(draft.plan)
}

impl Record {
    /// Methods whose cut may still stand.
    pub fn still_cut(&self, plan: &Plan) -> Vec<MethodIndex> {
        let stands = |index: &MethodIndex| {
            let Some(effect) = self.last_effect(*index) else { return false };
            let reads_on = self.state_since_effect(*index) == Some(PlugState::On);
            match effect.action {
                Action::Off => !(reads_on && self.never_stood(plan, *index)),
                Action::On | Action::Status | Action::Reset | Action::Monitor => !reads_on,
            }
        };
        plan.cut_methods().filter(stands).collect()
    }

    /// Whether no call of ours made this cut: no read ever said off, and the last one began when none of the calls could take
    /// effect any more.
    fn never_stood(&self, plan: &Plan, cut: MethodIndex) -> bool {
        let settled = if is_seeded(Bug::LateCutForgotten) {
            self.last_effect(cut).map(|off| off.lands_until(plan)).unwrap_or_default()
        } else {
            self.may_land_until(plan, cut)
        };
        let mut reads = self.operations.iter().filter(|one| one.method == cut);
        self.last_read(cut).is_some_and(|read| read.intended_at >= settled)
            && !reads.any(Operation::is_read_off)
    }
}

/// Whether a cut stood after we had failed to give it back.
pub(crate) fn is_kept_cut(draft: &Draft<'_>, cut: MethodIndex) -> bool {
    let on = draft.record.last_effect(cut).filter(|one| one.action == Action::On);
    on.is_some() && has_stood_since(draft, cut, on)
}

/// Storage whose cut may still stand, or stood after we failed to give it back, so that somebody else did.
pub(crate) fn storage_still_cut(draft: &Draft<'_>) -> Vec<MethodIndex> {
    let still_cut = still_cut(draft);
    let is_cut = |cut: &MethodIndex| still_cut.contains(cut) || is_kept_cut(draft, *cut);
    let is_storage = |cut: &MethodIndex| draft.plan.method(*cut).is_some_and(Method::cuts_storage);
    draft.plan.cut_methods().filter(is_storage).filter(is_cut).collect()
}

/// Whether a cut was read to stand; with a call that gave it back, once that shows in its reads.
pub(crate) fn has_stood_since(
    draft: &Draft<'_>,
    cut: MethodIndex,
    given_back: Option<&Operation>,
) -> bool {
    let shows = |read: &Operation| {
        given_back.is_none_or(|on| read.id > on.id && read.intended_at >= shows_from(draft, on))
    };
    let mut reads = draft.record.operations.iter().filter(|one| one.method == cut);
    reads.any(|read| read.is_read_off() && shows(read))
}

/// From when on the reads of a cut show what came of giving it back.
pub(crate) fn shows_from(draft: &Draft<'_>, on: &Operation) -> Time {
    let late = draft.plan.method(on.method).map_or(Span::ZERO, |method| method.late_effect);
    let until = on.ended_at.unwrap_or(on.intended_at).after(draft.policy.on_timeout.max(late));
    until.max(draft.record.pending_until(draft.plan, on.method, Action::On))
}

/// Whether our last call that may have acted on this cut was to give it back, and shows or may still show. A cut that reads off
/// afterwards stands as before.
pub(crate) fn is_coming_back(draft: &Draft<'_>, cut: MethodIndex) -> bool {
    let Some(on) = draft.record.last_effect(cut).filter(|one| one.action == Action::On) else {
        return false;
    };
    let reads_on = draft.record.state_since_effect(cut) == Some(PlugState::On);
    draft.now < shows_from(draft, on) || reads_on && !is_kept_cut(draft, cut)
}

/// Whether our last call that may have acted on this cut was to give it back.
pub(crate) fn is_asked_back(draft: &Draft<'_>, cut: MethodIndex) -> bool {
    draft.record.last_effect(cut).is_some_and(|effect| effect.action == Action::On)
}

/// Whether each of these cuts is on its way back already, by a call of ours that acted or may still act.
pub(crate) fn goes_back(draft: &Draft<'_>, cuts: &[MethodIndex]) -> bool {
    cuts.iter().all(|cut| is_coming_back(draft, *cut))
}

/// Whether one of the cuts is on its way back.
pub(crate) fn is_on_its_way_back(draft: &Draft<'_>) -> bool {
    still_cut(draft).into_iter().any(|cut| is_coming_back(draft, cut))
}

/// Reads what is on its way back until that shows. It is not asked for once more: what stood behind it may have gone meanwhile.
pub(crate) fn see_it_come_back(draft: &mut Draft<'_>, cuts: &[MethodIndex]) -> Flow {
    let due_at = |cut: &MethodIndex| {
        let read = draft.record.last_ended(*cut, Action::Status);
        read.and_then(|one| one.ended_at).unwrap_or_default().after(LOOK_EVERY)
    };
    let next = cuts.iter().map(|cut| (due_at(cut), *cut)).min();
    match next {
        Some((due_at, cut)) if draft.now >= due_at => draft.call(cut, Action::Status),
        Some((due_at, _)) => {
            draft.look_at(due_at);
            Flow::Stay
        }
        None => Flow::Stay,
    }
}

/// The last attempt at a cut: an off, or a call that failed.
pub(crate) fn last_attempt(record: &Record, cut: MethodIndex) -> Option<&Operation> {
    let is_try = |one: &&Operation| {
        let has_failed = !matches!(one.end, None | Some(End::Succeeded { .. }));
        one.method == cut && (one.action == Action::Off || has_failed)
    };
    record.operations.iter().rfind(is_try)
}

/// Whether a cut was read to stand after it was asked for.
pub(crate) fn stands_after(record: &Record, tried: &Operation) -> bool {
    let mut later =
        record.operations.iter().filter(|one| one.method == tried.method && one.id > tried.id);
    later.any(Operation::is_read_off)
}

/// Whether a cut was read in the present phase.
pub(crate) fn is_read_here(record: &Record, cut: MethodIndex) -> bool {
    record.last_in_phase(cut, Action::Status).is_some_and(|read| read.state().is_some())
}

/// Read as cut, by a call after the one that cut it.
pub(crate) fn is_cut(record: &Record, index: MethodIndex) -> bool {
    let cut = record.last_effect(index).is_some_and(|effect| effect.action == Action::Off);
    cut && record.state_since_effect(index) == Some(PlugState::Off)
}

/// A feed whose last read is too old for what all of these reads are to prove: one may be slow to go off, and
/// another come on meanwhile.
pub(crate) fn outdated(draft: &Draft<'_>, grade: Grade, reads: &[OpId]) -> Option<MethodIndex> {
    let read = draft.record.operations.iter().filter(|one| reads.contains(&one.id));
    let feeds: BTreeSet<MethodIndex> = read.map(|one| one.method).collect();
    let in_round = is_round(draft, &feeds);
    feeds.into_iter().find(|feed| {
        let last = draft.record.last_ended(*feed, Action::Status);
        let is_young = |one: &Operation| is_young(one, grade, draft.now);
        !in_round && !last.is_some_and(is_young)
    })
}

/// Whether a read that was in no round is young enough for the next batch. A machine that is off has to
/// boot before it writes; one that is cut writes as soon as somebody gives its storage back. However long a device
/// took to answer, it is as it said a moment ago: else one that takes longer than a read counts would never be believed.
pub(crate) fn is_young(read: &Operation, grade: Grade, now: Time) -> bool {
    let ended_within = |age| read.ended_at.is_some_and(|at| at.is_within(age, now));
    if grade == Grade::StorageFenced {
        return ended_within(CUT_READ_AGE_MAX);
    }
    let just_ended = !is_seeded(Bug::SlowReadIsOld) && ended_within(ROUND_PAUSES_MAX);
    just_ended || read.intended_at.is_within(PROOF_READ_AGE_MAX, now)
}

/// Whether the last reads of these feeds were made one after the other until just now. Feeds that are
/// slow to read are read before each batch like any others, but when the last has answered, the first
/// one's answer is old; and each reads off until somebody switches it on, which is a sign of life too.
pub(crate) fn is_round(draft: &Draft<'_>, feeds: &BTreeSet<MethodIndex>) -> bool {
    let last = |feed: &MethodIndex| draft.record.last_ended(*feed, Action::Status);
    let reads: Vec<_> = feeds.iter().filter_map(last).collect();
    let Some(begun) = reads.iter().map(|one| one.intended_at).min() else { return false };
    let took = |one: &&Operation| one.ended_at.map_or(0, |ended| ended.since(one.intended_at).0);
    let reading: u64 = reads.iter().map(took).sum();
    let is_whole = feeds.len() > 1 && reads.len() == feeds.len() && begun <= draft.now;
    is_whole && draft.now.since(begun).0.saturating_sub(reading) <= ROUND_PAUSES_MAX.0
}
