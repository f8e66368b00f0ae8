//! S6: a machine that we switched off is switched on again, or its record is parked and says so.
//! Of a BMC that tells old news nobody can know what it did: there a parked record is enough.

use node_remedy_world::facts::PowerCause;

use super::Check;
use crate::scene::{Scene, Setting};

pub(super) struct LeftOff {
    has_stale_bmc: bool,
}

impl LeftOff {
    pub(super) fn new(setting: &Setting) -> Self {
        Self { has_stale_bmc: setting.has_stale_bmc }
    }
}

impl Check for LeftOff {
    fn end(&mut self, scene: &Scene) -> Vec<String> {
        // What a cloud took away for good nobody can switch on.
        let ours = scene
            .off
            .iter()
            .filter(|(node, cause)| **cause == PowerCause::Command && !scene.gone.contains(*node));
        let is_told = |node: &str| {
            let says_so = self.has_stale_bmc || scene.told_left_off.contains(node);
            scene.state_of(node) == Some("Error") && says_so
        };
        let silent = ours.filter(|(node, _)| !is_told(node));
        silent
            .map(|(node, _)| {
                let state = scene.state_of(node).unwrap_or("no incident");
                format!("{node} was left off and nobody is told: {state}")
            })
            .collect()
    }
}
