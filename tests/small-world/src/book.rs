//! The book of decisions: each question is put to `decide` once, and its answer kept.
//!
//! Records stand in it in their simplest form, each once; what follows from one stands with it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use node_remedy_decide::{
    Access, AttachmentView, Binding, Crossing, Deletion, Effect, End, Event, Execution, Failure,
    FailureKind, Feed, Freshness, Kind, Method, NeededFor, Node, NodeView, OpenDecision, Opening,
    People, Plan, PlugState, PodView, Record, RunPolicy, Signs, SlotAnswer, Span, Stage, Verdict,
    View, VolumeView, open, step,
};

use crate::invariants::Broken;
use crate::same::{BOOT, LIFE, NOW, Since, simplest};
use crate::world::{Heard, Pid, Setting, TASKS_MAX, Task, Todo};

/// What the device calls the machine, and the node itself.
const IDENTITY: (&str, &str) = ("system-uuid", "4c4c4544-0042");
/// The node's UID.
const NODE_UID: &str = "uid-a";
/// Without a next look a controller looks after this.
pub const SLEEP_MAX_MS: u32 = 60_000;

/// A record in its simplest form, and what follows from it.
pub struct Known {
    number: u32,
    /// The record.
    pub record: Record,
    decided: RefCell<HashMap<Asked, Rc<Decided>>>,
    later: RefCell<HashMap<Since, Rc<Known>>>,
}

/// What happened to a run, as far as decisions tell it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Asked {
    /// The world was looked at.
    Looked(Sight),
    /// The call under way ended.
    Ended(Heard),
    /// The budget answered.
    Slot {
        /// A slot is held.
        granted: bool,
    },
    /// This process took the record over.
    Adopted {
        /// Its fencing token.
        epoch: u8,
        /// Which it is.
        pid: Pid,
    },
}

/// What was seen of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a small world, each by itself")]
pub struct Sight {
    /// The API server's own word.
    pub is_live: bool,
    /// The signs of life are those from before the run.
    pub is_old: bool,
    /// The trigger holds.
    pub ill: bool,
    /// Our taint stands.
    pub quarantined: bool,
    /// The out-of-service taint stands.
    pub out_of_service: bool,
    /// The pod is there.
    pub pod: bool,
    /// Its volume is attached.
    pub attached: bool,
}

/// What comes of a decision.
#[derive(Debug)]
pub struct Decided {
    /// The new record.
    pub record: Rc<Known>,
    /// What is to be done.
    pub todo: Todo,
    /// When to look again.
    pub next_look_ms: u32,
}

/// All records met so far, and the plan that they are about.
pub struct Book {
    plan: Plan,
    policy: RunPolicy,
    known: RefCell<HashMap<Record, Rc<Known>>>,
    questions: Cell<u64>,
}

impl Book {
    /// An empty one.
    pub fn new(setting: &Setting) -> Self {
        Self {
            plan: plan(),
            policy: policy(setting),
            known: RefCell::default(),
            questions: Cell::new(0),
        }
    }

    /// How many different records were met.
    pub fn records(&self) -> usize {
        self.known.borrow().len()
    }

    /// How many different questions were put to `decide`.
    pub fn questions(&self) -> u64 {
        self.questions.get()
    }

    /// The record of a run that A has just opened.
    pub fn opened(&self) -> Rc<Known> {
        let sight = Sight {
            is_live: true,
            is_old: false,
            ill: true,
            quarantined: false,
            out_of_service: false,
            pod: true,
            attached: true,
        };
        let view = view(&sight, &signs());
        let (plan, policy) = (&self.plan, &self.policy);
        let opening = Opening { plan, policy, view: &view, epoch: 1, process: Pid::A.name() };
        match open(&opening, NOW) {
            OpenDecision::Open(record) => self.know(*record, Since::default()),
            OpenDecision::Wait { .. } | OpenDecision::Refuse(_) => {
                unreachable!("a lost node behind an open gate")
            }
        }
    }

