//! S10: no node is switched off
//!
//! - that is well again: what decides over an off is read again right before it. One is switched off all
//!   the same if its pods were released behind a cut, or were removed by anyone during that release or after somebody undid
//!   the cut: they run elsewhere, so that boot has to end;
//! - while somebody has paused, or wants that very node left alone;
//! - after somebody aborted its incident, until somebody says `retry`;
//! - before somebody who is to be asked said yes;
//! - before it was silent for as long as its policy says.
//!
//! And no incident is opened while every policy says that nobody acts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_simulate::CLIENT;
use node_remedy_world::facts::{ETCD, PowerCause, Taken, What};
use node_remedy_world::time::{Time, between};

use super::first_off::FirstOff;
use crate::checks::check::Check;
use crate::scene::{PEOPLE, STORAGE_FENCED, Scene, Setting, released_by_us};

/// The last renewal is up to 10 s before the loss, and a kubelet may be 0.4 s late.
const LAST_RENEWAL_BEFORE_MAX: Duration = Duration::from_secs(11);

/// Tolerance: the delay of a watch, and of the age that a condition claims.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(11);

pub(super) struct Trigger {
    /// A policy that says otherwise for so long counts.
    seen_after: Duration,
    /// So does a node that is well for so long.
    well_after: Duration,
    ill: BTreeSet<String>,
    needs_approval: bool,
    switches: BTreeSet<String>,
    miswired: BTreeSet<u64>,
    silent_for: Option<Duration>,
    unready_for: Option<Duration>,
    /// Since when each node that is not Ready is not.
    unready: BTreeMap<String, Time>,
    offs: FirstOff,
    /// Nodes of which a label says that they are to be left alone, since when one does.
    excluded: BTreeMap<String, Option<Time>>,
    /// Incidents that somebody aborted, since when.
    aborted: BTreeMap<String, Time>,
    /// Nodes behind whose storage cut a release has begun: whatever goes from there by any hand counts as released.
    releasing: BTreeSet<String>,
    /// By node, the incident whose storage cut a person undid. Pods removed after that may run elsewhere while this boot writes.
    undone_in: BTreeMap<String, String>,
    /// Nodes whose boot has to end: their pods were released behind a cut.
    to_end: BTreeSet<String>,
}

impl Trigger {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            seen_after: setting.seen_after,
            well_after: setting.well_after,
            ill: setting.ill.clone(),
            needs_approval: setting.needs_approval,
            switches: setting.switches.clone(),
            miswired: setting.miswired.clone(),
            silent_for: setting.silent_for,
            unready_for: setting.unready_for,
            unready: BTreeMap::new(),
            offs: FirstOff::new(setting),
            excluded: setting.guards.excluded.iter().map(|node| (node.clone(), None)).collect(),
            aborted: BTreeMap::new(),
            releasing: BTreeSet::new(),
            undone_in: BTreeMap::new(),
            to_end: BTreeSet::new(),
        }
    }

    fn is_released(&mut self, scene: &Scene, node: &str) {
        if scene.kept_away.contains(node) {
            self.to_end.insert(node.to_owned());
        }
    }

    /// Which incidents are aborted.
    fn see_commands(&mut self, at: Time, what: &What) {
        if let What::OperatorCommand { fence, command, .. } = what {
            if command == "retry" {
                self.aborted.remove(fence);
            } else if command.starts_with("abort") {
                self.aborted.entry(fence.clone()).or_insert(at);
            }
        }
        // Whoever sets the cluster's data back takes words back, too.
        if matches!(what, What::Edited { object, .. } if object == ETCD) {
            self.aborted.clear();
        }
    }

    /// Whether somebody aborted the incident of a node, so long ago that whoever sends an off knows of it.
    fn is_aborted(&self, scene: &Scene, node: &str, at: Time) -> bool {
        let since = scene.incident.get(node).and_then(|fence| self.aborted.get(fence));
        since.is_some_and(|since| between(*since, at) > self.well_after)
    }

    /// Which boots have to end.
    fn see_releases(&mut self, scene: &Scene, at: Time, what: &What) {
        if let What::ProofRecorded { node, grade, .. } = what
            && grade == STORAGE_FENCED
        {
            self.releasing.insert(node.clone());
        }
        if let What::PodTerminating { node, by, graceful: false, .. } = what
            && by == CLIENT
        {
            self.is_released(scene, node);
        }
        if let Some(node) = released_by_us(what) {
            self.is_released(scene, node);
        }
        if let What::StorageBack { node } = what
            && let Some(incident) = scene.incident.get(node)
            && scene.is_let_back_by_people(at)
        {
            self.undone_in.insert(node.clone(), incident.clone());
        }
        let is_undone = |node| {
            let of = self.undone_in.get(node);
            of.is_some() && of == scene.incident.get(node)
        };
        if let What::PodGone { node, .. } | What::DetachRequested { node, .. } = what {
            if is_undone(node) {
                self.to_end.insert(node.clone());
            } else if self.releasing.contains(node) {
                self.is_released(scene, node);
            }
        }
        if let What::KubeletStarted { node, boot } = what
            && scene.is_new_boot(node, boot)
        {
            self.releasing.remove(node);
            self.to_end.remove(node);
        }
    }

    /// Who wants a node left alone, for so long that whoever sends an off knows of it.
    fn who_keeps(&self, scene: &Scene, node: &str, at: Time) -> Option<&'static str> {
        let by_people = scene.cordoned.get(node).is_some_and(|by| by == PEOPLE);
        let said = [
            ("a maintenance", scene.maintained_since.get(node).copied()),
            ("a cordon", scene.cordoned_since.get(node).copied().filter(|_| by_people)),
            ("a label", self.excluded.get(node).copied().flatten()),
        ];
        let stands =
            |since: Option<Time>| since.is_some_and(|since| between(since, at) > self.well_after);
        said.into_iter().find(|(_, since)| stands(*since)).map(|(who, _)| who)
    }

    /// For how long a node has not been Ready, where that is too short to switch it off.
    fn unready_too_short(&mut self, at: Time, what: &What, off: Option<&str>) -> Option<Duration> {
        if let What::NodeReady { node, status, .. } = what {
            if status == "True" {
                self.unready.remove(node);
            } else {
                self.unready.entry(node.clone()).or_insert(at);
            }
        }
        let node = off.filter(|node| !self.ill.contains(*node) && !self.to_end.contains(*node))?;
        let unready = self.unready.get(node).map_or(Duration::ZERO, |since| between(*since, at));
        (unready + CLOCKS_APART_MAX < self.unready_for?).then_some(unready)
    }
}

