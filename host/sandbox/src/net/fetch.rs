//! One HTTP request of a plugin, from what it wrote to what it sees: the target and the headers are
//! read strictly, method and path are granted or refused, the host proves who asks, and the answer
//! comes back without credentials. Not here: how it travels ([`super::backend`]).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, header};

use super::{HttpPeer, NetError, auth, headers};
use crate::bindings::node_remedy::fence::net::{
    HttpRequest as WireRequest, HttpResponse as WireResponse, NetError as Wire,
};
use crate::call::{Direction, LogLevel};
use crate::cancel::Cancel;
use crate::grants::Endpoint;
use crate::http_target::{HttpMethod, PathError, Target};
use crate::limits::{
    EXCHANGE_BODY_BYTES_MAX, HTTP_REQUEST_BODY_BYTES_MAX, HTTP_REQUESTS_MAX,
    HTTP_RESPONSE_BODY_BYTES_MAX,
};
use crate::manifest::Auth;
use crate::seams::Clock;
use crate::state::{CallState, Cut};

/// Why a request does not leave the host. Its author finds the sentence in the call's log.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("there is no HTTP endpoint of this name")]
    Endpoint,
    #[error("method {0:?} is not granted")]
    Method(String),
    #[error(transparent)]
    Target(#[from] PathError),
    #[error("path {0} is not granted")]
    Path(String),
    #[error("{0}")]
    Header(String),
    #[error("the body has {0} bytes")]
    TooLarge(usize),
    #[error("credential '{0}' is not configured, not granted or fits in no header")]
    Credential(String),
}

impl From<Refusal> for Wire {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Endpoint
            | Refusal::Method(_)
            | Refusal::Target(_)
            | Refusal::Path(_)
            | Refusal::Header(_) => Self::Denied,
            Refusal::TooLarge(_) => Self::TooLarge,
            Refusal::Credential(_) => Self::Login,
        }
    }
}

impl CallState {
    pub(super) async fn fetch_from(
        &mut self,
        endpoint: &str,
        wire: WireRequest,
    ) -> wasmtime::Result<Result<WireResponse, Wire>> {
        if self.spent.http_requests >= HTTP_REQUESTS_MAX {
            let limit = HTTP_REQUESTS_MAX.into();
            return Err(Cut::Flood { what: "HTTP requests", limit }.into());
        }
        let mut patience = Patience::new(&*self.seams.clock, wire.timeout_ms, &self.cancel);
        let (peer, request) = match self.outgoing(endpoint, wire) {
            Ok(outgoing) => outgoing,
            Err(refusal) => {
                self.keep_log(LogLevel::Debug, &format!("request refused: {refusal}"));
                return Ok(Err(refusal.into()));
            }
        };
        self.spent.http_requests += 1;
        Ok(self.exchange(endpoint, peer, request, &mut patience).await)
    }

