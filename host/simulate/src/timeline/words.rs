//! What the parts of a timeline share.

use std::collections::{BTreeMap, BTreeSet};

use node_remedy_decide::{Operation, PlugState, Time};
use node_remedy_world::Scenario;
use node_remedy_world::scenario::{NodeSpec, START};

use crate::recorder::Collected;

/// What the device lane calls what gives a node its power.
pub(crate) struct Lanes<'a> {
    /// Nodes that are instances of a cloud.
    instances: BTreeSet<&'a str>,
    /// Others on outlets alone.
    without_bmc: BTreeSet<&'a str>,
}

impl<'a> Lanes<'a> {
    pub(crate) fn of(scenario: &'a Scenario) -> Self {
        let named = |is: fn(&NodeSpec) -> bool| {
            let nodes = scenario.nodes.iter().filter(|node| is(node));
            nodes.map(|node| node.name.as_str()).collect()
        };
        Self {
            instances: named(|node| node.cloud.is_some()),
            without_bmc: named(|node| node.cloud.is_none() && node.bmc.is_none()),
        }
    }

    pub(crate) fn power_of(&self, node: &str) -> String {
        let what = if self.instances.contains(node) {
            "instance"
        } else if self.without_bmc.contains(node) {
            "power"
        } else {
            "BMC"
        };
        format!("{what} of {node}")
    }
}

/// What it calls an outlet or port.
pub(crate) fn plug_of(device: &str, plug: u64) -> String {
    format!("{device}/{plug}")
}

pub(crate) fn ms(at: Time) -> u64 {
    at.0.saturating_sub(START.0)
}

/// Everything that an incident ever did, in order.
pub(crate) fn journal<'a>(
    collected: &'a Collected,
    name: &str,
) -> impl Iterator<Item = &'a Operation> {
    collected.journals.get(name).into_iter().flat_map(BTreeMap::values)
}

pub(crate) fn state_word(state: PlugState) -> &'static str {
    match state {
        PlugState::On => "on",
        PlugState::Off => "off",
        PlugState::Transitioning => "transitioning",
        PlugState::Unknown => "unknown",
        PlugState::Terminated => "terminated",
    }
}
