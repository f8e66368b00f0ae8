//! A Job for a node that is ill though its kubelet lives, so that it could run there; and people who delete
//! Jobs, or abort their incidents.

use std::fmt::Write as _;

use super::{Cast, Guards, drawn};
use crate::seed_run::others::{Policies, REPAIR};
use crate::seed_run::{CALM_MS, Draft};

/// The classes.
pub(super) const ILL: &str = "job for an ill node";
pub(super) const DELETED: &str = "job deleted";
const PERCENT: u64 = 4;
const DELETED_PERCENT: u64 = 30;

impl Draft {
    pub(super) fn jobs(&mut self, cast: &Cast<'_>, policies: &mut Policies, guards: &mut Guards) {
        if self.drawn.iter().any(|class| class == REPAIR)
            && let (Some(mut rng), Some(node)) =
                (drawn(cast.seed, DELETED, DELETED_PERCENT), cast.lost.first())
        {
            let after = rng.within(100, 40_000);
            let undisturbed = rng.below(2) == 0;
            self.deletes(node, after, undisturbed);
        }
        // One ill node a run is enough.
        let is_drawn = guards.has_ill;
        let Some(mut rng) = drawn(cast.seed, ILL, PERCENT).filter(|_| !is_drawn) else { return };
        // The last has the fewest pods, and most often gets the next one.
        let Some(node) = cast.names.iter().rfind(|name| !cast.lost.contains(name)) else { return };
        let (takes, period) = (rng.within(5, 60), rng.within(5, 60));
        let ends = if rng.below(2) == 0 { "failed" } else { "succeeded" };
        let threshold = format!(
            "thresholdConfigs: [{{ nodeConditionType: KernelDeadlock, nodeConditionStatus: true, \
             nodeConditionPeriod: 5s, remedy1: [{{ name: mend }}, {{ period: {period}s }}], \
             remedy2: [{{ name: fence }}] }}, "
        );
        policies.text = policies.text.replace("thresholdConfigs: [", &threshold);
        policies.define(&format!(
            "{{ name: mend, deadline: 120s, podTemplate: {{ \
             metadata: {{ annotations: {{ simulate.node-remedy.io/takes: {takes}s, \
             simulate.node-remedy.io/ends: {ends} }} }}, \
             spec: {{ containers: [{{ name: mend, image: mend }}] }} }} }}"
        ));
        let says = |status: &str| {
            format!(
                "nodeCondition: {{ node: {node}, type: KernelDeadlock, status: \"{status}\", reason: Task }}"
            )
        };
        let at = rng.within(5_000, 120_000);
        let _ = writeln!(self.faults, "- {{ at: 1s, {} }}", says("False"));
        self.happens(at, &says("True"), ILL);
        let mended = rng.within(at + 20_000, CALM_MS);
        let _ = writeln!(self.faults, "- {{ at: {mended}ms, {} }}", says("False"));
        let after = rng.within(100, 30_000);
        match rng.below(10) {
            0..3 => self.deletes(node, after, after % 2 == 0),
            3..6 => {
                let what = format!("operatorCommand: {{ node: {node}, command: abort }}");
                let _ = writeln!(self.faults, "{}, {what} }}", once_it_runs(node, after));
            }
            _ => {}
        }
        guards.ill = Some(node.clone());
    }

    /// Somebody deletes the first Job of a node's first incident, when it was seen or may not have been.
    fn deletes(&mut self, node: &str, after_ms: u64, undisturbed: bool) {
        if undisturbed {
            self.leave_undisturbed();
        }
        let job = format!("kind: Job, namespace: node-remedy, name: {node}-1-job-1");
        let when = once_it_runs(node, after_ms);
        let _ = writeln!(self.faults, "{when}, remove: {{ {job} }} }}");
        self.drawn.push(DELETED.to_owned());
    }
}

/// A fault's beginning: after that Job's pod began to run.
fn once_it_runs(node: &str, after_ms: u64) -> String {
    let pod = format!("pod: node-remedy/{node}-1-job-1-0, phase: Running");
    format!("- {{ when: {{ fact: podPhase, where: {{ {pod} }} }}, after: {after_ms}ms")
}
