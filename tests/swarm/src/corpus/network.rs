//! A network in which somebody listens everywhere, and which notes who was reached.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, header};
use node_remedy_sandbox::net::{Fabric, HttpPeer, HttpReply};

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

    /// Answers with what proves who asks, as it came and as it is meant.
    fn http(&self, to: &HttpPeer, request: &Request<Vec<u8>>) -> Option<HttpReply> {
        self.note(format!("{} {} {}", request.method(), to.address, request.uri()));
        let proof = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
        let meant = STANDARD.decode(proof.strip_prefix("Basic ")?).ok()?;
        let body = [proof.as_bytes(), b" ", &meant].concat();
        let result = Ok(Response::new(body));
        Some(HttpReply { after: SOON, result })
    }
}
