//! A controller: its lease, and the one path of its incident, one step at a time.
//!
//! This follows `leader_election.rs`, `leader_loop.rs`, `reconcile.rs`, `persist.rs` and `act` of the
//! controller; wherever those wait for an answer, a step ends here, and the other process, a fault
//! or time may come in between.

mod acting;
mod term;

use node_remedy_decide::{FOREIGN_CALL_MAX, Phase};

use self::acting::{act, take_task};
use self::term::{crash, fall_silent, pause, pause_in_call, renew, resume, take_lease};
use crate::book::{Book, Decided, Input, Known, SLEEP_MAX_MS, Sight};
use crate::bug::Bug;
use crate::clock::ms_u16;
use crate::invariants::{Broken, at_write};
use crate::moves::{Sent, Step, Went};
use crate::same::{NOW, Since};
use crate::world::{
    CallOutcome, Health, Incident, Look, Meant, Pending, Pid, Setting, Stage, Term, Todo, World,
};

pub(crate) use self::term::put_down;
/// A successor acts after this much silence.
pub const LEASE_DURATION_MS: u16 = 15_000;
/// The last byte leaves a leader no later than this after its last good renewal.
pub const RENEW_DEADLINE_MS: u16 = 8_000;

/// Whether the lease gate is open.
pub fn may_send(term: &Term, setting: &Setting) -> bool {
    setting.has(Bug::NoLeaseGate) || term.silent_ms.is_none_or(|ms| ms < RENEW_DEADLINE_MS)
}

/// What a process can do next, faults left out.
pub fn steps(world: &World, pid: Pid, setting: &Setting) -> Vec<Step> {
    let process = world.process(pid);
    match process.health {
        Health::Paused => return vec![Step::Resume],
        Health::Up => {}
    }
    let mut steps = Vec::new();
    if process.cut_off {
        steps.push(Step::Reconnect);
    }
    let Some(term) = &process.term else {
        let is_free = world.lease.silent_ms >= LEASE_DURATION_MS || setting.has(Bug::EarlyTakeOver);
        if is_free && !process.cut_off {
            steps.push(Step::TakeLease);
        }
        return steps;
    };
    let is_lost = term.silent_ms.is_some_and(|ms| ms >= RENEW_DEADLINE_MS);
    if term.silent_ms.is_some() && (!process.cut_off || is_lost) {
        steps.push(Step::Renew);
        if term.steps_left == 0 {
            return steps;
        }
    }
    let Some(incident) = &term.incident else {
        if !process.cut_off && is_to_take_up(world, pid, term, setting) {
            steps.push(Step::TakeUp);
        }
        return steps;
    };
    let is_due = incident.look_wanted || incident.next_look_ms == 0;
    match incident.stage {
        Stage::Observing if is_due && !process.cut_off => steps.push(Step::Look),
        Stage::Recording(_) if !process.cut_off => steps.push(Step::Write(Sent::Answered)),
        Stage::Settling(_) if !process.cut_off => steps.push(Step::Settle),
        Stage::Observing | Stage::Recording(_) | Stage::Settling(_) => {}
        Stage::Acting(_) | Stage::ActingFirst(..) => steps.push(Step::Act(Went::Well)),
    }
    steps
}

/// Whether there is an incident for this process: an open one, that no newer leader has.
fn is_to_take_up(world: &World, pid: Pid, term: &Term, setting: &Setting) -> bool {
    let record = &world.stored.record;
    let is_left = setting.has(Bug::LeavesForeignRecords) && record.process != pid.name();
    let is_newer = record.epoch > u64::from(term.epoch) && !setting.has(Bug::TakesUpNewerRecords);
    !matches!(record.phase, Phase::Final(_)) && !is_left && !is_newer
}

/// Lets it do that.
pub fn play(
    world: &mut World,
    pid: Pid,
    step: Step,
    setting: &Setting,
    book: &Book,
) -> Result<(), Broken> {
    let may_renew = steps(world, pid, setting).contains(&Step::Renew);
    if let Some(term) = world.process_mut(pid).term.as_mut().filter(|_| may_renew) {
        term.steps_left = term.steps_left.saturating_sub(1);
    }
    take_step(world, pid, step, setting, book)?;
    let incident = world.process(pid).incident();
    let is_to_decide = incident.is_some_and(|one| {
        one.stage == Stage::Observing
            && one.pending.is_some()
            && world.process(pid).health == Health::Up
    });
    if is_to_decide {
        decide_pending(world, pid, setting, book)?;
    }
    if let Some(incident) = world.process_mut(pid).incident_mut() {
        forget(incident);
    }
    Ok(())
}

