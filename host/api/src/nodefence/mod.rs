//! `NodeFence`: one incident of one node, from the threshold that was crossed to being well.
//!
//! The spec is written once, when the incident is opened; the status is the record that every decision
//! is taken from and that every intent is written to before it is carried out. Types only: what
//! they mean is decided in the core, and mapping them is the controller's work.

mod journal;
mod ladder;
mod liveness;
mod proof;
mod record;

pub use self::journal::*;
pub use self::ladder::*;
pub use self::liveness::*;
pub use self::proof::*;
pub use self::record::*;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::plan::NodePlan;
use crate::policy::{GateLimits, IncidentPolicy};
use crate::remedyconfiguration::SymptomConfig;
use crate::time::{Moment, Span};

/// What is fenced, why, and by which plan. Fixed when the incident is opened.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "node-remedy.io",
    version = "v1alpha1",
    kind = "NodeFence",
    plural = "nodefences",
    shortname = "nf",
    status = "NodeFenceStatus",
    derive = "PartialEq",
    doc = "One incident of one node: what was seen, intended, done, proven and released.",
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.node.name"),
    printcolumn(name = "Step", type_ = "string", json_path = ".status.step"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.status"),
    printcolumn(name = "Proof", type_ = "string", json_path = ".status.proof.grade"),
    printcolumn(name = "Why", type_ = "string", json_path = ".status.parked.reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", priority = 1),
    printcolumn(name = "Retries", type_ = "integer", json_path = ".status.retries", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self == oldSelf")
        .message("the spec of a NodeFence is fixed when its incident is opened")
)]
pub struct NodeFenceSpec {
    /// The node, as it was when the incident was opened.
    pub node: FencedNode,
    /// What crossed the threshold.
    pub trigger: Trigger,
    /// The first remedy.
    #[schemars(length(min = 1, max = 253))]
    pub remedy: String,
    /// The methods in force for this incident; later edits of the configuration do not reach it.
    pub plan: NodePlan,
    /// The numbers in force for this incident.
    pub policy: IncidentPolicy,
    /// The limits of the gate in force for this incident.
    pub gate: GateLimits,
    /// The remedies that are tried one after the other; absent: the fence alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::REMEDY_STEPS_MAX))]
    pub ladder: Vec<RemedyStep>,
}

/// Which machine: by object, by provider and by hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FencedNode {
    /// The name of the Node object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its UID: a node re-created under the same name is another node.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// `spec.providerID`; empty where there is none.
    #[serde(default, rename = "providerID")]
    #[schemars(length(max = 1024))]
    pub provider_id: String,
    /// `status.nodeInfo.systemUUID`, compared with what the device calls the machine.
    #[serde(default, rename = "systemUUID")]
    #[schemars(length(max = 128))]
    pub system_uuid: String,
    /// `status.nodeInfo.bootID`: a proof covers this boot and no later one.
    #[serde(default, rename = "bootID")]
    #[schemars(length(max = 128))]
    pub boot_id: String,
}

/// The threshold that was crossed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// The node condition, or `Lease` for the age of the node's Lease; of any other symptom its words.
    #[schemars(length(min = 1, max = 316))]
    pub condition_type: String,
    /// The status it had: `False`, `Unknown`, `True`, `Expired` for a Lease, `There` for other symptoms.
    #[schemars(length(min = 1, max = 32))]
    pub status: String,
    /// Since when it has held.
    pub since: Moment,
    /// How long it had to hold.
    pub period: Span,
    /// The whole symptom, by which it is looked at again; absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::remedyconfiguration::whole_schema")]
    pub symptom: Option<SymptomConfig>,
    /// A condition that was last reported longer ago is not known; absent: 15m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition_stale_after: Option<Span>,
}
