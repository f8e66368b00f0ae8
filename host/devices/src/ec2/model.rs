//! What an instance is and what may be asked of it.

/// What a fence method asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads.
    Describe,
    /// Switches off.
    Stop,
    /// Switches on.
    Start,
    /// Resets.
    Reboot,
    /// Ends it for good.
    Terminate,
}

impl Action {
    pub(crate) const ALL: [Self; 5] =
        [Self::Describe, Self::Stop, Self::Start, Self::Reboot, Self::Terminate];

    /// As a request names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Describe => "DescribeInstances",
            Self::Stop => "StopInstances",
            Self::Start => "StartInstances",
            Self::Reboot => "RebootInstances",
            Self::Terminate => "TerminateInstances",
        }
    }
}

/// What an instance is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `i-` and hexadecimal digits.
    pub id: String,
    /// Such as `eu-west-1a`.
    pub zone: String,
    /// The autoscaling group that it belongs to.
    pub group: Option<String>,
    /// How long it takes to stop, in milliseconds.
    pub stop_ms: u64,
    /// How long it takes to start, in milliseconds.
    pub start_ms: u64,
}

/// A state, by the API's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// 0.
    Pending,
    /// 16.
    Running,
    /// 32.
    ShuttingDown,
    /// 48.
    Terminated,
    /// 64.
    Stopping,
    /// 80.
    Stopped,
}

impl State {
    /// Its number (EC2 API, `InstanceState`).
    pub fn code(self) -> u32 {
        match self {
            Self::Pending => 0,
            Self::Running => 16,
            Self::ShuttingDown => 32,
            Self::Terminated => 48,
            Self::Stopping => 64,
            Self::Stopped => 80,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }

    pub(crate) fn has_power(self) -> bool {
        match self {
            Self::Running | Self::ShuttingDown | Self::Stopping => true,
            Self::Pending | Self::Terminated | Self::Stopped => false,
        }
    }
}
