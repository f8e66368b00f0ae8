//! S6: a machine that we switched off is switched on again, or its record is parked and says so.

use node_remedy_world::facts::PowerCause;

use super::Check;
use crate::scene::Scene;

pub(super) struct LeftOff;

impl Check for LeftOff {
    fn end(&mut self, scene: &Scene) -> Vec<String> {
        let ours = scene.off.iter().filter(|(_, cause)| **cause == PowerCause::Command);
        let is_told = |node: &str| {
            scene.state_of(node) == Some("Error") && scene.told_left_off.contains(node)
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
