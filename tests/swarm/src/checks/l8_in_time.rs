//! L8: a machine that its BMC switched off for us is proven off, given its power back, or told of in time, where nothing
//! is wrong with the BMC, the API server, the clocks and our processes. Pods that are to start elsewhere wait for it.

#![expect(clippy::wildcard_enum_match_arm, reason = "most facts change nothing that is kept here")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::facts::{Power, PowerCause, What};
use node_remedy_world::time::{Time, between};

use super::Check;
use crate::scene::{Scene, Setting};

/// Two readings of power that lie 16 s apart, and what comes before and after them.
const IN_TIME: Duration = Duration::from_secs(45);

pub(super) struct InTime {
    sound: BTreeSet<String>,
    /// Since when a machine is off by us, and nothing came of it.
    off_since: BTreeMap<String, Time>,
}

impl InTime {
    pub(super) fn new(setting: &Setting) -> Self {
        let sound = setting.sound_bmcs.iter().filter(|_| setting.is_sound).cloned().collect();
        Self { sound, off_since: BTreeMap::new() }
    }
}

impl Check for InTime {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        let by_its_bmc = |node: &String| {
            self.sound.contains(node) && !scene.dark_plugs.values().any(|(of, _)| of == node)
        };
        let is_late = |since: &Time| between(*since, at) > IN_TIME;
        let late = self.off_since.extract_if(.., |_, since| is_late(since)).next();
        match what {
            What::PowerChanged { node, power: Power::Off, cause: PowerCause::Command }
                if by_its_bmc(node) =>
            {
                self.off_since.insert(node.clone(), at);
            }
            What::PowerChanged { node, .. }
            | What::ProofRecorded { node, .. }
            | What::ParkedRecorded { node, .. }
            | What::DeviceAwaited { node, .. }
            | What::NodeDeleted { node, .. } => {
                self.off_since.remove(node);
            }
            What::LeaderChanged { .. } => self.off_since.clear(),
            _ => {}
        }
        let (node, within) = (late?.0, IN_TIME.as_secs());
        Some(format!("{node} was switched off more than {within} s ago, and nothing came of it"))
    }
}
