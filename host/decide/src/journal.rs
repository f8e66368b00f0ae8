//! What the journal says about each plug: the only memory of what was sent to a device.
//!
//! Every answer here is drawn from operations in their order; nothing is kept twice. An end
//! that nobody knows counts as whatever is worse.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use crate::bug::{Bug, guard, is_seeded};
use crate::retry::unreachable;
use crate::{
    Action, End, FailureKind, MethodIndex, OpId, Operation, Plan, PlugState, Proof, Record, Span,
    Time,
};

/// Reads kept per plug, beyond those that a proof names and the last one that says that a cut stands.
const READS_KEPT: usize = 2;
/// Calls of a kind kept per plug that may have changed it, beyond the first. More than any number of tries that ends.
const EFFECTS_KEPT: usize = 32;

impl Record {
    /// The operation that nobody has heard the end of.
    pub fn in_flight(&self) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.end.is_none())
    }

    /// Writes an intent down.
    pub(crate) fn intend(&mut self, method: MethodIndex, action: Action, now: Time) -> OpId {
        let id = self.next_operation;
        self.next_operation = OpId(id.0.saturating_add(1));
        let state_before = self.last_read(method).and_then(Operation::state);
        // Newer reads without a state may have pushed the last real one out of the journal.
        let state_before =
            state_before.or_else(|| self.last_call(method).map(|last| last.state_before));
        self.operations.push(Operation {
            id,
            method,
            action,
            attempt: self.attempt,
            epoch: self.epoch,
            process: String::from(self.process.as_str()),
            intended_at: now,
            state_before: state_before.unwrap_or(PlugState::Unknown),
            end: None,
            ended_at: None,
        });
        id
    }

    /// Writes an end down; false if there is no such open operation.
    pub(crate) fn close(&mut self, plan: &Plan, id: OpId, end: End, now: Time) -> bool {
        let open = self.operations.iter_mut().find(|one| one.id == id && one.end.is_none());
        let Some(operation) = open else { return false };
        operation.end = Some(end);
        operation.ended_at = Some(now);
        self.forget_superseded(plan);
        true
    }

    /// Drops old reads, old calls that never reached a device, and of what was asked again and again
    /// all but the first and the newest, so that an incident that waits for a day does not outgrow its
    /// object. Of a cut, the last read that says off stays.
    fn forget_superseded(&mut self, plan: &Plan) {
        let proof = self.proof.as_ref().map(|proof| proof.by.clone());
        let mut oldest: BTreeMap<(MethodIndex, Action), OpId> = BTreeMap::new();
        for one in self.operations.iter().filter(|one| one.may_have_acted()) {
            oldest.entry((one.method, one.action)).or_insert(one.id);
        }
        let newest_first: alloc::vec::Vec<Operation> = self.operations.drain(..).rev().collect();
        let mut kept: alloc::vec::Vec<Operation> = alloc::vec::Vec::new();
        for operation in newest_first {
            let same = kept
                .iter()
                .filter(|one| one.method == operation.method && one.action == operation.action)
                .count();
            let named = proof.as_ref().is_some_and(|by| by.names(operation.id));
            let is_oldest =
                oldest.get(&(operation.method, operation.action)) == Some(&operation.id);
            let most = if operation.may_have_acted() { EFFECTS_KEPT } else { READS_KEPT };
            // Without this read a later "on" would not show that somebody undid the cut.
            let is_last_off = operation.is_read_off()
                && plan.cut_methods().any(|cut| cut == operation.method)
                && !kept.iter().any(|one| one.method == operation.method && one.is_read_off());
            let is_kept = named || is_oldest || guard(Bug::StoodForgotten, is_last_off);
            if operation.end.is_none() || is_kept || same < most {
                kept.push(operation);
            }
        }
        kept.reverse();
        self.operations = kept;
    }

    /// The last call that may have changed the plug.
    pub(crate) fn last_effect(&self, method: MethodIndex) -> Option<&Operation> {
        self.operations.iter().rev().find(|one| one.method == method && one.may_have_acted())
    }

    /// The last read of the plug that told anything.
    pub(crate) fn last_read(&self, method: MethodIndex) -> Option<&Operation> {
        self.operations.iter().rev().find(|one| {
            one.method == method && one.action == Action::Status && one.state().is_some()
        })
    }

    /// The last ended call of any kind on the plug in the present phase.
    pub(crate) fn last_in_phase(&self, method: MethodIndex, action: Action) -> Option<&Operation> {
        self.operations.iter().rev().find(|one| {
            one.method == method
                && one.action == action
                && one.id >= self.phase_first
                && one.end.is_some()
        })
    }

    /// The last call of this kind on the plug that has ended, in any phase.
    pub(crate) fn last_ended(&self, method: MethodIndex, action: Action) -> Option<&Operation> {
        self.operations
            .iter()
            .rev()
            .find(|one| one.method == method && one.action == action && one.end.is_some())
    }

    /// The last call of any kind on the plug that has ended, in any phase.
    pub(crate) fn last_call(&self, method: MethodIndex) -> Option<&Operation> {
        self.calls_ended(method).next()
    }

    /// All calls on the plug that have ended, the last one first.
    pub(crate) fn calls_ended(&self, method: MethodIndex) -> impl Iterator<Item = &Operation> {
        self.operations.iter().rev().filter(move |one| one.method == method && one.end.is_some())
    }

    /// Whether the last call to this plug's device did not reach it.
    pub(crate) fn was_unreached(&self, method: MethodIndex) -> bool {
        self.last_call(method).is_some_and(|last| unreachable(last.end.as_ref()))
    }

    /// The methods whose reads a proof rests on.
    pub(crate) fn read_by(&self, proof: &Proof) -> BTreeSet<MethodIndex> {
        let reads = self.operations.iter().filter(|one| proof.by.names(one.id));
        reads.map(|one| one.method).collect()
    }

    /// What the plug reads since its last effect, by a call that began later.
    pub(crate) fn state_since_effect(&self, method: MethodIndex) -> Option<PlugState> {
        let read = self.last_read(method)?;
        let later = self.last_effect(method).is_none_or(|effect| effect.id < read.id);
        if later { read.state() } else { None }
    }

    /// Whether the device was reached by a read after this operation; one that refuses to be read
    /// can still be switched on.
    pub(crate) fn is_read_since(&self, method: MethodIndex, op: OpId) -> bool {
        self.operations.iter().any(|one| {
            one.method == method
                && one.action == Action::Status
                && one.id > op
                && one.end.is_some()
                && !unreachable(one.end.as_ref())
        })
    }

    /// Whether an off may have been sent to any of the plan's power plugs, in any pass.
    pub fn sent_off(&self, plan: &Plan) -> bool {
        self.operations.iter().any(|one| {
            let power = plan.method(one.method).is_some_and(crate::Method::switches_power);
            power && matches!(one.action, Action::Off | Action::Reset) && one.may_have_acted()
        })
    }

    /// Whether anything may have been sent off, or released: what a cleared trigger, or a person, no longer undoes.
    pub fn is_committed(&self, plan: &Plan) -> bool {
        self.sent_off(plan) || self.first_released_at.or(self.partly_released_at).is_some()
    }

    /// Power plugs that we may have left off.
    pub fn powered_off_by_us(&self, plan: &Plan, now: Time) -> alloc::vec::Vec<MethodIndex> {
        plan.power_methods().filter(|method| self.needs_on(plan, *method, now)).collect()
    }

    /// Power plugs that we may have left off, or that a late off of ours may still switch off.
    pub fn off_or_going_off(&self, plan: &Plan, now: Time) -> alloc::vec::Vec<MethodIndex> {
        let mut plugs = self.powered_off_by_us(plan, now);
        if !is_seeded(Bug::LateOffUntold) {
            plugs.extend(self.may_yet_go_off(plan, now));
        }
        plugs
    }

    /// Power plugs that read on and that a late off of ours may still switch off: the off that was read meanwhile may have been
    /// somebody else's. Feeds of a machine with several are left out: each is read again once no off can come late.
    fn may_yet_go_off(&self, plan: &Plan, now: Time) -> impl Iterator<Item = MethodIndex> {
        let may_come = move |method: &MethodIndex| {
            let mut offs = self.operations.iter().filter(|one| one.method == *method && one.cuts());
            offs.any(|off| off.lands_until(plan) > now)
        };
        let is_on = move |method: &MethodIndex| {
            self.state_since_effect(*method) == Some(PlugState::On)
                && !self.needs_on(plan, *method, now)
        };
        let is_all = move |method: &MethodIndex| !plan.is_part(*method);
        plan.power_methods().filter(is_all).filter(is_on).filter(may_come)
    }

    /// Whether the plug was, or may have been, given its off by us, and was not read on since.
    pub(crate) fn needs_on(&self, plan: &Plan, method: MethodIndex, now: Time) -> bool {
        let Some(effect) = self.last_effect(method) else { return false };
        if effect.end == Some(End::Indeterminate) && is_seeded(Bug::UnheardOffForgotten) {
            return false;
        }
        let state = self.state_since_effect(method);
        if state == Some(PlugState::Terminated) {
            return false;
        }
        match effect.action {
            Action::On => state != Some(PlugState::On),
            Action::Off => {
                let settled = self.may_land_until(plan, method);
                let read_at = self.last_read(method).map(|read| read.intended_at);
                let read_settled = read_at.is_some_and(|at| at >= settled && settled <= now);
                !(state == Some(PlugState::On) && read_settled)
            }
            Action::Status | Action::Reset | Action::Monitor => false,
        }
    }

    /// Until when a call on this plug may still have its effect, of any epoch and process.
    pub(crate) fn may_land_until(&self, plan: &Plan, method: MethodIndex) -> Time {
        let ends = self.operations.iter().filter(|one| one.method == method && one.is_effect());
        ends.map(|one| one.lands_until(plan)).max().unwrap_or_default()
    }

    /// Until when an off (or on) that was not seen to land may still do so.
    pub(crate) fn pending_until(&self, plan: &Plan, method: MethodIndex, action: Action) -> Time {
        let wanted = match action {
            Action::On => PlugState::On,
            Action::Off | Action::Reset | Action::Status | Action::Monitor => PlugState::Off,
        };
        // A read shows what the last call before it did; an earlier one may still be on its way.
        let is_another = |one: &Operation| one.action == action && one.may_have_acted();
        let landed = |effect: &Operation| {
            let mut later =
                self.operations.iter().filter(|one| one.method == method && one.id > effect.id);
            let shown = later.find(|one| {
                is_another(one) || one.action == Action::Status && one.state() == Some(wanted)
            });
            effect.end != Some(End::Indeterminate)
                && shown.is_some_and(|one| one.action == Action::Status)
        };
        let sent = self.operations.iter().filter(|one| one.method == method);
        let pending = sent.filter(|one| one.action == action && !landed(one));
        pending.map(|one| one.lands_until(plan)).max().unwrap_or_default()
    }

    /// When the journal last changed; a view taken before that says nothing about now.
    pub(crate) fn journal_changed_at(&self) -> Time {
        self.operations.iter().filter_map(|one| one.ended_at).max().unwrap_or_default()
    }
}

