//! S9: we put and lift our own marks only; quarantine stands before anything is released, and until
//! the machine has begun another boot and its kubelet reports. No node that is well keeps our
//! out-of-service taint. Of a BMC that tells old news nobody can know that it took an off: there only what
//! was released counts.

use std::collections::BTreeMap;
use std::time::Duration;

use node_remedy_simulate::CLIENT;
use node_remedy_world::facts::{Power, PowerCause, What};
use node_remedy_world::time::{Time, between};

use crate::checks::check::Check;
use crate::scene::{OURS, OUT_OF_SERVICE, Scene, Setting, released_by_us};

/// What is decided on is written within this time.
const UNDER_WAY: Duration = Duration::from_secs(5);

/// A taint of ours on a node that has been well for longer than this was left behind.
const CLEANED_WITHIN: Duration = Duration::from_mins(1);

pub(super) struct Marks {
    has_stale_bmc: bool,
    /// When the last fact was.
    now: Option<Time>,
    /// When each Node was last deleted.
    deleted_at: BTreeMap<String, Time>,
}

impl Marks {
    pub(super) fn new(setting: &Setting) -> Self {
        Self { has_stale_bmc: setting.has_stale_bmc, now: None, deleted_at: BTreeMap::new() }
    }
}

impl Check for Marks {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these are about marks")]
    fn see(&mut self, scene: &Scene, at: Time, what: &What) -> Option<String> {
        self.now = Some(at);
        if let What::NodeDeleted { node, .. } = what {
            self.deleted_at.insert(node.clone(), at);
        }
        if let Some(node) = released_by_us(what).filter(|node| !scene.is_quarantined(node)) {
            // A deleted Node takes its quarantine with it. A release that was decided before may still be on its way.
            let deleted_at = self.deleted_at.get(node).filter(|_| !scene.nodes.contains(node));
            if deleted_at.is_none_or(|deleted_at| between(*deleted_at, at) > UNDER_WAY) {
                return Some(format!("{node} is not in quarantine"));
            }
        }
        match what {
            What::TaintRemoved { node, key, effect, by } if by == CLIENT => {
                let put_by = scene.tainted_by(node, key, effect);
                if put_by != Some(CLIENT) {
                    return Some(format!("it was put there by {}", put_by.unwrap_or("nobody")));
                }
                // Who switches it off while the write is under way comes too late to be seen.
                let off_at = scene.off_at.get(node).filter(|_| scene.off.contains_key(node));
                let is_seen = off_at.is_some_and(|off_at| between(*off_at, at) > UNDER_WAY);
                // Where nothing was done, it goes with the incident.
                let is_ours =
                    !self.has_stale_bmc && scene.off.get(node) == Some(&PowerCause::Command);
                let is_touched = is_ours || scene.released.contains(node);
                let is_early = key.starts_with(OURS) && is_seen && is_touched;
                is_early.then(|| format!("{node} is off"))
            }
            What::TaintAdded { key, by, .. } if by == CLIENT => {
                let is_ours = key.starts_with(OURS) || key == OUT_OF_SERVICE;
                (!is_ours).then(|| "this taint is not ours to put".to_owned())
            }
            What::Uncordoned { node, by } if by == CLIENT => {
                let said_by = scene.cordoned.get(node).map_or("nobody", String::as_str);
                (said_by != CLIENT).then(|| format!("it was cordoned by {said_by}"))
            }
            What::PowerChanged { node, power: Power::On, cause: PowerCause::Command } => {
                let kept = scene.is_out_of_service_by_us(node);
                kept.then(|| "it boots into our out-of-service taint".to_owned())
            }
            _ => None,
        }
    }

    fn end(&mut self, scene: &Scene) -> Vec<String> {
        let Some(now) = self.now else { return Vec::new() };
        let is_well = |(_, since): &(&String, &Time)| between(**since, now) > CLEANED_WITHIN;
        let well = scene.well_since.iter().filter(is_well).map(|(node, _)| node);
        let ours = well.filter(|node| scene.is_out_of_service_by_us(node));
        ours.map(|node| format!("{node} is well and still out of service by us")).collect()
    }
}
