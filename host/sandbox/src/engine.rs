//! The engine: one configuration for the compiling child, the ahead-of-time build and the running
//! host, since machine code made under another is refused.

use wasmtime::{Config, Engine, InstanceAllocationStrategy, OptLevel, Strategy};

use crate::limits::{ASYNC_STACK_BYTES, WASM_STACK_BYTES};

/// Makes the engine every plugin is compiled for and runs on.
pub(crate) fn engine() -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config
        // Winch, the other compiler, had a full sandbox escape.
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        // The same component computes the same everywhere: NaN bits are no source of difference.
        .cranelift_nan_canonicalization(true)
        // Fuel bounds what is computed, the same in production and simulation; epochs bound how
        // long it takes, in production only.
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(ASYNC_STACK_BYTES)
        .async_stack_zeroing(true)
        // A pool of reused memory has leaked data between instances twice.
        .allocation_strategy(InstanceAllocationStrategy::OnDemand)
        .wasm_backtrace_max_frames(None)
        .wasm_component_model(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        // For code of the engine's own: what passes values between two components inside one reaches the
        // memories of both. A module of a guest has one: `inspect` validates all of them without.
        .wasm_multi_memory(true)
        .wasm_tail_call(false);
    Engine::new(&config)
}
