//! The breaker: where incidents begin faster than machines die by themselves, something else is at
//! work, and nothing more is begun until one that is let through ends well.
//!
//! Closed → so many began within the window → open for the cool-down → half-open: one at a time →
//! one ended well → closed, and counted from anew; one failed → open again. What it says follows from
//! the incidents alone, whoever asks and in whatever order they are told, so a restart forgets
//! nothing. Not here: an incident that has begun. It goes on, or a machine would stay off.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Time;
use crate::bug::{Bug, is_seeded};
use crate::gate::refusal::{Refusal, Tripped, Verdict};
use crate::gate::view::{BreakerPolicy, Ending, IncidentView, Incidents};

/// What happened to an incident, in the order in which it counts where times are equal: doubt first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Began,
    Failed,
    EndedWell,
}

#[derive(Debug, PartialEq, Eq)]
enum Breaker {
    Closed,
    Open { until: Time, why: Tripped },
    HalfOpen { since: Time },
}

/// Refuses to begin anything while too much began, or while that is not known.
pub(super) fn refuse_by_breaker(
    policy: Option<&BreakerPolicy>,
    incidents: &Incidents,
    now: Time,
    verdict: &mut Verdict,
) {
    let Some(policy) = policy.filter(|_| !is_seeded(Bug::BreakerIgnored)) else { return };
    let incidents = match incidents {
        Incidents::Begun => return,
        Incidents::Known(incidents) => incidents,
        Incidents::Unread { why } => {
            verdict.refusals.push(Refusal::BreakerUnread { why: why.clone() });
            return;
        }
        Incidents::NotAsked => {
            let why = String::from("nobody asked for them");
            verdict.refusals.push(Refusal::BreakerUnread { why });
            return;
        }
    };
    match breaker(policy, incidents, now) {
        Breaker::Closed => {}
        Breaker::Open { until, why } => {
            verdict.refusals.push(Refusal::BreakerOpen { why, until });
            verdict.look_at(until);
        }
        Breaker::HalfOpen { .. } => {
            let goes_on = |one: &&IncidentView| match one.ending {
                Ending::None => true,
                Ending::Stalled(since) => now < given_up_at(policy, since),
                Ending::Well(_) | Ending::Failed(_) | Ending::Moot => false,
            };
            let mut going_on: Vec<String> =
                incidents.iter().filter(goes_on).map(|one| one.name.clone()).collect();
            let until = incidents.iter().filter_map(|one| match one.ending {
                Ending::Stalled(since) => Some(given_up_at(policy, since)),
                Ending::None | Ending::Well(_) | Ending::Failed(_) | Ending::Moot => None,
            });
            if let Some(until) = until.filter(|until| now < *until).min() {
                verdict.look_at(until);
            }
            going_on.sort();
            if !going_on.is_empty() {
                verdict.refusals.push(Refusal::BreakerHalfOpen { going_on });
            }
        }
    }
}

/// When an incident that waits for a device or a person says nothing well any more: neither may ever come, and
/// the rest of the cluster does not wait for them.
fn given_up_at(policy: &BreakerPolicy, since: Time) -> Time {
    since.after(policy.cool_down)
}

/// How the breaker stands: everything that happened is gone through in its order.
fn breaker(policy: &BreakerPolicy, incidents: &[IncidentView], now: Time) -> Breaker {
    let mut events: Vec<(Time, What, &IncidentView)> = Vec::new();
    for one in incidents {
        // A stamp that is ahead of our clock counts as now: too early rather than not at all.
        let begun_at = one.starts_at(now).min(now);
        events.push((begun_at, What::Began, one));
        match one.ending.not_before(begun_at) {
            Ending::None | Ending::Moot => {}
            Ending::Stalled(since) => {
                let at = given_up_at(policy, since);
                if at <= now {
                    events.push((at, What::Failed, one));
                }
            }
            Ending::Well(at) => events.push((at.min(now), What::EndedWell, one)),
            Ending::Failed(at) => events.push((at.min(now), What::Failed, one)),
        }
    }
    events.sort_by(|(at, what, one), (other_at, other_what, other)| {
        (at, what, &one.name).cmp(&(other_at, other_what, &other.name))
    });
    let mut breaker = Breaker::Closed;
    let mut begun: Vec<Time> = Vec::new();
    for (at, what, one) in events {
        breaker = cooled_down(breaker, at);
        match (&breaker, what) {
            (Breaker::Closed, What::Began) => {
                begun.retain(|earlier| at.since(*earlier) < policy.window);
                begun.push(at);
                let begun = u32::try_from(begun.len()).unwrap_or(u32::MAX);
                let max = policy.incidents_max;
                if begun >= max {
                    let why = Tripped::TooMany { begun, max, window: policy.window };
                    breaker = Breaker::Open { until: at.after(policy.cool_down), why };
                }
            }
            (Breaker::HalfOpen { since }, What::EndedWell) if one.starts_at(now) >= *since => {
                begun.clear();
                breaker = Breaker::Closed;
            }
            (Breaker::HalfOpen { since }, What::Failed) if one.starts_at(now) >= *since => {
                let why = Tripped::TrialFailed { name: one.name.clone() };
                breaker = Breaker::Open { until: at.after(policy.cool_down), why };
            }
            (Breaker::Closed, What::Failed | What::EndedWell)
            | (
                Breaker::Open { .. } | Breaker::HalfOpen { .. },
                What::Began | What::Failed | What::EndedWell,
            ) => {}
        }
    }
    cooled_down(breaker, now)
}

fn cooled_down(breaker: Breaker, now: Time) -> Breaker {
    match breaker {
        Breaker::Open { until, .. } if now >= until => Breaker::HalfOpen { since: until },
        Breaker::Closed | Breaker::Open { .. } | Breaker::HalfOpen { .. } => breaker,
    }
}
