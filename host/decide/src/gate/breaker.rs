//! The breaker: where incidents begin faster than machines die by themselves, something else is at
//! work, and nothing more is begun until one that is let through ends well.
//!
//! Closed → so many began within the window → open for the cool-down → half-open: one at a time →
//! one ended well → closed, and counted from anew; one failed → open again. What it says follows from
//! the incidents alone, whoever asks and in whatever order they are told, so a restart forgets
//! nothing. Not here: an incident that has begun. It goes on, or a machine would stay off.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Refusal, Verdict};
use crate::bug::{Bug, is_sown};
use crate::{Span, Time};

/// When too many incidents begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BreakerPolicy {
    /// From so many on, of all nodes together.
    pub incidents_max: u32,
    /// That begin within this time.
    pub window: Span,
    /// For how long nothing more is begun.
    pub cool_down: Span,
}

impl Default for BreakerPolicy {
    /// Machines that die by themselves are hours apart; five within one are something else's work.
    fn default() -> Self {
        Self { incidents_max: 5, window: Span::minutes(60), cool_down: Span::minutes(30) }
    }
}

/// The incidents that the breaker judges by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Incidents {
    /// Nobody asked.
    #[default]
    NotAsked,
    /// What is looked at has begun: nothing more is begun with it.
    Begun,
    /// All that are known.
    Known(Vec<IncidentView>),
    /// They could not be read.
    Unread {
        /// Why.
        why: String,
    },
}

/// One incident as the breaker sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IncidentView {
    /// Its `NodeFence`.
    pub name: String,
    /// When it was opened, by the clock of the replica that opened it.
    pub begun_at: Time,
    /// When it was created, by the API server; 0 where nobody says.
    pub created_at: Time,
    /// What became of it.
    pub ending: Ending,
}

impl IncidentView {
    /// The later of both stamps: the API server's clock may have been set ahead before the opener noticed, and an early
    /// start would end the cool-down early. A `created_at` in the future is ignored: the clock was set back.
    fn starts_at(&self, now: Time) -> Time {
        if self.created_at > now || is_sown(Bug::CreationIgnored) {
            return self.begun_at;
        }
        self.begun_at.max(self.created_at)
    }
}

/// What became of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It goes on.
    None,
    /// It goes on, and since then it waits for a device or a person.
    Stalled(Time),
    /// Its node was well again.
    Well(Time),
    /// It stopped for a person.
    Failed(Time),
    /// It says nothing: a person stopped it, or the node is gone.
    Moot,
}

impl Ending {
    /// Nothing ends before it begins, whatever a clock that ran behind wrote.
    #[must_use]
    fn not_before(self, begun_at: Time) -> Self {
        match self {
            Self::Well(at) => Self::Well(at.max(begun_at)),
            Self::Failed(at) => Self::Failed(at.max(begun_at)),
            Self::None | Self::Stalled(_) | Self::Moot => self,
        }
    }
}

/// Why the breaker is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Tripped {
    /// So many incidents began within the window.
    TooMany {
        /// How many.
        begun: u32,
        /// The limit.
        max: u32,
        /// Within this time.
        window: Span,
    },
    /// The one that was let through to try it failed.
    TrialFailed {
        /// Its `NodeFence`.
        name: String,
    },
}

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
    let Some(policy) = policy.filter(|_| !is_sown(Bug::BreakerIgnored)) else { return };
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
