//! A network in which somebody listens everywhere, and which notes who was reached.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Request, Response, header};
use node_remedy_sandbox::net::{Conversation, Fabric, HttpPeer, HttpReply, Peer, StreamEvent};
use serde_json::json;

use super::canary;

const SOON: Duration = Duration::from_millis(5);

/// Everybody.
#[derive(Default)]
pub(super) struct Network {
    reached: Mutex<Vec<String>>,
}

impl Network {
    /// Who was reached, with what: `udp 10.9.0.7:623`, `GET 10.9.0.7:80 /power`.
    pub(super) fn reached(&self) -> Vec<String> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, whom: String) {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).push(whom);
    }
}

impl Fabric for Network {
    fn datagram(&self, to: SocketAddr, _: u16, _: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        self.note(format!("udp {to}"));
        vec![(SOON, b"on".to_vec())]
    }

    /// A login gets a token, and a request with that token gets it back. Any other gets its `Authorization` back: as
    /// it came and decoded in the body, decoded in `X-Echo` and `Set-Cookie`.
    fn http(&self, to: &HttpPeer, request: &Request<Vec<u8>>) -> Option<HttpReply> {
        self.note(format!("{} {} {}", request.method(), to.address, request.uri()));
        let response = if request.uri().path() == "/login" {
            let session = json!({ "token_type": canary::TOKEN, "access_token": "for-everybody" });
            Response::new(session.to_string().into_bytes())
        } else {
            echo(request)?
        };
        Some(HttpReply { after: SOON, result: Ok(response) })
    }

    fn stream(&self, to: &Peer) -> Option<Box<dyn Conversation>> {
        self.note(format!("tcp {}", to.address));
        Some(Box::new(Echo))
    }
}

fn echo(request: &Request<Vec<u8>>) -> Option<Response<Vec<u8>>> {
    if let Some(token) = request.headers().get("x-token") {
        return Some(Response::new(token.as_bytes().to_vec()));
    }
    let proof = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let meant = STANDARD.decode(proof.strip_prefix("Basic ")?).ok()?;
    let mut response = Response::new([proof.as_bytes(), b" ", &meant].concat());
    let meant = HeaderValue::from_bytes(&meant).ok()?;
    response.headers_mut().insert("x-echo", meant.clone());
    response.headers_mut().insert(header::SET_COOKIE, meant);
    Some(response)
}

/// Says again what it hears.
struct Echo;

impl Conversation for Echo {
    fn hear(&mut self, data: &[u8]) -> Vec<(Duration, StreamEvent)> {
        if data.is_empty() { Vec::new() } else { vec![(SOON, StreamEvent::Bytes(data.to_vec()))] }
    }
}
