//! `RemedyConfiguration`: the proposal's `Configuration` document as a custom resource. The same
//! schema below `spec`, plus what the API server can check. Types only: `crate::policy` reads
//! documents and objects alike, with places and sentences that a schema cannot give.

mod symptom;

pub use self::symptom::*;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::limits;
use crate::policy::Policies;
use crate::remedyconfiguration::symptom::status_schema;
use crate::time::Span;

/// Which nodes, which thresholds, which remedies.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "node-remedy.io",
    version = "v1alpha1",
    kind = "RemedyConfiguration",
    plural = "remedyconfigurations",
    shortname = "rcfg",
    status = "RemedyConfigurationStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "What counts as a misbehaving node, and which remedy follows.",
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode"),
    printcolumn(name = "Selector", type_ = "string", json_path = ".spec.nodeSelector"),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Accepted')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct RemedyConfigurationSpec {
    /// `enforce` acts; `shadow` decides and says so. It opens no incident and switches nothing; an open one goes on.
    #[serde(default)]
    pub mode: Mode,
    /// A label selector such as `type=compute`; absent: every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub node_selector: Option<String>,
    /// What is watched for.
    #[schemars(length(min = 1, max = limits::THRESHOLDS_MAX))]
    pub threshold_configs: Vec<ThresholdConfig>,
    /// Remedies under names of one's own; `fence`, `storage-fence` and `recovery` exist anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::REMEDIES_MAX))]
    pub remedy_configs: Vec<RemedyConfig>,
    /// Numbers that differ from their defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<Policies>,
}

/// Whether anything is done.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Decisions are carried out.
    #[default]
    Enforce,
    /// Decisions are only recorded.
    Shadow,
}

/// One threshold, which is one symptom, and its ladder of remedies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "[has(self.nodeConditionType), has(self.nodeLeaseAge), has(self.nodeEvent), \
          has(self.nodeConditionFlaps), has(self.neverJoined), has(self.all), has(self.any), \
          has(self.not)].filter(x, x).size() == 1")
        .message("a threshold is one symptom: a node condition, nodeLeaseAge, nodeEvent, \
                  nodeConditionFlaps, neverJoined, all, any or not"),
    validation = Rule::new("has(self.nodeConditionType) == has(self.nodeConditionPeriod)")
        .message("nodeConditionType, nodeConditionStatus and nodeConditionPeriod go together"),
    validation = Rule::new(
        "has(self.period) == (has(self.all) || has(self.any) || has(self.not))")
        .message("all, any and not have a period, and nothing else has")
)]
pub struct ThresholdConfig {
    /// Any condition of a node, such as Ready or DiskPressure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 316))]
    pub node_condition_type: Option<String>,
    /// true, false or Unknown. For Ready, false stands for False and Unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "status_schema")]
    pub node_condition_status: Option<serde_json::Value>,
    /// Reasons of the condition that count, word for word; absent: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "symptom::words_schema")]
    pub node_condition_reason: Vec<String>,
    /// How long it must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_condition_period: Option<Span>,
    /// Instead of a condition: how old the node's Lease has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_lease_age: Option<Span>,
    /// Or Events about the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_event: Option<NodeEventConfig>,
    /// Or a condition whose status keeps changing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_condition_flaps: Option<FlapsConfig>,
    /// Or for how long there is a node that no kubelet ever spoke for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_joined: Option<Span>,
    /// Or all of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "symptom::symptoms_schema")]
    pub all: Vec<SymptomConfig>,
    /// Or any of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "symptom::symptoms_schema")]
    pub any: Vec<SymptomConfig>,
    /// Or not this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "symptom::symptom_schema")]
    pub not: Option<Box<SymptomConfig>>,
    /// How long all, any or not must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Span>,
    /// The first remedy.
    #[schemars(length(min = 1, max = 3))]
    pub remedy1: Vec<RemedyStepItem>,
    /// The remedy after that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub remedy2: Vec<RemedyStepItem>,
    /// The remedy after that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub remedy3: Vec<RemedyStepItem>,
    /// The remedy after that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub remedy4: Vec<RemedyStepItem>,
    /// The last remedy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub remedy5: Vec<RemedyStepItem>,
    /// What is done once the node is well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub recovery: Vec<RemedyStepItem>,
}

impl ThresholdConfig {
    /// Its symptom by itself.
    pub fn symptom(&self) -> SymptomConfig {
        SymptomConfig {
            node_condition_type: self.node_condition_type.clone(),
            node_condition_status: self.node_condition_status.clone(),
            node_condition_reason: self.node_condition_reason.clone(),
            node_lease_age: self.node_lease_age,
            node_event: self.node_event.clone(),
            node_condition_flaps: self.node_condition_flaps.clone(),
            never_joined: self.never_joined,
            all: self.all.clone(),
            any: self.any.clone(),
            not: self.not.clone(),
        }
    }
}

/// One of the one-key maps that describe a remedy step of the ladder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct RemedyStepItem {
    /// The remedy's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// How long the threshold must still hold after this remedy before the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Span>,
    /// Success of this remedy is the admin's word that the node's pods may go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_resource: Option<bool>,
    /// The proposal's own spelling of clean-resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_resourece: Option<bool>,
}

/// One remedy: a name and exactly one of the ways to carry it out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "[has(self.fence), has(self.method), has(self.cluster), has(self.podTemplate), \
          has(self.plugin)].filter(x, x).size() == 1")
        .message("a remedy is exactly one of fence, method, cluster, podTemplate, plugin"),
    validation = Rule::new("has(self.podTemplate) || !(has(self.deadline) || has(self.backoffLimit))")
        .message("deadline and backoffLimit go with podTemplate")
)]
pub struct RemedyConfig {
    /// What thresholds call it.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The whole automaton: isolation, power management, recovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<FenceRemedy>,
    /// One method of the node's fence configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub method: Option<String>,
    /// Something in the cluster itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<crate::nodefence::ClusterAction>,
    /// A Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything_object")]
    pub pod_template: Option<serde_json::Value>,
    /// How long the Job may take. Default 30m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Span>,
    /// How often a pod of the Job that failed is replaced. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10))]
    pub backoff_limit: Option<u32>,
    /// A FencePlugin of kind remedy, which decides what is tried, one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub plugin: Option<String>,
}

/// The automaton as a remedy; it has no settings of its own yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FenceRemedy {}

/// What became of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemedyConfigurationStatus {
    /// Accepted, with every problem in its message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
    /// The generation that the conditions speak of.
    #[serde(default)]
    pub observed_generation: i64,
}

/// A pod template with the proposal's shorthands is not a `PodTemplateSpec`, so it is checked here
/// and not by the API server.
fn anything_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
