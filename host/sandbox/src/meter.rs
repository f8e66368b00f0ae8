//! Bounds what a store may grow to: memory over all its memories together, tables, instances. A
//! refusal is a trap that says which, instead of a quiet failure the guest may run on from.

use wasmtime::ResourceLimiter;

use crate::limits::{INSTANCES_MAX, MEMORIES_MAX, TABLE_ELEMENTS_MAX};

/// Counts what a store's guest takes.
pub(crate) struct Meter {
    memory_bytes: u64,
    memory_bytes_max: u64,
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
        Self { memory_bytes: 0, memory_bytes_max }
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
        if desired > TABLE_ELEMENTS_MAX {
            return Err(Excess::Table { asked: desired, max: TABLE_ELEMENTS_MAX }.into());
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        INSTANCES_MAX
    }

    fn tables(&self) -> usize {
        INSTANCES_MAX
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }
}
