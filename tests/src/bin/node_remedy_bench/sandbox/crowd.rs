//! A thousand calls that wait for their device at once, and what each of them keeps of memory.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use futures::future::join_all;
use node_remedy_sandbox::{Ended, Executor, Sandbox, compile};
use tokio::time::Instant;

use super::guests::{call, hostile, seams};
use super::{millis, resident};

const CALLS: usize = 1_000;
/// Sixteen times the calls of one thread are more than a thousand.
const THREADS: usize = 16;
/// All have begun long before, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(4);

pub(super) async fn measure() -> Result<()> {
    let sandbox = Sandbox::new()?;
    // As one that is built in, which has as many turns as there is room for.
    let wasm: &'static [u8] = Box::leak(hostile()?.into_boxed_slice());
    let code = compile::compile(wasm).map_err(|error| anyhow!("{error:#}"))?;
    let code = Box::leak(compile::pack(&code)?.into_boxed_slice());
    let plugin = sandbox.load_builtin(wasm, code)?;
    let executor = Executor::threads(&sandbox, THREADS)?;
    let (waits, seams) = (call(&plugin, "sleep", DEADLINE).await?, seams());
    // What the first calls bring stays: threads' stacks, the allocator's arenas.
    let mut warm = call(&plugin, "sleep", DEADLINE).await?;
    warm.request.deadline = Duration::from_millis(10);
    let warming =
        (0..CALLS).map(|_| executor.run(Arc::clone(&plugin), warm.clone(), seams.clone()));
    join_all(warming).await;

    let before = resident()?;
    let began = Instant::now();
    let calls = (0..CALLS).map(|_| executor.run(Arc::clone(&plugin), waits.clone(), seams.clone()));
    let looks = async {
        tokio::time::sleep(DEADLINE / 2).await;
        resident()
    };
    let (reports, during) = tokio::join!(join_all(calls), looks);
    let took = began.elapsed().saturating_sub(DEADLINE);
    let cut = reports.iter().filter(|report| report.ended == Ended::Deadline).count();
    ensure!(cut == CALLS, "{cut} of {CALLS} calls ran to their deadline");
    let each = during?.saturating_sub(before) / u64::try_from(CALLS)?;
    println!("{CALLS} calls at once on {THREADS} plugin threads, each waiting for its device");
    println!("  a live call            {:>8} kB resident", each / 1_000);
    println!("  a native thread each   {:>8} kB resident", native()? / 1_000);
    println!("  all of them, beside their waiting: {}\n", millis(took));
    Ok(())
}

/// What a thread that waits keeps.
fn native() -> Result<u64> {
    let before = resident()?;
    let (done, threads): (Vec<_>, Vec<_>) = (0..CALLS)
        .map(|_| {
            let (done, waits) = mpsc::channel::<()>();
            (done, thread::spawn(move || waits.recv().is_err()))
        })
        .unzip();
    let grown = resident()?.saturating_sub(before);
    drop(done);
    for thread in threads {
        ensure!(thread.join().ok().context("a thread failed")?, "nobody sends");
    }
    Ok(grown / u64::try_from(CALLS)?)
}