    /// The record in its simplest form.
    pub fn know(&self, record: Record, since: Since) -> Rc<Known> {
        let record = simplest(record, since);
        let mut known = self.known.borrow_mut();
        if let Some(found) = known.get(&record) {
            return found.clone();
        }
        let number = u32::try_from(known.len()).unwrap_or(u32::MAX);
        let new = Rc::new(Known {
            number,
            record: record.clone(),
            decided: RefCell::default(),
            later: RefCell::default(),
        });
        known.insert(record, new.clone());
        new
    }

    /// What a record looks like after this.
    pub fn later(&self, known: &Known, since: Since) -> Rc<Known> {
        if let Some(found) = known.later.borrow().get(&since) {
            return found.clone();
        }
        let later = self.know(known.record.clone(), since);
        known.later.borrow_mut().insert(since, later.clone());
        later
    }

    /// Puts a question to `decide`, or reads its answer up.
    pub fn decide(&self, known: &Known, asked: Asked) -> Result<Rc<Decided>, Broken> {
        if let Some(found) = known.decided.borrow().get(&asked) {
            return Ok(found.clone());
        }
        self.questions.set(self.questions.get() + 1);
        let transition = self.step(known.record.clone(), asked)?;
        let next_look = transition.next_look.map(|at| at.since(NOW).0);
        let decided = Rc::new(Decided {
            record: self.know(transition.record, Since::default()),
            todo: todo_of(&transition.effects)?,
            next_look_ms: next_look
                .and_then(|ms| u32::try_from(ms).ok())
                .map_or(SLEEP_MAX_MS, |ms| ms.min(SLEEP_MAX_MS)),
        });
        known.decided.borrow_mut().insert(asked, decided.clone());
        Ok(decided)
    }

    fn step(&self, record: Record, asked: Asked) -> Result<node_remedy_decide::Transition, Broken> {
        let (plan, policy) = (&self.plan, &self.policy);
        let seen;
        let event = match asked {
            Asked::Looked(sight) => {
                let signs = if sight.is_old { record.signs_at_open.clone() } else { signs() };
                seen = view(&sight, &signs);
                Event::Looked(&seen)
            }
            Asked::Ended(heard) => {
                let open = record.in_flight().ok_or(Broken::model("an end of no call"))?;
                Event::Ended { op: open.id, end: end_of(heard) }
            }
            Asked::Slot { granted: true } => Event::Slot(SlotAnswer::Granted),
            Asked::Slot { granted: false } => Event::Slot(SlotAnswer::Refused),
            Asked::Adopted { epoch, pid } => {
                Event::Adopted { epoch: u64::from(epoch), process: pid.name().to_owned() }
            }
        };
        Ok(step(plan, policy, record, event, NOW))
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Known {}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "record {} in {:?}", self.number, self.record.phase)
    }
}

/// One node behind one BMC.
fn plan() -> Plan {
    let (field, value) = IDENTITY;
    let bmc = Method {
        name: "bmc".to_owned(),
        kind: Kind::Power(Feed::Whole),
        device: "bmc".to_owned(),
        device_kind: "ipmi".to_owned(),
        plug: String::new(),
        must_success: false,
        late_effect: Span::ZERO,
        binding: Binding::Reported { expected: vec![(field.to_owned(), value.to_owned())] },
        witness: None,
    };
    let stage = Stage {
        name: "power".to_owned(),
        execution: Execution::All,
        methods: vec![0],
        needed_for: NeededFor::NextStep,
    };
    Plan {
        node: Node { name: "node-a".to_owned(), uid: NODE_UID.to_owned() },
        methods: vec![bmc],
        isolation: Vec::new(),
        power: vec![stage],
        recovery: Vec::new(),
    }
}

/// Short times, so that few looks cover them; those of the lease and of foreign calls are real.
fn policy(setting: &Setting) -> RunPolicy {
    RunPolicy {
        retries: setting.retries,
        restarts: setting.restarts,
        off_timeout: Span::seconds(2),
        on_timeout: Span::seconds(2),
        release_timeout: Span::seconds(6),
        cleanup_timeout: Span::seconds(10),
        recover_timeout: Span::seconds(10),
        gate_timeout: Span::seconds(4),
        device_timeout: Span::seconds(10),
        ..RunPolicy::default()
    }
}

fn signs() -> Signs {
    Signs { boot_id: BOOT.to_string(), lease_renewed: Some(LIFE), reported: Some(LIFE) }
}

