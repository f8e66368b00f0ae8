//! The exhaustive walk: every order of events in a small world, with the invariants checked at
//! each step.
//!
//! The world is one node on one or two plugs, with a device that may be dead, refuse, say yes
//! and do nothing, act without an answer or act late; a controller that may die anywhere; a
//! gate that opens and closes; a node that comes back by itself, is switched on by hand or is
//! deleted; a person who aborts, retries and confirms. It is real code on one side only: the
//! automaton. Two worlds that differ only in what time it is are one.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use std::collections::HashMap;
use std::hash::DefaultHasher;
use std::println;

use expect_test::expect_file;

use super::fixtures::{UUID, bmc_plan, lost_view, opened, power, stage};
use crate::*;

/// A machine, its device, its Node object and the controller, with what an observer knows.
#[derive(Clone, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a small world, each by itself")]
struct World {
    now: u64,
    record: Record,
    todo: Vec<Effect>,
    next_look: Option<Time>,
    node: bool,
    sick: bool,
    boot: u8,
    booting: bool,
    kubelet: bool,
    life: u64,
    quarantined: bool,
    out_of_service: bool,
    pods: bool,
    attachment: bool,
    stuck: bool,
    plugs: Vec<bool>,
    dead: bool,
    lying: bool,
    late_off: Option<u64>,
    late_call: Option<Action>,
    other_machine: bool,
    gate_open: bool,
    slot_free: bool,
    faults: u8,
    person: u8,
    ghost: Ghost,
}

/// What the observer outside knows.
#[derive(Clone, Hash, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a small world, each by itself")]
struct Ghost {
    /// A read that began after the last off found the machine really off.
    confirmed: bool,
    /// A person saw it off.
    confirmed_by_person: bool,
    /// A sign of life was seen after that.
    life_seen: bool,
    /// An effect was sent and no read came after it, by plug.
    unread: Vec<Option<(Action, Heard)>>,
    /// How often we took the power away.
    cycles: u8,
    /// Something was released.
    released: bool,
    /// The power is away because of us.
    off_by_us: bool,
    /// Somebody switched it on by hand.
    by_hand: bool,
    /// The boot that a confirming read found ended.
    released_boot: u8,
}

/// Whether the answer to a call was heard.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Heard {
    Yes,
    No,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// The first thing to do is done; a call has this outcome.
    Act(Outcome),
    /// Time passes until the run wants to look again.
    Wait,
    /// The process dies; of a call under way this much had happened.
    Crash(Outcome),
    Boot,
    KubeletBack,
    SwitchOnByHand,
    DeleteNode,
    GateTurns,
    LateOffLands,
    DeviceTurns,
    Abort,
    AbortLeaveOff,
    Retry,
    ConfirmOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Good,
    NoAnswer,
    Refused,
    Late,
    NotSent,
}

struct Setting {
    plan: Plan,
    policy: RunPolicy,
}

#[derive(Default)]
struct Seen {
    rules: BTreeSet<Rule>,
    transitions: BTreeMap<(String, String), u64>,
    phases: BTreeSet<String>,
}

fn phase_name(phase: Phase) -> String {
    format!("{phase:?}")
}

impl World {
    fn new(stage: &Setting, faults: u8, person: u8) -> Self {
        let now = 1_000_000;
        let record = opened(&stage.plan, &stage.policy, &lost_view(Time(now)), Time(now));
        Self {
            now,
            record,
            todo: vec![Effect::Look],
            next_look: None,
            node: true,
            sick: true,
            boot: 1,
            booting: false,
            kubelet: false,
            life: 1,
            quarantined: false,
            out_of_service: false,
            pods: true,
            attachment: true,
            stuck: false,
            plugs: vec![true; stage.plan.methods.len()],
            dead: false,
            lying: false,
            late_off: None,
            late_call: None,
            other_machine: false,
            gate_open: true,
            slot_free: true,
            faults,
            person,
            ghost: Ghost { unread: vec![None; stage.plan.methods.len()], ..Ghost::default() },
        }
    }

    fn on(&self) -> bool {
        self.plugs.iter().any(|plug| *plug)
    }

