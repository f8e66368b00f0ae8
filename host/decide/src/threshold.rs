//! When a node's condition has gone on for long enough.

use alloc::collections::BTreeSet;
use alloc::string::String;

use crate::{ConditionStatus, ConditionView, NodeView, Span, Time};

/// What has to be seen, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Threshold {
    /// What is looked at.
    pub sign: Sign,
    /// For how long.
    pub period: Span,
}

/// What a threshold looks at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sign {
    /// A condition of this type with one of these statuses.
    Condition {
        /// Its type.
        kind: String,
        /// Statuses that count.
        statuses: BTreeSet<ConditionStatus>,
    },
    /// The node's Lease was not renewed.
    LeaseAge,
}

/// Whether a threshold is crossed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Crossing {
    /// The sign is not there.
    Clear {
        /// Ready is True too. Whether that is newer than the trigger, the record knows.
        ready: bool,
        /// When the sign may be there without anything new being seen.
        next_look: Option<Time>,
    },
    /// Nobody knows: Unknown where it does not count, or nothing to look at. Clears nothing.
    Unclear,
    /// The sign is there, and not yet for long enough.
    Ripening {
        /// Since when.
        since: Time,
        /// When it will be crossed.
        crosses_at: Time,
    },
    /// It has gone on for long enough.
    Crossed {
        /// Since when the sign is there.
        since: Time,
    },
}

impl Crossing {
    /// When this may change without anything new being seen.
    pub const fn next_look(&self) -> Option<Time> {
        match self {
            Self::Clear { next_look, .. } => *next_look,
            Self::Ripening { crosses_at, .. } => Some(*crosses_at),
            Self::Unclear | Self::Crossed { .. } => None,
        }
    }
}

/// The condition by which Kubernetes itself judges a node.
pub const READY: &str = "Ready";

/// Whether a node has crossed a threshold, and if not yet, when it will.
pub fn crossed(node: &NodeView, threshold: &Threshold, now: Time) -> Crossing {
    let since = match &threshold.sign {
        Sign::Condition { kind, statuses } => match condition(node, kind) {
            Some(seen) if statuses.contains(&seen.status) => seen.since,
            Some(seen) if seen.status == ConditionStatus::Unknown => return Crossing::Unclear,
            Some(_) => return Crossing::Clear { ready: is_ready(node), next_look: None },
            None => return Crossing::Unclear,
        },
        Sign::LeaseAge => match node.lease_seen_at {
            Some(seen_at) if now.since(seen_at) < threshold.period.min(overdue_after(node)) => {
                let next_look = Some(seen_at.after(threshold.period));
                return Crossing::Clear { ready: is_ready(node), next_look };
            }
            Some(seen_at) => seen_at,
            None => return Crossing::Unclear,
        },
    };
    let crosses_at = since.after(threshold.period);
    if now >= crosses_at {
        Crossing::Crossed { since }
    } else {
        Crossing::Ripening { since, crosses_at }
    }
}

/// Since when a condition has gone on, when it was `previous` before and is `seen` now: a change
/// between statuses that both count does not start its age anew.
pub fn since_across(
    previous: &ConditionView,
    seen: &ConditionView,
    statuses: &BTreeSet<ConditionStatus>,
) -> Time {
    if statuses.contains(&previous.status) && statuses.contains(&seen.status) {
        previous.since.min(seen.since)
    } else {
        seen.since
    }
}

/// A renewal is overdue after 1.2 times the renewal interval, four of which fill a Lease.
fn overdue_after(node: &NodeView) -> Span {
    Span(node.lease_duration.0.saturating_mul(3) / 10)
}

fn is_ready(node: &NodeView) -> bool {
    condition(node, READY).is_some_and(|ready| ready.status == ConditionStatus::True)
}

fn condition<'a>(node: &'a NodeView, kind: &str) -> Option<&'a ConditionView> {
    node.conditions.iter().find(|condition| condition.kind == kind)
}
