//! Requests to an HTTP API and what its refusals mean, for methods that speak one. The host adds what
//! proves who asks. Not here: what the answers say.

use std::cell::Cell;
use std::fmt::Write as _;

use serde_json::Value;

use crate::{Failure, FailureKind, Host, HttpRequest, HttpResponse, NetError};

/// What no request takes of the deadline, so that a call ends with a sentence and is not cut.
const LAST_WORDS_MS: u64 = 250;
/// A pause is not begun if it leaves less of the deadline for the answer that follows.
const ANSWER_MS: u64 = 1_000;
/// A device's own sentence is cut here, in characters.
const SENTENCE_MAX: usize = 200;
/// How often a request is sent again that was answered "not now" and so was not carried out.
const PATIENCE: u32 = 3;
/// How long to wait where a server asks for patience and does not say how much.
const PAUSE_MS: u32 = 1_000;

/// How an API is spoken to, and what to check where it refuses.
///
/// ```
/// use node_remedy_sdk::web::Manner;
///
/// const MANNER: Manner = Manner {
///     endpoint: "board",
///     device: "the board",
///     request_ms: 5_000,
///     headers: &[("Accept", "application/json")],
///     unauthenticated: "check user name and password",
///     denied: "check what this user may do",
///     missing: "check the address",
/// };
/// assert_eq!(MANNER.endpoint, "board");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// The endpoint in the manifest.
    pub endpoint: &'static str,
    /// What people call the other side: `the BMC`.
    pub device: &'static str,
    /// How long one request may take, in milliseconds.
    pub request_ms: u32,
    /// Headers of every request.
    pub headers: &'static [(&'static str, &'static str)],
    /// What to check at 401.
    pub unauthenticated: &'static str,
    /// What to check at 403.
    pub denied: &'static str,
    /// What to check at 404.
    pub missing: &'static str,
}

/// An API, for one call.
///
/// ```
/// # use node_remedy_sdk::web::Manner;
/// # const MANNER: Manner = Manner {
/// #     endpoint: "board",
/// #     device: "the board",
/// #     request_ms: 5_000,
/// #     headers: &[],
/// #     unauthenticated: "check user name and password",
/// #     denied: "check what this user may do",
/// #     missing: "check the address",
/// # };
/// use std::cell::RefCell;
/// use std::rc::Rc;
///
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::web::Api;
/// use node_remedy_sdk::{Failure, HttpRequest, HttpResponse};
///
/// let board = |_: u64, _: &HttpRequest| {
///     (20, HttpResponse { status: 200, headers: Vec::new(), body: br#"{"on": true}"#.to_vec() })
/// };
/// let host = TestHost::new(30_000).web("board", Rc::new(RefCell::new(board)));
/// let api = Api::new(&host, &MANNER, 30_000);
/// assert_eq!(api.get("/relays/2")?["on"], true);
/// # Ok::<(), Failure>(())
/// ```
pub struct Api<'a, H> {
    host: &'a H,
    manner: &'a Manner,
    deadline_ms: u64,
    /// Whether it has answered anything.
    is_heard: Cell<bool>,
    words: fn(u16, &[u8]) -> Option<Meaning>,
}

/// What a device's own word for a refusal means, where it says more than the status.
///
/// ```
/// # use node_remedy_sdk::web::Manner;
/// # const MANNER: Manner = Manner {
/// #     endpoint: "board",
/// #     device: "the board",
/// #     request_ms: 5_000,
/// #     headers: &[],
/// #     unauthenticated: "check user name and password",
/// #     denied: "check what this user may do",
/// #     missing: "check the address",
/// # };
/// use node_remedy_sdk::FailureKind;
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::web::{Api, Meaning};
///
/// /// This board answers 400 where a relay is locked.
/// fn words(status: u16, body: &[u8]) -> Option<Meaning> {
///     let is_locked = status == 400 && body == b"locked";
///     let check = "somebody locked the relay on the board";
///     is_locked.then_some(Meaning { kind: FailureKind::Busy, is_retryable: true, check })
/// }
///
/// let host = TestHost::new(30_000);
/// let _api = Api::new(&host, &MANNER, 30_000).with_words(words);
/// assert!(words(400, b"locked").is_some());
/// assert_eq!(words(404, b""), None, "the status says enough");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The sort.
    pub kind: FailureKind,
    /// May the same request succeed without anybody changing anything?
    pub is_retryable: bool,
    /// What to check, or what it says of itself.
    pub check: &'static str,
}