    fn view(&self) -> View {
        let mut view = lost_view(Time(self.now));
        view.trigger = if self.sick {
            Crossing::Crossed { since: Time(0) }
        } else {
            Crossing::Clear { ready: true, next_look: None }
        };
        if !self.gate_open {
            view.gate.refusals.push(Refusal::Paused { reason: "storm".to_string() });
        }
        view.node = if self.node { view.node } else { None };
        if let Some(node) = view.node.as_mut() {
            node.signs = super::fixtures::signs(&format!("boot-{}", self.boot), self.life);
            node.quarantined = self.quarantined;
            node.out_of_service = self.out_of_service;
            node.out_of_service_by_us = self.out_of_service;
        }
        if !self.pods {
            view.pods.retain(|pod| pod.exempt.is_some());
        }
        if !self.attachment {
            view.attachments.clear();
        }
        view
    }

    fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        let call = match self.todo.first() {
            Some(Effect::Call(_)) => true,
            Some(_) => {
                moves.push(Move::Act(Outcome::Good));
                false
            }
            None => {
                if self.next_look.is_some() {
                    moves.push(Move::Wait);
                }
                false
            }
        };
        if call {
            moves.push(Move::Act(Outcome::Good));
        }
        if self.booting && self.on() {
            moves.push(Move::Boot);
        }
        if self.late_off.is_some() {
            moves.push(Move::LateOffLands);
        }
        if self.dead && self.faults == 0 {
            moves.push(Move::DeviceTurns);
        }
        if !self.gate_open && self.faults == 0 {
            moves.push(Move::GateTurns);
        }
        if self.faults > 0 {
            if call && !self.dead {
                moves.extend([Outcome::NoAnswer, Outcome::Refused, Outcome::Late].map(Move::Act));
                moves.extend([Outcome::Good, Outcome::Late, Outcome::NotSent].map(Move::Crash));
            } else if !self.todo.is_empty() {
                moves.push(Move::Crash(Outcome::NotSent));
            }
            moves.extend([Move::DeviceTurns, Move::GateTurns]);
            if self.node {
                moves.push(Move::DeleteNode);
            }
            if !self.kubelet && self.on() && !self.booting && self.sick {
                moves.push(Move::KubeletBack);
            }
            if !self.on() && !self.ghost.by_hand {
                moves.push(Move::SwitchOnByHand);
            }
        }
        if self.person > 0 {
            moves.extend([Move::Abort, Move::AbortLeaveOff, Move::Retry]);
            if !self.on() || self.record.phase == Phase::Parked {
                moves.push(Move::ConfirmOff);
            }
        }
        moves
    }

    fn play(&mut self, stage: &Setting, one: Move, seen: &mut Seen) -> Result<(), String> {
        match one {
            Move::Act(outcome) => return self.act(stage, outcome, seen),
            Move::Wait => {
                let at = self.next_look.take().map_or(self.now, |at| at.0);
                self.now = at.max(self.now);
                if self.kubelet && self.on() && !self.booting {
                    self.life += 1;
                }
                return self.look(stage, seen);
            }
            Move::Crash(outcome) => {
                self.faults -= 1;
                if let Some(Effect::Call(op)) = self.todo.first().cloned() {
                    match outcome {
                        Outcome::Good => drop(self.device(op, Outcome::NoAnswer)?),
                        Outcome::Late => {
                            let operation = self.operation(op)?;
                            self.late_call =
                                (operation.action == Action::Off).then_some(Action::Off);
                            self.late_off = self.late_call.map(|_| self.now + FOREIGN_CALL_MAX.0);
                            if operation.is_effect() {
                                self.mark_unread(&operation, Heard::No);
                            }
                        }
                        Outcome::NoAnswer | Outcome::Refused | Outcome::NotSent => {}
                    }
                }
                self.todo.clear();
                let epoch = self.record.epoch + 1;
                let event = Event::Adopted { epoch, process: format!("p{epoch}") };
                return self.apply(stage, event, seen, None);
            }
            Move::Boot => {
                self.booting = false;
                self.boot += 1;
                self.kubelet = true;
                self.sick = false;
                self.life += 1;
            }
            Move::KubeletBack => {
                self.faults -= 1;
                self.kubelet = true;
                self.sick = false;
                self.life += 1;
            }
            Move::SwitchOnByHand => {
                self.faults -= 1;
                self.plugs.iter_mut().for_each(|plug| *plug = true);
                self.ghost.by_hand = true;
                self.ghost.off_by_us = false;
                self.booting = true;
            }
            Move::DeleteNode => {
                self.faults -= 1;
                self.node = false;
                self.quarantined = false;
                self.out_of_service = false;
            }
            Move::GateTurns => {
                self.faults = self.faults.saturating_sub(u8::from(self.gate_open));
                self.gate_open = !self.gate_open;
            }
            Move::DeviceTurns => {
                self.faults = self.faults.saturating_sub(u8::from(!self.dead));
                self.dead = !self.dead;
            }
            Move::LateOffLands => {
                let due = self.late_off.take().unwrap_or(self.now);
                self.late_call = None;
                if self.now < due {
                    self.cut_all();
                }
            }
            Move::Abort => return self.command(stage, Command::Abort, seen),
            Move::AbortLeaveOff => return self.command(stage, Command::AbortLeaveOff, seen),
            Move::Retry => return self.command(stage, Command::Retry, seen),
            Move::ConfirmOff => {
                if self.on() {
                    self.plugs.iter_mut().for_each(|plug| *plug = false);
                    self.kubelet = false;
                    self.sick = true;
                    self.booting = false;
                }
                self.ghost.confirmed_by_person = true;
                self.ghost.life_seen = false;
                self.ghost.released_boot = self.boot;
                let boot_id = format!("boot-{}", self.boot);
                return self.command(
                    stage,
                    Command::ConfirmOff { by: "admin".to_string(), boot_id },
                    seen,
                );
            }
        }
        Ok(())
    }

    fn command(
        &mut self,
        stage: &Setting,
        command: Command,
        seen: &mut Seen,
    ) -> Result<(), String> {
        self.person -= 1;
        self.apply(stage, Event::Command(command), seen, None)
    }

    fn look(&mut self, stage: &Setting, seen: &mut Seen) -> Result<(), String> {
        let view = self.view();
        let fenced = self.record.proof.as_ref().map(|proof| proof.signs.clone());
        if let (Some(fenced), Some(node)) = (fenced, &view.node) {
            self.ghost.life_seen |= fenced != node.signs;
        }
        self.apply(stage, Event::Looked(&view), seen, Some(&view))
    }

    fn act(&mut self, stage: &Setting, outcome: Outcome, seen: &mut Seen) -> Result<(), String> {
        let effect = self.todo.remove(0);
        if outcome != Outcome::Good {
            self.faults -= 1;
        }
        match effect {
            Effect::Look => return self.look(stage, seen),
            Effect::TakeSlot => {
                return self.apply(stage, Event::Slot(SlotAnswer::Granted), seen, None);
            }
            Effect::Call(op) => {
                let end = self.device(op, outcome)?;
                return self.apply(stage, Event::Ended { op, end }, seen, None);
            }
            Effect::ReturnSlot | Effect::HandOver | Effect::Cordon | Effect::Uncordon => {}
            Effect::Quarantine => self.quarantined = self.node,
            Effect::Unquarantine => {
                self.check_unquarantine()?;
                self.quarantined = false;
            }
            Effect::OutOfService => {
                self.check_release()?;
                self.out_of_service = self.node;
            }
            Effect::LiftOutOfService => self.out_of_service = false,
            Effect::DeletePods(uids) => {
                self.check_release()?;
                if uids.iter().any(|uid| uid != "db-0") {
                    return Err(format!("S8: deletes {uids:?}"));
                }
                self.pods = self.stuck;
                self.attachment &= self.pods || !self.out_of_service;
            }
            // A kubelet that lives unmounts, and Kubernetes detaches what nobody uses.
            Effect::GracefulDelete(_) => {
                self.pods = false;
                self.attachment = false;
            }
            Effect::DeleteAttachments(_) => {
                self.check_release()?;
                self.attachment = false;
            }
        }
        Ok(())
    }

    fn check_release(&mut self) -> Result<(), String> {
        let proof = self.record.proof.as_ref().ok_or("S1: release without proof")?;
        if proof.voided_at.is_some() {
            return Err("S1: release behind a void proof".to_string());
        }
        if !(self.ghost.confirmed || self.ghost.confirmed_by_person) || self.ghost.life_seen {
            return Err("S1: release without a confirming read, or after a sign of life".into());
        }
        if self.on() && !self.ghost.by_hand {
            return Err("S1: release while the machine is on".to_string());
        }
        if !self.quarantined && self.node {
            return Err("S9: release without quarantine".to_string());
        }
        self.ghost.released = true;
        Ok(())
    }

    fn check_unquarantine(&self) -> Result<(), String> {
        let clean = !self.pods && !self.attachment;
        let fresh = self.boot > self.ghost.released_boot && !self.sick;
        if self.ghost.released && self.record.goal == Goal::BringBack && !(fresh && clean) {
            return Err("S9: quarantine lifted before a new boot is well and clean".to_string());
        }
        Ok(())
    }

    fn operation(&self, op: OpId) -> Result<Operation, String> {
        let found = self.record.operations.iter().find(|one| one.id == op && one.end.is_none());
        found.cloned().ok_or_else(|| format!("S5: {op:?} is called without an intent"))
    }

    fn mark_unread(&mut self, operation: &Operation, heard: Heard) {
        if let Some(unread) = self.ghost.unread.get_mut(operation.method) {
            *unread = Some((operation.action, heard));
        }
    }

    fn cut_all(&mut self) {
        if self.on() {
            self.ghost.cycles += 1;
        }
        self.plugs.iter_mut().for_each(|plug| *plug = false);
        self.ghost.off_by_us = true;
        self.kubelet = false;
        self.sick = true;
        self.booting = false;
    }

    /// What the device does with a call.
    fn device(&mut self, op: OpId, outcome: Outcome) -> Result<End, String> {
        let operation = self.operation(op)?;
        if operation.epoch > self.record.epoch {
            return Err("S4: an operation of a later epoch".to_string());
        }
        let unread = self.ghost.unread.get(operation.method).copied().flatten();
        let blind = |(action, heard)| action == operation.action || heard == Heard::No;
        if operation.is_effect() && unread.is_some_and(blind) {
            return Err(format!("S5: {:?} again before a read", operation.action));
        }
        let identity = if self.other_machine { "another" } else { UUID };
        let identity = vec![("system-uuid".to_string(), identity.to_string())];
        let failure = |kind| Failure { kind, detail: "world".to_string() };
        if self.dead {
            let failure = failure(FailureKind::Unreachable);
            return Ok(if operation.is_effect() {
                End::NotAttempted(failure)
            } else {
                End::Failed(failure)
            });
        }
        if operation.action == Action::Off && self.other_machine {
            return Err("S7: off sent to another machine".to_string());
        }
        if operation.is_effect() {
            let unknown = matches!(outcome, Outcome::NoAnswer | Outcome::Late);
            self.mark_unread(&operation, if unknown { Heard::No } else { Heard::Yes });
        }
        if outcome == Outcome::Refused {
            // An on may be asked again of a device that can be reached and cannot be read.
            if let Some(unread) = self.ghost.unread.get_mut(operation.method) {
                *unread = unread.filter(|(action, _)| {
                    operation.action != Action::Status || *action != Action::On
                });
            }
            return Ok(End::Failed(failure(FailureKind::Device)));
        }
        if outcome == Outcome::Late && operation.action == Action::Off {
            self.late_off = Some(self.now + FOREIGN_CALL_MAX.0);
            return Ok(End::Indeterminate);
        }
        let was_on = self.on();
        match operation.action {
            Action::Off if !self.lying => {
                if let Some(plug) = self.plugs.get_mut(operation.method) {
                    *plug = false;
                }
                if was_on && !self.on() {
                    self.cut_all();
                }
                self.ghost.confirmed = false;
            }
            Action::On => {
                if self.late_off.is_some_and(|due| self.now < due) {
                    return Err("A3: on sent while an off may still land".to_string());
                }
                if self.out_of_service {
                    return Err("P2: on sent under the out-of-service taint".to_string());
                }
                if let Some(plug) = self.plugs.get_mut(operation.method) {
                    *plug = true;
                }
                self.ghost.off_by_us = false;
                if !was_on {
                    self.booting = true;
                }
            }
            Action::Status => {
                if let Some(unread) = self.ghost.unread.get_mut(operation.method) {
                    *unread = None;
                }
                if !self.on() {
                    self.ghost.confirmed = true;
                    self.ghost.life_seen = false;
                    self.ghost.released_boot = self.boot;
                }
            }
            Action::Off | Action::Reset | Action::Monitor => {}
        }
        if outcome == Outcome::NoAnswer || outcome == Outcome::Late {
            return Ok(End::Indeterminate);
        }
        let on = self.plugs.get(operation.method).copied().unwrap_or_default();
        let state = if on { PlugState::On } else { PlugState::Off };
        let said = if operation.action == Action::Off { PlugState::Off } else { state };
        Ok(End::Succeeded { state: said, identity })
    }

    fn apply(
        &mut self,
        stage: &Setting,
        event: Event<'_>,
        seen: &mut Seen,
        view: Option<&View>,
    ) -> Result<(), String> {
        let before = self.record.clone();
        let transition =
            step(&stage.plan, &stage.policy, self.record.clone(), event, Time(self.now));
        let Transition { record, effects, next_look, rules, .. } = transition;
        Self::check_transition(&before, &record, &effects, view)?;
        let proven = |record: &Record| record.proof.as_ref().map(|proof| proof.signs.clone());
        if proven(&before) != proven(&record) {
            self.ghost.life_seen = false;
        }
        if before.phase != record.phase {
            let key = (phase_name(before.phase), phase_name(record.phase));
            *seen.transitions.entry(key).or_default() += 1;
        }
        seen.phases.insert(phase_name(record.phase));
        seen.rules.extend(rules);
        self.record = record;
        // What was still to do before is the caller's to finish first; a look need not be twice.
        self.todo.retain(|effect| *effect != Effect::Look || !effects.contains(&Effect::Look));
        for effect in effects {
            if !self.todo.contains(&effect) {
                self.todo.push(effect);
            }
        }
        self.next_look = next_look;
        if self.todo.is_empty() && self.next_look.is_none() && !over(self.record.phase) {
            return Err(format!("L1: {:?} waits for nothing", self.record.phase));
        }
        self.check_rest(stage)
    }

    fn check_transition(
        before: &Record,
        after: &Record,
        effects: &[Effect],
        view: Option<&View>,
    ) -> Result<(), String> {
        if after.epoch < before.epoch {
            return Err("S4: the epoch went back".to_string());
        }
        if after.operations.iter().filter(|one| one.end.is_none()).count() > 1 {
            return Err("S5: two calls under way".to_string());
        }
        for effect in effects {
            let Effect::Call(op) = effect else { continue };
            let operation = after.operations.iter().find(|one| one.id == *op);
            let operation = operation.ok_or("S5: a call without an intent")?;
            if operation.action != Action::Off {
                continue;
            }
            let view = view.ok_or("S10: off without a look")?;
            let crossed = matches!(view.trigger, Crossing::Crossed { .. });
            if !crossed && before.first_released_at.is_none() {
                return Err("S10: off though the trigger does not hold".to_string());
            }
            if !view.gate.is_open() {
                return Err("S13: off though the gate is closed".to_string());
            }
            if after.slot != Slot::Held {
                return Err("A19: off without a slot".to_string());
            }
        }
        Ok(())
    }

    /// What must hold wherever the run rests.
    fn check_rest(&self, stage: &Setting) -> Result<(), String> {
        let most = stage.policy.restarts + 1 + 2;
        if u32::from(self.ghost.cycles) > most {
            return Err(format!("L5: {} power cycles", self.ghost.cycles));
        }
        if over(self.record.phase) && self.ghost.off_by_us && self.late_off.is_none() {
            let told = self.record.parked.as_ref();
            let told = told.is_some_and(|parked| !parked.powered_off_by_us.is_empty());
            if self.record.phase != Phase::Parked || !told {
                return Err(format!("S6: left off and {:?}", self.record.phase));
            }
        }
        Ok(())
    }

    /// What tells two worlds apart, with every time seen from now.
    fn key(&self) -> u64 {
        let mut same = self.clone();
        let now = self.now;
        let ago = |at: &mut Time| at.0 = now.saturating_sub(at.0).min(AGES_MAX_MS);
        let ahead = |at: &mut u64| *at = at.saturating_sub(now);
        let record = &mut same.record;
        let ids: Vec<OpId> = record.operations.iter().map(|one| one.id).collect();
        let rank = |op: &mut OpId| {
            op.0 = u32::try_from(ids.iter().filter(|id| **id >= *op).count()).expect("few");
        };
        let attempt = record.attempt;
        rank(&mut record.phase_first);
        ago(&mut record.entered_at);
        record.opened_at = Time(0);
        for one in &mut record.operations {
            rank(&mut one.id);
            one.attempt = (attempt - one.attempt).min(1);
            one.state_before = PlugState::Unknown;
            one.epoch = 0;
            one.process.clear();
            let max = if one.action == Action::Monitor { AGES_MAX_MS } else { CALLS_MAX_MS };
            one.intended_at.0 = now.saturating_sub(one.intended_at.0).min(max);
            one.ended_at = one.ended_at.map(|at| Time(now.saturating_sub(at.0).min(max)));
        }
        record.next_operation.0 = 0;
        record.attempt = 0;
        record.epoch = 0;
        record.process.clear();
        let life = self.life;
        let relative = |signs: &mut Signs| {
            for one in [&mut signs.lease_renewed, &mut signs.reported] {
                *one = one.map(|at| Time((life - at.0).min(2)));
            }
        };
        relative(&mut record.signs_at_open);
        if let Some(baseline) = record.baseline.as_mut() {
            ago(&mut baseline.at);
            relative(&mut baseline.signs);
        }
        if let Some(proof) = record.proof.as_mut() {
            ago(&mut proof.at);
            proof.voided_at.iter_mut().for_each(ago);
            relative(&mut proof.signs);
            if let Evidence::Reads(reads) = &mut proof.by {
                reads.iter_mut().for_each(&rank);
            }
        }
        if let Some(released) = record.released.as_mut() {
            ago(&mut released.at);
            ago(&mut released.progress_at);
            released.sent_at.iter_mut().for_each(ago);
            released.ended_at.iter_mut().for_each(ago);
        }
        if let Some(parked) = record.parked.as_mut() {
            parked.at = Time(0);
        }
        record.first_released_at = record.first_released_at.map(|_| Time(0));
        record.gate_closed_at.iter_mut().for_each(ago);
        record.unreachable_at.iter_mut().for_each(ago);
        for effect in &mut same.todo {
            if let Effect::Call(op) = effect {
                rank(op);
            }
        }
        if let Some(at) = same.next_look.as_mut() {
            ahead(&mut at.0);
        }
        same.late_off.iter_mut().for_each(ahead);
        same.now = 0;
        same.life = 0;
        let mut hasher = DefaultHasher::new();
        same.hash(&mut hasher);
        hasher.finish()
    }
}

