//! L1: once trouble is over, a lost node is well again or a person is told.

use super::Check;
use crate::scene::{Scene, Setting};

pub(super) struct ItEnds {
    lost: Vec<String>,
}

impl ItEnds {
    pub(super) fn new(setting: &Setting) -> Self {
        // Where people act the end is theirs.
        let lost = if setting.has_people { Vec::new() } else { setting.lost.clone() };
        Self { lost }
    }
}

impl Check for ItEnds {
    fn end(&mut self, scene: &Scene) -> Vec<String> {
        let is_well = |node: &str| scene.ready.get(node).is_some_and(|status| status == "True");
        let left = self.lost.iter().filter(|node| !is_well(node) && !scene.gone.contains(*node));
        // A closed device was told of, and what is refused for it is told by Events.
        left.filter(|node| scene.state_of(node) != Some("Error") && !scene.has_closed_devices)
            .map(|node| {
                let state = scene.state_of(node).unwrap_or("no incident");
                format!("{node} is still lost and nobody is told: {state}")
            })
            .collect()
    }
}
