//! Instances of Amazon EC2, as its query API (version 2016-11-15) lets them be read and switched.
//!
//! ```text
//!  request ─▶ account (who asks, is it signed) ─▶ asked ─▶ instance ─▶ wire (XML)
//!                                            faults bend ───┘
//! ```
//!
//! A request is about one instance, so a world may keep each where it keeps the machine. The caller
//! owns time: everything takes it, and [`Instance::next_change`] says when a state will change by
//! itself. Faults are data ([`Faults`]) and can be changed at any moment.
//!
//! Not here: other actions than those of a fence method, requests about several instances, pages.

mod account;
mod faults;
mod instance;
mod signature;
#[cfg(test)]
mod tests;
mod wire;

pub use account::{Account, Asked};
pub use faults::Faults;
pub use instance::{Cause, Change, Config, Instance, PowerEvent, State};

/// How long the service takes for an answer when nothing is wrong, in milliseconds.
pub const LATENCY_MS: u64 = 60;

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
    const ALL: [Self; 5] = [Self::Describe, Self::Stop, Self::Start, Self::Reboot, Self::Terminate];

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

/// A request, TLS taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// Names and values, the names in lower case.
    pub headers: &'a [(String, String)],
    /// The form.
    pub body: &'a [u8],
}

/// What comes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// How long it takes.
    pub delay_ms: u64,
    /// What is sent, if anything is.
    pub answer: Answer,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A response.
    Response {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Vec<u8>,
    },
    /// Nothing; the connection stands.
    Silence,
    /// Nothing; the connection is closed.
    Closed,
    /// No way leads there.
    Unreachable,
}

/// What became of a request that was read, for whoever keeps a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at_ms: u64,
    /// What was asked.
    pub action: Action,
    /// The state that was told, of a read; none of a change that was accepted; or the code of the
    /// refusal.
    pub outcome: Result<Option<State>, &'static str>,
}

/// A code of the API, with its HTTP status and a sentence (EC2 API, "Error codes").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refusal {
    status: u16,
    code: &'static str,
    says: &'static str,
}

impl Refusal {
    const fn new(status: u16, code: &'static str, says: &'static str) -> Self {
        Self { status, code, says }
    }

    fn reply(&self) -> Reply {
        let body = wire::refusal(self.code, self.says);
        Reply { delay_ms: LATENCY_MS, answer: Answer::Response { status: self.status, body } }
    }
}

/// The answer to whoever asks for an instance that there is not.
pub fn no_such_instance() -> Reply {
    instance::NOT_FOUND.reply()
}
