//! Small worlds for this crate's own tests: three healthy nodes in virtual time, and a whole
//! run in which an [`Interceptor`] before the API server sees, delays or denies what is asked.

#![expect(clippy::unwrap_used, reason = "tests alone use it, and may fail")]

use std::future::Future;
use std::path::Path;
use std::rc::Rc;

use node_remedy_decide::Time;
use node_remedy_world::scenario::START;
use node_remedy_world::{Scenario, World};

use crate as simulate;
use crate::Part;
use crate::recorder::Collector;
use crate::run::Played;
use node_remedy_model_cluster::client::ModelCluster;
use node_remedy_model_cluster::driver::{Shared, drive};
pub use node_remedy_model_cluster::interceptor::{Interceptor, Open, Request};
use node_remedy_record::audit::Audit;
use node_remedy_runtime::clock::Clock;
use node_remedy_runtime::virtual_clock::VirtualClock;

const QUIET: &str = "
title: nothing happens
seed: 1
duration: 10m
nodes:
- { name: node, count: 3 }
faults: []
expect:
- { fact: nodeCreated, times: 3 }
";

/// What a test gets.
pub struct Bench {
    /// The simulated cluster.
    pub shared: Shared,
    /// The clock that code under test is given.
    pub clock: Clock,
    true_clock: VirtualClock,
}

impl Bench {
    /// A client of the world's API server.
    pub fn client(&self, name: &str) -> ModelCluster {
        ModelCluster::new(self.shared.clone(), name)
    }

    /// The clocks of another machine.
    pub fn machine(&self) -> VirtualClock {
        self.true_clock.of_machine()
    }

    /// The true time.
    pub fn now(&self) -> Time {
        self.true_clock.now()
    }
}

/// Runs a test in virtual time, in a world in which nothing happens.
pub fn in_quiet_world<F: Future<Output = ()>>(test: impl FnOnce(Bench) -> F) {
    in_world(QUIET, test);
}

/// Runs a test in virtual time, in the world of this scenario, without node-remedy.
pub fn in_world<F: Future<Output = ()>>(scenario: &str, test: impl FnOnce(Bench) -> F) {
    let scenario = Scenario::parse("test", scenario, &|file| Err(file.to_owned())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let virtual_clock = VirtualClock::start_at(START);
        let shared = Shared::new(World::new(&scenario), virtual_clock.clone());
        let driven = tokio::task::spawn_local({
            let shared = shared.clone();
            async move { drive(shared).await }
        });
        let clock = Clock::simulated(virtual_clock.clone());
        test(Bench { shared, clock, true_clock: virtual_clock }).await;
        driven.abort();
    });
}

/// The scenario of a file in `examples/scenarios`, changed as a test needs it.
pub fn example(file: &str, change: impl FnOnce(String) -> String) -> Scenario {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios"));
    let text = change(std::fs::read_to_string(folder.join(file)).unwrap());
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|e| e.to_string());
    Scenario::parse(file, &text, &read).unwrap()
}

/// Plays a run with `interceptor` between the controller and the API server.
pub fn play_behind<D: Interceptor>(scenario: &Scenario, interceptor: &Rc<D>) -> Played {
    simulate::play_behind(scenario, Part::With, |_| interceptor.clone()).unwrap()
}

/// Plays a run whose controllers tell `audit`, and nobody else.
pub fn play_audited(scenario: &Scenario, audit: &Rc<dyn Audit>) {
    let collector = Collector::new();
    simulate::play_audited(scenario, Part::With, &|_| Rc::new(Open), &collector, audit).unwrap();
}

/// A run with a slow BMC that, once it was told `off`, says yes and does nothing: its machine is
/// switched on by hand, and lost again later.
pub fn run_of_a_failed_on() -> Played {
    let faults = "faults:
- { at: 1s, bmcFault: { node: node-a, fault: off_after, value: 20000 } }
- { at: 85s, bmcFault: { node: node-a, fault: stuck } }
- { at: 10m, powerOnByHand: node-a }
- { at: 11m, bmcFault: { node: node-a, fault: none } }
- { at: 25m, kubeletStops: node-a }";
    let change =
        |text: String| text.replace("duration: 10m", "duration: 30m").replace("faults:", faults);
    play_behind(&example("lost-node.yaml", change), &Rc::new(Open))
}
