//! P8: whether outlets that name no machine feed this one, by what other nodes do meanwhile.

use alloc::string::String;

use crate::run::{Flow, Run};
use crate::{
    Baseline, Binding, LOOK_EVERY, MethodIndex, Neighbours, NodeView, Plan, Rule, Span, Time, View,
};

/// Notes the signs of life, once: after the last off, and before the reads that count as proof.
pub(crate) fn baseline(run: &mut Run<'_>) -> Option<Time> {
    if let Some(baseline) = &run.record.baseline {
        return Some(baseline.at);
    }
    let view = run.look()?;
    let liveness = run.node(view).map(|node| node.liveness.clone()).unwrap_or_default();
    run.record.baseline = Some(Baseline { at: view.taken_at, liveness });
    Some(view.taken_at)
}

/// Whether plugs that know no machine feed this one.
pub(crate) enum Wiring {
    Right,
    /// The run looks again.
    Unsure,
    /// This other node fell silent by them.
    Wrong(String),
}

/// P8: a plug that knows no machine, verified or trusted, is believed only after two Lease intervals of silence, and once
/// every other node was heard since.
pub(crate) fn wiring(
    run: &mut Run<'_>,
    view: &View,
    node: &NodeView,
    off: &[MethodIndex],
    baseline_at: Time,
) -> Wiring {
    if !any_labelled(run.plan, off) {
        return Wiring::Right;
    }
    run.rule(Rule::P8);
    if let Neighbours::Silent(neighbour) = view.neighbours.clone() {
        return Wiring::Wrong(neighbour);
    }
    if silence(run, node, baseline_at).is_some() {
        return Wiring::Unsure;
    }
    if view.neighbours == Neighbours::Awaited {
        run.look_in(LOOK_EVERY);
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
pub(crate) fn silence(run: &mut Run<'_>, node: &NodeView, since: Time) -> Option<Flow> {
    let until = since.after(Span(node.lease_duration.0 / 4).times(2));
    if run.now >= until {
        return None;
    }
    run.look_at(until);
    Some(Flow::Stay)
}
