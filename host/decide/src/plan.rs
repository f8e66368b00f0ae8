//! What an incident will do: steps of stages of methods, as the configuration's snapshot says.
//!
//! A plan is data with the questions it can answer by itself. How far an incident has come with it
//! stands in the record; the numbers in force stand in the policy.

use alloc::string::String;
use alloc::vec::Vec;

use crate::operation::MethodIndex;
use crate::{RemedyStep, Span};

/// Everything an incident may do to one node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Plan {
    /// The node as it was when the incident was opened; another UID is another node.
    pub node: Node,
    /// All methods; stages name them by position.
    pub methods: Vec<Method>,
    /// Stages of the isolation step, in order.
    pub isolation: Vec<Stage>,
    /// Stages of the power-management step, in order.
    pub power: Vec<Stage>,
    /// Stages of the recovery step, in order.
    pub recovery: Vec<Stage>,
    /// Methods that no stage of isolation or power-management names, only a remedy of the ladder.
    pub beside: Vec<MethodIndex>,
    /// The remedies that are tried one after the other; empty: the fence alone.
    pub ladder: Vec<RemedyStep>,
}

/// A group of methods inside a step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stage {
    /// Its name, for people.
    pub name: String,
    /// Whether all methods run or the first that succeeds.
    pub execution: Execution,
    /// Its methods, by priority.
    pub methods: Vec<MethodIndex>,
    /// Whether the flow waits for it.
    pub needed_for: NeededFor,
}

/// How the methods of a stage are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Execution {
    /// Every one.
    All,
    /// In order, until one succeeds.
    OnlyOne,
}

/// What waits for a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NeededFor {
    /// The steps after it.
    NextStep,
    /// Nothing: its failure is recorded and changes nothing.
    Nothing,
}

/// One action on one plug.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Method {
    /// The name people gave it.
    pub name: String,
    /// What it works on.
    pub kind: Kind,
    /// The device it speaks to; methods with the same id share sessions and blame.
    pub device: String,
    /// What kind of device that is (the plugin's name).
    pub device_kind: String,
    /// Outlet, port or instance on the device; empty where the device is the node.
    pub plug: String,
    /// Whether its failure fails its stage.
    pub must_success: bool,
    /// How long after a call without outcome its effect may still come (manifest).
    pub late_effect: Span,
    /// How the machine behind the plug is known to be the node.
    pub binding: Binding,
    /// Another method that must read off, too, before this one's off is proof: a [`Kind::Watch`], which no
    /// stage names.
    pub witness: Option<MethodIndex>,
}

/// What a method works on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Cuts and gives power.
    Power(Feed),
    /// Power that can only be reset: no off, hence never proof by itself.
    ResetOnly,
    /// Cuts and restores network.
    Fabric(Path),
    /// Cuts and restores access to storage.
    Storage {
        /// The CSI drivers all of whose volumes it cuts.
        drivers: Vec<String>,
    },
    /// Only watches (a crash notice, for instance).
    Watch,
    /// Done by the host itself, in the cluster.
    Builtin(Builtin),
}

/// How much of a machine's power goes through a plug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feed {
    /// All of it: a BMC, a cloud instance, or an outlet that is known to be the only one.
    Whole,
    /// Part of it: the machine is off when all such plugs of the plan are.
    Part,
}

/// What a fabric method cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Path {
    /// The node's way to the API server too: cut, it can never become Ready.
    ApiServer,
    /// Something else.
    Other,
}

/// A method that is a write to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Builtin {
    /// Cordon the node.
    MarkUnschedulable,
    /// Undo our cordon.
    MarkSchedulable,
    /// Our own NoSchedule taint.
    Quarantine,
    /// Release pods and attachments; only ever behind proof.
    CleanResources,
    /// Delete the Node once everything on it is released; only ever behind a proof that covers everything.
    DeleteNode,
}

/// How the machine behind a plug is known to be the node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Binding {
    /// The device names its machine; one of these must be among what `status` reports.
    Reported {
        /// Every spelling of the node's own identity that counts as the same, as (field, value).
        expected: Vec<(String, String)>,
    },
    /// The device knows no machine; the configuration names the plug. Of an outlet: its wiring was verified, or is trusted.
    Labelled,
    /// An outlet that was never verified and is not trusted: it is not switched and proves nothing.
    Unverified,
}

/// How far a method has come in its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing more to do.
    Met,
    /// Given up on.
    Failed,
    /// Still to do.
    Open,
}

/// What the stages of a step want next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// This method.
    Method(MethodIndex),
    /// Nothing: a method that must succeed did not.
    Failed(MethodIndex),
    /// Nothing: all stages have ended.
    Nothing,
}

/// What the stages want next, in order.
pub(crate) fn next_wanted(
    plan: &Plan,
    stages: &[Stage],
    progress: impl Fn(MethodIndex) -> Progress,
) -> Want {
    for stage in stages {
        for index in stage.methods.iter().copied() {
            let must_success = plan.method(index).is_some_and(|method| method.must_success);
            match (progress(index), stage.execution) {
                (Progress::Open, Execution::All | Execution::OnlyOne) => {
                    return Want::Method(index);
                }
                (Progress::Met, Execution::OnlyOne) => break,
                (Progress::Failed, Execution::All)
                    if must_success && stage.needed_for == NeededFor::NextStep =>
                {
                    return Want::Failed(index);
                }
                (Progress::Met | Progress::Failed, Execution::All)
                | (Progress::Failed, Execution::OnlyOne) => {}
            }
        }
    }
    Want::Nothing
}

