//! Somebody wants the node left alone that is lost or will be: a maintenance, a label, a cordon.

use std::fmt::Write as _;

use super::{Cast, Guards, drawn};
use crate::seed_run::{CALM_MS, Draft};

/// The class.
pub(super) const CLASS: &str = "left alone";
const PERCENT: u64 = 5;
/// Where one of these is drawn, who edits a Node is not told apart by its name.
const NOT_WITH_A_LABEL: [&str; 3] = ["edit wrong bmc", "deleteNode", "instance terminated"];

impl Draft {
    pub(super) fn left_alone(&mut self, cast: &Cast<'_>, guards: &mut Guards) {
        let Some(mut rng) = drawn(cast.seed, CLASS, PERCENT) else { return };
        let Some(node) = cast.lost.first() else { return };
        let from = rng.within(5_000, 140_000);
        let until = rng.within(from + 20_000, CALM_MS);
        let edit =
            |fields: &str| format!("edit: {{ kind: Node, name: {node}, merge: {{ {fields} }} }}");
        // The Node's label is all that is edited of it, and it is the same Node.
        let is_other = |class: &String| NOT_WITH_A_LABEL.contains(&class.as_str());
        let ways = if self.drawn.iter().any(is_other) { 2 } else { 3 };
        let (begins, ends) = match rng.below(ways) {
            0 => {
                let maintenance = format!("kind: NodeMaintenance, name: of-{node}");
                let spec = format!("merge: {{ spec: {{ nodeName: {node}, reason: new fans }} }}");
                (
                    format!("edit: {{ {maintenance}, {spec} }}"),
                    format!("remove: {{ {maintenance} }}"),
                )
            }
            1 => (format!("cordon: {node}"), edit("spec: { unschedulable: false }")),
            _ => {
                guards.told.excluded.insert(node.clone());
                let says = |what: &str| {
                    edit(&format!("metadata: {{ labels: {{ node-remedy.io/exclude: {what} }} }}"))
                };
                (says("\"true\""), says("null"))
            }
        };
        self.happens(from, &begins, CLASS);
        let _ = writeln!(self.faults, "- {{ at: {until}ms, {ends} }}");
    }
}
