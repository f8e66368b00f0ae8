//! L8: where nothing is wrong with the API server, the clocks and our processes, something comes of what cannot wait.
//!
//! - A machine that its BMC switched off for us, and nothing is wrong with that BMC, is proven off, given its power back, or
//!   told of in time. Pods that are to start elsewhere wait for it.
//! - Storage that a person gave back behind a release is cut again in time, unless a person wants the node left alone.

#![expect(clippy::wildcard_enum_match_arm, reason = "most facts change nothing that is kept here")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::facts::{Power, PowerCause, What};
use node_remedy_world::time::{Time, between};

use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

/// A cut is read every 10 s, cutting it takes two calls, and a call of another device may be under way.
const CUT_AGAIN_WITHIN: Duration = Duration::from_secs(35);
/// Two readings of power that lie 16 s apart, and what comes before and after them.
const IN_TIME: Duration = Duration::from_secs(45);

pub(super) struct InTime {
    sound: BTreeSet<String>,
    is_sound: bool,
    /// Since when a machine is off by us, and nothing came of it.
    off_since: BTreeMap<String, Time>,
    /// When somebody last wanted a node left alone.
    kept_at: BTreeMap<String, Time>,
    /// Nodes of which that was told, or that a person wants left alone.
    left: BTreeSet<String>,
}

impl InTime {
    pub(super) fn new(setting: &Setting) -> Self {
        let sound = setting.sound_bmcs.iter().filter(|_| setting.is_sound).cloned().collect();
        let left = setting.guards.excluded.clone();
        Self {
            sound,
            is_sound: setting.is_sound,
            off_since: BTreeMap::new(),
            kept_at: BTreeMap::new(),
            left,
        }
    }

    /// A node whose storage a person gave back too long ago; each once.
    fn given_back(&mut self, scene: &Scene, at: Time) -> Option<String> {
        let kept = scene.undone.keys().filter(|node| scene.is_kept_by_people(node));
        self.kept_at.extend(kept.map(|node| (node.clone(), at)));
        let is_late = |(node, since): &(&String, &Time)| {
            let since = self.kept_at.get(*node).max(Some(*since));
            since.is_some_and(|since| between(*since, at) > CUT_AGAIN_WITHIN)
        };
        let mut late = scene.undone.iter().filter(is_late);
        let (node, _) = late.find(|(node, _)| self.is_sound && !self.left.contains(*node))?;
        self.left.insert(node.clone());
        Some(node.clone())
    }
}

impl Check for InTime {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        let by_its_bmc = |node: &String| {
            self.sound.contains(node) && !scene.dark_plugs.values().any(|(of, _)| of == node)
        };
        // A person knows already that this machine may go off.
        let is_parked = |node: &str| scene.state_of(node) == Some("Error");
        let is_late = |since: &Time| between(*since, at) > IN_TIME;
        let late = self.off_since.extract_if(.., |_, since| is_late(since)).next();
        match what {
            What::PowerChanged { node, power: Power::Off, cause: PowerCause::Command }
                if by_its_bmc(node) && !is_parked(node) =>
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
            What::OperatorCommand { node, .. } => {
                self.left.insert(node.clone());
            }
            _ => {}
        }
        if let Some(node) = self.given_back(scene, at) {
            return Some(format!(
                "{node} has had its storage back for long, and nobody cuts it again"
            ));
        }
        let (node, within) = (late?.0, IN_TIME.as_secs());
        Some(format!("{node} was switched off more than {within} s ago, and nothing came of it"))
    }
}
