//! What every part of the process shares.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use node_remedy_act::calls::Calls;
use node_remedy_act::node_lock::NodeLocks;
use node_remedy_api::nodefence::{FencedNode, NodeFence};
use node_remedy_api::plan::Method;
use node_remedy_api::policy::Symptom;
use node_remedy_decide::{End, MethodIndex, Operation, Phase, Plan, Span, State, Time};
use node_remedy_observe::caches::Caches;
use node_remedy_observe::claims::Claims;
use node_remedy_observe::config::{Config, Readout};
use node_remedy_observe::kdump::Dumps;
use node_remedy_observe::storage_leases::StorageLeases;
use node_remedy_observe::unproven::UnprovenOffs;
use node_remedy_record::audit::Audit;
use node_remedy_registry::cache::Cache;
use node_remedy_runtime::clock::Clock;
use node_remedy_runtime::cluster::Cluster;
use node_remedy_runtime::events::{About, Note, tell};
use node_remedy_runtime::leader_election::LeaseGate;
use node_remedy_runtime::metrics::{CallLabels, Metrics, StateLabel};
use node_remedy_runtime::udp::Listen;
use node_remedy_sandbox as sandbox;
use node_remedy_sandbox::{Cidr, Executor, Names};
use node_remedy_store::state::ExternalPlugins;
use tokio::sync::Notify;

use crate::device_health::{Paths, Reach};

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
pub struct Context<C> {
    /// The cluster.
    pub cluster: C,
    /// Time.
    pub clock: Clock,
    /// The caches.
    pub caches: Rc<Caches>,
    /// The configuration in force.
    pub config: RefCell<Config>,
    /// Told whenever it was read again: who listens.
    pub configured: Notify,
    /// The same: who loads plugins.
    pub plugins_configured: Notify,
    /// What became of the plugins from outside.
    pub external_plugins: ExternalPlugins,
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
    pub claims: RefCell<Option<(Time, Rc<Claims>)>>,
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
    /// Numbers the Events of this process.
    pub notes: Cell<u64>,
}

/// So old may be what the plans of all nodes claim.
pub const CLAIMS_AGE_MAX: Span = Span::seconds(30);

impl<C: Cluster> Context<C> {
    /// Reads the configuration again; says what became of each object.
    pub fn reconfigure(&self) -> Vec<Readout> {
        let (config, readouts) = {
            let before = self.config.borrow();
            Config::read(&self.caches, &before)
        };
        self.caches.events.ask(self.event_reasons(&config));
        self.config.replace(config);
        self.claims.take();
        self.configured.notify_one();
        self.plugins_configured.notify_one();
        readouts
    }

    /// The reasons of Events that thresholds ask for, those of open incidents among them.
    pub(crate) fn event_reasons(&self, config: &Config) -> BTreeSet<String> {
        let nodefences = self.caches.nodefences.all();
        let open = nodefences
            .values()
            .map(|kept| &kept.0)
            .filter(|one| node_remedy_observe::nodefences::is_open(one));
        let symptoms =
            open.filter_map(|one| Symptom::of_record(one.spec.trigger.symptom.as_ref()?));
        let of_incidents = symptoms.flat_map(|symptom| symptom.event_reasons());
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
        let claims = Rc::new(self.config.borrow().claims(self.caches.nodes.all().values()));
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
        let action = node_remedy_act::calls::word(operation.action);
        let labels = CallLabels { plugin: plugin.unwrap_or_default(), action, result };
        self.metrics.calls.get_or_create(&labels).inc();
    }
}