impl Operation {
    /// What was read, where something was.
    pub fn state(&self) -> Option<PlugState> {
        match &self.end {
            Some(End::Succeeded { state, .. }) => Some(*state),
            Some(End::Failed(_) | End::NotAttempted(_) | End::Indeterminate) | None => None,
        }
    }

    /// Whether it is a read that says off.
    pub(crate) fn is_read_off(&self) -> bool {
        self.action == Action::Status && self.state().is_some_and(PlugState::is_off)
    }

    /// Whether it is meant to change something.
    pub const fn is_effect(&self) -> bool {
        match self.action {
            Action::Off | Action::On | Action::Reset => true,
            Action::Status | Action::Monitor => false,
        }
    }

    /// Whether it is meant to switch off or to reset.
    pub const fn cuts(&self) -> bool {
        matches!(self.action, Action::Off | Action::Reset)
    }

    /// Until when it may still have an effect; what nobody heard the end of counts the caller's
    /// own time too, for the call itself may still be under way.
    pub fn lands_until(&self, plan: &Plan) -> Time {
        let late = plan.method(self.method).map_or(Span::ZERO, |method| method.late_effect);
        let heard_at = self.ended_at.unwrap_or(self.intended_at);
        match &self.end {
            Some(End::Succeeded { .. } | End::Failed(_)) => heard_at.after(late),
            Some(End::Indeterminate) | None => heard_at.after(late.max(crate::FOREIGN_CALL_MAX)),
            Some(End::NotAttempted(_)) => Time::default(),
        }
    }

    /// Whether it may have changed something.
    pub fn may_have_acted(&self) -> bool {
        self.is_effect() && !matches!(self.end, Some(End::NotAttempted(_)))
    }

    /// Whether we held it back ourselves.
    pub(crate) fn is_held_back(&self) -> bool {
        self.end.as_ref().is_some_and(End::is_held_back)
    }
}

impl End {
    /// Whether we held a call back ourselves: nothing was tried, so it is decided on anew.
    pub fn is_held_back(&self) -> bool {
        matches!(self, Self::NotAttempted(failure) if failure.kind == FailureKind::Cancelled)
    }
}
