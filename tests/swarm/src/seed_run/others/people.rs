//! People who are asked, and people who interfere: approvals that come late, aborts, retries; and nodes
//! that are ill though their kubelets live, drained before they are fenced.

use std::fmt::Write as _;

use node_remedy_world::rng::Rng;

use super::Policies;
use crate::seed_run::{CALM_MS, Draft};

/// Nothing is switched off before somebody says yes.
pub(super) const APPROVAL: &str = "approval";
/// Somebody aborts an incident, or tells it to try again.
pub(super) const OPERATOR_COMMAND: &str = "operatorCommand";
/// A node that is ill is drained as a disruption budget allows, and fenced later.
pub(super) const DRAIN: &str = "drain first";

/// Who is asked looks so often, and all through the run: an incident may be opened late.
const LOOKS_EVERY_MS: u64 = 120_000;
const LOOKS_UNTIL_MS: u64 = 1_500_000;

impl Draft {
    /// What people say, and a node that is ill, which is answered. Each draws from a seed of its own, so that
    /// other runs stay as they were.
    pub(in crate::seed_run) fn people(
        &mut self,
        seed: u64,
        policies: &mut Policies,
        lost: &[String],
        names: &[String],
    ) -> Option<String> {
        self.approvals(seed, policies, names);
        self.words(seed, lost);
        self.drains(seed, policies, lost, names)
    }

    /// A person who looks now and then and says yes to everything.
    fn approvals(&mut self, seed: u64, policies: &mut Policies, names: &[String]) {
        let mut rng = Rng::named(seed, APPROVAL);
        if rng.below(100) >= 6 {
            return;
        }
        // Also where somebody takes the policy away meanwhile and brings it back.
        for text in [&mut policies.text, &mut self.faults] {
            *text = text.replace("policies: { ", "policies: { approval: true, ");
        }
        let first = rng.within(10_000, 90_000);
        for (number, node) in names.iter().enumerate() {
            let mut at = first;
            while at < LOOKS_UNTIL_MS {
                let line = format!("operatorCommand: {{ node: {node}, command: approve }}");
                if number == 0 && at == first {
                    self.happens(at, &line, APPROVAL);
                } else {
                    let _ = writeln!(self.faults, "- {{ at: {at}ms, {line} }}");
                }
                at += LOOKS_EVERY_MS;
            }
        }
    }

    /// Somebody interferes with the incident of a lost node.
    fn words(&mut self, seed: u64, lost: &[String]) {
        let mut rng = Rng::named(seed, OPERATOR_COMMAND);
        let Some(node) = lost.first().filter(|_| rng.below(100) < 8) else { return };
        let says = ["abort", "abort-leave-off", "retry"];
        for _ in 0..rng.within(1, 3) {
            let at = rng.within(20_000, 240_000);
            let says = usize::try_from(rng.below(3)).ok().and_then(|one| says.get(one));
            let says = says.copied().unwrap_or("retry");
            self.happens(
                at,
                &format!("operatorCommand: {{ node: {node}, command: {says} }}"),
                OPERATOR_COMMAND,
            );
        }
    }

    /// A node that is ill beside those that are lost.
    fn drains(
        &mut self,
        seed: u64,
        policies: &mut Policies,
        lost: &[String],
        names: &[String],
    ) -> Option<String> {
        let mut rng = Rng::named(seed, DRAIN);
        let node = names.iter().find(|name| !lost.contains(name)).filter(|_| rng.below(100) < 8);
        let node = node?;
        let (patience, period) = (rng.within(10, 90), rng.within(5, 60));
        let least = rng.below(names.len() as u64 + 1);
        let threshold = format!(
            "thresholdConfigs: [{{ nodeConditionType: KernelDeadlock, nodeConditionStatus: true, \
             nodeConditionPeriod: 5s, remedy1: [{{ name: drain }}, {{ period: {period}s }}], \
             remedy2: [{{ name: fence }}] }}, "
        );
        for text in [&mut policies.text, &mut policies.spec] {
            *text = text
                .replace("thresholdConfigs: [", &threshold)
                .replace("policies: { ", &format!("policies: {{ pdbPatience: {patience}s, "));
        }
        policies.define("{ name: drain, cluster: drain }");
        policies.available_min = Some(least);
        let _ = writeln!(
            policies.text,
            "- object: {{ apiVersion: policy/v1, kind: PodDisruptionBudget, \
             metadata: {{ name: db, namespace: default }}, \
             spec: {{ minAvailable: {least}, selector: {{ matchLabels: {{ app: db }} }} }} }}"
        );
        let says = |status: &str| {
            format!(
                "nodeCondition: {{ node: {node}, type: KernelDeadlock, status: \"{status}\", reason: Task }}"
            )
        };
        let at = rng.within(5_000, 120_000);
        let _ = writeln!(self.faults, "- {{ at: 1s, {} }}", says("False"));
        self.happens(at, &says("True"), DRAIN);
        let mended = rng.within(at + 20_000, CALM_MS);
        let _ = writeln!(self.faults, "- {{ at: {mended}ms, {} }}", says("False"));
        Some(node.clone())
    }
}