/// A call's age matters as long as the call may land, or its read is fresh.
const CALLS_MAX_MS: u64 = FOREIGN_CALL_MAX.0 + 1;

/// Ages beyond the longest of the walk's time-outs are all the same.
const AGES_MAX_MS: u64 = 61_000;

fn over(phase: Phase) -> bool {
    matches!(phase, Phase::Final(_) | Phase::Parked)
}

/// Short times, so that few looks cover them.
fn short_policy() -> RunPolicy {
    RunPolicy {
        retries: 1,
        restarts: 1,
        off_timeout: Span::seconds(2),
        on_timeout: Span::seconds(2),
        release_timeout: Span::seconds(6),
        cleanup_timeout: Span::seconds(10),
        recover_timeout: Span::seconds(10),
        gate_timeout: Span::seconds(4),
        device_timeout: Span::seconds(10),
        ..RunPolicy::default()
    }
}

struct Walk {
    states: usize,
    steps: usize,
}

/// Walks through everything that can happen from these beginnings.
fn walk(stage: &Setting, beginnings: Vec<World>, states_max: usize, seen: &mut Seen) -> Walk {
    let mut index: HashMap<u64, u32> = HashMap::new();
    let mut parents: Vec<(u32, Option<Move>)> = Vec::new();
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut ends: Vec<bool> = Vec::new();
    let mut queue: VecDeque<(u32, World)> = VecDeque::new();
    let mut walk = Walk { states: 0, steps: 0 };
    for world in beginnings {
        let id = u32::try_from(parents.len()).expect("few beginnings");
        index.insert(world.key(), id);
        parents.push((id, None));
        ends.push(false);
        queue.push_back((id, world));
    }
    while let Some((id, world)) = queue.pop_front() {
        if over(world.record.phase) && world.todo.is_empty() {
            ends[id as usize] = true;
        }
        for one in world.moves() {
            let mut next = world.clone();
            walk.steps += 1;
            if let Err(broken) = next.play(stage, one, seen) {
                panic!(
                    "{broken}\nafter {:?}, {one:?}\n{}",
                    trace(&parents, id),
                    brief(&next.record)
                );
            }
            let key = next.key();
            let to = *index.entry(key).or_insert_with(|| {
                let to = u32::try_from(parents.len()).expect("fewer states than u32");
                parents.push((id, Some(one)));
                ends.push(false);
                queue.push_back((to, next));
                to
            });
            edges.push((to, id));
        }
        if parents.len() >= states_max {
            let grown = format!("the world has grown beyond {states_max} states, lately to");
            panic!("{grown} {:?}: {}", trace(&parents, id), brief(&world.record));
        }
    }
    walk.states = parents.len();
    check_liveness(&parents, &mut edges, ends);
    walk
}