impl Plan {
    /// The method at `index`.
    pub fn method(&self, index: MethodIndex) -> Option<&Method> {
        self.methods.get(index)
    }

    /// Methods that switch power off and on, in the order of the power stages; whatever the remedy, these
    /// are read for proof, and given back what was taken.
    pub fn power_methods(&self) -> impl Iterator<Item = MethodIndex> + '_ {
        self.of_stages(&self.power).filter(|index| {
            self.method(*index).is_some_and(|method| matches!(method.kind, Kind::Power(_)))
        })
    }

    /// Methods that switch the same power as this one: the same plug, or all that the machine has.
    pub(crate) fn of_one_power(
        &self,
        method: MethodIndex,
    ) -> impl Iterator<Item = MethodIndex> + '_ {
        let one = self.method(method);
        let is_whole =
            |one: &Method| matches!(one.kind, Kind::Power(Feed::Whole) | Kind::ResetOnly);
        let is_same = move |other: &&Method| {
            one.is_some_and(|one| {
                let of_a_plug = one.device == other.device && one.plug == other.plug;
                let switch = one.switches_power() && other.switches_power();
                switch && (of_a_plug || is_whole(one) && is_whole(other))
            })
        };
        self.methods
            .iter()
            .enumerate()
            .filter(move |(_, other)| is_same(other))
            .map(|(index, _)| index)
    }

    /// Methods that cut something on a device, in the order of the isolation stages.
    pub fn cut_methods(&self) -> impl Iterator<Item = MethodIndex> + '_ {
        self.of_stages(&self.isolation)
            .filter(|index| self.method(*index).is_some_and(Method::cuts))
    }

    /// The methods of these stages, and those beside all stages.
    fn of_stages<'p>(&'p self, stages: &'p [Stage]) -> impl Iterator<Item = MethodIndex> + 'p {
        let named = stages.iter().flat_map(|stage| &stage.methods);
        named.chain(&self.beside).copied()
    }

    /// Whether the machine is without power when exactly the plugs for which `off` holds are.
    pub fn machine_is_off(&self, off: impl Fn(MethodIndex) -> bool) -> bool {
        let mut parts = 0_usize;
        let mut parts_off = 0_usize;
        for index in self.power_methods() {
            match self.method(index).map(|method| &method.kind) {
                Some(Kind::Power(Feed::Whole)) if off(index) => return true,
                Some(Kind::Power(Feed::Part)) => {
                    parts = parts.saturating_add(1);
                    parts_off = parts_off.saturating_add(usize::from(off(index)));
                }
                Some(
                    Kind::Power(Feed::Whole)
                    | Kind::ResetOnly
                    | Kind::Fabric(_)
                    | Kind::Storage { .. }
                    | Kind::Watch
                    | Kind::Builtin(_),
                )
                | None => {}
            }
        }
        parts > 0 && parts == parts_off
    }

    /// Whether part of the machine's power goes through this plug, and the rest elsewhere.
    pub(crate) fn is_part(&self, plug: MethodIndex) -> bool {
        self.method(plug).is_some_and(|method| method.kind == Kind::Power(Feed::Part))
    }

    /// Whether an off of this plug could prove nothing: it may be another machine's, or another feed of the machine may be.
    pub(crate) fn is_unverified(&self, plug: MethodIndex) -> bool {
        let is_unverified = |index: MethodIndex| {
            self.method(index).is_some_and(|method| method.binding == Binding::Unverified)
        };
        let mut parts = self.power_methods().filter(|index| self.is_part(*index));
        is_unverified(plug) || self.is_part(plug) && parts.any(is_unverified)
    }

    /// Whether the plan knows how to switch the machine off.
    pub fn has_power(&self) -> bool {
        self.power_methods().next().is_some()
    }
}

impl Method {
    /// Whether it can take the machine's power.
    pub fn switches_power(&self) -> bool {
        match self.kind {
            Kind::Power(_) | Kind::ResetOnly => true,
            Kind::Fabric(_) | Kind::Storage { .. } | Kind::Watch | Kind::Builtin(_) => false,
        }
    }

    /// Whether its `off` cuts storage.
    pub const fn cuts_storage(&self) -> bool {
        match self.kind {
            Kind::Storage { .. } => true,
            Kind::Power(_) | Kind::ResetOnly | Kind::Fabric(_) | Kind::Watch | Kind::Builtin(_) => {
                false
            }
        }
    }

    /// The drivers of the storage that its `off` cuts.
    pub(crate) fn drivers(&self) -> impl Iterator<Item = &str> {
        let drivers: &[String] = match &self.kind {
            Kind::Storage { drivers } => drivers,
            Kind::Power(_) | Kind::ResetOnly | Kind::Fabric(_) | Kind::Watch | Kind::Builtin(_) => {
                &[]
            }
        };
        drivers.iter().map(String::as_str)
    }

    /// Whether its `off` cuts network or storage.
    pub fn cuts(&self) -> bool {
        match self.kind {
            Kind::Fabric(_) | Kind::Storage { .. } => true,
            Kind::Power(_) | Kind::ResetOnly | Kind::Watch | Kind::Builtin(_) => false,
        }
    }
}

/// A node's identity in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its UID; another UID is another node.
    pub uid: String,
}
