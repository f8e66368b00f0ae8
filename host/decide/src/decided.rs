//! What an admin's own plugin decided to try, one thing after the other, within one remedy of the ladder.
//!
//! A decision is a wish, and what it comes to is one of the remedies that a configuration can name: it is
//! resolved here to that remedy, and from there on nothing knows who wished it. What cannot be resolved, or
//! is too much, ends the remedy step. Which of the plan's methods a name means is looked up each time, as the plan
//! of an incident never changes.

use alloc::format;
use alloc::string::{String, ToString};

use crate::choice::{Choice, Decided};
use crate::{
    ClusterAction, Feed, IncidentPolicy, IsolatedForGood, Kind, MethodIndex, Plan, Record, Remedy,
    Span,
};

/// Decisions in a row without the plugin's saying that it has done what it could. A node that is ill after
/// so many deeds is not mended by the next.
pub const DECISIONS_MAX: usize = 16;
/// How long all of them may take. The remedies behind this one wait meanwhile.
pub(crate) const DECIDING_MAX: Span = Span::minutes(24 * 60);
/// The longest wait that a plugin may decide on; whoever asks it has bounded that too.
pub const WAIT_MAX: Span = Span::minutes(4 * 60);
/// Decisions that a record keeps: all of one remedy, and of its last retries by a person.
pub(crate) const DECISIONS_KEPT: usize = 40;
/// Characters of a sentence about a decision.
pub(crate) const WHY_MAX: usize = 1_024;

impl Record {
    /// The decision that is asked for, or followed, in the present remedy step.
    pub fn deciding(&self) -> Option<&Decided> {
        let last = self.decisions.last();
        last.filter(|one| one.remedy_step == self.remedy_step && one.ended_at.is_none())
    }

    pub(crate) fn deciding_mut(&mut self) -> Option<&mut Decided> {
        let remedy_step = self.remedy_step;
        let last = self.decisions.last_mut();
        last.filter(|one| one.remedy_step == remedy_step && one.ended_at.is_none())
    }

    /// What was decided in the present remedy step and came to its end since a person last had it tried anew, the
    /// oldest first.
    pub fn decided(&self) -> &[Decided] {
        let is_old = |one: &Decided| {
            one.remedy_step != self.remedy_step || one.choice.as_ref().is_none_or(Choice::is_last)
        };
        let ended = match self.decisions.split_last() {
            Some((last, before)) if last.ended_at.is_none() => before,
            Some(_) | None => &self.decisions,
        };
        let begin = ended.iter().rposition(is_old).map_or(0, |last| last.saturating_add(1));
        ended.get(begin..).unwrap_or_default()
    }
}

impl Plan {
    /// The remedy that a plugin's choice means, as a configuration would name it.
    pub(crate) fn meant(&self, choice: &Choice) -> Option<Remedy> {
        match choice {
            Choice::Method(name) => self.method_named(name).map(Remedy::Method),
            Choice::Cluster(name) => ClusterAction::named(name).map(Remedy::Cluster),
            Choice::Fence => Some(Remedy::Fence),
            Choice::Wait(_) | Choice::Done | Choice::Fail(_) => None,
        }
    }

    /// A method that is read for proof and given back, by its name, or by either name of a pair such as
    /// `port-off` and `port-on`, of which a plan has one under the stem.
    fn method_named(&self, name: &str) -> Option<MethodIndex> {
        let known = |wanted: &str| {
            let is_it = |index: &MethodIndex| {
                self.method(*index).is_some_and(|method| method.name == wanted)
            };
            self.taking_methods().find(is_it)
        };
        let stem = || name.strip_suffix("-off").or_else(|| name.strip_suffix("-on"));
        known(name).or_else(|| known(stem()?))
    }

    /// Methods that take something from the machine, which the way back gives back.
    fn taking_methods(&self) -> impl Iterator<Item = MethodIndex> + '_ {
        let stages = self.isolation.iter().chain(&self.power).flat_map(|stage| &stage.methods);
        let takes = |index: &MethodIndex| {
            self.method(*index).is_some_and(|method| method.cuts() || method.switches_power())
        };
        stages.chain(&self.beside).copied().filter(takes)
    }

    /// Why a choice is not followed, where a configuration that named the same remedy would be refused, or
    /// there is nothing of that name.
    pub(crate) fn refuse_choice(&self, choice: &Choice, policy: &IncidentPolicy) -> Option<String> {
        let remedy = match (choice, self.meant(choice)) {
            (Choice::Wait(span), _) if *span == Span::ZERO || *span > WAIT_MAX => {
                let most = WAIT_MAX.0 / 1_000;
                return Some(format!("a wait is of 1 to {most} seconds"));
            }
            (Choice::Wait(_) | Choice::Done | Choice::Fail(_), _) => return None,
            (Choice::Method(_), None) => {
                let mut known = alloc::vec::Vec::new();
                for index in self.taking_methods() {
                    let name = self.method(index).map(|method| method.name.as_str());
                    known.extend(name.filter(|name| !known.contains(name)));
                }
                let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
                return Some(format!(
                    "no stage of the node's FenceConfiguration, and no remedy, names such a method; \
                     there are: {known}"
                ));
            }
            (Choice::Cluster(_) | Choice::Fence, None) => {
                return Some(
                    "it is none of cordon, quarantine, drain, release and delete-node".to_string(),
                );
            }
            (Choice::Method(_) | Choice::Cluster(_) | Choice::Fence, Some(remedy)) => remedy,
        };
        self.refuse_remedy(remedy, policy).map(ToString::to_string)
    }

    /// Why a remedy would not be followed if it stood in a ladder alone: behind a plugin's decision nobody
    /// knows what comes next.
    fn refuse_remedy(&self, remedy: Remedy, policy: &IncidentPolicy) -> Option<&'static str> {
        if !remedy.is_of_plan() {
            return None;
        }
        if let Remedy::Method(index) = remedy
            && self.method(index).is_some_and(|method| method.kind == Kind::Power(Feed::Part))
        {
            return Some(
                "it switches one of several outlets, and off alone it leaves the machine on",
            );
        }
        if self.isolation_of(remedy).is_empty() && self.power_of(remedy).is_empty() {
            return Some("the node's plan neither isolates nor switches off");
        }
        if self.lacks_verified_outlets(remedy) {
            return Some("the wiring of its outlets was never verified");
        }
        let cuts_itself_off = self.cuts_api_path(remedy) && !self.takes_off(remedy);
        if cuts_itself_off && policy.isolated_for_good == IsolatedForGood::Refuse {
            return Some(
                "it cuts the node's way to the API server and does not switch its power, so the node \
                 could never come back",
            );
        }
        None
    }
}

impl ClusterAction {
    /// As configurations name it.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "cordon" => Self::Cordon,
            "quarantine" => Self::Quarantine,
            "drain" => Self::Drain,
            "release" => Self::Release,
            "delete-node" => Self::DeleteNode,
            _ => return None,
        })
    }
}
