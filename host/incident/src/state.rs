//! What is known of one incident while it goes on, and the events that wait for it.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use node_remedy_api::nodefence::NodeFence;
use node_remedy_context::context::Context;
use node_remedy_decide as decide;
use node_remedy_decide::{
    Choice, Command, End, IncidentPolicy, JobView, OpId, Plan, Record, SlotAnswer, StorageLease,
    Time, View,
};
use node_remedy_observe::live::Facts;
use node_remedy_observe::pruned::PrunedLease;
use node_remedy_observe::volumes::Volumes;
use node_remedy_record::called::Called;
use node_remedy_record::repeat_filter::Holds;
use node_remedy_runtime::cluster::Cluster;
use node_remedy_runtime::events::Note;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::standstill::Standstill;

/// What can reach an incident; each is one reason to look.
#[derive(Debug)]
pub enum WakeUp {
    /// Something about its node, its pods or its NodeFence changed in a cache.
    Wake,
}

/// Something that was observed.
#[derive(Debug)]
pub enum Observation {
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
    pub(crate) context: Rc<Context<C>>,
    pub(crate) epoch: u64,
    /// As last written.
    pub(crate) nodefence: NodeFence,
    pub(crate) plan: Plan,
    pub(crate) policy: IncidentPolicy,
    pub(crate) record: Record,
    /// What the last live look saw; deletes take names from it.
    pub(crate) facts: Option<Facts>,
    /// What the last live look found of the record's last Job.
    pub(crate) job: Option<JobView>,
    /// What the last live look found of the node's storage Lease.
    pub(crate) storage: StorageLease,
    /// Leases of neighbours of a plug that was switched off, as they were read live.
    pub(crate) neighbours_read: BTreeMap<String, PrunedLease>,
    /// What stands behind the pods' claims.
    pub(crate) volumes: Volumes,
    /// Why the API server last took no Job.
    pub(crate) job_refused: Option<String>,
    pub(crate) pending: VecDeque<Observation>,
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
    pub(crate) mail: mpsc::UnboundedReceiver<WakeUp>,
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

/// What was held back because the evidence for it had grown old.
#[derive(Debug, Default)]
pub struct Late {
    /// When that was last noted for people.
    pub(crate) noted_at: Option<Time>,
    /// What they have not been told yet.
    pub(crate) untold: Option<Note>,
}

/// An ask under way: which decision it is for, and what came of it.
pub(crate) type Answered = (u32, Result<Choice, String>);

/// Where asks under way are kept.
pub type Asks = tokio::task::JoinSet<Answered>;
