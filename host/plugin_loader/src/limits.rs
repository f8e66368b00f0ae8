//! A plugin's limits, from what an admin wrote to what the sandbox enforces, and back to what a status shows.

use std::time::Duration;

use node_remedy_api::fenceplugin::PluginLimits;
use node_remedy_sandbox as sandbox;

/// What the sandbox enforces. Never more than any plugin may have, whatever is written.
pub fn limits(written: Option<&PluginLimits>) -> sandbox::PluginLimits {
    let usual = sandbox::PluginLimits::default();
    let Some(written) = written else { return usual };
    sandbox::PluginLimits {
        component_bytes: written.component_bytes.unwrap_or(usual.component_bytes),
        memory_bytes: written.memory_bytes.unwrap_or(usual.memory_bytes),
        fuel: written.fuel.unwrap_or(usual.fuel),
        deadline: written.deadline_seconds.map_or(usual.deadline, Duration::from_secs),
        calls: written.concurrent_calls.unwrap_or(usual.calls),
        together_bytes: usual.together_bytes,
        compile_memory_bytes: written.compile_memory_bytes.unwrap_or(usual.compile_memory_bytes),
        compile_cpu_s: written.compile_cpu_seconds.unwrap_or(usual.compile_cpu_s),
    }
    .bounded()
}

/// What is in force of a loaded plugin, each limit spelled out: of memory, time and calls what follows from its
/// manifest, where that is less.
pub(super) fn in_force(plugin: &sandbox::Plugin) -> PluginLimits {
    let (limits, manifest) = (plugin.limits(), plugin.manifest());
    let deadline_s = limits.deadline.as_secs().min(manifest.deadline_seconds.into());
    PluginLimits {
        component_bytes: Some(limits.component_bytes),
        memory_bytes: Some(limits.memory_bytes.min(manifest.memory_bytes)),
        fuel: Some(limits.fuel),
        deadline_seconds: Some(deadline_s),
        concurrent_calls: Some(plugin.calls_at_once()),
        compile_memory_bytes: Some(limits.compile_memory_bytes),
        compile_cpu_seconds: Some(limits.compile_cpu_s),
    }
}

#[cfg(test)]
mod tests {
    use node_remedy_api::limits::{
        PLUGIN_CALLS_MAX, PLUGIN_COMPILE_CPU_S_MAX, PLUGIN_COMPILE_MEMORY_BYTES_MAX,
        PLUGIN_COMPONENT_BYTES_MAX, PLUGIN_DEADLINE_S_MAX, PLUGIN_FUEL_MAX,
        PLUGIN_MEMORY_BYTES_MAX,
    };

    use super::*;

    /// The most that an object may say, by its schema.
    const MOST: PluginLimits = PluginLimits {
        component_bytes: Some(PLUGIN_COMPONENT_BYTES_MAX),
        memory_bytes: Some(PLUGIN_MEMORY_BYTES_MAX),
        fuel: Some(PLUGIN_FUEL_MAX),
        deadline_seconds: Some(PLUGIN_DEADLINE_S_MAX),
        concurrent_calls: Some(PLUGIN_CALLS_MAX),
        compile_memory_bytes: Some(PLUGIN_COMPILE_MEMORY_BYTES_MAX),
        compile_cpu_seconds: Some(PLUGIN_COMPILE_CPU_S_MAX),
    };

    #[test]
    fn the_schema_allows_what_the_sandbox_does_and_no_more() {
        assert_eq!(limits(Some(&MOST)), sandbox::PluginLimits::most());
        assert_eq!(limits(None), sandbox::PluginLimits::default());
        assert_eq!(limits(Some(&PluginLimits::default())), sandbox::PluginLimits::default());
        let beyond = PluginLimits { fuel: Some(PLUGIN_FUEL_MAX + 1), ..MOST };
        assert_eq!(limits(Some(&beyond)), sandbox::PluginLimits::most(), "whatever is written");
    }
}
