//! The off that takes a machine's power, or cuts it off: what a guard allowed. What follows belongs to it, until the
//! machine has its power again: the next off is allowed anew.

use std::collections::BTreeSet;

use node_remedy_world::facts::{Power, Taken, What};

use crate::scene::Scene;

/// Incidents of which a device has taken an off, since their machines last were given power.
#[derive(Debug, Default)]
pub(super) struct FirstOff {
    begun: BTreeSet<String>,
}

impl FirstOff {
    /// The node that is switched off or cut off, if this is the first off of its incident since its machine was
    /// last given power.
    pub(super) fn of<'a>(&mut self, scene: &Scene, what: &'a What) -> Option<&'a str> {
        if let What::PowerChanged { node, power: Power::On, .. } = what {
            let incident = scene.incident.get(node).cloned().unwrap_or_default();
            self.begun.remove(&incident);
        }
        let Taken { node, command, .. } = what.taken()?;
        // A plug that feeds nothing switches no node off.
        if command != "off" || node.is_empty() {
            return None;
        }
        let incident = scene.incident.get(node).cloned().unwrap_or_default();
        self.begun.insert(incident).then_some(node)
    }
}
