//! What must hold: at a release, when a quarantine is lifted, in each transition, and wherever
//! an incident rests. What a device must never be asked stands with the device, and that an end can
//! be reached is checked over all worlds at once, in the search.

use alloc::format;
use alloc::string::{String, ToString};

use super::{Setting, World, over};
use crate::*;

impl World {
    pub(super) fn check_release(&mut self) -> Result<(), String> {
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

    pub(super) fn check_unquarantine(&self) -> Result<(), String> {
        let clean = !self.pods && !self.attachment;
        let fresh = self.boot > self.ghost.released_boot && !self.sick;
        if self.ghost.released && self.record.goal == Goal::BringBack && !(fresh && clean) {
            return Err("S9: quarantine lifted before a new boot is well and clean".to_string());
        }
        Ok(())
    }

    pub(super) fn check_transition(
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

    /// What must hold wherever the incident rests.
    pub(super) fn check_rest(&self, stage: &Setting) -> Result<(), String> {
        // Where a plugin decides, its method and the fence.
        let of = |remedy| if remedy == Remedy::Plugin { 2 } else { 1 };
        let remedies: u32 = stage.plan.remedies().map(of).sum();
        let most = (stage.policy.restarts + 1) * remedies + 2;
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
}
