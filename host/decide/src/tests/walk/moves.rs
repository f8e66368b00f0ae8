//! What can happen next in the world, and what it changes: to the machine, to the cluster and,
//! through the automaton, to the incident.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Heard, Move, Outcome, Seen, Setting, World, over, phase_name};
use crate::*;

impl World {
    pub(super) fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        let call = match self.todo.first() {
            Some(Effect::Call(_)) => true,
            Some(Effect::AskRemedy(_)) => {
                // Two deeds, and then it gives up: more of them would be the same again.
                let decided = self.record.decisions.len().saturating_sub(1);
                let choices = Self::choices().len();
                let first = if decided < 2 { 0 } else { choices - 1 };
                moves.extend((first..choices).map(Move::Decide));
                false
            }
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
        if self.pods && self.pods_asked && self.kubelet {
            moves.push(Move::HoldersLetGo);
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
                if self.calls(Action::Off) {
                    moves.push(Move::Act(Outcome::NotSent));
                }
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

    pub(super) fn play(
        &mut self,
        stage: &Setting,
        one: Move,
        seen: &mut Seen,
    ) -> Result<(), String> {
        match one {
            Move::Act(outcome) => return self.act(stage, outcome, seen),
            Move::Decide(choice) => {
                let Effect::AskRemedy(number) = self.todo.remove(0) else {
                    return Err("nobody asked".to_string());
                };
                let answer = Ok(Self::choices()[choice].clone());
                return self.apply(stage, Event::Decided { number, answer }, seen, None);
            }
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
            Move::HoldersLetGo => {
                self.pods = false;
                self.attachment = false;
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

    /// What a plugin may come to think of.
    fn choices() -> [Choice; 4] {
        [
            Choice::Method("bmc".to_string()),
            Choice::Cluster("release".to_string()),
            Choice::Fence,
            Choice::Fail("it has had enough".to_string()),
        ]
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
        let fenced = self.record.proof.as_ref().map(|proof| proof.liveness.clone());
        if let (Some(fenced), Some(node)) = (fenced, &view.node) {
            self.ghost.life_seen |= fenced != node.liveness;
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
            Effect::ReturnSlot
            | Effect::HandOver
            | Effect::Withdraw(_)
            | Effect::Cordon
            | Effect::Uncordon
            | Effect::StartJob(_)
            | Effect::StopJob(_)
            | Effect::AskRemedy(_)
            | Effect::AnnotateNode { .. } => {}
            Effect::Quarantine => self.quarantined = self.node,
            Effect::Unquarantine => {
                self.check_unquarantine()?;
                self.quarantined = false;
            }
            Effect::OutOfService => {
                self.check_release()?;
                if self.out_of_service {
                    return Err("asks for a taint that stands".to_string());
                }
                self.out_of_service = self.node;
            }
            Effect::LiftOutOfService => self.out_of_service = false,
            Effect::DeletePods(uids) | Effect::Evict { pods: uids, at_once: true } => {
                self.check_release()?;
                if uids.iter().any(|uid| uid != "db-0") {
                    return Err(format!("S8: deletes {uids:?}"));
                }
                if self.pods_asked {
                    return Err("asks twice for the same pod's deletion".to_string());
                }
                self.pods_asked = true;
                self.pods = self.stuck;
                self.attachment &= self.pods || !self.out_of_service;
            }
            // A kubelet that lives unmounts, and Kubernetes detaches what nobody uses.
            Effect::GracefulDelete(_) | Effect::Evict { at_once: false, .. } => {
                self.pods = false;
                self.attachment = false;
            }
            Effect::DeleteAttachments(_) => {
                self.check_release()?;
                self.attachment = false;
            }
            Effect::DeleteNode => return Err("nobody asked for that".to_string()),
        }
        Ok(())
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
        let proven = |record: &Record| record.proof.as_ref().map(|proof| proof.liveness.clone());
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
}
