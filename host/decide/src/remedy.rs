//! What may be done for a node, and the Jobs that do some of it.

use alloc::string::String;

use crate::{MethodIndex, Span, Time};

/// One remedy of the ladder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RemedyStep {
    /// The remedy's name, for people.
    pub name: String,
    /// How it is carried out.
    pub remedy: Remedy,
    /// How long the condition must still hold after this remedy before the next one has its turn.
    pub period: Span,
    /// Its success is the admin's word that the node's pods may go.
    pub clean: bool,
}

/// How a remedy is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remedy {
    /// The plan: isolation, power-management, recovery.
    Fence,
    /// The plan without its power step: isolation, and recovery once the node is well.
    Isolation,
    /// One method of the plan, whether a stage names it or only this remedy does.
    Method(MethodIndex),
    /// Something in the cluster itself.
    Cluster(ClusterAction),
    /// A Job of the admin's own.
    Job {
        /// How long it may take; the cluster's Job controller ends it then.
        deadline: Span,
    },
    /// Whatever a plugin of the admin's own decides, one after the other: each is one of the others.
    Plugin,
}

/// What a remedy does in the cluster itself. The node's recovery undoes the marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterAction {
    /// Cordon the node.
    Cordon,
    /// Put our NoSchedule taint.
    Quarantine,
    /// Cordon the node and evict its pods, as far as disruption budgets allow.
    Drain,
    /// Wait for a proof that no device gives, and release what it covers.
    Release,
    /// Wait for one that covers everything, and delete the Node after the release.
    DeleteNode,
}

/// A Job that was meant to run, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobRun {
    /// Counts the Jobs of an incident from 1; its name follows from it.
    pub number: u32,
    /// Which remedy it carries out, from 0.
    pub remedy_step: usize,
    /// Which try of the incident it belongs to.
    pub attempt: u32,
    /// When the intent was written.
    pub intended_at: Time,
    /// When it was first seen to exist. From then on it is never created again.
    pub seen_at: Option<Time>,
    /// Its pod, once there is one.
    pub pod: Option<String>,
    /// Since when it is to be stopped, by a person's word or before another one is started.
    pub stopping_at: Option<Time>,
    /// How it ended; `None` while it runs, or nobody knows.
    pub end: Option<JobEnd>,
}

/// How a Job ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobEnd {
    /// When that was seen.
    pub at: Time,
    /// One way or the other.
    pub outcome: JobOutcome,
    /// Why, and the last lines that its pod wrote; cut.
    pub detail: String,
}

/// The ways a Job can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobOutcome {
    /// It completed.
    Succeeded,
    /// It failed, or ran into its deadline.
    Failed,
    /// It was there and is gone; that is no success.
    Lost,
}

/// What a look found of the record's last Job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobView {
    /// Which.
    pub number: u32,
    /// Its pod, if it has one yet.
    pub pod: Option<String>,
    /// When it completed, corrected by the API server's clock; `None` where that is not said.
    pub completed_at: Option<Time>,
    /// How it is.
    pub state: JobState,
}

/// How a Job is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JobState {
    /// There is none of that name.
    Absent,
    /// The API server took none, or shows none.
    Refused {
        /// Why, in its words.
        why: String,
    },
    /// There is another Job of that name, which is not this incident's.
    NameTaken {
        /// Which.
        why: String,
    },
    /// It goes on.
    Running,
    /// It completed.
    Succeeded,
    /// It failed.
    Failed {
        /// Why, and the last lines that its pod wrote.
        detail: String,
    },
}

impl Remedy {
    /// Whether it carries out the node's plan, or a part of it.
    pub(crate) const fn is_of_plan(self) -> bool {
        match self {
            Self::Fence | Self::Isolation | Self::Method(_) => true,
            Self::Job { .. } | Self::Cluster(_) | Self::Plugin => false,
        }
    }
}
