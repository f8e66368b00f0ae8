//! Compiling in a process of its own. A component of 70 kB can cost a compiler 16 s, and no size
//! cap helps; a child with limits on CPU and memory can be lost without loss. Not here: what is
//! done with the code ([`crate::precompiled`]).

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::engine::engine;
use crate::limits::{
    COMPILE_ADDRESS_SPACE_BYTES, COMPILE_CPU_S, COMPILE_WALL, COMPILED_BYTES_MAX,
    COMPONENT_BYTES_MAX,
};

/// The argument that makes the compiling binary a child of this protocol.
pub const CHILD_ARGUMENT: &str = "--child";

/// Why a component was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The child could not be started or spoken with.
    #[error("failed to run the compiling child: {0}")]
    Child(#[from] io::Error),
    /// The child gave up, or was stopped at one of its limits.
    #[error("failed to compile the plugin within {COMPILE_CPU_S} s of CPU and 1 GiB: {0}")]
    Refused(String),
    /// The child did not end.
    #[error("failed to compile the plugin within {} s", COMPILE_WALL.as_secs())]
    Time,
}

/// Compiles in this process. For components that are trusted to be small.
pub fn compile(wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    engine()?.precompile_component(wasm)
}

/// Compiles in a child made from `exe`, which must end in [`child_main`] when it is started with
/// [`CHILD_ARGUMENT`]. Blocks up to half a minute.
pub fn compile_in_child(exe: &Path, wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
    let mut child = Command::new(exe)
        .arg(CHILD_ARGUMENT)
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
    let reader = std::thread::spawn(move || {
        let mut code = Vec::new();
        let read = from_child.take(limit(COMPILED_BYTES_MAX) + 1).read_to_end(&mut code);
        // The receiver is gone only when nobody wants the code any more.
        let _ = send.send(read.map(|_| code));
    });
    let answer = receive.recv_timeout(COMPILE_WALL);
    if answer.is_err() {
        // An error means that it ended in this very moment.
        let _ = child.kill();
    }
    let status = child.wait()?;
    // Both threads end with the child; what they failed at, its status tells.
    let _ = (writer.join(), reader.join());
    let code = answer.map_err(|_| CompileError::Time)??;
    if !status.success() {
        return Err(CompileError::Refused(status.to_string()));
    }
    if code.len() > COMPILED_BYTES_MAX {
        return Err(CompileError::Refused(format!("more than {COMPILED_BYTES_MAX} bytes of code")));
    }
    Ok(code)
}

/// The child's whole life: bounds itself, reads a component, writes machine code.
pub fn child_main() -> ExitCode {
    match run_child() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run_child() -> Result<(), Box<dyn std::error::Error>> {
    // Before the first byte from outside is read.
    let bound = |limit| Rlimit { current: Some(limit), maximum: Some(limit) };
    setrlimit(Resource::Cpu, bound(COMPILE_CPU_S))?;
    setrlimit(Resource::As, bound(COMPILE_ADDRESS_SPACE_BYTES))?;
    setrlimit(Resource::Core, bound(0))?;
    let mut wasm = Vec::new();
    io::stdin().take(limit(COMPONENT_BYTES_MAX)).read_to_end(&mut wasm)?;
    let code = compile(&wasm)?;
    io::stdout().write_all(&code)?;
    Ok(())
}

fn limit(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