    /// Makes of a plugin's words the whole request, if it may be sent.
    fn outgoing(
        &self,
        endpoint: &str,
        wire: WireRequest,
    ) -> Result<(HttpPeer, Request<Vec<u8>>), Refusal> {
        let granted = self.grants.endpoints().get(endpoint).ok_or(Refusal::Endpoint)?;
        let policy = granted.http.as_ref().ok_or(Refusal::Endpoint)?;
        let method = HttpMethod::parse(&wire.method)
            .filter(|method| policy.methods.contains(method))
            .ok_or(Refusal::Method(wire.method))?;
        let target = Target::parse(&wire.path)?;
        if !policy.holds(target.path()) {
            return Err(Refusal::Path(target.path().to_owned()));
        }
        if wire.body.len() > HTTP_REQUEST_BODY_BYTES_MAX {
            return Err(Refusal::TooLarge(wire.body.len()));
        }
        let mut request = Request::new(wire.body);
        *request.method_mut() = method.into();
        *request.uri_mut() = target.to_uri()?;
        *request.headers_mut() = headers::from_plugin(&wire.headers).map_err(Refusal::Header)?;
        request.headers_mut().insert(header::HOST, host_header(granted)?);
        if let Some(name) = policy.auth.credential() {
            let value = self.authorization(&policy.auth);
            let value = value.ok_or_else(|| Refusal::Credential(name.to_owned()))?;
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        let Endpoint { address, host, tls, .. } = granted.clone();
        Ok((HttpPeer { address, host, tls }, request))
    }

    fn authorization(&self, auth: &Auth) -> Option<HeaderValue> {
        let secret = auth::credential(auth, &self.grants, &self.credentials)?;
        auth::authorization(auth, secret)
    }

    async fn exchange(
        &mut self,
        endpoint: &str,
        peer: HttpPeer,
        request: Request<Vec<u8>>,
        patience: &mut Patience,
    ) -> Result<WireResponse, Wire> {
        self.pass_gate()?;
        let net = Arc::clone(&self.seams.net);
        let connecting = async {
            let connected = net.http(peer).await;
            self.record.tls_refusal = match &connected {
                Err(NetError::Tls(refusal)) => Some(*refusal),
                Err(_) | Ok(_) => None,
            };
            connected
        };
        let connection = patience.wait(connecting).await?;
        // Connecting takes time, and the lease may have ended meanwhile.
        self.pass_gate()?;
        let line = format!("{} {} HTTP/1.1", request.method(), request.uri());
        self.keep_http(endpoint, Direction::Sent, &line, request.body());
        let response = patience.wait(connection.exchange(request)).await?;
        self.record.heard = self.record.heard.saturating_add(1);
        let line = format!("HTTP/1.1 {}", response.status().as_u16());
        self.keep_http(endpoint, Direction::Received, &line, response.body());
        self.for_plugin(&response)
    }

    /// What the plugin sees. A device that echoes what it was sent must not hand out what the host
    /// added.
    fn for_plugin(&self, response: &Response<Vec<u8>>) -> Result<WireResponse, Wire> {
        if response.body().len() > HTTP_RESPONSE_BODY_BYTES_MAX {
            return Err(Wire::TooLarge);
        }
        let seen = headers::for_plugin(response.headers()).map(|(name, value)| {
            let value = self.secrets.blot(value.as_bytes());
            (name.as_str().to_owned(), String::from_utf8_lossy(&value).into_owned())
        });
        Ok(WireResponse {
            status: response.status().as_u16(),
            headers: seen.collect(),
            body: self.secrets.blot(response.body()),
        })
    }

    /// Keeps first line and body as evidence. Headers are not kept: they are where credentials are.
    fn keep_http(&mut self, endpoint: &str, direction: Direction, line: &str, body: &[u8]) {
        // Blotted before it is cut, for the cut may go through a secret.
        let body = self.secrets.blot(body);
        let body = body.get(..EXCHANGE_BODY_BYTES_MAX).unwrap_or(&body);
        let message = [line.as_bytes(), b"\r\n\r\n", body].concat();
        self.keep_exchange(endpoint, direction, &message);
    }
}

/// The `Host` header: the name that was granted, never one that the plugin writes.
fn host_header(endpoint: &Endpoint) -> Result<HeaderValue, Refusal> {
    let Endpoint { host, address, protocol, .. } = endpoint;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let authority = match address.port() {
        port if protocol.usual_port() == Some(port) => host,
        port => format!("{host}:{port}"),
    };
    // The grant read the host strictly, so it fits.
    HeaderValue::from_str(&authority).map_err(|_| Refusal::Endpoint)
}

/// How long a request may be waited for, over all its parts.
pub(super) struct Patience {
    timeout: BoxFuture<'static, ()>,
    cancel: Cancel,
    /// A wait that is going on ends when the call is cancelled; one that begins later is how a
    /// plugin closes its session.
    closing: bool,
}

impl Patience {
    pub(super) fn new(clock: &dyn Clock, timeout_ms: u32, cancel: &Cancel) -> Self {
        Self {
            timeout: clock.sleep(Duration::from_millis(timeout_ms.into())),
            cancel: cancel.clone(),
            closing: cancel.is_asked(),
        }
    }

    pub(super) async fn wait<T>(
        &mut self,
        work: impl Future<Output = Result<T, NetError>>,
    ) -> Result<T, Wire> {
        tokio::select! {
            biased;
            done = work => done.map_err(Wire::from),
            () = &mut self.timeout => Err(Wire::Timeout),
            () = self.cancel.asked(), if !self.closing => Err(Wire::Cancelled),
        }
    }
}
