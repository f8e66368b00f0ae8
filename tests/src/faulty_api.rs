//! The way to the API server with faults on it: a reverse proxy that answers in the server's name,
//! loses replies, is slow, or is down.
//!
//! Only whoever gets its kubeconfig goes through it; everybody else talks to the server, so the
//! cluster itself is well. What it forwards it forwards unchanged, in the name of the one user that
//! it was started for.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::ControlPlane;
use crate::time::Task;
use crate::user::User;

/// What an API server under load asks for; also the least that the header can say.
const RETRY_AFTER_S: u32 = 1;

/// What happens to a request.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It is not carried out and answered with this status code.
    Answer(u16),
    /// It is carried out, and the connection breaks before the answer.
    ReplyLost,
    /// It is carried out and answered after this long.
    Slow(Duration),
}

/// Which of the matching requests are struck.
#[derive(Clone, Copy, Debug)]
pub enum Times {
    /// The first so many.
    First(usize),
    /// About so many of a hundred; the same seed chooses the same of a row of requests.
    Percent {
        /// Of a hundred.
        percent: u64,
        /// Which ones.
        seed: u64,
    },
    /// All.
    Always,
}

/// One fault and whom it strikes. An empty string or list matches everything.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Any of these methods.
    pub methods: &'static [Method],
    /// A part of the path.
    pub path: &'static str,
    /// A part of the request's body.
    pub body: &'static str,
    /// Which of those that match.
    pub times: Times,
    /// What happens to them.
    pub fault: Fault,
}

/// Strikes nothing until it is told what; a template for those that say less.
pub const EVERYTHING: Rule =
    Rule { methods: &[], path: "", body: "", times: Times::Always, fault: Fault::Answer(500) };

/// A running proxy; dropped, it is gone.
pub struct FaultyApi {
    kubeconfig: PathBuf,
    shared: Arc<Shared>,
    _task: Task,
}

struct Shared {
    server: Client,
    rules: Mutex<Vec<Counted>>,
    is_up: watch::Sender<bool>,
}

#[derive(Debug)]
struct Counted {
    rule: Rule,
    met: usize,
    struck: usize,
}

impl FaultyApi {
    /// Starts one before the API server, for `user`. It is up and has no fault.
    pub async fn start(control_plane: &ControlPlane, user: User) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        let kubeconfig = control_plane.kubeconfig_through(user, &address)?;
        let mut config = control_plane.config(user).await?;
        // What the server says is for whoever asked.
        config.default_retry = false;
        let server = Client::try_from(config)?;
        let (is_up, _) = watch::channel(true);
        let shared = Arc::new(Shared { server, rules: Mutex::default(), is_up });
        let task = Task::spawn(listen(shared.clone(), listener));
        Ok(Self { kubeconfig, shared, _task: task })
    }

    /// A kubeconfig file that leads through here.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// From now on these faults, and no others. Of several that match a request the first one
    /// that strikes counts.
    pub fn set(&self, rules: &[Rule]) {
        let counted = |rule: &Rule| Counted { rule: *rule, met: 0, struck: 0 };
        *self.shared.rules() = rules.iter().map(counted).collect();
    }

    /// How often each rule struck since it was set.
    #[must_use]
    pub fn struck(&self) -> Vec<usize> {
        self.shared.rules().iter().map(|counted| counted.struck).collect()
    }

    /// The server is gone: connections break, and new ones break at once.
    pub fn go_down(&self) {
        self.shared.is_up.send_replace(false);
    }

    /// The server is back.
    pub fn come_up(&self) {
        self.shared.is_up.send_replace(true);
    }
}

async fn listen(shared: Arc<Shared>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(shared.clone(), stream));
                }
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    let mut up = shared.is_up.subscribe();
    let answer = service_fn(|request| shared.answer(request));
    tokio::select! {
        biased;
        // The sender lives in `shared`, so waiting ends only with a change.
        _ = up.wait_for(|is_up| !is_up) => {}
        // How a connection ends is its client's business.
        _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer) => {}
    }
}

