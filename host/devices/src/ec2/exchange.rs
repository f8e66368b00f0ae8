//! One request and its answer.

use crate::ec2::model::{Action, State};
use crate::ec2::wire;

/// How long the service takes for an answer when nothing is wrong, in milliseconds.
pub const LATENCY_MS: u64 = 60;

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
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) says: &'static str,
}

impl Refusal {
    pub(crate) const fn new(status: u16, code: &'static str, says: &'static str) -> Self {
        Self { status, code, says }
    }

    pub(crate) fn reply(&self) -> Reply {
        let body = wire::refusal(self.code, self.says);
        Reply { delay_ms: LATENCY_MS, answer: Answer::Response { status: self.status, body } }
    }
}
