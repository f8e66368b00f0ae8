//! One call of one plugin: a fresh store and instance, raced against its deadline and its cancel,
//! and dropped. Whatever the guest does, the caller gets a report. Not here: on which thread
//! ([`crate::executor`]), what the guest can reach ([`crate::state`]).

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use node_remedy_decide::bug::{Bug, guard};
use wasmtime::{Engine, Store, Trap, UpdateDeadline};

use crate::about::About;
use crate::bindings::FenceMethodPre;
use crate::bindings::remedy::RemedyPluginPre;
use crate::call::{Call, CallReport, Ended, Request};
use crate::call_slots::CallSlots;
use crate::cancel::Cancel;
use crate::digest::Digest;
use crate::grants::Grants;
use crate::honesty::Seen;
use crate::limits::{
    CANCEL_GRACE, DETAIL_BYTES_MAX, FAREWELL_TIME, HOSTCALL_BYTES_MAX, LOGOUT_TIME, TRIAL_FUEL,
    TRIAL_WALL,
};
use crate::manifest::Manifest;
use crate::meter::Excess;
use crate::plugin_limits::PluginLimits;
use crate::seams::Seams;
use crate::state::CallState;
use crate::types::{Action, Cut, Failure, FailureKind, Outcome, PlugInfo, PlugState};
use crate::{convert, honesty, trial};

/// A loaded plugin.
pub struct Plugin {
    engine: Engine,
    pre: Pre,
    manifest: Manifest,
    digest: Digest,
    limits: PluginLimits,
    call_slots: CallSlots,
}

/// A component, ready to be instantiated, of the world that its manifest's kind names.
pub(crate) enum Pre {
    /// A fence method: it is called.
    Method(FenceMethodPre<CallState>),
    /// A remedy: it is asked (see [`crate::remedy`]).
    Remedy(RemedyPluginPre<CallState>),
}

/// What stops a guest that computes without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Fuel: the same in every run.
    Fuel,
    /// Fuel, and epochs that hand the thread back every tick.
    FuelAndEpochs,
}

/// How the guest's own part of a call came to its end.
enum End {
    Guest(Result<Result<Answered, Failure>, wasmtime::Error>),
    Deadline,
    Cancelled,
}

/// What a call computed, and what it might have.
#[derive(Clone, Copy)]
struct Fuel {
    spent: u64,
    most: u64,
}

/// What a guest answered.
enum Answered {
    Outcome(Outcome),
    Plugs(Vec<PlugInfo>),
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.manifest.name)
            .field("version", &self.manifest.version)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

