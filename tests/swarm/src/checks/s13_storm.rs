//! S13: when so many nodes are lost that it looks like a network's doing, none is switched off; nor when
//! so many of a zone are, nor one whose zone nobody knows where policies ask for zones.

use std::time::Duration;

use node_remedy_world::facts::What;
use node_remedy_world::time::Time;

use super::Check;
use super::first_off::FirstOff;
use crate::guards::Guards;
use crate::scene::{Scene, Setting};

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
            offs: FirstOff::default(),
        }
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
