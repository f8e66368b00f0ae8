//! The signs of life of a node.

use alloc::string::String;

use crate::Time;

/// Signs of life, as they stand in the cluster. They are compared, never subtracted: another
/// value than before is a sign of life, whatever the node's clock says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Liveness {
    /// The boot they belong to.
    pub boot_id: String,
    /// The node Lease's renewal time as written.
    pub lease_renewed: Option<Time>,
    /// The newest kubelet report on any condition as written.
    pub reported: Option<Time>,
}
