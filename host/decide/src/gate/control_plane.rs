//! Control-plane nodes: one at a time, and never so many that etcd loses its quorum.
//!
//! What is judged is the nodes, not etcd: a control-plane node that is heard and Ready counts as a
//! member that votes. That a member is ill on a node that is well is not seen here.

use alloc::string::String;
use alloc::vec::Vec;

use super::storm::Health;
use super::{NodeHealth, Refusal, Verdict};

/// Refuses a control-plane node unless all the others are well and are a majority without it.
pub(super) fn refuse_control_plane(
    target: &NodeHealth,
    nodes: &[(&NodeHealth, Health)],
    verdict: &mut Verdict,
) {
    if !target.control_plane {
        return;
    }
    let (mut well, mut total) = (0_u32, 1_u32);
    let mut unwell: Vec<String> = Vec::new();
    let others = nodes.iter().filter(|(node, _)| node.control_plane && node.name != target.name);
    for (node, health) in others {
        total = total.saturating_add(1);
        match health {
            Health::Well => well = well.saturating_add(1),
            Health::Unhealthy => unwell.push(node.name.clone()),
            Health::Unheard(due) => {
                unwell.push(node.name.clone());
                verdict.look_at(*due);
            }
        }
    }
    let quorum = (total / 2).saturating_add(1);
    if !unwell.is_empty() || well < quorum {
        verdict.refusals.push(Refusal::ControlPlane { well, total, quorum, unwell });
    }
}