/// What a request carries.
///
/// ```
/// # use node_remedy_sdk::web::Manner;
/// # const MANNER: Manner = Manner {
/// #     endpoint: "board",
/// #     device: "the board",
/// #     request_ms: 5_000,
/// #     headers: &[],
/// #     unauthenticated: "check user name and password",
/// #     denied: "check what this user may do",
/// #     missing: "check the address",
/// # };
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::web::{Api, Body};
/// use node_remedy_sdk::FailureKind;
///
/// let host = TestHost::new(30_000).unreachable("board");
/// let api = Api::new(&host, &MANNER, 30_000);
/// let wanted = serde_json::json!({ "on": false });
/// let refused = api.ask("PUT", "/relays/2", Body::Json(&wanted)).map(|_| ());
/// assert_eq!(refused.map_err(|failure| failure.kind), Err(FailureKind::Unreachable));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// Nothing.
    Empty,
    /// A JSON document.
    Json(&'a Value),
    /// A form (`application/x-www-form-urlencoded`), encoded already.
    Form(&'a str),
    /// An XML document.
    Xml(&'a str),
    /// A document of another media type.
    Other {
        /// The type.
        kind: &'static str,
        /// The document.
        document: &'a str,
    },
}

/// A successful answer: its status is 2xx.
///
/// ```
/// # use node_remedy_sdk::web::Manner;
/// # const MANNER: Manner = Manner {
/// #     endpoint: "board",
/// #     device: "the board",
/// #     request_ms: 5_000,
/// #     headers: &[],
/// #     unauthenticated: "check user name and password",
/// #     denied: "check what this user may do",
/// #     missing: "check the address",
/// # };
/// use std::cell::RefCell;
/// use std::rc::Rc;
///
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::web::{Api, Body};
/// use node_remedy_sdk::{Failure, HttpRequest, HttpResponse};
///
/// let board = |_: u64, _: &HttpRequest| {
///     let headers = vec![("Location".to_owned(), "/tasks/7".to_owned())];
///     (20, HttpResponse { status: 202, headers, body: b"accepted".to_vec() })
/// };
/// let host = TestHost::new(30_000).web("board", Rc::new(RefCell::new(board)));
/// let answer = Api::new(&host, &MANNER, 30_000).ask("POST", "/off", Body::Empty)?;
/// assert_eq!((answer.status(), answer.header("location")), (202, Some("/tasks/7")));
/// assert_eq!(answer.body(), b"accepted");
/// assert!(answer.json().is_err(), "and the failure says what was found");
/// # Ok::<(), Failure>(())
/// ```
#[derive(Clone, Debug)]
pub struct Answer {
    what: String,
    device: &'static str,
    response: HttpResponse,
}

impl<'a, H: Host> Api<'a, H> {
    /// The API, for as long as the call may take.
    pub fn new(host: &'a H, manner: &'a Manner, deadline_ms: u32) -> Self {
        let (deadline_ms, is_heard) = (u64::from(deadline_ms), Cell::new(false));
        Self { host, manner, deadline_ms, is_heard, words: |_, _| None }
    }

    /// Reads the device's own words for a refusal, from status and body, before its status is read.
    #[must_use]
    pub fn with_words(mut self, words: fn(u16, &[u8]) -> Option<Meaning>) -> Self {
        self.words = words;
        self
    }

    /// The host.
    pub fn host(&self) -> &'a H {
        self.host
    }

    /// Whether a pause and one more request fit into the deadline.
    pub fn has_time_for(&self, pause_ms: u32) -> bool {
        self.host.elapsed_ms() + u64::from(pause_ms) + ANSWER_MS < self.deadline_ms
    }

    /// Reads a JSON object.
    pub fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask("GET", path, Body::Empty)?.object()
    }

    /// Sends a request. Answers other than 2xx are failures that carry the status as the device's
    /// code. One that says "not now" is heeded as far as the deadline allows.
    pub fn ask(&self, method: &str, path: &str, body: Body<'_>) -> Result<Answer, Failure> {
        let what = format!("{method} {path}");
        for turn in 0.. {
            let response = self.exchange(method, path, body)?;
            if (200..300).contains(&response.status) {
                return Ok(Answer { what, device: self.manner.device, response });
            }
            let pause_ms = retry_after_ms(&response).unwrap_or(PAUSE_MS);
            let is_worth_it = turn < PATIENCE && self.is_not_now(method, turn, &response);
            if !is_worth_it || !self.has_time_for(pause_ms) || !self.host.sleep(pause_ms) {
                return Err(self.refusal(&what, &response));
            }
        }
        Err(Failure::new(FailureKind::Other, what))
    }

    fn exchange(&self, method: &str, path: &str, body: Body<'_>) -> Result<HttpResponse, Failure> {
        let pair = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let mut headers: Vec<_> = self.manner.headers.iter().map(pair).collect();
        let (kind, body) = match body {
            Body::Empty => (None, Vec::new()),
            Body::Json(document) => (Some("application/json"), document.to_string().into_bytes()),
            Body::Form(form) => (Some("application/x-www-form-urlencoded"), form.into()),
            Body::Xml(document) => (Some("application/xml"), document.into()),
            Body::Other { kind, document } => (Some(kind), document.into()),
        };
        headers.extend(kind.map(|kind| pair(&("Content-Type", kind))));
        let spent_ms = self.host.elapsed_ms().saturating_add(LAST_WORDS_MS);
        let left_ms = u32::try_from(self.deadline_ms.saturating_sub(spent_ms)).unwrap_or(u32::MAX);
        let request = HttpRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body,
            timeout_ms: self.manner.request_ms.min(left_ms),
        };
        let answer = self.host.fetch(self.manner.endpoint, &request);
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

    /// Refused because of the moment: what is asked too often was not carried out. At 503 that holds for
    /// reads, and for what is to be asked once more at a time that the device names.
    fn is_not_now(&self, method: &str, turn: u32, response: &HttpResponse) -> bool {
        match (self.words)(response.status, &response.body) {
            Some(meaning) => meaning.kind == FailureKind::Throttled,
            None if response.status == 503 => {
                method == "GET" || (turn == 0 && retry_after_ms(response).is_some())
            }
            None => response.status == 429,
        }
    }

    /// What a status other than success means.
    fn refusal(&self, what: &str, response: &HttpResponse) -> Failure {
        let Manner { device, unauthenticated, denied, missing, .. } = *self.manner;
        let status = response.status;
        let says = |words: &str| format!("{device} {words}");
        let said = (self.words)(status, &response.body);
        let said = said.map(|one| (one.kind, one.is_retryable, one.check.to_owned()));
        let (kind, is_retryable, check) = said.unwrap_or_else(|| match status {
            300..=399 => {
                (FailureKind::Protocol, false, "it leads elsewhere; check the address".to_owned())
            }
            401 => (FailureKind::Unauthenticated, false, unauthenticated.to_owned()),
            403 => (FailureKind::Denied, false, denied.to_owned()),
            404 => (FailureKind::Unsupported, false, missing.to_owned()),
            405 | 501 => (FailureKind::Unsupported, false, says("cannot do it")),
            408 | 504 => (FailureKind::Timeout, true, says("is slow")),
            409 => (FailureKind::Busy, true, says("is at something else")),
            429 => (FailureKind::Throttled, true, says("is asked too often")),
            503 => (FailureKind::Busy, true, says("is starting, updating or overloaded")),
            500..=599 => (FailureKind::Device, true, says("says that it failed")),
            _ => (FailureKind::Device, false, says("refuses it")),
        });
        let said = sentence(&response.body).map(|said| format!(": {said}")).unwrap_or_default();
        let mut failure = Failure::new(kind, format!("{what}: HTTP {status}{said}; {check}"));
        failure.retryable = is_retryable;
        failure.device_code = Some(status.into());
        failure.retry_after_ms = retry_after_ms(response);
        failure
    }
}

