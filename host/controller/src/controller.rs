//! The process: reflectors, leadership, and while it leads a desk at which nodes are
//! looked over and incidents are worked on.
//!
//! Everything runs on one thread, so nothing here locks; plugins have threads of their
//! own. The seams come in as [`Seams`]; nothing below this file knows which side
//! of them it is on.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use node_remedy_api::nodefence::{FencedNode, NodeFence};
use node_remedy_api::plan::Method;
use node_remedy_api::policy::Sign;
use node_remedy_decide::{End, MethodIndex, Operation, Phase, Plan, Span, State, Time};
use node_remedy_sandbox as sandbox;
use node_remedy_sandbox::{Cidr, Executor, Names};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use crate::act::budget;
use crate::act::calls::{Breaker, Calls, LastErrors, RecordedGate, Turns};
use crate::act::node_lease::NodeLocks;
use crate::admin::Readiness;
use crate::clock::Clock;
use crate::cluster::{Cluster, ClusterError, Read, Scope};
use crate::desk::Desk;
use crate::device_network::Reach;
use crate::lease::{Leadership, LeaseGate};
use crate::listen::Listen;
use crate::observe::Mirror;
use crate::observe::claims::Claims;
use crate::observe::config::{Config, Readout};
use crate::observe::dumps::{self, Dumps};
use crate::observe::storage::StorageLeases;
use crate::observe::store::Changed;
use crate::observe::unproven::UnprovenOffs;
use crate::observe::view;
use crate::outside::cache::Cache;
use crate::outside::{self, Outside};
use crate::pinning;
use crate::plugins::Plugins;
use crate::probing::{Paths, probe_devices, stand_in};
use crate::record::audit::Audit;
use crate::record::events::{About, Note, tell};
use crate::record::metrics::{CallLabels, Metrics, StateLabel};
use crate::second_opinion::ask_silent_nodes;

/// How often the API server is asked for its time: the freshness of our own view.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// After handing over, so that a standby comes first.
const STAND_BACK: Duration = Duration::from_secs(5);
/// How often the caches are asked whether they are filled yet.
const SYNC_LOOK: Duration = Duration::from_millis(50);

/// The seams, and who is told.
pub struct Seams<C> {
    /// The cluster.
    pub cluster: C,
    /// Time.
    pub clock: Clock,
    /// Where plugins run.
    pub executor: Executor,
    /// Where bytes go.
    pub net: Arc<dyn sandbox::net::NetBackend>,
    /// Where randomness comes from.
    pub entropy: Arc<dyn sandbox::Entropy>,
    /// How host names become addresses.
    pub names: Arc<dyn Names>,
    /// Where datagrams come in that nobody asked for.
    pub listen: Rc<dyn Listen>,
    /// Who is told everything.
    pub audit: Rc<dyn Audit>,
}

/// What a process is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The controller's own namespace.
    pub namespace: String,
    /// This replica's name and a random part: no two processes share it.
    pub process: String,
    /// The node that this process runs on, where it runs in the cluster.
    pub host_node: Option<String>,
    /// The service accounts that remedies' Jobs may run as, beside `default`.
    pub job_accounts: Vec<String>,
    /// How often every device is asked whether it answers; `None`: never.
    pub probe_every: Option<Duration>,
    /// The API server's addresses and this process's own: no range of a grant opens them.
    pub guarded: Vec<Cidr>,
    /// Where plugins that were fetched from registries are kept.
    pub plugin_cache: Option<Cache>,
}

/// What every part of the process shares.
pub struct Parts<C> {
    /// The cluster.
    pub cluster: C,
    /// Time.
    pub clock: Clock,
    /// The caches.
    pub mirror: Rc<Mirror>,
    /// The configuration in force.
    pub config: RefCell<Config>,
    /// Told whenever it was read again: who listens.
    pub configured: Notify,
    /// The same: who loads plugins.
    pub plugins_configured: Notify,
    /// What became of the plugins from outside.
    pub outside: Outside,
    /// Kernel dumps that this process hears.
    pub dumps: Dumps,
    /// Plugin calls.
    pub calls: Calls<C>,
    /// Whether bytes may be sent.
    pub lease: Arc<LeaseGate>,
    /// What is known of nodes' storage Leases.
    pub storage: StorageLeases,
    /// Which devices answer.
    pub paths: Paths,
    /// What the plans of all nodes claim, and when that was asked.
    claims: RefCell<Option<(Time, Rc<Claims>)>>,
    /// Offs of this process that no proof has followed yet.
    pub unproven: UnprovenOffs,
    /// Whether devices answer at all.
    pub reach: Reach,
    /// The locks that other remediators honour.
    pub locks: NodeLocks<C>,
    /// Metrics.
    pub metrics: Rc<Metrics>,
    /// Who is told everything.
    pub audit: Rc<dyn Audit>,
    /// This process's name.
    pub process: String,
    /// The node that this process runs on, where it runs in the cluster.
    pub host_node: Option<String>,
    /// The service accounts that remedies' Jobs may run as, beside `default`.
    pub job_accounts: Vec<String>,
    /// An incident asks that another replica lead.
    pub hand_over: Notify,
    /// An incident was given no slot: whether all are held by somebody is looked at.
    pub slots_refused: Cell<bool>,
    /// When the API server last dropped a part of a new NodeFence.
    pub pruned_at: Cell<Option<Time>>,
    /// NodeFences whose record the API server refuses or drops a part of, where people were told so.
    pub refused_records: RefCell<BTreeSet<String>>,
    notes: Cell<u64>,
}

