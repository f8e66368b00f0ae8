//! Which objects speak for a node, whether they can be followed or not.

use node_remedy_api::plan;
use node_remedy_api::plan::{FenceSource, Nodes};

use crate::config::Config;
use crate::pruned::PrunedNode;

impl Config {
    /// The objects that say how `node` is fenced, as `Kind/name`, whether a plan can be made of them or not.
    pub fn sources_for(&self, node: &PrunedNode) -> Vec<String> {
        let sources = || self.fences.values().map(|source| &**source);
        let is_for = |source: &&FenceSource| match &source.nodes {
            Nodes::Named(name) => *name == node.name,
            Nodes::Selected(selector) => selector.matches(&node.labels),
        };
        let found: Vec<&FenceSource> = match plan::for_node(&node.name, &node.labels, sources()) {
            Ok(source) => source.into_iter().collect(),
            Err(_) => sources().filter(is_for).collect(),
        };
        found.into_iter().map(|source| source.origin.clone()).collect()
    }
}
