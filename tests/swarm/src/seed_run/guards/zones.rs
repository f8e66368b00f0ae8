//! Nodes in two zones with limits of their own; now and then a lost node has no zone.

use super::{Cast, Guards, drawn};
use crate::seed_run::Draft;
use crate::seed_run::others::Policies;

/// The class.
pub(super) const CLASS: &str = "zones";
const PERCENT: u64 = 4;
const KEY: &str = "topology.kubernetes.io/zone";

pub(super) fn is_drawn(seed: u64) -> bool {
    drawn(seed, CLASS, PERCENT).is_some()
}

impl Draft {
    pub(super) fn zones(&mut self, cast: &Cast<'_>, policies: &mut Policies, guards: &mut Guards) {
        let Some(mut rng) = drawn(cast.seed, CLASS, PERCENT) else { return };
        let zones = ["east", "west"];
        // Mostly those that are lost share one, and always where its slots are limited.
        let limits_slots = rng.below(2) == 0;
        let is_shared = limits_slots || rng.below(100) < 70;
        let lost_in = usize::try_from(rng.below(2)).unwrap_or_default();
        let lacks_one = cast.lost.first().filter(|_| rng.below(100) < 15);
        for (number, name) in cast.names.iter().enumerate() {
            let is_lost = is_shared && cast.lost.contains(name);
            let place = if is_lost { lost_in } else { number % zones.len() };
            let Some(zone) = zones.get(place).filter(|_| lacks_one != Some(name)) else { continue };
            guards.told.zones.insert(name.clone(), (*zone).to_owned());
            let label = format!(", {KEY}: {zone}");
            guards.labels.entry(name.clone()).or_default().push_str(&label);
        }
        // Of a zone's limits the one or the other, so that each is seen by itself.
        let limit = if limits_slots {
            guards.told.zone_percent_max = 90;
            guards.told.zone_in_flight_max = Some(1);
            policies.in_flight_max = 2;
            "maxUnhealthyPercent: 90, maxInFlight: 1".to_owned()
        } else {
            guards.told.zone_percent_max = 40;
            "maxUnhealthyPercent: 40".to_owned()
        };
        self.limit(policies, &format!("topologies: [{{ key: {KEY}, {limit} }}]"));
        if guards.told.zone_in_flight_max.is_some() {
            for text in [&mut policies.text, &mut self.faults] {
                *text = text.replace("maxInFlight: 1, restarts", "maxInFlight: 2, restarts");
            }
        }
        guards.for_good = true;
        self.drawn.push(CLASS.to_owned());
    }
}
