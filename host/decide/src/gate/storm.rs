//! Storms: nodes that fall silent together are a network's or a power line's doing, not the nodes'.
//! All nodes are judged against the target's last renewal; the cluster's share counts, and that of
//! each failure domain that the target is in.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::control_plane::refuse_control_plane;
use super::headroom::refuse_headroom;
use super::{EXAMPLES_MAX, GatePolicy, GateView, NodeHealth, Refusal, Verdict};
use crate::bug::{Bug, guard, is_sown};
use crate::{Span, Time};

/// How a node is, judged against the target's last renewal.
pub(super) enum Health {
    /// It was heard since.
    Well,
    /// Certainly not well.
    Unhealthy,
    /// Not heard since the target fell silent, and its time is not up before then.
    Unheard(Time),
}

/// How many nodes of a domain, or of all, are how.
#[derive(Default)]
struct Count<'a> {
    total: u32,
    /// Certainly not well.
    unhealthy: Vec<&'a str>,
    /// Not heard yet.
    unheard: u32,
    /// When the last of those is due.
    judged_at: Time,
}

impl<'a> Count<'a> {
    fn of(nodes: impl Iterator<Item = &'a (&'a NodeHealth, Health)>) -> Self {
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
            }
        }
        count
    }

    fn certain(&self) -> u32 {
        number(self.unhealthy.len())
    }

    fn at_worst(&self) -> u32 {
        self.certain().saturating_add(self.unheard)
    }
}

/// Refuses while too many nodes are silent with the target, of the cluster or of a domain of its own.
pub(super) fn refuse_storm(policy: &GatePolicy, view: &GateView, now: Time, verdict: &mut Verdict) {
    let found = view.nodes.iter().find(|node| node.name == view.target);
    let Some((target, begun)) = found.and_then(|node| Some((node, begun(view, node, now)?))) else {
        verdict.refusals.push(Refusal::NoLease);
        return;
    };
    let heard_after = begun.after(overdue_after(target));
    let nodes: Vec<(&NodeHealth, Health)> =
        view.nodes.iter().map(|node| (node, health(view, node, heard_after, now))).collect();
    refuse_control_plane(target, &nodes, verdict);
    refuse_headroom(policy.schedulable_percent_min, target, &nodes, verdict);
    let count = Count::of(nodes.iter());
    if let Some(refusal) = too_many(policy, count.certain(), count.total, &count.unhealthy) {
        verdict.refusals.push(refusal);
    } else if too_many(policy, count.at_worst(), count.total, &[]).is_some() {
        not_judged(&count, verdict);
    }
    for (place, limit) in policy.domains.iter().enumerate() {
        let Some(own) = domain_of(target, place) else { continue };
        // A node without the label that is not well may be of this domain.
        let counts = |one: &&(&NodeHealth, Health)| match (domain_of(one.0, place), &one.1) {
            (Some(domain), _) => domain == own,
            (None, Health::Unhealthy | Health::Unheard(_)) => true,
            (None, Health::Well) => false,
        };
        let count = Count::of(nodes.iter().filter(counts));
        let percent_max = limit.unhealthy_percent_max;
        let domain = || format!("{}={own}", limit.key);
        if is_sown(Bug::ZonesIgnored) {
            continue;
        }
        if let Some(percent) = share_over(count.certain(), count.total, percent_max) {
            verdict.refusals.push(Refusal::DomainUnhealthy {
                domain: domain(),
                unhealthy: count.certain(),
                total: count.total,
                percent,
                percent_max,
            });
        } else if share_over(count.at_worst(), count.total, percent_max).is_some() {
            not_judged(&count, verdict);
        }
    }
}

