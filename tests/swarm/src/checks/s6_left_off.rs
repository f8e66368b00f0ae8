//! S6: a machine that we switched off is switched on again, and so is each outlet and each port, or
//! its record is parked and says so. Storage that we cut is given back before the incident is over.
//!
//! - Of a port it is enough that its record is parked, or that it waits for somebody's yes, which is
//!   asked for with the names of what is cut; after the yes the gate may stay closed for a while, and
//!   then the port is given back. One that begins anew waits for the gate as long, and one that cannot be given back is
//!   told of after a while.
//! - Of one feed of a machine that is on, or that somebody switched off after it, it is enough that
//!   its record was parked and said so: it goes on when the machine is well.
//! - Of a BMC that tells old news nobody can know what it did: there a parked record is enough. Of a
//!   plug that says that it is on, and is not, an incident that goes on is.
//! - Of a machine whose dark outlets all went off by themselves it is enough that its incident waits for a device.
//! - A port that somebody shut before us is not opened by us, nor a machine switched on where the policy leaves it off.
//! - Of a machine whose Node is gone a person may say that it stays off: then its incident may be over.
//! - A machine that is Ready in a newer boot than the one that was cut needs no person to have its storage back.

#![expect(clippy::wildcard_enum_match_arm, reason = "most facts change nothing that is kept here")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_decide::{CLEANUP_TIMEOUT, GATE_TIMEOUT};
use node_remedy_world::facts::{Power, PowerCause, What};
use node_remedy_world::time::{Time, between};

use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

/// What could not be given back is tried again once a minute.
const GIVEN_BACK: Duration = Duration::from_mins(3);

pub(super) struct LeftOff {
    has_stale_bmc: bool,
    needs_approval: bool,
    /// Outlets that are written down for a node that they do not feed.
    miswired: BTreeSet<u64>,
    switches: BTreeSet<String>,
    /// What each outlet and port last said of itself since it changed.
    told: BTreeMap<(String, u64), Power>,
    /// When each incident began, or began anew.
    begun: BTreeMap<String, Time>,
    /// Since when each incident is on its way to its end.
    ending: BTreeMap<String, Time>,
    is_sound: bool,
    leaves_off: bool,
    /// Machines that somebody else switched off, and we had not touched.
    off_by_others: BTreeSet<String>,
    /// Machines that we switched in their present incident.
    touched: BTreeSet<String>,
    /// Ports that somebody else shut.
    anothers: BTreeSet<(String, u64)>,
    /// Nodes whose storage is cut: whether their machine was off since, and since when it is Ready after that.
    cut: BTreeMap<String, (bool, Option<Time>)>,
    /// Incidents of which somebody said that the machine stays off.
    said_left: BTreeSet<String>,
    /// Incidents whose Node was deleted.
    nodeless: BTreeSet<String>,
    /// Nodes whose incident ended after both: the Node was deleted, and a person said that the machine stays off.
    scrapped: BTreeSet<String>,
    /// When the last fact was.
    now: Option<Time>,
}

impl LeftOff {
    pub(super) fn new(setting: &Setting) -> Self {
        let Setting { has_stale_bmc, needs_approval, .. } = *setting;
        let switches = setting.switches.clone();
        let (told, begun) = (BTreeMap::new(), BTreeMap::new());
        let (is_sound, anothers, cut) = (setting.is_sound, BTreeSet::new(), BTreeMap::new());
        Self {
            has_stale_bmc,
            needs_approval,
            miswired: setting.miswired.clone(),
            switches,
            told,
            begun,
            ending: BTreeMap::new(),
            is_sound,
            leaves_off: setting.leaves_off,
            off_by_others: BTreeSet::new(),
            touched: BTreeSet::new(),
            anothers,
            cut,
            said_left: BTreeSet::new(),
            nodeless: BTreeSet::new(),
            scrapped: BTreeSet::new(),
            now: None,
        }
    }

    /// Whether we opened a port that somebody else had shut. A switch that forgets our `on` is nobody.
    fn opened_anothers(&mut self, what: &What) -> bool {
        let What::PlugChanged { device, plug, power, cause, .. } = what else { return false };
        let port = (device.clone(), *plug);
        let is_ours = *cause == PowerCause::Command;
        match power {
            Power::Off if *cause == PowerCause::ByHand && self.switches.contains(device) => {
                self.anothers.insert(port);
                false
            }
            Power::Off => false,
            Power::On => self.anothers.remove(&port) && is_ours,
        }
    }

    /// Whether we switched a machine on that others had switched off, where the policy leaves it so.
    fn switched_on_anothers(&mut self, scene: &Scene, what: &What) -> bool {
        if let What::FenceState { fence, node, .. } = what
            && !scene.states.contains_key(fence)
        {
            self.touched.remove(node);
        }
        let What::PowerChanged { node, power, cause } = what else { return false };
        if *cause != PowerCause::Command {
            if *power == Power::Off && !self.touched.contains(node) {
                self.off_by_others.insert(node.clone());
            }
            return false;
        }
        self.touched.insert(node.clone());
        self.off_by_others.remove(node) && *power == Power::On && self.leaves_off
    }

