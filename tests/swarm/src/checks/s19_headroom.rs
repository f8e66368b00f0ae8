//! S19: no node is cut unless so large a share of all is left that can take its pods.

use std::time::Duration;

use node_remedy_world::facts::What;
use node_remedy_world::time::{Time, between};

use super::first_off::FirstOff;
use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

pub(super) struct Headroom {
    percent_min: Option<usize>,
    /// A node that is lost for so long takes no pods,
    seen_after: Duration,
    /// nor does one that is cordoned for so long.
    known_after: Duration,
    offs: FirstOff,
}

impl Headroom {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            percent_min: setting.guards.schedulable_percent_min,
            seen_after: setting.seen_after,
            known_after: setting.well_after,
            offs: FirstOff::new(setting),
        }
    }
}

impl Check for Headroom {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        let percent_min = self.percent_min?;
        let node = self.offs.of(scene, what)?;
        let is_cordoned = |other: &String| {
            let since = scene.cordoned_since.get(other);
            since.is_some_and(|since| between(*since, at) > self.known_after)
        };
        let takes_pods = |other: &&String| {
            *other != node && !scene.is_lost_for(other, self.seen_after, at) && !is_cordoned(other)
        };
        let (left, total) = (scene.nodes.iter().filter(takes_pods).count(), scene.nodes.len());
        (left * 100 < percent_min * total)
            .then(|| format!("{left} of {total} nodes are left to take its pods"))
    }
}
