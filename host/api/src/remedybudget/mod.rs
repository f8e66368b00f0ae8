//! `RemedyBudget`: the one cluster object whose compare-and-swap opens an incident, so that two leaders
//! cannot open two. There is exactly one, named [`NAME`].

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::time::Moment;

/// The name of the only `RemedyBudget` there is.
pub const NAME: &str = "default";

/// Who may act, and which incidents hold a slot.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "node-remedy.io",
    version = "v1alpha1",
    kind = "RemedyBudget",
    plural = "remedybudgets",
    status = "RemedyBudgetStatus",
    derive = "PartialEq",
    doc = "The slots of running remedies; the controller's own, singleton, named default.",
    validation = Rule::new("self.metadata.name == 'default'")
        .message("there is one RemedyBudget, and its name is default"),
    printcolumn(name = "Epoch", type_ = "integer", json_path = ".spec.epoch"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".spec.inFlight[*].nodeFence")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.epoch >= oldSelf.epoch")
        .message("an epoch only grows: a leader of an older epoch wrote this")
)]
pub struct RemedyBudgetSpec {
    /// The largest epoch of any leader so far.
    pub epoch: u64,
    /// The incidents that hold a slot.
    #[serde(default)]
    #[schemars(length(max = limits::IN_FLIGHT_MAX))]
    pub in_flight: Vec<InFlight>,
}

/// One slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InFlight {
    /// The name of the incident's NodeFence.
    #[schemars(length(min = 1, max = 253))]
    pub node_fence: String,
    /// The UID of its node.
    #[serde(rename = "nodeUID")]
    #[schemars(length(min = 1, max = 128))]
    pub node_uid: String,
}

/// What the leader does not act on now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemedyBudgetStatus {
    /// At most one line per node.
    #[serde(default)]
    #[schemars(length(max = limits::REFUSALS_MAX))]
    pub refusals: Vec<Refused>,
    /// Said by who stands by, where the leader refuses because no device answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices_answer: Option<DevicesAnswer>,
}

/// A process that stands by and hears devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevicesAnswer {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub process: String,
    /// When it said so.
    pub at: Moment,
}

/// Why a node is not acted on though its threshold is crossed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// The node's name.
    #[schemars(length(min = 1, max = 253))]
    pub node: String,
    /// The guard, one word.
    #[schemars(length(min = 1, max = 64))]
    pub guard: String,
    /// The reason with its numbers.
    #[schemars(length(max = limits::REFUSAL_CHARACTERS_MAX))]
    pub sentence: String,
    /// Since when this guard refuses.
    pub since: Moment,
    /// When it last did.
    pub last: Moment,
}
