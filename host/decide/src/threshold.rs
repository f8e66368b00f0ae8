//! When a node's condition has gone on for long enough.

use alloc::collections::BTreeSet;

use crate::bug::{Bug, guard, is_seeded};
use crate::crossing::Crossing;
use crate::symptom::{Finding, READY, condition};
use crate::{ConditionStatus, NodeView, REPORTS_WITHIN, Span, Symptom, Time, symptom};

/// What has to be seen, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Threshold {
    /// What is looked at.
    pub symptom: Symptom,
    /// For how long. What a symptom asks for itself comes before it.
    pub period: Span,
    /// A condition that was last reported longer ago is not known.
    pub stale_after: Span,
}

/// Whether a node has crossed a threshold, and if not yet, when it will.
pub fn crossed(node: &NodeView, threshold: &Threshold, now: Time) -> Crossing {
    let (since, there_at) =
        match symptom::find(node, &threshold.symptom, threshold.stale_after, now) {
            Finding::There { since } => (since, since),
            Finding::Coming { since, at } => (since, at),
            Finding::Absent { .. } => {
                let next_look = next_look(node, threshold, now);
                return Crossing::Clear { ready: is_ready(node), next_look };
            }
            Finding::Unclear => return Crossing::Unclear,
        };
    let crosses_at = there_at.after(threshold.period).max(reports_until(node));
    if now >= crosses_at {
        Crossing::Crossed { since }
    } else {
        Crossing::Ripening { since, crosses_at }
    }
}

/// When a symptom may become another one without anything new being seen: a part of a compound whose
/// others are not known may be due.
pub fn next_look(node: &NodeView, threshold: &Threshold, now: Time) -> Option<Time> {
    symptom::next_look(node, &threshold.symptom, now)
}

/// Until when a node that has just come back, or that answers, is given time to say how it is. What stands of it
/// meanwhile is the node controller's word, and others', from before.
fn reports_until(node: &NodeView) -> Time {
    let answers_since = node.answers_since.filter(|_| !is_seeded(Bug::AnswersIgnored));
    let answers = answers_since.map(|since| since.after(REPORTS_WITHIN));
    just_back_until(node).max(answers).unwrap_or_default()
}

/// Until when a node that has just come back is given time to report; `None` if it is not just back. Ends early if a renewal
/// is overdue again.
pub(crate) fn just_back_until(node: &NodeView) -> Option<Time> {
    let is_back = guard(Bug::JustBackIgnored, is_silent(node));
    let heard = node.heard_since.zip(symptom::overdue_at(node)).filter(|_| is_back);
    heard.map(|(since, overdue)| since.after(REPORTS_WITHIN).min(overdue))
}

/// Whether only that a node answers keeps a threshold from being crossed.
pub fn is_held_by_answers(node: &NodeView, threshold: &Threshold, now: Time) -> bool {
    if node.answers_since.is_none() {
        return false;
    }
    let unheard = NodeView { answers_since: None, ..node.clone() };
    is_crossed(&unheard, threshold, now) && !is_crossed(node, threshold, now)
}

/// Whether only that a node has no Lease keeps a threshold from being crossed. Nobody can tell since when such a node is
/// silent, so nothing is done; that its Ready is Unknown is reason enough to say so.
pub fn is_held_by_missing_lease(node: &NodeView, threshold: &Threshold, now: Time) -> bool {
    if !is_silent(node) || node.lease_seen_at.is_some() {
        return false;
    }
    let unrenewed = NodeView { lease_seen_at: Some(Time::default()), ..node.clone() };
    is_crossed(&unrenewed, threshold, now) && !is_crossed(node, threshold, now)
}

/// The condition types that keep a compound threshold of a silent node from being decided. A plain condition that is Unknown
/// is expected on a silent node, and is not named.
pub fn unknown_conditions<'t>(
    node: &NodeView,
    threshold: &'t Threshold,
    now: Time,
) -> BTreeSet<&'t str> {
    let is_compound =
        matches!(threshold.symptom, Symptom::All(_) | Symptom::Any(_) | Symptom::Not(_));
    if is_compound && is_silent(node) && crossed(node, threshold, now) == Crossing::Unclear {
        return symptom::unknown_types(node, &threshold.symptom, threshold.stale_after, now);
    }
    BTreeSet::new()
}

/// Whether the node controller says that the kubelet is silent.
fn is_silent(node: &NodeView) -> bool {
    condition(node, READY).is_some_and(|ready| ready.status == ConditionStatus::Unknown)
}

fn is_crossed(node: &NodeView, threshold: &Threshold, now: Time) -> bool {
    matches!(crossed(node, threshold, now), Crossing::Crossed { .. })
}

fn is_ready(node: &NodeView) -> bool {
    condition(node, READY).is_some_and(|ready| ready.status == ConditionStatus::True)
}
