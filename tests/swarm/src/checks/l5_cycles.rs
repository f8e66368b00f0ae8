//! L5: no incident switches its machine off more often than restarts allow. An off that somebody
//! else undid is no cycle of ours. And none begins operations, or is parked, without a pause for long, nor is proven again
//! and again. And no write is sent again and again without a pause.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use node_remedy_world::facts::{ETCD, Power, PowerCause, What};
use node_remedy_world::time::{Time, between};

use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

/// An incident begins no more than so many operations within [`WITHIN`]: a hand-over and a retry may fall together.
const OPERATIONS_MAX: usize = 60;
const WITHIN: Duration = Duration::from_secs(10);
/// A boot is proven by silence, a dump, cut storage and power, and an incident has few passes.
const PROOFS_MAX: usize = 20;

pub(super) struct Cycles {
    max: usize,
    has_stale_bmc: bool,
    is_miswired: bool,
    /// By incident.
    offs: BTreeMap<String, usize>,
    /// When each node's last operations were begun.
    begun: BTreeMap<String, VecDeque<Time>>,
    /// How often each incident was proven.
    proofs: BTreeMap<String, usize>,
    /// How often somebody said that an incident is to try again.
    retries: BTreeMap<String, usize>,
}

impl Cycles {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            max: setting.cycles_max,
            has_stale_bmc: setting.has_stale_bmc,
            is_miswired: !setting.miswired.is_empty(),
            offs: BTreeMap::new(),
            begun: BTreeMap::new(),
            proofs: BTreeMap::new(),
            retries: BTreeMap::new(),
        }
    }

    /// How many operations were begun on a node lately, with the one of now.
    fn begin(&mut self, node: &str, at: Time) -> usize {
        let begun = self.begun.entry(node.to_owned()).or_default();
        begun.push_back(at);
        while begun.front().is_some_and(|first| between(*first, at) > WITHIN) {
            begun.pop_front();
        }
        begun.len()
    }
}

impl Check for Cycles {
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        // Who sets the cluster's data back has its incidents forget what they did.
        if matches!(what, What::Edited { object, .. } if object == ETCD) {
            self.offs.clear();
        }
        if let What::WriteRepeated { .. } = what {
            return Some("sent without a pause".to_owned());
        }
        if let What::ProofRecorded { fence, .. } = what {
            let proofs = self.proofs.entry(fence.clone()).or_default();
            *proofs += 1;
            return (*proofs > PROOFS_MAX).then(|| format!("proven for the {proofs}th time"));
        }
        if let What::IntentRecorded { node, .. } | What::ParkedRecorded { node, .. } = what {
            let begun = self.begin(node, at);
            return (begun > OPERATIONS_MAX)
                .then(|| format!("{begun} operations on {node} were begun within {WITHIN:?}"));
        }
        if let What::OperatorCommand { fence, command, .. } = what
            && command == "retry"
        {
            *self.retries.entry(fence.clone()).or_default() += 1;
        }
        let What::PowerChanged { node, power: Power::Off, cause: PowerCause::Command } = what
        else {
            return None;
        };
        if scene.on_behind_our_back.contains_key(node) {
            return None;
        }
        let incident = scene.incident.get(node).cloned().unwrap_or_default();
        // Whoever says so lets it try all of it once more.
        let retries = self.retries.get(&incident).copied().unwrap_or_default();
        // A BMC that tells old news hides an off that has landed: the one asked for once more lands later.
        let max = self.max.saturating_mul(retries + 1) + usize::from(self.has_stale_bmc);
        // Another node's plug may have switched it off: once, and once more for each retry. Which incident has that plug is not
        // known here, so the retries of all others count.
        let others_retries = self.retries.values().sum::<usize>() - retries;
        let by_others = if self.is_miswired { 1 + others_retries } else { 0 };
        let max = max + by_others;
        let offs = self.offs.entry(incident).or_default();
        *offs += 1;
        (*offs > max).then(|| format!("off for the {offs}th time, allowed {max}"))
    }
}
