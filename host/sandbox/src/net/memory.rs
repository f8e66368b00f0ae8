//! The network of a simulation: devices are functions, and their replies arrive in tokio's time,
//! which is virtual where it is paused.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use tokio::time::Instant;

use super::{Datagram, HttpConnection, HttpPeer, NetBackend, NetError, Peer, Stream};
use crate::limits::{DATAGRAM_BYTES_MAX, REPLIES_QUEUED_MAX};

/// Where systems number their own ports from.
const FIRST_PORT: u16 = 49_152;

/// The devices of a simulation.
pub trait Fabric: Send + Sync {
    /// What comes back for a datagram, each reply with how long it takes. Nothing comes back from
    /// an address that has no device.
    fn datagram(&self, to: SocketAddr, from_port: u16, data: &[u8]) -> Vec<(Duration, Vec<u8>)>;
    /// What an HTTP request comes to, and how long that takes; none where nobody listens.
    fn http(&self, to: &HttpPeer, request: &Request<Vec<u8>>) -> Option<HttpReply> {
        let _ = (to, request);
        None
    }
    /// The other end of a new stream; none where nobody listens.
    fn stream(&self, to: &Peer) -> Option<Box<dyn Conversation>> {
        let _ = to;
        None
    }
}

/// A device's end of one stream.
pub trait Conversation: Send {
    /// What it says to some bytes, each with how long it takes. The first bytes it hears are none:
    /// the stream is open.
    fn hear(&mut self, data: &[u8]) -> Vec<(Duration, StreamEvent)>;
}

/// What comes over a stream of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Its end.
    End,
    /// Its end, without all that was on its way.
    Broken,
}

/// What an HTTP request comes to in a simulation.
pub struct HttpReply {
    /// How long it takes.
    pub after: Duration,
    /// The response, or why there is none.
    pub result: Result<Response<Vec<u8>>, NetError>,
}

/// A network of simulated devices.
pub struct MemoryNet {
    fabric: Arc<dyn Fabric>,
    ports: AtomicU16,
}

struct Udp {
    fabric: Arc<dyn Fabric>,
    to: SocketAddr,
    from_port: u16,
    /// Replies under way, by when they arrive, and in the order they were sent.
    replies: BTreeMap<(Instant, u64), Vec<u8>>,
    sent: u64,
}

struct Tcp {
    device: Box<dyn Conversation>,
    /// What is under way, in the order it was said: a stream overtakes nothing.
    coming: VecDeque<(Instant, StreamEvent)>,
}

struct Http {
    fabric: Arc<dyn Fabric>,
    to: HttpPeer,
}

impl MemoryNet {
    /// The network these devices hang on.
    pub fn new(fabric: Arc<dyn Fabric>) -> Self {
        Self { fabric, ports: AtomicU16::new(0) }
    }
}

impl NetBackend for MemoryNet {
    fn udp(&self, to: SocketAddr) -> BoxFuture<'_, Result<Box<dyn Datagram>, NetError>> {
        let from_port = FIRST_PORT | self.ports.fetch_add(1, Ordering::Relaxed);
        let fabric = Arc::clone(&self.fabric);
        let udp = Udp { fabric, to, from_port, replies: BTreeMap::new(), sent: 0 };
        Box::pin(async move { Ok(Box::new(udp) as Box<dyn Datagram>) })
    }

    fn http(&self, to: HttpPeer) -> BoxFuture<'_, Result<Box<dyn HttpConnection>, NetError>> {
        let http = Http { fabric: Arc::clone(&self.fabric), to };
        Box::pin(async move { Ok(Box::new(http) as Box<dyn HttpConnection>) })
    }

    fn tcp(&self, to: Peer) -> BoxFuture<'_, Result<Box<dyn Stream>, NetError>> {
        Box::pin(async move {
            let device = self.fabric.stream(&to).ok_or(NetError::Refused)?;
            let mut tcp = Tcp { device, coming: VecDeque::new() };
            tcp.say(&[]);
            Ok(Box::new(tcp) as Box<dyn Stream>)
        })
    }
}

impl Tcp {
    fn say(&mut self, data: &[u8]) {
        for (delay, said) in self.device.hear(data) {
            let before = self.coming.back().map(|(at, _)| *at);
            let at = Instant::now() + delay;
            self.coming.push_back((before.map_or(at, |before| before.max(at)), said));
        }
    }
}

impl Stream for Tcp {
    fn write<'a>(&'a mut self, data: &'a [u8]) -> BoxFuture<'a, Result<(), NetError>> {
        Box::pin(async move {
            let now = Instant::now();
            if self.coming.iter().any(|(at, said)| *at <= now && *said == StreamEvent::Broken) {
                return Err(NetError::Closed);
            }
            self.say(data);
            Ok(())
        })
    }

