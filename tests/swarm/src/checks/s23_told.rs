//! S23: why a person is needed is true, as far as the world can tell.
//!
//! - `CutUndone`: somebody else gave back what was cut.
//! - `NotHealthy`: the node is not well, or only just.
//! - `SameBootAfterRelease`, `AliveThoughOff`: the node was heard since its incident began.
//! - `OffBeforeUs`: its machine was off before, or a device said so before we switched it off. One of several outlets that
//!   we switched off counts as off before.
//! - `OnFailed`: something of its machine is off, or was until a moment ago; or it was read since it was asked to go on, and
//!   nobody could say that it is.
//! - `WrongPlug`: some plug is miswired, or another node was lost when its outlet went off, not by us.
//!
//! What cannot be told of the world is believed: a device that could not be reached, a Job that failed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::facts::{Power, PowerCause, What};
use node_remedy_world::time::{Time, between};

use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

/// What was true so long ago may be told: a look takes a while, a call and its record, too.
const LATELY: Duration = Duration::from_mins(1);
/// A neighbour whose last renewal was so near to the off may have been its victim.
const SILENT_LATELY_MS: u64 = 60_000;

pub(super) struct Reports {
    ill: BTreeSet<String>,
    is_miswired: bool,
    /// Nodes that somebody other than node-remedy let back.
    given_back: BTreeSet<String>,
    /// Nodes whose machine was off by others' doing, or of which a device said so before we switched it off.
    off_before: BTreeSet<String>,
    /// When something of a node's machine was last off, or said to be.
    off_at: BTreeMap<String, Time>,
    /// Nodes whose machine was asked to go on, by which method, and not read by it since.
    asked_on: BTreeMap<String, String>,
    /// Nodes of which an outlet was switched on by us since the last off.
    on_again: BTreeSet<String>,
    /// When an outlet of a node was first switched off in this pass of its incident, and when last.
    cut_at: BTreeMap<String, (Time, Time)>,
    /// Nodes that fell silent by themselves, or that others switched off, and when.
    silent: BTreeMap<String, BTreeSet<Time>>,
    /// Since when a node's incident goes on.
    began_at: BTreeMap<String, Time>,
}

impl Reports {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            ill: setting.ill.clone(),
            is_miswired: !setting.miswired.is_empty(),
            given_back: BTreeSet::new(),
            off_before: BTreeSet::new(),
            off_at: BTreeMap::new(),
            asked_on: BTreeMap::new(),
            on_again: BTreeSet::new(),
            cut_at: BTreeMap::new(),
            silent: BTreeMap::new(),
            began_at: BTreeMap::new(),
        }
    }

    fn note(&mut self, scene: &Scene, at: Time, what: &What) {
        self.note_silent(scene);
        if let Some(node) = what.told_off() {
            self.off_at.insert(node.to_owned(), at);
            let is_ours = scene.off.get(node) == Some(&PowerCause::Command);
            let off_since = scene.off_at.get(node).filter(|_| is_ours);
            let is_of_it =
                off_since.zip(self.began_at.get(node)).is_some_and(|(off, began)| off >= began);
            if !is_of_it {
                self.off_before.insert(node.to_owned());
            }
        }
        if let What::IntentRecorded { node, method, action, .. } = what {
            let asked = self.asked_on.get(node);
            match action.as_str() {
                "on" => {
                    self.asked_on.insert(node.clone(), method.clone());
                }
                "status" if asked == Some(method) => {
                    self.asked_on.remove(node);
                }
                _ => {}
            }
        }
        if let What::FenceState { fence, node, .. } = what
            && !scene.states.contains_key(fence)
        {
            self.began_at.insert(node.clone(), at);
            self.given_back.remove(node);
            self.cut_at.remove(node);
            self.off_before.remove(node);
        }
        if let What::StorageBack { node } = what
            && scene.is_let_back_by_people(at)
        {
            self.given_back.insert(node.clone());
        }
        // Any cause counts: a device may only claim an off that a person then makes.
        if let What::PlugChanged { node, power: Power::Off, .. } = what {
            if self.on_again.remove(node) {
                self.cut_at.remove(node);
            }
            let (_, last) = self.cut_at.entry(node.clone()).or_insert((at, at));
            *last = at;
        }
        if let What::PlugChanged { node, power: Power::On, cause, .. } = what {
            self.off_at.insert(node.clone(), at);
            if *cause == PowerCause::Command {
                self.on_again.insert(node.clone());
            } else {
                self.given_back.insert(node.clone());
            }
        }
        if let What::PowerChanged { node, power, cause } = what {
            self.off_at.insert(node.clone(), at);
            if *power == Power::Off && *cause != PowerCause::Command {
                self.off_before.insert(node.clone());
            }
        }
    }

    fn note_silent(&mut self, scene: &Scene) {
        let off = scene.off.iter().filter(|(_, cause)| **cause != PowerCause::Command);
        let off = off.filter_map(|(of, _)| Some((of, scene.off_at.get(of)?)));
        for (of, since) in scene.lost.iter().chain(off) {
            // Most facts bring nothing new, and then nothing is copied.
            if !self.silent.get(of).is_some_and(|known| known.contains(since)) {
                self.silent.entry(of.clone()).or_default().insert(*since);
            }
        }
    }

    /// Why what is told of a node is not true.
    fn is_wrong(&self, scene: &Scene, at: Time, node: &str, reason: &str) -> Option<&'static str> {
        let long_before = |since: &Time| between(*since, at) > LATELY;
        let (is_wrong, why) = match reason {
            "CutUndone" => (!self.given_back.contains(node), "nobody gave it back"),
            "NotHealthy" => {
                let is_well = scene.well_since.get(node).is_some_and(long_before);
                let is_ready = scene.ready.get(node).is_some_and(|ready| ready == "True");
                (is_well && is_ready && !self.ill.contains(node), "it is well")
            }
            "SameBootAfterRelease" | "AliveThoughOff" => {
                let began_at = self.began_at.get(node);
                let is_silent = scene.lost.get(node).zip(began_at).is_some_and(|(a, b)| a <= b);
                (is_silent, "nobody heard it since its incident began")
            }
            "WrongPlug" => {
                let (first, last) = self.cut_at.get(node).copied().unwrap_or((at, at));
                let others = self.silent.iter().filter(|(of, _)| *of != node);
                let is_near = |since: &Time| {
                    since.0.saturating_add(SILENT_LATELY_MS) >= first.0
                        && since.0 <= last.0.saturating_add(SILENT_LATELY_MS)
                };
                let may_be_it = others.flat_map(|(_, since)| since).any(is_near);
                (!self.is_miswired && !may_be_it, "no other node fell silent by itself")
            }
            "OffBeforeUs" => (!self.off_before.contains(node), "it was on"),
            "OnFailed" => {
                let is_off = scene.off.contains_key(node)
                    || scene.dark_plugs.values().any(|(of, _)| of == node);
                let was_off = self.off_at.get(node).is_some_and(|at| !long_before(at));
                let is_unread = self.asked_on.contains_key(node);
                (!is_off && !was_off && is_unread, "all of it is on, and nobody has read it since")
            }
            _ => return None,
        };
        is_wrong.then_some(why)
    }
}

impl Check for Reports {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        self.note(scene, at, what);
        let What::ParkedRecorded { node, reason, .. } = what else { return None };
        let why = self.is_wrong(scene, at, node, reason)?;
        Some(format!("a person is told {reason} of {node}, and {why}"))
    }
}
