//! When two worlds are one: what nothing depends on any more is left out, and of two processes that
//! have changed places nobody can tell.

use std::mem;
use std::rc::Rc;

use crate::book::Book;
use crate::bug::Bug;
use crate::moves::for_each_record;
use crate::process::{may_send, put_down};
use crate::same::Since;
use crate::world::{Health, Holder, Pid, Process, Setting, Truth, World};

/// Whether the processes have changed places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// They have not.
    AsBefore,
    /// They have.
    Swapped,
}

impl Places {
    /// One after the other.
    #[must_use]
    pub const fn then(self, next: Self) -> Self {
        match (self, next) {
            (Self::AsBefore, next) => next,
            (Self::Swapped, Self::AsBefore) => Self::Swapped,
            (Self::Swapped, Self::Swapped) => Self::AsBefore,
        }
    }
}

/// Brings a world into its simplest form.
pub fn simplify(world: &mut World, setting: &Setting, book: &Book) -> Places {
    leave_out_in_vain(world, setting);
    make_standbys_ready(world);
    forget(&mut world.truth);
    count_epochs_from_one(world, book);
    lead_by_a(world, book)
}

/// Leaves out what a process holds in vain: its lease has run out and is another's, so that it may
/// send nothing, and its record is an old one, so that it can write nothing.
fn leave_out_in_vain(world: &mut World, setting: &Setting) {
    // Without these guards it is not in vain.
    let is_unguarded = matches!(
        setting.bug,
        Some(
            Bug::NoCompareAndSwap
                | Bug::GoesOnAfterConflict
                | Bug::NoLeaseGate
                | Bug::TakesUpNewerRecords
        )
    );
    let is_kept = setting.keeps_vain || is_unguarded;
    for pid in Pid::BOTH.into_iter().filter(|_| !is_kept) {
        let is_holder = world.lease.holder == Holder::Process(pid);
        let is_vain = world.process(pid).term.as_ref().is_some_and(|term| {
            let is_old = term.incident.as_ref().is_none_or(|incident| !incident.is_current);
            !may_send(term, setting) && is_old
        });
        if is_vain && !is_holder {
            put_down(world, pid);
            world.process_mut(pid).term = None;
        }
    }
}

/// Who neither leads nor has bytes to send is ready to lead: one that is not comes later.
fn make_standbys_ready(world: &mut World) {
    for pid in Pid::BOTH {
        let process = world.process_mut(pid);
        if process.term.is_some() {
            continue;
        }
        process.cut_off = false;
        if process.sending.is_none() {
            process.health = Health::Up;
        }
        if world.lease.holder == Holder::Process(pid) {
            world.lease.holder = Holder::Gone;
        }
    }
}

/// What no line asks for again.
fn forget(truth: &mut Truth) {
    if !truth.confirmed {
        (truth.alive_since, truth.powered_by_other) = (false, false);
        truth.rebooted &= truth.released;
    }
}

/// Epochs are compared and never subtracted.
fn count_epochs_from_one(world: &mut World, book: &Book) {
    let mut least = u64::from(world.lease.epoch);
    for_each_record(world, |known| least = least.min(known.record.epoch));
    let terms = Pid::BOTH.into_iter().filter_map(|pid| world.process(pid).term.as_ref());
    least = terms.map(|term| u64::from(term.epoch)).fold(least, u64::min);
    let epochs = u8::try_from(least.saturating_sub(1)).unwrap_or_default();
    if epochs == 0 {
        return;
    }
    world.lease.epoch = world.lease.epoch.saturating_sub(epochs);
    for pid in Pid::BOTH {
        if let Some(term) = world.process_mut(pid).term.as_mut() {
            term.epoch = term.epoch.saturating_sub(epochs);
        }
    }
    let since = Since { epochs, ..Since::default() };
    for_each_record(world, |known| *known = book.later(&Rc::clone(known), since));
}

/// Where only one of them has anything in hand, it is A.
fn lead_by_a(world: &mut World, book: &Book) -> Places {
    let is_idle = |process: &Process| process.term.is_none() && process.sending.is_none();
    if !is_idle(&world.a) || is_idle(&world.b) {
        return Places::AsBefore;
    }
    mem::swap(&mut world.a, &mut world.b);
    world.lease.holder = match world.lease.holder {
        Holder::Process(pid) => Holder::Process(pid.other()),
        Holder::Gone => Holder::Gone,
    };
    let since = Since { swapped: true, ..Since::default() };
    for_each_record(world, |known| *known = book.later(&Rc::clone(known), since));
    Places::Swapped
}
