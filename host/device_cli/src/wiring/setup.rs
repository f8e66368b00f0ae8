//! What a trial works with: the cluster as it is watched, the node's plan as the controller makes it, and
//! the plan's methods in their sandbox. Nothing here decides whether anything is switched.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use node_remedy_act::calls::circuit_breaker::Breaker;
use node_remedy_act::calls::device_mutex::DeviceMutexes;
use node_remedy_act::calls::last_errors::LastErrors;
use node_remedy_act::calls::{CallRequest, Calls, RecordedGate};
use node_remedy_act::node_lock::NodeLocks;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::plan::{Method, NodePlan};
use node_remedy_config::plan::snapshot;
use node_remedy_decide::{Action, End, PlugState, Time};
use node_remedy_observe::caches::{Caches, NODE_LEASES, lease_key};
use node_remedy_observe::config::Config;
use node_remedy_observe::nodefences::is_open;
use node_remedy_observe::pods::PrunedPod;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_observe::store::Changed;
use node_remedy_observe::{device_quarantine, vetoes};
use node_remedy_record::called::Called;
use node_remedy_runtime::clock::Clock;
use node_remedy_runtime::cluster::kube::KubeCluster;
use node_remedy_runtime::cluster::{At, Cluster, Scope};
use node_remedy_runtime::leader_election::LeaseGate;
use node_remedy_runtime::protected_addresses;
use node_remedy_sandbox::net::{NetBackend, Sockets};
use node_remedy_sandbox::{
    Cancel, Cidr, Entropy, ExchangeRecord, Executor, Names, OpenGate, Sandbox, Seams,
    SystemEntropy, SystemNames,
};
use node_remedy_store::store::Plugins;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::wiring::preflight::Looked;
use crate::wiring::record::PAUSE;

/// Silence is a matter of time: it is looked for this often, whatever changes.
const TICK: Duration = Duration::from_secs(1);
/// Whoever may not list something never has it.
const LISTED_WITHIN: Duration = Duration::from_secs(30);
/// The longest that one call of a device may take.
const CALL_MAX: Duration = Duration::from_secs(30);

/// Through what the world is reached, for real or in virtual time.
pub(super) struct Ways {
    /// Time.
    pub(super) clock: Clock,
    /// What is called.
    pub(super) plugins: Plugins,
    /// Where it runs.
    pub(super) executor: Executor,
    /// Where bytes go.
    pub(super) net: Arc<dyn NetBackend>,
    /// Where randomness comes from.
    pub(super) entropy: Arc<dyn Entropy>,
    /// How host names become addresses.
    pub(super) names: Arc<dyn Names>,
    /// Addresses that only their exact grant opens.
    pub(super) guarded: Vec<Cidr>,
}

impl Ways {
    /// Those of this machine.
    pub(super) async fn of_system(cluster: &KubeCluster) -> anyhow::Result<Self> {
        let sandbox = Sandbox::new().context("failed to start the sandbox")?;
        Ok(Self {
            clock: Clock::system(),
            executor: Executor::threads(&sandbox, 1).context("failed to start a thread")?,
            plugins: Plugins::new(sandbox),
            net: Arc::new(Sockets),
            entropy: Arc::new(SystemEntropy),
            names: Arc::new(SystemNames),
            guarded: protected_addresses::addresses(cluster.server(), &[], &SystemNames).await?,
        })
    }
}

/// What a trial works with.
pub(super) struct Bench<C> {
    /// The cluster.
    pub(super) cluster: C,
    /// Time.
    pub clock: Clock,
    /// The cluster as it is watched.
    pub(super) mirror: Rc<Caches>,
    /// The configuration in force.
    pub(super) config: Config,
    /// Whether somebody wants this to end.
    pub(super) stop: watch::Receiver<bool>,
    /// The locks that other remediators honour.
    pub(super) locks: NodeLocks<C>,
    calls: Calls<C>,
    called: std::cell::Cell<u32>,
    changes: mpsc::UnboundedReceiver<Changed>,
}

impl<C: Cluster> Bench<C> {
    /// Reads the cluster, and watches it from then on, for as long as `watching` lives.
    pub(super) async fn set_up(
        cluster: C,
        namespace: &str,
        ways: Ways,
        stop: watch::Receiver<bool>,
        watching: &mut JoinSet<()>,
    ) -> anyhow::Result<Self> {
        let clock = ways.clock;
        let calls = Calls {
            cluster: cluster.clone(),
            namespace: namespace.to_owned(),
            plugins: ways.plugins,
            executor: ways.executor,
            seams: Seams {
                net: ways.net,
                clock: clock.call_clock(),
                entropy: ways.entropy,
                // It is a person who says what may begin, and no leader.
                gate: Arc::new(OpenGate),
                sessions: Arc::default(),
            },
            gate: RecordedGate::new(LeaseGate::new(clock.boot_clock())),
            names: ways.names,
            guarded: ways.guarded,
            exchange_record: ExchangeRecord::Off,
            clock: clock.clone(),
            device_mutexes: DeviceMutexes::default(),
            breaker: Breaker::default(),
            last_errors: LastErrors::default(),
        };
        let (changed, changes) = mpsc::unbounded_channel();
        let mirror = Caches::new(&changed);
        mirror.start(&cluster, &clock, namespace, watching);
        let called = std::cell::Cell::new(0);
        let locks = NodeLocks::new(cluster.clone(), clock.clone());
        let config = Config::default();
        let mut bench =
            Self { cluster, clock, mirror, config, stop, locks, calls, called, changes };
        let listed = async {
            while !bench.mirror.missing().is_empty() {
                bench.next().await;
            }
        };
        if tokio::time::timeout(LISTED_WITHIN, listed).await.is_err() {
            bail!("{}; may you list them?", bench.mirror.missing().join(", "));
        }
        for name in bench.mirror.plugins.all().keys() {
            let why = "verify-wiring has no component of it, and calls built-in plugins alone";
            bench.calls.plugins.note_refused(name, why);
        }
        bench.config = Config::read(&bench.mirror, &Config::default()).0;
        Ok(bench)
    }

