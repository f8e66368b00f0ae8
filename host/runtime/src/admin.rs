//! `/metrics`, `/healthz` and `/readyz` over plain HTTP.
//!
//! Healthy says: the process serves. Ready says: the configuration is read, the
//! caches are filled and followed, so a standby is ready too. Neither says who leads; a standby that
//! was not ready would never be rolled in.
//!
//! Whoever reaches a port can hold connections open. Each port has so many of its own, and one that comes takes the
//! place of the one that has been silent for longest: who asks at once is answered, whatever others hold.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::metrics::Metrics;

/// More than any scraper and probe need at once.
const CONNECTIONS_MAX: usize = 32;
/// A client that sends no header this long is cut.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// So is one that has not read its answer by then: longer than any scraper waits.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Before the next try where the system gives no connection: it has no file descriptors just now.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// What `/metrics` is written as; Prometheus 3 reads nothing that does not say.
const EXPOSITION: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// What `/readyz` answers from.
#[derive(Default)]
pub struct Readiness {
    missing: RefCell<Vec<String>>,
}

impl Readiness {
    /// Not ready until told otherwise.
    pub fn new() -> Rc<Self> {
        let starting = vec!["the caches are not filled yet".to_owned()];
        Rc::new(Self { missing: RefCell::new(starting) })
    }

    /// What is still missing; empty: ready.
    pub fn set_missing(&self, missing: Vec<String>) {
        self.missing.replace(missing);
    }
}

/// What one port answers.
#[derive(Clone)]
pub struct Pages {
    /// None: no `/metrics` here.
    pub metrics: Option<Rc<Metrics>>,
    /// `/healthz` and `/readyz`.
    pub readiness: Rc<Readiness>,
}

/// Serves until dropped; returns only if the address, which `flag` gave, cannot be bound.
pub async fn serve(flag: &str, address: SocketAddr, pages: Pages) -> anyhow::Result<Infallible> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("failed to listen on {address}; choose another {flag}"))?;
    tracing::info!(%address, metrics = pages.metrics.is_some(), "serving /healthz and /readyz");
    Ok(listen(&listener, &pages).await)
}

async fn listen(listener: &TcpListener, pages: &Pages) -> Infallible {
    let mut guests = Guests::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => guests.let_in(stream, pages.clone()),
            Err(error) => {
                tracing::debug!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// The connections that are open, oldest first.
#[derive(Default)]
struct Guests(VecDeque<Guest>);

struct Guest {
    /// Whether a whole request has come.
    has_asked: Rc<Cell<bool>>,
    connection: AbortHandle,
}

impl Guests {
    fn let_in(&mut self, stream: TcpStream, pages: Pages) {
        self.0.retain(|guest| !guest.connection.is_finished());
        if self.0.len() >= CONNECTIONS_MAX {
            let silent = self.0.iter().position(|guest| !guest.has_asked.get());
            if let Some(guest) = self.0.remove(silent.unwrap_or_default()) {
                guest.connection.abort();
            }
        }
        let has_asked = Rc::new(Cell::new(false));
        let connection = tokio::task::spawn_local(answer_one(stream, pages, has_asked.clone()));
        self.0.push_back(Guest { has_asked, connection: connection.abort_handle() });
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        self.0.iter().for_each(|guest| guest.connection.abort());
    }
}

async fn answer_one(stream: TcpStream, pages: Pages, has_asked: Rc<Cell<bool>>) {
    let answer = service_fn(move |request: Request<Incoming>| {
        has_asked.set(true);
        let answer = answer(&request, &pages);
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    match timeout(CONNECTION_TIMEOUT, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "failed to serve an admin request"),
        Err(_) => tracing::debug!("cut an admin connection that took too long"),
    }
}

fn answer(request: &Request<Incoming>, pages: &Pages) -> Response<Full<Bytes>> {
    let (status, body) = match (request.uri().path(), &pages.metrics) {
        ("/metrics", Some(metrics)) => (StatusCode::OK, metrics.text()),
        ("/healthz", _) => (StatusCode::OK, "ok\n".to_owned()),
        ("/readyz", _) => match pages.readiness.missing.borrow().as_slice() {
            [] => (StatusCode::OK, "ok\n".to_owned()),
            missing => (StatusCode::SERVICE_UNAVAILABLE, missing.join("\n") + "\n"),
        },
        (_, metrics) => {
            let more = if metrics.is_some() { ", /metrics" } else { "" };
            (StatusCode::NOT_FOUND, format!("not here; try /healthz, /readyz{more}\n"))
        }
    };
    let content = if request.uri().path() == "/metrics" { EXPOSITION } else { TEXT };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content));
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::task::LocalSet;

    use super::*;

    async fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // One that is cut answers nothing.
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    /// A port that serves these, for as long as the set runs.
    async fn port(pages: Pages) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::task::spawn_local(async move { listen(&listener, &pages).await });
        address
    }

    fn pages(metrics: Option<Rc<Metrics>>) -> Pages {
        let readiness = Readiness::new();
        readiness.set_missing(Vec::new());
        Pages { metrics, readiness }
    }

    #[tokio::test]
    async fn whoever_asks_is_answered_whatever_silent_ones_hold() {
        LocalSet::new()
            .run_until(async {
                let address = port(pages(None)).await;
                let mut silent = Vec::new();
                for _ in 0..10 {
                    for _ in 0..CONNECTIONS_MAX {
                        silent.push(TcpStream::connect(address).await.unwrap());
                    }
                    let within = timeout(Duration::from_secs(1), ask(address, "/readyz"));
                    let answer = within.await.expect("a probe waits a second");
                    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
                }
                // The oldest of them were cut.
                let mut first = silent.swap_remove(0);
                assert_eq!(first.read(&mut [0]).await.unwrap_or(0), 0);
            })
            .await;
    }

    #[tokio::test]
    async fn who_has_asked_keeps_its_place_while_a_silent_one_is_there() {
        let guest = |has_asked: bool| {
            let connection = tokio::task::spawn_local(std::future::pending::<()>());
            Guest {
                has_asked: Rc::new(Cell::new(has_asked)),
                connection: connection.abort_handle(),
            }
        };
        LocalSet::new()
            .run_until(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                let (stream, _) = listener.accept().await.unwrap();
                let mut guests = Guests::default();
                guests.0.extend((0..CONNECTIONS_MAX).map(|place| guest(place != 7)));
                let handles: Vec<_> = guests.0.iter().map(|one| one.connection.clone()).collect();
                guests.let_in(stream, pages(None));
                assert_eq!(guests.0.len(), CONNECTIONS_MAX);
                tokio::task::yield_now().await;
                for (place, handle) in handles.iter().enumerate() {
                    assert_eq!(handle.is_finished(), place == 7, "{place}");
                }
            })
            .await;
    }

    #[tokio::test]
    async fn a_port_for_probes_tells_no_metrics() {
        LocalSet::new()
            .run_until(async {
                let address = port(pages(None)).await;
                assert!(ask(address, "/metrics").await.starts_with("HTTP/1.1 404"));
                assert!(ask(address, "/healthz").await.starts_with("HTTP/1.1 200"));
            })
            .await;
    }
}
