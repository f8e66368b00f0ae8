//! The ladder: an incident's remedies, one after the other while the condition holds (A11).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec;

use crate::{
    Binding, Execution, Feed, Kind, Method, MethodIndex, NeededFor, Path, Plan, Span, Stage, Time,
};

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
    /// One method of the plan, whether a stage names it or only this remedy does.
    Method(MethodIndex),
    /// Something in the cluster itself.
    Cluster(Chore),
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
pub enum Chore {
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

impl Plan {
    /// The remedy at this place of the ladder. A plan without a ladder has one: the fence.
    pub fn remedy(&self, rung: usize) -> Option<Remedy> {
        match self.ladder.get(rung) {
            Some(rung) => Some(rung.remedy),
            None if self.ladder.is_empty() && rung == 0 => Some(Remedy::Fence),
            None => None,
        }
    }

    /// The remedies, in their order.
    pub(crate) fn remedies(&self) -> impl Iterator<Item = Remedy> + '_ {
        (0..self.ladder.len().max(1)).filter_map(|rung| self.remedy(rung))
    }

    /// Whether any remedy of the ladder isolates or switches power.
    pub fn fences(&self) -> bool {
        self.remedies().any(Remedy::is_of_plan)
    }

    /// What a remedy does of isolation.
    pub(crate) fn isolation_of(&self, remedy: Remedy) -> Cow<'_, [Stage]> {
        match remedy {
            Remedy::Fence | Remedy::Isolation => Cow::Borrowed(&self.isolation),
            Remedy::Method(index) => self.alone(index, Method::cuts),
            Remedy::Job { .. } | Remedy::Cluster(_) | Remedy::Plugin => Cow::Borrowed(&[]),
        }
    }

    /// What a remedy does of power-management.
    pub(crate) fn power_of(&self, remedy: Remedy) -> Cow<'_, [Stage]> {
        match remedy {
            Remedy::Fence => Cow::Borrowed(&self.power),
            Remedy::Method(index) => self.alone(index, Method::switches_power),
            Remedy::Isolation | Remedy::Job { .. } | Remedy::Cluster(_) | Remedy::Plugin => {
                Cow::Borrowed(&[])
            }
        }
    }

    /// A stage of this method alone, if it is of that kind.
    fn alone(&self, index: MethodIndex, is_wanted: impl Fn(&Method) -> bool) -> Cow<'_, [Stage]> {
        let Some(method) = self.method(index).filter(|method| is_wanted(method)) else {
            return Cow::Borrowed(&[]);
        };
        Cow::Owned(vec![Stage {
            name: method.name.clone(),
            execution: Execution::All,
            methods: vec![index],
            needed_for: NeededFor::NextStep,
        }])
    }

    /// Whether these stages name a method of such a kind.
    pub(crate) fn names(&self, stages: &[Stage], is_wanted: impl Fn(&Kind) -> bool) -> bool {
        let mut methods = stages.iter().flat_map(|stage| &stage.methods);
        methods.any(|index| self.method(*index).is_some_and(|method| is_wanted(&method.kind)))
    }

    /// Whether a remedy can switch the machine off, and not only reset it.
    pub(crate) fn takes_off(&self, remedy: Remedy) -> bool {
        self.names(&self.power_of(remedy), |kind| matches!(kind, Kind::Power(_)))
    }

    /// Whether a remedy can switch the machine off by plugs that may be switched.
    pub(crate) fn surely_takes_off(&self, remedy: Remedy) -> bool {
        self.takes_off(remedy) && !self.lacks_verified_outlets(remedy)
    }

    /// Whether no remedy that carries out the plan could do so.
    pub(crate) fn lacks_outlets(&self) -> bool {
        let mut of_plan = self.remedies().filter(|remedy| remedy.is_of_plan()).peekable();
        of_plan.peek().is_some() && of_plan.all(|remedy| self.lacks_verified_outlets(remedy))
    }

    /// Whether no remedy could give anything back: each carries out the plan, none switches power, and of no storage that
    /// they cut is it known whose it is.
    pub(crate) fn lacks_trusted_storage(&self) -> bool {
        let cuts = self.cut_methods().filter_map(|index| self.method(index));
        let mut storage = cuts.filter(|method| method.drivers().next().is_some()).peekable();
        let switches = |remedy| {
            let is_power = |kind: &Kind| matches!(kind, Kind::Power(_) | Kind::ResetOnly);
            self.names(&self.power_of(remedy), is_power) && !self.lacks_verified_outlets(remedy)
        };
        let helps = |remedy: Remedy| !remedy.is_of_plan() || switches(remedy);
        storage.peek().is_some()
            && storage.all(|method| method.binding == Binding::Unverified)
            && !self.remedies().any(helps)
    }

    /// Whether a remedy switches power, and fails or proves nothing for want of outlets that were verified or are trusted.
    pub(crate) fn lacks_verified_outlets(&self, remedy: Remedy) -> bool {
        let stages = self.power_of(remedy);
        let switches = |stage: &Stage| {
            let methods = stage.methods.clone().into_iter();
            methods.filter(|index| self.method(*index).is_some_and(Method::switches_power))
        };
        let must_succeed =
            |index: &MethodIndex| self.method(*index).is_some_and(|method| method.must_success);
        let is_lost = |index: MethodIndex| self.is_unverified(index);
        let mut all = stages.iter().flat_map(switches).peekable();
        let needed = stages.iter().filter(|stage| {
            stage.execution == Execution::All && stage.needed_for == NeededFor::NextStep
        });
        let mut needed = needed.flat_map(switches).filter(must_succeed);
        all.peek().is_some() && (all.all(is_lost) || needed.any(is_lost))
    }

    /// Whether a remedy cuts the node's own way to the API server.
    pub(crate) fn cuts_api_path(&self, remedy: Remedy) -> bool {
        self.names(&self.isolation_of(remedy), |kind| *kind == Kind::Fabric(Path::ApiServer))
    }

    /// A remedy of the ladder that is one of several outlets: off alone, it leaves the machine on.
    pub(crate) fn lone_outlet(&self) -> Option<MethodIndex> {
        self.remedies().find_map(|remedy| {
            let Remedy::Method(index) = remedy else { return None };
            let is_part = |method: &Method| method.kind == Kind::Power(Feed::Part);
            self.method(index).is_some_and(is_part).then_some(index)
        })
    }
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