/// L1: from wherever it is, a run can still come to an end, without another fault.
fn check_liveness(parents: &[(u32, Option<Move>)], edges: &mut [(u32, u32)], mut ends: Vec<bool>) {
    edges.sort_unstable();
    let mut queue: Vec<u32> =
        (0..u32::try_from(ends.len()).expect("checked")).filter(|id| ends[*id as usize]).collect();
    while let Some(id) = queue.pop() {
        let first = edges.partition_point(|(to, _)| *to < id);
        for (_, from) in edges[first..].iter().take_while(|(to, _)| *to == id) {
            if !core::mem::replace(&mut ends[*from as usize], true) {
                queue.push(*from);
            }
        }
    }
    if let Some(stuck) = ends.iter().position(|end| !end) {
        let id = u32::try_from(stuck).expect("checked");
        panic!("L1: no end can be reached after {:?}", trace(parents, id));
    }
}

/// A record without what fills the screen.
fn brief(record: &Record) -> String {
    let mut text = format!("{:?} retries {} goal {:?}", record.phase, record.retries, record.goal);
    text.extend(record.operations.iter().map(|one| {
        format!(
            "\n  {:?} plug {} {:?} try {} at {}: {:?} at {:?}",
            one.id, one.method, one.action, one.attempt, one.intended_at.0, one.end, one.ended_at
        )
    }));
    text
}

