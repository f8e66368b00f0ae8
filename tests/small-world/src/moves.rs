//! What can happen next: to a process, to the node, to its device, to the time.

use std::fmt;

use node_remedy_decide::{Action, Phase};

use crate::book::{Book, Known};
use crate::clock;
use crate::device;
use crate::invariants::{Broken, always};
use crate::process;
use crate::same::Since;
use crate::same_world::{self, Places};
use crate::world::{Health, Pid, Setting, Stage, Task, World};

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// A process does something, or something is done to it.
    Process(Pid, Step),
    /// The time of the next thing that is due comes.
    Wait,
    /// The machine's kubelet runs, in a new boot.
    Boot,
    /// A command that the device took long ago is carried out.
    LateLands,
    /// The device answers again.
    DeviceAnswers,
    /// The device does not answer any more.
    DeviceFails,
    /// The node was only cut off, and is back.
    NodeReturns,
    /// The node that was well is lost again.
    NodeIsLost,
    /// The machine reboots by itself.
    MachineReboots,
    /// The machine hangs while it boots.
    MachineHangs,
    /// Somebody, or the mains, gives the machine its power back.
    PowerReturns,
}

/// What a process does, or what is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Takes the lease.
    TakeLease,
    /// Renews the lease, or learns that it is lost.
    Renew,
    /// Reads the record and takes the incident up.
    TakeUp,
    /// Reads the world and decides.
    Look,
    /// Decides on what a cache says, which is what was before the incident.
    LookAtCache,
    /// Writes the record.
    Write(Sent),
    /// Reads what became of its write.
    Settle,
    /// Does the next thing that was decided.
    Act(Went),
    /// Stops after the gate, before the bytes of a call leave.
    PauseInCall,
    /// Stops.
    Pause,
    /// Goes on.
    Resume,
    /// Dies, and is started again.
    Crash,
    /// Loses its way to the API server.
    CutOff,
    /// Has it again.
    Reconnect,
}

/// How a write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It was answered.
    Answered,
    /// It took, and the answer was lost.
    ReplyLost,
    /// It did not take.
    Failed,
}

/// How an act went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Went {
    /// As it should.
    Well,
    /// A call acted and was not answered; a write to the cluster did not take.
    Unanswered,
    /// The device says yes and does nothing.
    Lied,
    /// The device does not answer, and may do it later.
    Late,
}

impl Move {
    /// The same, with the processes' names before they changed places.
    #[must_use]
    pub const fn told(self, places: Places) -> Self {
        match (self, places) {
            (Self::Process(pid, step), Places::Swapped) => Self::Process(pid.other(), step),
            (as_it_is, Places::AsBefore | Places::Swapped) => as_it_is,
        }
    }

    /// Whether something goes wrong with it.
    pub const fn is_fault(self) -> bool {
        match self {
            Self::Wait | Self::Boot | Self::LateLands | Self::DeviceAnswers => false,
            Self::DeviceFails
            | Self::NodeReturns
            | Self::NodeIsLost
            | Self::MachineReboots
            | Self::MachineHangs
            | Self::PowerReturns => true,
            Self::Process(_, step) => step.is_fault(),
        }
    }
}

impl Step {
    const fn is_fault(self) -> bool {
        match self {
            Self::TakeLease
            | Self::Renew
            | Self::TakeUp
            | Self::Look
            | Self::Settle
            | Self::Resume
            | Self::Reconnect
            | Self::Write(Sent::Answered)
            | Self::Act(Went::Well) => false,
            Self::LookAtCache
            | Self::Write(Sent::ReplyLost | Sent::Failed)
            | Self::Act(Went::Unanswered | Went::Lied | Went::Late)
            | Self::PauseInCall
            | Self::Pause
            | Self::Crash
            | Self::CutOff => true,
        }
    }
}

