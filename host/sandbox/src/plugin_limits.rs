//! What one plugin may use where an admin says so: raised for an interpreter that is compiled in, or lowered
//! for a plugin that nobody knows. Each is bounded by [`crate::limits`], whatever is asked for. Not here:
//! limits that are the same for all plugins.

use std::time::Duration;

use crate::limits::{
    CALLS_PER_PLUGIN, CALLS_PER_PLUGIN_MOST, COMPILE_ADDRESS_SPACE_BYTES,
    COMPILE_ADDRESS_SPACE_BYTES_MOST, COMPILE_CPU_S, COMPILE_CPU_S_MOST, COMPILE_WALL,
    COMPILED_BYTES_MAX, COMPONENT_BYTES_MAX, COMPONENT_BYTES_MOST, DEADLINE_MOST, FUEL_PER_CALL,
    FUEL_PER_CALL_MOST, FUNCTIONS_MAX, INSTANCES_MAX, MEMORY_BYTES_MAX, MEMORY_BYTES_MOST,
    TABLE_ELEMENTS_MAX, TOGETHER_BYTES_MAX,
};

/// The limits of one plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginLimits {
    /// Size of its component.
    pub component_bytes: u64,
    /// Linear memory of one call.
    pub memory_bytes: u64,
    /// What one call may compute.
    pub fuel: u64,
    /// How long one call may take; its manifest may say less.
    pub deadline: Duration,
    /// Calls under way at a time; further ones wait.
    pub calls: u32,
    /// Linear memory that its calls under way may have together.
    pub together_bytes: u64,
    /// Address space of the child that compiles it.
    pub compile_memory_bytes: u64,
    /// CPU seconds of that child.
    pub compile_cpu_s: u64,
}

impl Default for PluginLimits {
    fn default() -> Self {
        Self {
            component_bytes: bytes(COMPONENT_BYTES_MAX),
            memory_bytes: MEMORY_BYTES_MAX,
            fuel: FUEL_PER_CALL,
            deadline: DEADLINE_MOST,
            calls: CALLS_PER_PLUGIN,
            together_bytes: TOGETHER_BYTES_MAX,
            compile_memory_bytes: COMPILE_ADDRESS_SPACE_BYTES,
            compile_cpu_s: COMPILE_CPU_S,
        }
    }
}

impl PluginLimits {
    /// Of a plugin that is built in: the same, but as many calls at a time as there is room for.
    pub(crate) fn builtin() -> Self {
        Self { calls: u32::MAX, together_bytes: u64::MAX, ..Self::default() }
    }

    /// As far as any plugin's may go.
    pub fn most() -> Self {
        Self {
            component_bytes: bytes(COMPONENT_BYTES_MOST),
            memory_bytes: MEMORY_BYTES_MOST,
            fuel: FUEL_PER_CALL_MOST,
            deadline: DEADLINE_MOST,
            calls: CALLS_PER_PLUGIN_MOST,
            together_bytes: TOGETHER_BYTES_MAX,
            compile_memory_bytes: COMPILE_ADDRESS_SPACE_BYTES_MOST,
            compile_cpu_s: COMPILE_CPU_S_MOST,
        }
    }

    /// The same, as far as any plugin's may go.
    #[must_use]
    pub fn bounded(self) -> Self {
        let most = Self::most();
        Self {
            component_bytes: self.component_bytes.min(most.component_bytes),
            memory_bytes: self.memory_bytes.min(most.memory_bytes),
            fuel: self.fuel.min(most.fuel),
            deadline: self.deadline.min(most.deadline),
            calls: self.calls.clamp(1, most.calls),
            together_bytes: self.together_bytes.min(most.together_bytes),
            compile_memory_bytes: self.compile_memory_bytes.min(most.compile_memory_bytes),
            compile_cpu_s: self.compile_cpu_s.min(most.compile_cpu_s),
        }
    }

    /// The largest component, as a length.
    pub fn component_len(&self) -> usize {
        usize::try_from(self.component_bytes).unwrap_or(usize::MAX)
    }

    /// Calls under way at a time, each of which may take so much linear memory; one at least.
    pub(crate) fn calls_of(&self, memory_bytes: u64) -> u32 {
        let room = self.together_bytes / memory_bytes.max(1);
        self.calls.min(u32::try_from(room).unwrap_or(u32::MAX)).max(1)
    }

    /// Functions in the component.
    pub(crate) fn functions(&self) -> u32 {
        FUNCTIONS_MAX.saturating_mul(u32::try_from(self.sizes()).unwrap_or(u32::MAX))
    }

    /// Core instances, and tables: an interpreter comes as a dozen libraries.
    pub(crate) fn instances(&self) -> usize {
        INSTANCES_MAX.saturating_mul(self.sizes())
    }

    /// Elements of one table: functions that are called through pointers.
    pub(crate) fn table_elements(&self) -> usize {
        TABLE_ELEMENTS_MAX.saturating_mul(self.sizes())
    }

    /// Machine code that may come of it.
    pub(crate) fn compiled_len(&self) -> usize {
        COMPILED_BYTES_MAX.saturating_mul(self.sizes())
    }

    /// Wall time of the child that compiles.
    pub(crate) fn compile_wall(&self) -> Duration {
        let busy = COMPILE_WALL.saturating_sub(Duration::from_secs(COMPILE_CPU_S));
        Duration::from_secs(self.compile_cpu_s).saturating_add(busy)
    }

    /// How many times the usual size its component may have.
    fn sizes(&self) -> usize {
        self.component_len().div_ceil(COMPONENT_BYTES_MAX).max(1)
    }
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_a_plugin_grow_with_its_component_and_never_past_the_most() {
        let usual = PluginLimits::default();
        assert_eq!(usual.functions(), 20_000);
        assert_eq!((usual.instances(), usual.table_elements()), (16, 10_000));
        assert_eq!(usual.compiled_len(), 64 << 20);
        assert_eq!(usual.compile_wall(), Duration::from_mins(1));
        assert_eq!(usual.bounded(), usual, "what is usual is allowed");
        let python = PluginLimits { component_bytes: 24 << 20, ..usual };
        assert_eq!((python.functions(), python.compiled_len()), (60_000, 192 << 20));
        let small = PluginLimits { component_bytes: 1 << 20, compile_cpu_s: 5, ..usual };
        assert_eq!(small.functions(), 20_000);
        assert_eq!(small.compile_wall(), Duration::from_secs(45));
        let asked = PluginLimits {
            component_bytes: u64::MAX,
            memory_bytes: u64::MAX,
            fuel: u64::MAX,
            deadline: Duration::MAX,
            calls: u32::MAX,
            together_bytes: u64::MAX,
            compile_memory_bytes: u64::MAX,
            compile_cpu_s: u64::MAX,
        };
        assert_eq!(asked.bounded(), PluginLimits::most());
        assert_eq!(
            PluginLimits { calls: 0, ..usual }.bounded().calls,
            1,
            "or it were never called"
        );
    }
}