impl Plugin {
    pub(crate) fn new(engine: Engine, pre: Pre, about: About) -> Self {
        let About { manifest, digest, limits } = about;
        let call_slots = CallSlots::new(limits.calls_of(manifest.memory_bytes));
        Self { engine, pre, manifest, digest, limits, call_slots }
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The digest of its component.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    pub(crate) fn pre(&self) -> &Pre {
        &self.pre
    }

    /// What it may use.
    pub fn limits(&self) -> &PluginLimits {
        &self.limits
    }

    /// So many of its calls are under way at a time; fewer than its limit where each may take much memory.
    pub fn calls_at_once(&self) -> u32 {
        self.limits.calls_of(self.manifest.memory_bytes)
    }

    /// Whose turn it is among its calls.
    pub(crate) fn call_slots(&self) -> &CallSlots {
        &self.call_slots
    }

    /// Makes one call, on this very task. A guest that computes without end holds the thread until
    /// its fuel is spent: in production, go through [`crate::Executor`].
    pub async fn call(&self, call: Call, seams: &Seams) -> CallReport {
        self.call_at(Pace::Fuel, call, seams).await
    }

    pub(crate) async fn call_at(&self, pace: Pace, mut call: Call, seams: &Seams) -> CallReport {
        let action = call.request.action;
        let refuse = |kind, detail: String| {
            CallReport::not_started(action, Failure::of_sandbox(kind, detail))
        };
        if !self.manifest.can(action) {
            let (name, action) = (&self.manifest.name, action.as_str());
            let detail = format!("plugin {name} cannot do {action}");
            return refuse(FailureKind::Unsupported, detail);
        }
        if call.cancel.is_asked() {
            return refuse(FailureKind::Cancelled, "the call was cancelled before it began".into());
        }
        match self.manifest.parameters.fill(&call.request.parameters) {
            Ok(filled) => call.request.parameters = filled,
            Err(error) => return refuse(FailureKind::BadParameters, error.to_string()),
        }
        let Pre::Method(pre) = &self.pre else {
            return refuse(
                FailureKind::Unsupported,
                format!("{} is no method", self.manifest.name),
            );
        };
        let seed = match seams.entropy.seed() {
            Ok(seed) => seed,
            Err(error) => return refuse(FailureKind::Other, error.to_string()),
        };
        let longest = Duration::from_secs(self.manifest.deadline_seconds.into());
        let deadline = call.request.deadline.min(longest).min(self.limits.deadline);
        let request = call.request.clone();
        let cancel = call.cancel.clone();
        let mut state = CallState::new(call, seed, seams.clone());
        state.component = self.digest().to_string();
        let fuel_max = self.limits.fuel;
        let mut store = match self.store(state, fuel_max, pace) {
            Ok(store) => store,
            Err(error) => return refuse(FailureKind::Other, format!("{error:#}")),
        };
        let end = Self::race(pre, &mut store, &request, deadline, &cancel, seams).await;
        let fuel = fuel_max.saturating_sub(store.get_fuel().unwrap_or(0));
        // The instance is gone from here on; what it left open is closed.
        let mut state = store.into_data();
        let farewells = state.say_farewells();
        tokio::select! {
            biased;
            () = farewells => {}
            () = seams.clock.sleep(FAREWELL_TIME) => {}
        }
        tokio::select! {
            biased;
            () = state.log_out() => {}
            () = seams.clock.sleep(LOGOUT_TIME) => {}
        }
        report(state, end, Fuel { spent: fuel, most: fuel_max })
    }

    /// Runs the guest until it returns, its deadline passes, or its cancel's grace is over.
    async fn race(
        pre: &FenceMethodPre<CallState>,
        store: &mut Store<CallState>,
        request: &Request,
        deadline: Duration,
        cancel: &Cancel,
        seams: &Seams,
    ) -> End {
        let run = async {
            let method = pre.instantiate_async(&mut *store).await?;
            let method = method.node_remedy_fence_method();
            if request.action == Action::Plugs {
                let request = convert::plugs_request(request, deadline);
                let result = method.call_plugs(&mut *store, &request).await?;
                let plugs = |plugs: Vec<_>| plugs.into_iter().map(convert::plug).collect();
                return Ok(result
                    .map(|listed| Answered::Plugs(plugs(listed)))
                    .map_err(convert::failure));
            }
            let request = convert::request(request, deadline);
            let result = method.call_run(&mut *store, &request).await?;
            Ok(result
                .map(|outcome| Answered::Outcome(convert::outcome(outcome)))
                .map_err(convert::failure))
        };
        let cancelled = async {
            cancel.asked().await;
            seams.clock.sleep(CANCEL_GRACE).await;
        };
        let mut run = pin!(run);
        // The guest last: what it does in the moment of its deadline comes too late.
        tokio::select! {
            biased;
            () = seams.clock.sleep(deadline) => End::Deadline,
            () = cancelled => End::Cancelled,
            result = &mut run => End::Guest(result),
        }
    }

    pub(crate) fn store(
        &self,
        mut state: CallState,
        fuel: u64,
        pace: Pace,
    ) -> wasmtime::Result<Store<CallState>> {
        state.meter.bound(&self.limits);
        state.meter.bound_memory(self.manifest.memory_bytes);
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.meter);
        store.set_fuel(fuel)?;
        store.set_hostcall_fuel(HOSTCALL_BYTES_MAX);
        match pace {
            // Epochs pass on this engine while other calls run; this one must not notice.
            Pace::Fuel => store.set_epoch_deadline(u64::MAX / 2),
            Pace::FuelAndEpochs => {
                store.set_epoch_deadline(1);
                store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
            }
        }
        Ok(store)
    }

    /// Instantiates once, with nothing granted and little fuel: a start function that works, or
    /// memory that does not fit, shows now and not at three in the morning.
    pub(crate) fn try_out(&self) -> Result<(), String> {
        let attempt = async {
            let seams = trial::seams();
            let call = trial::call(Grants::default());
            let state = CallState::new(call, [0; 32], seams);
            let mut store =
                self.store(state, TRIAL_FUEL, Pace::Fuel).map_err(|error| format!("{error:#}"))?;
            let instance = async {
                match &self.pre {
                    Pre::Method(pre) => pre.instantiate_async(&mut store).await.map(|_| ()),
                    Pre::Remedy(pre) => pre.instantiate_async(&mut store).await.map(|_| ()),
                }
            };
            match tokio::time::timeout(TRIAL_WALL, instance).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(why(&error, TRIAL_FUEL)),
                Err(_) => Err("it waits in its start function".to_owned()),
            }
        };
        trial::on_a_thread_of_its_own(attempt)
    }
}

