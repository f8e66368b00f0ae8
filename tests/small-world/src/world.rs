//! One moment of the small world: plain values, small enough to keep millions of them.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use node_remedy_decide::{Action, Phase};

use crate::book::{Book, Known};
use crate::bug::Bug;
use crate::invariants::Broken;

/// How large the world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Things that go wrong in one order of events.
    pub faults: u8,
    /// Further tries of a step.
    pub retries: u32,
    /// Flows back to New.
    pub restarts: u32,
    /// What is broken on purpose.
    pub bug: Option<Bug>,
    /// What a process holds in vain is kept: slower, and the same comes of it.
    pub keeps_vain: bool,
}

impl Default for Setting {
    /// What continuous integration walks through.
    fn default() -> Self {
        Self { faults: 3, retries: 1, restarts: 1, bug: None, keeps_vain: false }
    }
}

impl Setting {
    /// Whether this is what is broken on purpose.
    pub fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}

/// One of the two controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pid {
    /// The one that leads at the beginning.
    A,
    /// The other replica.
    B,
}

impl Pid {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

/// Everything that tells one moment from another. All times in it are seen from now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// What the API server has as the NodeFence's status.
    pub stored: Rc<Known>,
    /// The leader lease.
    pub lease: Lease,
    /// One controller.
    pub a: Process,
    /// The other.
    pub b: Process,
    /// The Node object and the machine behind it.
    pub node: Node,
    /// What the machine's device is up to.
    pub device: Device,
    /// What only an observer outside knows.
    pub truth: Truth,
}

/// The leader lease, as the API server has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Who holds it.
    pub holder: Holder,
    /// The epoch on it.
    pub epoch: u8,
    /// For how long it has not been renewed; zero while its holder renews it. Capped.
    pub silent_ms: u16,
}

/// Who holds the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// This process.
    Process(Pid),
    /// A process that died, or does not lead any more.
    Gone,
}

/// One controller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    /// Whether it runs.
    pub health: Health,
    /// It does not reach the API server.
    pub cut_off: bool,
    /// Its term as leader, as far as it knows.
    pub term: Option<Term>,
    /// It was paused after the gate and before the bytes of this call left.
    pub sending: Option<Sending>,
}

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Health {
    /// It does what there is to do at once.
    Up,
    /// Stopped between two instructions.
    Paused,
}

/// A call whose bytes are on their way out of a paused process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sending {
    /// What the device will be told.
    pub action: Action,
    /// For how long they can still leave, once another leader has disowned the call.
    pub left_ms: Option<u16>,
}

/// Renewing is a task of its own: whoever goes on after a pause may get so far before it has tried.
/// It is enough to lose a write, take the incident up again, look and write once more.
pub const STEPS_BEFORE_RENEWAL: u8 = 6;

/// A term as leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Term {
    /// Its fencing token.
    pub epoch: u8,
    /// For how long the lease could not be renewed; `None` while it is. Capped.
    pub silent_ms: Option<u16>,
    /// How many steps it may still take before it tries to renew, once it can.
    pub steps_left: u8,
    /// The incident, once it is taken up.
    pub incident: Option<Incident>,
}

/// What a controller has in memory of the incident.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Incident {
    /// The record as it last read or wrote it.
    pub held: Rc<Known>,
    /// Nobody has written another since.
    pub is_current: bool,
    /// What it is doing.
    pub stage: Stage,
    /// An event that waits to be decided on.
    pub pending: Option<Pending>,
    /// It wants to read the world.
    pub look_wanted: bool,
    /// When it will want that by itself.
    pub next_look_ms: u32,
    /// What the last live look saw.
    pub look: Option<Look>,
}

/// Where a controller is on the one path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Waits for something to decide on.
    Observing,
    /// Has decided; the record is to be written.
    Recording(Meant),
    /// Sent the record and heard no good answer; reads what became of it.
    Settling(Meant),
    /// The record is written; does what was decided.
    Acting(Todo),
    /// Only with a bug: does what was decided, and writes the record then.
    ActingFirst(Todo, Meant),
}

