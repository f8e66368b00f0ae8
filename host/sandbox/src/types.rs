//! What a call is asked, what comes of it, and what is kept of it.

use std::time::Duration;

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
    /// What, with known secrets redacted; of HTTP the first line and at most 4 KiB of the body.
    pub bytes: Vec<u8>,
    /// What the host encrypted for it or decrypted from it, padding included, with known secrets
    /// redacted.
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

/// Why the host stops a plugin from inside one of its own calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cut {
    #[error("the plugin flooded the host: more than {limit} {what} in one call")]
    Flood { what: &'static str, limit: u64 },
    #[error("the plugin used a handle that is not its own")]
    Handle,
}

/// The extra field by which a plugin says so ("The manifest of a plugin", `terminated`).
pub(crate) const TERMINATED: &str = "terminated";
