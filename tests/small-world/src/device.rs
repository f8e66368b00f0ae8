//! The machine's device: what it does with a call, and what of it is heard.

use node_remedy_decide::{Action, FOREIGN_CALL_MAX, VIEW_AGE_MAX};

use crate::bug::Bug;
use crate::clock::ms_u16;
use crate::invariants::{Broken, at_call, at_command, at_send};
use crate::moves::Went;
use crate::process::may_send;
use crate::world::{CallOutcome, Late, Pid, Sending, Setting, World};

/// How long after a call the device of a bug carries it out at most.
const LATER_MS: u16 = 60_000;

/// A machine that does not hang has booted by then, which is within the policy's time-out.
pub const BOOT_MS_MAX: u16 = 4_000;
/// No machine boots between two steps of a process that nothing keeps.
pub const BOOT_MS_MIN: u16 = 2_000;

/// What keeps a call from being sent at all.
fn held_back(world: &World, pid: Pid, action: Action, setting: &Setting) -> Option<CallOutcome> {
    let process = world.process(pid);
    let (term, incident) = (process.term.as_ref()?, process.incident()?);
    let fresh = |age_ms: u16| u64::from(age_ms) <= VIEW_AGE_MAX.0;
    let is_fresh = incident.look.is_some_and(|look| fresh(look.age_ms));
    if action == Action::Off && !is_fresh && !setting.has(Bug::NoAgeLimit) {
        return Some(CallOutcome::HeldBack);
    }
    (!may_send(term, setting)).then_some(CallOutcome::NotLeader)
}

/// The action of the call that a process has under way.
fn action_of(world: &World, pid: Pid) -> Result<Action, Broken> {
    let incident = world.process(pid).incident();
    let open = incident.and_then(|one| one.held.record.in_flight());
    open.map(|one| one.action).ok_or(Broken::model("a call without an intent"))
}

/// Makes the call that a process has under way.
pub fn call(
    world: &mut World,
    pid: Pid,
    went: Went,
    is_recorded: bool,
    setting: &Setting,
) -> Result<CallOutcome, Broken> {
    at_call(is_recorded)?;
    let action = action_of(world, pid)?;
    if let Some(why) = held_back(world, pid, action, setting) {
        if action == Action::Status {
            // As with a device that refuses to be read: an `on` changes nothing if repeated.
            world.truth.unread = world.truth.unread.filter(|(last, _)| *last != Action::On);
        }
        return Ok(why);
    }
    if action == Action::Status
        && setting.has(Bug::NoVerifyingRead)
        && world.truth.unread.is_some_and(|(last, _)| last == Action::Off)
    {
        return Ok(CallOutcome::Off);
    }
    at_send(world, pid)?;
    if world.device.dead {
        return Ok(CallOutcome::Unreachable);
    }
    match action {
        Action::Monitor => {
            Ok(if went == Went::Well { CallOutcome::On } else { CallOutcome::Unreachable })
        }
        Action::Status if went == Went::Well => Ok(read(world)),
        Action::Status => Ok(CallOutcome::Unreachable),
        Action::Off | Action::On | Action::Reset => {
            at_command(world, pid, action)?;
            Ok(command(world, action, went, setting))
        }
    }
}

/// Whether the call that a process has under way would be sent now.
pub fn is_about_to_send(world: &World, pid: Pid, setting: &Setting) -> Result<bool, Broken> {
    Ok(held_back(world, pid, action_of(world, pid)?, setting).is_none())
}

/// A process stops between the gate and the send.
pub fn stop_before_send(world: &mut World, pid: Pid) -> Result<(), Broken> {
    let action = action_of(world, pid)?;
    at_command(world, pid, action)?;
    world.process_mut(pid).sending = Some(Sending { action, left_ms: None });
    Ok(())
}

/// The bytes of a process that goes on leave now, whatever has happened since.
pub fn send_late(world: &mut World, sending: Sending) -> CallOutcome {
    if world.device.dead {
        return CallOutcome::Nothing;
    }
    land_late(world, sending.action);
    answer(sending.action)
}

fn read(world: &mut World) -> CallOutcome {
    let truth = &mut world.truth;
    truth.unread = None;
    if world.node.powered {
        return CallOutcome::On;
    }
    truth.confirmed = true;
    truth.rebooted = false;
    truth.alive_since = false;
    truth.powered_by_other = false;
    CallOutcome::Off
}

fn command(world: &mut World, action: Action, went: Went, setting: &Setting) -> CallOutcome {
    let is_heard = matches!(went, Went::Well | Went::Lied);
    world.truth.unread = Some((action, is_heard));
    world.truth.confirmed = false;
    match went {
        Went::Well | Went::Unanswered => {
            let takes = action == Action::Off && world.node.powered;
            world.truth.cycles += u8::from(takes);
            land(world, action);
        }
        Went::Lied => {}
        Went::Late => {
            let told = ms_u16(FOREIGN_CALL_MAX.0);
            let left_ms = if setting.has(Bug::LaterThanTold) { LATER_MS } else { told };
            world.device.late = Some(Late { action, left_ms });
        }
    }
    match (is_heard, setting.has(Bug::SilenceIsNo)) {
        (true, _) => answer(action),
        (false, true) => CallOutcome::Unreachable,
        (false, false) => CallOutcome::Nothing,
    }
}

/// What a device says of itself after a command.
const fn answer(action: Action) -> CallOutcome {
    match action {
        Action::Off => CallOutcome::Off,
        Action::Status | Action::On | Action::Reset | Action::Monitor => CallOutcome::On,
    }
}

/// A command takes effect when nobody expects it any more; a cycle that it ends is none of ours.
pub fn land_late(world: &mut World, action: Action) {
    let ends_cycle = action == Action::On && world.truth.off_by_us;
    world.truth.cycles = world.truth.cycles.saturating_sub(u8::from(ends_cycle));
    land(world, action);
}

/// A command takes effect.
pub fn land(world: &mut World, action: Action) {
    match action {
        Action::Off => {
            world.truth.off_by_us |= world.node.powered;
            let node = &mut world.node;
            (node.powered, node.boots_in_ms, node.kubelet) = (false, None, false);
            (node.boot_ended, node.ill) = (true, true);
        }
        Action::On => {
            if !world.node.powered {
                world.truth.confirmed = false;
                give_power(world);
            }
        }
        Action::Status | Action::Reset | Action::Monitor => {}
    }
}

/// The machine has power again.
pub fn give_power(world: &mut World) {
    world.node.powered = true;
    world.node.boots_in_ms = Some(BOOT_MS_MAX);
    world.truth.off_by_us = false;
}
