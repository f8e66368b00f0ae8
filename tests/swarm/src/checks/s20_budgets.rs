//! S20: no pod that serves is taken against its disruption budget unless a proof was recorded of its node;
//! and behind a proof pods go no faster than the policy says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_simulate::CLIENT;
use node_remedy_world::facts::What;
use node_remedy_world::time::{Time, between};

use crate::checks::check::Check;
use crate::guards::Guards;
use crate::scene::{Scene, Setting};

/// What the names of the pods begin with that a run's budget is about.
const OF_BUDGET: &str = "default/db-";
/// Pods of a node that is no longer Ready are told not to be, too, so much later at most.
const TOLD_AFTER: Duration = Duration::from_secs(5);
/// When a proof is written down is when its release begins, or so much later.
const BEGUN_AFTER: Duration = Duration::from_secs(1);
/// No longer than this takes the writing, whatever is in its way.
const WRITTEN_AFTER: Duration = Duration::from_secs(30);

pub(super) struct Budgets {
    guards: Guards,
    /// Pods of the budget that run, by UID, and their nodes; not those that are asked to end.
    runs: BTreeMap<String, String>,
    /// Since when nodes are not Ready.
    not_ready_since: BTreeMap<String, Time>,
    /// Nodes of which a proof was recorded in the incident that goes on: since when it may have been had, and
    /// the pods that were taken since.
    proven: BTreeMap<String, (Time, BTreeSet<String>)>,
}

impl Budgets {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            guards: setting.guards.clone(),
            runs: BTreeMap::new(),
            not_ready_since: BTreeMap::new(),
            proven: BTreeMap::new(),
        }
    }

    fn serves(&self, node: &str, at: Time) -> bool {
        let since = self.not_ready_since.get(node);
        since.is_none_or(|since| between(*since, at) <= TOLD_AFTER)
    }

    /// Why the budget forbids to take this pod.
    fn over_budget(&self, uid: &str, node: &str, at: Time) -> Option<String> {
        let least = self.guards.available_min?;
        let is_ready = self.runs.contains_key(uid) && !self.not_ready_since.contains_key(node);
        if self.proven.contains_key(node) || !is_ready {
            return None;
        }
        let others = self.runs.iter().filter(|(other, on)| *other != uid && self.serves(on, at));
        let left = others.count();
        (left < least)
            .then(|| format!("{left} are left that serve, and its budget asks for {least}"))
    }

    /// Why the policy forbids to take this pod already.
    fn too_fast(&mut self, uid: &str, node: &str, at: Time) -> Option<String> {
        let pace = *self.guards.pods_per_minute.get(node)?;
        let (proven_at, taken) = self.proven.get_mut(node)?;
        taken.insert(uid.to_owned());
        // By a clock that runs a tenth too fast.
        let since = (between(*proven_at, at) + BEGUN_AFTER) * 10 / 9;
        let due = 1 + since.as_millis() * u128::from(pace) / 60_000;
        let taken = taken.len();
        (taken as u128 > due).then(|| {
            let s = since.as_secs();
            format!("{taken} pods in {s} s, and the policy allows {pace} a minute")
        })
    }
}

impl Check for Budgets {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these are about pods that serve")]
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        match what {
            What::PodPhase { pod, uid, node, phase, .. } if pod.starts_with(OF_BUDGET) => {
                if phase == "Running" {
                    self.runs.insert(uid.clone(), node.clone());
                } else {
                    self.runs.remove(uid);
                }
                None
            }
            What::NodeReady { node, status, .. } => {
                if status == "True" {
                    self.not_ready_since.remove(node);
                } else {
                    self.not_ready_since.entry(node.clone()).or_insert(at);
                }
                None
            }
            What::ProofRecorded { node, .. } => {
                let read_at = scene.read_off_at.get(node);
                let had_at = read_at.filter(|read_at| between(**read_at, at) < WRITTEN_AFTER);
                self.proven.insert(node.clone(), (*had_at.unwrap_or(&at), BTreeSet::new()));
                None
            }
            What::FenceState { node, state, .. } if state == "Final" => {
                self.proven.remove(node);
                None
            }
            What::PodTerminating { uid, node, by, .. } | What::PodGone { uid, node, by, .. } => {
                let broken = (by == CLIENT).then(|| {
                    self.over_budget(uid, node, at).or_else(|| self.too_fast(uid, node, at))
                });
                self.runs.remove(uid);
                broken.flatten()
            }
            _ => None,
        }
    }
}
