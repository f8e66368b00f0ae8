//! The names of nodes that show a sign of their own.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// The names of those nodes.
#[derive(Debug, Default)]
pub struct UnhealthyNodes(RefCell<BTreeSet<String>>);

impl UnhealthyNodes {
    /// Whether a node was seen to show a sign of its own.
    pub fn contains(&self, node: &str) -> bool {
        self.0.borrow().contains(node)
    }

    /// No node shows one.
    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// Notes whether a node shows one.
    pub fn set(&self, node: &str, has_sign: bool) {
        if has_sign {
            self.0.borrow_mut().insert(node.to_owned());
        } else {
            self.0.borrow_mut().remove(node);
        }
    }
}
