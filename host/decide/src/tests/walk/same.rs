//! When two worlds are one: what only counts on, such as the time, the epoch and the numbers of
//! operations, is left out or seen from now.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;

use super::World;
use crate::*;

/// A call's age matters as long as the call may land, or its read is fresh.
const CALLS_MAX_MS: u64 = FOREIGN_CALL_MAX.0 + 1;

/// Ages beyond the longest of the walk's time-outs are all the same.
const AGES_MAX_MS: u64 = 61_000;

impl World {
    /// What tells two worlds apart, with every time seen from now.
    pub(super) fn key(&self) -> u64 {
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
        for (one, number) in record.decisions.iter_mut().zip(1..) {
            one.number = number;
            ago(&mut one.asked_at);
            one.chosen_at = None;
            one.followed_at = one.followed_at.map(|_| Time(0));
            one.ended_at = one.ended_at.map(|_| Time(0));
            one.failed = None;
        }
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
        let relative = |liveness: &mut Liveness| {
            for one in [&mut liveness.lease_renewed, &mut liveness.reported] {
                *one = one.map(|at| Time((life - at.0).min(2)));
            }
        };
        relative(&mut record.liveness_at_open);
        if let Some(baseline) = record.baseline.as_mut() {
            ago(&mut baseline.at);
            relative(&mut baseline.liveness);
        }
        if let Some(proof) = record.proof.as_mut() {
            ago(&mut proof.at);
            proof.voided_at.iter_mut().for_each(ago);
            relative(&mut proof.liveness);
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
        record.dump_held_at.iter_mut().for_each(ago);
        record.unreachable_at.iter_mut().for_each(ago);
        record.on_failed.iter_mut().for_each(|one| one.at = Time(0));
        for effect in &mut same.todo {
            if let Effect::Call(op) = effect {
                rank(op);
            }
            if let Effect::AskRemedy(number) = effect {
                *number = 0;
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