/// Refuses while so many nodes of a domain are worked on, or where nobody knows the target's domain.
pub(super) fn refuse_full_domains(policy: &GatePolicy, view: &GateView, verdict: &mut Verdict) {
    let find = |name: &String| view.nodes.iter().find(|node| node.name == *name);
    let target = find(&view.target);
    for (place, limit) in policy.domains.iter().enumerate() {
        let Some(own) = target.and_then(|target| domain_of(target, place)) else {
            verdict.refusals.push(Refusal::NoDomain { key: limit.key.clone() });
            continue;
        };
        let Some(max) = limit.in_flight_max else { continue };
        // A node that is gone, or has no label, may be of this domain.
        let shares = |name: &&String| {
            let domain = find(name).and_then(|node| domain_of(node, place));
            domain.is_none_or(|domain| domain == own)
        };
        let nodes: Vec<String> = view.in_flight_on.iter().filter(shares).cloned().collect();
        if guard(Bug::ZoneSlotsUnlimited, number(nodes.len()) >= max) {
            let domain = format!("{}={own}", limit.key);
            verdict.refusals.push(Refusal::DomainInFlight { domain, nodes, max });
        }
    }
}

fn domain_of(node: &NodeHealth, place: usize) -> Option<&str> {
    node.domains.get(place)?.as_deref()
}

fn health(view: &GateView, node: &NodeHealth, heard_after: Time, now: Time) -> Health {
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
        Health::Well
    }
}

fn not_judged(count: &Count<'_>, verdict: &mut Verdict) {
    let (until, unheard) = (count.judged_at, count.unheard);
    let refusal = Refusal::SilenceNotJudged { until, unheard };
    if !verdict.refusals.iter().any(|one| matches!(one, Refusal::SilenceNotJudged { .. })) {
        verdict.refusals.push(refusal);
    }
    verdict.look_at(until);
}

/// What the others' renewals are held against: the target's last one. A target that still renews,
/// or that never did, did not fall silent with them; for it, it is when its sign began.
fn begun(view: &GateView, target: &NodeHealth, now: Time) -> Option<Time> {
    let Some(renewed_at) = target.renewed_at else {
        return view.sign_since.filter(|_| view.never_joined);
    };
    let overdue = overdue_after(target);
    let lives =
        |since: &Time| renewed_at > since.after(overdue) && now <= renewed_at.after(overdue);
    Some(view.sign_since.filter(lives).unwrap_or(renewed_at))
}

fn too_many(policy: &GatePolicy, unhealthy: u32, total: u32, names: &[&str]) -> Option<Refusal> {
    if is_lone(unhealthy, total) {
        return None;
    }
    if let Some(max) = policy.unhealthy_max.filter(|max| unhealthy >= *max) {
        return Some(Refusal::UnhealthyCount { unhealthy, max });
    }
    let percent_max = policy.unhealthy_percent_max;
    let percent = share_over(unhealthy, total, percent_max)?;
    let examples = names.iter().take(EXAMPLES_MAX).map(|name| String::from(*name)).collect();
    Some(Refusal::UnhealthyShare { unhealthy, total, percent, percent_max, examples })
}

/// The share in percent, cut, if it reaches the limit.
fn share_over(unhealthy: u32, total: u32, percent_max: u32) -> Option<u32> {
    let shares = u64::from(unhealthy).saturating_mul(100);
    let is_over = shares >= u64::from(percent_max).saturating_mul(u64::from(total));
    let percent = u32::try_from(shares / u64::from(total.max(1))).unwrap_or(u32::MAX);
    (is_over && !is_lone(unhealthy, total)).then_some(percent)
}

/// One lost node is never a storm, whatever its share of a small cluster, unless it is all of it.
fn is_lone(unhealthy: u32, total: u32) -> bool {
    unhealthy < 2 && total > 1
}

/// A renewal is overdue after 1.2 times the renewal interval.
fn overdue_after(node: &NodeHealth) -> Span {
    Span(renewal_interval(node).0.saturating_mul(12) / 10)
}

/// A kubelet renews four times in its Lease's duration.
fn renewal_interval(node: &NodeHealth) -> Span {
    Span(node.lease_duration.0 / 4)
}

fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
