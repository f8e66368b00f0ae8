//! Bounds what a store may grow to: memory over all its memories together, tables, instances. A
//! refusal is a trap that says which, instead of a quiet failure the guest may run on from.

use wasmtime::ResourceLimiter;

use crate::limits::{INSTANCES_MAX, MEMORIES_MAX, TABLE_ELEMENTS_MAX};
use crate::plugin_limits::PluginLimits;

/// Counts what a store's guest takes.
pub(crate) struct Meter {
    memory_bytes: u64,
    memory_bytes_max: u64,
    table_elements_max: usize,
    instances_max: usize,
}

/// What a guest tried to take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Excess {
    #[error("the plugin asked for {asked} bytes of memory; {max} is the most")]
    Memory { asked: u64, max: u64 },
    #[error("the plugin asked for a table of {asked} elements; {max} is the most")]
    Table { asked: usize, max: usize },
}

impl Meter {
    pub(crate) fn new(memory_bytes_max: u64) -> Self {
        let (table_elements_max, instances_max) = (TABLE_ELEMENTS_MAX, INSTANCES_MAX);
        Self { memory_bytes: 0, memory_bytes_max, table_elements_max, instances_max }
    }

    /// Bounds it as one plugin is bounded.
    pub(crate) fn bound(&mut self, limits: &PluginLimits) {
        self.bound_memory(limits.memory_bytes);
        self.table_elements_max = limits.table_elements();
        self.instances_max = limits.instances();
    }

    /// Lowers the bound to what the manifest asked for.
    pub(crate) fn bound_memory(&mut self, bytes: u64) {
        self.memory_bytes_max = self.memory_bytes_max.min(bytes);
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let growth = u64::try_from(desired.saturating_sub(current)).unwrap_or(u64::MAX);
        let asked = self.memory_bytes.saturating_add(growth);
        if asked > self.memory_bytes_max {
            return Err(Excess::Memory { asked, max: self.memory_bytes_max }.into());
        }
        self.memory_bytes = asked;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let max = self.table_elements_max;
        if desired > max {
            return Err(Excess::Table { asked: desired, max }.into());
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances_max
    }

    fn tables(&self) -> usize {
        self.instances_max
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }
}
