//! How bytes travel: the network seam. Two implementations exist, sockets and memory; neither
//! decides anything, for the address it is given was granted.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};

use crate::grants::Endpoint;
use crate::limits::HTTP_RESPONSE_BODY_BYTES_MAX;
use crate::trust::{TlsRefusal, Trust};

/// A network to send through.
pub trait NetBackend: Send + Sync {
    /// A socket that speaks with this address and hears nobody else.
    fn udp(&self, to: SocketAddr) -> BoxFuture<'_, Result<Box<dyn Datagram>, NetError>>;
    /// A connection to this address for one HTTP exchange, TLS agreed on, nothing asked yet.
    /// Dropping the future ends the attempt.
    fn http(&self, to: HttpPeer) -> BoxFuture<'_, Result<Box<dyn HttpConnection>, NetError>>;
    /// A stream to this address, TLS agreed on where it has TLS, nothing sent yet. Dropping the
    /// future ends the attempt.
    fn tcp(&self, to: Peer) -> BoxFuture<'_, Result<Box<dyn Stream>, NetError>>;
}

/// The other side of an HTTP exchange.
pub type HttpPeer = Peer;

/// The other side of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The very address that is dialled.
    pub address: SocketAddr,
    /// The name it must prove to have, where it proves one.
    pub host: String,
    /// How it proves that inside TLS; none where there is no TLS.
    pub tls: Option<Trust>,
}

impl HttpPeer {
    /// The other side of an endpoint.
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let Endpoint { address, host, tls, .. } = endpoint.clone();
        Self { address, host, tls }
    }
}

/// A connection for one exchange.
pub trait HttpConnection: Send {
    /// Sends the request as it is, whole, in origin form, and waits for the whole response, a
    /// redirect included. Dropping the future closes the connection.
    fn exchange(
        self: Box<Self>,
        request: Request<Vec<u8>>,
    ) -> BoxFuture<'static, Result<Response<Vec<u8>>, NetError>> {
        self.exchange_up_to(request, HTTP_RESPONSE_BODY_BYTES_MAX)
    }

    /// The same, where the response's body may have so many bytes; for the host's own requests.
    fn exchange_up_to(
        self: Box<Self>,
        request: Request<Vec<u8>>,
        body_bytes_max: usize,
    ) -> BoxFuture<'static, Result<Response<Vec<u8>>, NetError>>;
}

/// A datagram socket with one other side.
pub trait Datagram: Send {
    /// Sends one datagram.
    fn send<'a>(&'a mut self, data: &'a [u8]) -> BoxFuture<'a, Result<(), NetError>>;
    /// Waits for one; none if none came in time. Dropping the future loses nothing.
    fn receive(&mut self, timeout: Duration) -> BoxFuture<'_, Result<Option<Vec<u8>>, NetError>>;
}

/// A stream with one other side. Dropping it closes it.
pub trait Stream: Send {
    /// Sends all of it. Where the future is dropped, nobody knows how much of it went.
    fn write<'a>(&'a mut self, data: &'a [u8]) -> BoxFuture<'a, Result<(), NetError>>;
    /// Waits for some bytes, at most so many; none at all where the other side closed. Dropping the
    /// future loses nothing.
    fn read(&mut self, max: usize) -> BoxFuture<'_, Result<Vec<u8>, NetError>>;
}

/// Why bytes did not travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// No way leads there.
    #[error("failed to reach the address")]
    Unreachable,
    /// Nobody listens there.
    #[error("failed to be heard: the address refuses")]
    Refused,
    /// The other side closed.
    #[error("failed to go on: the other side closed")]
    Closed,
    /// It took too long.
    #[error("failed to get through in time")]
    Timeout,
    /// It was more than is allowed.
    #[error("failed to take that much")]
    TooLarge,
    /// TLS was not agreed on.
    #[error("failed to agree on TLS: {0}")]
    Tls(TlsRefusal),
    /// Anything else.
    #[error("failed to use the network")]
    Other,
}
