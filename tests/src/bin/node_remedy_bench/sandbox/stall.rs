//! How late the controller's own event loop is while guests compute without end, and how long an honest
//! call takes among them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use futures::future::join_all;
use node_remedy_sandbox::limits::FUEL_PER_CALL_MOST;
use node_remedy_sandbox::{Call, Cancel, Ended, Executor, Plugin, PluginLimits, Sandbox};
use tokio::time::Instant;

use super::guests::{call, hostile, seams};
use super::millis;
use crate::methods::ways::must_report_on;
use crate::sandboxed::component;

/// As many as spin.
const SPINNERS: usize = 4;
/// As a small controller has.
const THREADS: usize = 2;
const BEATS: u32 = 1_000;
const BEAT: Duration = Duration::from_millis(2);
/// How long the guests may spin, as their manifest has it: longer than anything is measured beside them.
const SPIN: Duration = Duration::from_mins(1);

/// How late a loop was.
struct Late {
    half: Duration,
    most: Duration,
    worst: Duration,
}

pub(super) fn measure() -> Result<()> {
    println!(
        "a loop of one thread that wakes every {} ms, {BEATS} times: how late it is",
        BEAT.as_millis()
    );
    println!("  {:<44}{:>12}{:>12}{:>12}", "", "median", "99 %", "worst");
    alone_on_a_thread(async { row("alone", &beats().await) })?;
    let stop = Arc::new(AtomicBool::new(false));
    let spinners: Vec<_> = (0..SPINNERS).map(|_| spin(Arc::clone(&stop))).collect();
    let beside =
        alone_on_a_thread(async { row("beside 4 native threads that spin", &beats().await) });
    stop.store(true, Ordering::Relaxed);
    for spinner in spinners {
        spinner.join().map_err(|_| anyhow!("a thread failed"))?;
    }
    beside?;
    alone_on_a_thread(beside_guests())?
}

async fn beside_guests() -> Result<()> {
    let sandbox = Sandbox::new()?;
    // As much as can be had, so that a fast machine does not burn it while it is measured.
    let tireless = PluginLimits { fuel: FUEL_PER_CALL_MOST, ..PluginLimits::default() };
    let spinner = sandbox.load_within(&hostile()?, &tireless)?;
    let honest = sandbox.load(&std::fs::read(component("ipmi"))?)?;
    let executor = Executor::threads(&sandbox, THREADS)?;
    let alone = honest_call(&executor, &honest).await?;
    let (spins, seams) = (call(&spinner, "spin", SPIN).await?, seams());
    let spinning = (0..SPINNERS).map(|_| {
        let cancel = Cancel::new();
        let call = Call { cancel: cancel.clone(), ..spins.clone() };
        let running = executor.run(Arc::clone(&spinner), call, seams.clone());
        (cancel, running)
    });
    let (cancels, running): (Vec<_>, Vec<_>) = spinning.unzip();
    let measuring = async {
        let late = beats().await;
        let took = honest_call(&executor, &honest).await;
        cancels.iter().for_each(Cancel::ask);
        (late, took)
    };
    let (ended, (late, took)) = tokio::join!(join_all(running), measuring);
    for report in &ended {
        // Who ended sooner left the others, and what was measured, more of the machine.
        let is_to_the_end = report.ended == Ended::Cancelled && report.fuel > 0;
        ensure!(is_to_the_end, "a guest did not spin to the end: {:?}", report.ended);
    }
    row("beside 4 guests that spin, on 2 plugin threads", &late);
    println!(
        "  an honest ipmi status: {} alone, {} among the spinning guests\n",
        millis(alone),
        millis(took?)
    );
    Ok(())
}

async fn honest_call(executor: &Executor, plugin: &Arc<Plugin>) -> Result<Duration> {
    let call = call(plugin, "", Duration::from_secs(10)).await?;
    let began = Instant::now();
    let report = executor.run(Arc::clone(plugin), call, seams()).await;
    must_report_on(&report)?;
    Ok(began.elapsed())
}

fn row(name: &str, late: &Late) {
    let Late { half, most, worst } = late;
    println!("  {name:<44}{:>12}{:>12}{:>12}", millis(*half), millis(*most), millis(*worst));
}

async fn beats() -> Late {
    let mut late = Vec::new();
    for _ in 0..BEATS {
        let due = Instant::now() + BEAT;
        tokio::time::sleep_until(due).await;
        late.push(due.elapsed());
    }
    late.sort();
    let at = |share: usize| late.get(late.len() * share / 100).copied().unwrap_or_default();
    Late { half: at(50), most: at(99), worst: late.last().copied().unwrap_or_default() }
}

fn spin(stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    })
}

/// A runtime like the controller's: one thread.
fn alone_on_a_thread<T: Send>(work: impl Future<Output = T> + Send) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::scope(|scope| {
        let running = scope.spawn(|| runtime.block_on(work));
        running.join().ok().context("a thread failed")
    })
}
