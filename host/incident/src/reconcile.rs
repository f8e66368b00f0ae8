//! The one path, walked once per event of one incident: observe → decide → record → act.
//!
//! Each incident is a task of its own, so a hung device, plugin or API call of one node
//! delays no other. Everything the task knows stands in its NodeFence before anything is
//! done about it; killed between any two lines here, the next leader reads the record,
//! treats every unfinished intent as foreign and asks the device what became of it.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_config::plan::{plan_of, run_policy_of};
use node_remedy_context::context::Parts;
use node_remedy_decide as decide;
use node_remedy_decide::{
    Choice, Command, End, Event, Freshness, JobView, OpId, Plan, Record, RunPolicy, SlotAnswer,
    StorageLease, Time, Transition, View,
};
use node_remedy_observe::live::Facts;
use node_remedy_observe::pruned::LeaseSeen;
use node_remedy_observe::volumes::Volumes;
use node_remedy_record::called::Called;
use node_remedy_record::repeat_filter::Holds;
use node_remedy_record::status;
use node_remedy_runtime::cluster::Cluster;
use node_remedy_runtime::events::Note;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::finalizer;
use crate::persist::Late;
use crate::remedy_plugin::Asks;
use crate::standstill::Standstill;

/// What can reach an incident; one mail is one reason to look.
#[derive(Debug)]
pub enum Mail {
    /// Something about its node, its pods or its NodeFence changed in a cache.
    Wake,
}

/// Something that was observed.
#[derive(Debug)]
pub enum Seen {
    /// The world.
    Looked(Box<View>),
    /// A call's end.
    Ended(OpId, End),
    /// The budget's answer.
    Slot(SlotAnswer),
    /// A remedy's plugin was asked for this decision.
    Decided(u32, Result<Choice, String>),
    /// A person's word.
    Command(Command),
    /// This process took the incident over.
    Adopted,
}

/// Why an incident's task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// It is Final.
    Final,
    /// Its record belongs to somebody else now, or is gone.
    Lost,
    /// Its NodeFence is gone, past its finalizer: there is nothing to write to any more.
    Gone,
}

/// One incident, and all that its task holds.
pub struct Incident<C: Cluster> {
    pub(crate) parts: Rc<Parts<C>>,
    pub(crate) epoch: u64,
    /// As last written.
    pub(crate) nodefence: NodeFence,
    pub(crate) plan: Plan,
    pub(crate) policy: RunPolicy,
    pub(crate) record: Record,
    /// What the last live look saw; deletes take names from it.
    pub(crate) facts: Option<Facts>,
    /// What the last live look found of the record's last Job.
    pub(crate) job: Option<JobView>,
    /// What the last live look found of the node's storage Lease.
    pub(crate) storage: StorageLease,
    /// Leases of neighbours of a plug that was switched off, as they were read live.
    pub(crate) neighbours_read: BTreeMap<String, LeaseSeen>,
    /// What stands behind the pods' claims.
    pub(crate) volumes: Volumes,
    /// Why the API server last took no Job.
    pub(crate) job_refused: Option<String>,
    pub(crate) pending: VecDeque<Seen>,
    pub(crate) look_wanted: bool,
    /// What people annotated and was heard; it may still stand in the cache.
    pub(crate) heard: BTreeMap<&'static str, String>,
    /// The version that taking words away made of the NodeFence: in an older one that is told of they still stand.
    pub(crate) taken_away_at: Option<u64>,
    pub(crate) next_look: Option<Time>,
    /// The record says that the slot is free, and the budget may not have heard it.
    pub(crate) owes_slot: bool,
    /// When the node's lock in `medik8s-leases` was last taken or renewed by this task.
    pub(crate) locked_at: Option<Time>,
    /// Who has that lock instead, if it was lost.
    pub(crate) locked_by: Option<String>,
    pub(crate) mail: mpsc::UnboundedReceiver<Mail>,
    pub(crate) calls: JoinSet<(OpId, Called)>,
    /// At most one.
    pub(crate) asks: Asks,
    /// What was held back because its evidence had grown old, and is still to be told.
    pub(crate) late: Late,
    /// Since when looks fail.
    pub(crate) looks: Standstill,
    /// The phase that it entered last.
    pub(crate) entered: Option<decide::Phase>,
    /// What was not told while an Event was being written.
    pub(crate) untold: Vec<Note>,
    /// What it waited for, as far as that was told.
    pub(crate) holds: Holds,
    /// Its NodeFence was seen to be deleted, and what that asks for was done.
    pub(crate) deletion_heard: bool,
    /// Events that are being written.
    pub(crate) telling: Option<JoinHandle<()>>,
}

