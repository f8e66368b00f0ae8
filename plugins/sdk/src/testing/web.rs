//! For native tests of methods that speak HTTP: a web server with answers of its own put over it, and
//! what a call to it came to.

use std::cell::RefCell;
use std::rc::Rc;

use super::faults::{Fault, FaultTable, Sessions};
use super::{TestHost, Web};
use crate::testing::device::Trace;
use crate::{Action, Failure, FenceMethod, HttpRequest, HttpResponse, NetError, Outcome, Request};

/// What the network and the host do to every method that speaks HTTP.
///
/// ```
/// use node_remedy_sdk::NetError;
/// use node_remedy_sdk::testing::web::FAILING;
///
/// assert!(FAILING.iter().any(|(_, error)| *error == NetError::Tls));
/// ```
pub const FAILING: [(&str, NetError); 7] = [
    ("unreachable", NetError::Unreachable),
    ("unreachable, port closed", NetError::Refused),
    ("connection closed", NetError::Closed),
    ("wrong certificate", NetError::Tls),
    ("wrong credentials at the login", NetError::Login),
    ("huge", NetError::TooLarge),
    ("the lease is lost", NetError::NotLeader),
];

/// A web server that answers some requests otherwise than it should.
///
/// ```
/// # use node_remedy_sdk::testing::Web;
/// # use node_remedy_sdk::{HttpRequest, HttpResponse};
/// #
/// # struct Board;
/// #
/// # impl Web for Board {
/// #     fn exchange(&mut self, _: u64, _: &HttpRequest) -> (u64, HttpResponse) {
/// #         (20, HttpResponse { status: 200, headers: Vec::new(), body: br#"{"on": true}"#.to_vec() })
/// #     }
/// # }
/// use node_remedy_sdk::testing::web::Overlay;
///
/// let mut overloaded = Overlay::new(Board).instead("PUT /relays", 503, "").header("Retry-After", "2");
/// let request = |method: &str| HttpRequest {
///     method: method.to_owned(),
///     path: "/relays/2".to_owned(),
///     headers: Vec::new(),
///     body: Vec::new(),
///     timeout_ms: 5_000,
/// };
/// assert_eq!(overloaded.exchange(0, &request("PUT")).1.status, 503);
/// assert_eq!(overloaded.exchange(0, &request("GET")).1.status, 200);
/// ```
pub struct Overlay<W> {
    /// The server itself.
    pub server: W,
    instead: Vec<Instead>,
    afterwards: Vec<(String, Afterwards<W>)>,
    fails: Option<NetError>,
}

/// What becomes of a server.
type Afterwards<W> = Box<dyn FnMut(&mut W)>;

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
        Self { server, instead: Vec::new(), afterwards: Vec::new(), fails: None }
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

    /// Once it has answered what begins so, this becomes of the server.
    #[must_use]
    pub fn after(mut self, line: &str, becomes: impl FnMut(&mut W) + 'static) -> Self {
        self.afterwards.push((line.to_owned(), Box::new(becomes)));
        self
    }

    /// Every request fails so.
    #[must_use]
    pub fn failing(mut self, error: NetError) -> Self {
        self.fails = Some(error);
        self
    }

    /// What every request fails with, if it does.
    pub fn fails(&self) -> Option<NetError> {
        self.fails
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
            let answer = self.server.exchange(now_ms, request);
            let begun = self.afterwards.iter_mut().filter(|(begin, _)| line.starts_with(begin));
            begun.for_each(|(_, becomes)| becomes(&mut self.server));
            return answer;
        };
        one.turns = one.turns.map(|turns| turns - 1);
        let body = one.body.clone().into_bytes();
        (one.takes_ms, HttpResponse { status: one.status, headers: one.headers.clone(), body })
    }
}

