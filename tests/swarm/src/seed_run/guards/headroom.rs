//! Some nodes are cordoned for a while, and policies ask for room for the pods of whoever is cut.

use std::fmt::Write as _;

use super::{Cast, Guards, drawn};
use crate::seed_run::others::Policies;
use crate::seed_run::{CALM_MS, Draft};

/// The class.
pub(super) const CLASS: &str = "headroom";
const PERCENT: u64 = 4;

impl Draft {
    pub(super) fn headroom(
        &mut self,
        cast: &Cast<'_>,
        policies: &mut Policies,
        guards: &mut Guards,
    ) {
        let Some(mut rng) = drawn(cast.seed, CLASS, PERCENT) else { return };
        // Two of three are left without the one that is lost, and of more nodes more.
        let percent = rng.within(50, 66);
        self.limit(policies, &format!("minSchedulablePercent: {percent}"));
        guards.told.schedulable_percent_min = usize::try_from(percent).ok();
        let others: Vec<&String> =
            cast.names.iter().filter(|name| !cast.lost.contains(name)).collect();
        let most = (cast.names.len() as u64).div_ceil(2);
        let cordoned = usize::try_from(rng.within(1, most)).unwrap_or(1);
        for (number, node) in others.into_iter().take(cordoned).enumerate() {
            let from = rng.within(2_000, 100_000);
            let until = rng.within(from + 30_000, CALM_MS);
            let cordon = format!("cordon: {node}");
            if number == 0 {
                self.happens(from, &cordon, CLASS);
            } else {
                let _ = writeln!(self.faults, "- {{ at: {from}ms, {cordon} }}");
            }
            let back = "merge: { spec: { unschedulable: false } }";
            let _ = writeln!(
                self.faults,
                "- {{ at: {until}ms, edit: {{ kind: Node, name: {node}, {back} }} }}"
            );
        }
    }
}
