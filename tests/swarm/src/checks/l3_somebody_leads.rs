//! L3: whatever befell its processes, at the end one of them leads.

use crate::checks::check::Check;
use crate::scene::Scene;

pub(super) struct SomebodyLeads;

impl Check for SomebodyLeads {
    fn end(&mut self, scene: &Scene) -> Vec<String> {
        scene.leader.is_empty().then(|| "nobody leads".to_owned()).into_iter().collect()
    }
}
