//! L5: no incident switches its machine off more often than restarts allow. An off that somebody
//! else undid is no cycle of ours.

use std::collections::BTreeMap;

use node_remedy_world::facts::{Power, PowerCause, What};
use node_remedy_world::time::Time;

use super::Check;
use crate::scene::{Scene, Setting};

pub(super) struct Cycles {
    max: usize,
    has_stale_bmc: bool,
    /// By incident.
    offs: BTreeMap<String, usize>,
    /// How often somebody said that an incident is to try again.
    retries: BTreeMap<String, usize>,
}

impl Cycles {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            max: setting.cycles_max,
            has_stale_bmc: setting.has_stale_bmc,
            offs: BTreeMap::new(),
            retries: BTreeMap::new(),
        }
    }
}

impl Check for Cycles {
    fn see(&mut self, scene: &Scene, _: Time, what: &What) -> Option<String> {
        if let What::WordSaid { fence, word, .. } = what
            && word == "retry"
        {
            *self.retries.entry(fence.clone()).or_default() += 1;
        }
        let What::PowerChanged { node, power: Power::Off, cause: PowerCause::Command } = what
        else {
            return None;
        };
        if scene.on_behind_our_back.contains_key(node) {
            return None;
        }
        let incident = scene.incident.get(node).cloned().unwrap_or_default();
        // Whoever says so lets it try all of it once more.
        let retries = self.retries.get(&incident).copied().unwrap_or_default();
        // A BMC that tells old news hides an off that has landed: the one asked for once more lands later.
        let max = self.max.saturating_mul(retries + 1) + usize::from(self.has_stale_bmc);
        let offs = self.offs.entry(incident).or_default();
        *offs += 1;
        (*offs > max).then(|| format!("off for the {offs}th time, allowed {max}"))
    }
}
