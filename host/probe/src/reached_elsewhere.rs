//! What a standby says of the device that an incident waits for.

use jiff::Timestamp;
use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_context::context::Context;
use node_remedy_observe::nodefences::{REACHED_BY, REACHED_MAX};
use node_remedy_runtime::clock::time_of;
use node_remedy_runtime::cluster::Cluster;

/// Whether another process said a short while ago that it reaches the device of this NodeFence.
pub fn is_reached_elsewhere<C: Cluster>(context: &Context<C>, nodefence: &NodeFence) -> bool {
    let word = nodefence.annotations().get(REACHED_BY);
    let Some((at, process)) = word.and_then(|word| word.split_once(' ')) else { return false };
    let Ok(at) = at.parse::<Timestamp>() else { return false };
    let age = context.clock.now().since(context.clock.when(time_of(&at)));
    process != context.process && age <= REACHED_MAX
}
