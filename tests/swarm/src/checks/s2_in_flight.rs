//! S2: never more nodes at once than the policy allows are in our hands: from the off that a BMC
//! takes to the on, or to where a person is told.

use std::collections::BTreeSet;

use node_remedy_world::facts::{Power, What};
use node_remedy_world::time::Time;

use super::Check;
use crate::scene::{Scene, Setting};

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
    fn see(&mut self, _: &Scene, _: Time, what: &What) -> Option<String> {
        match what {
            What::BmcSaidYes { node, command, .. } if command == "off" => {
                self.held.insert(node.clone());
            }
            What::BmcSaidYes { node, command, .. } if command == "on" => {
                self.held.remove(node);
            }
            What::PowerChanged { node, power: Power::On, .. } => {
                self.held.remove(node);
            }
            What::FenceState { node, state, .. } if state == "Error" || state == "Final" => {
                self.held.remove(node);
            }
            _ => {}
        }
        let is_off = matches!(what, What::BmcSaidYes { command, .. } if command == "off");
        let too_many = is_off && self.held.len() > self.max;
        too_many.then(|| format!("{} nodes in our hands, allowed {}", self.held.len(), self.max))
    }
}