/// What a call came to.
///
/// ```
/// # use node_remedy_sdk::testing::Web;
/// # use node_remedy_sdk::{HttpRequest, HttpResponse};
/// #
/// # struct Board;
/// #
/// # impl Web for Board {
/// #     fn exchange(&mut self, _: u64, _: &HttpRequest) -> (u64, HttpResponse) {
/// #         (20, HttpResponse { status: 200, headers: Vec::new(), body: br#"{"on": true}"#.to_vec() })
/// #     }
/// # }
/// # use node_remedy_sdk::{Action, Failure, FenceMethod, Host, Outcome, PlugState, Request};
/// #
/// # #[derive(Default)]
/// # struct Reader;
/// #
/// # impl FenceMethod for Reader {
/// #     const MANIFEST: &'static str = "{}";
/// #
/// #     fn run(&self, _: &Request, host: &impl Host) -> Result<Outcome, Failure> {
/// #         let request = HttpRequest {
/// #             method: "GET".to_owned(),
/// #             path: "/relays/2".to_owned(),
/// #             headers: Vec::new(),
/// #             body: Vec::new(),
/// #             timeout_ms: 5_000,
/// #         };
/// #         let answer = host.fetch("board", &request).map_err(|error| error.into_failure("read"))?;
/// #         let is_on = answer.status == 200 && answer.body == br#"{"on": true}"#;
/// #         let state = if is_on { PlugState::On } else { PlugState::Unknown };
/// #         Ok(Outcome { detail: "as it was read".to_owned(), ..Outcome::new(state) })
/// #     }
/// # }
/// use node_remedy_sdk::testing::web::{Overlay, ask};
///
/// let request = Request::new(Action::Status, 30_000);
/// let ended = ask::<Reader, _>("board", Overlay::new(Board), &request, |host| host);
/// assert_eq!(ended.took_ms, 20);
/// assert_eq!(ended.trace.len(), 2, "asked, and answered");
/// ```
pub struct Ended<W> {
    /// What was asked for.
    pub action: Action,
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

    /// As a row of the table of faults; the machine is on.
    pub fn fault<'a>(&'a self, name: &'a str) -> Fault<'a> {
        let Self { action, result, took_ms, .. } = self;
        let (action, took_ms, sessions) = (*action, *took_ms, Sessions::OfTheHost);
        Fault { name, action, result, took_ms, sessions, is_off: false }
    }
}

/// One call of a method to a server behind an endpoint.
///
/// ```
/// # use node_remedy_sdk::testing::Web;
/// # use node_remedy_sdk::{HttpRequest, HttpResponse};
/// #
/// # struct Board;
/// #
/// # impl Web for Board {
/// #     fn exchange(&mut self, _: u64, _: &HttpRequest) -> (u64, HttpResponse) {
/// #         (20, HttpResponse { status: 200, headers: Vec::new(), body: br#"{"on": true}"#.to_vec() })
/// #     }
/// # }
/// # use node_remedy_sdk::{Action, Failure, FenceMethod, Host, Outcome, PlugState, Request};
/// #
/// # #[derive(Default)]
/// # struct Reader;
/// #
/// # impl FenceMethod for Reader {
/// #     const MANIFEST: &'static str = "{}";
/// #
/// #     fn run(&self, _: &Request, host: &impl Host) -> Result<Outcome, Failure> {
/// #         let request = HttpRequest {
/// #             method: "GET".to_owned(),
/// #             path: "/relays/2".to_owned(),
/// #             headers: Vec::new(),
/// #             body: Vec::new(),
/// #             timeout_ms: 5_000,
/// #         };
/// #         let answer = host.fetch("board", &request).map_err(|error| error.into_failure("read"))?;
/// #         let is_on = answer.status == 200 && answer.body == br#"{"on": true}"#;
/// #         let state = if is_on { PlugState::On } else { PlugState::Unknown };
/// #         Ok(Outcome { detail: "as it was read".to_owned(), ..Outcome::new(state) })
/// #     }
/// # }
/// use node_remedy_sdk::testing::web::{Overlay, ask};
///
/// let request = Request::new(Action::Status, 30_000);
/// let odd = Overlay::new(Board).instead("GET", 200, "<html>");
/// let ended = ask::<Reader, _>("board", odd, &request, |host| host);
/// assert_eq!(ended.result.map(|outcome| outcome.state), Ok(PlugState::Unknown));
/// ```
pub fn ask<M: FenceMethod, W: Web + 'static>(
    endpoint: &str,
    web: Overlay<W>,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<W> {
    let fails = web.fails;
    let web = Rc::new(RefCell::new(web));
    let plain = TestHost::new(u64::from(request.deadline_ms));
    let plain = match fails {
        Some(error) => plain.failing(endpoint, error),
        None => plain.web(endpoint, web.clone()),
    };
    let host = host(plain);
    let result = M::default().run(request, &host);
    let (action, took_ms, trace) = (request.action, host.elapsed().as_millis(), host.trace());
    Ended { action, result, took_ms, trace, web }
}

