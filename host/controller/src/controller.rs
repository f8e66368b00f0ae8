//! The process: reflectors, leadership, and while it leads the loop in which nodes are
//! looked over and incidents are worked on.
//!
//! Everything runs on one thread, so nothing here locks; plugins have threads of their
//! own. The seams come in as [`Seams`]; nothing below this file knows which side
//! of them it is on.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use node_remedy_act::budget;
use node_remedy_act::calls::circuit_breaker::Breaker;
use node_remedy_act::calls::device_mutex::DeviceMutexes;
use node_remedy_act::calls::last_errors::LastErrors;
use node_remedy_act::calls::{Calls, RecordedGate};
use node_remedy_act::node_lock::NodeLocks;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_context::context::{Context, Seams, Settings};
use node_remedy_context::device_health::{Paths, Reach};
use node_remedy_loader as external_plugins;
use node_remedy_observe::caches::Caches;
use node_remedy_observe::kdump::Dumps;
use node_remedy_observe::storage_leases::StorageLeases;
use node_remedy_observe::store::Changed;
use node_remedy_observe::unproven::UnprovenOffs;
use node_remedy_probe::round::{probe_devices, stand_in};
use node_remedy_runtime::admin::Readiness;
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{Cluster, ClusterError, Scope};
use node_remedy_runtime::leader_election::{Leadership, LeaseGate};
use node_remedy_runtime::metrics::Metrics;
use node_remedy_runtime::udp::Listen;
use node_remedy_sandbox as sandbox;
use node_remedy_store::state::ExternalPlugins;
use node_remedy_store::store::Plugins;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use crate::leader_loop::LeaderLoop;
use crate::pinning;
use crate::second_opinion::ask_silent_nodes;

/// How often the API server is asked for its time: the freshness of our own view.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// After handing over, so that a standby comes first.
const STAND_BACK: Duration = Duration::from_secs(5);
/// How often the caches are asked whether they are filled yet.
const SYNC_LOOK: Duration = Duration::from_millis(50);

/// A controller that is set up and not running yet.
pub struct Controller<C: Cluster> {
    context: Rc<Context<C>>,
    readiness: Rc<Readiness>,
    settings: Settings,
    listen: Rc<dyn Listen>,
    changes: mpsc::UnboundedReceiver<Changed>,
}

impl<C: Cluster> Controller<C> {
    /// Puts the context together.
    pub fn new(
        seams: Seams<C>,
        settings: Settings,
        plugins: Plugins,
        metrics: Rc<Metrics>,
        readiness: Rc<Readiness>,
    ) -> Self {
        let (sender, changes) = mpsc::unbounded_channel();
        let lease = LeaseGate::new(seams.clock.boot_clock());
        let gate = RecordedGate::new(lease.clone());
        let calls = Calls {
            cluster: seams.cluster.clone(),
            namespace: settings.namespace.clone(),
            plugins,
            executor: seams.executor,
            seams: sandbox::Seams {
                net: seams.net,
                clock: seams.clock.call_clock(),
                entropy: seams.entropy,
                gate: gate.clone(),
                sessions: Arc::default(),
            },
            gate,
            names: seams.names,
            guarded: settings.guarded.clone(),
            exchange_record: seams.audit.exchange_record(),
            clock: seams.clock.clone(),
            device_mutexes: DeviceMutexes::default(),
            breaker: Breaker::default(),
            last_errors: LastErrors::default(),
        };
        let context = Rc::new(Context {
            storage: StorageLeases::default(),
            paths: Paths::default(),
            claims: RefCell::default(),
            unproven: UnprovenOffs::default(),
            reach: Reach::new(settings.probe_every),
            locks: NodeLocks::new(seams.cluster.clone(), seams.clock.clone()),
            cluster: seams.cluster,
            clock: seams.clock,
            caches: Caches::new(&sender),
            config: RefCell::default(),
            configured: Notify::new(),
            plugins_configured: Notify::new(),
            external_plugins: ExternalPlugins::caching_in(settings.plugin_cache.clone()),
            dumps: Dumps::default(),
            calls,
            lease,
            metrics,
            audit: seams.audit,
            process: settings.process.clone(),
            host_node: settings.host_node.clone(),
            job_accounts: settings.job_accounts.clone(),
            hand_over: Notify::new(),
            slots_refused: Cell::default(),
            pruned_at: Cell::new(None),
            refused_records: RefCell::default(),
            notes: Cell::new(0),
        });
        Self { context, readiness, settings, listen: seams.listen, changes }
    }

