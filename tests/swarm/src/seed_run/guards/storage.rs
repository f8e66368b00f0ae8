//! Whoever sees the first lost node use its storage renews the node's storage Lease, for a while yet.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Cast, Guards, drawn};
use crate::seed_run::others::Policies;
use crate::seed_run::{CALM_MS, Draft};

/// The class.
pub(super) const CLASS: &str = "storage lease";
const PERCENT: u64 = 4;
const RENEWED_EVERY_MS: u64 = 10_000;

impl Draft {
    pub(super) fn storage(
        &mut self,
        cast: &Cast<'_>,
        policies: &mut Policies,
        guards: &mut Guards,
    ) {
        let Some(mut rng) = drawn(cast.seed, CLASS, PERCENT) else { return };
        let Some(node) = cast.lost.first() else { return };
        let max_age = rng.within(25, 60);
        self.limit(
            policies,
            &format!("storageLeases: {{ namespace: storage, maxAge: {max_age}s }}"),
        );
        guards.told.storage_age_max = Some(Duration::from_secs(max_age));
        let until = rng.within(60_000, CALM_MS);
        let mut at = rng.below(RENEWED_EVERY_MS);
        while at < until {
            let (minutes, seconds, ms) = (at / 60_000, at / 1_000 % 60, at % 1_000);
            let stamp = format!("2026-01-01T00:{minutes:02}:{seconds:02}.{ms:03}000Z");
            let _ = writeln!(
                self.faults,
                "- {{ at: {at}ms, edit: {{ kind: Lease, namespace: storage, name: {node}, \
                 merge: {{ spec: {{ renewTime: \"{stamp}\" }} }} }} }}"
            );
            at += RENEWED_EVERY_MS;
        }
        self.drawn.push(CLASS.to_owned());
    }
}