/// What was decided and is not known to be written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Meant {
    /// The new record.
    pub record: Rc<Known>,
    /// What comes after it.
    pub todo: Todo,
    /// When to look again.
    pub next_look_ms: u32,
}

/// An event that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pending {
    /// It took the record over.
    Adopted,
    /// The budget's answer.
    Slot {
        /// Whether the slot is held.
        granted: bool,
    },
    /// A call's end.
    Ended(CallOutcome),
}

/// What is known of a call after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallOutcome {
    /// The plug reads on, by the device's word.
    On,
    /// The plug reads off, by the device's word.
    Off,
    /// Held back by ourselves.
    HeldBack,
    /// Not sent, for the lease had run out.
    NotLeader,
    /// Nothing answered, and nothing was sent that could change anything.
    Unreachable,
    /// Nobody knows.
    Nothing,
}

/// What a live look saw, and how long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Look {
    /// Its age; capped.
    pub age_ms: u16,
    /// The trigger held.
    pub was_ill: bool,
    /// A sign of life had come since the machine was last read off.
    pub was_alive: bool,
}

/// Something to do to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the effect of that name in `decide`")]
pub enum Task {
    TakeSlot,
    Call,
    Quarantine,
    Unquarantine,
    OutOfService,
    LiftOutOfService,
    DeletePods,
    GracefulDelete,
    DeleteAttachments,
}

/// No transition asks for more than this.
pub const TASKS_MAX: usize = 6;

/// What is still to be done, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Todo {
    tasks: [Option<Task>; TASKS_MAX],
    looks: bool,
}

impl Todo {
    /// From the first, and whether to look then; `None` if they are too many.
    pub fn of(tasks: &[Task], looks: bool) -> Option<Self> {
        let mut todo = Self { looks, ..Self::default() };
        if tasks.len() > TASKS_MAX {
            return None;
        }
        for (place, task) in todo.tasks.iter_mut().zip(tasks) {
            *place = Some(*task);
        }
        Some(todo)
    }

    /// Whether the world is to be looked at then.
    pub const fn looks(&self) -> bool {
        self.looks
    }

    /// The next one.
    pub fn first(&self) -> Option<Task> {
        self.tasks.first().copied().flatten()
    }

    /// All of them.
    pub fn tasks(&self) -> impl Iterator<Item = Task> {
        self.tasks.iter().copied().flatten()
    }

    /// Without the next one.
    #[must_use]
    pub fn rest(&self) -> Self {
        let mut rest = Self::default();
        for (place, task) in rest.tasks.iter_mut().zip(self.tasks.iter().skip(1)) {
            *place = *task;
        }
        rest
    }
}

/// The Node object and the machine behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a small world, each by itself")]
pub struct Node {
    /// The machine has power.
    pub powered: bool,
    /// It has power and no kubelet yet; the latest at which it has one, unless it hangs.
    pub boots_in_ms: Option<u16>,
    /// Its kubelet runs and reaches the API server.
    pub kubelet: bool,
    /// The boot that it reported last has ended.
    pub boot_ended: bool,
    /// The trigger holds.
    pub ill: bool,
    /// Our NoSchedule taint stands.
    pub quarantined: bool,
    /// The out-of-service taint stands.
    pub out_of_service: bool,
    /// The pod object is bound to it.
    pub pod: bool,
    /// Its volume is attached to it.
    pub attached: bool,
}

/// What the machine's device is up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Device {
    /// It does not answer.
    pub dead: bool,
    /// A command that it took and may still carry out.
    pub late: Option<Late>,
}

/// A command that may still be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Late {
    /// Which.
    pub action: Action,
    /// For how long.
    pub left_ms: u16,
}