impl<C: Cluster> Incident<C> {
    /// Takes an incident up: a new one, or one that another process left.
    ///
    /// # Errors
    /// Where spec or status contradict themselves; the caller parks it.
    pub fn take_up(
        parts: Rc<Parts<C>>,
        epoch: u64,
        nodefence: NodeFence,
        mail: mpsc::UnboundedReceiver<Mail>,
    ) -> Result<Self, String> {
        let status = nodefence.status.as_ref().ok_or("its status is missing")?;
        let record = status::read(&nodefence.spec, status).map_err(|error| error.to_string())?;
        let plan = plan_of(&nodefence.spec).map_err(|error| error.to_string())?;
        let policy = run_policy_of(&nodefence.spec.policy);
        let foreign = is_foreign(&record, &parts.process, epoch);
        let pending = if foreign { VecDeque::from([Seen::Adopted]) } else { VecDeque::new() };
        let volumes = Volumes::new(nodefence.spec.policy.safe_detach_drivers.iter().cloned());
        let owes_slot = record.slot == decide::Slot::Free;
        parts.unproven.note(&nodefence.spec.node.name, &plan, &record);
        Ok(Self {
            parts,
            epoch,
            nodefence,
            plan,
            policy,
            record,
            facts: None,
            job: None,
            job_refused: None,
            storage: StorageLease::NotAsked,
            neighbours_read: BTreeMap::new(),
            volumes,
            pending,
            look_wanted: true,
            heard: BTreeMap::new(),
            taken_away_at: None,
            next_look: None,
            owes_slot,
            locked_at: None,
            locked_by: None,
            mail,
            calls: JoinSet::new(),
            asks: Asks::new(),
            late: Late::default(),
            looks: Standstill::default(),
            entered: None,
            untold: Vec::new(),
            holds: Holds::default(),
            deletion_heard: false,
            telling: None,
        })
    }

    /// Walks the path until the incident is over.
    pub async fn run(mut self) -> Over {
        loop {
            let Some(seen) = self.observe().await else {
                self.tell_vanished().await;
                return Over::Gone;
            };
            let decided = self.decide(&seen);
            if self.record(&decided).await.is_err() {
                return Over::Lost;
            }
            self.act(&decided.effects).await;
            self.tell(&decided).await;
            if matches!(self.record.phase, decide::Phase::Final(_)) {
                self.have_told().await;
                if let Err(error) = finalizer::let_go(&self.parts.cluster, &self.nodefence).await {
                    tracing::info!(node = self.node(), %error, "failed to let its NodeFence go; again soon");
                }
                return Over::Final;
            }
        }
    }

    fn decide(&self, seen: &Seen) -> Transition {
        let event = match seen {
            Seen::Looked(view) => Event::Looked(view),
            Seen::Ended(op, end) => Event::Ended { op: *op, end: end.clone() },
            Seen::Slot(answer) => Event::Slot(*answer),
            Seen::Decided(number, answer) => {
                Event::Decided { number: *number, answer: answer.clone() }
            }
            Seen::Command(command) => Event::Command(command.clone()),
            Seen::Adopted => {
                Event::Adopted { epoch: self.epoch, process: self.parts.process.clone() }
            }
        };
        let now = self.parts.clock.now();
        let mut decided = decide::step(&self.plan, &self.policy, self.record.clone(), event, now);
        if matches!(seen, Seen::Looked(view) if view.freshness == Freshness::Cached) {
            // A cache's word is no look: a node that renews its Lease, and so wakes the run again
            // and again, must not put the next look off for ever.
            decided.next_look = decided.next_look.into_iter().chain(self.next_look).min();
        }
        decided
    }

    /// The NodeFence's name.
    pub fn name(&self) -> String {
        self.nodefence.name_any()
    }

    /// The node's name.
    pub fn node(&self) -> &str {
        &self.nodefence.spec.node.name
    }
}

/// Whether nobody here has done what the record says, or nobody here remembers: an open call of
/// this very process belongs to a task that is over, and its end will never be heard.
pub fn is_foreign(record: &Record, process: &str, epoch: u64) -> bool {
    record.process != process || record.epoch != epoch || record.in_flight().is_some()
}

/// Whether a newer leader has written this record. It is its, and is left alone.
pub fn is_of_newer_leader(nodefence: &NodeFence, epoch: u64) -> bool {
    nodefence.status.as_ref().is_some_and(|status| status.epoch > epoch)
}
