//! Requests to the Redfish service and what its refusals mean (DSP0266, sections 7 and 8). Not here:
//! what the resources say.

use std::cell::Cell;

use node_remedy_plugin_sdk::{Failure, FailureKind, Host, HttpRequest, HttpResponse, NetError};
use serde_json::Value;

use crate::limits;

/// The endpoint in the manifest.
const ENDPOINT: &str = "bmc";

/// The service root (DSP0266, 6.2).
pub(crate) const ROOT: &str = "/redfish/v1/";

/// A Redfish service, for one call.
pub(crate) struct Service<'a, H> {
    host: &'a H,
    deadline_ms: u64,
    /// Whether it has answered anything.
    is_heard: Cell<bool>,
}

impl<'a, H: Host> Service<'a, H> {
    pub(crate) fn new(host: &'a H, deadline_ms: u32) -> Self {
        Self { host, deadline_ms: u64::from(deadline_ms), is_heard: Cell::new(false) }
    }

    pub(crate) fn host(&self) -> &'a H {
        self.host
    }

    /// Whether a pause and one more request fit into the deadline.
    pub(crate) fn has_time_for(&self, pause_ms: u32) -> bool {
        self.host.elapsed_ms() + u64::from(pause_ms) + limits::ANSWER_MS < self.deadline_ms
    }

    /// Reads a resource: a JSON object.
    pub(crate) fn get(&self, path: &str) -> Result<Value, Failure> {
        let what = format!("GET {path}");
        let response = self.exchange("GET", path, Vec::new())?;
        if response.status != 200 {
            return Err(refusal(&what, &response));
        }
        match serde_json::from_slice(&response.body) {
            Ok(resource @ Value::Object(_)) => Ok(resource),
            Ok(_) | Err(_) => Err(Failure::new(
                FailureKind::Protocol,
                format!("{what}: found no JSON object; is a Redfish service at this address?"),
            )),
        }
    }

    /// Asks for an action. What comes of it is to be read.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<(), Failure> {
        let response = self.exchange("POST", path, body.to_string().into_bytes())?;
        match response.status {
            200 | 201 | 202 | 204 => Ok(()),
            _ => Err(refusal(&format!("POST {path}"), &response)),
        }
    }

    fn exchange(&self, method: &str, path: &str, body: Vec<u8>) -> Result<HttpResponse, Failure> {
        let mut headers = vec![
            ("Accept".to_owned(), "application/json".to_owned()),
            ("OData-Version".to_owned(), "4.0".to_owned()),
        ];
        if !body.is_empty() {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        let spent_ms = self.host.elapsed_ms().saturating_add(limits::LAST_WORDS_MS);
        let left_ms = u32::try_from(self.deadline_ms.saturating_sub(spent_ms)).unwrap_or(u32::MAX);
        let request = HttpRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body,
            timeout_ms: limits::REQUEST_MS.min(left_ms),
        };
        let answer = self.host.fetch(ENDPOINT, &request);
        self.is_heard.set(self.is_heard.get() || answer.is_ok());
        answer.map_err(|error| self.unanswered(method, path, error))
    }

    fn unanswered(&self, method: &str, path: &str, error: NetError) -> Failure {
        let mut failure = error.into_failure(&format!("{method} {path}"));
        if error == NetError::Timeout && !self.is_heard.get() {
            failure.kind = FailureKind::Unreachable;
        }
        failure
    }
}

/// What a status other than success means.
fn refusal(what: &str, response: &HttpResponse) -> Failure {
    let status = response.status;
    let (kind, is_retryable, check) = match status {
        300..=399 => (FailureKind::Protocol, false, "it leads elsewhere; check the address"),
        401 => (FailureKind::Unauthenticated, false, "check user name and password"),
        403 => (FailureKind::Denied, false, "check the role of the account: it must be Operator"),
        404 => (FailureKind::Unsupported, false, "check that Redfish is enabled on the BMC"),
        405 | 501 => (FailureKind::Unsupported, false, "the BMC cannot do it"),
        408 | 504 => (FailureKind::Timeout, true, "the BMC is slow"),
        409 => (FailureKind::Busy, true, "the BMC is at something else"),
        429 => (FailureKind::Throttled, true, "the BMC is asked too often"),
        503 => (FailureKind::Busy, true, "the BMC is starting, updating or overloaded"),
        500..=599 => (FailureKind::Device, true, "the BMC says that it failed"),
        _ => (FailureKind::Device, false, "the BMC refuses it"),
    };
    let said = sentence(&response.body).map(|said| format!(": {said}")).unwrap_or_default();
    let mut failure = Failure::new(kind, format!("{what}: HTTP {status}{said}; {check}"));
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

/// The device's own words (DSP0266, 8.6): the first message of the extended information, or that of
/// the error itself.
fn sentence(body: &[u8]) -> Option<String> {
    let document: Value = serde_json::from_slice(body).ok()?;
    let error = document.get("error")?;
    let extended = error.pointer("/@Message.ExtendedInfo/0/Message");
    let said = extended.or_else(|| error.get("message"))?.as_str()?;
    let is_plain = |letter: &char| !letter.is_control();
    let said = said.trim().trim_end_matches('.');
    Some(said.chars().filter(is_plain).take(limits::SENTENCE_MAX).collect())
}
