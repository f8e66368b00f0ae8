//! S13: when so many nodes are lost that it looks like a network's doing, none is switched off; nor one of
//! those that were lost together; nor when so many of a zone are lost, nor one whose zone nobody knows where
//! policies ask for zones.

use std::time::Duration;

use node_remedy_decide::SILENT_AT_ONCE_MAX;
use node_remedy_world::facts::What;
use node_remedy_world::time::{Time, between};

use super::first_off::FirstOff;
use crate::checks::check::Check;
use crate::guards::Guards;
use crate::scene::{Scene, Setting};

/// Nodes that are lost within this time of each other are lost together.
const TOGETHER: Duration = Duration::from_secs(1);

pub(super) struct Storm {
    percent_max: usize,
    seen_after: Duration,
    guards: Guards,
    offs: FirstOff,
}

impl Storm {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            percent_max: setting.unhealthy_percent_max,
            seen_after: setting.seen_after,
            guards: setting.guards.clone(),
            offs: FirstOff::new(setting),
        }
    }
}

impl Storm {
    /// How many nodes were lost when this one was, itself among them. Whoever cannot tell yet has to wait.
    fn lost_with(scene: &Scene, node: &str) -> usize {
        let Some(own) = scene.lost.get(node) else { return 0 };
        let is_with = |(other, since): &(&String, &Time)| {
            let is_together = between(*own, **since).max(between(**since, *own)) <= TOGETHER;
            is_together && scene.nodes.contains(*other)
        };
        scene.lost.iter().filter(is_with).count()
    }
}

impl Check for Storm {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        let node = self.offs.of(scene, what)?;
        let others = scene.lost.keys().filter(|other| *other != node);
        let seen = others.filter(|other| scene.is_lost_for(other, self.seen_after, at));
        let (lost, total) = (seen.count() + 1, scene.nodes.len());
        if is_storm(lost, total, self.percent_max) {
            return Some(format!("{lost} of {total} nodes are lost"));
        }
        let together = Self::lost_with(scene, node);
        if together >= usize::try_from(SILENT_AT_ONCE_MAX).unwrap_or(usize::MAX) {
            return Some(format!("{together} nodes were lost together"));
        }
        let zones = &self.guards.zones;
        if zones.is_empty() {
            return None;
        }
        let Some(own) = zones.get(node) else {
            return Some(format!("nobody knows the zone of {node}"));
        };
        let is_lost =
            |other: &String| other == node || scene.is_lost_for(other, self.seen_after, at);
        // One without a zone that is lost may be of this one.
        let counts =
            |name: &&String| zones.get(*name).map_or_else(|| is_lost(name), |zone| zone == own);
        let of_zone: Vec<&String> = scene.nodes.iter().filter(counts).collect();
        let (lost, total) = (of_zone.iter().filter(|name| is_lost(name)).count(), of_zone.len());
        is_storm(lost, total, self.guards.zone_percent_max)
            .then(|| format!("{lost} of {total} nodes of zone {own} are lost"))
    }
}

/// One lost node is never a storm.
fn is_storm(lost: usize, total: usize, percent_max: usize) -> bool {
    lost >= 2 && lost * 100 >= percent_max * total
}
