//! Nodes that show a symptom of their own: for the gate they are not well, however Ready they are. A
//! symptom that many nodes show at once is a storm, too.

use node_remedy_config::symptoms::is_of_silence;
use node_remedy_decide::{Crossing, crossed};
use node_remedy_runtime::clock::Clock;

use crate::caches::{Caches, lease_key};
use crate::config::Config;
use crate::view;

/// Looks these nodes over, before any of them is acted on. Silence and readiness are left to the
/// gate, which knows how to tell one node's from everybody's.
pub fn look_over<'a>(
    nodes: impl Iterator<Item = &'a String>,
    config: &Config,
    caches: &Caches,
    clock: &Clock,
) {
    if !config.has_own_symptoms() {
        caches.unhealthy.clear();
        return;
    }
    for name in nodes {
        caches.unhealthy.set(name, has_symptom(name, config, caches, clock));
    }
}

fn has_symptom(name: &str, config: &Config, caches: &Caches, clock: &Clock) -> bool {
    let Some(seen) = caches.nodes.find(name) else { return false };
    let Ok(Some(policy)) = config.policy_for(&seen) else { return false };
    let lease = caches.leases.find(&lease_key(name));
    let events = caches.events.of(name);
    let node = view::node_view(&seen, lease.as_ref(), events.as_deref(), caches, clock);
    let own = policy.thresholds.iter().filter(|one| !is_of_silence(&one.wanted.symptom));
    own.map(|one| crossed(&node, &one.threshold, clock.now())).any(|found| match found {
        Crossing::Crossed { .. } | Crossing::Ripening { .. } => true,
        Crossing::Clear { .. } | Crossing::Unclear => false,
    })
}
