//! `FenceConfiguration`: how a whole set of nodes is fenced. Types only; `crate::plan` compiles
//! them, one node at a time, into a plan.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::limits;
use crate::plan::{Builtin, Grant, Run};

/// Templates, methods, stages and grants for the nodes that a selector selects.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "node-remedy.io",
    version = "v1alpha1",
    kind = "FenceConfiguration",
    plural = "fenceconfigurations",
    shortname = "fcfg",
    status = "FenceConfigurationStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "How a set of nodes is fenced: devices, methods, stages, and what plugins may reach.",
    printcolumn(name = "Selector", type_ = "string", json_path = ".spec.nodeSelector"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='FenceReady')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "has(self.isolation) || has(self.powerManagement)")
        .message("a node is fenced by isolation, by powerManagement or by both")
)]
pub struct FenceConfigurationSpec {
    /// A label selector such as `node-remedy.io/fence=ipmi`. Required: a method that fits every
    /// node is rare, and a wrong one dangerous.
    #[schemars(length(min = 1, max = 4096))]
    pub node_selector: String,
    /// A ConfigMap with a table of the nodes, for `${inventory['column']}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<Inventory>,
    /// What of a node may say where its device is, such as `${node.annotations['example.com/bmc']}`: a
    /// kubelet can write its own node's annotations, labels and addresses, so none is taken for an address
    /// unless it is named here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::DEFINITIONS_MAX), inner(length(min = 1, max = 1024)))]
    pub trusted_node_fields: Vec<String>,
    /// Parameters that several methods share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::DEFINITIONS_MAX))]
    pub templates: Vec<TemplateSpec>,
    /// The methods that stages name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::DEFINITIONS_MAX))]
    pub methods: Vec<MethodSpec>,
    /// Cut the node from what it shares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::STAGES_MAX))]
    pub isolation: Vec<StageSpec>,
    /// Power the machine off and on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::STAGES_MAX))]
    pub power_management: Vec<StageSpec>,
    /// Undo isolation of a node that is well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::STAGES_MAX))]
    pub recovery: Vec<StageSpec>,
    /// Where the plugins may connect; without a grant a method is not ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::STAGES_MAX))]
    pub grants: Vec<Grant>,
}

/// Where a table of nodes stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// A ConfigMap in the controller's namespace.
    #[schemars(length(min = 1, max = 253))]
    pub config_map: String,
    /// The key that holds CSV: a header line, the first column the node's name.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// Shared defaults for a kind of device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// What methods call it.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The plugin that speaks to the device, such as `ipmi`.
    #[schemars(length(min = 1, max = 63))]
    pub plugin: String,
    /// Parameters in the plugin's names; `${node.name}`, `${node.providerID}`, `${node.systemUUID}`,
    /// `${node.address.InternalIP}`, `${node.annotations['…']}`, `${node.labels['…']}` and
    /// `${inventory['…']}` are taken from the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = limits::PARAMETERS_MAX))]
    pub parameters: BTreeMap<String, String>,
    /// Where the plugin's secrets stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub credentials: Vec<CredentialSpec>,
}

