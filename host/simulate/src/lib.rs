//! Plays a scenario: the controller of `run`, byte for byte the same code and plugins,
//! in a world of models and virtual time.
//!
//! What is swapped are the seams and nothing else: the cluster (`host/model_cluster`), the
//! network (the sandbox's in-memory one over the world's devices), the clock (tokio's
//! paused time), the executor (inline) and entropy (from the seed). One thread, one
//! seed: the same scenario is the same timeline every time.

pub mod component;
pub mod decode;
pub mod diff;
pub mod processes;
pub mod recorder;
pub mod redact;
pub mod run;
pub mod testing;
pub mod timeline;

use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::Context as _;
use node_remedy_context::context::{Seams, Settings};
use node_remedy_controller::controller::Controller;
use node_remedy_model_cluster::api_faults::ApiFaults;
use node_remedy_model_cluster::client::ModelCluster;
use node_remedy_model_cluster::driver::{Line, Shared, WorldNames, drive};
use node_remedy_model_cluster::interceptor::{AnyInterceptor, Guarded, Interceptor, Open};
use node_remedy_record::audit::Audit;
use node_remedy_report::{Inputs, PluginUsed, Timeline};
use node_remedy_runtime::admin::Readiness;
use node_remedy_runtime::clock::Clock;
use node_remedy_runtime::cluster::Cluster;
use node_remedy_runtime::metrics::Metrics;
use node_remedy_runtime::virtual_clock::VirtualClock;
use node_remedy_sandbox::net::MemoryNet;
use node_remedy_sandbox::{Executor, LoadError, Sandbox, SeededEntropy};
use node_remedy_store::store::Plugins;
use node_remedy_world::rng::Rng;
use node_remedy_world::scenario::{ControllerEvent, Outage, START};
use node_remedy_world::time::between;
use node_remedy_world::{AppliedFault, Scenario, World};
use tokio::task::JoinSet;

use crate::processes::{Fate, live};
use crate::recorder::Collector;

pub use run::{CLIENT, Played};

/// Its namespace in every scenario.
pub const NAMESPACE: &str = "node-remedy";
/// That of a second installation.
const SECOND_NAMESPACE: &str = "node-remedy-two";

/// How often it is looked whether the cluster is calm.
const LOOK_FOR_CALM: Duration = Duration::from_secs(10);
/// How often every device is probed, as `run` does without an option.
const PROBE_EVERY: Duration = Duration::from_mins(5);

/// Why nothing came of the loss of a snapshot's node.
const NOBODY_ASKED: &str = "nothing was done: no RemedyConfiguration of the snapshot selects a node that was lost, or none \
                            of its thresholds was crossed in time; to try one, append it to the snapshot after a line ---";

/// Plays `scenario` with and, if asked, without node-remedy.
pub fn tell(
    scenario: &Scenario,
    source: &Source,
    comparison: Comparison,
) -> anyhow::Result<Timeline> {
    let with = play(scenario, Part::With)?;
    let without = match comparison {
        Comparison::Without => Some(play(scenario, Part::Without)?),
        Comparison::Nothing => None,
    };
    let plugins = with.collected.plugins.clone();
    let mut told = crate::timeline::run(scenario, &with, &scenario.expect);
    if scenario.expect.is_empty() && told.refusals.is_empty() && told.incidents.is_empty() {
        told.outcome.missed.push(NOBODY_ASKED.to_owned());
        told.outcome.as_expected = false;
    }
    Ok(Timeline {
        inputs: Inputs {
            name: source.name.clone(),
            title: scenario.title.clone(),
            seed: scenario.seed,
            start_unix_ms: START.0,
            scenario: source.text.clone(),
            scenario_digest: node_remedy_runtime::digest::sha256(source.text.as_bytes()),
            plugins,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        with: told,
        without: without
            .map(|played| crate::timeline::run(scenario, &played, &scenario.expect_without)),
    })
}

/// Where a scenario comes from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file's name without its extension.
    pub name: String,
    /// Its whole text.
    pub text: String,
}

/// Whether the same seed is also played without node-remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// It is.
    Without,
    /// It is not.
    Nothing,
}

/// Whether node-remedy runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It does.
    With,
    /// It does not.
    Without,
}

/// Plays a scenario once.
pub fn play(scenario: &Scenario, part: Part) -> anyhow::Result<Played> {
    play_behind(scenario, part, |_| Rc::new(Open))
}

/// One process of node-remedy, for whoever stands before it.
pub struct Process {
    /// Its number, from 1.
    pub number: u32,
    shared: Shared,
    clock: VirtualClock,
}

impl Process {
    /// A client of the same API server, of somebody else.
    pub fn client(&self, name: &str) -> ModelCluster {
        ModelCluster::new(self.shared.clone(), name)
    }

    /// How long the run goes on already.
    pub fn elapsed(&self) -> Duration {
        between(START, self.clock.now())
    }

    /// Ends the process now, at whatever it waits for; it is started again after so long.
    pub fn kill(&self, lasts: Duration) {
        let outage = Outage { controller: Some(self.number), lasts };
        let (at, leader) = (self.clock.now(), String::new());
        self.shared.apply_fault(&AppliedFault {
            at,
            what: ControllerEvent::Killed(outage),
            leader,
        });
    }
}

/// The same, with an interceptor of each process before the API server.
pub fn play_behind<D: Interceptor>(
    scenario: &Scenario,
    part: Part,
    interceptor: impl Fn(Process) -> Rc<D>,
) -> anyhow::Result<Played> {
    let collector = Rc::new(Collector::new());
    let audit: Rc<dyn Audit> = collector.clone();
    play_audited(scenario, part, &|process| interceptor(process), &collector, &audit)
}

