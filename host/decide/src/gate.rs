//! Whether the cluster as a whole allows another machine to be switched off.

use self::storm::{refuse_full_domains, refuse_storm};
use crate::bug::{Bug, guard, is_seeded};
use crate::{SILENCE_MAX, Time};

mod breaker;
mod control_plane;
mod device_network;
mod headroom;
mod health;
mod refusal;
mod storage;
mod storm;
mod vetoes;
mod view;

pub use self::vetoes::WORD_LOOK_EVERY;
pub use refusal::{ClosedDevice, Pause, Refusal, Tripped, Verdict};
pub use view::{
    BreakerPolicy, CameBack, DeviceNetwork, DomainLimit, Ending, ForeignCordon, GatePolicy,
    GateView, IN_FLIGHT_MAX, IncidentView, Incidents, NodeHealth, OperatorVetoes,
    SILENT_AT_ONCE_MAX, StorageLease, UNHEALTHY_PERCENT_MAX,
};

/// Whether the cluster as a whole allows the target to be switched off.
///
/// Closed on doubt: every reason is listed, so that a person sees all of them at once.
pub fn gate(policy: &GatePolicy, view: &GateView, now: Time) -> Verdict {
    let mut verdict = Verdict::default();
    vetoes::refuse_by_vetoes(policy.foreign_cordon, &view.vetoes, now, &mut verdict);
    refuse_by_peers(view, &mut verdict);
    device_network::refuse_device_network(&view.device_network, now, &mut verdict);
    storage::refuse_storage(policy.storage_lease_age_max, &view.storage, now, &mut verdict);
    refuse_by_time(policy, view, now, &mut verdict);
    breaker::refuse_by_breaker(policy.breaker.as_ref(), &view.incidents, now, &mut verdict);
    let holders = u32::try_from(view.in_flight.len()).unwrap_or(u32::MAX);
    if guard(Bug::SlotsUnlimited, holders >= policy.in_flight_max) {
        let holders = view.in_flight.clone();
        verdict.refusals.push(Refusal::InFlight { holders, max: policy.in_flight_max });
    }
    refuse_full_domains(policy, view, &mut verdict);
    refuse_storm(policy, view, now, &mut verdict);
    verdict
}

fn refuse_by_peers(view: &GateView, verdict: &mut Verdict) {
    if let Some(holder) = view.held_by.clone() {
        verdict.refusals.push(Refusal::HeldByOther { holder });
    }
    if let Some(closed) = view.closed_device.clone() {
        verdict.refusals.push(Refusal::DeviceClosed(closed));
    }
    if let Some(why) = view.disputed.clone().filter(|_| !is_seeded(Bug::ClaimsReadOnce)) {
        verdict.refusals.push(Refusal::MachineDisputed { why });
    }
    if let Some(node) = view.unverified.clone().filter(|_| !is_seeded(Bug::NeighboursAtOnce)) {
        verdict.refusals.push(Refusal::NeighbourUnverified { node });
    }
}

fn refuse_by_time(policy: &GatePolicy, view: &GateView, now: Time, verdict: &mut Verdict) {
    let silent = now.since(view.heard_at);
    if silent > SILENCE_MAX {
        verdict.refusals.push(Refusal::OwnView { silent, max: SILENCE_MAX });
    }
    if let Some(what) = view.not_followed.clone() {
        verdict.refusals.push(Refusal::WatchBroken { what });
    }
    let until = view.last_incident_ended_at.map(|ended_at| ended_at.after(policy.cool_down));
    if let Some(until) = until.filter(|until| now < *until) {
        verdict.refusals.push(Refusal::CoolDown { until });
        verdict.look_at(until);
    }
}
