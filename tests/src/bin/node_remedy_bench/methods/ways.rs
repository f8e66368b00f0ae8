//! The ways to ask one device for one machine's power, and what each took.
//!
//! A way is a whole process, a call in the sandbox, or the plugin's own code without one. Each must say
//! that the machine is on: whatever says something else is not measured any further.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use node_remedy_sandbox::{Call, CallReport, PlugState, Verdict};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

use crate::sandboxed::Sandboxed;
use node_remedy_tests::weigh::{Program, weigh};

/// What one read took.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
    /// Of a whole process only.
    pub(super) peak_bytes: Option<u64>,
}

/// A plugin's own code with the host of its native tests; the number is the round's.
type Native = Arc<dyn Fn(u64) -> Result<()> + Send + Sync>;

/// How a way asks.
enum Asks {
    Process {
        program: Program,
        /// What the first line of its standard output says where the machine is on.
        on: &'static str,
    },
    Sandboxed {
        plugin: Arc<Sandboxed>,
        call: Call,
    },
    Native(Native),
}

/// One way, and what it took so far.
pub(super) struct Way {
    pub(super) name: String,
    pub(super) samples: Vec<Sample>,
    asks: Asks,
}

impl Way {
    /// A process that says so in the first line of its standard output.
    pub(super) fn process(name: &str, program: Program, on: &'static str) -> Self {
        Self::new(name, Asks::Process { program, on })
    }

    /// The component in its sandbox.
    pub(super) fn sandboxed(name: &str, plugin: Arc<Sandboxed>, call: Call) -> Self {
        Self::new(name, Asks::Sandboxed { plugin, call })
    }

    /// The plugin's own code, which fails unless the machine is on.
    pub(super) fn native(name: &str, run: Native) -> Self {
        Self::new(name, Asks::Native(run))
    }

    /// The same process with this in its environment.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.asks = match self.asks {
            Asks::Process { program, on } => {
                Asks::Process { program: program.with(name, value), on }
            }
            other @ (Asks::Sandboxed { .. } | Asks::Native(_)) => other,
        };
        self
    }

    /// The same by another name.
    pub(super) fn called(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// What is started, where it is a process, and what it says of a machine that is on.
    pub(super) fn into_program(self) -> Option<(Program, &'static str)> {
        match self.asks {
            Asks::Process { program, on } => Some((program, on)),
            Asks::Sandboxed { .. } | Asks::Native(_) => None,
        }
    }

    fn new(name: &str, asks: Asks) -> Self {
        Self { name: name.to_owned(), samples: Vec::new(), asks }
    }

    /// Asks once.
    pub(super) async fn ask(&self, round: u64) -> Result<Sample> {
        match &self.asks {
            Asks::Process { program, on } => {
                let weighed = weigh(vec![program.clone()]).await?;
                let ended = weighed.ended.first().context("nothing was weighed")?;
                ended.must_say(on)?;
                let peak_bytes = Some(ended.peak_bytes);
                Ok(Sample { wall: ended.wall, cpu: ended.cpu, peak_bytes })
            }
            Asks::Sandboxed { plugin, call } => {
                let watch = Watch::start();
                let report = plugin.call(call.clone()).await;
                let sample = watch.sample();
                must_report_on(&report)?;
                Ok(sample)
            }
            Asks::Native(run) => {
                let run = Arc::clone(run);
                let asks = move || {
                    let watch = Watch::start();
                    run(round).map(|()| watch.sample())
                };
                tokio::task::spawn_blocking(asks).await?
            }
        }
    }
}

/// Fails unless the call came to a machine that is on.
pub(crate) fn must_report_on(report: &CallReport) -> Result<()> {
    match report.verdict() {
        Verdict::Outcome(outcome) if outcome.state == PlugState::On => Ok(()),
        Verdict::Outcome(outcome) => Err(anyhow!("expected on, it reported {outcome:?}")),
        Verdict::FailedBeforeEffect(failure) | Verdict::Indeterminate(failure) => {
            Err(anyhow!("expected on, it failed: {}", failure.detail))
        }
    }
}

/// Wall time, and the CPU time of all threads of this process.
pub(super) struct Watch {
    began: Instant,
    cpu: Duration,
}

impl Watch {
    pub(super) fn start() -> Self {
        Self { began: Instant::now(), cpu: cpu_so_far() }
    }

    pub(super) fn sample(&self) -> Sample {
        let cpu = cpu_so_far().saturating_sub(self.cpu);
        Sample { wall: self.began.elapsed(), cpu, peak_bytes: None }
    }
}

fn cpu_so_far() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