/// Everything that can happen next, with things that go wrong or without.
pub fn moves(world: &World, setting: &Setting, with_faults: bool) -> Vec<Move> {
    let mut moves = Vec::with_capacity(16);
    for pid in Pid::BOTH {
        let steps = process::steps(world, pid, setting);
        moves.extend(steps.into_iter().map(|step| Move::Process(pid, step)));
    }
    // Who can do something does it at once; to be slow is to be paused.
    let is_busy = moves.iter().any(|one| is_urgent(*one)) || world.node.boots_in_ms == Some(0);
    if !is_busy && clock::next_due(world).is_some() {
        moves.push(Move::Wait);
    }
    let can_have_booted = |left_ms| left_ms <= device::BOOT_MS_MAX - device::BOOT_MS_MIN;
    if world.node.boots_in_ms.is_some_and(can_have_booted) {
        moves.push(Move::Boot);
    }
    if world.device.late.is_some() {
        moves.push(Move::LateLands);
    }
    if world.device.dead {
        moves.push(Move::DeviceAnswers);
    }
    if with_faults {
        for pid in Pid::BOTH {
            let faults = process_faults(world, pid);
            moves.extend(faults.into_iter().map(|step| Move::Process(pid, step)));
        }
        node_faults(world, &mut moves);
    }
    moves
}

const fn is_urgent(one: Move) -> bool {
    match one {
        Move::Process(_, Step::Resume | Step::Reconnect) => false,
        Move::Process(..) => true,
        Move::Wait
        | Move::Boot
        | Move::LateLands
        | Move::DeviceAnswers
        | Move::DeviceFails
        | Move::NodeReturns
        | Move::NodeIsLost
        | Move::MachineReboots
        | Move::MachineHangs
        | Move::PowerReturns => false,
    }
}

/// What can go wrong with a process that leads; a standby that does nothing differs in nothing.
fn process_faults(world: &World, pid: Pid) -> Vec<Step> {
    let process = world.process(pid);
    if process.health != Health::Up || process.term.is_none() {
        return Vec::new();
    }
    // Who is cut off does nothing that he would not do before he is paused, or dies.
    let mut faults =
        if process.cut_off { Vec::new() } else { vec![Step::Crash, Step::Pause, Step::CutOff] };
    let Some(incident) = process.incident() else { return faults };
    match incident.stage {
        Stage::Observing => faults.push(Step::LookAtCache),
        Stage::Recording(_) | Stage::ActingFirst(..) if process.cut_off => {}
        Stage::Recording(_) => {
            faults.extend([Sent::ReplyLost, Sent::Failed].map(Step::Write));
        }
        Stage::Settling(_) | Stage::ActingFirst(..) => {}
        Stage::Acting(todo) => {
            let effect = incident.held.record.in_flight().filter(|one| one.is_effect());
            match todo.first() {
                Some(Task::Call) if !world.device.dead => {
                    faults.push(Step::Act(Went::Unanswered));
                    if effect.is_some() {
                        faults.extend([Step::Act(Went::Lied), Step::PauseInCall]);
                    }
                    if effect.is_some() && world.device.late.is_none() {
                        faults.push(Step::Act(Went::Late));
                    }
                }
                Some(task) if task.is_write() => faults.push(Step::Act(Went::Unanswered)),
                Some(_) | None => {}
            }
        }
    }
    faults
}

fn node_faults(world: &World, moves: &mut Vec<Move>) {
    let node = &world.node;
    // Whether a device answers shows when it is called.
    let calls = |pid: &Pid| {
        let incident = world.process(*pid).incident();
        incident.is_some_and(
            |one| matches!(one.stage, Stage::Acting(todo) if todo.first() == Some(Task::Call)),
        )
    };
    if !world.device.dead && Pid::BOTH.iter().any(calls) {
        moves.push(Move::DeviceFails);
    }
    if matches!(world.phase(), Phase::Final(_)) {
        return;
    }
    match (node.powered, node.kubelet) {
        (true, true) => moves.push(Move::NodeIsLost),
        (true, false) if node.boots_in_ms.is_some() => moves.push(Move::MachineHangs),
        (true, false) => moves.extend([Move::NodeReturns, Move::MachineReboots]),
        (false, _) => moves.push(Move::PowerReturns),
    }
}

