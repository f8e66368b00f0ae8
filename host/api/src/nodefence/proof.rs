//! What proves that a node is off or isolated, and how strongly.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::nodefence::liveness::Liveness;
use crate::time::Moment;

/// Evidence that the node is off or isolated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Proof {
    /// How strong it is.
    pub grade: Grade,
    /// When it was complete.
    pub at: Moment,
    /// The reads or the word that it rests on.
    pub by: Evidence,
    /// The last signs of life known; any other sign voids it.
    pub liveness: Liveness,
    /// When a sign of life voided it, or a later read of what it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voided_at: Option<Moment>,
}

/// What a proof rests on: exactly one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "[has(self.reads), has(self.person), has(self.report)].filter(x, x).size() == 1")
        .message("a proof rests on reads, on a person or on a report")
)]
pub struct Evidence {
    /// Operations of the journal, each a read in a fresh instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::PLAN_METHODS_MAX))]
    pub reads: Option<Vec<u32>>,
    /// This person said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub person: Option<String>,
    /// Something outside the journal: an agent's attestation, a Job, a notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub report: Option<String>,
}

/// How strong a proof is, and so what it lets go.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// A later, separate status read says off for every feed.
    PowerOffVerified,
    /// Access to storage is cut, and verified.
    StorageFenced,
    /// The self-fence agent's attested worst case has passed.
    WatchdogDeadline,
    /// A person said so, bound to this NodeFence and this boot.
    OperatorConfirmed,
    /// An admin's Job with `clean-resource` succeeded.
    JobSucceeded,
    /// A crash notice from a trusted network.
    KdumpSeen,
    /// No proof; only drivers that check for themselves.
    Partition,
    /// The node came back with another boot.
    NewBootId,
}
