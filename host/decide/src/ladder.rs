//! The ladder: an incident's remedies, one after the other while the condition holds (A11).

use alloc::string::String;

use crate::{Plan, Span, Time};

/// One remedy of the ladder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rung {
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
    /// Something in the cluster itself.
    Cluster(Chore),
    /// A Job of the admin's own.
    Job {
        /// How long it may take; the cluster's Job controller ends it then.
        deadline: Span,
    },
}

/// What a remedy does in the cluster itself. The node's recovery undoes the marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Chore {
    /// Cordon the node.
    Cordon,
    /// Put our NoSchedule taint.
    Quarantine,
    /// Cordon the node and evict its pods, as far as disruption budgets allow.
    Drain,
}

/// A Job that was meant to run, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobRun {
    /// Counts the Jobs of an incident from 1; its name follows from it.
    pub number: u32,
    /// Which remedy it carries out, from 0.
    pub rung: usize,
    /// Which try of the run it belongs to.
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

impl Plan {
    /// The remedy at this place of the ladder. A plan without a ladder has one: the fence.
    pub fn remedy(&self, rung: usize) -> Option<Remedy> {
        match self.ladder.get(rung) {
            Some(rung) => Some(rung.remedy),
            None if self.ladder.is_empty() && rung == 0 => Some(Remedy::Fence),
            None => None,
        }
    }

    /// Whether any remedy of the ladder isolates or switches power.
    pub fn fences(&self) -> bool {
        let fences = |rung: &Rung| matches!(rung.remedy, Remedy::Fence | Remedy::Isolation);
        self.ladder.is_empty() || self.ladder.iter().any(fences)
    }

    /// Whether a remedy of the ladder takes the plan's power step.
    pub(crate) fn takes_power_step(&self) -> bool {
        let takes = |rung: &Rung| rung.remedy == Remedy::Fence;
        self.ladder.is_empty() || self.ladder.iter().any(takes)
    }
}