/// What will not be asked for again: a look allows only what is done at once, and who has something
/// to decide on finds out then when to look.
fn forget(incident: &mut Incident) {
    let will_decide = match incident.stage {
        Stage::Observing => {
            incident.look = None;
            incident.pending.is_some()
        }
        Stage::Acting(_) => false,
        Stage::Recording(_) | Stage::Settling(_) | Stage::ActingFirst(..) => true,
    };
    if will_decide || incident.look_wanted {
        incident.next_look_ms = SLEEP_MAX_MS;
    }
}

fn take_step(
    world: &mut World,
    pid: Pid,
    step: Step,
    setting: &Setting,
    book: &Book,
) -> Result<(), Broken> {
    match step {
        Step::TakeLease => take_lease(world, pid),
        Step::Renew => renew(world, pid),
        Step::TakeUp => return take_up(world, pid, setting, book),
        Step::Look => return look(world, pid, setting, book),
        Step::LookAtCache => return look_at_cache(world, pid, setting, book),
        Step::Write(sent) => return write(world, pid, sent, setting),
        Step::Settle => return settle(world, pid, setting),
        Step::Act(went) => return act(world, pid, went, setting),
        Step::PauseInCall => return pause_in_call(world, pid, setting),
        Step::Pause => pause(world, pid),
        Step::Resume => resume(world, pid),
        Step::Crash => crash(world, pid, book),
        Step::CutOff => {
            let process = world.process_mut(pid);
            process.cut_off = true;
            fall_silent(process.term.as_mut());
        }
        Step::Reconnect => world.process_mut(pid).cut_off = false,
    }
    Ok(())
}

fn take_up(world: &mut World, pid: Pid, setting: &Setting, book: &Book) -> Result<(), Broken> {
    let mut held = world.stored.clone();
    let term = world.process_mut(pid).term.as_mut().ok_or(Broken::model("no term"))?;
    let record = &held.record;
    let is_foreign = record.process != pid.name() || record.epoch != u64::from(term.epoch);
    // Nobody hears the end of a call whose task is gone, be the task this very process's.
    let is_unheard = record.in_flight().is_some() && !setting.has(Bug::ResumesOwnCalls);
    let mut pending = (is_foreign || is_unheard).then_some(Pending::Adopted);
    if is_foreign && setting.has(Bug::ForgetsForeignCalls) && record.in_flight().is_some() {
        pending = Some(Pending::Ended(CallOutcome::HeldBack));
    }
    if is_foreign && setting.has(Bug::ForgetsRestarts) && record.restarts > 0 {
        let mut record = record.clone();
        record.restarts = 0;
        held = book.know(record, Since::default());
    }
    term.incident = Some(Incident {
        held,
        is_current: true,
        stage: Stage::Observing,
        pending,
        look_wanted: true,
        next_look_ms: SLEEP_MAX_MS,
        look: None,
    });
    Ok(())
}

fn incident_of(world: &mut World, pid: Pid) -> Result<&mut Incident, Broken> {
    world.process_mut(pid).incident_mut().ok_or(Broken::model("a step without an incident"))
}

fn decide_pending(
    world: &mut World,
    pid: Pid,
    setting: &Setting,
    book: &Book,
) -> Result<(), Broken> {
    let epoch = world.process(pid).term.as_ref().map_or(0, |term| term.epoch);
    let incident = incident_of(world, pid)?;
    let asked = match incident.pending.take().ok_or(Broken::model("nothing is pending"))? {
        Pending::Adopted => Input::Adopted { epoch, pid },
        Pending::Slot { granted } => Input::Slot { granted },
        Pending::Ended(heard) => Input::Ended(heard),
    };
    let decided = book.decide(&incident.held, asked)?;
    mean(incident, &decided, setting);
    Ok(())
}

fn look(world: &mut World, pid: Pid, setting: &Setting, book: &Book) -> Result<(), Broken> {
    let node = world.node;
    let sight = Sight {
        is_live: true,
        is_old: false,
        ill: node.ill,
        quarantined: node.quarantined || (node.ill && setting.has(Bug::AssumesQuarantine)),
        out_of_service: node.out_of_service,
        pod: node.pod,
        attached: node.attached,
    };
    let look = Look { age_ms: 0, was_ill: node.ill, was_alive: world.truth.alive_since };
    let incident = incident_of(world, pid)?;
    incident.look_wanted = false;
    incident.look = Some(look);
    let decided = book.decide(&incident.held, Input::Looked(sight))?;
    mean(incident, &decided, setting);
    Ok(())
}

/// A watch tells late; what it tells is a reason to look and never to act.
fn look_at_cache(
    world: &mut World,
    pid: Pid,
    setting: &Setting,
    book: &Book,
) -> Result<(), Broken> {
    let sight = Sight {
        is_live: setting.has(Bug::TrustsCache),
        is_old: true,
        ill: true,
        quarantined: world.node.quarantined,
        out_of_service: world.node.out_of_service,
        pod: true,
        attached: true,
    };
    let look = Look { age_ms: 0, was_ill: world.node.ill, was_alive: world.truth.alive_since };
    let incident = incident_of(world, pid)?;
    if setting.has(Bug::TrustsCache) {
        incident.look = Some(look);
    }
    let next_look_ms = incident.next_look_ms;
    let decided = book.decide(&incident.held, Input::Looked(sight))?;
    mean(incident, &decided, setting);
    incident.next_look_ms = incident.next_look_ms.min(next_look_ms);
    Ok(())
}

