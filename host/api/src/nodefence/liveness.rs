//! The signs of life that a node gave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Moment;

/// Signs of life as they stand in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Liveness {
    /// The boot they belong to.
    #[serde(default, rename = "bootID")]
    #[schemars(length(max = 128))]
    pub boot_id: String,
    /// The node Lease's renewal as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_renewed: Option<Moment>,
    /// The newest kubelet report as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Moment>,
}
