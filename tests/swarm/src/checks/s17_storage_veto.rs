//! S17: a node that was seen to use its storage a short while ago is alive, and is not cut.

use std::collections::BTreeMap;
use std::time::Duration;

use node_remedy_world::facts::What;
use node_remedy_world::time::{Time, between};

use super::first_off::FirstOff;
use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

/// What the Lease of a node is called, before the node's name.
const LEASE: &str = "Lease ";

pub(super) struct StorageVeto {
    /// By a clock that runs a tenth too fast a ninth of it is over early.
    age_max: Option<Duration>,
    /// What came later may not be known by whoever sends an off.
    known_after: Duration,
    /// Every renewal of a node's storage Lease.
    renewed: BTreeMap<String, Vec<Time>>,
    offs: FirstOff,
}

impl StorageVeto {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            age_max: setting.guards.storage_age_max.map(|age_max| age_max * 9 / 10),
            known_after: setting.well_after,
            renewed: BTreeMap::new(),
            offs: FirstOff::new(setting),
        }
    }
}

impl Check for StorageVeto {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        let age_max = self.age_max?;
        if let What::Edited { object, .. } = what
            && let Some(node) = object.strip_prefix(LEASE)
        {
            self.renewed.entry(node.to_owned()).or_default().push(at);
        }
        let node = self.offs.of(scene, what)?;
        let renewed = self.renewed.get(node)?.iter();
        let ages = renewed.map(|renewed| between(*renewed, at));
        let young = |age: &Duration| *age > self.known_after && *age < age_max;
        let age = ages.filter(young).min()?;
        Some(format!("{node} used its storage {} s ago", age.as_secs()))
    }
}
