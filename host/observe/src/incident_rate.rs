//! The incidents that the breaker judges by, out of the NodeFences that the API server keeps: nothing
//! is remembered anywhere else, so a restart and a new leader know the same.
//!
//! Right before an incident is opened they are listed live, as a watch may be behind what this very process
//! wrote. Not here: when it is too much, which `decide` says.

use std::time::Duration;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::{FinalReason, NodeFence, NodeFenceStatus, Phase};
use node_remedy_api::policy::GateLimits;
use node_remedy_decide::{Ending, IncidentView, Incidents, Time};
use node_remedy_runtime::clock::time_of;
use node_remedy_runtime::cluster::unread::{Read, Unread};
use node_remedy_runtime::cluster::{Cluster, Scope};

use crate::caches::Caches;
use crate::nodefences::{is_approved, was_superseded};

/// An answer that takes longer lets the rest of the look grow old: evidence keeps for five seconds.
const READ_MAX: Duration = Duration::from_secs(4);

/// As the cache has them, where the limits ask for them.
pub fn cached(caches: &Caches, limits: &GateLimits) -> Incidents {
    if limits.breaker.is_none() {
        return Incidents::NotAsked;
    }
    let (nodefences, unread) = (caches.nodefences.all(), caches.nodefences.unread());
    incidents_of(
        nodefences
            .values()
            .filter(|kept| !was_superseded(&kept.0))
            .map(|kept| incident_of(&kept.0))
            .chain(unread.values().map(unread_incident)),
    )
}

/// From the API server, where the limits ask for them.
pub async fn live<C: Cluster>(cluster: &C, limits: &GateLimits) -> Incidents {
    if limits.breaker.is_none() {
        return Incidents::NotAsked;
    }
    let mut begun = Vec::new();
    let keep = |read: Read<NodeFence>| {
        // The incident that it made way for counts.
        if !read.as_ref().is_ok_and(was_superseded) {
            begun.push(read.as_ref().map_or_else(unread_incident, incident_of));
        }
    };
    match tokio::time::timeout(READ_MAX, cluster.list_each(&Scope::all(), keep)).await {
        Err(_) => Incidents::Unread { why: format!("no answer in {} s", READ_MAX.as_secs()) },
        Ok(Err(error)) => Incidents::Unread { why: error.to_string() },
        Ok(Ok(_)) => incidents_of(begun.into_iter()),
    }
}

/// What is known of incidents begun; one that cannot be read makes the number unknown.
pub fn incidents_of(begun: impl Iterator<Item = Result<IncidentView, String>>) -> Incidents {
    match begun.collect() {
        Ok(incidents) => Incidents::Known(incidents),
        Err(why) => Incidents::Unread { why },
    }
}

/// One without a record has begun as well: somebody is about to write it.
pub fn incident_of(nodefence: &NodeFence) -> Result<IncidentView, String> {
    let name = nodefence.name_any();
    let Some(status) = &nodefence.status else {
        let created = nodefence.creation_timestamp();
        let created = created.ok_or_else(|| format!("{name} has no record and no age"))?;
        let begun_at = time_of(&created.0);
        return Ok(IncidentView { name, begun_at, created_at: begun_at, ending: Ending::None });
    };
    let ending = match ending_of(status) {
        Ending::None => stalled_since(nodefence, status).map_or(Ending::None, Ending::Stalled),
        ending @ (Ending::Stalled(_) | Ending::Well(_) | Ending::Failed(_) | Ending::Moot) => {
            ending
        }
    };
    let begun_at = Time(status.opened_at.ms);
    let created = nodefence.creation_timestamp().map(|created| time_of(&created.0));
    Ok(IncidentView { name, begun_at, created_at: created.unwrap_or_default(), ending })
}

/// Of one that cannot be read nobody knows how it ends: it counts as one that failed as it began.
fn unread_incident(unread: &Unread) -> Result<IncidentView, String> {
    let name = unread.name().to_owned();
    let created = unread.text("/metadata/creationTimestamp").and_then(|text| text.parse().ok());
    let created = created.ok_or_else(|| format!("{name} cannot be read, and has no age"))?;
    let begun_at = time_of(&created);
    Ok(IncidentView { name, begun_at, created_at: begun_at, ending: Ending::Failed(begun_at) })
}

fn ending_of(status: &NodeFenceStatus) -> Ending {
    let entered_at = Time(status.entered_at.ms);
    // It failed then, also if a person brought its node back since.
    if let Some(parked) = &status.parked {
        return Ending::Failed(Time(parked.at.ms));
    }
    if status.phase == Phase::Parked {
        return Ending::Failed(entered_at);
    }
    if status.phase != Phase::Final {
        return Ending::None;
    }
    match status.final_reason {
        Some(FinalReason::Remedied | FinalReason::Recovered) => Ending::Well(entered_at),
        Some(FinalReason::RecoveredByHand) | None => Ending::Failed(entered_at),
        Some(
            FinalReason::Aborted
            | FinalReason::Replaced
            | FinalReason::NodeGone
            | FinalReason::Superseded
            | FinalReason::Unreported,
        ) => Ending::Moot,
    }
}

/// Since when one that goes on waits for what may take days: a device, or a person's approval.
fn stalled_since(nodefence: &NodeFence, status: &NodeFenceStatus) -> Option<Time> {
    let entered_at = Time(status.entered_at.ms);
    if status.phase == Phase::AwaitingDevice {
        return Some(status.unreachable_at.map_or(entered_at, |at| Time(at.ms)));
    }
    let waits = status.phase == Phase::AwaitingPower && nodefence.spec.policy.approval;
    (waits && !is_approved(nodefence)).then_some(entered_at)
}