    fn note_cut(&mut self, at: Time, what: &What) {
        match what {
            What::StorageCut { node } => {
                self.cut.insert(node.clone(), (false, None));
            }
            What::StorageBack { node } => {
                self.cut.remove(node);
            }
            What::PowerChanged { node, power: Power::Off, .. } => {
                self.cut.entry(node.clone()).and_modify(|cut| *cut = (true, None));
            }
            What::NodeReady { node, status, .. } => {
                let since = (status == "True").then_some(at);
                self.cut.entry(node.clone()).and_modify(|cut| cut.1 = since.filter(|_| cut.0));
            }
            _ => {}
        }
    }

    /// Nodes that were Ready in a newer boot for long enough, and their storage is cut.
    fn cut_for_nothing(&self, scene: &Scene) -> Vec<String> {
        let is_long = |since: &Time| self.now.is_some_and(|now| between(*since, now) > GIVEN_BACK);
        let is_parked = |node: &&String| scene.state_of(node) == Some("Error");
        let late = self.cut.iter().filter(|(_, (_, since))| since.as_ref().is_some_and(is_long));
        let late = late.map(|(node, _)| node).filter(is_parked).filter(|_| self.is_sound);
        late.map(|node| format!("{node} is Ready in a newer boot, and its storage is cut"))
            .collect()
    }

    /// Whether an incident waits for a yes, or had it or began anew so lately that the gate may be waited for.
    fn waits(&self, scene: &Scene, node: &str) -> bool {
        let gate_timeout = Duration::from_millis(GATE_TIMEOUT.0);
        let is_young =
            |since: &Time| self.now.is_some_and(|now| between(*since, now) < gate_timeout);
        let in_time = |fence| scene.approved.get(fence).is_none_or(is_young);
        if scene.state_of(node) == Some("New") {
            let begun = scene.incident.get(node).and_then(|fence| self.begun.get(fence));
            return begun.is_some_and(is_young);
        }
        if scene.state_of(node) == Some("Done") {
            // A person is told after that of what cannot be given back.
            let since = scene.incident.get(node).and_then(|fence| self.ending.get(fence));
            let patience = Duration::from_millis(CLEANUP_TIMEOUT.0);
            let age = since.zip(self.now.as_ref()).map(|(since, now)| between(*since, *now));
            return age.is_some_and(|age| age < patience);
        }
        let is_running = scene.state_of(node) == Some("Running");
        self.needs_approval && is_running && scene.incident.get(node).is_some_and(in_time)
    }
}

impl Check for LeftOff {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        self.now = Some(at);
        self.note_cut(at, what);
        if self.opened_anothers(what) {
            return Some("somebody else had shut it".to_owned());
        }
        if self.switched_on_anothers(scene, what) {
            return Some("somebody else had switched it off, and it was to stay so".to_owned());
        }
        if let What::PlugReported { device, plug, power, .. } = what {
            self.told.insert((device.clone(), *plug), *power);
        } else if let What::PlugChanged { device, plug, .. } = what {
            self.told.remove(&(device.clone(), *plug));
        } else if let What::OperatorCommand { fence, command, .. } = what {
            if command == "abort-leave-off" {
                self.said_left.insert(fence.clone());
            }
        } else if let What::PowerChanged { node, .. } = what {
            self.scrapped.remove(node);
        } else if let What::NodeDeleted { node, .. } = what {
            self.nodeless.extend(scene.incident.get(node).cloned());
        } else if let What::FenceState { fence, node, state, .. } = what {
            let is_left = self.said_left.contains(fence) && self.nodeless.contains(fence);
            if is_left && state == "Final" {
                self.scrapped.insert(node.clone());
            }
            if state == "New" {
                self.begun.insert(fence.clone(), at);
                self.ending.remove(fence);
            } else if state == "Done" {
                self.ending.entry(fence.clone()).or_insert(at);
            }
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
        // An outlet of another machine is told of in the incident of the node that it is configured for. Which one that is,
        // nobody here knows: any incident counts that is parked and says that plugs are off, or a person's word to leave them so.
        let is_anothers_told = |node: &str| {
            let mut dark = scene.dark_plugs.iter().filter(|(_, (owner, _))| owner == node);
            let is_miswired = dark.any(|((_, plug), _)| self.miswired.contains(plug));
            let mut told = scene.told_left_off.iter();
            let is_told = told.any(|other| scene.state_of(other) == Some("Error"));
            is_miswired && (is_told || self.has_stale_bmc || !self.said_left.is_empty())
        };
        // Its record says what it waits for, and it parks after `deviceTimeout`, a day.
        let waits_with_dark_outlets = |node: &str| {
            let mut dark = scene.dark_plugs.values().filter(|(of, _)| of == node).peekable();
            let is_dark = dark.peek().is_some();
            let by_themselves = dark.all(|(_, cause)| *cause == PowerCause::Device);
            let fence = scene.incident.get(node);
            let is_awaited = fence.is_some_and(|fence| scene.awaited.contains(fence));
            is_dark && by_themselves && is_awaited && scene.state_of(node) == Some("Running")
        };
        let is_told = |node: &str, is_port: bool| {
            if is_anothers_told(node) || !is_port && waits_with_dark_outlets(node) {
                return true;
            }
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
        let silent = machines.chain(plugs).filter(|(node, _, is_port)| {
            !is_told(node, *is_port) && !self.scrapped.contains(*node)
        });
        silent
            .map(|(node, what, _)| {
                let state = scene.state_of(node).unwrap_or("no incident");
                format!("{what} was left off and nobody is told: {state}")
            })
            .chain(cut)
            .chain(self.cut_for_nothing(scene))
            .collect()
    }
}
