//! Questions about a NodeFence that its record and its annotations answer.

use kube::ResourceExt as _;
use node_remedy_api::annotations::APPROVE;
use node_remedy_api::nodefence::{FinalReason, NodeFence, State};
use node_remedy_decide::{Span, Time};

use crate::caches::Caches;
use crate::pruned::PrunedNode;

/// Whether a person approved this very incident.
pub fn is_approved(nodefence: &NodeFence) -> bool {
    let uid = nodefence.uid();
    uid.is_some() && nodefence.annotations().get(APPROVE) == uid.as_ref()
}

/// Whether an incident goes on.
pub fn is_open(nodefence: &NodeFence) -> bool {
    nodefence.status.as_ref().is_none_or(|status| status.status != State::Final)
}

/// Whether an incident holds a slot of the budget, as its record says.
pub fn holds_slot(nodefence: &NodeFence) -> bool {
    nodefence.status.as_ref().is_some_and(|status| status.slot_held)
}

/// When the latest incident of `node` became Final. One that made way for another keeps nobody waiting.
pub fn last_ended<'a>(all: impl Iterator<Item = &'a NodeFence>, node: &str) -> Option<Time> {
    let ended = all.filter(|one| one.spec.node.name == node && !is_open(one));
    let ended = ended.filter(|one| !was_superseded(one));
    ended.filter_map(|one| Some(Time(one.status.as_ref()?.entered_at.ms))).max()
}

/// Whether an incident ended to make way for a fence.
pub fn was_superseded(nodefence: &NodeFence) -> bool {
    let ended = nodefence.status.as_ref().and_then(|status| status.final_reason);
    ended == Some(FinalReason::Superseded)
}

/// When the node's last incident ended to make way for a fence; `None` if it ended otherwise.
pub fn last_superseded(caches: &Caches, node: &PrunedNode) -> Option<Time> {
    let nodefences = caches.nodefences.all();
    let of_node = nodefences.values().map(|kept| &kept.0);
    let over = of_node.filter(|one| one.spec.node.uid == node.uid && !is_open(one));
    let ended = over.filter_map(|one| one.status.as_ref());
    let last = ended.max_by_key(|status| status.entered_at.ms)?;
    (last.final_reason == Some(FinalReason::Superseded)).then_some(Time(last.entered_at.ms))
}

/// Said on a NodeFence by who stands by: when its device answered there, and who says so.
pub const REACHED_BY: &str = "node-remedy.io/reached-by";

/// A word of it counts for so long.
pub const REACHED_MAX: Span = Span::seconds(60);
