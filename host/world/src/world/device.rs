//! A PDU or switch of a scenario, and what its plugs feed.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use node_remedy_devices::UnknownFault;
use node_remedy_devices::snmp::{Agent, Config};

use crate::scenario::{DeviceSpec, Scenario};

/// A PDU or a switch.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) agent: Agent,
    pub(crate) wires: BTreeMap<u32, Wire>,
}

/// What hangs on a plug.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wire {
    pub(crate) machine: usize,
    pub(crate) end: End,
}

/// Which end of a machine that is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// The feed of that number, from 0.
    Feed(usize),
    Port,
}

impl Device {
    /// Whether nothing that it was told is still to come.
    pub(crate) fn is_settled(&self) -> bool {
        self.agent.next_change().is_none()
    }
}

/// The devices of a scenario, wired to its machines.
pub(crate) fn devices(scenario: &Scenario) -> Vec<Device> {
    scenario.devices.iter().map(|spec| device(spec, scenario)).collect()
}

pub(crate) fn device(spec: &DeviceSpec, scenario: &Scenario) -> Device {
    let mut agent = Agent::new(Config {
        model: spec.model,
        plugs: spec.plugs,
        community: spec.community.clone(),
    });
    for (fault, value) in &spec.faults {
        // The names of faults were checked when the scenario was read.
        drop::<Result<(), UnknownFault>>(agent.set_fault(0, fault, *value));
    }
    let mut wires = BTreeMap::new();
    for (machine, node) in scenario.nodes.iter().enumerate() {
        let feeds = node.feeds.iter().enumerate().map(|(feed, plug)| (End::Feed(feed), plug));
        let port = node.port.iter().map(|plug| (End::Port, plug));
        for (end, plug) in feeds.chain(port).filter(|(_, plug)| plug.device == spec.name) {
            wires.insert(plug.number, Wire { machine, end });
        }
    }
    Device { name: spec.name.clone(), address: spec.address, agent, wires }
}
