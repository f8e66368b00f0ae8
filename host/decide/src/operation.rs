//! One call to a device: what was meant, and what came of it.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Time;
use crate::bug::{Bug, guard};

/// The number of an operation within its record; grows, is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct OpId(pub u32);

/// An intent and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Its number.
    pub id: OpId,
    /// Which method of the plan.
    pub method: MethodIndex,
    /// What was meant.
    pub action: Action,
    /// Which try of the step, from 1.
    pub attempt: u32,
    /// The fencing token it was meant under.
    pub epoch: u64,
    /// The process that meant to carry it out.
    pub process: String,
    /// When it was written down.
    pub intended_at: Time,
    /// What the plug read before, for what changes something.
    pub state_before: PlugState,
    /// How it ended; `None` while nobody knows.
    pub end: Option<End>,
    /// When the end was learnt.
    pub ended_at: Option<Time>,
}

/// What a method can be asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Read the plug.
    Status,
    /// Cut power, network or storage.
    Off,
    /// Give it back.
    On,
    /// One hard reset.
    Reset,
    /// Try the path to the device, without effect.
    Monitor,
}

/// What a plug reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlugState {
    /// Powered, or connected.
    On,
    /// Without power, or cut.
    Off,
    /// On its way.
    Transitioning,
    /// Not known; never treated as off.
    Unknown,
    /// The provider says that the instance is terminated and will not be back.
    Terminated,
}

impl PlugState {
    /// Whether nothing can run behind it: the only two states that prove anything.
    pub fn is_off(self) -> bool {
        !guard(Bug::AnyReadIsOff, !matches!(self, Self::Off | Self::Terminated))
    }
}

/// How a call ended. An end says what is known, not what was hoped for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum End {
    /// The device answered.
    Succeeded {
        /// What the plug reads, by the plugin's word.
        state: PlugState,
        /// What the device calls the machine, as (field, value).
        identity: Vec<(String, String)>,
    },
    /// The device refused, or answered what is no answer; an effect is possible.
    Failed(Failure),
    /// It is known that nothing was sent that could change anything.
    NotAttempted(Failure),
    /// Nobody knows; only a later read can tell.
    Indeterminate,
}

/// Why a call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What kind of trouble.
    pub kind: FailureKind,
    /// A sentence that says what to check.
    pub detail: String,
}

/// The kinds of trouble with a device, as the plugin contract names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// No path to the device.
    Unreachable,
    /// No answer in time.
    Timeout,
    /// The credential was not accepted.
    Unauthenticated,
    /// The credential may not do this.
    Denied,
    /// The device asks for patience.
    Throttled,
    /// The device cannot do this.
    Unsupported,
    /// The parameters make no sense to it.
    BadParameters,
    /// It has no such plug.
    NoSuchPlug,
    /// It is busy.
    Busy,
    /// Its answer makes no sense.
    Protocol,
    /// It reports an error of its own.
    Device,
    /// Nothing left our process: a Secret could not be read, a name not be resolved, the plugin not be had.
    /// It says nothing of the device.
    NotMade,
    /// We held the call back, or cancelled it: what it was decided on had grown old.
    Cancelled,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// Whether a device that fails so was reached, and goes on failing so until a person sees to it.
    pub fn is_refusal(self) -> bool {
        match self {
            Self::Unauthenticated
            | Self::Denied
            | Self::Unsupported
            | Self::BadParameters
            | Self::NoSuchPlug => true,
            // A device that starts says many a thing before it works.
            Self::Unreachable
            | Self::Timeout
            | Self::Throttled
            | Self::Busy
            | Self::Protocol
            | Self::Device
            | Self::NotMade
            | Self::Cancelled
            | Self::Other => false,
        }
    }
}

/// Where a method stands in [`Plan::methods`].
pub type MethodIndex = usize;
