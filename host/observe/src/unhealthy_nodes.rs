//! The names of nodes that show a symptom of their own.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// The names of those nodes.
#[derive(Debug, Default)]
pub struct UnhealthyNodes(RefCell<BTreeSet<String>>);

impl UnhealthyNodes {
    /// Whether a node was seen to show a symptom of its own.
    pub fn contains(&self, node: &str) -> bool {
        self.0.borrow().contains(node)
    }

    /// No node shows one.
    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// Notes whether a node shows one.
    pub fn set(&self, node: &str, has_symptom: bool) {
        if has_symptom {
            self.0.borrow_mut().insert(node.to_owned());
        } else {
            self.0.borrow_mut().remove(node);
        }
    }
}
