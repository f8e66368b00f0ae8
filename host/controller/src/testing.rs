//! A small world for this crate's own tests: three healthy nodes, virtual time.

use std::future::Future;

use node_remedy_world::scenario::START;
use node_remedy_world::{Scenario, World};

use crate::clock::{Clock, VirtualClock};
use crate::simulate::cluster::ModelCluster;
use crate::simulate::shared::{Shared, drive};

const QUIET: &str = "
title: nothing happens
seed: 1
duration: 10m
nodes:
- { name: node, count: 3 }
happenings: []
expect:
- { fact: nodeCreated, times: 3 }
";

/// What a test gets.
pub(crate) struct Bench {
    pub(crate) shared: Shared,
    pub(crate) virtual_clock: VirtualClock,
    pub(crate) clock: Clock,
}

impl Bench {
    /// A client of the world's API server.
    pub(crate) fn client(&self, name: &str) -> ModelCluster {
        ModelCluster::new(self.shared.clone(), self.virtual_clock.clone(), name)
    }
}

/// Runs a test in virtual time, in a world in which nothing happens.
pub(crate) fn in_quiet_world<F: Future<Output = ()>>(test: impl FnOnce(Bench) -> F) {
    let scenario = Scenario::parse("quiet", QUIET, &|file| Err(file.to_owned())).unwrap();
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
        test(Bench { shared, virtual_clock, clock }).await;
        driven.abort();
    });
}
