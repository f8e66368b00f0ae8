//! Symptoms as users write them: what a threshold looks at, and `all`, `any`, `not` of such. A
//! custom resource definition knows no recursion, so its schema spells two levels out.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::time::Span;

/// Exactly one thing to look for: a condition, the age of the Lease, Events, a condition that
/// flaps, a node that never joined; or `all`, `any` or `not` of such.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SymptomConfig {
    /// Any condition of a node, such as Ready or KernelDeadlock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 316))]
    pub node_condition_type: Option<String>,
    /// true, false or Unknown. For Ready, false stands for False and Unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "status_schema")]
    pub node_condition_status: Option<serde_json::Value>,
    /// Reasons of the condition that count, word for word; absent: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "words_schema")]
    pub node_condition_reason: Vec<String>,
    /// How old the node's Lease has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_lease_age: Option<Span>,
    /// Events about the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_event: Option<NodeEventConfig>,
    /// A condition whose status keeps changing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_condition_flaps: Option<FlapsConfig>,
    /// The node's object is older than this, and no kubelet ever spoke for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_joined: Option<Span>,
    /// All of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub all: Vec<Self>,
    /// Any of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub any: Vec<Self>,
    /// Not this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub not: Option<Box<Self>>,
}

/// Events about the node, such as node-problem-detector's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeEventConfig {
    /// Reasons that count, such as KernelOops.
    #[schemars(schema_with = "words_schema")]
    pub reason: Vec<String>,
    /// Normal or Warning; absent: both.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "type")]
    pub kind: Option<EventType>,
    /// Components that count, such as kernel-monitor; absent: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "words_schema")]
    pub source: Vec<String>,
    /// So many.
    #[schemars(range(min = 1, max = limits::SYMPTOM_COUNT_MAX))]
    pub count: u32,
    /// Within this time, 1s to 1h: an API server keeps Events for an hour.
    pub window: Span,
}

/// A condition whose status keeps changing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlapsConfig {
    /// Its type.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub kind: String,
    /// So many changes of its status.
    #[schemars(range(min = 2, max = limits::SYMPTOM_COUNT_MAX))]
    pub count: u32,
    /// Within this time, 1s to 1d.
    pub window: Span,
}

/// The two types of an Event.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum EventType {
    /// Nothing is wrong.
    Normal,
    /// Something may be.
    Warning,
}

impl EventType {
    /// As Events carry it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// One symptom, with `all`, `any` and `not` one level further down.
pub(crate) fn symptom_schema(generator: &mut SchemaGenerator) -> Schema {
    let plain = SymptomConfig::json_schema(generator).to_value();
    compound(&plain)
}

/// The symptoms of `all` or `any` of a threshold.
pub(super) fn symptoms_schema(generator: &mut SchemaGenerator) -> Schema {
    list(&without_words(&symptom_schema(generator).to_value()))
}

/// The whole symptom of a threshold, as its record keeps it.
pub(crate) fn whole_schema(generator: &mut SchemaGenerator) -> Schema {
    compound(&symptom_schema(generator).to_value())
}

fn compound(part: &serde_json::Value) -> Schema {
    let mut symptom = part.clone();
    let part = &without_words(part);
    if let Some(fields) = symptom.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
        for field in ["all", "any"] {
            fields.insert(field.to_owned(), list(part).to_value());
        }
        fields.insert("not".to_owned(), part.clone());
    }
    symptom.try_into().unwrap_or_default()
}

/// What the fields mean is said once, and not again on each level.
fn without_words(schema: &serde_json::Value) -> serde_json::Value {
    let mut bare = schema.clone();
    if let Some(keywords) = bare.as_object_mut() {
        keywords.remove("description");
    }
    let fields = bare.get_mut("properties").and_then(serde_json::Value::as_object_mut);
    for field in fields.into_iter().flat_map(serde_json::Map::values_mut) {
        *field = without_words(field);
    }
    if let Some(items) = bare.get_mut("items") {
        *items = without_words(items);
    }
    bare
}

fn list(part: &serde_json::Value) -> Schema {
    json_schema!({
        "type": "array",
        "items": part,
        "minItems": 1,
        "maxItems": limits::SYMPTOM_PARTS_MAX,
    })
}

/// One-word texts, such as reasons.
pub(super) fn words_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "string", "minLength": 1, "maxLength": 128 },
        "minItems": 1,
        "maxItems": limits::SYMPTOM_WORDS_MAX,
    })
}

/// Any condition status, as a boolean or as the word Kubernetes uses. No type is given because
/// both are legal; the enumeration is what the API server checks.
pub(crate) fn status_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-preserve-unknown-fields": true,
        "enum": [true, false, "True", "False", "Unknown"],
    })
}
