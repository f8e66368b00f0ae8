//! What one plugin may use, as an admin raises or lowers it. Not here: what each limit is where nobody says,
//! and why; the sandbox knows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;

/// What a plugin may use. What is not said is as for every plugin from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginLimits {
    /// Bytes of the component, unpacked; 8 MiB where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::PLUGIN_COMPONENT_BYTES_MAX))]
    pub component_bytes: Option<u64>,
    /// Bytes of linear memory of one call; 64 MiB where nothing is said, and never more than the manifest
    /// asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65_536, max = limits::PLUGIN_MEMORY_BYTES_MAX))]
    pub memory_bytes: Option<u64>,
    /// What one call may compute, in units of fuel, roughly instructions; 10,000,000,000 where nothing is
    /// said, one to two seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::PLUGIN_FUEL_MAX))]
    pub fuel: Option<u64>,
    /// Seconds that one call may take; what the manifest says where nothing is said, and never more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::PLUGIN_DEADLINE_S_MAX))]
    pub deadline_seconds: Option<u64>,
    /// Calls under way at a time; further ones wait. 32 where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::PLUGIN_CALLS_MAX))]
    pub concurrent_calls: Option<u32>,
    /// Address space of the child that compiles it, in bytes; 1 GiB where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::PLUGIN_COMPILE_MEMORY_BYTES_MAX))]
    pub compile_memory_bytes: Option<u64>,
    /// Seconds of CPU of the child that compiles it; 20 where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::PLUGIN_COMPILE_CPU_S_MAX))]
    pub compile_cpu_seconds: Option<u64>,
}
