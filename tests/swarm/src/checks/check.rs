//! What a check is, and what it finds.

use node_remedy_world::facts::What;
use node_remedy_world::time::Time;

use crate::scene::Scene;

/// One invariant.
pub trait Check {
    /// Why a fact breaks it; the scene is as it was right before.
    fn see(&mut self, _: &Scene, _: Time, _: &What) -> Option<String> {
        None
    }

    /// Why the end of a run breaks it.
    fn end(&mut self, _: &Scene) -> Vec<String> {
        Vec::new()
    }
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Of which invariant.
    pub invariant: &'static str,
    /// When a fact broke it; `None` if the end of the run did.
    pub at: Option<Time>,
    /// When, by what, and why.
    pub sentence: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.invariant, self.sentence)
    }
}
