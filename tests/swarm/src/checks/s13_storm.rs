//! S13: when so many nodes are lost that it looks like a network's doing, none is switched off.

use std::time::Duration;

use node_remedy_world::facts::What;
use node_remedy_world::time::Time;

use super::Check;
use super::first_off::FirstOff;
use crate::scene::{Scene, Setting};

pub(super) struct Storm {
    percent_max: usize,
    seen_after: Duration,
    offs: FirstOff,
}

impl Storm {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            percent_max: setting.unhealthy_percent_max,
            seen_after: setting.seen_after,
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
        let is_storm = lost >= 2 && lost * 100 >= self.percent_max * total;
        is_storm.then(|| format!("{lost} of {total} nodes are lost"))
    }
}