impl Answer {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.response.status
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.response, name)
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.response.body
    }

    /// The body as a JSON document: an object or a list.
    pub fn json(&self) -> Result<Value, Failure> {
        match serde_json::from_slice(&self.response.body) {
            Ok(document @ (Value::Object(_) | Value::Array(_))) => Ok(document),
            Ok(_) | Err(_) => Err(self.not_that("list or object")),
        }
    }

    /// The body as a JSON object.
    pub fn object(&self) -> Result<Value, Failure> {
        self.json()?.as_object().cloned().map(Value::Object).ok_or_else(|| self.not_that("object"))
    }

    fn not_that(&self, expected: &str) -> Failure {
        let Self { what, device, .. } = self;
        let sentence =
            format!("{what}: found no JSON {expected}; is this the address of {device}?");
        Failure::new(FailureKind::Protocol, sentence)
    }
}

fn header<'a>(response: &'a HttpResponse, name: &str) -> Option<&'a str> {
    let is_it = |(one, _): &&(String, String)| one.eq_ignore_ascii_case(name);
    response.headers.iter().find(is_it).map(|(_, value)| value.as_str())
}

/// `Retry-After` in seconds; its other form, a date, says nothing to who has no clock.
fn retry_after_ms(response: &HttpResponse) -> Option<u32> {
    header(response, "retry-after")?.trim().parse::<u32>().ok()?.checked_mul(1_000)
}