/// So old may be what the plans of all nodes claim.
const CLAIMS_AGE_MAX: Span = Span::seconds(30);

impl<C: Cluster> Parts<C> {
    /// Reads the configuration again; says what became of each object.
    pub fn reconfigure(&self) -> Vec<Readout> {
        let (config, readouts) = {
            let before = self.config.borrow();
            Config::read(&self.mirror, &before)
        };
        self.mirror.events.ask(self.event_reasons(&config));
        self.config.replace(config);
        self.claims.take();
        self.configured.notify_one();
        self.plugins_configured.notify_one();
        readouts
    }

    /// The reasons of Events that thresholds ask for, those of open incidents among them.
    fn event_reasons(&self, config: &Config) -> BTreeSet<String> {
        let nodefences = self.mirror.nodefences.all();
        let open = nodefences.values().map(|kept| &kept.0).filter(|one| view::is_open(one));
        let signs = open.filter_map(|one| Sign::of_record(one.spec.trigger.sign.as_ref()?));
        let of_incidents = signs.flat_map(|sign| sign.event_reasons());
        config.event_reasons().into_iter().chain(of_incidents).collect()
    }

    /// What the plans of all nodes claim. Asking thousands of nodes takes its time, so it may be a moment old.
    pub fn claims(&self) -> Rc<Claims> {
        let now = self.clock.now();
        let mut kept = self.claims.borrow_mut();
        let young = kept.as_ref().filter(|(at, _)| at.is_within(CLAIMS_AGE_MAX, now));
        if let Some((_, claims)) = young {
            return claims.clone();
        }
        let claims = Rc::new(self.config.borrow().claims(self.mirror.nodes.all().values()));
        *kept = Some((now, claims.clone()));
        claims
    }

    /// Whether this process leads, as far as it knows.
    pub fn leads(&self) -> bool {
        self.lease.remaining_ms() > 0
    }

    /// Writes an Event about a node.
    pub async fn tell(&self, node: &FencedNode, note: &Note) {
        self.notes.set(self.notes.get().wrapping_add(1));
        let about = About {
            node: &node.name,
            uid: &node.uid,
            identity: &self.process,
            number: self.notes.get(),
        };
        tell(&self.cluster, &self.clock, &about, note).await;
    }

    /// The plan's method at `index`, with parameters and credentials.
    pub fn method_of(&self, nodefence: &NodeFence, index: MethodIndex) -> Option<Method> {
        nodefence.spec.plan.methods.get(index).cloned()
    }

    /// Counts an entry into the state of this phase.
    pub fn count_transition(&self, phase: Phase) {
        let state = match phase.state() {
            State::New => "New",
            State::Running => "Running",
            State::Done => "Done",
            State::Final => "Final",
            State::Error => "Error",
        };
        self.metrics.transitions.get_or_create(&StateLabel { state }).inc();
    }

    /// Counts a device call by its end.
    pub fn count_call(&self, plan: &Plan, operation: &Operation, end: &End) {
        let plugin = plan.method(operation.method).map(|method| method.device_kind.clone());
        let result = match end {
            End::Succeeded { .. } => "ok",
            End::Failed(_) => "failed",
            End::NotAttempted(_) => "not-attempted",
            End::Indeterminate => "indeterminate",
        };
        let action = crate::act::calls::word(operation.action);
        let labels = CallLabels { plugin: plugin.unwrap_or_default(), action, result };
        self.metrics.calls.get_or_create(&labels).inc();
    }
}

/// A controller that is set up and not running yet.
pub struct Controller<C: Cluster> {
    parts: Rc<Parts<C>>,
    readiness: Rc<Readiness>,
    settings: Settings,
    listen: Rc<dyn Listen>,
    changes: mpsc::UnboundedReceiver<Changed>,
}

