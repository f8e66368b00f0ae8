//! What the guards of a night's policies go by, as the judges know it beforehand.

use std::collections::BTreeSet;

/// Of each guard what it is told; a night without it says nothing of it.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Nodes that carry the control plane.
    pub control_plane: BTreeSet<String>,
}
