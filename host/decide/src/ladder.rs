//! The ladder: an incident's remedies, one after the other while the condition holds (A11).

use alloc::borrow::Cow;
use alloc::vec;

use crate::remedy::Remedy;
use crate::{Binding, Execution, Feed, Kind, Method, MethodIndex, NeededFor, Path, Plan, Stage};

impl Plan {
    /// The remedy at this place of the ladder. A plan without a ladder has one: the fence.
    pub fn remedy(&self, remedy_step: usize) -> Option<Remedy> {
        match self.ladder.get(remedy_step) {
            Some(remedy_step) => Some(remedy_step.remedy),
            None if self.ladder.is_empty() && remedy_step == 0 => Some(Remedy::Fence),
            None => None,
        }
    }

    /// The remedies, in their order.
    pub(crate) fn remedies(&self) -> impl Iterator<Item = Remedy> + '_ {
        (0..self.ladder.len().max(1)).filter_map(|remedy_step| self.remedy(remedy_step))
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