/// Lets it happen; the world that comes of it is in its simplest form, in which the processes may
/// have changed places.
pub fn play(
    world: &World,
    one: Move,
    setting: &Setting,
    book: &Book,
) -> Result<(World, Places), Broken> {
    let mut next = world.clone();
    match one {
        Move::Process(pid, step) => process::play(&mut next, pid, step, setting, book)?,
        Move::Wait => clock::wait(&mut next, book),
        Move::Boot => {
            next.node.boots_in_ms = None;
            report(&mut next, book);
        }
        Move::NodeReturns => report(&mut next, book),
        Move::NodeIsLost => {
            next.node.kubelet = false;
            next.node.ill = true;
        }
        Move::MachineReboots => {
            next.node.boot_ended = true;
            next.node.boots_in_ms = Some(device::BOOT_MS_MAX);
        }
        Move::MachineHangs => next.node.boots_in_ms = None,
        Move::PowerReturns => {
            // A cycle that somebody else ended is none of ours.
            next.truth.cycles = next.truth.cycles.saturating_sub(u8::from(next.truth.off_by_us));
            next.truth.powered_by_other = true;
            device::give_power(&mut next);
        }
        Move::LateLands => {
            let late = next.device.late.take();
            let late = late.ok_or(Broken::model("nothing is late"))?;
            device::land_late(&mut next, late.action);
        }
        Move::DeviceAnswers => next.device.dead = false,
        Move::DeviceFails => next.device.dead = true,
    }
    // Kubernetes detaches what no pod uses, where the kubelet has unmounted it or the node is out of
    // service.
    next.node.attached &= next.node.pod || !(next.node.kubelet || next.node.out_of_service);
    always(&next, setting)?;
    let places = same_world::simplify(&mut next, setting, book);
    Ok((next, places))
}

/// The kubelet reports, its boot too.
fn report(world: &mut World, book: &Book) {
    let rebooted = std::mem::take(&mut world.node.boot_ended);
    world.truth.rebooted |= rebooted;
    world.node.kubelet = true;
    world.node.ill = false;
    world.truth.alive_since = true;
    let since = Since { reported: true, rebooted, ..Since::default() };
    for_each_record(world, |known| *known = book.later(known, since));
}

/// Does something to every record that anybody has.
pub fn for_each_record(world: &mut World, mut change: impl FnMut(&mut std::rc::Rc<Known>)) {
    change(&mut world.stored);
    for pid in Pid::BOTH {
        let Some(incident) = world.process_mut(pid).incident_mut() else { continue };
        change(&mut incident.held);
        match &mut incident.stage {
            Stage::Observing | Stage::Acting(_) => {}
            Stage::Recording(meant) | Stage::Settling(meant) | Stage::ActingFirst(_, meant) => {
                change(&mut meant.record);
            }
        }
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid, step) => write!(f, "{} {step}", pid.name()),
            Self::Wait => f.write_str("time passes"),
            Self::Boot => f.write_str("the machine has booted and its kubelet reports"),
            Self::LateLands => f.write_str("the device carries out the late command"),
            Self::DeviceAnswers => f.write_str("the device answers again"),
            Self::DeviceFails => f.write_str("the device stops answering"),
            Self::NodeReturns => f.write_str("the node is back"),
            Self::NodeIsLost => f.write_str("the node is lost again"),
            Self::MachineReboots => f.write_str("the machine reboots by itself"),
            Self::MachineHangs => f.write_str("the machine hangs while it boots"),
            Self::PowerReturns => f.write_str("somebody else gives the machine its power back"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TakeLease => "takes the lease",
            Self::Renew => "renews the lease, or learns that it is lost",
            Self::TakeUp => "reads the record, takes the incident up and decides",
            Self::Look => "looks and decides",
            Self::LookAtCache => "is woken by a cache that is behind, and decides",
            Self::Write(Sent::Answered) => "writes the record",
            Self::Write(Sent::ReplyLost) => "writes the record; the reply is lost",
            Self::Write(Sent::Failed) => "fails to write the record",
            Self::Settle => "reads what became of its write",
            Self::Act(Went::Well) => "acts",
            Self::Act(Went::Unanswered) => "acts; it is not answered",
            Self::Act(Went::Lied) => "acts; the device says yes and does nothing",
            Self::Act(Went::Late) => "acts; the device does not answer and may do it later",
            Self::PauseInCall => "is paused between the lease gate and the send",
            Self::Pause => "is paused",
            Self::Resume => "goes on",
            Self::Crash => "dies and is started again",
            Self::CutOff => "loses its way to the API server",
            Self::Reconnect => "reaches the API server again",
        })
    }
}

/// What a call does, for the trace.
pub const fn verb(action: Action) -> &'static str {
    match action {
        Action::Status => "read",
        Action::Off => "off",
        Action::On => "on",
        Action::Reset => "reset",
        Action::Monitor => "probe",
    }
}
