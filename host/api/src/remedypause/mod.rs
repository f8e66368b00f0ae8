//! `RemedyPause`: somebody wants no machine to be cut, everywhere or on some nodes, until they say
//! otherwise. What is on its way back is not held up by it.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::time::Moment;

/// A pause; it ends with the object, or at its `until`.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "node-remedy.io",
    version = "v1alpha1",
    kind = "RemedyPause",
    plural = "remedypauses",
    derive = "PartialEq",
    doc = "Nothing is isolated or powered off while it exists; it never holds up what switches on.",
    printcolumn(name = "Nodes", type_ = "string", json_path = ".spec.nodeSelector"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".spec.reason"),
    printcolumn(name = "By", type_ = "string", json_path = ".spec.by"),
    printcolumn(name = "Until", type_ = "string", json_path = ".spec.until")
)]
#[serde(rename_all = "camelCase")]
pub struct RemedyPauseSpec {
    /// A label selector such as type=compute; absent: every node. One that cannot be read pauses
    /// every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub node_selector: Option<String>,
    /// Why, for those who wonder later.
    #[schemars(length(min = 1, max = 256))]
    pub reason: String,
    /// The user who paused; with the policies of `node-remedy admission` always the truth.
    #[schemars(length(min = 1, max = 256))]
    pub by: String,
    /// When it ends by itself; absent: when it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
}
