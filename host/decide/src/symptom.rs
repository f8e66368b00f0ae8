//! What a threshold looks at, in three values: it is there, it is absent, or nobody knows. What
//! nobody knows neither crosses a threshold nor clears one.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{ChangesView, ConditionStatus, ConditionView, EventView, NodeView, Span, Time};

/// What a threshold looks at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Symptom {
    /// A condition of this type with one of these statuses.
    Condition {
        /// Its type.
        kind: String,
        /// Statuses that count.
        statuses: BTreeSet<ConditionStatus>,
        /// Reasons that count; empty: any.
        reasons: BTreeSet<String>,
    },
    /// The node's Lease was not renewed for this long.
    LeaseAge(Span),
    /// Events about the node.
    Events {
        /// Reasons that count.
        reasons: BTreeSet<String>,
        /// `Normal` or `Warning`; `None`: both.
        kind: Option<String>,
        /// Components that count; empty: any.
        sources: BTreeSet<String>,
        /// So many.
        count: u32,
        /// Within this time.
        window: Span,
    },
    /// A condition whose status keeps changing.
    Flaps {
        /// Its type.
        kind: String,
        /// So many changes.
        count: u32,
        /// Within this time.
        window: Span,
    },
    /// No kubelet ever spoke for the node, and its object is older than this.
    NeverJoined(Span),
    /// All of these.
    All(Vec<Self>),
    /// Any of these.
    Any(Vec<Self>),
    /// Not this.
    Not(Box<Self>),
}

/// What was found of a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Finding {
    /// It is there.
    There {
        /// Since when.
        since: Time,
    },
    /// It has begun, and does not go on for as long as it asks for yet. In a compound it is absent.
    Coming {
        /// Since when.
        since: Time,
        /// When it will be there.
        at: Time,
    },
    /// It is not there.
    Absent {
        /// Since when.
        since: Time,
    },
    /// Nobody knows.
    Unclear,
}

/// The condition by which Kubernetes itself judges a node.
pub const READY: &str = "Ready";
/// Written once by whoever makes the routes, and not again while it stays as it is.
const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";
/// The node controller's reason for the conditions of a node whose kubelet never said anything.
const NEVER_UPDATED: &str = "NodeStatusNeverUpdated";

/// What is found of `sign` on `node`. A condition that was last reported longer ago than
/// `stale_after` is not known.
pub(crate) fn find(node: &NodeView, symptom: &Symptom, stale_after: Span, now: Time) -> Finding {
    let find = |part: &Symptom| find(node, part, stale_after, now);
    match symptom {
        Symptom::Condition { kind, statuses, reasons } => match condition(node, kind) {
            None => Finding::Unclear,
            Some(seen) if is_stale(seen, stale_after, now) => Finding::Unclear,
            Some(seen) if statuses.contains(&seen.status) => {
                if reasons.is_empty() {
                    Finding::There { since: since_across(seen, statuses) }
                } else if reasons.contains(&seen.reason) {
                    Finding::There { since: seen.since }
                } else {
                    Finding::Absent { since: seen.since }
                }
            }
            Some(seen) if seen.status == ConditionStatus::Unknown => Finding::Unclear,
            Some(seen) => Finding::Absent { since: seen.since },
        },
        Symptom::LeaseAge(age) => match node.lease_seen_at {
            Some(seen_at) => of_lease(node, seen_at, *age, now),
            None => Finding::Unclear,
        },
        Symptom::Events { count, window, .. } => match &node.events {
            Some(events) => {
                let events = || events.iter().filter(|event| counts(node, symptom, event));
                of_occurrences(&occurrences(events(), *count, *window, now), *count).unbroken(
                    &newest(events(), *count, now),
                    *count,
                    *window,
                )
            }
            None => Finding::Unclear,
        },
        Symptom::Flaps { kind, count, window } => match &node.changes {
            Some(changes) => of_changes(changes, kind, *count, *window, now),
            None => Finding::Unclear,
        },
        Symptom::NeverJoined(after) => of_joining(node, *after, now),
        // A compound of nothing is no word about anything.
        Symptom::All(parts) | Symptom::Any(parts) if parts.is_empty() => Finding::Unclear,
        Symptom::All(parts) => parts.iter().map(find).fold(NOTHING_ASKED, Finding::and),
        Symptom::Any(parts) => parts.iter().map(find).fold(NOTHING_ASKED.not(), Finding::or),
        Symptom::Not(part) => find(part).not(),
    }
}

