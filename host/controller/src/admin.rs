//! `/metrics`, `/healthz` and `/readyz` over plain HTTP.
//!
//! Healthy says: the process serves. Ready says: the configuration is read, the
//! caches are filled and followed, so a standby is ready too. Neither says who leads; a standby that
//! was not ready would never be rolled in.

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::record::metrics::Metrics;

/// More than any scraper and probe need at once.
const CONNECTIONS_MAX: usize = 32;
/// A client that sends no header this long is cut.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

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

/// Serves until dropped; returns only if the address cannot be bound.
pub async fn serve(
    address: SocketAddr,
    metrics: Rc<Metrics>,
    readiness: Rc<Readiness>,
) -> anyhow::Result<Infallible> {
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("failed to listen on {address}; choose another --admin-address")
    })?;
    tracing::info!(%address, "serving /metrics, /healthz and /readyz");
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { continue };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (metrics, readiness) = (metrics.clone(), readiness.clone());
        tokio::task::spawn_local(async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let answer = answer(&request, &metrics, &readiness);
                async move { Ok::<_, Infallible>(answer) }
            });
            let served = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer)
                .await;
            if let Err(error) = served {
                tracing::debug!(%error, "failed to serve an admin request");
            }
            drop(place);
        });
    }
}

fn answer(
    request: &Request<Incoming>,
    metrics: &Metrics,
    readiness: &Readiness,
) -> Response<Full<Bytes>> {
    let (status, body) = match request.uri().path() {
        "/metrics" => (StatusCode::OK, metrics.text()),
        "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => match readiness.missing.borrow().as_slice() {
            [] => (StatusCode::OK, "ok\n".to_owned()),
            missing => (StatusCode::SERVICE_UNAVAILABLE, missing.join("\n") + "\n"),
        },
        _ => {
            let known = "not here; try /metrics, /healthz or /readyz\n";
            (StatusCode::NOT_FOUND, known.to_owned())
        }
    };
    let content = if request.uri().path() == "/metrics" { EXPOSITION } else { TEXT };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content));
    response
}
