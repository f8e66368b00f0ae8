//! The off that begins an incident: what a guard allowed. What follows belongs to it.

use std::collections::BTreeSet;

use node_remedy_world::facts::{Taken, What};

use crate::scene::Scene;

/// Incidents of which a device has taken an off.
#[derive(Debug, Default)]
pub(super) struct FirstOff {
    begun: BTreeSet<String>,
}

impl FirstOff {
    /// The node that is switched off or cut off, if this is the first off of its incident.
    pub(super) fn of<'a>(&mut self, scene: &Scene, what: &'a What) -> Option<&'a str> {
        let Taken { node, command, .. } = what.taken()?;
        if command != "off" {
            return None;
        }
        let incident = scene.incident.get(node).cloned().unwrap_or_default();
        self.begun.insert(incident).then_some(node)
    }
}