/// What `all` of no parts would be: there, since ever.
const NOTHING_ASKED: Finding = Finding::There { since: Time(0) };

impl Finding {
    /// Kleene's and. What is there is so since the later of the two, what is absent since the earlier.
    fn and(self, other: Self) -> Self {
        match (self.settled(), other.settled()) {
            (Self::Absent { since: one }, Self::Absent { since: two }) => {
                Self::Absent { since: one.min(two) }
            }
            (absent @ Self::Absent { .. }, _) | (_, absent @ Self::Absent { .. }) => absent,
            (Self::There { since: one }, Self::There { since: two }) => {
                Self::There { since: one.max(two) }
            }
            (Self::Unclear | Self::There { .. } | Self::Coming { .. }, _) => Self::Unclear,
        }
    }

    /// Kleene's or. What is there is so since the earlier of the two, what is absent since the later.
    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    /// Kleene's not.
    const fn not(self) -> Self {
        match self.settled() {
            Self::There { since } => Self::Absent { since },
            Self::Absent { since } | Self::Coming { since, .. } => Self::There { since },
            Self::Unclear => Self::Unclear,
        }
    }

    /// As a part of a compound: what only begins is not there.
    const fn settled(self) -> Self {
        match self {
            Self::Coming { since, .. } => Self::Absent { since },
            Self::There { .. } | Self::Absent { .. } | Self::Unclear => self,
        }
    }
}

/// So many occurrences before the present ones tell how long a number has been full.
const EARLIER_MAX: usize = 64;

impl Finding {
    /// The same, there since when the number was first full without a break: an occurrence that comes before an
    /// earlier one leaves the window keeps it full. `newest` are in order of time.
    fn unbroken(self, newest: &[Time], count: u32, window: Span) -> Self {
        let Self::There { since } = self else { return self };
        let enough = usize::try_from(count.max(1)).unwrap_or(usize::MAX);
        let full = newest.windows(enough).rev().filter_map(|one| one.first().zip(one.last()));
        let mut began = since;
        for (number, (first, last)) in full.enumerate() {
            if number > 0 && first.after(window) < began {
                break;
            }
            began = began.min(*last);
        }
        Self::There { since: began }
    }
}

/// When a sign may become another one without anything new being seen, after `now`.
pub(crate) fn next_look(node: &NodeView, symptom: &Symptom, now: Time) -> Option<Time> {
    let later = |at: Time| Some(at).filter(|at| *at > now);
    match symptom {
        Symptom::Condition { .. } => None,
        Symptom::LeaseAge(age) => later(node.lease_seen_at?.after(*age)),
        Symptom::Events { count, window, .. } => {
            let events = node.events.iter().flatten().filter(|event| counts(node, symptom, event));
            later(leaves(*occurrences(events, *count, *window, now).first()?, *window))
        }
        Symptom::Flaps { kind, window, .. } => {
            let changes = node.changes.as_ref()?;
            let known = changes.known_since.after(*window);
            let first = within(changes, kind, *window, now).next().map(|at| leaves(at, *window));
            first.into_iter().chain([known]).filter(|at| *at > now).min()
        }
        Symptom::NeverJoined(after) => later(node.created_at.after(*after)),
        Symptom::All(parts) | Symptom::Any(parts) => {
            parts.iter().filter_map(|part| next_look(node, part, now)).min()
        }
        Symptom::Not(part) => next_look(node, part, now),
    }
}

