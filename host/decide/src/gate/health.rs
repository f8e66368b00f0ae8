//! Which nodes count as healthy.

use alloc::string::String;
use alloc::vec::Vec;

use crate::bug::{Bug, guard};
use crate::gate::refusal::{Refusal, Verdict};
use crate::gate::view::{EXAMPLES_MAX, GateView, NodeHealth};
use crate::{Span, Time};

/// How a node is, judged against the target's last renewal.
pub(crate) enum Health {
    /// It was heard since.
    Well,
    /// Certainly not well.
    Unhealthy,
    /// Not heard since the target fell silent, and its time is not up before then.
    Unheard(Time),
    /// It was heard since, and was not well until a moment ago; it has proven itself then.
    Returning(Time),
}

/// A node that came back has to be heard this often before it counts as well: a network that comes
/// back does so by fits and starts.
pub(crate) const TAIL_RENEWALS: u64 = 3;

/// How many nodes of a domain, or of all, are how.
#[derive(Default)]
pub(crate) struct Count<'a> {
    pub(crate) total: u32,
    /// Certainly not well.
    pub(crate) unhealthy: Vec<&'a str>,
    /// Not heard yet.
    pub(crate) unheard: u32,
    /// When the last of those is due.
    judged_at: Time,
    /// Came back a moment ago.
    pub(crate) returning: u32,
    /// When the first of those has proven itself.
    proven_at: Option<Time>,
}

impl<'a> Count<'a> {
    pub(crate) fn of(nodes: impl Iterator<Item = &'a (&'a NodeHealth, Health)>) -> Self {
        let mut count = Self::default();
        for (node, health) in nodes {
            count.total = count.total.saturating_add(1);
            match health {
                Health::Well => {}
                Health::Unhealthy => count.unhealthy.push(&node.name),
                Health::Unheard(due) => {
                    count.unheard = count.unheard.saturating_add(1);
                    count.judged_at = count.judged_at.max(*due);
                }
                Health::Returning(until) => {
                    count.returning = count.returning.saturating_add(1);
                    count.proven_at = count.proven_at.into_iter().chain([*until]).min();
                }
            }
        }
        count
    }

    fn certain(&self) -> u32 {
        number(self.unhealthy.len())
    }

    fn with_returning(&self) -> u32 {
        self.certain().saturating_add(self.returning)
    }

    fn at_worst(&self) -> u32 {
        self.with_returning().saturating_add(self.unheard)
    }

    /// Refuses where `storm` says so of those that are certainly not well; where it would say so with
    /// those that came back a moment ago; and while nobody knows because of those that were not heard yet.
    pub(crate) fn refuse(&self, storm: impl Fn(u32) -> Option<Refusal>, verdict: &mut Verdict) {
        if let Some(refusal) = storm(self.certain()) {
            verdict.refusals.push(refusal);
        } else if let Some(until) =
            self.proven_at.filter(|_| storm(self.with_returning()).is_some())
        {
            let refusal = Refusal::StormTail { returning: self.returning, until };
            if !verdict.refusals.iter().any(|one| matches!(one, Refusal::StormTail { .. })) {
                verdict.refusals.push(refusal);
            }
            verdict.look_at(until);
        } else if storm(self.at_worst()).is_some() {
            self.refuse_to_judge(verdict);
        }
    }

    fn refuse_to_judge(&self, verdict: &mut Verdict) {
        let (until, unheard) = (self.judged_at, self.unheard);
        let refusal = Refusal::SilenceNotJudged { until, unheard };
        if !verdict.refusals.iter().any(|one| matches!(one, Refusal::SilenceNotJudged { .. })) {
            verdict.refusals.push(refusal);
        }
        verdict.look_at(until);
    }

    pub(crate) fn examples(&self) -> Vec<String> {
        self.unhealthy.iter().take(EXAMPLES_MAX).map(|name| String::from(*name)).collect()
    }
}

pub(crate) fn domain_of(node: &NodeHealth, place: usize) -> Option<&str> {
    node.domains.get(place)?.as_deref()
}

pub(crate) fn health(view: &GateView, node: &NodeHealth, heard_after: Time, now: Time) -> Health {
    let heard = node.renewed_at.is_some_and(|renewed_at| renewed_at > heard_after);
    let due = heard_after.after(renewal_interval(node));
    // Heard since the target, and overdue again: it fell silent a little later.
    let overdue = node.renewed_at.is_none_or(|at| now > at.after(overdue_after(node)));
    let silent = guard(Bug::StormFromReady, (!heard && now > due) || (heard && overdue));
    if node.name == view.target || !node.ready || node.down || silent {
        Health::Unhealthy
    } else if guard(Bug::StormFromReady, !heard) {
        Health::Unheard(due.after(Span(1)))
    } else {
        let tail = Span(renewal_interval(node).0.saturating_mul(TAIL_RENEWALS));
        let proven_at = node.came_back.map(|back| back.at.after(tail));
        proven_at.filter(|at| now < *at).map_or(Health::Well, Health::Returning)
    }
}

/// What the others' renewals are held against: the target's last one. A target that still renews,
/// or that never did, did not fall silent with them; for it, it is when its sign began.
pub(crate) fn begun(view: &GateView, target: &NodeHealth, now: Time) -> Option<Time> {
    let Some(renewed_at) = target.renewed_at else {
        return view.symptom_since.filter(|_| view.never_joined);
    };
    let overdue = overdue_after(target);
    let lives =
        |since: &Time| renewed_at > since.after(overdue) && now <= renewed_at.after(overdue);
    Some(view.symptom_since.filter(lives).unwrap_or(renewed_at))
}

/// A renewal is overdue after 1.2 times the renewal interval.
pub(crate) fn overdue_after(node: &NodeHealth) -> Span {
    Span(renewal_interval(node).0.saturating_mul(12) / 10)
}

/// A kubelet renews four times in its Lease's duration.
pub(crate) fn renewal_interval(node: &NodeHealth) -> Span {
    Span(node.lease_duration.0 / 4)
}

pub(crate) fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
