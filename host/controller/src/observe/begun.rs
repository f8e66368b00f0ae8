//! The incidents that the breaker judges by, out of the NodeFences that the API server keeps: nothing
//! is remembered anywhere else, so a restart and a new leader know the same.
//!
//! Right before a run is opened they are listed live, as a watch may be behind what this very process
//! wrote. Not here: when it is too much, which `decide` says.

use std::time::Duration;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::{FinalReason, NodeFence, NodeFenceStatus, Phase};
use node_remedy_api::policy::GateLimits;
use node_remedy_decide::{Ending, IncidentView, Incidents, Time};

use super::Mirror;
use super::superseding::was_superseded;
use super::view::is_approved;
use crate::clock::time_of;
use crate::cluster::{Cluster, Read, Scope, Unread};

/// An answer that takes longer lets the rest of the look grow old: evidence keeps for five seconds.
const READ_MAX: Duration = Duration::from_secs(4);

/// As the cache has them, where the limits ask for them.
pub fn cached(mirror: &Mirror, limits: &GateLimits) -> Incidents {
    if limits.breaker.is_none() {
        return Incidents::NotAsked;
    }
    let (nodefences, unread) = (mirror.nodefences.all(), mirror.nodefences.unread());
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

fn incidents_of(begun: impl Iterator<Item = Result<IncidentView, String>>) -> Incidents {
    match begun.collect() {
        Ok(incidents) => Incidents::Known(incidents),
        Err(why) => Incidents::Unread { why },
    }
}

/// One without a record has begun as well: somebody is about to write it.
fn incident_of(nodefence: &NodeFence) -> Result<IncidentView, String> {
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

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as Created;
    use node_remedy_api::time::Moment;

    use super::*;
    use crate::cli::people::APPROVE;
    use crate::clock::timestamp;
    use crate::testing::{Open, example, night_of_a_failed_on, play_behind};

    #[test]
    fn what_became_of_an_incident_is_read_from_its_record() {
        let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
        let mut one = played.collected.incidents.into_values().next().unwrap().0;
        one.metadata.creation_timestamp = None;
        let change = |one: &mut NodeFence, phase, reason, at: u64| {
            let status = one.status.as_mut().unwrap();
            (status.phase, status.final_reason) = (phase, reason);
            (status.opened_at, status.entered_at) = (Moment::from_ms(7), Moment::from_ms(at));
        };
        let rows = [
            (Phase::Final, Some(FinalReason::Remedied), Ending::Well(Time(9))),
            (Phase::Final, Some(FinalReason::Recovered), Ending::Well(Time(9))),
            (Phase::Final, Some(FinalReason::RecoveredByHand), Ending::Failed(Time(9))),
            (Phase::Final, Some(FinalReason::Aborted), Ending::Moot),
            (Phase::Final, Some(FinalReason::Replaced), Ending::Moot),
            (Phase::Final, Some(FinalReason::NodeGone), Ending::Moot),
            (Phase::Final, None, Ending::Failed(Time(9))),
            (Phase::Parked, None, Ending::Failed(Time(9))),
            (Phase::AwaitingDevice, None, Ending::Stalled(Time(9))),
            (Phase::AwaitingPower, None, Ending::None),
            (Phase::Recovering, None, Ending::None),
        ];
        for (phase, reason, ending) in rows {
            change(&mut one, phase, reason, 9);
            let name = one.name_any();
            let expected = IncidentView { name, begun_at: Time(7), created_at: Time(0), ending };
            assert_eq!(incident_of(&one), Ok(expected), "{phase:?} {reason:?}");
        }

        one.metadata.creation_timestamp = Some(Created(timestamp(Time(60_000))));
        assert_eq!(incident_of(&one).unwrap().created_at, Time(60_000), "by the API server");
        one.metadata.creation_timestamp = None;

        change(&mut one, Phase::AwaitingDevice, None, 9);
        one.status.as_mut().unwrap().unreachable_at = Some(Moment::from_ms(8));
        assert_eq!(incident_of(&one).unwrap().ending, Ending::Stalled(Time(8)), "silent since");
        change(&mut one, Phase::AwaitingPower, None, 9);
        one.spec.policy.approval = true;
        assert_eq!(incident_of(&one).unwrap().ending, Ending::Stalled(Time(9)), "not approved");
        let uid = one.uid().unwrap();
        one.annotations_mut().insert(APPROVE.to_owned(), uid);
        assert_eq!(incident_of(&one).unwrap().ending, Ending::None, "approved");

        one.status = None;
        let begun = incident_of(&one);
        let name = one.name_any();
        assert_eq!(begun, Err(format!("{name} has no record and no age")));
        one.metadata.creation_timestamp = Some(Created(timestamp(Time(60_000))));
        let begun = incident_of(&one).unwrap();
        assert_eq!(begun.ending, Ending::None, "its record is about to be written");
        one.metadata.creation_timestamp = None;
        let unread = incidents_of([incident_of(&one)].into_iter());
        let why = format!("{} has no record and no age", one.name_any());
        assert_eq!(unread, Incidents::Unread { why });
    }

    #[test]
    fn one_that_was_parked_failed_then_whatever_came_later() {
        let played = night_of_a_failed_on();
        let mut parked = played.collected.incidents.into_values().next().unwrap().0;
        let at = parked.status.as_ref().unwrap().parked.as_ref().unwrap().at;
        let status = parked.status.as_mut().unwrap();
        status.phase = Phase::Final;
        status.final_reason = Some(FinalReason::RecoveredByHand);
        status.entered_at = Moment::from_ms(at.ms + 5_000);
        assert_eq!(incident_of(&parked).unwrap().ending, Ending::Failed(Time(at.ms)));
    }
}
