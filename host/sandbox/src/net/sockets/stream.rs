//! Streams over real sockets: to the granted address and nowhere else, with TLS where it is granted.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use rustls::pki_types::ServerName;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{NetError, Peer, tls};
use crate::net::Stream;
use crate::net::sockets::error::net_error;
use crate::trust::TlsRefusal;

/// What the other side has not acknowledged for so long is given up (RFC 5482), also where whoever sent it has gone:
/// less than any method's `lateEffectSeconds`.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(20);

/// Bytes both ways, inside TLS or not.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Bytes for S {}

struct Tcp(Box<dyn Bytes>);

/// Connects, and agrees on TLS where there is to be some.
pub(super) async fn dial(to: Peer) -> Result<Box<dyn Bytes>, NetError> {
    let stream = reach(to.address).await.map_err(|error| net_error(&error))?;
    // The kernel's word, not ours, on whom this stream speaks with.
    if stream.peer_addr().map_err(|error| net_error(&error))? != to.address {
        return Err(NetError::Other);
    }
    let Some(trust) = to.tls else { return Ok(Box::new(stream)) };
    let config = tls::config(&trust).map_err(|_| NetError::Tls(TlsRefusal::NoAuthorities))?;
    let name = ServerName::try_from(to.host).map_err(|_| NetError::Tls(TlsRefusal::Name))?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    Ok(Box::new(connecting.await.map_err(|error| net_error(&error))?))
}

async fn reach(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // The kernel goes on to send an abandoned request for a quarter of an hour, or until this.
    SockRef::from(&stream).set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    Ok(stream)
}

pub(super) async fn connect(to: Peer) -> Result<Box<dyn Stream>, NetError> {
    Ok(Box::new(Tcp(dial(to).await?)))
}

impl Stream for Tcp {
    fn write<'a>(&'a mut self, data: &'a [u8]) -> BoxFuture<'a, Result<(), NetError>> {
        Box::pin(async move {
            self.0.write_all(data).await.map_err(|error| net_error(&error))?;
            self.0.flush().await.map_err(|error| net_error(&error))
        })
    }

    fn read(&mut self, max: usize) -> BoxFuture<'_, Result<Vec<u8>, NetError>> {
        Box::pin(async move {
            let mut buffer = vec![0; max];
            let length = self.0.read(&mut buffer).await.map_err(|error| net_error(&error))?;
            buffer.truncate(length);
            Ok(buffer)
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn what_is_abandoned_does_not_arrive_a_quarter_of_an_hour_later() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = reach(listener.local_addr().unwrap()).await.unwrap();
        let timeout = SockRef::from(&stream).tcp_user_timeout().unwrap();
        assert_eq!(timeout, Some(UNACKNOWLEDGED_MAX));
    }
}
