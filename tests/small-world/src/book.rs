//! The book of decisions: each question is put to `decide` once, and its answer kept.
//!
//! Records stand in it in their simplest form, each once; what follows from one stands with it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use node_remedy_decide::{
    Event, IncidentPolicy, OpenDecision, Opening, Plan, Record, SlotAnswer, open, step,
};

use crate::invariants::Broken;
use crate::same::{NOW, Since, simplest};
use crate::words::{end_of, liveness, plan, policy, todo_of, view};
use crate::world::{CallOutcome, Pid, Setting, Todo};

/// Without a next look a controller looks after this.
pub const SLEEP_MAX_MS: u32 = 60_000;

/// A record in its simplest form, and what follows from it.
pub struct Known {
    number: u32,
    /// The record.
    pub record: Record,
    decided: RefCell<HashMap<Input, Rc<Decided>>>,
    later: RefCell<HashMap<Since, Rc<Known>>>,
}

/// What happened to an incident, as far as decisions tell it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Input {
    /// The world was looked at.
    Looked(Sight),
    /// The call under way ended.
    Ended(CallOutcome),
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
    /// The signs of life are those from before the incident.
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
    policy: IncidentPolicy,
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

    /// The record of an incident that A has just opened.
    ///
    /// # Errors
    /// `decide` opens none for a lost node behind an open gate.
    pub fn opened(&self) -> Result<Rc<Known>, Broken> {
        let sight = Sight {
            is_live: true,
            is_old: false,
            ill: true,
            quarantined: false,
            out_of_service: false,
            pod: true,
            attached: true,
        };
        let view = view(sight, &liveness());
        let (plan, policy) = (&self.plan, &self.policy);
        let opening = Opening { plan, policy, view: &view, epoch: 1, process: Pid::A.name() };
        match open(&opening, NOW) {
            OpenDecision::Open(record) => Ok(self.know(*record, Since::default())),
            OpenDecision::Wait { .. } | OpenDecision::Refuse(_) => {
                Err(Broken::model("no incident is opened for a lost node"))
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
    ///
    /// # Errors
    /// An answer that the model has no place for.
    pub fn decide(&self, known: &Known, asked: Input) -> Result<Rc<Decided>, Broken> {
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

    fn step(&self, record: Record, asked: Input) -> Result<node_remedy_decide::Transition, Broken> {
        let (plan, policy) = (&self.plan, &self.policy);
        let seen;
        let event = match asked {
            Input::Looked(sight) => {
                let liveness =
                    if sight.is_old { record.liveness_at_open.clone() } else { liveness() };
                seen = view(sight, &liveness);
                Event::Looked(&seen)
            }
            Input::Ended(heard) => {
                let open = record.in_flight().ok_or(Broken::model("an end of no call"))?;
                Event::Ended { op: open.id, end: end_of(heard) }
            }
            Input::Slot { granted: true } => Event::Slot(SlotAnswer::Granted),
            Input::Slot { granted: false } => Event::Slot(SlotAnswer::Refused),
            Input::Adopted { epoch, pid } => {
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

#[cfg(test)]
mod tests;
