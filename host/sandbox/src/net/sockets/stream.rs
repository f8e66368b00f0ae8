//! Streams over real sockets: to the granted address and nowhere else, with TLS where it is granted.

use std::sync::Arc;

use futures::future::BoxFuture;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{NetError, Peer, net_error, tls};
use crate::net::Stream;
use crate::trust::TlsRefusal;

/// Bytes both ways, inside TLS or not.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Bytes for S {}

struct Tcp(Box<dyn Bytes>);

/// Connects, and agrees on TLS where there is to be some.
pub(super) async fn dial(to: Peer) -> Result<Box<dyn Bytes>, NetError> {
    let stream = TcpStream::connect(to.address).await.map_err(|error| net_error(&error))?;
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
