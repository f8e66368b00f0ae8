//! L1: once trouble is over, a lost node is well again or a person is told; of a machine that was taken away for good
//! the incident is over.

use std::collections::BTreeMap;
use std::time::Duration;

use node_remedy_world::facts::{Power, PowerCause, What};
use node_remedy_world::time::{Time, between};

use super::Check;
use crate::scene::{Scene, Setting};

/// The longest `recoverTimeout` of a night: so long a machine is waited for that somebody switched off in its boot.
const RECOVERS_WITHIN: Duration = Duration::from_mins(15);

pub(super) struct ItEnds {
    lost: Vec<String>,
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
        Self { lost, has_people, off_by_others: BTreeMap::new(), now: Time(0) }
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
        let is_well = |node: &str| scene.ready.get(node).is_some_and(|status| status == "True");
        let left = self.lost.iter().filter(|node| !is_well(node) && !scene.gone.contains(*node));
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
        untold.chain(of_nobody).collect()
    }
}
