//! The device of the world: what it does with a call, what of it is heard, and what an honest
//! automaton never asks of it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;

use super::{Heard, Outcome, World};
use crate::tests::fixtures::UUID;
use crate::*;

impl World {
    pub(super) fn operation(&self, op: OpId) -> Result<Operation, String> {
        let found = self.record.operations.iter().find(|one| one.id == op && one.end.is_none());
        found.cloned().ok_or_else(|| format!("S5: {op:?} is called without an intent"))
    }

    /// Whether the next thing to do is a call of this action.
    pub(super) fn calls(&self, action: Action) -> bool {
        let Some(Effect::Call(op)) = self.todo.first() else { return false };
        self.operation(*op).is_ok_and(|operation| operation.action == action)
    }

    pub(super) fn mark_unread(&mut self, operation: &Operation, heard: Heard) {
        if let Some(unread) = self.ghost.unread.get_mut(operation.method) {
            *unread = Some((operation.action, heard));
        }
    }

    pub(super) fn cut_all(&mut self) {
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
    pub(super) fn device(&mut self, op: OpId, outcome: Outcome) -> Result<End, String> {
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
        if outcome == Outcome::NotSent {
            // What it was decided on grew old before it could be sent.
            return Ok(End::NotAttempted(failure(FailureKind::Cancelled)));
        }
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
}
