//! What a node is fenced with: the plan that is read from what people wrote.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::nodefence::IdentityField;
use crate::plan::grants::Grant;
use crate::time::Span;

/// The plan of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePlan {
    /// The objects it was compiled from, as `Kind/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    pub sources: Vec<String>,
    /// All methods; stages name them by their place in this list, from 0.
    #[schemars(length(max = limits::PLAN_METHODS_MAX))]
    pub methods: Vec<Method>,
    /// Stages of the isolation step, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::STAGES_MAX))]
    pub isolation: Vec<Stage>,
    /// Stages of the power-management step, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::STAGES_MAX))]
    pub power_management: Vec<Stage>,
    /// Stages of the recovery step, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::STAGES_MAX))]
    pub recovery: Vec<Stage>,
    /// Where the plugins of this plan may connect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::PLAN_GRANTS_MAX))]
    pub grants: Vec<Grant>,
}

/// Methods that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// Its name in the configuration.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Every method, or the first that succeeds.
    #[serde(default)]
    pub run: Run,
    /// Whether the flow waits for it.
    #[serde(default)]
    pub needed_for: NeededFor,
    /// Places in the plan's list of methods, in the order they are tried.
    #[schemars(length(min = 1, max = limits::METHODS_MAX))]
    pub methods: Vec<u32>,
}

/// What waits for a stage.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum NeededFor {
    /// The steps after it.
    #[default]
    NextStep,
    /// Nothing: its failure is recorded and changes nothing.
    Nothing,
}

/// Which methods of a stage run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Run {
    /// All of them.
    #[default]
    All,
    /// In order, until one succeeds.
    OnlyOne,
}

/// One plug with the way to it, or a built-in method.
///
/// A plug has no action: the automaton switches it off, reads it and switches it on. The pairs that
/// configurations write (`eaton-off eaton-on`) are one method here, and so is a `reboot`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.plugin) != has(self.builtin)")
        .message("a method is done by a plugin or is built in")
)]
pub struct Method {
    /// Its name in the configuration.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The plugin that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub plugin: Option<String>,
    /// Or the built-in method that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Builtin>,
    /// Outlet, port, system or instance; empty where the device is the node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub plug: String,
    /// The device: methods of one device are called one at a time, and held back together after a failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub device: String,
    /// Parameters in the plugin's own names, `${…}` replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = limits::PARAMETERS_MAX))]
    pub parameters: BTreeMap<String, String>,
    /// Where the secrets stand, by the credential's name in the plugin's manifest. The name
    /// `default` is the plugin's first credential that is not optional.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub credentials: BTreeMap<String, Credential>,
    /// Its failure fails its stage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub must_success: bool,
    /// This outlet is the machine's only feed, so that off means off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sole_feed: bool,
    /// It is certain that this outlet feeds this machine: it is switched although `verify-wiring` never verified it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust_wiring: bool,
    /// For kind `storage`: the CSI drivers all of whose volumes it cuts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::STORAGE_DRIVERS_MAX), inner(length(min = 1, max = 63)))]
    pub storage_drivers: Vec<String>,
    /// The device cannot hold off: one hard reset is all it can do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset_only: bool,
    /// Another method whose status proves this one's effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<u32>,
    /// What is known once plugin and node are known; filled in when the incident is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<MethodFacts>,
}

/// What the controller does itself.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Builtin {
    /// Cordon.
    MarkUnschedulable,
    /// Uncordon what we cordoned.
    MarkSchedulable,
    /// Our NoSchedule taint.
    Quarantine,
    /// Release what the proof allows.
    CleanResources,
    /// Delete the Node once a proof covers everything and all of it is released.
    DeleteNode,
    /// A NetworkFence of csi-addons: the node's addresses are kept from a driver's storage.
    NetworkFence,
}

/// Where a secret stands. Never the secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.secret) != has(self.configMap)")
        .message("a credential stands in a Secret, or as a literal in a ConfigMap")
)]
pub struct Credential {
    /// A Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretPlace>,
    /// A literal in a ConfigMap, accepted with a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<LiteralPlace>,
}

/// Two keys of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretPlace {
    /// Empty: the controller's own namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key that holds the user name; a credential may have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub identity_key: String,
    /// The key that holds the password or key.
    #[schemars(length(min = 1, max = 253))]
    pub secret_key: String,
}

/// Two `name=value` lines, or two keys, of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiteralPlace {
    /// Empty: the controller's own namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key of `data` whose lines hold it; empty: the keys of `data` themselves.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub entry: String,
    /// The line, or key, that holds the user name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub identity_key: String,
    /// The line, or key, that holds the password.
    #[schemars(length(min = 1, max = 253))]
    pub secret_key: String,
}

/// What plugin and node say of a method; none of it stands in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MethodFacts {
    /// sha256 of the component that runs.
    #[serde(default)]
    #[schemars(length(max = 128))]
    pub digest: String,
    /// What its success proves.
    pub kind: PluginKind,
    /// For kind `power`: how much of the machine's power goes through the plug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed: Option<Feed>,
    /// For kind `fabric`: whether the node's way to the API server is cut too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cuts_api_server: bool,
    /// How long after a lost call its effect may still come.
    #[serde(default)]
    pub late_effect: Span,
    /// How the machine behind the plug is known to be the node.
    pub binding: Binding,
    /// For binding `reported`: every spelling of the node's identity that counts as the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub expected: Vec<IdentityField>,
}

/// How much of a machine's power goes through a plug.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Feed {
    /// All of it.
    Whole,
    /// Part of it: the machine is off when all such plugs are.
    Part,
}

/// How the machine behind a plug is known to be the node.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Binding {
    /// The device names its machine.
    Reported,
    /// Somebody tried the wiring for this very node.
    Verified,
    /// The configuration names the plug.
    Labelled,
    /// An outlet that was never verified and is not trusted: it is not switched and proves nothing.
    Unverified,
}

/// What success of a plugin proves.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum PluginKind {
    /// Power of the machine.
    Power,
    /// The network path.
    Fabric,
    /// Access to storage.
    Storage,
    /// It only sees.
    Watch,
    /// It only decides.
    Remedy,
}