/// What is left of a call when its guest is gone.
fn report(mut state: CallState, end: End, fuel: Fuel) -> CallReport {
    state.keep_stderr();
    let effect = state.record.effect;
    let mut plugs = Vec::new();
    let (ended, result) = match end {
        End::Deadline => {
            let detail = "the call did not end by its deadline";
            (Ended::Deadline, Err(Failure::of_sandbox(FailureKind::Timeout, detail)))
        }
        End::Cancelled => {
            let detail = "the call was cancelled and did not end in its grace";
            (Ended::Cancelled, Err(Failure::of_sandbox(FailureKind::Cancelled, detail)))
        }
        End::Guest(Err(error)) => stopped(&error, fuel.most),
        End::Guest(Ok(Err(mut failure))) => {
            if let Some(refusal) = state.record.tls_refusal {
                failure.detail = format!("{}: {refusal}", failure.detail);
            }
            if let Some(refusal) = &state.record.login_refusal {
                failure.detail = format!("{}: {refusal}", failure.detail);
            }
            if let Some(refusal) = &state.record.grant_refusal {
                failure.detail = format!("{}: {refusal}", failure.detail);
            }
            (Ended::Returned, Err(failure))
        }
        End::Guest(Ok(Ok(Answered::Outcome(outcome)))) => (Ended::Returned, Ok(outcome)),
        End::Guest(Ok(Ok(Answered::Plugs(listed)))) => {
            let detail = format!("{} plugs", listed.len());
            plugs = listed;
            let (state, identity, extra) = (PlugState::Unknown, Vec::new(), Vec::new());
            (Ended::Returned, Ok(Outcome { state, identity, detail, extra }))
        }
    };
    let lie = state.record.lie.or_else(|| {
        let seen = Seen {
            action: state.action,
            effect,
            heard: state.record.heard,
            has_endpoints: !state.grants.endpoints().is_empty(),
        };
        result.as_ref().ok().and_then(|outcome| honesty::contradiction(&seen, outcome))
    });
    let result = match lie {
        None => result,
        Some(lie) => {
            let detail = format!("the plugin is not to be believed: {lie}");
            Err(Failure::of_sandbox(FailureKind::Protocol, detail))
        }
    };
    let elapsed_ms = state.elapsed_ms();
    let CallState { action, secrets, record, .. } = state;
    let (exchanges, exchanges_dropped) = record.exchanges.into_kept();
    CallReport {
        action,
        result: match result {
            Ok(outcome) => Ok(convert::clean_outcome(&outcome, &secrets)),
            Err(failure) => Err(convert::clean_failure(&failure, &secrets)),
        },
        plugs: if lie.is_some() { Vec::new() } else { convert::clean_plugs(&plugs, &secrets) },
        effect,
        ended,
        lied: lie.is_some(),
        // It is stored where many may read.
        checkpoint: record
            .checkpoint
            .filter(|state| !guard(Bug::CheckpointUnredacted, secrets.are_in(state))),
        exchanges,
        exchanges_dropped,
        transcript: record.transcript,
        log: record.log,
        log_dropped: record.log_dropped,
        elapsed_ms,
        fuel: fuel.spent,
    }
}

/// What became of a guest that did not return.
fn stopped(error: &wasmtime::Error, fuel_max: u64) -> (Ended, Result<Outcome, Failure>) {
    let by_host = error.is::<Cut>()
        || error.is::<Excess>()
        || matches!(error.downcast_ref(), Some(Trap::OutOfFuel));
    let reason = why(error, fuel_max);
    let (ended, detail) = if by_host {
        (Ended::Cut, reason)
    } else {
        (Ended::Trapped, format!("the plugin trapped: {reason}"))
    };
    (ended, Err(Failure::of_sandbox(FailureKind::Other, detail)))
}

/// The innermost reason, which names the limit or the trap; what is around it names addresses in
/// the guest. `fuel_max` is what it was given.
fn why(error: &wasmtime::Error, fuel_max: u64) -> String {
    let mut reason = error.root_cause().to_string();
    if matches!(error.downcast_ref(), Some(Trap::OutOfFuel)) {
        reason = format!("the plugin computed more than {fuel_max} units of fuel in one call");
    }
    reason.truncate(reason.floor_char_boundary(DETAIL_BYTES_MAX));
    reason
}
