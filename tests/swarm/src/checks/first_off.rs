//! The off that takes a machine's power, or cuts it off: what a guard allowed. What follows belongs to it, until the
//! machine has its power again: the next off is allowed anew.

use std::collections::BTreeSet;

use node_remedy_world::facts::{Power, Taken, What};

use crate::scene::{Scene, Setting};

/// Incidents of which a device has taken an off, since their machines last were given power.
#[derive(Debug)]
pub(super) struct FirstOff {
    /// Outlets that are written down for a node that they do not feed: nobody means to switch off what hangs on them.
    miswired: BTreeSet<u64>,
    begun: BTreeSet<String>,
}

impl FirstOff {
    pub(super) fn new(setting: &Setting) -> Self {
        Self { miswired: setting.miswired.clone(), begun: BTreeSet::new() }
    }

    /// The node that is switched off or cut off, if this is the first off of its incident since its machine was
    /// last given power.
    pub(super) fn of<'a>(&mut self, scene: &Scene, what: &'a What) -> Option<&'a str> {
        if let What::PowerChanged { node, power: Power::On, .. } = what {
            let incident = scene.incident.get(node).cloned().unwrap_or_default();
            self.begun.remove(&incident);
        }
        let Taken { node, command, plug, .. } = what.taken()?;
        // A plug that feeds nothing switches no node off.
        if command != "off" || node.is_empty() || self.miswired.contains(&plug.1) {
            return None;
        }
        let incident = scene.incident.get(node).cloned().unwrap_or_default();
        self.begun.insert(incident).then_some(node)
    }
}