/// What was decided is to be recorded, if anything changed, and done then.
fn mean(incident: &mut Incident, decided: &Decided, setting: &Setting) {
    let (todo, next_look_ms) = (decided.todo, decided.next_look_ms);
    if decided.record == incident.held {
        incident.next_look_ms = next_look_ms;
        go_on_with(incident, todo);
        return;
    }
    let meant = Meant { record: decided.record.clone(), todo, next_look_ms };
    incident.stage = if setting.has(Bug::ActsBeforeRecording) && todo.first().is_some() {
        incident.held = meant.record.clone();
        Stage::ActingFirst(todo, meant)
    } else {
        Stage::Recording(meant)
    };
}

fn go_on_with(incident: &mut Incident, todo: Todo) {
    incident.look_wanted |= todo.looks();
    incident.stage = match todo.first() {
        Some(_) => Stage::Acting(todo),
        None => Stage::Observing,
    };
}

fn write(world: &mut World, pid: Pid, sent: Sent, setting: &Setting) -> Result<(), Broken> {
    let stored = world.stored.clone();
    let epoch = world.process(pid).term.as_ref().map_or(0, |term| term.epoch);
    let incident = incident_of(world, pid)?;
    let Stage::Recording(meant) = incident.stage.clone() else {
        return Err(Broken::model("nothing to write"));
    };
    let was_current = incident.is_current;
    let takes = sent != Sent::Failed && (was_current || setting.has(Bug::NoCompareAndSwap));
    if !takes {
        incident.stage = Stage::Settling(meant);
        return Ok(());
    }
    at_write(was_current, stored.record.epoch, epoch)?;
    incident.is_current = sent == Sent::Answered;
    incident.stage = Stage::Settling(meant.clone());
    if sent == Sent::Answered {
        written(world, pid, meant.clone())?;
    }
    let disowned_ms = disowned_ms(&stored, &meant.record);
    world.stored = meant.record;
    for other in Pid::BOTH.into_iter().filter(|other| *other != pid) {
        let process = world.process_mut(other);
        if let Some(incident) = process.incident_mut() {
            incident.is_current = false;
        }
        if let (Some(sending), Some(left_ms)) = (process.sending.as_mut(), disowned_ms) {
            sending.left_ms.get_or_insert(left_ms);
        }
        process.sending = process.sending.filter(|sending| sending.left_ms != Some(0));
    }
    Ok(())
}

/// The assumption that rule A3 rests on: a call that a new leader has disowned may still be sent by
/// a process that goes on, but no later than this.
fn disowned_ms(before: &Known, after: &Known) -> Option<u16> {
    let open = before.record.in_flight().filter(|open| open.is_effect())?;
    if before.record.process == after.record.process {
        return None;
    }
    let closed = after.record.operations.iter().rev().find(|one| one.action == open.action)?;
    let age_ms = NOW.since(closed.ended_at?).0;
    Some(ms_u16(FOREIGN_CALL_MAX.0.saturating_sub(age_ms)))
}

/// The record stands as it was meant: now it is done.
fn written(world: &mut World, pid: Pid, meant: Meant) -> Result<(), Broken> {
    let incident = incident_of(world, pid)?;
    incident.next_look_ms = meant.next_look_ms;
    incident.held = meant.record;
    go_on_with(incident, meant.todo);
    let is_final = matches!(incident.held.record.phase, Phase::Final(_));
    if is_final && meant.todo.first().is_none() {
        put_down(world, pid);
    }
    Ok(())
}

/// A write that was not answered is settled by reading: it took, or nothing did, or another's did.
fn settle(world: &mut World, pid: Pid, setting: &Setting) -> Result<(), Broken> {
    let stored = world.stored.clone();
    let is_open = world.process(pid).term.as_ref().is_some_and(|term| may_send(term, setting));
    let incident = incident_of(world, pid)?;
    let Stage::Settling(meant) = incident.stage.clone() else {
        return Err(Broken::model("nothing to settle"));
    };
    if setting.has(Bug::GoesOnAfterConflict) && stored != meant.record && stored != incident.held {
        incident.held = stored;
        incident.is_current = true;
        incident.look_wanted = true;
        incident.stage = Stage::Observing;
        return Ok(());
    }
    if is_open && stored == meant.record {
        incident.is_current = true;
        return written(world, pid, meant);
    }
    if is_open && stored == incident.held {
        incident.is_current = true;
        incident.stage = Stage::Recording(meant);
        return Ok(());
    }
    put_down(world, pid);
    Ok(())
}