    fn read(&mut self, max: usize) -> BoxFuture<'_, Result<Vec<u8>, NetError>> {
        Box::pin(async move {
            let Some((at, _)) = self.coming.front() else { return std::future::pending().await };
            tokio::time::sleep_until(*at).await;
            match self.coming.pop_front() {
                Some((at, StreamEvent::Bytes(mut bytes))) => {
                    let rest = bytes.split_off(bytes.len().min(max));
                    if !rest.is_empty() {
                        self.coming.push_front((at, StreamEvent::Bytes(rest)));
                    }
                    Ok(bytes)
                }
                Some((at, StreamEvent::Broken)) => {
                    self.coming.push_front((at, StreamEvent::Broken));
                    Err(NetError::Closed)
                }
                // Once it has ended it stays so.
                Some((at, StreamEvent::End)) => {
                    self.coming.push_front((at, StreamEvent::End));
                    Ok(Vec::new())
                }
                None => Ok(Vec::new()),
            }
        })
    }
}

impl HttpConnection for Http {
    fn exchange_up_to(
        self: Box<Self>,
        request: Request<Vec<u8>>,
        body_bytes_max: usize,
    ) -> BoxFuture<'static, Result<Response<Vec<u8>>, NetError>> {
        Box::pin(async move {
            let reply = self.fabric.http(&self.to, &request).ok_or(NetError::Refused)?;
            tokio::time::sleep(reply.after).await;
            let response = reply.result?;
            if response.body().len() > body_bytes_max {
                return Err(NetError::TooLarge);
            }
            Ok(response)
        })
    }
}

impl Datagram for Udp {
    fn send<'a>(&'a mut self, data: &'a [u8]) -> BoxFuture<'a, Result<(), NetError>> {
        Box::pin(async move {
            let now = Instant::now();
            for (delay, reply) in self.fabric.datagram(self.to, self.from_port, data) {
                self.sent += 1;
                // A full receive buffer loses what comes last, as a kernel's does.
                if self.replies.len() < REPLIES_QUEUED_MAX {
                    self.replies.insert((now + delay, self.sent), reply);
                }
            }
            Ok(())
        })
    }

    fn receive(&mut self, timeout: Duration) -> BoxFuture<'_, Result<Option<Vec<u8>>, NetError>> {
        Box::pin(async move {
            let until = Instant::now() + timeout;
            let next = self.replies.keys().next().copied();
            match next.filter(|(at, _)| *at <= until) {
                None => {
                    tokio::time::sleep_until(until).await;
                    Ok(None)
                }
                Some(key) => {
                    // What is there already is not waited for: real timers have milliseconds.
                    if key.0 > Instant::now() {
                        tokio::time::sleep_until(key.0).await;
                    }
                    match self.replies.remove(&key) {
                        Some(reply) if reply.len() > DATAGRAM_BYTES_MAX => Err(NetError::TooLarge),
                        reply => Ok(reply),
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Echoes twice: late first, early second.
    struct Echo;

    impl Fabric for Echo {
        fn datagram(&self, _: SocketAddr, _: u16, data: &[u8]) -> Vec<(Duration, Vec<u8>)> {
            let reply = |ms, mark: &[u8]| (Duration::from_millis(ms), [data, mark].concat());
            vec![reply(900, b"-late"), reply(100, b"-early")]
        }
    }

    #[tokio::test(start_paused = true)]
    async fn replies_arrive_in_virtual_time_and_order() {
        let net = MemoryNet::new(Arc::new(Echo));
        let mut socket = net.udp("10.0.0.1:623".parse().unwrap()).await.unwrap();
        let begun = Instant::now();
        socket.send(b"a").await.unwrap();
        assert_eq!(socket.receive(Duration::from_millis(99)).await, Ok(None));
        let early = socket.receive(Duration::from_secs(1)).await.unwrap();
        assert_eq!(early.as_deref(), Some(b"a-early".as_slice()));
        assert_eq!(begun.elapsed(), Duration::from_millis(100));
        let late = socket.receive(Duration::from_secs(1)).await.unwrap();
        assert_eq!(late.as_deref(), Some(b"a-late".as_slice()));
        assert_eq!(begun.elapsed(), Duration::from_millis(900));
        assert_eq!(socket.receive(Duration::from_millis(50)).await, Ok(None));
        assert_eq!(begun.elapsed(), Duration::from_millis(950));
    }
}
