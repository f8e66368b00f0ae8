//! S6: a machine that we switched off is switched on again, and so is each outlet and each port, or
//! its record is parked and says so. Storage that we cut is given back before the incident is over.
//!
//! - Of a port it is enough that its record is parked, or that it waits for somebody's yes, which is
//!   asked for with the names of what is cut; after the yes the gate may stay closed for a while, and
//!   then the port is given back.
//! - Of one feed of a machine that is on, or that somebody switched off after it, it is enough that
//!   its record was parked and said so: it goes on when the machine is well.
//! - Of a BMC that tells old news nobody can know what it did: there a parked record is enough. Of a
//!   plug that says that it is on, and is not, an incident that goes on is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_decide::GATE_TIMEOUT;
use node_remedy_world::facts::{Power, PowerCause, What};
use node_remedy_world::time::{Time, between};

use super::Check;
use crate::scene::{Scene, Setting};

pub(super) struct LeftOff {
    has_stale_bmc: bool,
    needs_approval: bool,
    switches: BTreeSet<String>,
    /// What each outlet and port last said of itself since it changed.
    told: BTreeMap<(String, u64), Power>,
    /// When the last fact was.
    now: Option<Time>,
}

impl LeftOff {
    pub(super) fn new(setting: &Setting) -> Self {
        let Setting { has_stale_bmc, needs_approval, .. } = *setting;
        let switches = setting.switches.clone();
        Self { has_stale_bmc, needs_approval, switches, told: BTreeMap::new(), now: None }
    }

    /// Whether an incident waits for a yes, or had it so lately that the gate may be waited for.
    fn waits(&self, scene: &Scene, node: &str) -> bool {
        let gate_timeout = Duration::from_millis(GATE_TIMEOUT.0);
        let in_time = |fence| match (scene.approved.get(fence), self.now) {
            (Some(since), Some(now)) => between(*since, now) < gate_timeout,
            _ => true,
        };
        let is_running = scene.state_of(node) == Some("Running");
        self.needs_approval && is_running && scene.incident.get(node).is_some_and(in_time)
    }
}

impl Check for LeftOff {
    fn see(&mut self, _: &Scene, at: Time, what: &What) -> Option<String> {
        self.now = Some(at);
        if let What::PlugTold { device, plug, power, .. } = what {
            self.told.insert((device.clone(), *plug), *power);
        } else if let What::PlugChanged { device, plug, .. } = what {
            self.told.remove(&(device.clone(), *plug));
        }
        None
    }

    fn end(&mut self, scene: &Scene) -> Vec<String> {
        let is_ours = |cause: &PowerCause| *cause == PowerCause::Command;
        // What a cloud took away for good nobody can switch on.
        let machines = scene.off.iter();
        let machines =
            machines.filter(|(node, cause)| is_ours(cause) && !scene.gone.contains(*node));
        let machines = machines.map(|(node, _)| (node, node.clone(), false));
        let plugs = scene.dark_plugs.iter().filter(|(plug, (node, cause))| {
            let seems_on = self.told.get(plug) == Some(&Power::On);
            let goes_on = matches!(scene.state_of(node), Some("New" | "Running"));
            is_ours(cause) && !(seems_on && goes_on)
        });
        let plugs = plugs.map(|((device, plug), (node, _))| {
            (node, format!("{device}/{plug} of {node}"), self.switches.contains(device))
        });
        let is_told = |node: &str, is_port: bool| {
            let says_so = self.has_stale_bmc || is_port || scene.told_left_off.contains(node);
            let is_parked = scene.state_of(node) == Some("Error");
            let is_off_by_us = scene.off.get(node).is_some_and(is_ours);
            says_so
                && (is_parked || is_port && self.waits(scene, node) || !is_port && !is_off_by_us)
        };
        // Only node-remedy cuts storage.
        let is_over = |node: &&String| scene.state_of(node) == Some("Final");
        let cut = scene.kept_away.intersection(&scene.nodes).filter(is_over);
        let cut =
            cut.map(|node| format!("the incident of {node} is over with its storage still cut"));
        let silent = machines.chain(plugs).filter(|(node, _, is_port)| !is_told(node, *is_port));
        silent
            .map(|(node, what, _)| {
                let state = scene.state_of(node).unwrap_or("no incident");
                format!("{what} was left off and nobody is told: {state}")
            })
            .chain(cut)
            .collect()
    }
}
