//! One call in plain types: what is asked, what came back, and what a caller may conclude. The
//! conclusion is [`CallReport::verdict`]: a call that may have acted and has no outcome is
//! *indeterminate*, whatever its error says. Not here: making the call ([`crate::plugin`]).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cancel::Cancel;
use crate::grants::Grants;
use crate::secret::Secret;
use crate::transcript::Transcript;

/// The extra field by which a plugin says so ("The manifest of a plugin", `terminated`).
const TERMINATED: &str = "terminated";

/// What a method is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Read the plug, change nothing.
    Status,
    /// Power off, or cut.
    Off,
    /// Power on, or restore.
    On,
    /// One hard reset; never proof by itself.
    Reset,
    /// Is the path to this plug sound, without effect.
    Monitor,
    /// List the plugs of the device; it has no state to read.
    Plugs,
}

impl Action {
    /// Whether it may change anything, and so may `begin-effect`.
    pub fn has_effect(self) -> bool {
        match self {
            Self::Off | Self::On | Self::Reset => true,
            Self::Status | Self::Monitor | Self::Plugs => false,
        }
    }

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Off => "off",
            Self::On => "on",
            Self::Reset => "reset",
            Self::Monitor => "monitor",
            Self::Plugs => "plugs",
        }
    }
}

/// What a plug was read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlugState {
    /// On, or connected.
    On,
    /// Off, or cut.
    Off,
    /// On its way.
    Transitioning,
    /// The device does not say. Never off.
    Unknown,
}

impl PlugState {
    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Transitioning => "transitioning",
            Self::Unknown => "unknown",
        }
    }
}

/// Pairs of text, in the order they were given.
pub type Fields = Vec<(String, String)>;

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

/// What a plugin found or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What the plug was read as.
    pub state: PlugState,
    /// What the device calls the machine behind the plug.
    pub identity: Fields,
    /// A sentence.
    pub detail: String,
    /// Room to grow.
    pub extra: Fields,
}

/// One plug of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlugInfo {
    /// What a request names it by.
    pub plug: String,
    /// What people call it.
    pub name: String,
    /// What it was read as.
    pub state: PlugState,
    /// What the device calls the machine behind it.
    pub identity: Fields,
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Of what kind.
    pub kind: FailureKind,
    /// Whether the plugin believes that another attempt can succeed.
    pub retryable: bool,
    /// How long the device asks to be left alone.
    pub retry_after: Option<Duration>,
    /// The device's own code.
    pub device_code: Option<i64>,
    /// A sentence that says what to check.
    pub detail: String,
    /// Room to grow.
    pub extra: Fields,
}

/// Kinds of failure, as the contract has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// Nothing reached the device.
    Unreachable,
    /// The device did not answer in time.
    Timeout,
    /// The device does not know who asks.
    Unauthenticated,
    /// It knows, and does not allow it.
    Denied,
    /// It asks to be left alone for a while.
    Throttled,
    /// It, or the plugin, cannot do this.
    Unsupported,
    /// The method's parameters are wrong.
    BadParameters,
    /// There is no such outlet, port or instance.
    NoSuchPlug,
    /// It is occupied.
    Busy,
    /// It did not speak as it should.
    Protocol,
    /// It failed.
    Device,
    /// The host asked to stop.
    Cancelled,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Unauthenticated => "unauthenticated",
            Self::Denied => "denied",
            Self::Throttled => "throttled",
            Self::Unsupported => "unsupported",
            Self::BadParameters => "bad-parameters",
            Self::NoSuchPlug => "no-such-plug",
            Self::Busy => "busy",
            Self::Protocol => "protocol",
            Self::Device => "device",
            Self::Cancelled => "cancelled",
            Self::Other => "other",
        }
    }
}

/// Whether a call passed its commit point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// `begin-effect` was never granted.
    NotBegun,
    /// It was: the device may have acted, or may act yet.
    Begun,
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

/// Whether a call keeps what went over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExchangeRecord {
    /// Nothing is kept, and nothing is spent on it.
    #[default]
    Off,
    /// It is kept, up to the limits.
    On,
    /// The same, and a transcript: all that the plugin saw, for playing the call again.
    Whole,
}

/// Something that went over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// When, counted from the call's start.
    pub at_ms: u64,
    /// The plugin's name for the other side.
    pub endpoint: String,
    /// Which way.
    pub direction: Direction,
    /// What, with known secrets blotted out; of HTTP the first line and at most 4 KiB of the body.
    pub bytes: Vec<u8>,
    /// What the host encrypted for it or decrypted from it, padding included, with known secrets
    /// blotted out.
    pub plaintext: Option<Vec<u8>>,
}

/// Which way bytes went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the device.
    Sent,
    /// From the device.
    Received,
    /// To the device, by the host, after the plugin was gone.
    Farewell,
}

/// One line of a plugin's log, escaped and without known secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When, counted from the call's start.
    pub at_ms: u64,
    /// How many events of the transcript came before it; a millisecond holds many.
    pub after: usize,
    /// How much it matters.
    pub level: LogLevel,
    /// The words.
    pub message: String,
}

/// How much a log line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For authors of plugins.
    Debug,
    /// For people who watch.
    Info,
    /// For people who should look.
    Warn,
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

impl Outcome {
    /// Whether the plugin says that the provider ended the machine for good.
    pub fn is_terminated(&self) -> bool {
        let is_said = |(name, value): &(String, String)| name == TERMINATED && value == "true";
        self.state == PlugState::Off && self.extra.iter().any(is_said)
    }
}

impl Failure {
    /// A failure the sandbox states in the plugin's place.
    pub(crate) fn of_sandbox(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            retryable: false,
            retry_after: None,
            device_code: None,
            detail: detail.into(),
            extra: Vec::new(),
        }
    }
}
