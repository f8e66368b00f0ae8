//! The contract's records as plain Rust, the same natively and in a component.

/// Ordered names and values.
///
/// ```
/// use node_remedy_sdk::Fields;
///
/// let identity: Fields = vec![("serial".to_owned(), "7CE1234".to_owned())];
/// assert_eq!(identity.len(), 1);
/// ```
pub type Fields = Vec<(String, String)>;

/// What a method is asked to do. For a fabric or storage method `Off` means cut, `On` restored.
///
/// ```
/// use node_remedy_sdk::Action;
///
/// let changes = |action| matches!(action, Action::Off | Action::On | Action::Reset);
/// assert!(changes(Action::Reset) && !changes(Action::Monitor));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the plug, change nothing.
    Status,
    /// Cut the power.
    Off,
    /// Give the power back.
    On,
    /// One hard reset. Never proof by itself.
    Reset,
    /// Is the path to this plug sound? Changes nothing.
    Monitor,
}

/// What a plug reads.
///
/// ```
/// use node_remedy_sdk::PlugState;
///
/// assert_eq!(PlugState::Transitioning.word(), "transitioning");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlugState {
    /// Powered.
    On,
    /// Without power.
    Off,
    /// On its way from one to the other.
    Transitioning,
    /// Not known; never treated as off.
    Unknown,
}

impl PlugState {
    /// The word the contract uses.
    pub fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Transitioning => "transitioning",
            Self::Unknown => "unknown",
        }
    }
}

/// One call.
///
/// ```
/// use node_remedy_sdk::{Action, Request};
///
/// let request = Request {
///     plug: "2".to_owned(),
///     parameters: vec![("address".to_owned(), "192.0.2.7".to_owned())],
///     ..Request::new(Action::Status, 30_000)
/// };
/// assert_eq!(request.parameter("address"), Some("192.0.2.7"));
/// assert_eq!(request.parameter("port"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub action: Action,
    /// Outlet, port, system or instance; empty where the device is the node.
    pub plug: String,
    /// Checked by the host against the manifest's schema, defaults filled in.
    pub parameters: Fields,
    /// The same for every attempt at one effect.
    pub operation_id: String,
    /// Counts attempts from 1.
    pub attempt: u32,
    /// The host cuts the call when this has passed since its begin.
    pub deadline_ms: u32,
    /// For status: may poll in place until the plug reads this.
    pub until: Option<PlugState>,
    /// What [`crate::Host::checkpoint`] stored last for this operation.
    pub resume: Option<Vec<u8>>,
    /// Room to grow.
    pub extra: Fields,
}

impl Request {
    /// A request with nothing but an action and a deadline.
    pub fn new(action: Action, deadline_ms: u32) -> Self {
        Self {
            action,
            plug: String::new(),
            parameters: Fields::new(),
            operation_id: String::new(),
            attempt: 1,
            deadline_ms,
            until: None,
            resume: None,
            extra: Fields::new(),
        }
    }

    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        find(&self.parameters, name)
    }

    /// The value of an extra field.
    pub fn extra(&self, name: &str) -> Option<&str> {
        find(&self.extra, name)
    }
}

fn find<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// The extra field of an outcome that reads off: `true` where the provider ended the machine for good, so
/// that there is nothing left to switch on.
///
/// ```
/// use node_remedy_sdk::{Outcome, PlugState, TERMINATED};
///
/// let mut outcome = Outcome::new(PlugState::Off);
/// outcome.extra = vec![(TERMINATED.to_owned(), "true".to_owned())];
/// assert_eq!(outcome.extra[0].0, "terminated");
/// ```
pub const TERMINATED: &str = "terminated";

/// What a call found out.
///
/// ```
/// use node_remedy_sdk::{Outcome, PlugState};
///
/// let outcome = Outcome {
///     detail: "the relay is on".to_owned(),
///     ..Outcome::new(PlugState::On)
/// };
/// assert!(outcome.identity.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was read, not what was asked for.
    pub state: PlugState,
    /// What the device calls the machine behind the plug.
    pub identity: Fields,
    /// One sentence for people.
    pub detail: String,
    /// Room to grow.
    pub extra: Fields,
}