/// What only an observer outside knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a small world, each by itself")]
pub struct Truth {
    /// A read after our last command found the machine really off.
    pub confirmed: bool,
    /// Somebody else gave it power since.
    pub powered_by_other: bool,
    /// Its kubelet reported since.
    pub alive_since: bool,
    /// It has no power because of us.
    pub off_by_us: bool,
    /// The last command to the device that no read came after, and whether its answer was heard.
    pub unread: Option<(Action, bool)>,
    /// Something was released.
    pub released: bool,
    /// It runs another boot than before it was last read off.
    pub rebooted: bool,
    /// How often we took a running machine's power, late commands left out.
    pub cycles: u8,
}

impl World {
    /// A leads and has just opened an incident; B stands by; the node is lost and its machine is on.
    ///
    /// # Errors
    /// `decide` opens no incident.
    pub fn beginning(book: &Book) -> Result<Self, Broken> {
        let opened = book.opened()?;
        let incident = Incident {
            held: opened.clone(),
            is_current: true,
            stage: Stage::Observing,
            pending: None,
            look_wanted: true,
            next_look_ms: 0,
            look: None,
        };
        let term = Term { incident: Some(incident), ..Term::new(1) };
        let standby = Process { health: Health::Up, cut_off: false, term: None, sending: None };
        Ok(Self {
            stored: opened,
            lease: Lease { holder: Holder::Process(Pid::A), epoch: 1, silent_ms: 0 },
            a: Process { term: Some(term), ..standby.clone() },
            b: standby,
            node: Node {
                powered: true,
                boots_in_ms: None,
                kubelet: false,
                boot_ended: false,
                ill: true,
                quarantined: false,
                out_of_service: false,
                pod: true,
                attached: true,
            },
            device: Device::default(),
            truth: Truth::default(),
        })
    }

    /// One of the processes.
    pub fn process(&self, pid: Pid) -> &Process {
        match pid {
            Pid::A => &self.a,
            Pid::B => &self.b,
        }
    }

    /// One of the processes, to change it.
    pub fn process_mut(&mut self, pid: Pid) -> &mut Process {
        match pid {
            Pid::A => &mut self.a,
            Pid::B => &mut self.b,
        }
    }

    /// Where the incident stands, by the API server's word.
    pub fn phase(&self) -> Phase {
        self.stored.record.phase
    }

    /// Whether the incident has ended or waits for a person.
    pub fn is_over(&self) -> bool {
        matches!(self.phase(), Phase::Final(_) | Phase::Parked)
    }

    /// Its digest; two worlds of the same one are the same.
    pub fn digest(&self) -> u128 {
        let half = |salt: u8| {
            let mut hasher = std::hash::DefaultHasher::new();
            salt.hash(&mut hasher);
            self.hash(&mut hasher);
            u128::from(hasher.finish())
        };
        (half(0) << 64) | half(1)
    }
}

impl Term {
    /// One that has just begun.
    pub const fn new(epoch: u8) -> Self {
        Self { epoch, silent_ms: None, steps_left: STEPS_BEFORE_RENEWAL, incident: None }
    }
}

impl Incident {
    /// Whether it is about to do something that needs a fresh look.
    pub fn acts_on_evidence(&self) -> bool {
        let (todo, record) = match &self.stage {
            Stage::Observing => return false,
            Stage::Acting(todo) => (todo, &self.held),
            Stage::Recording(meant) | Stage::Settling(meant) | Stage::ActingFirst(_, meant) => {
                (&meant.todo, &meant.record)
            }
        };
        let calls_off = record.record.in_flight().is_some_and(|open| open.action == Action::Off);
        calls_off || todo.tasks().any(Task::gives_away)
    }
}

impl Process {
    /// The incident, if this process works on it.
    pub fn incident(&self) -> Option<&Incident> {
        self.term.as_ref()?.incident.as_ref()
    }

    /// The incident, to change it.
    pub fn incident_mut(&mut self) -> Option<&mut Incident> {
        self.term.as_mut()?.incident.as_mut()
    }
}
