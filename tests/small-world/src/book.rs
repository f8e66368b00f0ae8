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
        release_timeout: Span::seconds(4),
        cleanup_timeout: Span::seconds(10),
        recover_timeout: Span::seconds(5),
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
            Effect::Look | Effect::ReturnSlot => {}
            Effect::HandOver | Effect::Cordon | Effect::Uncordon => {
                return Err(Broken::model("an effect that this world has no use for"));
            }
        }
    }
    tasks.sort_by_key(|task| !task.gives_away());
    let looks = effects.contains(&Effect::Look);
    Todo::of(&tasks, looks).ok_or(Broken::model("more to do at once than there is room for"))
}

impl Task {
    /// Whether it lets somebody else have what the node had.
    pub const fn gives_away(self) -> bool {
        matches!(self, Self::OutOfService | Self::DeletePods | Self::DeleteAttachments)
    }

    /// Whether it writes to the cluster.
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::TakeSlot | Self::Call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Setting;

    /// Numbers that look drawn by lot, the same each time.
    struct Lot(u64);

    impl Lot {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }
    }

    /// A run on whole records beside one on simplest forms: the same happens to both.
    struct Twins<'a> {
        book: &'a Book,
        whole: Record,
        now: u64,
        life: u64,
        boot: u64,
        simple: Rc<Known>,
        told: Vec<String>,
    }

    impl Twins<'_> {
        fn pass(&mut self, since: Since) {
            self.now += since.ms;
            self.life += u64::from(since.reported);
            self.boot += u64::from(since.rebooted);
            self.simple = self.book.later(&self.simple, since);
            self.told.push(format!("{since:?}"));
        }

        fn decide(&mut self, asked: Asked) -> Decided {
            let signs = Signs {
                boot_id: self.boot.to_string(),
                lease_renewed: Some(node_remedy_decide::Time(self.life)),
                reported: Some(node_remedy_decide::Time(self.life)),
            };
            let now = node_remedy_decide::Time(self.now);
            let record = self.whole.clone();
            let mut seen;
            let event = match asked {
                Asked::Looked(sight) => {
                    seen = view(&sight, &signs);
                    seen.taken_at = now;
                    Event::Looked(&seen)
                }
                Asked::Ended(heard) => {
                    Event::Ended { op: record.in_flight().unwrap().id, end: end_of(heard) }
                }
                Asked::Slot { .. } => Event::Slot(SlotAnswer::Granted),
                Asked::Adopted { epoch, pid } => {
                    Event::Adopted { epoch: epoch.into(), process: pid.name().to_owned() }
                }
            };
            let whole = step(&self.book.plan, &self.book.policy, record, event, now);
            let simple = self.book.decide(&self.simple, asked).unwrap();
            self.told.push(format!("{asked:?} -> {:?} {:?}", whole.record.phase, whole.effects));
            let expected = Decided {
                record: simple.record.clone(),
                todo: todo_of(&whole.effects).unwrap(),
                next_look_ms: whole.next_look.map_or(SLEEP_MAX_MS, |at| {
                    u32::try_from(at.0 - now.0).unwrap().min(SLEEP_MAX_MS)
                }),
            };
            let same = expected.todo == simple.todo
                && expected.next_look_ms == simple.next_look_ms
                && whole.record.phase == simple.record.record.phase;
            assert!(
                same,
                "{}\nwhole {expected:?} {:#?}\nsimple {simple:?} {:#?}",
                self.told.join("\n"),
                whole.record,
                self.simple.record
            );
            self.whole = whole.record;
            self.simple = simple.record.clone();
            expected
        }
    }

    fn run_of(seed: u64, setting: &Setting, book: &Book) -> usize {
        let mut lot = Lot(seed);
        let mut opened = book.opened().record.clone();
        opened.signs_at_open = signs();
        let mut twins = Twins {
            book,
            whole: opened,
            now: NOW.0,
            life: LIFE.0,
            boot: BOOT,
            simple: book.opened(),
            told: vec![format!("seed {seed} {setting:?}")],
        };
        let mut sight = Sight {
            is_live: true,
            is_old: false,
            ill: true,
            quarantined: false,
            out_of_service: false,
            pod: true,
            attached: true,
        };
        let mut on = true;
        let mut decided = Decided {
            record: twins.simple.clone(),
            todo: Todo::of(&[], true).unwrap(),
            next_look_ms: SLEEP_MAX_MS,
        };
        for step in 0..150 {
            let mut asked = None;
            if decided.todo.looks() {
                asked = Some(Asked::Looked(sight));
            }
            while let Some(task) = decided.todo.first() {
                decided.todo = decided.todo.rest();
                match task {
                    Task::TakeSlot => asked = Some(Asked::Slot { granted: true }),
                    Task::Call => {
                        if lot.below(6) == 0 {
                            let ms = [1_000, 3_000, 15_000][usize::try_from(lot.below(3)).unwrap()];
                            twins.pass(Since { ms, ..Since::default() });
                        }
                        let action = twins.whole.in_flight().unwrap().action;
                        let luck = lot.below(8);
                        if luck > 1 && action == node_remedy_decide::Action::Off {
                            on = false;
                            (sight.ill) = true;
                        }
                        if luck > 1 && action == node_remedy_decide::Action::On {
                            on = true;
                        }
                        let read = if on { Heard::On } else { Heard::Off };
                        let effect = twins.whole.in_flight().unwrap().is_effect();
                        let heard = match (luck, effect) {
                            (0, true) | (2, true) => Heard::Nothing,
                            (0 | 2, false) => Heard::Unreachable,
                            (7, true) => Heard::HeldBack,
                            (6, _) if lot.below(3) == 0 => Heard::NotLeader,
                            _ => read,
                        };
                        asked = Some(Asked::Ended(heard));
                    }
                    Task::Quarantine => sight.quarantined = true,
                    Task::Unquarantine => sight.quarantined = false,
                    Task::OutOfService => sight.out_of_service = true,
                    Task::LiftOutOfService => sight.out_of_service = false,
                    Task::DeletePods | Task::GracefulDelete => sight.pod = lot.below(3) == 0,
                    Task::DeleteAttachments => sight.attached = lot.below(3) == 0,
                }
            }
            if matches!(twins.whole.phase, node_remedy_decide::Phase::Final(_)) {
                return step;
            }
            let luck = lot.below(24);
            if luck == 0 && twins.whole.in_flight().is_some() {
                asked = Some(Asked::Adopted { epoch: 1, pid: Pid::B });
            } else if luck == 1 && twins.whole.in_flight().is_none() {
                on = !on;
                asked = Some(Asked::Looked(sight));
            } else if luck < 5 && on && twins.whole.in_flight().is_none() {
                let rebooted = lot.below(2) == 0;
                sight.ill = false;
                twins.pass(Since { reported: true, rebooted, ..Since::default() });
            }
            decided = match asked {
                Some(asked) => {
                    let asked = match asked {
                        Asked::Looked(_) => Asked::Looked(sight),
                        Asked::Ended(_) | Asked::Slot { .. } | Asked::Adopted { .. } => asked,
                    };
                    twins.decide(asked)
                }
                None => {
                    let ms = u64::from(decided.next_look_ms);
                    let late = if lot.below(5) == 0 { 15_000 } else { 0 };
                    let reported = on && !sight.ill;
                    twins.pass(Since { ms: ms + late, reported, ..Since::default() });
                    twins.decide(Asked::Looked(sight))
                }
            };
        }
        150
    }

    #[test]
    fn a_run_on_simplest_forms_goes_the_way_of_one_on_whole_records() {
        let setting = Setting::default();
        let book = Book::new(&setting);
        let ended = (0..20_000).filter(|seed| run_of(*seed, &setting, &book) < 150).count();
        assert!(ended > 1_000, "only {ended} runs came to an end");
        assert!(book.records() > 1_000, "only {} records", book.records());
    }
}