/// The device's own words, where one of the usual places holds some.
fn sentence(body: &[u8]) -> Option<String> {
    let said = match serde_json::from_slice::<Value>(body) {
        Ok(document) => in_json(&document)?.to_owned(),
        Err(_) => in_xml(std::str::from_utf8(body).ok()?)?.to_owned(),
    };
    let is_plain = |letter: &char| !letter.is_control();
    let said = said.trim().trim_end_matches('.');
    let said: String = said.chars().filter(is_plain).take(SENTENCE_MAX).collect();
    Some(said).filter(|said| !said.is_empty())
}

fn in_json(document: &Value) -> Option<&str> {
    let at = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
    // Redfish (DSP0266, 8.6); Google, Microsoft and Keystone; vSphere; oVirt; others.
    let usual = at("/error/@Message.ExtendedInfo/0/Message")
        .or_else(|| at("/error/message"))
        .or_else(|| at("/messages/0/default_message"))
        .or_else(|| at("/value/messages/0/default_message"))
        .or_else(|| at("/detail"))
        // OAuth (RFC 6749, 5.2).
        .or_else(|| at("/error_description"))
        .or_else(|| at("/message"));
    // OpenStack names the member after the refusal.
    usual.or_else(|| document.as_object()?.values().find_map(|one| one.get("message")?.as_str()))
}

/// Amazon, and Brocade's FOS.
fn in_xml(document: &str) -> Option<&str> {
    ["Message", "error-message"].into_iter().find_map(|name| text_of(document, name))
}

/// The text of the first XML element of this name.
///
/// ```
/// use node_remedy_sdk::web::text_of;
///
/// assert_eq!(text_of("<a><state>running</state></a>", "state"), Some("running"));
/// ```
pub fn text_of<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

/// A text as one segment of a path or one value of a query (RFC 3986): what is not unreserved is
/// percent-encoded.
///
/// ```
/// use node_remedy_sdk::web::encoded;
///
/// assert_eq!(format!("/outlets/{}", encoded("rack 3/b")), "/outlets/rack%203%2Fb");
/// ```
pub fn encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_value_of_a_query() {
        assert_eq!(encoded("node-1.a_b~"), "node-1.a_b~");
        assert_eq!(encoded("a b&c=d/é?#%"), "a%20b%26c%3Dd%2F%C3%A9%3F%23%25");
    }

    #[test]
    fn a_device_s_own_words_are_found_where_they_stand() {
        for (body, said) in [
            (r#"{"error": {"message": "No."}}"#, Some("No")),
            (r#"{"error": {"@Message.ExtendedInfo": [{"Message": "No\u0007."}]}}"#, Some("No")),
            (
                r#"{"conflictingRequest": {"code": 409, "message": "is stopped"}}"#,
                Some("is stopped"),
            ),
            (r#"{"error": "invalid_client", "error_description": "Wrong."}"#, Some("Wrong")),
            (r#"{"messages": [{"default_message": "Denied."}]}"#, Some("Denied")),
            ("<Response><Errors><Error><Code>X</Code><Message>Gone</Message>", Some("Gone")),
            (r#"{"error": {"message": "."}}"#, None),
            ("", None),
            ("<html>", None),
        ] {
            assert_eq!(sentence(body.as_bytes()).as_deref(), said, "{body}");
        }
    }
}
