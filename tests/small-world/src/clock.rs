//! How time passes: from one thing that is due to the next.

use std::rc::Rc;

use node_remedy_decide::VIEW_AGE_MAX;

use crate::book::Book;
use crate::moves::for_each_record;
use crate::process::{LEASE_DURATION_MS, RENEW_DEADLINE_MS};
use crate::same::Since;
use crate::world::{Health, Holder, Pid, Process, Stage, World};

/// Evidence older than this is old; how much older is all the same.
const OLD_MS: u16 = ms_u16(VIEW_AGE_MAX.0) + 1;

/// So many milliseconds, as the world keeps them.
#[expect(clippy::cast_possible_truncation, reason = "what is larger is cut")]
pub const fn ms_u16(ms: u64) -> u16 {
    if ms > u16::MAX as u64 { u16::MAX } else { ms as u16 }
}

/// How long until the next thing is due; `None`: nothing is.
pub fn next_due(world: &World) -> Option<u32> {
    let processes = Pid::BOTH.into_iter().map(|pid| world.process(pid));
    let mut due: Vec<u32> = processes.flat_map(due_of).collect();
    if lease_is_silent(world) {
        due.push(u32::from(LEASE_DURATION_MS - world.lease.silent_ms.min(LEASE_DURATION_MS)));
    }
    due.extend(world.node.boots_in_ms.map(u32::from));
    due.extend(world.device.late.map(|late| u32::from(late.left_ms)));
    due.into_iter().filter(|ms| *ms > 0).min()
}

/// What is due for a process: its next look, its lease, its evidence, its call.
fn due_of(process: &Process) -> Vec<u32> {
    let mut due = Vec::new();
    due.extend(process.sending.and_then(|one| one.left_ms).map(u32::from));
    let Some(term) = &process.term else { return due };
    let until_closed = term.silent_ms.map(|ms| RENEW_DEADLINE_MS - ms.min(RENEW_DEADLINE_MS));
    due.extend(until_closed.map(u32::from));
    let Some(incident) = &term.incident else { return due };
    match incident.stage {
        Stage::Observing if process.health == Health::Up => due.push(incident.next_look_ms),
        Stage::Observing => {}
        // Only a process that is paused or cut off is here while time passes.
        Stage::Recording(_) | Stage::Settling(_) | Stage::Acting(_) | Stage::ActingFirst(..) => {
            let look = incident.look.filter(|_| incident.acts_on_evidence());
            due.extend(look.map(|look| u32::from(OLD_MS - look.age_ms)));
        }
    }
    due
}

fn lease_is_silent(world: &World) -> bool {
    match world.lease.holder {
        Holder::Gone => true,
        Holder::Process(pid) => {
            world.process(pid).term.as_ref().is_none_or(|term| term.silent_ms.is_some())
        }
    }
}

/// The time of the next thing that is due comes; nothing that is due at that very moment is done
/// yet.
pub fn wait(world: &mut World, book: &Book) {
    let Some(ms) = next_due(world) else { return };
    let short = ms_u16(u64::from(ms));
    let since = Since { ms: u64::from(ms), reported: world.node.kubelet, ..Since::default() };
    world.truth.alive_since |= world.node.kubelet;
    for_each_record(world, |known| *known = book.later(&Rc::clone(known), since));
    if lease_is_silent(world) {
        let silent_ms = &mut world.lease.silent_ms;
        *silent_ms = silent_ms.saturating_add(short).min(LEASE_DURATION_MS);
    }
    if let Some(left_ms) = world.node.boots_in_ms.as_mut() {
        *left_ms = left_ms.saturating_sub(short);
    }
    world.device.late = world.device.late.and_then(|mut late| {
        late.left_ms = late.left_ms.checked_sub(short).filter(|left| *left > 0)?;
        Some(late)
    });
    for pid in Pid::BOTH {
        let process = world.process_mut(pid);
        process.sending = process.sending.and_then(|mut sending| {
            if let Some(left) = sending.left_ms {
                sending.left_ms = Some(left.checked_sub(short).filter(|left| *left > 0)?);
            }
            Some(sending)
        });
        let Some(term) = process.term.as_mut() else { continue };
        if let Some(silent_ms) = term.silent_ms.as_mut() {
            *silent_ms = silent_ms.saturating_add(short).min(RENEW_DEADLINE_MS);
        }
        let Some(incident) = term.incident.as_mut() else { continue };
        incident.next_look_ms = incident.next_look_ms.saturating_sub(ms);
        if let Some(look) = incident.look.as_mut() {
            look.age_ms = look.age_ms.saturating_add(short).min(OLD_MS);
        }
    }
}
