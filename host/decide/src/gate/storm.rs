//! Storms: nodes that fall silent together are a network's or a power line's doing, not the nodes'.
//! All nodes are judged against the target's last renewal. The cluster's share counts, that of each
//! failure domain that the target is in, and how many fell silent when the target did. A storm has a
//! tail: nodes that came back count until they have renewed a few times, as the others may follow.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::control_plane::refuse_control_plane;
use super::headroom::refuse_headroom;
use crate::Time;
use crate::bug::{Bug, guard, is_seeded};
use crate::gate::health::{Count, Health, begun, domain_of, health, number, overdue_after};
use crate::gate::refusal::{Refusal, Verdict};
use crate::gate::view::{GatePolicy, GateView, NodeHealth};

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
    let of_all = |unhealthy| too_many(policy, unhealthy, count.total, count.examples());
    count.refuse(of_all, verdict);
    refuse_at_once(policy.silent_at_once_max, target, begun, &nodes, now, verdict);
    for (place, limit) in policy.domains.iter().enumerate() {
        let Some(own) = domain_of(target, place) else { continue };
        // A node without the label that is not well may be of this domain.
        let counts = |one: &&(&NodeHealth, Health)| match (domain_of(one.0, place), &one.1) {
            (Some(domain), _) => domain == own,
            (None, Health::Unhealthy | Health::Unheard(_) | Health::Returning(_)) => {
                guard(Bug::UnlabelledNotCounted, true)
            }
            (None, Health::Well) => false,
        };
        if is_seeded(Bug::ZonesIgnored) {
            continue;
        }
        let count = Count::of(nodes.iter().filter(counts));
        let percent_max = limit.unhealthy_percent_max;
        let of_domain = |unhealthy| {
            // One node of a domain is not its outage, also where it is alone there.
            if unhealthy < 2 {
                return None;
            }
            let (domain, total) = (format!("{}={own}", limit.key), count.total);
            let percent = share_over(unhealthy, total, percent_max)?;
            Some(Refusal::DomainUnhealthy { domain, unhealthy, total, percent, percent_max })
        };
        count.refuse(of_domain, verdict);
    }
}

/// Refuses where too many fell silent when the target did, however large the cluster is. Last renewals that
/// lie within the time of one, with some leeway, may have ended at one moment.
fn refuse_at_once(
    max: u32,
    target: &NodeHealth,
    begun: Time,
    nodes: &[(&NodeHealth, Health)],
    now: Time,
    verdict: &mut Verdict,
) {
    // One that goes on to renew its Lease fell silent with nobody.
    let Some(own) = target.renewed_between.filter(|_| target.renewed_at == Some(begun)) else {
        return;
    };
    let window = overdue_after(target);
    let is_with =
        |(first, last): (Time, Time)| first <= own.1.after(window) && last.after(window) >= own.0;
    let fell_with = |(node, health): &&(&NodeHealth, Health)| match health {
        Health::Well => false,
        Health::Returning(_) => {
            let since = node.came_back.and_then(|back| back.silent_since);
            since.is_some_and(|since| is_with((since, since)))
        }
        Health::Unhealthy | Health::Unheard(_) => {
            let is_silent = node
                .renewed_at
                .is_some_and(|at| at <= begun.after(window) || now > at.after(overdue_after(node)));
            is_silent && node.renewed_between.is_some_and(is_with)
        }
    };
    let count = Count::of(nodes.iter().filter(fell_with));
    let at_once = |silent| {
        let examples = count.examples();
        let refused = silent >= max && silent > 1;
        refused.then_some(Refusal::SilentAtOnce { silent, max, window, examples })
    };
    if !is_seeded(Bug::StormFromReady) && !is_seeded(Bug::SilentAtOnceIgnored) {
        count.refuse(at_once, verdict);
    }
}

/// Refuses while so many nodes of a domain are worked on, or where nobody knows the target's domain.
pub(super) fn refuse_full_domains(policy: &GatePolicy, view: &GateView, verdict: &mut Verdict) {
    let find = |name: &String| view.nodes.iter().find(|node| node.name == *name);
    let target = find(&view.target);
    for (place, limit) in policy.domains.iter().enumerate() {
        let Some(own) = target.and_then(|target| domain_of(target, place)) else {
            if !is_seeded(Bug::UnknownZoneAllowed) {
                verdict.refusals.push(Refusal::NoDomain { key: limit.key.clone() });
            }
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

fn too_many(
    policy: &GatePolicy,
    unhealthy: u32,
    total: u32,
    examples: Vec<String>,
) -> Option<Refusal> {
    if is_lone(unhealthy, total) {
        return None;
    }
    if let Some(max) = policy.unhealthy_max.filter(|max| unhealthy >= *max) {
        return Some(Refusal::UnhealthyCount { unhealthy, max });
    }
    let percent_max = policy.unhealthy_percent_max;
    let percent = share_over(unhealthy, total, percent_max)?;
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
