//! Where calls run: on threads of their own, so a guest that computes without end stalls no
//! one's event loop, or on the spot, where a simulation wants one thread and one order. Not here:
//! the call itself ([`crate::plugin`]).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use wasmtime::Engine;

use crate::call::{Call, CallReport, Ended};
use crate::call_slots::CallSlot;
use crate::cancel::Cancel;
use crate::limits::{CALLS_PER_THREAD_MAX, CALLS_QUEUED_MAX, EPOCH_TICK};
use crate::load::Sandbox;
use crate::plugin::{Pace, Plugin};
use crate::remedy::{NodeFacts, Remedied, RemedyTried};
use crate::seams::Seams;
use crate::types::{Action, Effect, Failure, FailureKind};

/// Runs calls.
pub enum Executor {
    /// On the plugins' own threads.
    Threads(Pool),
    /// On the caller's task. Dropping the future then drops the call without a farewell.
    Inline,
}

/// The plugins' own threads.
pub struct Pool {
    workers: Vec<Worker>,
    next: AtomicUsize,
    _ticker: Ticker,
}

struct Worker {
    /// None only while it is dropped.
    jobs: Option<tokio::sync::mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

struct Job {
    plugin: Arc<Plugin>,
    call: Call,
    seams: Seams,
    queued_ms: u64,
    /// Its turn among the calls of its plugin.
    call_slot: CallSlot,
    done: oneshot::Sender<CallReport>,
}

impl Executor {
    /// Starts this many plugin threads for the plugins of a sandbox.
    pub fn threads(sandbox: &Sandbox, count: usize) -> std::io::Result<Self> {
        let workers = (0..count.max(1)).map(Worker::start).collect::<Result<_, _>>()?;
        let ticker = Ticker::start(sandbox.engine())?;
        Ok(Self::Threads(Pool { workers, next: AtomicUsize::new(0), _ticker: ticker }))
    }

    /// Does work that blocks where nobody waits for it but the caller; `None` where it was broken off.
    pub async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        match self {
            Self::Inline => Some(work()),
            Self::Threads(_) => tokio::task::spawn_blocking(work).await.ok(),
        }
    }

    /// Asks a remedy, on a thread that is nobody else's for as long as that takes. One that waits for
    /// nobody has no other call to share it with.
    pub async fn ask(
        &self,
        plugin: Arc<Plugin>,
        view: NodeFacts,
        tried: Vec<RemedyTried>,
        seams: Seams,
    ) -> Remedied {
        let _turn = plugin.call_slots().take_to_ask().await;
        let lost =
            |why: &str| Remedied { decision: Err(why.to_owned()), log: Vec::new(), log_dropped: 0 };
        match self {
            Self::Inline => plugin.next(&view, &tried, &seams).await,
            Self::Threads(_) => {
                let asking = move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_time()
                        .event_interval(1)
                        .build()
                        .map_err(|error| error.to_string())?;
                    let asking = plugin.next_at(Pace::FuelAndEpochs, &view, &tried, &seams);
                    Ok(runtime.block_on(asking))
                };
                match tokio::task::spawn_blocking(asking).await {
                    Ok(Ok(remedied)) => remedied,
                    Ok(Err::<_, String>(why)) => lost(&why),
                    Err(_) => lost("its thread is gone"),
                }
            }
        }
    }

    /// Makes one call, in its turn among the calls of its plugin. Dropping the future before its report came
    /// asks the call to stop.
    pub async fn run(&self, plugin: Arc<Plugin>, call: Call, seams: Seams) -> CallReport {
        let action = call.request.action;
        let queued_ms = seams.clock.now_ms();
        let call_slot = match plugin.call_slots().take(&call, &seams).await {
            Ok(call_slot) => call_slot,
            Err(refusal) => return CallReport::not_started(action, refusal),
        };
        match self {
            Self::Inline => {
                let report = plugin.call(on_time(call, &seams, queued_ms), &seams).await;
                drop(call_slot);
                report
            }
            Self::Threads(pool) => {
                let (done, report) = oneshot::channel();
                pool.run(Job { plugin, call, seams, queued_ms, call_slot, done }, report).await
            }
        }
    }
}