/// The types of a sign's conditions that are missing, Unknown or stale.
pub(crate) fn unknown_types<'s>(
    node: &NodeView,
    symptom: &'s Symptom,
    stale_after: Span,
    now: Time,
) -> BTreeSet<&'s str> {
    let of = |part: &'s Symptom| unknown_types(node, part, stale_after, now);
    match symptom {
        Symptom::Condition { kind, .. } => {
            let is_unknown = find(node, symptom, stale_after, now) == Finding::Unclear;
            is_unknown.then_some(kind.as_str()).into_iter().collect()
        }
        Symptom::All(parts) | Symptom::Any(parts) => parts.iter().flat_map(of).collect(),
        Symptom::Not(part) => of(part),
        Symptom::LeaseAge(_)
        | Symptom::Events { .. }
        | Symptom::Flaps { .. }
        | Symptom::NeverJoined(_) => BTreeSet::new(),
    }
}

/// When a window no longer holds what was `at`.
const fn leaves(at: Time, window: Span) -> Time {
    at.after(window).after(Span(1))
}

/// Whether nobody reports a condition any more. Unknown is the node controller's own word, and so is
/// in effect a Ready that is False: both stand until a kubelet says otherwise.
fn is_stale(condition: &ConditionView, stale_after: Span, now: Time) -> bool {
    let stands = match condition.status {
        ConditionStatus::Unknown => true,
        ConditionStatus::False => condition.kind == READY,
        ConditionStatus::True => false,
    };
    let is_kept = !stands && condition.kind != NETWORK_UNAVAILABLE;
    is_kept && condition.reported.is_some_and(|at| now.since(at) > stale_after)
}

fn of_lease(node: &NodeView, seen_at: Time, age: Span, now: Time) -> Finding {
    let silent = now.since(seen_at);
    if silent < age.min(overdue_after(node)) {
        if !node.lease_was_renewed {
            return Finding::Unclear;
        }
        Finding::Absent { since: seen_at }
    } else if silent < age {
        Finding::Coming { since: seen_at, at: seen_at.after(age) }
    } else {
        Finding::There { since: seen_at }
    }
}

/// Whether an event is one of the sign's. What was before the node last became Ready, or before its
/// present boot, is over: a machine that was cycled does not answer for what it did before.
fn counts(node: &NodeView, symptom: &Symptom, event: &EventView) -> bool {
    let Symptom::Events { reasons, kind, sources, .. } = symptom else { return false };
    let began = condition(node, READY)
        .filter(|ready| ready.status == ConditionStatus::True)
        .map_or(Time(0), |ready| ready.since)
        .max(node.boot_heard_at);
    reasons.contains(&event.reason)
        && kind.as_ref().is_none_or(|kind| *kind == event.kind)
        && (sources.is_empty() || sources.contains(&event.source))
        && event.last >= began
}

/// The first `count` occurrences within the window, in order of time. Those of one event are taken
/// to be spread evenly from its first to its last: nothing else is known of them.
fn occurrences<'a>(
    events: impl Iterator<Item = &'a EventView>,
    count: u32,
    window: Span,
    now: Time,
) -> Vec<Time> {
    let enough = usize::try_from(count).unwrap_or(usize::MAX);
    let begins = now.0.saturating_sub(window.0);
    let mut times: Vec<Time> = events
        .flat_map(|event| {
            let (gaps, length) = spread(event);
            let missed = u128::from(begins.saturating_sub(event.first.0));
            // The first that the window holds: rounded up, so that none is counted that may be out.
            let from = missed.saturating_mul(gaps).div_ceil(length.max(1)).min(gaps);
            (from..=gaps).take(enough).map(|number| occurrence(event, number))
        })
        .filter(|at| at.0 >= begins)
        .collect();
    times.sort_unstable();
    times.truncate(enough);
    times
}

/// The last `count` occurrences until now, and some before them, in order of time.
fn newest<'a>(events: impl Iterator<Item = &'a EventView>, count: u32, now: Time) -> Vec<Time> {
    let enough = usize::try_from(count).unwrap_or(usize::MAX).saturating_add(EARLIER_MAX);
    let mut times: Vec<Time> = events
        .flat_map(|event| {
            let (gaps, _) = spread(event);
            (0..=gaps).rev().map(|number| occurrence(event, number)).take(enough)
        })
        .filter(|at| *at <= now)
        .collect();
    times.sort_unstable();
    times.split_off(times.len().saturating_sub(enough))
}

