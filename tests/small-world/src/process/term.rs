//! A term as leader: how it begins, goes on and ends, and what can hit the process meanwhile.

use std::rc::Rc;

use node_remedy_decide::Operation;

use super::take_task;
use crate::book::Book;
use crate::device;
use crate::invariants::Broken;
use crate::moves::for_each_record;
use crate::same::Since;
use crate::world::{Health, Holder, Pending, Pid, Setting, Stage, Term, World};

pub(crate) fn fall_silent(term: Option<&mut Term>) {
    if let Some(term) = term {
        term.silent_ms.get_or_insert(0);
    }
}

pub(crate) fn take_lease(world: &mut World, pid: Pid) {
    let largest = u64::from(world.lease.epoch).max(world.stored.record.epoch);
    let epoch = u8::try_from(largest).unwrap_or(u8::MAX).saturating_add(1);
    world.lease.holder = Holder::Process(pid);
    world.lease.epoch = epoch;
    world.lease.silent_ms = 0;
    world.process_mut(pid).term = Some(Term::new(epoch));
    for other in Pid::BOTH.into_iter().filter(|other| *other != pid) {
        fall_silent(world.process_mut(other).term.as_mut());
    }
}

pub(crate) fn renew(world: &mut World, pid: Pid) {
    let holds = world.lease.holder == Holder::Process(pid) && !world.process(pid).cut_off;
    if !holds {
        put_down(world, pid);
        world.process_mut(pid).term = None;
        return;
    }
    world.lease.silent_ms = 0;
    if let Some(term) = world.process_mut(pid).term.as_mut() {
        *term = Term { incident: term.incident.take(), ..Term::new(term.epoch) };
    }
}

/// The incident is not this process's any more; what it had not written down is forgotten.
pub(crate) fn put_down(world: &mut World, pid: Pid) {
    let Some(term) = world.process_mut(pid).term.as_mut() else { return };
    let Some(incident) = term.incident.take() else { return };
    let is_unwritten = match incident.stage {
        Stage::Recording(_) | Stage::Settling(_) | Stage::ActingFirst(..) => true,
        Stage::Observing | Stage::Acting(_) => matches!(incident.pending, Some(Pending::Ended(_))),
    };
    let record = &incident.held.record;
    let is_command =
        record.process == pid.name() && record.in_flight().is_some_and(Operation::is_effect);
    if is_unwritten
        && is_command
        && let Some((_, was_heard)) = world.truth.unread.as_mut()
    {
        *was_heard = false;
    }
}

pub(crate) fn pause_in_call(world: &mut World, pid: Pid, setting: &Setting) -> Result<(), Broken> {
    if device::is_about_to_send(world, pid, setting)? {
        device::stop_before_send(world, pid)?;
        take_task(world, pid)?;
    }
    pause(world, pid);
    Ok(())
}

pub(crate) fn pause(world: &mut World, pid: Pid) {
    let process = world.process_mut(pid);
    process.health = Health::Paused;
    fall_silent(process.term.as_mut());
}

pub(crate) fn resume(world: &mut World, pid: Pid) {
    world.process_mut(pid).health = Health::Up;
    let Some(sending) = world.process_mut(pid).sending.take() else { return };
    let heard = device::send_late(world, sending);
    if let Some(incident) = world.process_mut(pid).incident_mut() {
        incident.pending = Some(Pending::Ended(heard));
    }
}

/// A process dies, and is started again: another one, of which nobody has heard.
pub(crate) fn crash(world: &mut World, pid: Pid, book: &Book) {
    put_down(world, pid);
    let process = world.process_mut(pid);
    (process.term, process.sending) = (None, None);
    let since = Since { died: Some(pid), ..Since::default() };
    for_each_record(world, |known| *known = book.later(&Rc::clone(known), since));
}
