//! Control-plane nodes: one at a time, and never so many that etcd loses its quorum.
//!
//! A control-plane node that is heard and Ready counts as a member of etcd that votes, unless the
//! member's own pod says that it is not Ready, or is missing where another control-plane node has
//! one: where none has, etcd runs elsewhere. A node with such a pod is one of the control plane.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::storm::Health;
use super::{NodeHealth, Refusal, Verdict};
use crate::bug::{Bug, guard};

/// Refuses a control-plane node unless all the others are well and are a majority without it.
pub(super) fn refuse_control_plane(
    target: &NodeHealth,
    nodes: &[(&NodeHealth, Health)],
    verdict: &mut Verdict,
) {
    let votes = |node: &NodeHealth| node.control_plane || node.etcd.is_some();
    if !votes(target) {
        return;
    }
    let has_pods = nodes.iter().any(|(node, _)| node.control_plane && node.etcd.is_some());
    let (mut well, mut total) = (0_u32, 1_u32);
    let mut unwell: Vec<String> = Vec::new();
    let others = nodes.iter().filter(|(node, _)| votes(node) && node.name != target.name);
    for (node, health) in others {
        total = total.saturating_add(1);
        match health {
            Health::Well if node.etcd == Some(false) => {
                unwell.push(format!("etcd on {}", node.name));
            }
            Health::Well if node.etcd.is_none() && has_pods => {
                unwell.push(format!("etcd on {} (it has no pod)", node.name));
            }
            Health::Well => well = well.saturating_add(1),
            Health::Unhealthy => unwell.push(node.name.clone()),
            // It may fall silent again, and its member of etcd may not have caught up.
            Health::Unheard(due) | Health::Returning(due) => {
                unwell.push(node.name.clone());
                verdict.look_at(*due);
            }
        }
    }
    let quorum = (total / 2).saturating_add(1);
    if guard(Bug::QuorumIgnored, !unwell.is_empty() || well < quorum) {
        verdict.refusals.push(Refusal::ControlPlane { well, total, quorum, unwell });
    }
}
