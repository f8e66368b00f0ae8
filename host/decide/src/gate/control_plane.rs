//! Control-plane nodes: one at a time, and never so many that etcd loses its quorum.
//!
//! A control-plane node that is heard and Ready counts as a member of etcd that votes, unless the
//! member's own pod says that it is not Ready, or is missing where another control-plane node has
//! one: where none has, etcd runs elsewhere. A node with such a pod is one of the control plane.
//!
//! Any kubelet can make a pod of its own that looks like a member's, but none can label its Node as one of the control plane.
//! So a node with such a pod and without the label may forbid, and never makes up a majority.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::bug::{Bug, guard};
use crate::gate::health::Health;
use crate::gate::refusal::{Refusal, Verdict};
use crate::gate::view::NodeHealth;

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
    let mut unhealthy: Vec<String> = Vec::new();
    let mut all = Members::with(true);
    let mut labelled = Members::with(target.control_plane);
    let others = nodes.iter().filter(|(node, _)| votes(node) && node.name != target.name);
    for (node, health) in others {
        let before = unhealthy.len();
        match health {
            Health::Well if node.etcd == Some(false) => {
                unhealthy.push(format!("etcd on {}", node.name));
            }
            Health::Well if node.etcd.is_none() && has_pods => {
                unhealthy.push(format!("etcd on {} (it has no pod)", node.name));
            }
            Health::Well => {}
            Health::Unhealthy => unhealthy.push(node.name.clone()),
            // It may fall silent again, and its member of etcd may not have caught up.
            Health::Unheard(due) | Health::Returning(due) => {
                unhealthy.push(node.name.clone());
                verdict.look_at(*due);
            }
        }
        let is_well = unhealthy.len() == before;
        all.add(is_well);
        if node.control_plane {
            labelled.add(is_well);
        }
    }
    let are_too_few = guard(Bug::UnlabelledMemberVotes, labelled.are_too_few());
    let Members { well, total } = if are_too_few { labelled } else { all };
    let quorum = Members { well, total }.quorum();
    if guard(Bug::QuorumIgnored, !unhealthy.is_empty() || well < quorum) {
        verdict.refusals.push(Refusal::ControlPlane { well, total, quorum, unhealthy });
    }
}

/// Members of etcd, the target among them, and those of the others that are well.
#[derive(Clone, Copy)]
struct Members {
    well: u32,
    total: u32,
}

impl Members {
    fn with(target: bool) -> Self {
        Self { well: 0, total: u32::from(target) }
    }

    fn add(&mut self, is_well: bool) {
        self.total = self.total.saturating_add(1);
        self.well = self.well.saturating_add(u32::from(is_well));
    }

    fn quorum(self) -> u32 {
        (self.total / 2).saturating_add(1)
    }

    /// Where there is any, whether those that are well are no majority.
    fn are_too_few(self) -> bool {
        self.total > 0 && self.well < self.quorum()
    }
}
