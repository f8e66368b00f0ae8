//! S10: a node that is well again is not switched off: what decides over an off is read again right
//! before it. Nor is any while somebody has paused, or before somebody who is to be asked said yes. And no incident is opened while every policy says that nobody acts.

use std::collections::BTreeSet;
use std::time::Duration;

use node_remedy_world::facts::{Taken, What};
use node_remedy_world::time::{Time, between};

use super::Check;
use crate::scene::{Scene, Setting};

pub(super) struct Trigger {
    /// A policy that says otherwise for so long counts.
    seen_after: Duration,
    /// So does a node that is well for so long.
    well_after: Duration,
    ill: BTreeSet<String>,
    needs_approval: bool,
    switches: BTreeSet<String>,
}

impl Trigger {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            seen_after: setting.seen_after,
            well_after: setting.well_after,
            ill: setting.ill.clone(),
            needs_approval: setting.needs_approval,
            switches: setting.switches.clone(),
        }
    }
}

impl Check for Trigger {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        if let What::FenceState { fence, node, .. } = what {
            let is_new = !scene.states.contains_key(fence);
            let is_idle =
                scene.idle_since.is_some_and(|since| between(since, at) > self.seen_after);
            return (is_new && is_idle).then(|| format!("no policy lets anybody act on {node}"));
        }
        // The command is what counts: some BMCs carry it out much later.
        let Taken { node, command, plug, .. } = what.taken()?;
        let is_paused =
            scene.paused_since.is_some_and(|since| between(since, at) > self.well_after);
        if command == "off" && is_paused {
            return Some(format!("{node} was told to be off while somebody had paused"));
        }
        // A port is isolation, which comes before.
        let powers = command == "off" && !self.switches.contains(plug.0);
        let is_approved = scene.incident.get(node).is_some_and(|one| scene.approved.contains(one));
        if powers && self.needs_approval && !is_approved {
            return Some(format!("{node} was told to be off before anybody said yes"));
        }
        if command != "off" || scene.lost.contains_key(node) || self.ill.contains(node) {
            return None;
        }
        let well = scene.well_since.get(node);
        let just_now = well.is_some_and(|since| between(*since, at) <= self.well_after);
        (!just_now).then(|| format!("{node} was well when it was told to be off"))
    }
}
