//! The real network. A UDP socket is connected, so the kernel drops what comes from anyone else,
//! and a closed port is heard of at once.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::net::UdpSocket;

use super::{Datagram, HttpConnection, HttpPeer, NetBackend, NetError, Peer, Stream};
use crate::limits::DATAGRAM_BYTES_MAX;
use crate::net::sockets::error::net_error;

mod error;
mod http;
mod stream;
mod tls;

/// The machine's own network. Calls that use it run where tokio drives I/O, as the plugins' own
/// threads do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sockets;

struct Udp {
    socket: UdpSocket,
    peer: SocketAddr,
}

impl NetBackend for Sockets {
    fn udp(&self, to: SocketAddr) -> BoxFuture<'_, Result<Box<dyn Datagram>, NetError>> {
        Box::pin(async move {
            let any = match to {
                SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            };
            let socket = UdpSocket::bind(any).await.map_err(|error| net_error(&error))?;
            socket.connect(to).await.map_err(|error| net_error(&error))?;
            // The kernel's word, not ours, on whom this socket speaks with.
            match socket.peer_addr() {
                Ok(peer) if peer == to => Ok(Box::new(Udp { socket, peer }) as Box<dyn Datagram>),
                Ok(_) => Err(NetError::Other),
                Err(error) => Err(net_error(&error)),
            }
        })
    }

    fn http(&self, to: HttpPeer) -> BoxFuture<'_, Result<Box<dyn HttpConnection>, NetError>> {
        Box::pin(http::connect(to))
    }

    fn tcp(&self, to: Peer) -> BoxFuture<'_, Result<Box<dyn Stream>, NetError>> {
        Box::pin(stream::connect(to))
    }
}

impl Datagram for Udp {
    fn send<'a>(&'a mut self, data: &'a [u8]) -> BoxFuture<'a, Result<(), NetError>> {
        Box::pin(async move {
            match self.socket.send(data).await {
                Ok(sent) if sent == data.len() => Ok(()),
                Ok(_) => Err(NetError::TooLarge),
                Err(error) => Err(net_error(&error)),
            }
        })
    }

    fn receive(&mut self, timeout: Duration) -> BoxFuture<'_, Result<Option<Vec<u8>>, NetError>> {
        Box::pin(async move {
            // One byte more than is allowed, to tell what fits from what was cut.
            let mut buffer = vec![0; DATAGRAM_BYTES_MAX + 1];
            match tokio::time::timeout(timeout, self.socket.recv_from(&mut buffer)).await {
                Err(_) => Ok(None),
                Ok(Err(error)) => Err(net_error(&error)),
                Ok(Ok((length, _))) if length > DATAGRAM_BYTES_MAX => Err(NetError::TooLarge),
                Ok(Ok((_, from))) if from != self.peer => Err(NetError::Other),
                Ok(Ok((length, _))) => {
                    buffer.truncate(length);
                    Ok(Some(buffer))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_hears_its_peer_and_nobody_else() {
        let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut ours = Sockets.udp(peer.local_addr().unwrap()).await.unwrap();

        ours.send(b"ping").await.unwrap();
        let mut buffer = [0; 16];
        let (length, from) = peer.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"ping");

        stranger.send_to(b"forged", from).await.unwrap();
        peer.send_to(b"pong", from).await.unwrap();
        let received = ours.receive(Duration::from_secs(5)).await.unwrap();
        assert_eq!(received.as_deref(), Some(b"pong".as_slice()));
        assert_eq!(ours.receive(Duration::from_millis(1)).await, Ok(None));
    }

    #[tokio::test]
    async fn a_closed_port_is_heard_of_at_once() {
        let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let mut ours = Sockets.udp(closed).await.unwrap();
        ours.send(b"ping").await.unwrap();
        assert_eq!(ours.receive(Duration::from_secs(5)).await, Err(NetError::Refused));
    }

    #[tokio::test]
    async fn an_oversized_datagram_is_told_from_one_that_fits() {
        let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut ours = Sockets.udp(peer.local_addr().unwrap()).await.unwrap();
        ours.send(b"ping").await.unwrap();
        let (_, from) = peer.recv_from(&mut [0; 16]).await.unwrap();
        peer.send_to(&vec![0; DATAGRAM_BYTES_MAX + 1], from).await.unwrap();
        assert_eq!(ours.receive(Duration::from_secs(5)).await, Err(NetError::TooLarge));
        peer.send_to(&vec![7; DATAGRAM_BYTES_MAX], from).await.unwrap();
        let fits = ours.receive(Duration::from_secs(5)).await.unwrap().unwrap();
        assert_eq!(fits.len(), DATAGRAM_BYTES_MAX);
    }
}
