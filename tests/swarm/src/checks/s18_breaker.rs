//! S18: once so many incidents have begun, none is begun for the cool-down, and then one: the next one only
//! when it is over, or waits, or is on its way back after it was parked. An incident that took the place of another one of
//! its node is the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::facts::What;
use node_remedy_world::time::{Time, between};

use crate::checks::check::Check;
use crate::guards::Breaker;
use crate::scene::{Scene, Setting};

/// Two processes that tell time by answers' dates, which are whole seconds, are so far apart at most.
const DATED_WITHIN: Duration = Duration::from_secs(3);

/// Why an incident ends whose place another one takes.
const SUPERSEDED: &str = "Superseded";
/// That one begins so soon.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(1);

pub(super) struct OpenBreaker {
    breaker: Option<Breaker>,
    /// When the server's clock is set ahead, and by how much.
    skips: Vec<(Time, Duration)>,
    /// What waits for somebody's yes holds nobody up for long.
    needs_approval: bool,
    /// When each incident began, until the breaker opened.
    begun: Vec<Time>,
    /// The incident that was let through after the cool-down.
    trial: Option<String>,
    /// When an incident of each node was superseded.
    ended: BTreeMap<String, Time>,
    /// Incidents that were parked, and have not been `New` or `Running` since.
    parked: BTreeSet<String>,
}

impl OpenBreaker {
    pub(super) fn new(setting: &Setting) -> Self {
        // Whoever follows a server's clock that was set ahead tells ages an eighth too large.
        let least = |cool_down: Duration| (cool_down * 8 / 9).saturating_sub(DATED_WITHIN);
        let breaker = setting.guards.breaker;
        let breaker = breaker.map(|one| Breaker { cool_down: least(one.cool_down), ..one });
        Self {
            breaker,
            skips: setting.skips.clone(),
            needs_approval: setting.needs_approval,
            begun: Vec::new(),
            trial: None,
            ended: BTreeMap::new(),
            parked: BTreeSet::new(),
        }
    }

    /// How much too large an age may be that began then.
    fn skipped(&self, since: Time) -> Duration {
        let later = self.skips.iter().filter(|(at, _)| *at >= since);
        later.map(|(_, by)| *by).sum()
    }
}

impl Check for OpenBreaker {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        let Breaker { incidents_max, cool_down } = self.breaker?;
        if let What::ParkedRecorded { fence, .. } = what {
            self.parked.insert(fence.clone());
        }
        let What::FenceState { fence, node, state, reason, .. } = what else { return None };
        if state == "New" || state == "Running" {
            self.parked.remove(fence);
        }
        if reason == SUPERSEDED {
            self.ended.insert(node.clone(), at);
        }
        let follows = |ended: &Time| between(*ended, at) <= FOLLOWS_WITHIN;
        if scene.states.contains_key(fence) || self.ended.get(node).is_some_and(follows) {
            return None;
        }
        let Some(opened) = self.begun.get(incidents_max - 1) else {
            self.begun.push(at);
            return None;
        };
        let since = between(*opened, at);
        let cool_down = cool_down.saturating_sub(self.skipped(*opened));
        if since < cool_down {
            let s = since.as_secs();
            return Some(format!("the breaker opened {s} s ago, for {} s", cool_down.as_secs()));
        }
        // Only the first one is judged: what became of it decides about all that follow.
        if self.trial.is_some() || self.needs_approval {
            return None;
        }
        self.trial = Some(fence.clone());
        let goes_on = |state: &String| state != "Final" && state != "Error";
        let others = scene.states.iter().filter(|(_, state)| goes_on(state));
        let waits = |other: &String| scene.awaited.contains(other) || self.parked.contains(other);
        let other = others.map(|(other, _)| other).find(|other| !waits(other))?;
        Some(format!("{other} goes on"))
    }
}
