//! For native tests of methods that speak HTTP: a web server with answers of its own put over it, and
//! what a call to it came to.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use super::{TestHost, Trace, Web};
use crate::{Failure, FenceMethod, HttpRequest, HttpResponse, Outcome, PlugState, Request};

/// A web server that answers some requests otherwise than it should.
pub struct Overlay<W> {
    /// The server itself.
    pub server: W,
    instead: Vec<Instead>,
}

/// What is answered to a request that begins so.
struct Instead {
    line: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    takes_ms: u64,
    /// How often; all the time where there is none.
    turns: Option<u32>,
}

impl<W> Overlay<W> {
    /// The server as it is.
    pub fn new(server: W) -> Self {
        Self { server, instead: Vec::new() }
    }

    /// Answers so to a request that begins so: method, path and body, with a space between them.
    #[must_use]
    pub fn instead(mut self, line: &str, status: u16, body: &str) -> Self {
        let (line, headers, body) = (line.to_owned(), Vec::new(), body.to_owned());
        self.instead.push(Instead { line, status, headers, body, takes_ms: 5, turns: None });
        self
    }

    /// The last of them, with a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Some(last) = self.instead.last_mut() {
            last.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The last of them, for so many requests and then no more.
    #[must_use]
    pub fn times(mut self, turns: u32) -> Self {
        if let Some(last) = self.instead.last_mut() {
            last.turns = Some(turns);
        }
        self
    }

    /// Never answers to what begins so.
    #[must_use]
    pub fn silent(self, line: &str) -> Self {
        let mut overlay = self.instead(line, 200, "");
        if let Some(last) = overlay.instead.last_mut() {
            last.takes_ms = u64::MAX;
        }
        overlay
    }
}

impl<W> From<W> for Overlay<W> {
    fn from(server: W) -> Self {
        Self::new(server)
    }
}

impl<W: Web> Web for Overlay<W> {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        let HttpRequest { method, path, body, .. } = request;
        let line = format!("{method} {path} {}", String::from_utf8_lossy(body));
        let is_it = |one: &&mut Instead| line.starts_with(&one.line) && one.turns != Some(0);
        let Some(one) = self.instead.iter_mut().find(is_it) else {
            return self.server.exchange(now_ms, request);
        };
        one.turns = one.turns.map(|turns| turns - 1);
        let body = one.body.clone().into_bytes();
        (one.takes_ms, HttpResponse { status: one.status, headers: one.headers.clone(), body })
    }
}

/// What a call came to.
pub struct Ended<W> {
    /// What the method answered.
    pub result: Result<Outcome, Failure>,
    /// How long it took.
    pub took_ms: u128,
    /// What it did.
    pub trace: Vec<Trace>,
    /// The server afterwards.
    pub web: Rc<RefCell<Overlay<W>>>,
}

impl<W> Ended<W> {
    /// The lines of all requests that may have changed something.
    pub fn writes(&self) -> Vec<String> {
        let line = |trace: &Trace| match trace {
            Trace::Asked { line, .. } if !line.starts_with("GET ") => Some(line.clone()),
            Trace::Asked { .. }
            | Trace::Sent { .. }
            | Trace::Received { .. }
            | Trace::Answered { .. }
            | Trace::BeganEffect { .. }
            | Trace::Logged(_)
            | Trace::Farewell => None,
        };
        self.trace.iter().filter_map(line).collect()
    }

    /// Outcome or failure in one line.
    pub fn said(&self) -> String {
        match &self.result {
            Ok(outcome) => format!("{:?}: {}", outcome.state, outcome.detail),
            Err(failure) => {
                let again = if failure.retryable { ", again" } else { "" };
                let after = failure.retry_after_ms.map(|ms| format!(" in {ms} ms"));
                let after = after.unwrap_or_default();
                format!("{:?}{again}{after}: {}", failure.kind, failure.detail)
            }
        }
    }
}

/// One call of a method to a server behind an endpoint.
pub fn ask<M: FenceMethod, W: Web + 'static>(
    endpoint: &str,
    web: Overlay<W>,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<W> {
    let web = Rc::new(RefCell::new(web));
    let host = host(TestHost::new(u64::from(request.deadline_ms)).web(endpoint, web.clone()));
    let result = M::default().run(request, &host);
    Ended { result, took_ms: host.elapsed().as_millis(), trace: host.trace(), web }
}

/// A line for each fault: its name, how long the call took, and what was said. None of them may read
/// as off.
pub fn fault_table<W>(
    rows: Vec<(&str, Overlay<W>)>,
    ask: impl Fn(Overlay<W>) -> Ended<W>,
) -> String {
    let mut table = String::new();
    for (fault, web) in rows {
        let ended = ask(web);
        let state = ended.result.as_ref().map(|outcome| outcome.state);
        assert_ne!(state, Ok(PlugState::Off), "{fault} reads as off");
        let _ = writeln!(table, "{fault} | {} ms | {}", ended.took_ms, ended.said());
    }
    table
}