/// One action on one plug, or a built-in method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "[has(self.template), has(self.plugin), has(self.builtin)].filter(x, x).size() == 1")
        .message("a method has exactly one of template, plugin and builtin")
)]
pub struct MethodSpec {
    /// What stages call it.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The template that it is an instance of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub template: Option<String>,
    /// Or the plugin itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub plugin: Option<String>,
    /// Or the built-in method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Builtin>,
    /// off, on, reboot or reset; reboot is split into off and on. A bare `off` or `on`, which
    /// kubectl hands on as false or true, means the same. None: it is only read, as a witness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "action_schema")]
    pub action: Option<MethodAction>,
    /// Outlet, port, system or instance; `${…}` as in parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub plug: Option<String>,
    /// Parameters over those of the template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = limits::PARAMETERS_MAX))]
    pub parameters: BTreeMap<String, String>,
    /// Credentials over those of the template.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub credentials: Vec<CredentialSpec>,
    /// This outlet is the machine's only feed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sole_feed: bool,
    /// You are certain that this outlet feeds this machine: it is switched although `verify-wiring` never verified it. Of a
    /// method with `storageDrivers`: that it cuts this machine's storage; without it what a plugin cuts releases nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust_wiring: bool,
    /// Of a method that cuts storage: the CSI drivers all of whose volumes it cuts from the node. Where several methods
    /// name one driver, all of them have to be cut; of a stage that runs only one, one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::STORAGE_DRIVERS_MAX), inner(length(min = 1, max = 63)))]
    pub storage_drivers: Vec<String>,
    /// A method of another plugin, without an action, that must read the machine as off, too, before
    /// this one's off counts as proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub witness: Option<String>,
}

/// What a configured method asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", from = "Written")]
pub enum MethodAction {
    /// Power off, or cut.
    Off,
    /// Power on, or restore.
    On,
    /// Off, proof, release, on.
    Reboot,
    /// One hard reset, for devices that cannot hold off; never proof by itself.
    Reset,
}

/// An action as it arrives: YAML 1.1 readers, kubectl among them, turn a bare off into false.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Boolean(bool),
    ActionWord(ActionWord),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ActionWord {
    Off,
    On,
    Reboot,
    Reset,
}

impl From<Written> for MethodAction {
    fn from(written: Written) -> Self {
        match written {
            Written::Boolean(false) | Written::ActionWord(ActionWord::Off) => Self::Off,
            Written::Boolean(true) | Written::ActionWord(ActionWord::On) => Self::On,
            Written::ActionWord(ActionWord::Reboot) => Self::Reboot,
            Written::ActionWord(ActionWord::Reset) => Self::Reset,
        }
    }
}

fn action_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-preserve-unknown-fields": true,
        "enum": ["off", "on", "reboot", "reset", true, false],
    })
}

/// Where one of a plugin's secrets stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialSpec {
    /// Its name in the plugin's manifest; absent: the plugin's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub name: Option<String>,
    /// A Secret in the controller's namespace.
    #[schemars(length(min = 1, max = 253))]
    pub secret: String,
    /// The key with the user name; default `username`, empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub identity_key: Option<String>,
    /// The key with the password or key; default `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_key: Option<String>,
}

/// A group of methods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "!(has(self.mustSuccess) && self.mustSuccess && has(self.run) && self.run == 'only-one')")
        .message("in a stage of which only one method has to succeed, mustSuccess says nothing")
)]
pub struct StageSpec {
    /// Its name, for records and messages.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// `all`, or `only-one`: the first that succeeds.
    #[serde(default)]
    pub run: Run,
    /// A failing method fails the stage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub must_success: bool,
    /// Names of methods, in the order they are tried; built-in methods go by their own names.
    #[schemars(length(min = 1, max = limits::METHODS_MAX), inner(length(min = 1, max = 253)))]
    pub methods: Vec<String>,
}

/// What became of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FenceConfigurationStatus {
    /// Accepted and FenceReady.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
    /// The generation that the conditions speak of.
    #[serde(default)]
    pub observed_generation: i64,
    /// Each device of each selected node, from probing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::INVENTORY_ROWS_MAX))]
    pub devices: Vec<DeviceStatus>,
}

/// Whether a device can be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceStatus {
    /// The node behind it.
    #[schemars(length(max = 253))]
    pub node: String,
    /// The device.
    #[schemars(length(max = 1024))]
    pub device: String,
    /// ACTIVE or INACTIVE, in the proposal's words.
    pub state: DeviceState,
    /// Why it is inactive.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub detail: String,
}

/// Whether a device answers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum DeviceState {
    /// It answers a monitor.
    Active,
    /// It does not.
    Inactive,
}
