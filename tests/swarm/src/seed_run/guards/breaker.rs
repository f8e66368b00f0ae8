//! More nodes are lost, one after the other, and policies have a breaker.

use std::time::Duration;

use super::{Cast, Guards, drawn};
use crate::guards::Breaker;
use crate::seed_run::others::Policies;
use crate::seed_run::{CALM_MS, Draft};

/// The class.
pub(super) const CLASS: &str = "breaker";
const PERCENT: u64 = 4;

impl Draft {
    pub(super) fn breaker(
        &mut self,
        cast: &Cast<'_>,
        policies: &mut Policies,
        guards: &mut Guards,
    ) {
        let Some(mut rng) = drawn(cast.seed, CLASS, PERCENT) else { return };
        let (most, cool_down) = (rng.within(1, 2), rng.within(60, 400));
        let says = format!("maxIncidents: {most}, window: 30m, coolDown: {cool_down}s");
        self.limit(policies, &format!("breaker: {{ {says} }}"));
        guards.told.breaker = Some(Breaker {
            incidents_max: usize::try_from(most).unwrap_or(1),
            cool_down: Duration::from_secs(cool_down),
        });
        let others = cast.names.iter().filter(|name| !cast.lost.contains(name));
        let mut at = rng.within(150_000, 220_000);
        for node in others.take(2) {
            self.happens(at, &format!("kubeletStops: {node}"), CLASS);
            at = rng.within(at + 20_000, CALM_MS.max(at + 20_000));
        }
        guards.for_good = true;
    }
}
