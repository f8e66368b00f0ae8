//! When a milder remedy makes way for a fence.
//!
//! A node has one incident at a time. Where another of its thresholds is crossed whose first remedy fences it, an incident
//! with a milder one would keep it from its turn, for as long as a person takes. So it ends, and the fence gets an incident
//! of its own; but only where nothing speaks against opening that. One that waits for a person, and whose own remedies
//! hold no fence, also makes way for a threshold with a fence among its later remedies.

use node_remedy_api::nodefence::RemedyStep;

use crate::config::{NodePolicy, NodeThreshold};

/// Whether a threshold's first remedy fences the node.
pub fn fences(threshold: &NodeThreshold) -> bool {
    threshold.ladder.first().is_some_and(RemedyStep::is_fence)
}

/// Whether a fence is among a threshold's remedies.
pub fn may_fence(threshold: &NodeThreshold) -> bool {
    threshold.ladder.iter().any(RemedyStep::is_fence)
}

/// The thresholds by place, those first whose first remedy fences, and then those with a later one that does: of two
/// that are crossed at once the milder one helps nobody.
pub fn fences_first(policy: &NodePolicy) -> impl Iterator<Item = (usize, &NodeThreshold)> {
    let mut thresholds: Vec<(usize, &NodeThreshold)> =
        policy.thresholds.iter().enumerate().collect();
    thresholds.sort_by_key(|(_, one)| (!fences(one), !may_fence(one)));
    thresholds.into_iter()
}
