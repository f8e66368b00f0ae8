//! S1: nothing of a node is given away before a read of its power, begun after the off, has shown
//! that what ran there cannot run any more; or, of pods (and of volumes, where the policy says so), before
//! its kernel has crashed; or, of pods whose volumes' drivers check, after nobody heard the node. What a
//! person gives back behind a release is cut again, and we give nothing back to what was released.

use std::collections::BTreeMap;
use std::time::Duration;

use node_remedy_simulate::CLIENT;
use node_remedy_world::facts::{ETCD, What};
use node_remedy_world::scenario::START;
use node_remedy_world::time::{Time, between};

use crate::checks::check::Check;
use crate::scene::{OPERATOR_CONFIRMED, PARTITION, STORAGE_FENCED, Scene, Setting, released_by_us};

/// Power that comes back by itself is read within this time: a read is at most 5 s old when it is
/// decided on, what was decided is carried out within 5 s, and a request takes 4 s at most.
const READ_AGAIN: Duration = Duration::from_secs(15);

/// The grade that rests on the success of an admin's Job.
const JOB_SUCCEEDED: &str = "job-succeeded";
/// The grade that rests on a kernel's crash, and covers pods, or all that the policy lets it.
const KDUMP_SEEN: &str = "kdump-seen";

pub(super) struct Release {
    has_stale_bmc: bool,
    dumps_release_all: bool,
    drivers_check: bool,
    /// The node of each pod that we released.
    released: BTreeMap<String, String>,
    /// When etcd was set back.
    set_back_at: Option<Time>,
}

impl Release {
    pub(super) fn new(setting: &Setting) -> Self {
        let Setting { has_stale_bmc, dumps_release_all, drivers_check, .. } = *setting;
        let (released, set_back_at) = (BTreeMap::new(), None);
        Self { has_stale_bmc, dumps_release_all, drivers_check, released, set_back_at }
    }

    /// Whether a process of a pod that was released writes again because we gave its node its storage back.
    fn writes_again(&mut self, scene: &Scene, what: &What) -> bool {
        if let What::PodGone { uid, node, by, .. } = what
            && by == CLIENT
        {
            self.released.insert(uid.clone(), node.clone());
        }
        let What::WriterStarted { node, uid, .. } = what else { return false };
        let is_theirs = scene.undone.contains_key(node) || scene.said_off.contains(node);
        let is_released = self.released.get(uid) == Some(node);
        is_released && scene.let_back_at.contains_key(node) && !is_theirs && !self.drivers_check
    }

    /// Nobody can see in time what comes on by itself or by hand after it was proven off; its old
    /// processes are dead all the same.
    fn has_power(&self, scene: &Scene, node: &str, at: Time) -> bool {
        // A BMC that tells what was true a while ago hides it until the kubelet is heard.
        let seen_since = match (self.has_stale_bmc, scene.on_behind_our_back.get(node)) {
            (_, None) => return !scene.off.contains_key(node),
            (true, Some(_)) => scene.well_since.get(node),
            (false, Some(came_on)) => Some(came_on),
        };
        seen_since.is_some_and(|since| between(*since, at) > READ_AGAIN)
    }
}

impl Check for Release {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        if matches!(what, What::Edited { object, .. } if object == ETCD) {
            self.set_back_at = Some(at);
            self.released.clear();
        }
        if matches!(what, What::ProofRecorded { .. }) && self.set_back_at == Some(at) {
            // An older record, and nobody says so now.
            return None;
        }
        if self.writes_again(scene, what) {
            return Some(
                "its storage is given back to processes whose pods were released".to_owned(),
            );
        }
        if let What::TwoWriters { node, other, .. } = what {
            let by_people = &scene.released_by_people;
            // Who gives storage back behind a release makes two writers, until it is cut again.
            let is_theirs = [node, other]
                .iter()
                .any(|node| by_people.contains(*node) || scene.undone.contains_key(*node));
            return (!is_theirs).then(|| "data is being lost".to_owned());
        }
        if let What::ProofRecorded { node, grade, .. } = what
            && grade == PARTITION
        {
            let is_cut_off = scene.is_unheard(node, at);
            return (!self.drivers_check || !is_cut_off).then(|| format!("{node} is no partition"));
        }
        let is_taint = matches!(what, What::TaintAdded { .. });
        let cut_off = released_by_us(what).and_then(|node| scene.partitioned_at(node, at));
        if self.drivers_check && !is_taint && cut_off.is_some() {
            // Who writes where tells whether that was right.
            return None;
        }
        if let What::PodGone { uid, by, .. } = what
            && by == CLIENT
            && scene.writing.contains_key(uid)
        {
            return Some("its process still writes".to_owned());
        }
        if let What::ProofRecorded { node, grade, .. } = what
            && grade == KDUMP_SEEN
        {
            return (!scene.crashed.contains_key(node)).then(|| format!("{node} did not crash"));
        }
        if let What::ProofRecorded { node, grade, .. } = what
            && grade == STORAGE_FENCED
        {
            return (!scene.kept_away.contains(node)).then(|| format!("{node} has its storage"));
        }
        let is_kept_away = |node| {
            let back = scene.let_back_at.get(node);
            scene.kept_away.contains(node)
                || back.is_some_and(|back| between(*back, at) <= READ_AGAIN)
        };
        if !is_taint && released_by_us(what).is_some_and(is_kept_away) {
            return None;
        }
        if released_by_us(what).is_some_and(|node| scene.said_off.contains(node)) {
            return None;
        }
        if let What::ProofRecorded { node, grade, .. } = what {
            if grade == OPERATOR_CONFIRMED {
                return None;
            }
            // No device is read after a Job, so the node must not have reported.
            let is_heard = |since: &Time| between(*since, at) > READ_AGAIN;
            if grade == JOB_SUCCEEDED && scene.well_since.get(node).is_some_and(is_heard) {
                return Some(format!("a Job's success counts as proof although {node} reports"));
            }
            // Writing it down may take long, and power is read again before anything is released.
            let was_off =
                scene.off.contains_key(node) || scene.on_behind_our_back.contains_key(node);
            return (!was_off).then(|| format!("{node} has power"));
        }
        let node = released_by_us(what)?;
        let is_pod = matches!(
            what,
            What::PodTerminating { .. } | What::PodGone { .. } | What::PodPhase { .. }
        );
        let is_attachment = matches!(what, What::DetachRequested { .. });
        if (is_pod || self.dumps_release_all && is_attachment) && scene.crashed.contains_key(node) {
            return None;
        }
        self.has_power(scene, node, at).then(|| format!("released while {node} has power"))
    }

    fn end(&mut self, scene: &Scene) -> Vec<String> {
        let left = |(node, since): (&String, &Time)| {
            let since = between(START, *since).as_secs();
            format!("{node} has had its storage back since {since} s, and nobody cut it again")
        };
        // A kubelet that was heard since has stopped the released pods. Pods bound after the storage came back may write.
        let may_write = |(node, since): &(&String, &Time)| {
            let is_older = |uid| scene.bound_at.get(uid).is_none_or(|at| at <= *since);
            let mut writing = scene.writing.iter().filter(|(_, nodes)| nodes.contains(node));
            scene.lost.contains_key(*node) || writing.any(|(uid, _)| is_older(uid))
        };
        let undone = scene.undone.iter().filter(|(node, _)| !scene.is_kept_by_people(node));
        undone.filter(may_write).map(left).collect()
    }
}