impl Pool {
    async fn run(&self, job: Job, report: oneshot::Receiver<CallReport>) -> CallReport {
        let action = job.call.request.action;
        let refuse =
            |kind, detail: &str| CallReport::not_started(action, Failure::of_sandbox(kind, detail));
        let call_slot = self.next.fetch_add(1, Ordering::Relaxed) % self.workers.len().max(1);
        let Some(jobs) = self.workers.get(call_slot).and_then(|worker| worker.jobs.as_ref()) else {
            return refuse(FailureKind::Other, "no plugin thread runs");
        };
        let mut caller = Caller { asks_on_drop: Some(job.call.cancel.clone()) };
        if jobs.try_send(job).is_err() {
            return refuse(FailureKind::Busy, "the plugin threads have too much to do");
        }
        let report = report.await;
        caller.asks_on_drop = None;
        // A worker answers every job it takes, unless the host itself has a fault.
        report.unwrap_or_else(|_| lost(action))
    }
}

/// The report of a call whose thread is gone. Nobody knows how far it came, so it counts as begun.
fn lost(action: Action) -> CallReport {
    let failure = Failure::of_sandbox(FailureKind::Other, "the plugin thread is gone");
    let mut report = CallReport::not_started(action, failure);
    report.effect = Effect::Begun;
    report.ended = Ended::Cut;
    report
}

impl Worker {
    fn start(number: usize) -> std::io::Result<Self> {
        let (jobs, mut queue) = tokio::sync::mpsc::channel::<Job>(CALLS_QUEUED_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // A guest that only computes comes back once a tick; timers must be seen each time,
            // not every sixty-first.
            .event_interval(1)
            .build()?;
        let thread =
            std::thread::Builder::new().name(format!("plugins-{number}")).spawn(move || {
                runtime.block_on(async move {
                    let room = Arc::new(Semaphore::new(CALLS_PER_THREAD_MAX));
                    while let Some(job) = queue.recv().await {
                        // The semaphore is never closed.
                        let Ok(slot) = Arc::clone(&room).acquire_owned().await else { break };
                        tokio::spawn(async move {
                            job.run().await;
                            drop(slot);
                        });
                    }
                    // Calls under way come to their end, which their deadlines bound.
                    let all = u32::try_from(CALLS_PER_THREAD_MAX).unwrap_or(u32::MAX);
                    let _ = room.acquire_many(all).await;
                });
            })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked in a way that anyone here could mend.
            let _ = thread.join();
        }
    }
}

impl Job {
    async fn run(self) {
        let call = on_time(self.call, &self.seams, self.queued_ms);
        let report = self.plugin.call_at(Pace::FuelAndEpochs, call, &self.seams).await;
        drop(self.call_slot);
        // The caller may have gone; it asked the call to stop when it went.
        let _ = self.done.send(report);
    }
}

/// A call whose deadline runs since its caller asked, not since it had its turn and a thread had time.
fn on_time(mut call: Call, seams: &Seams, queued_ms: u64) -> Call {
    let waited_ms = seams.clock.now_ms().saturating_sub(queued_ms);
    let deadline = &mut call.request.deadline;
    *deadline = deadline.saturating_sub(Duration::from_millis(waited_ms));
    call
}

/// Who waits for a call; asks it to stop when it goes before the report came.
struct Caller {
    asks_on_drop: Option<Cancel>,
}

impl Drop for Caller {
    fn drop(&mut self) {
        if let Some(cancel) = &self.asks_on_drop {
            cancel.ask();
        }
    }
}

/// Moves the engine's epoch on, so that computing guests look up.
struct Ticker {
    /// Dropped first, which ends the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn start(engine: &Engine) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let engine = engine.weak();
        let thread =
            std::thread::Builder::new().name("plugin-epochs".to_owned()).spawn(move || {
                while stopped.recv_timeout(EPOCH_TICK) == Err(RecvTimeoutError::Timeout) {
                    let Some(engine) = engine.upgrade() else { break };
                    engine.increment_epoch();
                }
            })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It only counts; there is nothing to mend.
            let _ = thread.join();
        }
    }
}
