//! S3: of nodes that carry the control plane one is cut only while every other one is well, and while
//! they are a majority without it.

use std::collections::BTreeSet;
use std::time::Duration;

use node_remedy_world::facts::What;
use node_remedy_world::time::Time;

use super::first_off::FirstOff;
use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

pub(super) struct Quorum {
    members: BTreeSet<String>,
    seen_after: Duration,
    offs: FirstOff,
}

impl Quorum {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            members: setting.guards.control_plane.clone(),
            seen_after: setting.seen_after,
            offs: FirstOff::new(setting),
        }
    }
}

impl Check for Quorum {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        let node = self.offs.of(scene, what).filter(|node| self.members.contains(*node))?;
        let others = self.members.iter().filter(|other| *other != node);
        let (lost, well): (Vec<&String>, Vec<&String>) =
            others.partition(|other| scene.is_lost_for(other, self.seen_after, at));
        if let Some(other) = lost.first() {
            return Some(format!("{other} carries the control plane, too, and is lost"));
        }
        let (well, total) = (well.len(), self.members.len());
        (well < total / 2 + 1).then(|| format!("{well} of {total} are no majority without {node}"))
    }
}
