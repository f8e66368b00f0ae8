//! What the sandbox costs: loading a component, one call of it, many at once, and what its neighbours
//! feel of a guest that computes without end. Each beside its native counterpart, in the same run.
//!
//! Devices are models in memory that answer at once, so that what is measured is the sandbox and not a
//! device; with real ones it is `bench methods` that measures.

mod calls;
mod crowd;
mod guests;
mod loads;
mod stall;

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

pub(crate) async fn measure() -> Result<()> {
    let cores = std::thread::available_parallelism()?;
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    println!(
        "{profile} build; {cores} cores, load before: {load}; medians unless said otherwise\n"
    );
    loads::measure()?;
    calls::measure().await?;
    crowd::measure().await?;
    // It makes runtimes of its own, which cannot be dropped inside of this one.
    let measured = std::thread::spawn(stall::measure).join();
    measured.map_err(|_| anyhow!("the measuring thread failed"))?
}

/// What this process has resident, in bytes (proc_pid_status(5), `VmRSS`).
fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.context("no VmRSS")?.trim().trim_end_matches(" kB");
    Ok(kilobytes.trim().parse::<u64>()? * 1024)
}

/// In microseconds, as a table has it.
fn micros(duration: Duration) -> String {
    format!("{:.1} µs", duration.as_secs_f64() * 1e6)
}

/// In milliseconds, as a table has it.
fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

/// One duration over another.
fn times(one: Duration, other: Duration) -> String {
    format!("{:.2} ×", one.as_secs_f64() / other.as_secs_f64())
}
