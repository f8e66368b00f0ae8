//! Compiling in a process of its own. A component of 70 kB can cost a compiler 16 s, and no size
//! cap helps; a child with limits on CPU and memory can be lost without loss. Not here: what is
//! done with the code ([`crate::precompiled`]).

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::engine::engine;
use crate::plugin_limits::PluginLimits;

/// The argument that makes the compiling binary a child of this protocol. What follows are its limits: the
/// bytes of a component, of address space, and the seconds of CPU.
pub const CHILD_ARGUMENT: &str = "--child";

/// Why a component was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The child could not be started or spoken with.
    #[error("failed to run the compiling child: {0}")]
    Child(#[from] io::Error),
    /// The child gave up, or was stopped at one of its limits.
    #[error("failed to compile the plugin within {cpu_s} s of CPU and {} MiB: {why}", .bytes >> 20)]
    Refused {
        /// The limit on CPU seconds.
        cpu_s: u64,
        /// The limit on address space.
        bytes: u64,
        /// How it ended.
        why: String,
    },
    /// The child did not end.
    #[error("failed to compile the plugin within {0} s")]
    Time(u64),
    /// The child was not told its limits.
    #[error(
        "failed to read the limits of the compiling child: found {0:?}, expected three numbers"
    )]
    Limits(Vec<String>),
}

/// Compiles in this process. For components that are trusted to be small.
pub fn compile(wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    engine()?.precompile_component(wasm)
}

/// The code as [`crate::Sandbox::load_builtin`] takes it and a binary carries it: deflated, to a third.
///
/// # Errors
/// Never on a writer in memory; that is not for this function to know.
pub fn pack(code: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    packed.write_all(code)?;
    packed.finish()
}

/// Compiles in a child made from `exe`, which must end in [`child_main`] when it is started with
/// [`CHILD_ARGUMENT`]. Blocks up to a minute.
pub fn compile_in_child(exe: &Path, wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
    compile_in_child_within(exe, wasm, &PluginLimits::default())
}

/// The same within limits of its own. Blocks for as long as these allow.
pub fn compile_in_child_within(
    exe: &Path,
    wasm: &[u8],
    limits: &PluginLimits,
) -> Result<Vec<u8>, CompileError> {
    let told = [limits.component_bytes, limits.compile_memory_bytes, limits.compile_cpu_s];
    let mut child = Command::new(exe)
        .arg(CHILD_ARGUMENT)
        .args(told.map(|limit| limit.to_string()))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (Some(mut to_child), Some(from_child)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(CompileError::Child(io::Error::other("the child has no pipes")));
    };
    let wasm = wasm.to_vec();
    // Writing and reading each block while the other side does not move: hence two threads.
    let writer = std::thread::spawn(move || to_child.write_all(&wasm));
    let (send, receive) = mpsc::channel();
    let compiled_max = limits.compiled_len();
    let most = u64::try_from(compiled_max).unwrap_or(u64::MAX).saturating_add(1);
    let reader = std::thread::spawn(move || {
        let mut code = Vec::new();
        let read = from_child.take(most).read_to_end(&mut code);
        // The receiver is gone only when nobody wants the code any more.
        let _ = send.send(read.map(|_| code));
    });
    let wall = limits.compile_wall();
    let answer = receive.recv_timeout(wall);
    if answer.is_err() {
        // An error means that it ended in this very moment.
        let _ = child.kill();
    }
    let status = child.wait()?;
    // Both threads end with the child; what they failed at, its status tells.
    let _ = (writer.join(), reader.join());
    let code = answer.map_err(|_| CompileError::Time(wall.as_secs()))??;
    let refused = |why| {
        let (cpu_s, bytes) = (limits.compile_cpu_s, limits.compile_memory_bytes);
        Err(CompileError::Refused { cpu_s, bytes, why })
    };
    if !status.success() {
        return refused(status.to_string());
    }
    if code.len() > compiled_max {
        return refused(format!("more than {compiled_max} bytes of code"));
    }
    Ok(code)
}

/// The child's whole life: bounds itself as its arguments say, reads a component, writes machine code.
pub fn child_main() -> ExitCode {
    match run_child() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run_child() -> Result<(), Box<dyn std::error::Error>> {
    let told: Vec<String> = std::env::args().skip(2).collect();
    let numbers: Vec<u64> = told.iter().filter_map(|limit| limit.parse().ok()).collect();
    let [component_bytes, address_space_bytes, cpu_s] = numbers.as_slice() else {
        return Err(CompileError::Limits(told).into());
    };
    // Before the first byte from outside is read.
    let bound = |limit| Rlimit { current: Some(limit), maximum: Some(limit) };
    setrlimit(Resource::Cpu, bound(*cpu_s))?;
    setrlimit(Resource::As, bound(*address_space_bytes))?;
    setrlimit(Resource::Core, bound(0))?;
    let mut wasm = Vec::new();
    io::stdin().take(*component_bytes).read_to_end(&mut wasm)?;
    let code = compile(&wasm)?;
    io::stdout().write_all(&code)?;
    Ok(())
}
