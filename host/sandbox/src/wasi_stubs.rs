//! The part of WASI that std itself imports, answered with nothing: no files, no environment, no
//! arguments, no terminal, output thrown away. Clocks and randomness come from the seams, so the
//! same component sees virtual time and seeded numbers in a simulation. Sockets are not linked
//! at all.

use std::sync::Arc;
use std::time::Duration;

use crate::stderr::Stderr;
use wasmtime::component::Linker;
use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::{cli, filesystem, random};
use wasmtime_wasi::random::{WasiRandom, WasiRandomCtx};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx, WasiView as _};

use crate::limits::RANDOM_BYTES_MAX;
use crate::randomness::Randomness;
use crate::seams::{Clock, Seams};
use crate::state::CallState;

/// The interfaces a component may import beside ours, without their versions.
pub(crate) const ALLOWED: [&str; 20] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
];

/// Links exactly the interfaces of [`ALLOWED`].
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    type State = CallState;
    // io, clocks, random and the three standard streams.
    wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async(linker)?;
    random::insecure::add_to_linker::<State, WasiRandom>(linker, random_of)?;
    random::insecure_seed::add_to_linker::<State, WasiRandom>(linker, random_of)?;
    cli::environment::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::exit::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_input::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_output::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stdin::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stdout::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stderr::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    filesystem::types::add_to_linker::<State, WasiFilesystem>(linker, State::filesystem)?;
    filesystem::preopens::add_to_linker::<State, WasiFilesystem>(linker, State::filesystem)
}

fn random_of(state: &mut CallState) -> &mut WasiRandomCtx {
    state.ctx().ctx.random()
}

/// A context with nothing in it but time, numbers, and where the words of a panic go.
pub(crate) fn context(seams: &Seams, seed: [u8; 32], stderr: Stderr) -> WasiCtx {
    let mut insecure = Randomness::new(seed, 1);
    let insecure_seed = u128::from_le_bytes(insecure.array());
    WasiCtx::builder()
        .wall_clock(SeamClock(Arc::clone(&seams.clock)))
        .monotonic_clock(SeamClock(Arc::clone(&seams.clock)))
        .secure_random(Randomness::new(seed, 2))
        .insecure_random(insecure)
        .insecure_random_seed(insecure_seed)
        .max_random_size(RANDOM_BYTES_MAX.into())
        .stderr(stderr)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

/// The seam's clock in WASI's words. A millisecond is its finest tick: enough for time-outs, too
/// coarse to time the host's secrets.
struct SeamClock(Arc<dyn Clock>);

const NS_PER_MS: u64 = 1_000_000;

impl HostWallClock for SeamClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.unix_ms())
    }
}

impl HostMonotonicClock for SeamClock {
    fn resolution(&self) -> u64 {
        NS_PER_MS
    }

    fn now(&self) -> u64 {
        self.0.now_ms().saturating_mul(NS_PER_MS)
    }
}