impl Shared {
    fn rules(&self) -> MutexGuard<'_, Vec<Counted>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error breaks the connection.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>> {
        let (mut head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let fault = self.fault_of(&head.method, head.uri.path(), &body);
        match fault {
            Some(Fault::Answer(code)) => return refusal(code),
            Some(Fault::Slow(time)) => tokio::time::sleep(time).await,
            Some(Fault::ReplyLost) | None => {}
        }
        // The client for the server says both in its own way.
        head.headers.remove(HOST);
        head.headers.remove(AUTHORIZATION);
        let path = head.uri.path_and_query().context("a request without a path")?;
        head.uri = path.as_str().parse()?;
        let response = self.server.send(Request::from_parts(head, Body::from(body))).await?;
        match fault {
            Some(Fault::ReplyLost) => Err(anyhow!("the reply is lost")),
            Some(Fault::Answer(_) | Fault::Slow(_)) | None => Ok(response),
        }
    }

    fn fault_of(&self, method: &Method, path: &str, body: &[u8]) -> Option<Fault> {
        let body = String::from_utf8_lossy(body);
        self.rules().iter_mut().find_map(|counted| counted.strikes(method, path, &body))
    }
}

impl Counted {
    fn strikes(&mut self, method: &Method, path: &str, body: &str) -> Option<Fault> {
        let Rule { methods, path: part, body: words, times, fault } = self.rule;
        let is_method = methods.is_empty() || methods.contains(method);
        if !(is_method && path.contains(part) && body.contains(words)) {
            return None;
        }
        self.met += 1;
        let is_struck = match times {
            Times::Always => true,
            Times::First(count) => self.met <= count,
            Times::Percent { percent, seed } => draw(seed, self.met) < percent,
        };
        self.struck += usize::from(is_struck);
        is_struck.then_some(fault)
    }
}

/// A number below a hundred that depends on nothing else.
fn draw(seed: u64, number: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, number).hash(&mut hasher);
    hasher.finish() % 100
}

/// An answer as an API server words it.
fn refusal(code: u16) -> Result<Response<Body>> {
    let reason = BTreeMap::from([
        (409, "Conflict"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
    ]);
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason.get(&code).copied().unwrap_or_default(),
        "message": "a fault of the test",
        "details": {"retryAfterSeconds": RETRY_AFTER_S},
    });
    let answer = Response::builder().status(StatusCode::from_u16(code)?);
    let answer = answer.header(CONTENT_TYPE, "application/json").header(RETRY_AFTER, RETRY_AFTER_S);
    Ok(answer.body(Body::from(status.to_string().into_bytes()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(rule: Rule, requests: &[(Method, &str, &str)]) -> Vec<bool> {
        let mut counted = Counted { rule, met: 0, struck: 0 };
        let strikes = |(method, path, body): &(Method, &str, &str)| {
            counted.strikes(method, path, body).is_some()
        };
        requests.iter().map(strikes).collect()
    }

    #[test]
    fn a_rule_strikes_by_method_path_and_body_so_often() {
        let rule = Rule {
            methods: &[Method::PUT],
            path: "/status",
            body: "\"off\"",
            times: Times::First(1),
            ..EVERYTHING
        };
        let requests = [
            (Method::GET, "/x/status", "\"off\""),
            (Method::PUT, "/x", "\"off\""),
            (Method::PUT, "/x/status", "\"on\""),
            (Method::PUT, "/x/status", "\"off\""),
            (Method::PUT, "/x/status", "\"off\""),
        ];
        assert_eq!(struck(rule, &requests), [false, false, false, true, false]);
    }

    #[test]
    fn a_rate_strikes_about_so_many_and_the_same_for_the_same_seed() {
        let rule = |seed| Rule { times: Times::Percent { percent: 30, seed }, ..EVERYTHING };
        let requests = vec![(Method::GET, "/", ""); 1_000];
        let first = struck(rule(1), &requests);
        let count = first.iter().filter(|struck| **struck).count();
        assert!((250..350).contains(&count), "{count} of 1000");
        assert_eq!(first, struck(rule(1), &requests));
        assert_ne!(first, struck(rule(2), &requests));
    }
}