/// A row for each fault, and for those of every method that speaks HTTP; `sound` is the server without
/// any, and `change` begins what the method asks of it to switch the machine off.
///
/// ```
/// # use node_remedy_sdk::testing::Web;
/// # use node_remedy_sdk::{HttpRequest, HttpResponse};
/// #
/// # struct Board;
/// #
/// # impl Web for Board {
/// #     fn exchange(&mut self, _: u64, _: &HttpRequest) -> (u64, HttpResponse) {
/// #         (20, HttpResponse { status: 200, headers: Vec::new(), body: br#"{"on": true}"#.to_vec() })
/// #     }
/// # }
/// # use node_remedy_sdk::{Action, Failure, FenceMethod, Host, Outcome, PlugState, Request};
/// #
/// # #[derive(Default)]
/// # struct Reader;
/// #
/// # impl FenceMethod for Reader {
/// #     const MANIFEST: &'static str = "{}";
/// #
/// #     fn run(&self, _: &Request, host: &impl Host) -> Result<Outcome, Failure> {
/// #         let request = HttpRequest {
/// #             method: "GET".to_owned(),
/// #             path: "/relays/2".to_owned(),
/// #             headers: Vec::new(),
/// #             body: Vec::new(),
/// #             timeout_ms: 5_000,
/// #         };
/// #         let answer = host.fetch("board", &request).map_err(|error| error.into_failure("read"))?;
/// #         let is_on = answer.status == 200 && answer.body == br#"{"on": true}"#;
/// #         let state = if is_on { PlugState::On } else { PlugState::Unknown };
/// #         Ok(Outcome { detail: "as it was read".to_owned(), ..Outcome::new(state) })
/// #     }
/// # }
/// use node_remedy_sdk::testing::faults::FaultTable;
/// use node_remedy_sdk::testing::web::{Overlay, ask, fault_table};
///
/// let mut table = FaultTable::new("reader", 30_000);
/// let rows = vec![("malformed", Overlay::new(Board).instead("GET", 200, "<html>"))];
/// let request = Request::new(Action::Status, 30_000);
/// fault_table(&mut table, (|| Board, "PUT"), rows, |web| {
///     ask::<Reader, _>("board", web, &request, |host| host)
/// });
/// ```
pub fn fault_table<W: 'static>(
    table: &mut FaultTable,
    (sound, change): (fn() -> W, &str),
    rows: Vec<(&str, Overlay<W>)>,
    ask: impl Fn(Overlay<W>) -> Ended<W>,
) {
    let failing = FAILING.map(|(name, error)| (name, Overlay::new(sound()).failing(error)));
    let back = Overlay::new(sound()).after(change, move |server| *server = sound());
    let flips = [("flips back at once", back)];
    for (name, web) in rows.into_iter().chain(flips).chain(failing) {
        table.row(&ask(web).fault(name));
    }
}