/// How many gaps are between the occurrences of an event, and how long they are together.
fn spread(event: &EventView) -> (u128, u128) {
    let length = event.last.since(event.first).0;
    (u128::from(event.count.saturating_sub(1)), u128::from(length))
}

/// When the occurrence of this number was, counted from zero; the only one of an event was its last.
fn occurrence(event: &EventView, number: u128) -> Time {
    let (gaps, length) = spread(event);
    let since_first = number.saturating_mul(length).checked_div(gaps).unwrap_or(length);
    Time(event.first.0.saturating_add(u64::try_from(since_first).unwrap_or(u64::MAX)))
}

/// There since the occurrence that made the number full; absent since the last one.
fn of_occurrences(times: &[Time], count: u32) -> Finding {
    let last = times.last().copied().unwrap_or(Time(0));
    if u32::try_from(times.len()).unwrap_or(u32::MAX) >= count.max(1) {
        Finding::There { since: last }
    } else {
        Finding::Absent { since: last }
    }
}

/// Where changes were not watched for as long as the window is, too few are not known to be all.
fn of_changes(changes: &ChangesView, kind: &str, count: u32, window: Span, now: Time) -> Finding {
    let enough = usize::try_from(count).unwrap_or(usize::MAX);
    let times: Vec<Time> = within(changes, kind, window, now).take(enough).collect();
    let all: Vec<Time> = of_kind(changes, kind).collect();
    match of_occurrences(&times, count).unbroken(&all, count, window) {
        Finding::Absent { .. } if now.since(changes.known_since) < window => Finding::Unclear,
        known @ (Finding::There { .. }
        | Finding::Coming { .. }
        | Finding::Absent { .. }
        | Finding::Unclear) => known,
    }
}

fn within<'a>(
    changes: &'a ChangesView,
    kind: &'a str,
    window: Span,
    now: Time,
) -> impl Iterator<Item = Time> + 'a {
    let begins = now.0.saturating_sub(window.0);
    of_kind(changes, kind).filter(move |at| at.0 >= begins)
}

fn of_kind<'a>(changes: &'a ChangesView, kind: &'a str) -> impl Iterator<Item = Time> + 'a {
    changes.changes.iter().filter(move |(of, _)| of == kind).map(|(_, at)| *at)
}

/// Whether no kubelet ever spoke for a node: no Lease, no boot id, and of Ready nothing, or that it
/// was never reported.
pub fn never_joined(node: &NodeView) -> bool {
    let reported = condition(node, READY).is_some_and(|ready| {
        ready.status != ConditionStatus::Unknown || ready.reason != NEVER_UPDATED
    });
    !reported && node.lease_seen_at.is_none() && node.liveness.boot_id.is_empty()
}

fn of_joining(node: &NodeView, after: Span, now: Time) -> Finding {
    if !never_joined(node) {
        let since = condition(node, READY).map_or(node.created_at, |ready| ready.since);
        return Finding::Absent { since };
    }
    let at = node.created_at.after(after);
    if now < at {
        Finding::Coming { since: node.created_at, at }
    } else {
        Finding::There { since: node.created_at }
    }
}

/// When its next renewal is overdue.
pub(crate) fn overdue_at(node: &NodeView) -> Option<Time> {
    node.lease_seen_at.map(|at| at.after(overdue_after(node)))
}

/// A renewal is overdue after 1.2 times the renewal interval, four of which fill a Lease.
fn overdue_after(node: &NodeView) -> Span {
    Span(node.lease_duration.0.saturating_mul(3) / 10)
}

pub(crate) fn condition<'a>(node: &'a NodeView, kind: &str) -> Option<&'a ConditionView> {
    node.conditions.iter().find(|condition| condition.kind == kind)
}

/// A18: since when a condition has gone on: a change between statuses that both count does not start its age anew.
pub(crate) fn since_across(seen: &ConditionView, statuses: &BTreeSet<ConditionStatus>) -> Time {
    let others = seen.left.iter().filter(|(status, _)| !statuses.contains(status));
    let left = others.map(|(_, at)| *at).max();
    left.map_or(seen.since, |left| left.min(seen.since))
}
