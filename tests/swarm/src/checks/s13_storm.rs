//! S13: when so many nodes are lost that it looks like a network's doing, none is switched off.

use std::collections::BTreeSet;
use std::time::Duration;

use node_remedy_world::facts::{What, Yes};
use node_remedy_world::time::{Time, between};

use super::Check;
use crate::scene::{Scene, Setting};

pub(super) struct Storm {
    percent_max: usize,
    seen_after: Duration,
    /// Nodes whose BMC has taken an off of this incident: what follows belongs to it.
    begun: BTreeSet<String>,
}

impl Storm {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            percent_max: setting.unhealthy_percent_max,
            seen_after: setting.seen_after,
            begun: BTreeSet::new(),
        }
    }
}

impl Check for Storm {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        let Yes { node, command, .. } = what.yes()?;
        if command != "off" {
            return None;
        }
        let incident = scene.incident.get(node).cloned().unwrap_or_default();
        if !self.begun.insert(incident) {
            return None;
        }
        let seen = scene.lost.iter().filter(|(of, since)| {
            *of != node && scene.nodes.contains(*of) && between(**since, at) > self.seen_after
        });
        let (lost, total) = (seen.count() + 1, scene.nodes.len());
        let is_storm = lost >= 2 && lost * 100 >= self.percent_max * total;
        is_storm.then(|| format!("{lost} of {total} nodes are lost"))
    }
}
