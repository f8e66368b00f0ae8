//! The journal: every device call of an incident, its intent written before it is carried out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Moment;

/// One device call: first an intent, later with an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Its number in this NodeFence; grows, is never used again.
    pub id: u32,
    /// The method's place in the plan's list of methods, from 0.
    pub method: u32,
    /// The method's name, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub name: String,
    /// Outlet, port, system or instance.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub plug: String,
    /// The BMC, PDU, switch or cloud API.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub device: String,
    /// What is asked of it.
    pub action: Action,
    /// Which try of the step this belongs to, counting from 1.
    pub attempt: u32,
    /// The epoch of the leader that intended it.
    pub epoch: u64,
    /// The process that intended it; any other process must treat it as foreign.
    #[schemars(length(max = 128))]
    pub process: String,
    /// When the intent was written.
    pub intended_at: Moment,
    /// What the device said right before an off: `off` means the off was not ours.
    pub state_before: PlugState,
    /// How it ended; absent while nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// When the end became known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Moment>,
    /// sha256 of the component that is called for it; empty for what is built into the controller.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub digest: String,
}

/// What a device is asked: fence agents' words. `reboot` is not among them: it is off, then on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Read the plug.
    Status,
    /// Power off, or cut.
    Off,
    /// Power on, or restore.
    On,
    /// One hard reset, never proof by itself.
    Reset,
    /// Probe the path without effect.
    Monitor,
}

/// What a device says of a plug.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum PlugState {
    /// Powered, connected.
    On,
    /// Without power, cut.
    Off,
    /// On its way.
    Transitioning,
    /// The device does not know or would not say; never the same as off.
    Unknown,
    /// The provider says that the instance is gone for good.
    Terminated,
}

/// One thing that a device calls the machine, such as `system-uuid`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityField {
    /// `system-uuid`, `serial`, `instance-id`, `label`.
    #[schemars(length(max = 64))]
    pub name: String,
    /// As the device wrote it.
    #[schemars(length(max = 1024))]
    pub value: String,
}

/// How a device call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// Which of the four ends.
    pub kind: EndKind,
    /// What the device then said of the plug, where it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PlugState>,
    /// What the device called the machine behind the plug, where it succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub identity: Vec<IdentityField>,
    /// Why it failed or was not attempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_kind: Option<FailureKind>,
    /// A sentence that says what was seen and what to check; cut to its limit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 4096))]
    pub detail: String,
}

/// The four ends of a call.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum EndKind {
    /// The device answered that it was done.
    Succeeded,
    /// The device answered that it was not.
    Failed,
    /// Nothing was sent: the same process saw the call end before its commit point.
    NotAttempted,
    /// Something may have been sent; only a status read may follow.
    Indeterminate,
}

/// Why a device call failed, in the words of the plugin contract.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// No answer from the network address.
    Unreachable,
    /// Answers stopped before the deadline.
    Timeout,
    /// The credential was not accepted.
    Unauthenticated,
    /// The credential may not do this.
    Denied,
    /// The device asks for fewer requests.
    Throttled,
    /// The device cannot do this.
    Unsupported,
    /// The method's parameters are wrong.
    BadParameters,
    /// The device has no such plug.
    NoSuchPlug,
    /// The device is busy with something else.
    Busy,
    /// The device broke its own protocol.
    Protocol,
    /// The device reports a fault of its own.
    Device,
    /// Nothing left the controller: a Secret, a name or the plugin could not be had.
    NotMade,
    /// We cancelled.
    Cancelled,
    /// Anything else; the detail says what.
    Other,
}
