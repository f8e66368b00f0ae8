//! S2: never more nodes at once than the policy allows are in our hands: from the off that a device
//! takes to the on, or to where a person is told; nor of a zone than it allows there. And none that another
//! remediator has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::facts::{Power, Taken, What};
use node_remedy_world::time::{Time, after};

use crate::checks::check::Check;
use crate::guards::Guards;
use crate::scene::{Scene, Setting};

/// Whose lock a node is, is read at most that long before it is acted on.
const SEEN_AFTER: Duration = Duration::from_secs(2);

pub(super) struct InFlight {
    max: usize,
    needs_approval: bool,
    guards: Guards,
    miswired: BTreeSet<u64>,
    /// Nodes, and what of them was told to be off: the machine ("", 0), outlets, ports.
    held: BTreeMap<String, BTreeSet<(String, u64)>>,
}

impl InFlight {
    pub(super) fn new(setting: &Setting) -> Self {
        let Setting { in_flight_max, needs_approval, .. } = *setting;
        let guards = setting.guards.clone();
        let miswired = setting.miswired.clone();
        Self { max: in_flight_max, needs_approval, guards, miswired, held: BTreeMap::new() }
    }
}

impl Check for InFlight {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these take or give back")]
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        match what {
            What::PowerChanged { node, power: Power::On, .. } => {
                self.held.remove(node);
            }
            // One of two feeds may come on by itself, and the machine had power all along.
            What::PlugChanged { node, device, plug, power: Power::On, .. } => {
                if let Some(plugs) = self.held.get_mut(node) {
                    plugs.remove(&(device.clone(), *plug));
                }
            }
            // A19: one dead device must not keep every other node from being fenced.
            What::DeviceAwaited { node, .. } => {
                self.held.remove(node);
            }
            What::FenceState { node, state, .. } if state == "Error" || state == "Final" => {
                self.held.remove(node);
            }
            // Its provider ended it: nobody brings it back.
            What::InstanceTerminated { node } => {
                self.held.remove(node);
            }
            // Cut off by isolation, and waiting for a person's yes to its power.
            What::FenceState { node, state, .. } if self.needs_approval && state == "Running" => {
                self.held.remove(node);
            }
            _ => {}
        }
        let Taken { node, plug: (device, plug), command, .. } = what.taken()?;
        if node.is_empty() || self.miswired.contains(&plug) {
            // A plug that feeds nothing, or another machine than it is configured for: no incident holds that one.
            return None;
        }
        let plug = (device.to_owned(), plug);
        match command {
            "off" => self.held.entry(node.to_owned()).or_default().insert(plug),
            "on" => self.held.get_mut(node).is_some_and(|plugs| plugs.remove(&plug)),
            _ => return None,
        };
        self.held.retain(|_, plugs| !plugs.is_empty());
        let is_off = command == "off";
        if let Some((since, until)) = scene.locked.get(node)
            && is_off
            && (after(*since, SEEN_AFTER)..*until).contains(&at)
        {
            return Some(format!("another remediator has {node}"));
        }
        let zones = &self.guards.zones;
        if let (Some(zone), Some(max)) = (zones.get(node), self.guards.zone_in_flight_max)
            && is_off
        {
            let held = self.held.keys().filter(|held| zones.get(*held) == Some(zone)).count();
            if held > max {
                return Some(format!("{held} nodes of zone {zone} in our hands, allowed {max}"));
            }
        }
        let too_many = is_off && self.held.len() > self.max;
        too_many.then(|| format!("{} nodes in our hands, allowed {}", self.held.len(), self.max))
    }
}
