//! One call in plain types: what is asked, what came back, and what a caller may conclude. The
//! conclusion is [`CallReport::verdict`]: a call that may have acted and has no outcome is
//! *indeterminate*, whatever its error says. Not here: making the call ([`crate::plugin`]).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cancel::Cancel;
use crate::grants::Grants;
use crate::secret::Secret;
use crate::transcript::Transcript;
use crate::types::{
    Action, Effect, Exchange, ExchangeRecord, Failure, LogLine, Outcome, PlugInfo, PlugState,
};

/// What is asked of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub action: Action,
    /// To which outlet, port, system or instance; empty where the device is the node.
    pub plug: String,
    /// The method's parameters; the sandbox checks them and fills in defaults.
    pub parameters: BTreeMap<String, String>,
    /// The same for every attempt at one effect.
    pub operation_id: String,
    /// Which attempt this is.
    pub attempt: u32,
    /// How long it may take; the manifest's deadline bounds it.
    pub deadline: Duration,
    /// For status: poll in place until the plug reads this.
    pub until: Option<PlugState>,
    /// What an earlier attempt left by `checkpoint`.
    pub resume: Option<Vec<u8>>,
    /// For a change: the UUID that an earlier `status` reported. Another machine is not touched.
    pub system_uuid: Option<String>,
}

/// A request with everything it may use.
#[derive(Clone)]
pub struct Call {
    /// What is asked.
    pub request: Request,
    /// What it may reach.
    pub grants: Grants,
    /// The secrets behind the plugin's names for them. One that is granted and missing here
    /// answers `no-such-credential`.
    pub credentials: BTreeMap<String, Secret>,
    /// Asks it to stop.
    pub cancel: Cancel,
    /// Whether what goes over the wire is kept.
    pub exchange_record: ExchangeRecord,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// No instruction of the plugin ran.
    NotStarted,
    /// The plugin returned.
    Returned,
    /// The plugin trapped.
    Trapped,
    /// The host stopped it at a limit.
    Cut,
    /// The host stopped it at its deadline.
    Deadline,
    /// The host stopped it because it was asked to.
    Cancelled,
}

/// All that is known of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallReport {
    /// What was asked.
    pub action: Action,
    /// What the plugin, or the sandbox in its place, answered. Conclude from
    /// [`CallReport::verdict`], not from this.
    pub result: Result<Outcome, Failure>,
    /// The plugs of the device, where these were asked for.
    pub plugs: Vec<PlugInfo>,
    /// Whether it passed its commit point.
    pub effect: Effect,
    /// How it ended.
    pub ended: Ended,
    /// Whether its answer contradicts what the host saw it do.
    pub lied: bool,
    /// What it left for the next attempt.
    pub checkpoint: Option<Vec<u8>>,
    /// What went over the wire.
    pub exchanges: Vec<Exchange>,
    /// Exchanges beyond what is kept.
    pub exchanges_dropped: u32,
    /// All that the plugin asked of the network and was answered, where that was to be kept.
    pub transcript: Transcript,
    /// What it said.
    pub log: Vec<LogLine>,
    /// Log lines beyond what is kept.
    pub log_dropped: u32,
    /// How long it took.
    pub elapsed_ms: u64,
    /// What it computed, in fuel.
    pub fuel: u64,
}

/// What a caller may conclude from a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The plugin answered.
    Outcome(&'a Outcome),
    /// It failed before its commit point: nothing was attempted.
    FailedBeforeEffect(&'a Failure),
    /// The device may have acted or may act yet. The only next call is `status`.
    Indeterminate(&'a Failure),
}

impl CallReport {
    /// What may be concluded.
    pub fn verdict(&self) -> Verdict<'_> {
        match (&self.result, self.effect) {
            (Ok(outcome), _) => Verdict::Outcome(outcome),
            // Who lied about the answer is not believed about the commit point either.
            (Err(failure), _) if self.lied => Verdict::Indeterminate(failure),
            (Err(failure), Effect::NotBegun) => Verdict::FailedBeforeEffect(failure),
            (Err(failure), Effect::Begun) => Verdict::Indeterminate(failure),
        }
    }

    /// The report of a call that never started.
    pub(crate) fn not_started(action: Action, failure: Failure) -> Self {
        Self {
            action,
            result: Err(failure),
            plugs: Vec::new(),
            effect: Effect::NotBegun,
            ended: Ended::NotStarted,
            lied: false,
            checkpoint: None,
            exchanges: Vec::new(),
            exchanges_dropped: 0,
            transcript: Transcript::default(),
            log: Vec::new(),
            log_dropped: 0,
            elapsed_ms: 0,
            fuel: 0,
        }
    }
}