fn trace(parents: &[(u32, Option<Move>)], mut id: u32) -> Vec<Move> {
    let mut moves = Vec::new();
    while let (parent, Some(one)) = parents[id as usize] {
        moves.push(one);
        id = parent;
    }
    moves.reverse();
    moves
}

#[test]
fn every_order_of_events_around_one_bmc() {
    let once = Setting { plan: bmc_plan(), policy: RunPolicy { restarts: 0, ..short_policy() } };
    let mut seen = Seen::default();
    explore("two faults", &once, World::new(&once, 2, 0), &mut seen);
    let again = Setting { plan: bmc_plan(), policy: short_policy() };
    explore("one fault, a person", &again, World::new(&again, 1, 1), &mut seen);
    explore("lying", &again, World { lying: true, ..World::new(&again, 1, 1) }, &mut seen);
    let other = World { other_machine: true, ..World::new(&again, 1, 1) };
    explore("another machine", &again, other, &mut seen);
    let off = World { plugs: vec![false], ..World::new(&again, 1, 1) };
    explore("found off", &again, off, &mut seen);
    let stuck = World { stuck: true, ..World::new(&once, 1, 1) };
    explore("held pods", &once, stuck, &mut seen);
    // A transition or a rule that is no longer reached is a change of behaviour: read it.
    let mut reached = String::from("# transitions\n");
    reached.extend(seen.transitions.keys().map(|(from, to)| format!("{from} -> {to}\n")));
    let rules: Vec<&str> = seen.rules.iter().map(|rule| rule.name()).collect();
    reached.extend(["# rules\n".to_string(), rules.join(" "), "\n".to_string()]);
    expect_file!["walk.txt"].assert_eq(&reached);
    assert_eq!(seen.phases.len(), PHASES_REACHED, "{:?}", seen.phases);
}

/// Every phase that a run can rest in here, and every end that this world can come to.
const PHASES_REACHED: usize = 17;

#[test]
fn every_order_of_events_around_two_feeds() {
    let mut plan = bmc_plan();
    plan.methods = vec![power("pdu-a", Feed::Part), power("pdu-b", Feed::Part)];
    plan.power = vec![stage(Execution::All, &[0, 1])];
    let policy = RunPolicy { restarts: 0, ..short_policy() };
    let stage = Setting { plan, policy };
    explore("two feeds", &stage, World::new(&stage, 1, 0), &mut Seen::default());
}

fn explore(name: &str, stage: &Setting, beginning: World, seen: &mut Seen) {
    let walk = walk(stage, vec![beginning], STATES_MAX, seen);
    println!("{name}: {} states, {} steps", walk.states, walk.steps);
}

/// A walk that needs more has a world too large to be walked through in a test.
const STATES_MAX: usize = 200_000;
