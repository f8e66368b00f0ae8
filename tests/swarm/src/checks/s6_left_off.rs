//! S6: a machine that we switched off is switched on again, and so is each outlet and each port, or
//! its record is parked and says so. Of a port it is enough that it is parked, or that it waits for somebody's
//! yes, which is asked for with the names of what is cut; of one feed of a machine that is on, or that somebody switched off after it, that it was parked and said so: it goes on when the
//! machine is well.
//! Of a BMC that tells old news nobody can know what it did: there a parked record is enough.

use std::collections::BTreeSet;

use node_remedy_world::facts::PowerCause;

use super::Check;
use crate::scene::{Scene, Setting};

pub(super) struct LeftOff {
    has_stale_bmc: bool,
    needs_approval: bool,
    switches: BTreeSet<String>,
}

impl LeftOff {
    pub(super) fn new(setting: &Setting) -> Self {
        let Setting { has_stale_bmc, needs_approval, .. } = *setting;
        Self { has_stale_bmc, needs_approval, switches: setting.switches.clone() }
    }
}

impl Check for LeftOff {
    fn end(&mut self, scene: &Scene) -> Vec<String> {
        let is_ours = |cause: &PowerCause| *cause == PowerCause::Command;
        // What a cloud took away for good nobody can switch on.
        let machines = scene.off.iter();
        let machines =
            machines.filter(|(node, cause)| is_ours(cause) && !scene.gone.contains(*node));
        let machines = machines.map(|(node, _)| (node, node.clone(), false));
        let plugs = scene.dark_plugs.iter().filter(|(_, (_, cause))| is_ours(cause));
        let plugs = plugs.map(|((device, plug), (node, _))| {
            (node, format!("{device}/{plug} of {node}"), self.switches.contains(device))
        });
        let waits = |node: &str| {
            let fence = scene.incident.get(node);
            let is_asked_for = fence.is_some_and(|fence| !scene.approved.contains(fence));
            self.needs_approval && is_asked_for && scene.state_of(node) == Some("Running")
        };
        let is_told = |node: &str, is_port: bool| {
            let says_so = self.has_stale_bmc || is_port || scene.told_left_off.contains(node);
            let is_parked = scene.state_of(node) == Some("Error");
            let is_off_by_us = scene.off.get(node).is_some_and(is_ours);
            says_so && (is_parked || is_port && waits(node) || !is_port && !is_off_by_us)
        };
        let silent = machines.chain(plugs).filter(|(node, _, is_port)| !is_told(node, *is_port));
        silent
            .map(|(node, what, _)| {
                let state = scene.state_of(node).unwrap_or("no incident");
                format!("{what} was left off and nobody is told: {state}")
            })
            .collect()
    }
}