    /// Works until `stop` is done, then gives the lease up.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let context = self.context.clone();
        let mut leadership = Leadership::new(
            context.cluster.clone(),
            context.clock.clone(),
            self.settings.namespace.clone(),
            self.settings.process.clone(),
            context.lease.clone(),
        );
        tokio::select! {
            biased;
            () = stop => {}
            () = self.work(&mut leadership) => {}
        }
        context.metrics.leader.set(0);
        leadership.release().await;
    }

    async fn work(&mut self, leadership: &mut Leadership<C>) {
        let context = self.context.clone();
        self.readiness.set_missing(context.caches.missing());
        // What is seen is stamped, so the time comes first.
        while !ask_the_time(&context).await {
            tokio::time::sleep(SYNC_LOOK).await;
        }
        let mut tasks = JoinSet::new();
        context.caches.start(
            &context.cluster,
            &context.clock,
            &self.settings.namespace,
            &mut tasks,
        );
        tasks.spawn_local(probe(context, self.readiness.clone()));
        self.lead_again_and_again(leadership).await;
    }

    async fn lead_again_and_again(&mut self, leadership: &mut Leadership<C>) {
        loop {
            let missing = self.context.caches.missing();
            self.readiness.set_missing(missing.clone());
            if missing.is_empty() {
                break;
            }
            tokio::time::sleep(SYNC_LOOK).await;
        }
        tracing::info!("the caches are filled");
        let mut listening = JoinSet::new();
        let plugins = self.context.clone();
        listening.spawn_local(node_remedy_probe::kdump_listener::listen(
            self.context.clone(),
            self.listen.clone(),
        ));
        listening.spawn_local(async move { match external_plugins::keep(plugins).await {} });
        listening.spawn_local(ask_silent_nodes(self.context.clone()));
        listening.spawn_local(pinning::keep(self.context.clone()));
        if let Some(every) = self.settings.probe_every {
            listening.spawn_local(probe_devices(self.context.clone(), every));
            listening.spawn_local(stand_in(self.context.clone()));
        }
        loop {
            let cluster = self.context.cluster.clone();
            let epoch = tokio::select! {
                biased;
                epoch = leadership.acquire(|| largest_epoch(cluster.clone())) => epoch,
                never = stand_by(&self.context, &mut self.changes) => match never {},
            };
            tracing::info!(epoch, process = self.settings.process, "leading");
            self.context.metrics.leader.set(1);
            let leader_loop = LeaderLoop::new(self.context.clone(), epoch);
            tokio::select! {
                biased;
                () = leadership.keep() => tracing::warn!(epoch, "lost the leader lease"),
                () = leader_loop.work(&mut self.changes) => {}
                () = self.context.hand_over.notified() => {
                    tracing::info!(epoch, "handing leadership over");
                    leadership.release().await;
                    tokio::time::sleep(STAND_BACK).await;
                }
            }
            self.context.metrics.leader.set(0);
        }
    }
}

/// Keeps the configuration in force while another process leads, and tells nobody: who stands by
/// listens, too.
async fn stand_by<C: Cluster>(
    context: &Context<C>,
    changes: &mut mpsc::UnboundedReceiver<Changed>,
) -> Infallible {
    context.reconfigure();
    loop {
        let Some(change) = changes.recv().await else { return std::future::pending().await };
        let mut configures = change.configures();
        while let Ok(change) = changes.try_recv() {
            configures |= change.configures();
        }
        if configures {
            context.reconfigure();
        }
    }
}

/// The largest epoch outside the Lease: in the budget and in unfinished records.
async fn largest_epoch<C: Cluster>(cluster: C) -> Result<u64, ClusterError> {
    let budget = budget::epoch(&cluster).await?;
    let mut largest = budget;
    let keep = |read: Read<NodeFence>| {
        let epoch = match &read {
            Ok(nodefence) => nodefence.status.as_ref().map(|status| status.epoch),
            Err(unread) => unread.number("/status/epoch"),
        };
        largest = largest.max(epoch.unwrap_or_default());
    };
    cluster.list_each(&Scope::all(), keep).await?;
    Ok(largest)
}

/// Asks for the server's time, for ever: whether it answers, and what time it is there. Says what it does not
/// tell of any more.
async fn probe<C: Cluster>(context: Rc<Context<C>>, readiness: Rc<Readiness>) {
    loop {
        ask_the_time(&context).await;
        if context.caches.missing().is_empty() {
            let lost = context.caches.not_followed().into_iter();
            readiness
                .set_missing(lost.map(|what| format!("its watch is broken of {what}")).collect());
        }
        tokio::time::sleep(PROBE_EVERY).await;
    }
}

/// Whether the server said what time it is there.
async fn ask_the_time<C: Cluster>(context: &Context<C>) -> bool {
    match context.cluster.server_time().await {
        Ok(time) => {
            let clock = &context.clock;
            let was_doubtful = clock.is_doubtful();
            clock.correct(time);
            context.caches.hear(clock.now());
            match (was_doubtful, clock.is_doubtful()) {
                (false, true) => tracing::warn!("the API server's clock and ours disagree"),
                (true, false) => tracing::info!("the API server's clock and ours agree again"),
                (false, false) | (true, true) => {}
            }
            true
        }
        Err(error) => {
            tracing::debug!(%error, "the API server did not answer a probe");
            false
        }
    }
}
