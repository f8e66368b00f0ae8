//! P8: whether outlets that name no machine feed this one, by what other nodes do meanwhile.

use alloc::string::String;

use crate::draft::{Draft, Flow};
use crate::{
    Baseline, Binding, LOOK_EVERY, MethodIndex, Neighbours, NodeView, Plan, Rule, Span, Time, View,
};

/// Notes the signs of life, once: after the last off, and before the reads that count as proof.
pub(crate) fn baseline(draft: &mut Draft<'_>) -> Option<Time> {
    if let Some(baseline) = &draft.record.baseline {
        return Some(baseline.at);
    }
    let view = draft.look()?;
    let liveness = draft.node(view).map(|node| node.liveness.clone()).unwrap_or_default();
    draft.record.baseline = Some(Baseline { at: view.taken_at, liveness });
    Some(view.taken_at)
}

/// Whether plugs that know no machine feed this one.
pub(crate) enum Wiring {
    Right,
    /// The incident looks again.
    Unsure,
    /// This other node fell silent by them.
    Wrong(String),
}

/// P8: a plug that knows no machine, verified or trusted, is believed only after two Lease intervals of silence, and once
/// every other node was heard since.
pub(crate) fn wiring(
    draft: &mut Draft<'_>,
    view: &View,
    node: &NodeView,
    off: &[MethodIndex],
    baseline_at: Time,
) -> Wiring {
    if !any_labelled(draft.plan, off) {
        return Wiring::Right;
    }
    draft.rule(Rule::P8);
    if let Neighbours::Silent(neighbour) = view.neighbours.clone() {
        return Wiring::Wrong(neighbour);
    }
    if silence(draft, node, baseline_at).is_some() {
        return Wiring::Unsure;
    }
    if view.neighbours == Neighbours::Awaited {
        draft.look_in(LOOK_EVERY);
        return Wiring::Unsure;
    }
    Wiring::Right
}

/// Whether one of these plugs is bound to its node by the configuration alone.
pub(crate) fn any_labelled(plan: &Plan, plugs: &[MethodIndex]) -> bool {
    let is_labelled = |index: &MethodIndex| {
        plan.method(*index).is_some_and(|method| method.binding == Binding::Labelled)
    };
    plugs.iter().any(is_labelled)
}

/// Waits until the node could have renewed its Lease twice since then.
pub(crate) fn silence(draft: &mut Draft<'_>, node: &NodeView, since: Time) -> Option<Flow> {
    let until = since.after(Span(node.lease_duration.0 / 4).times(2));
    if draft.now >= until {
        return None;
    }
    draft.look_at(until);
    Some(Flow::Stay)
}
