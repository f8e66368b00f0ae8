//! What must hold, one function for each occasion; the lines are those of SAFETY.md.
//!
//! They are told what truly is: whether the machine has power, who holds the lease, what the
//! device was last sent. What a record says is asked for only where the line is about what people
//! are told.

use std::fmt;

use node_remedy_decide::{Action, Phase, VIEW_AGE_MAX};

use crate::world::{Holder, Incident, Pid, Setting, World};

/// A line that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub line: Line,
    /// What happened.
    pub what: &'static str,
}

/// The lines that are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Nothing is released unless the machine was read off since, and no sign of life came.
    S1,
    /// Nobody but the leader acts or writes, and nobody writes over what he has not read.
    S4,
    /// No command without a recorded intent, none repeated before a read.
    S5,
    /// A machine that we switched off is switched on again, or people are told.
    S6,
    /// Released only in quarantine, which stands until another boot is well.
    S9,
    /// No off unless the trigger held at a fresh look.
    S10,
    /// The incident comes to an end once nothing goes wrong any more.
    L1,
    /// Our marks go in the end.
    L4,
    /// At most restarts + 1 power cycles.
    L5,
    /// The model itself is wrong.
    Model,
}

impl Broken {
    /// The model itself is wrong.
    pub const fn model(what: &'static str) -> Self {
        Self { line: Line::Model, what }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.line, self.what)
    }
}

const fn must(holds: bool, line: Line, what: &'static str) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { line, what }) }
}

/// Before a pod or an attachment is given away, or the node is said to be out of service.
pub fn at_release(world: &World, incident: &Incident) -> Result<(), Broken> {
    let truth = &world.truth;
    let was_alive = incident.look.is_none_or(|look| look.was_alive);
    must(truth.confirmed, Line::S1, "released though no read found the machine off")?;
    must(!was_alive, Line::S1, "released though a sign of life was seen")?;
    // Whoever else gives it power within the seconds between read and release shows by its boot.
    let is_off = !world.node.powered || truth.powered_by_other;
    must(is_off, Line::S1, "released while the machine is on and its old pods may write")?;
    must(world.node.quarantined, Line::S9, "released without quarantine")
}

/// Before our quarantine is lifted.
pub fn at_unquarantine(world: &World, incident: &Incident) -> Result<(), Broken> {
    let truth = &world.truth;
    let was_well = incident.look.is_some_and(|look| !look.was_ill);
    let is_clean = !world.node.pod && !world.node.attached;
    let may = !truth.released || (truth.rebooted && was_well && is_clean);
    must(may, Line::S9, "quarantine lifted before another boot was well and clean")
}

/// Before anything of ours is sent, to the device or to the cluster.
pub fn at_send(world: &World, pid: Pid) -> Result<(), Broken> {
    let leads = world.lease.holder == Holder::Process(pid);
    must(leads, Line::S4, "sent by a process that does not hold the lease")
}

/// Before a command is sent to the device.
pub fn at_command(world: &World, pid: Pid, action: Action) -> Result<(), Broken> {
    let truth = &world.truth;
    let incident = world.process(pid).incident();
    let incident = incident.ok_or(Broken::model("a command without an incident"))?;
    let is_blind = truth.unread.is_some_and(|(last, was_heard)| last == action || !was_heard);
    must(!is_blind, Line::S5, "a command after another that no read was made of")?;
    if action == Action::Off {
        let fresh = incident.look.filter(|look| u64::from(look.age_ms) <= VIEW_AGE_MAX.0);
        // The boot that pods were released from has to end, whatever the trigger says.
        let must_end = truth.released && !truth.rebooted;
        let may = must_end || fresh.is_some_and(|look| look.was_ill);
        return must(may, Line::S10, "off though the trigger did not hold at a fresh look");
    }
    let may_land = |late: Option<Action>| late == Some(Action::Off);
    let late = world.device.late.map(|late| late.action);
    let other = Pid::BOTH.into_iter().filter(|other| *other != pid);
    let sending = other.map(|other| world.process(other).sending.map(|one| one.action));
    let is_settled = !may_land(late) && !sending.into_iter().any(may_land);
    must(is_settled, Line::S6, "on while an off may still land after it")
}

/// Before a call is made: its intent stands in a record that the API server took.
pub fn at_call(is_recorded: bool) -> Result<(), Broken> {
    must(is_recorded, Line::S5, "called before the intent was recorded")
}

/// When a record is written, by a leader of this epoch.
pub fn at_write(was_current: bool, epoch_before: u64, epoch: u8) -> Result<(), Broken> {
    must(was_current, Line::S4, "a record written over one that its writer had not read")?;
    let is_newer = u64::from(epoch) >= epoch_before;
    must(is_newer, Line::S4, "a newer leader's record written over by an older one")
}

/// In every moment.
pub fn always(world: &World, setting: &Setting) -> Result<(), Broken> {
    let cycles_max = setting.restarts + 1;
    must(u32::from(world.truth.cycles) <= cycles_max, Line::L5, "too many power cycles")?;
    if !world.is_over() || !is_quiet(world) {
        return Ok(());
    }
    let record = &world.stored.record;
    let told = record.parked.as_ref().is_some_and(|one| !one.powered_off_by_us.is_empty());
    let is_told = record.phase == Phase::Parked && told;
    let left_off = !world.node.powered && world.truth.off_by_us;
    must(!left_off || is_told, Line::S6, "left off by us, and nobody is told")?;
    let marked = world.node.quarantined || world.node.out_of_service;
    let is_final = matches!(record.phase, Phase::Final(_));
    must(!(is_final && marked), Line::L4, "the incident is over and our marks stand")
}

/// Nothing that was decided is still to be done by anybody.
fn is_quiet(world: &World) -> bool {
    let is_sending = |pid: &Pid| world.process(*pid).sending.is_some();
    world.device.late.is_none() && !Pid::BOTH.iter().any(is_sending)
}
