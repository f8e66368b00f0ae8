//! Requests to the device and what its refusals mean. Not here: what is asked for.

use std::cell::Cell;

use node_remedy_sdk::{Failure, FailureKind, Host, HttpRequest, HttpResponse, NetError};

use crate::limits;
use crate::plan::{Plan, PlannedRequest};

/// The device, for one call.
pub(crate) struct Web<'a, H> {
    host: &'a H,
    plan: &'a Plan,
    deadline_ms: u64,
    /// Whether it has answered anything.
    is_heard: Cell<bool>,
}

impl<'a, H: Host> Web<'a, H> {
    pub(crate) fn new(host: &'a H, plan: &'a Plan, deadline_ms: u32) -> Self {
        Self { host, plan, deadline_ms: u64::from(deadline_ms), is_heard: Cell::new(false) }
    }

    pub(crate) fn host(&self) -> &'a H {
        self.host
    }

    /// Whether a pause and one more request fit into the deadline.
    pub(crate) fn has_time_for(&self, pause_ms: u32) -> bool {
        self.host.elapsed_ms() + u64::from(pause_ms) + limits::ANSWER_MS < self.deadline_ms
    }

    /// Asks, and gives the body of an answer that says yes.
    pub(crate) fn ask(&self, ask: &PlannedRequest) -> Result<Vec<u8>, Failure> {
        let mut headers = Vec::new();
        if !ask.body.is_empty() {
            headers.push(("Content-Type".to_owned(), self.plan.content_type.clone()));
        }
        let spent_ms = self.host.elapsed_ms().saturating_add(limits::LAST_WORDS_MS);
        let left_ms = u32::try_from(self.deadline_ms.saturating_sub(spent_ms)).unwrap_or(u32::MAX);
        let request = HttpRequest {
            method: ask.method.clone(),
            path: ask.path.clone(),
            headers,
            body: ask.body.clone().into_bytes(),
            timeout_ms: limits::REQUEST_MS.min(left_ms),
        };
        let answer = self.host.fetch(&self.plan.endpoint, &request);
        self.is_heard.set(self.is_heard.get() || answer.is_ok());
        let response = answer.map_err(|error| self.unanswered(ask, error))?;
        match response.status {
            200..=299 => Ok(response.body),
            _ => Err(refusal(ask, &response)),
        }
    }

    fn unanswered(&self, ask: &PlannedRequest, error: NetError) -> Failure {
        let mut failure = error.into_failure(&format!("{} {}", ask.method, ask.path));
        if error == NetError::Timeout && !self.is_heard.get() {
            failure.kind = FailureKind::Unreachable;
        }
        let check = match error {
            NetError::Denied => {
                "check that spec.grants has this path, and that no name in it has a /"
            }
            NetError::Login => "check the credential account and the parameter auth",
            NetError::Tls => "check the parameter scheme, and tls in spec.grants",
            NetError::Unreachable
            | NetError::Refused
            | NetError::Closed
            | NetError::Timeout
            | NetError::TooLarge
            | NetError::Cancelled
            | NetError::NotLeader
            | NetError::Other => return failure,
        };
        failure.detail = format!("{}; {check}", failure.detail);
        failure
    }
}

/// What a status other than success means.
fn refusal(ask: &PlannedRequest, response: &HttpResponse) -> Failure {
    let status = response.status;
    let (kind, is_retryable, check) = match status {
        300..=399 => (FailureKind::Protocol, false, "it leads elsewhere; check address and scheme"),
        401 => (FailureKind::Unauthenticated, false, "check the credential and the parameter auth"),
        403 => (FailureKind::Denied, false, "check what the account may do"),
        404 | 410 if ask.names_plug => (FailureKind::NoSuchPlug, false, "check plug and path"),
        404 | 410 => (FailureKind::BadParameters, false, "check the path"),
        405 => (FailureKind::BadParameters, false, "check the method"),
        408 | 504 => (FailureKind::Timeout, true, "the device is slow"),
        409 | 423 | 503 => (FailureKind::Busy, true, "the device is at something else"),
        429 => (FailureKind::Throttled, true, "the device is asked too often"),
        501 => (FailureKind::Unsupported, false, "the device cannot do it"),
        500..=599 => (FailureKind::Device, true, "the device says that it failed"),
        _ => (FailureKind::Device, false, "the device refuses it"),
    };
    let what = format!("{} {}", ask.method, ask.path);
    let mut failure = Failure::new(kind, format!("{what}: HTTP {status}; {check}"));
    failure.retryable = is_retryable;
    failure.device_code = Some(status.into());
    failure.retry_after_ms = retry_after_ms(response);
    failure
}

/// `Retry-After` in seconds; its other form, a date, says nothing to who has no clock.
fn retry_after_ms(response: &HttpResponse) -> Option<u32> {
    let is_it = |name: &str| name.eq_ignore_ascii_case("retry-after");
    let (_, value) = response.headers.iter().find(|(name, _)| is_it(name))?;
    value.trim().parse::<u32>().ok()?.checked_mul(1_000)
}
