//! Headroom: so many nodes must be left that can take the target's pods.
//!
//! Nodes are counted, not what their pods ask for: the whole cluster's pods are not kept. A node
//! counts while it is heard and Ready and nothing keeps the target's pods from it.

use crate::bug::{Bug, guard};
use crate::gate::health::Health;
use crate::gate::refusal::{Refusal, Verdict};
use crate::gate::view::NodeHealth;

/// Refuses while too small a share of all nodes could take pods without the target.
pub(super) fn refuse_headroom(
    percent_min: Option<u32>,
    target: &NodeHealth,
    nodes: &[(&NodeHealth, Health)],
    verdict: &mut Verdict,
) {
    let Some(percent_min) = percent_min else { return };
    let (mut left, mut total) = (0_u32, 0_u32);
    let mut judged_at = None;
    for (node, health) in nodes {
        total = total.saturating_add(1);
        if guard(Bug::CordonedTakePods, !node.takes_pods) || node.name == target.name {
            continue;
        }
        match health {
            Health::Well | Health::Returning(_) => left = left.saturating_add(1),
            Health::Unhealthy => {}
            Health::Unheard(due) => judged_at = judged_at.max(Some(*due)),
        }
    }
    let shares = u64::from(left).saturating_mul(100);
    let is_short = shares < u64::from(percent_min).saturating_mul(u64::from(total));
    if guard(Bug::HeadroomIgnored, is_short) {
        let percent = u32::try_from(shares / u64::from(total.max(1))).unwrap_or(u32::MAX);
        verdict.refusals.push(Refusal::Headroom { left, total, percent, percent_min });
        if let Some(judged_at) = judged_at {
            verdict.look_at(judged_at);
        }
    }
}
