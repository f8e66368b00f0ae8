//! S2: never more nodes at once than the policy allows are in our hands: from the off that a device
//! takes to the on, or to where a person is told. And none that another remediator has.

use std::collections::BTreeSet;
use std::time::Duration;

use node_remedy_world::facts::{Power, What, Yes};
use node_remedy_world::time::{Time, after};

use super::Check;
use crate::scene::{Scene, Setting};

/// Whose lock a node is, is read at most that long before it is acted on.
const SEEN_AFTER: Duration = Duration::from_secs(2);

pub(super) struct InFlight {
    max: usize,
    held: BTreeSet<String>,
}

impl InFlight {
    pub(super) fn new(setting: &Setting) -> Self {
        Self { max: setting.in_flight_max, held: BTreeSet::new() }
    }
}

impl Check for InFlight {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these take or give back")]
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        let yes = what.yes();
        match yes {
            Some(Yes { node, command: "off", .. }) => {
                self.held.insert(node.to_owned());
            }
            Some(Yes { node, command: "on", .. }) => {
                self.held.remove(node);
            }
            Some(_) | None => {}
        }
        match what {
            What::PowerChanged { node, power: Power::On, .. } => {
                self.held.remove(node);
            }
            // A19: one dead device must not keep every other node from being fenced.
            What::DeviceAwaited { node, .. } => {
                self.held.remove(node);
            }
            What::FenceState { node, state, .. } if state == "Error" || state == "Final" => {
                self.held.remove(node);
            }
            _ => {}
        }
        let off = yes.filter(|yes| yes.command == "off");
        if let Some(Yes { node, .. }) = off
            && let Some((since, until)) = scene.locked.get(node)
            && (after(*since, SEEN_AFTER)..*until).contains(&at)
        {
            return Some(format!("another remediator has {node}"));
        }
        let too_many = off.is_some() && self.held.len() > self.max;
        too_many.then(|| format!("{} nodes in our hands, allowed {}", self.held.len(), self.max))
    }
}
