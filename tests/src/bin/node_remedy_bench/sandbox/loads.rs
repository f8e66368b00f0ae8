//! What loading a component costs, by each of the ways there are, and what one that is loaded keeps.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use node_remedy_sandbox::Sandbox;
use node_remedy_tests::process::repository;
use node_remedy_tests::weigh::median;
use tokio::time::Instant;

use super::{millis, resident, times};

/// Each way, for one component.
const RUNS: usize = 9;
/// The smallest that opens a socket, one in the middle, the largest.
const NAMES: [&str; 3] = ["plugins/ipmi", "outside/tasmota", "plugins/snmp-switch"];

pub(super) fn measure() -> Result<()> {
    println!("loading, of {RUNS} times");
    println!(
        "  {:<14}{:>8}{:>14}{:>18}{:>20}{:>18}",
        "component",
        "size",
        "in a child",
        "in this process",
        "built in, no trial",
        "child : process"
    );
    let child = std::env::current_exe()?.with_file_name("node-remedy");
    for name in NAMES {
        let path = repository().join("target").join(name).with_extension("wasm");
        let wasm = read(&path)?;
        let sandbox = Sandbox::new()?;
        let outside = median_of(|| Ok(sandbox.load_external(&child, &wasm).map(drop)?))?;
        let inside = median_of(|| Ok(sandbox.load(&wasm).map(drop)?))?;
        let ahead = path.with_extension("cwasm");
        let built_in = if ahead.exists() {
            // As the binary embeds them: for as long as the process lives.
            let (wasm, code) = (leak(wasm.clone()), leak(read(&ahead)?));
            millis(median_of(|| Ok(sandbox.load_builtin(wasm, code).map(drop)?))?)
        } else {
            "–".to_owned()
        };
        let short = name.rsplit('/').next().unwrap_or(name);
        println!(
            "  {short:<14}{:>8}{:>14}{:>18}{built_in:>20}{:>18}",
            format!("{} kB", wasm.len() / 1_000),
            millis(outside),
            millis(inside),
            times(outside, inside)
        );
    }
    kept(&child)
}

/// Everything that is built in, loaded as from outside and kept.
fn kept(child: &Path) -> Result<()> {
    let sandbox = Sandbox::new()?;
    let mut files: Vec<PathBuf> = std::fs::read_dir(repository().join("target/plugins"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "wasm"));
    files.sort();
    // The first brings what all share.
    let mut loaded = Vec::new();
    let mut before = None;
    for file in &files {
        loaded.push(sandbox.load_external(child, &read(file)?)?);
        before = before.or(Some(resident()?));
    }
    let more = u64::try_from(loaded.len().saturating_sub(1).max(1))?;
    let grown = resident()?.saturating_sub(before.unwrap_or_default());
    println!("  kept for each of {more} more plugins: {} kB resident\n", grown / more / 1_000);
    Ok(())
}

fn median_of(mut load: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut took = Vec::new();
    for _ in 0..RUNS {
        let began = Instant::now();
        load()?;
        took.push(began.elapsed());
    }
    median(took).context("nothing was measured")
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path)
        .with_context(|| format!("failed to read {}: cargo xtask plugins", path.display()))
}

fn leak(bytes: Vec<u8>) -> &'static [u8] {
    Box::leak(bytes.into_boxed_slice())
}
