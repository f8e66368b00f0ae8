//! One call of one fence method: secrets, grants, the device's turn, the sandbox.
//!
//! What comes back is an [`End`]: what is *known*, not what was hoped for. A call that
//! may have acted and has no outcome is indeterminate here already; nothing above can
//! read it as anything else.

pub mod circuit_breaker;
pub mod credentials;
pub mod device_mutex;
pub mod last_errors;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use node_remedy_api::plan::{Grant, Method};
use node_remedy_config::plan::PluginFacts;
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_decide::{Action, End, Failure, FailureKind, PlugState, Time, VIEW_AGE_MAX};
use node_remedy_record::called::Called;
use node_remedy_runtime::clock::Clock;
use node_remedy_runtime::cluster::Cluster;
use node_remedy_runtime::leader_election::{LEASE_DURATION, LeaseGate};
use node_remedy_runtime::text::chain;
use node_remedy_sandbox as sandbox;
use node_remedy_sandbox::{
    Call, CallReport, Cancel, Cidr, ExchangeRecord, Executor, Names, NotLeader, Seams, SendGate,
    Verdict,
};
use node_remedy_store::authorize::Allowed;
use node_remedy_store::store::Plugins;
use node_remedy_store::{authorize, describe};

pub use crate::calls::circuit_breaker::Breaker;
pub use crate::calls::device_mutex::DeviceMutexes;
pub use crate::calls::last_errors::LastErrors;
/// After begin-effect a call needs this much of the lease: the longest a device takes to
/// act on a command that it received.
const EFFECT_MS: u64 = 1_000;

/// A call during which the lease was too short is made again so often.
const LAPSES_MAX: u32 = 8;

/// What a call is asked to do.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The method, as the incident's plan has it.
    pub method: Method,
    /// Where its plugin may connect.
    pub grants: Vec<Grant>,
    /// What to do.
    pub action: Action,
    /// The same for every attempt at one effect; unique in the cluster.
    pub operation: String,
    /// From 1.
    pub attempt: u32,
    /// The longest it may take; the manifest may shorten it.
    pub deadline: Duration,
    /// For status: poll in place until the plug reads this.
    pub until: Option<PlugState>,
    /// For off and reset: when what allows them was read.
    pub allowed_at: Option<Time>,
    /// For off and reset: the UUID of the machine, as the device reported it last.
    pub system_uuid: Option<String>,
}

impl CallRequest {
    /// A read of no operation.
    pub fn read(method: &Method, grants: &[Grant]) -> Self {
        Self {
            method: method.clone(),
            grants: grants.to_vec(),
            action: Action::Status,
            operation: "ready".to_owned(),
            attempt: 1,
            deadline: Duration::from_secs(1),
            until: None,
            allowed_at: None,
            system_uuid: None,
        }
    }
}

/// Lets bytes out while the lease holds, and effects while their intent stands recorded.
pub struct RecordedGate {
    lease: Arc<LeaseGate>,
    intents: Mutex<BTreeMap<String, Intent>>,
    /// How often the lease was too short.
    lapses: AtomicU64,
}

/// Whether an operation may still begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intent {
    Stands,
    Withdrawn,
}

/// An intent for as long as its call is under way.
struct Noted<'a> {
    gate: &'a RecordedGate,
    operation: &'a str,
}

impl Noted<'_> {
    fn is_withdrawn(&self) -> bool {
        self.gate.intents().get(self.operation) == Some(&Intent::Withdrawn)
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.gate.intents().remove(self.operation);
    }
}

impl RecordedGate {
    /// A gate over the lease's.
    pub fn new(lease: Arc<LeaseGate>) -> Arc<Self> {
        Arc::new(Self { lease, intents: Mutex::default(), lapses: AtomicU64::new(0) })
    }