fn view(sight: &Sight, signs: &Signs) -> View {
    let volume = VolumeView { name: "pv-db-0".to_owned(), safe_detach: false, access: Access::One };
    let pod = PodView {
        uid: "db-0".to_owned(),
        name: "default/db-0".to_owned(),
        exempt: None,
        volumes: vec![volume],
        ready: false,
        budget_forbids: false,
        deletion: Deletion::NotAsked,
        finalizers: Vec::new(),
    };
    let attachment = AttachmentView {
        uid: "va-1".to_owned(),
        name: "va-1".to_owned(),
        volume: "pv-db-0".to_owned(),
        deleting: false,
        finalizers: Vec::new(),
    };
    let node = NodeView {
        uid: NODE_UID.to_owned(),
        signs: signs.clone(),
        conditions: Vec::new(),
        lease_duration: Span::seconds(40),
        lease_seen_at: None,
        quarantined: sight.quarantined,
        cordoned: false,
        cordoned_by_us: false,
        out_of_service: sight.out_of_service,
        out_of_service_by_us: sight.out_of_service,
        volumes_in_use: Vec::new(),
    };
    View {
        taken_at: NOW,
        freshness: if sight.is_live { Freshness::Live } else { Freshness::Cached },
        node: Some(node),
        pods: sight.pod.then_some(pod).into_iter().collect(),
        attachments: sight.attached.then_some(attachment).into_iter().collect(),
        trigger: if sight.ill {
            Crossing::Crossed { since: node_remedy_decide::Time(0) }
        } else {
            Crossing::Clear { ready: true, next_look: None }
        },
        gate: Verdict::default(),
        people: People::default(),
        dumping: false,
        hosts_us: false,
        neighbour_silent: None,
    }
}

fn end_of(heard: Heard) -> End {
    let answered = |state| {
        let (field, value) = IDENTITY;
        End::Succeeded { state, identity: vec![(field.to_owned(), value.to_owned())] }
    };
    let not_sent = |kind| End::NotAttempted(Failure { kind, detail: String::new() });
    match heard {
        Heard::On => answered(PlugState::On),
        Heard::Off => answered(PlugState::Off),
        Heard::HeldBack => not_sent(FailureKind::Cancelled),
        Heard::NotLeader => not_sent(FailureKind::Other),
        Heard::Unreachable => not_sent(FailureKind::Unreachable),
        Heard::Nothing => End::Indeterminate,
    }
}

/// What is to be done, in the controller's order: what gives something away first.
fn todo_of(effects: &[Effect]) -> Result<Todo, Broken> {
    let mut tasks = Vec::with_capacity(TASKS_MAX);
    for effect in effects {
        match effect {
            Effect::Look => tasks.push(Task::Look),
            Effect::TakeSlot => tasks.push(Task::TakeSlot),
            Effect::Call(_) => tasks.push(Task::Call),
            Effect::Quarantine => tasks.push(Task::Quarantine),
            Effect::Unquarantine => tasks.push(Task::Unquarantine),
            Effect::OutOfService => tasks.push(Task::OutOfService),
            Effect::LiftOutOfService => tasks.push(Task::LiftOutOfService),
            Effect::DeletePods(_) => tasks.push(Task::DeletePods),
            Effect::GracefulDelete(_) => tasks.push(Task::GracefulDelete),
            Effect::DeleteAttachments(_) => tasks.push(Task::DeleteAttachments),
            // One node: the budget has a slot for it whether it gives one back or not.
            Effect::ReturnSlot => {}
            Effect::HandOver | Effect::Cordon | Effect::Uncordon => {
                return Err(Broken::model("an effect that this world has no use for"));
            }
        }
    }
    tasks.sort_by_key(|task| !task.gives_away());
    Todo::of(&tasks).ok_or(Broken::model("more to do at once than there is room for"))
}

impl Task {
    /// Whether it lets somebody else have what the node had.
    pub const fn gives_away(self) -> bool {
        matches!(self, Self::OutOfService | Self::DeletePods | Self::DeleteAttachments)
    }

    /// Whether it writes to the cluster.
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Look | Self::TakeSlot | Self::Call)
    }
}