impl Outcome {
    /// An outcome with nothing but a state.
    pub fn new(state: PlugState) -> Self {
        Self { state, identity: Fields::new(), detail: String::new(), extra: Fields::new() }
    }
}

/// Asks for the plugs of a device.
///
/// ```
/// use node_remedy_sdk::{Fields, PlugsRequest};
///
/// let request = PlugsRequest { parameters: Fields::new(), deadline_ms: 30_000, extra: Fields::new() };
/// assert_eq!(request.deadline_ms, 30_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlugsRequest {
    /// As in [`Request::parameters`].
    pub parameters: Fields,
    /// As in [`Request::deadline_ms`].
    pub deadline_ms: u32,
    /// Room to grow.
    pub extra: Fields,
}

/// One plug of a device.
///
/// ```
/// use node_remedy_sdk::{Fields, PlugInfo, PlugState};
///
/// let outlet = PlugInfo {
///     plug: "3".to_owned(),
///     name: "rack 7, worker-3".to_owned(),
///     state: PlugState::On,
///     identity: Fields::new(),
/// };
/// assert_eq!(outlet.state.word(), "on");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlugInfo {
    /// What a request names it by.
    pub plug: String,
    /// What people call it.
    pub name: String,
    /// What it reads.
    pub state: PlugState,
    /// What the device calls the machine behind it.
    pub identity: Fields,
}

/// The sort of a failure; decides what the host does next.
///
/// ```
/// use node_remedy_sdk::{Failure, FailureKind};
///
/// /// What a device's own code means.
/// fn of(code: u8) -> Failure {
///     match code {
///         0xc0 => Failure::new(FailureKind::Busy, "the BMC is busy").retryable().code(code),
///         0xd4 => Failure::new(FailureKind::Denied, "this user may not switch power").code(code),
///         _ => Failure::new(FailureKind::Device, "the BMC says that it failed").code(code),
///     }
/// }
///
/// assert!(of(0xc0).retryable && !of(0xd4).retryable);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// Nothing reached the device.
    Unreachable,
    /// The device answered before and then no longer in time.
    Timeout,
    /// The device does not believe who we are, or we do not believe it.
    Unauthenticated,
    /// It knows who we are and does not allow it.
    Denied,
    /// Too many requests.
    Throttled,
    /// The device cannot do it.
    Unsupported,
    /// A parameter makes no sense.
    BadParameters,
    /// The plug, or the machine it should belong to, is not there.
    NoSuchPlug,
    /// Not now; later perhaps.
    Busy,
    /// The device does not keep to its protocol.
    Protocol,
    /// The device says that it failed.
    Device,
    /// The host cancelled the call or did not let it commit.
    Cancelled,
    /// Anything else.
    Other,
}

/// Why a call did not do what it was asked.
///
/// ```
/// use node_remedy_sdk::{Failure, FailureKind};
///
/// let failure = Failure::new(FailureKind::Throttled, "the cloud is asked too often").retryable();
/// let failure = Failure { retry_after_ms: Some(2_000), ..failure };
/// assert!(failure.retryable && failure.device_code.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The sort.
    pub kind: FailureKind,
    /// May the same call succeed without anybody changing anything?
    pub retryable: bool,
    /// When it makes sense to try again.
    pub retry_after_ms: Option<u32>,
    /// The device's own number for it.
    pub device_code: Option<i64>,
    /// A sentence that says what to check.
    pub detail: String,
    /// Room to grow.
    pub extra: Fields,
}

impl Failure {
    /// A failure that trying again does not mend.
    pub fn new(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            retryable: false,
            retry_after_ms: None,
            device_code: None,
            detail: detail.into(),
            extra: Fields::new(),
        }
    }

    /// The same, worth trying again.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// The same, with the device's own number.
    #[must_use]
    pub fn code(mut self, device_code: u8) -> Self {
        self.device_code = Some(i64::from(device_code));
        self
    }
}