    fn intents(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Intent>> {
        self.intents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets an operation begin whose intent is recorded.
    fn note<'a>(&'a self, operation: &'a str) -> Noted<'a> {
        self.intents().insert(operation.to_owned(), Intent::Stands);
        Noted { gate: self, operation }
    }

    /// Lets an operation begin no more; one that has begun goes on.
    pub fn withdraw(&self, operation: &str) {
        if let Some(intent) = self.intents().get_mut(operation) {
            *intent = Intent::Withdrawn;
        }
    }

    fn lapses(&self) -> u64 {
        self.lapses.load(Ordering::SeqCst)
    }

    /// Whether the lease is long enough for an effect again, soon.
    async fn opens_again(&self) -> bool {
        tokio::time::timeout(LEASE_DURATION, self.lease.opens_for(EFFECT_MS)).await.is_ok()
    }
}

impl SendGate for RecordedGate {
    fn check(&self) -> Result<(), NotLeader> {
        if self.lease.remaining_ms() > 0 {
            return Ok(());
        }
        self.lapses.fetch_add(1, Ordering::SeqCst);
        Err(NotLeader)
    }

    fn begin(&self, operation_id: &str) -> Result<(), String> {
        match self.intents().get(operation_id) {
            Some(Intent::Stands) => {}
            Some(Intent::Withdrawn) => {
                return Err("it was withdrawn: its node is back or gone, a person said no, or others fell silent".to_owned());
            }
            None => return Err(format!("the intent of {operation_id} is not recorded")),
        }
        let left = self.lease.remaining_ms();
        if left < EFFECT_MS {
            self.lapses.fetch_add(1, Ordering::SeqCst);
            return Err(format!(
                "the leader lease has {left} ms left, an effect needs {EFFECT_MS}"
            ));
        }
        Ok(())
    }
}

/// Lets bytes out, whoever leads, and nothing begin.
struct ReadsOnly;

impl SendGate for ReadsOnly {
    fn check(&self) -> Result<(), NotLeader> {
        Ok(())
    }

    fn begin(&self, _: &str) -> Result<(), String> {
        Err("a probe changes nothing".to_owned())
    }
}

/// Makes calls.
pub struct Calls<C> {
    /// Where Secrets stand.
    pub cluster: C,
    /// The controller's own namespace.
    pub namespace: String,
    /// What is called.
    pub plugins: Plugins,
    /// Where it runs.
    pub executor: Executor,
    /// What it reaches the world through; its gate is [`Calls::gate`].
    pub seams: Seams,
    /// The same gate, to note intents in.
    pub gate: Arc<RecordedGate>,
    /// How host names become addresses.
    pub names: Arc<dyn Names>,
    /// Addresses that only their exact grant opens.
    pub guarded: Vec<Cidr>,
    /// Whether what goes over the wire is kept.
    pub exchange_record: ExchangeRecord,
    /// Against which the age of evidence is told.
    pub clock: Clock,
    /// Whose turn it is at each device.
    pub device_mutexes: DeviceMutexes,
    /// Which plugins are left alone for a while.
    pub breaker: Breaker,
    /// How the plugins from outside failed last.
    pub last_errors: LastErrors,
}

impl<C: Cluster> Calls<C> {
    /// Calls a method whose intent is recorded; `cancel` asks it to stop.
    pub async fn call(&self, asked: &CallRequest, cancel: Cancel) -> Called {
        let noted = self.gate.note(&asked.operation);
        if asked.method.is_network_fence() {
            return Box::pin(self.network_fence(asked, || noted.is_withdrawn())).await;
        }
        let (plugin, call) = match self.prepare(asked, cancel).await {
            Ok(ready) => ready,
            Err(why) => return not_made(&why),
        };
        let turn = self.device_mutexes.at(&asked.method, &call.grants);
        let _turn = turn.lock().await;
        let mut tries_left = LAPSES_MAX;
        loop {
            // The last moment at which nothing was sent yet. A session that takes long is bounded by the
            // call's own deadline, and withdrawn once the node is well: a slow BMC must not make its
            // machine unfenceable.
            if is_out_of_date(asked, self.clock.now()) {
                return held_back();
            }
            let lapses = self.gate.lapses();
            let (plugin, call, seams) = (plugin.clone(), call.clone(), self.seams.clone());
            let report = match self.run(&asked.method, plugin, call, seams).await {
                Ok(report) => report,
                Err(why) => return left_alone(why),
            };
            let (mut end, detail) = (end_of(&report), detail_of(&report));
            if let End::NotAttempted(failure) = &mut end {
                if noted.is_withdrawn() {
                    failure.kind = FailureKind::Cancelled;
                } else if self.gate.lapses() > lapses && tries_left > 0 {
                    // Our own lease was too short, which says nothing of the device.
                    tries_left -= 1;
                    if self.gate.opens_again().await {
                        continue;
                    }
                }
            }
            return Called { end, detail, report: Some(report) };
        }
    }

    /// Asks a method's device whether it answers, whoever leads: nothing may begin. `None` where somebody
    /// else has its turn there.
    pub async fn probe(&self, method: &Method, grants: &[Grant]) -> Option<End> {
        let asked = CallRequest {
            action: Action::Monitor,
            operation: "probe".to_owned(),
            deadline: PROBE_MAX,
            ..CallRequest::read(method, grants)
        };
        let (plugin, call) = match self.prepare(&asked, Cancel::new()).await {
            Ok(ready) => ready,
            Err(why) => return Some(not_made(&why).end),
        };
        let turn = self.device_mutexes.at(method, &call.grants);
        let _turn = turn.try_lock().ok()?;
        let seams = Seams { gate: Arc::new(ReadsOnly), ..self.seams.clone() };
        Some(match self.run(method, plugin, call, seams).await {
            Ok(report) => end_of(&report),
            Err(why) => left_alone(why).end,
        })
    }

    /// Calls a plugin, unless it is left alone for now: then why.
    async fn run(
        &self,
        method: &Method,
        plugin: Arc<sandbox::Plugin>,
        call: Call,
        seams: Seams,
    ) -> Result<CallReport, String> {
        let (digest, device) = (plugin.digest().to_string(), &method.device);
        let action = call.request.action;
        if let Some(why) = self.breaker.refuse(&digest, device, action, self.clock.now()) {
            return Err(why);
        }
        let report = self.executor.run(plugin, call, seams).await;
        let now = self.clock.now();
        self.breaker.note(&digest, device, &report, now);
        if let Some(name) = method.plugin.as_deref().filter(|name| !Plugins::is_builtin(name)) {
            self.last_errors.note(name, &digest, device, &report, now);
        }
        Ok(report)
    }

    /// Whether a method could be called at all: plugin, parameters, grants, secrets.
    pub async fn ready(&self, method: &Method, grants: &[Grant]) -> Result<(), String> {
        if method.is_network_fence() {
            return self.network_fence_ready().await;
        }
        if let Some(name) = method.plugin.as_deref().filter(|name| Plugins::is_watcher(name)) {
            return describe::watcher_ready(&self.plugins, name, method, grants);
        }
        let asked = CallRequest::read(method, grants);
        self.prepare(&asked, Cancel::new()).await.map(|_| ())
    }

    /// What a plugin says of itself, so that an incident decides by the very plugin that it calls.
    pub fn facts_of(&self, name: &str) -> Result<PluginFacts, String> {
        describe::facts_of(&self.plugins, name)
    }

    async fn prepare(
        &self,
        asked: &CallRequest,
        cancel: Cancel,
    ) -> Result<(Arc<sandbox::Plugin>, Call), String> {
        let method = &asked.method;
        let name = method.plugin.as_deref().unwrap_or_default();
        let begun_with = method.facts.as_ref().map(|facts| facts.digest.as_str());
        let plugin = self.plugins.find(name, begun_with).map_err(|error| chain(&error))?;
        let manifest = plugin.manifest();
        let parameters =
            manifest.parameters.fill(&method.parameters).map_err(|error| chain(&error))?;
        let set = Some(&method.parameters);
        let allowed = Allowed { grants: &asked.grants, guarded: &self.guarded, set };
        let grants = authorize::decide(name, manifest, &parameters, allowed, &*self.names).await?;
        let credentials = self.secrets(manifest, &method.credentials).await?;
        authorize::check_reveal(manifest, &grants, credentials.keys())?;
        let request = sandbox::Request {
            action: action(asked.action),
            plug: method.plug.clone(),
            parameters,
            operation_id: asked.operation.clone(),
            attempt: asked.attempt,
            deadline: asked.deadline,
            until: asked.until.and_then(plug_state),
            resume: None,
            system_uuid: asked.system_uuid.clone(),
        };
        let exchange_record = self.exchange_record;
        let call = Call { request, grants, credentials, cancel, exchange_record };
        Ok((plugin.clone(), call))
    }
}

/// Nothing left this process, and nothing is known of the device: a Secret that cannot be read now is
/// no refusal of its.
fn not_made(why: &str) -> Called {
    let failure = Failure { kind: FailureKind::NotMade, detail: why.to_owned() };
    Called { end: End::NotAttempted(failure), detail: why.to_owned(), report: None }
}

/// Nothing was sent. It is a try as any other that failed: an incident that waited for its plugin, with one of two
/// feeds off, would wait for a day.
fn left_alone(why: String) -> Called {
    let failure = Failure { kind: FailureKind::Busy, detail: why.clone() };
    Called { end: End::NotAttempted(failure), detail: why, report: None }
}

/// A1: whether what is to be cut may have come back since anybody looked. Recording the intent,
/// reading a Secret and waiting for a device's turn may take long.
pub(super) fn is_out_of_date(asked: &CallRequest, now: Time) -> bool {
    let is_cut = match asked.action {
        Action::Off | Action::Reset => true,
        Action::On | Action::Status | Action::Monitor => false,
    };
    let is_old = asked.allowed_at.is_none_or(|at| now.since(at) > VIEW_AGE_MAX);
    guard(Bug::OldLeave, is_cut && is_old)
}

/// A call that is not made, because what it was decided on had grown old.
pub fn held_back() -> Called {
    let detail = "held back: what it was decided on had grown old; looking again";
    let failure = Failure { kind: FailureKind::Cancelled, detail: detail.to_owned() };
    Called { end: End::NotAttempted(failure), detail: detail.to_owned(), report: None }
}

/// What is known after a call.
fn end_of(report: &CallReport) -> End {
    match report.verdict() {
        Verdict::Outcome(outcome) => {
            let (state, identity) = (state_of(outcome), outcome.identity.clone());
            End::Succeeded { state, identity }
        }
        Verdict::FailedBeforeEffect(failure) => End::NotAttempted(Failure {
            kind: kind_of(failure.kind),
            detail: failure.detail.clone(),
        }),
        Verdict::Indeterminate(_) => End::Indeterminate,
    }
}

/// The contract's word for an action.
pub fn word(asked: Action) -> &'static str {
    action(asked).as_str()
}

fn detail_of(report: &CallReport) -> String {
    match report.verdict() {
        Verdict::Outcome(outcome) => outcome.detail.clone(),
        Verdict::FailedBeforeEffect(failure) | Verdict::Indeterminate(failure) => {
            failure.detail.clone()
        }
    }
}

fn action(action: Action) -> sandbox::Action {
    match action {
        Action::Status => sandbox::Action::Status,
        Action::Off => sandbox::Action::Off,
        Action::On => sandbox::Action::On,
        Action::Reset => sandbox::Action::Reset,
        Action::Monitor => sandbox::Action::Monitor,
    }
}

fn plug_state(state: PlugState) -> Option<sandbox::PlugState> {
    match state {
        PlugState::On => Some(sandbox::PlugState::On),
        PlugState::Off => Some(sandbox::PlugState::Off),
        PlugState::Transitioning => Some(sandbox::PlugState::Transitioning),
        PlugState::Unknown | PlugState::Terminated => None,
    }
}

fn state_of(outcome: &sandbox::Outcome) -> PlugState {
    match outcome.state {
        sandbox::PlugState::On => PlugState::On,
        sandbox::PlugState::Off if outcome.is_terminated() => PlugState::Terminated,
        sandbox::PlugState::Off => PlugState::Off,
        sandbox::PlugState::Transitioning => PlugState::Transitioning,
        sandbox::PlugState::Unknown => PlugState::Unknown,
    }
}

/// What a plugin's word for a failure means.
pub fn kind_of(kind: sandbox::FailureKind) -> FailureKind {
    match kind {
        sandbox::FailureKind::Unreachable => FailureKind::Unreachable,
        sandbox::FailureKind::Timeout => FailureKind::Timeout,
        sandbox::FailureKind::Unauthenticated => FailureKind::Unauthenticated,
        sandbox::FailureKind::Denied => FailureKind::Denied,
        sandbox::FailureKind::Throttled => FailureKind::Throttled,
        sandbox::FailureKind::Unsupported => FailureKind::Unsupported,
        sandbox::FailureKind::BadParameters => FailureKind::BadParameters,
        sandbox::FailureKind::NoSuchPlug => FailureKind::NoSuchPlug,
        sandbox::FailureKind::Busy => FailureKind::Busy,
        sandbox::FailureKind::Protocol => FailureKind::Protocol,
        sandbox::FailureKind::Device => FailureKind::Device,
        // Whether a call is held back, and so was no try, is never for a plugin to say.
        sandbox::FailureKind::Cancelled | sandbox::FailureKind::Other => FailureKind::Other,
    }
}

/// A device that takes longer does not answer.
pub const PROBE_MAX: Duration = Duration::from_secs(10);
