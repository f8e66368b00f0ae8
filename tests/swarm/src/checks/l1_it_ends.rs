//! L1: once trouble is over, a lost node is well again or a person is told; of a machine that was taken away for good
//! the incident is over.
//!
//! If nothing hinders a lost node at the end, it is well and its incident is over. Being told is then not enough. If somebody
//! deleted a NodeFence and no device has a fault, its incident is over, too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::facts::{Power, PowerCause, What};
use node_remedy_world::time::{Time, between};

use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

/// The longest `recoverTimeout` of a run: so long a machine is waited for that somebody switched off in its boot.
const RECOVERS_WITHIN: Duration = Duration::from_mins(15);

pub(super) struct ItEnds {
    lost: Vec<String>,
    unhindered: BTreeSet<String>,
    has_faults: bool,
    ill: BTreeSet<String>,
    deleted: BTreeSet<String>,
    has_people: bool,
    /// When each machine was last switched off by somebody else.
    off_by_others: BTreeMap<String, Time>,
    /// When the last fact was.
    now: Time,
}

impl ItEnds {
    pub(super) fn new(setting: &Setting) -> Self {
        // Where people act the end is theirs.
        let has_people = setting.has_people;
        let lost = if has_people { Vec::new() } else { setting.lost.clone() };
        Self {
            lost,
            unhindered: setting.unhindered.clone(),
            has_faults: setting.has_faults,
            ill: setting.ill.clone(),
            deleted: setting.deleted.clone(),
            has_people,
            off_by_others: BTreeMap::new(),
            now: Time(0),
        }
    }

    /// Whether an incident is over, or a person is told of what may still be wrong.
    fn is_over(&self, node: &str, state: &str) -> bool {
        state == "Final" || state == "Error" && (self.has_faults || self.ill.contains(node))
    }

    /// What did not become of nodes that nothing holds up, and of incidents that somebody deleted.
    fn unfinished(&self, scene: &Scene) -> Vec<String> {
        let nodes = self.unhindered.iter().filter_map(|node| {
            let state = scene.state_of(node).unwrap_or("no incident");
            let is_well = is_ready(scene, node) && !scene.lost.contains_key(node);
            let what = if !is_well {
                "is not well"
            } else if scene.incident.contains_key(node) && !self.is_over(node, state) {
                "is well, and its incident goes on"
            } else {
                return None;
            };
            Some(format!("nothing holds {node} up, and it {what}: {state}"))
        });
        let state_of = |fence: &String| scene.states.get(fence).map(String::as_str);
        let goes_on = |fence: &&String| state_of(fence).is_some_and(|state| state != "Final");
        let deleted = self.deleted.iter().filter(|_| !self.has_faults).filter(goes_on);
        nodes.chain(deleted.map(|fence| format!("{fence} was deleted, and goes on"))).collect()
    }
}

impl Check for ItEnds {
    fn see(&mut self, _: &Scene, at: Time, what: &What) -> Option<String> {
        self.now = at;
        if let What::PowerChanged { node, power: Power::Off, cause } = what
            && *cause != PowerCause::Command
        {
            self.off_by_others.insert(node.clone(), at);
        }
        None
    }

    fn end(&mut self, scene: &Scene) -> Vec<String> {
        let left =
            self.lost.iter().filter(|node| !is_ready(scene, node) && !scene.gone.contains(*node));
        let is_waited_for = |node: &String| {
            let off_at = self.off_by_others.get(node);
            scene.state_of(node) == Some("Done")
                && off_at.is_some_and(|off_at| between(*off_at, self.now) < RECOVERS_WITHIN)
        };
        // A closed device was told of, and what is refused for it is told by Events.
        let untold = left
            .filter(|node| scene.state_of(node) != Some("Error") && !scene.has_closed_devices)
            .filter(|node| !is_waited_for(node))
            .map(|node| {
                let state = scene.state_of(node).unwrap_or("no incident");
                format!("{node} is still lost and nobody is told: {state}")
            });
        // What was taken away for good has nothing left to wait for.
        let goes_on = |node: &&String| {
            scene.state_of(node).is_some_and(|state| !["Final", "Error"].contains(&state))
        };
        let of_nobody = scene.gone.iter().filter(|_| !self.has_people);
        let of_nobody =
            of_nobody.filter(|node| !scene.nodes.contains(*node)).filter(goes_on).map(|node| {
                format!(
                    "{node} was taken away for good, its Node is gone, and its incident goes on"
                )
            });
        untold.chain(of_nobody).chain(self.unfinished(scene)).collect()
    }
}

fn is_ready(scene: &Scene, node: &str) -> bool {
    scene.ready.get(node).is_some_and(|status| status == "True")
}