    /// Lets time pass, until something changed or a second is over.
    pub(super) async fn next(&mut self) {
        // Whether it changed or not: who waits looks again.
        let _ = tokio::time::timeout(TICK, self.changes.recv()).await;
        while self.changes.try_recv().is_ok() {}
    }

    /// Whether somebody wants this to end.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// The node as it was last seen.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub(super) fn node(&self, name: &str) -> anyhow::Result<PrunedNode> {
        let found = self.mirror.nodes.find(name);
        found.with_context(|| format!("there is no node {name:?}; see: kubectl get nodes"))
    }

    /// The node's plan, completed with what plugins say.
    ///
    /// # Errors
    /// Where the node could not be fenced, and why.
    pub(super) fn plan(&self, node: &PrunedNode) -> anyhow::Result<NodePlan> {
        let plan = self.config.plan_for(node).map_err(anyhow::Error::msg)?;
        let wiring = self.config.wiring_of(&node.name);
        Ok(snapshot(&plan, &node.fenced(), &wiring, |plugin| self.calls.facts_of(plugin))?)
    }

    /// Reads all that may speak against losing the node, from the API server itself.
    ///
    /// # Errors
    /// Where something could not be read: then nobody knows.
    pub(super) async fn look(
        &self,
        name: &str,
        plan: &NodePlan,
        allow_pods: bool,
    ) -> anyhow::Result<Looked> {
        let node = self.cluster.get::<Node>(At::cluster(name)).await?;
        let node =
            node.and_then(PrunedNode::of).with_context(|| format!("node {name:?} is gone"))?;
        let pods = Scope::all().matching("spec.nodeName", name);
        let pods = self.cluster.list::<Pod>(&pods).await?.items;
        let mut said = vetoes::read(&self.cluster).await;
        if let Ok(pauses) = &mut said.pauses {
            pauses.retain(|pause| pause.name_any() != PAUSE);
        }
        let now = self.clock.now();
        let policy = self.config.policy_for(&node).map_err(anyhow::Error::msg)?;
        let limits = policy.map(|policy| policy.gate).unwrap_or_default();
        let mut vetoes = vetoes::of_node(&said, &node, &self.mirror.changes, &limits, &self.clock);
        vetoes.pauses.retain(|pause| pause.until.is_none_or(|until| now < until));
        let all_that_carry =
            || self.mirror.nodes.all().values().filter(|node| node.is_control_plane()).count();
        let control_plane = node.is_control_plane().then(all_that_carry);
        Ok(Looked {
            vetoes,
            pods: pods.into_iter().filter_map(PrunedPod::of).collect(),
            allow_pods,
            incidents: self.incidents().await?,
            closed: device_quarantine::device_of(plan, &self.mirror, None),
            held_by: self.locks.held_by_other(name).await?,
            control_plane,
            node,
        })
    }

    /// The names of the incidents that go on.
    async fn incidents(&self) -> anyhow::Result<Vec<String>> {
        let all = self.cluster.list::<NodeFence>(&Scope::all()).await?.items;
        Ok(all.iter().filter(|one| is_open(one)).map(ResourceExt::name_any).collect())
    }

    /// Whether what is known of these nodes' Leases is what the API server says now. A watch that broke
    /// makes everybody silent.
    pub(super) async fn is_up_to_date(&self, nodes: &[String]) -> bool {
        for node in nodes {
            let Ok(read) = self.cluster.get::<Lease>(At::within(NODE_LEASES, node)).await else {
                return false;
            };
            let read = read.and_then(|lease| lease.spec?.renew_time).map(|at| at.0.to_string());
            let known = self.mirror.leases.find(&lease_key(node)).map(|lease| lease.renewed);
            if read.unwrap_or_default() != known.unwrap_or_default() {
                return false;
            }
        }
        true
    }

    /// One call of a method; `until` polls in place.
    pub(super) async fn call(
        &self,
        method: &Method,
        plan: &NodePlan,
        action: Action,
        until: Option<PlugState>,
    ) -> Called {
        self.called.set(self.called.get().saturating_add(1));
        let asked = CallRequest {
            method: method.clone(),
            grants: plan.grants.clone(),
            action,
            operation: format!("verify-wiring/{}", self.called.get()),
            attempt: 1,
            deadline: CALL_MAX,
            until,
            allowed_at: Some(self.clock.now()),
            system_uuid: None,
        };
        self.calls.call(&asked, Cancel::new()).await
    }

    /// What a plug reads, or why nobody knows.
    pub(super) async fn read(
        &self,
        method: &Method,
        plan: &NodePlan,
        until: Option<PlugState>,
    ) -> Result<PlugState, String> {
        let called = self.call(method, plan, Action::Status, until).await;
        match called.end {
            End::Succeeded { state, .. } => Ok(state),
            End::Failed(_) | End::NotAttempted(_) | End::Indeterminate => Err(called.detail),
        }
    }

    /// Now.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }
}