/// The same, with whom the processes tell what they do.
pub(crate) fn play_audited(
    scenario: &Scenario,
    part: Part,
    interceptor: &dyn Fn(Process) -> Rc<dyn AnyInterceptor>,
    collector: &Collector,
    audit: &Rc<dyn Audit>,
) -> anyhow::Result<Played> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("failed to start the simulator's runtime")?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let clock = VirtualClock::start_at(START);
        let shared = Shared::new(World::new(scenario), clock.clone());
        let mut tasks = JoinSet::new();
        let driven = shared.clone();
        tasks.spawn_local(async move {
            drive(driven).await;
        });
        if part == Part::With {
            let origin = tokio::time::Instant::now();
            if let Some(admit) = scenario.admit {
                shared.with(|world| world.api().define(CLIENT, admit));
            }
            let server = ModelCluster::new(shared.clone(), CLIENT);
            let plugins = plugins()?;
            collector.note_plugins(used(&plugins));
            for number in 1..=scenario.controllers {
                let way = ApiFaults::of(shared.clone(), clock.clone(), scenario, number);
                let process = Process { number, shared: shared.clone(), clock: clock.clone() };
                let server = Guarded::new(server.clone(), Rc::new(way));
                let stage = Stage {
                    cluster: Guarded::new(server, interceptor(process)),
                    shared: shared.clone(),
                    clock: clock.of_machine(),
                    audit: audit.clone(),
                    plugins: plugins.clone(),
                    seed: scenario.seed,
                    is_second: scenario.second_installation && number == scenario.controllers,
                };
                let fate =
                    Fate::new(number, (START, origin), stage.clock.clone(), shared.applied_fault());
                let start = move |life| {
                    let name = stage.name(number, life);
                    (name.clone(), stage.process(name, number).run(std::future::pending()))
                };
                tasks.spawn_local(live(fate, start));
            }
        }
        let lasted = outlast(scenario, &shared).await;
        drop(tasks);
        let (facts, misfits) = shared.with(|world| (world.facts().to_vec(), world.api().misfits()));
        Ok(Played { facts, collected: collector.take(), lasted, misfits })
    })
}

/// The plugins of every scenario that this process plays: they keep nothing between calls.
fn plugins() -> anyhow::Result<Plugins> {
    static PLUGINS: LazyLock<Result<Plugins, LoadError>> =
        LazyLock::new(|| Sandbox::new().map(Plugins::new));
    PLUGINS.as_ref().cloned().context("failed to start the sandbox")
}

/// Waits for the end of a run; says how long it lasted.
async fn outlast(scenario: &Scenario, shared: &Shared) -> Duration {
    let mut lasted = Duration::ZERO;
    while lasted < scenario.duration {
        let is_calm = |calm| shared.read(|world| world.is_calm(calm));
        if scenario.until_calm.is_some_and(is_calm) {
            break;
        }
        let step = match scenario.until_calm {
            Some(_) => LOOK_FOR_CALM.min(scenario.duration.saturating_sub(lasted)),
            None => scenario.duration,
        };
        tokio::time::sleep(step).await;
        lasted += step;
    }
    lasted
}

fn used(plugins: &Plugins) -> Vec<PluginUsed> {
    let used = Plugins::names().filter_map(|name| {
        let (manifest, digest) = plugins.about(name).ok()?;
        let (name, version) = (name.to_owned(), manifest.version);
        Some(PluginUsed { name, version, digest: digest.to_string() })
    });
    used.collect()
}

/// What every life of a process is started with.
struct Stage<C> {
    cluster: C,
    shared: Shared,
    clock: VirtualClock,
    audit: Rc<dyn Audit>,
    plugins: Plugins,
    seed: u64,
    /// Of another installation.
    is_second: bool,
}

impl<C: Cluster> Stage<C> {
    /// What the process of this number, from 1, is called in its life of that number, from 0.
    fn name(&self, number: u32, life: usize) -> String {
        match (number, life) {
            (1, 0) => format!("{CLIENT}-{:08x}", self.seed),
            _ => format!("{CLIENT}-{:08x}-{number}-{life}", self.seed),
        }
    }

    fn process(&self, process: String, number: u32) -> Controller<C> {
        let line = || Line::new(self.shared.clone(), process.clone(), number);
        let entropy = Rng::named(self.seed, &process).draw();
        let seams = Seams {
            cluster: self.cluster.clone(),
            clock: Clock::simulated(self.clock.clone()),
            executor: Executor::Inline,
            net: Arc::new(MemoryNet::new(Arc::new(line()))),
            entropy: Arc::new(SeededEntropy::new(entropy)),
            names: Arc::new(WorldNames(self.shared.clone())),
            listen: Rc::new(line()),
            audit: self.audit.clone(),
        };
        // No simulated network has an API server on it.
        let guarded = Vec::new();
        let namespace = if self.is_second { SECOND_NAMESPACE } else { NAMESPACE }.to_owned();
        let job_accounts = Vec::new();
        let settings = Settings {
            namespace,
            process,
            host_node: None,
            job_accounts,
            probe_every: Some(PROBE_EVERY),
            guarded,
            plugin_cache: None,
        };
        let metrics = Rc::new(Metrics::new());
        Controller::new(
            seams,
            settings,
            self.plugins.of_another_process(),
            metrics,
            Readiness::new(),
        )
    }
}

#[cfg(test)]
mod cloud;
