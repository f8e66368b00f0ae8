//! One HTTP request of a plugin, from what it wrote to what it sees: the target and the headers are
//! read strictly, method and path are granted or refused, the host proves who asks, and the answer
//! comes back without credentials. Not here: how it travels ([`super::backend`]).

use std::sync::Arc;

use http::{Request, Response, StatusCode, header};
use node_remedy_decide::bug::{Bug, guard, is_seeded};

use super::session::LoggedIn;
use super::{HttpPeer, NetError, auth, headers};
use crate::bindings::node_remedy::fence::net::{
    HttpRequest as WireRequest, HttpResponse as WireResponse, NetError as Wire,
};
use crate::http_target::{HttpMethod, PathError, Target};
use crate::limits::{
    EXCHANGE_BODY_BYTES_MAX, HTTP_REQUEST_BODY_BYTES_MAX, HTTP_RESPONSE_BODY_BYTES_MAX,
};
use crate::manifest::Login;
use crate::net::headers::host_header;
use crate::net::patience::{Patience, Unanswered};
use crate::net::session_store::Shown;
use crate::state::CallState;
use crate::types::{Cut, Direction, LogLevel};

/// A request that may be sent.
struct Outgoing {
    peer: HttpPeer,
    request: Request<Vec<u8>>,
    session: Option<Arc<Login>>,
}

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
        let mut patience = Patience::new(&*self.seams.clock, wire.timeout_ms, &self.cancel);
        let outgoing = match self.outgoing(endpoint, wire) {
            Ok(outgoing) => outgoing,
            Err(refusal) => {
                self.note_refusal(endpoint);
                self.keep_log(LogLevel::Debug, &format!("request refused: {refusal}"));
                return Ok(Err(refusal.into()));
            }
        };
        Unanswered::end(self.answered(endpoint, outgoing, &mut patience).await)
    }

    /// Asks, inside of a session where the endpoint has one.
    async fn answered(
        &mut self,
        endpoint: &str,
        Outgoing { peer, request, session }: Outgoing,
        patience: &mut Patience,
    ) -> Result<WireResponse, Unanswered> {
        let Some(login) = session else {
            let response = self.exchange(endpoint, peer, request, Shown::Whole, patience).await?;
            return Ok(self.heard(endpoint, &response)?);
        };
        loop {
            let (entered, is_fresh) = match self.enter(endpoint, &login, patience).await? {
                LoggedIn::Session(entered, is_fresh) => (entered, is_fresh),
                LoggedIn::Refused(response) => return Ok(self.for_plugin(endpoint, &response)?),
            };
            let mut request = request.clone();
            entered.put_on(&mut request).ok_or(Wire::Login)?;
            let peer = peer.clone();
            let response = self.exchange(endpoint, peer, request, Shown::Whole, patience).await?;
            // What was answered so was not carried out. A session that was begun just now is not
            // forgotten but refused.
            if response.status() != StatusCode::UNAUTHORIZED || is_fresh {
                return Ok(self.heard(endpoint, &response)?);
            }
            self.forget(endpoint);
        }
    }

    /// Makes of a plugin's words the whole request, if it may be sent.
    fn outgoing(&self, endpoint: &str, wire: WireRequest) -> Result<Outgoing, Refusal> {
        let granted = self.grants.endpoints().get(endpoint).ok_or(Refusal::Endpoint)?;
        let policy = granted.http.as_ref().filter(|policy| !policy.is_host_only);
        let policy = policy.ok_or(Refusal::Endpoint)?;
        let method = HttpMethod::parse(&wire.method)
            .filter(|method| policy.methods.contains(method) || is_seeded(Bug::MethodUnchecked))
            .ok_or(Refusal::Method(wire.method))?;
        let target = Target::parse(&wire.path)?;
        if guard(Bug::PathUnchecked, !policy.holds(target.path())) {
            return Err(Refusal::Path(target.path().to_owned()));
        }
        if wire.body.len() > HTTP_REQUEST_BODY_BYTES_MAX {
            return Err(Refusal::TooLarge(wire.body.len()));
        }
        let mut request = Request::new(wire.body);
        *request.method_mut() = method.into();
        *request.uri_mut() = target.to_uri()?;
        *request.headers_mut() = headers::from_plugin(&wire.headers).map_err(Refusal::Header)?;
        let host = host_header(granted).ok_or(Refusal::Endpoint)?;
        request.headers_mut().insert(header::HOST, host);
        if auth::sign(&policy.auth, &mut request, &self.using()).is_none() {
            let name = policy.auth.credential().unwrap_or_default();
            return Err(Refusal::Credential(name.to_owned()));
        }
        Ok(Outgoing { peer: HttpPeer::of(granted), request, session: policy.auth.session() })
    }

    /// One exchange with the other side, whoever asks, within the call's budget. Only a farewell is
    /// beyond it: there is one at most for each login, and a device has few sessions to leave open.
    pub(super) async fn exchange(
        &mut self,
        endpoint: &str,
        peer: HttpPeer,
        request: Request<Vec<u8>>,
        shown: Shown,
        patience: &mut Patience,
    ) -> Result<Response<Vec<u8>>, Unanswered> {
        let limit = self.grants.budget().http_requests;
        let is_spent = self.spent.http_requests >= limit && shown != Shown::Farewell;
        if guard(Bug::RequestsUncounted, is_spent) {
            let limit = limit.into();
            return Err(Unanswered::Cut(Cut::Flood { what: "HTTP requests", limit }));
        }
        self.spent.http_requests = self.spent.http_requests.saturating_add(1);
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
        let body = if shown == Shown::Whole { request.body().as_slice() } else { &[] };
        self.keep_http(endpoint, shown.sent_as(), &line, body);
        let response = patience.wait(connection.exchange(request)).await?;
        let line = format!("HTTP/1.1 {}", response.status().as_u16());
        let body = if shown == Shown::Whole { response.body().as_slice() } else { &[] };
        self.keep_http(endpoint, Direction::Received, &line, body);
        Ok(response)
    }

    /// What a device said to the plugin's own question.
    fn heard(
        &mut self,
        endpoint: &str,
        response: &Response<Vec<u8>>,
    ) -> Result<WireResponse, Wire> {
        self.record.heard = self.record.heard.saturating_add(1);
        self.for_plugin(endpoint, response)
    }

    /// What the plugin sees. A device that echoes what it was sent must not hand out what the host
    /// added.
    fn for_plugin(
        &self,
        endpoint: &str,
        response: &Response<Vec<u8>>,
    ) -> Result<WireResponse, Wire> {
        if response.body().len() > HTTP_RESPONSE_BODY_BYTES_MAX {
            return Err(Wire::TooLarge);
        }
        let own = self.grants.endpoints().get(endpoint);
        let seen = headers::for_plugin(response.headers()).map(|(name, value)| {
            let value = match (own, value.to_str()) {
                (Some(own), Ok(text)) if headers::is_address(name) => {
                    headers::own_path(text, own).as_bytes()
                }
                (_, _) => value.as_bytes(),
            };
            let value = if is_seeded(Bug::HeadersUnredacted) {
                value.to_vec()
            } else {
                self.secrets.redact(value)
            };
            (name.as_str().to_owned(), String::from_utf8_lossy(&value).into_owned())
        });
        Ok(WireResponse {
            status: response.status().as_u16(),
            headers: seen.collect(),
            body: if guard(Bug::EchoUnredacted, true) {
                self.secrets.redact(response.body())
            } else {
                response.body().clone()
            },
        })
    }

    /// Keeps first line and body as evidence. Headers are not kept: they are where credentials are.
    fn keep_http(&mut self, endpoint: &str, direction: Direction, line: &str, body: &[u8]) {
        // Redacted before it is cut, for the cut may go through a secret.
        let body = self.as_evidence(body);
        let body = body.get(..EXCHANGE_BODY_BYTES_MAX).unwrap_or(&body);
        let message = [line.as_bytes(), b"\r\n\r\n", body].concat();
        self.keep_exchange(endpoint, direction, &message);
    }
}