impl<C: Cluster> Controller<C> {
    /// Puts the parts together.
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
            turns: Turns::default(),
            breaker: Breaker::default(),
            last_errors: LastErrors::default(),
        };
        let parts = Rc::new(Parts {
            storage: StorageLeases::default(),
            paths: Paths::default(),
            claims: RefCell::default(),
            unproven: UnprovenOffs::default(),
            reach: Reach::new(settings.probe_every),
            locks: NodeLocks::new(seams.cluster.clone(), seams.clock.clone()),
            cluster: seams.cluster,
            clock: seams.clock,
            mirror: Mirror::new(&sender),
            config: RefCell::default(),
            configured: Notify::new(),
            plugins_configured: Notify::new(),
            outside: Outside::caching_in(settings.plugin_cache.clone()),
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
        Self { parts, readiness, settings, listen: seams.listen, changes }
    }

    /// Works until `stop` is done, then gives the lease up.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let parts = self.parts.clone();
        let mut leadership = Leadership::new(
            parts.cluster.clone(),
            parts.clock.clone(),
            self.settings.namespace.clone(),
            self.settings.process.clone(),
            parts.lease.clone(),
        );
        tokio::select! {
            biased;
            () = stop => {}
            () = self.work(&mut leadership) => {}
        }
        parts.metrics.leader.set(0);
        leadership.release().await;
    }

    async fn work(&mut self, leadership: &mut Leadership<C>) {
        let parts = self.parts.clone();
        self.readiness.set_missing(parts.mirror.missing());
        // What is seen is stamped, so the time comes first.
        while !ask_the_time(&parts).await {
            tokio::time::sleep(SYNC_LOOK).await;
        }
        let mut tasks = JoinSet::new();
        parts.mirror.start(&parts.cluster, &parts.clock, &self.settings.namespace, &mut tasks);
        tasks.spawn_local(probe(parts, self.readiness.clone()));
        self.lead_again_and_again(leadership).await;
    }

    async fn lead_again_and_again(&mut self, leadership: &mut Leadership<C>) {
        loop {
            let missing = self.parts.mirror.missing();
            self.readiness.set_missing(missing.clone());
            if missing.is_empty() {
                break;
            }
            tokio::time::sleep(SYNC_LOOK).await;
        }
        tracing::info!("the caches are filled");
        let mut listening = JoinSet::new();
        let plugins = self.parts.clone();
        listening.spawn_local(dumps::listen(self.parts.clone(), self.listen.clone()));
        listening.spawn_local(async move { match outside::keep(plugins).await {} });
        listening.spawn_local(ask_silent_nodes(self.parts.clone()));
        listening.spawn_local(pinning::keep(self.parts.clone()));
        if let Some(every) = self.settings.probe_every {
            listening.spawn_local(probe_devices(self.parts.clone(), every));
            listening.spawn_local(stand_in(self.parts.clone()));
        }
        loop {
            let cluster = self.parts.cluster.clone();
            let epoch = tokio::select! {
                biased;
                epoch = leadership.acquire(|| largest_epoch(cluster.clone())) => epoch,
                never = stand_by(&self.parts, &mut self.changes) => match never {},
            };
            tracing::info!(epoch, process = self.settings.process, "leading");
            self.parts.metrics.leader.set(1);
            let desk = Desk::new(self.parts.clone(), epoch);
            tokio::select! {
                biased;
                () = leadership.keep() => tracing::warn!(epoch, "lost the leader lease"),
                () = desk.work(&mut self.changes) => {}
                () = self.parts.hand_over.notified() => {
                    tracing::info!(epoch, "handing leadership over");
                    leadership.release().await;
                    tokio::time::sleep(STAND_BACK).await;
                }
            }
            self.parts.metrics.leader.set(0);
        }
    }
}

/// Keeps the configuration in force while another process leads, and tells nobody: who stands by
/// listens, too.
async fn stand_by<C: Cluster>(
    parts: &Parts<C>,
    changes: &mut mpsc::UnboundedReceiver<Changed>,
) -> Infallible {
    parts.reconfigure();
    loop {
        let Some(change) = changes.recv().await else { return std::future::pending().await };
        let mut configures = change.configures();
        while let Ok(change) = changes.try_recv() {
            configures |= change.configures();
        }
        if configures {
            parts.reconfigure();
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
async fn probe<C: Cluster>(parts: Rc<Parts<C>>, readiness: Rc<Readiness>) {
    loop {
        ask_the_time(&parts).await;
        if parts.mirror.missing().is_empty() {
            let lost = parts.mirror.not_followed().into_iter();
            readiness
                .set_missing(lost.map(|what| format!("its watch is broken of {what}")).collect());
        }
        tokio::time::sleep(PROBE_EVERY).await;
    }
}

/// Whether the server said what time it is there.
async fn ask_the_time<C: Cluster>(parts: &Parts<C>) -> bool {
    match parts.cluster.server_time().await {
        Ok(time) => {
            let clock = &parts.clock;
            let was_doubtful = clock.is_doubtful();
            clock.correct(time);
            parts.mirror.hear(clock.now());
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
