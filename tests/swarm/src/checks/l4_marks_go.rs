//! L4: a node that is well and whose incident is over carries no mark of ours.

use node_remedy_simulate::CLIENT;

use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

pub(super) struct MarksGo {
    has_people: bool,
}

impl MarksGo {
    pub(super) fn new(setting: &Setting) -> Self {
        Self { has_people: setting.has_people }
    }
}

impl Check for MarksGo {
    fn end(&mut self, scene: &Scene) -> Vec<String> {
        if self.has_people {
            return Vec::new();
        }
        let ours = scene.taints.iter().filter(|(_, by)| *by == CLIENT);
        let is_over = |node: &str| scene.state_of(node).is_none_or(|state| state == "Final");
        let left = ours.filter(|((node, ..), _)| is_over(node));
        left.map(|((node, key, _), _)| format!("{node} still carries {key}")).collect()
    }
}
