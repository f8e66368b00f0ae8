//! The condition types and reasons that our objects carry: the only place where they are spelled.
//! It does not decide when they are set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Moment;

/// The reason of a pod that is called failed because its node was fenced.
pub const NODE_FENCED: &str = "NodeFenced";
/// `RemedyConfiguration`, `FenceConfiguration`: the object was read and is in force.
pub const ACCEPTED: &str = "Accepted";
/// `FenceConfiguration`: every method of every selected node can be called.
pub const FENCE_READY: &str = "FenceReady";
/// `FencePlugin`: the component that the object names is loaded, and methods can call it.
pub const READY: &str = "Ready";
/// `FencePlugin`: somebody whom the object trusts has signed what is loaded.
pub const VERIFIED: &str = "Verified";
/// `NodeFence`: the node is proven off or isolated; the message names the grade.
pub const PROVEN: &str = "Proven";
/// `NodeFence`: pods and attachments of the snapshot are gone.
pub const RELEASED: &str = "Released";
/// `NodeFence`: the node is well and what isolation did is undone.
pub const RECOVERED: &str = "Recovered";
/// `NodeFence`: stopped for a person.
pub const PARKED: &str = "Parked";

/// Reason of [`ACCEPTED`] when true.
pub const REASON_VALID: &str = "Valid";
/// Reason of [`ACCEPTED`] when the object is refused and nothing older is in force.
pub const REASON_INVALID: &str = "Invalid";
/// Reason of [`ACCEPTED`] when the object is refused and its last valid version stays in force.
pub const REASON_LAST_VALID_IN_FORCE: &str = "LastValidInForce";

/// Reason of [`READY`] when true.
pub const REASON_LOADED: &str = "Loaded";
/// Reason of [`READY`] while nothing was tried yet.
pub const REASON_LOADING: &str = "Loading";
/// Reason of [`READY`]: the source cannot be read, or lacks the component.
pub const REASON_SOURCE_MISSING: &str = "SourceMissing";
/// Reason of [`READY`]: the registry cannot be reached, or does not let us.
pub const REASON_SOURCE_UNAVAILABLE: &str = "SourceUnavailable";
/// Reason of [`READY`]: the ConfigMap could be changed under its readers.
pub const REASON_NOT_IMMUTABLE: &str = "NotImmutable";
/// Reason of [`READY`]: the source holds other bytes than the object names.
pub const REASON_DIGEST_MISMATCH: &str = "DigestMismatch";
/// Reason of [`READY`] and [`VERIFIED`]: there is no signature beside the component.
pub const REASON_UNSIGNED: &str = "Unsigned";
/// Reason of [`READY`] and [`VERIFIED`]: none of the keys that the object names made the signature.
pub const REASON_WRONG_KEY: &str = "WrongKey";
/// Reason of [`READY`] and [`VERIFIED`]: a key that the object names signed something else.
pub const REASON_SIGNED_ANOTHER: &str = "SignedAnother";
/// Reason of [`VERIFIED`] when true.
pub const REASON_SIGNED: &str = "Signed";
/// Reason of [`READY`]: the component is not one that can be run.
pub const REASON_REFUSED: &str = "Refused";

/// One condition, in the shape every Kubernetes tool reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it says something about, in CamelCase.
    #[serde(rename = "type")]
    #[schemars(length(max = 316))]
    pub kind: String,
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// One word for machines.
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    #[schemars(length(max = 32_768))]
    pub message: String,
    /// When `status` last changed.
    pub last_transition_time: Moment,
    /// The generation of the object that this speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The value of a condition, ours or a node's.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can tell; never the same as either of the others.
    Unknown,
}

impl ConditionStatus {
    /// The word Kubernetes uses.
    pub const fn word(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}