impl Check for Trigger {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        if let What::FenceState { fence, node, .. } = what {
            let is_new = !scene.states.contains_key(fence);
            let is_idle =
                scene.idle_since.is_some_and(|since| between(since, at) > self.seen_after);
            return (is_new && is_idle).then(|| format!("no policy lets anybody act on {node}"));
        }
        if let What::Edited { object, .. } = what
            && let Some(node) = object.strip_prefix("Node ")
            && let Some(since) = self.excluded.get_mut(node)
        {
            *since = if since.is_some() { None } else { Some(at) };
        }
        self.see_commands(at, what);
        self.see_releases(scene, at, what);
        if let What::StorageCut { node } = what
            && !scene.incident.contains_key(node)
        {
            return Some(format!("{node} was kept from its storage, and nobody fences it"));
        }
        let off = self.offs.of(scene, what);
        if let Some(unready) = self.unready_too_short(at, what, off) {
            let s = unready.as_secs();
            return Some(format!("a node was told to be off that was not Ready for {s} s only"));
        }
        if let Some(node) = off
            && !self.ill.contains(node)
            && !self.to_end.contains(node)
            && scene.lost.contains_key(node)
            && let Some(since) = scene.unheard_since.get(node)
            && self
                .silent_for
                .is_some_and(|long| between(*since, at) + LAST_RENEWAL_BEFORE_MAX < long)
        {
            let silent = between(*since, at).as_secs();
            return Some(format!("{node} was told to be off after only {silent} s of silence"));
        }
        // The command is what counts: some BMCs carry it out much later.
        let Taken { node, command, plug, .. } = what.taken()?;
        if self.miswired.contains(&plug.1) {
            return None;
        }
        let is_paused =
            scene.paused_since.is_some_and(|since| between(since, at) > self.well_after);
        if command == "off" && is_paused {
            return Some(format!("{node} was told to be off while somebody had paused"));
        }
        // One that is off because of us was told so before: a message that is sent once more changes nothing.
        let is_off = scene.off.get(node).is_some_and(|cause| *cause == PowerCause::Command);
        let cuts = command == "off" && !is_off;
        if let Some(who) = self.who_keeps(scene, node, at).filter(|_| cuts) {
            return Some(format!("{node} was told to be off although {who} keeps it as it is"));
        }
        // A port is isolation, which comes before.
        let powers = command == "off" && !self.switches.contains(plug.0);
        if powers && !is_off && self.is_aborted(scene, node, at) {
            return Some(format!("{node} was told to be off after its incident was aborted"));
        }
        let is_approved =
            scene.incident.get(node).is_some_and(|one| scene.approved.contains_key(one));
        if powers && self.needs_approval && !is_approved {
            return Some(format!("{node} was told to be off before anybody said yes"));
        }
        if command != "off" || scene.lost.contains_key(node) || self.ill.contains(node) {
            return None;
        }
        let well = scene.well_since.get(node);
        let just_now = well.is_some_and(|since| between(*since, at) <= self.well_after);
        (!just_now && !self.to_end.contains(node))
            .then(|| format!("{node} was well when it was told to be off"))
    }
}
