//! Streams of the host in memory: devices that are plain values, and real sockets for trying a plugin
//! on a real device. TLS is the real host's alone.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Duration;

use super::keys::TestSecret;
use crate::testing::device::{Trace, World};
use crate::{Connection, NetError, Part};

/// A device in memory that speaks over streams.
///
/// ```
/// use node_remedy_sdk::testing::{StreamEvent, Stream};
///
/// struct Prompt;
///
/// impl Stream for Prompt {
///     fn hear(&mut self, _: u64, _: u64, data: &[u8]) -> Vec<(u64, StreamEvent)> {
///         let is_open = data.is_empty();
///         is_open.then(|| (10, StreamEvent::Bytes(b"login: ".to_vec()))).into_iter().collect()
///     }
/// }
/// assert_eq!(Prompt.hear(0, 1, b"").len(), 1);
/// ```
pub trait Stream {
    /// What it says to some bytes, and how long each takes. `peer` tells connections apart; the first
    /// bytes of each are none: it is open.
    fn hear(&mut self, now_ms: u64, peer: u64, data: &[u8]) -> Vec<(u64, StreamEvent)>;
}

impl<F: FnMut(u64, u64, &[u8]) -> Vec<(u64, StreamEvent)>> Stream for F {
    fn hear(&mut self, now_ms: u64, peer: u64, data: &[u8]) -> Vec<(u64, StreamEvent)> {
        self(now_ms, peer, data)
    }
}

/// What comes over a stream.
///
/// ```
/// use node_remedy_sdk::testing::StreamEvent;
///
/// let said = [(20, StreamEvent::Bytes(b"bye".to_vec())), (20, StreamEvent::End)];
/// assert_ne!(said[1].1, StreamEvent::Broken);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Its end.
    End,
    /// Its end, without all that was on its way.
    Broken,
}

enum Link {
    Device { device: Rc<RefCell<dyn Stream>>, coming: RefCell<VecDeque<(u64, StreamEvent)>> },
    Socket(TcpStream),
}

/// A stream of the host in memory.
///
/// ```
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Host, NetError};
///
/// let host = TestHost::new(30_000).unreachable("shell");
/// assert_eq!(host.tcp("shell").err(), Some(NetError::Unreachable));
/// ```
pub struct TestConnection {
    peer: u64,
    world: Rc<World>,
    cancel_ms: u64,
    link: Link,
    secrets: RefCell<Vec<Vec<u8>>>,
    is_broken: Cell<bool>,
    farewell: RefCell<Vec<u8>>,
}

impl TestConnection {
    pub(super) fn in_memory(
        world: Rc<World>,
        cancel_ms: u64,
        device: Rc<RefCell<dyn Stream>>,
    ) -> Self {
        let connection =
            Self::new(world, cancel_ms, Link::Device { device, coming: RefCell::default() });
        connection.say(&[]);
        connection
    }

    pub(super) fn on_socket(
        world: Rc<World>,
        cancel_ms: u64,
        address: &str,
    ) -> Result<Self, NetError> {
        let socket = TcpStream::connect(address).map_err(|error| net_error(&error))?;
        Ok(Self::new(world, cancel_ms, Link::Socket(socket)))
    }

    fn new(world: Rc<World>, cancel_ms: u64, link: Link) -> Self {
        world.peers.set(world.peers.get() + 1);
        Self {
            peer: world.peers.get(),
            world,
            cancel_ms,
            link,
            secrets: RefCell::default(),
            is_broken: Cell::new(false),
            farewell: RefCell::default(),
        }
    }

    fn check(&self) -> Result<(), NetError> {
        let now_ms = self.world.now_ms();
        match () {
            () if now_ms >= self.cancel_ms => Err(NetError::Cancelled),
            () if now_ms >= self.world.deadline_ms => Err(NetError::Timeout),
            () if self.is_broken.get() => Err(NetError::Closed),
            () => Ok(()),
        }
    }

    fn say(&self, data: &[u8]) {
        let Link::Device { device, coming } = &self.link else { return };
        let now_ms = self.world.now_ms();
        let said = device.borrow_mut().hear(now_ms, self.peer, data);
        let mut coming = coming.borrow_mut();
        for (delay_ms, said) in said {
            // A stream overtakes nothing.
            let before_ms = coming.back().map_or(0, |(at_ms, _)| *at_ms);
            coming.push_back((now_ms.saturating_add(delay_ms).max(before_ms), said));
        }
    }

    fn put(&self, data: &[u8]) -> Result<(), NetError> {
        match &self.link {
            Link::Device { .. } => self.say(data),
            Link::Socket(socket) => {
                let mut socket = socket;
                socket.write_all(data).map_err(|error| net_error(&error))?;
            }
        }
        Ok(())
    }

    /// What comes next until then; none where nothing does.
    fn next(&self, max: usize, cut_ms: u64) -> Result<Option<Vec<u8>>, NetError> {
        let now_ms = self.world.now_ms();
        let mut coming = match &self.link {
            Link::Socket(socket) => {
                let wait = Duration::from_millis(cut_ms.saturating_sub(now_ms).max(1));
                socket.set_read_timeout(Some(wait)).map_err(|_| NetError::Other)?;
                let (mut socket, mut buffer) = (socket, vec![0; max]);
                return match socket.read(&mut buffer) {
                    Ok(length) => {
                        buffer.truncate(length);
                        Ok(Some(buffer))
                    }
                    Err(error) if is_timeout(&error) => Ok(None),
                    Err(error) => Err(net_error(&error)),
                };
            }
            Link::Device { coming, .. } => coming.borrow_mut(),
        };
        let Some((at_ms, said)) = coming.pop_front_if(|(at_ms, _)| *at_ms <= cut_ms) else {
            self.world.now_ms.set(cut_ms);
            return Ok(None);
        };
        self.world.now_ms.set(now_ms.max(at_ms));
        match said {
            StreamEvent::Bytes(mut bytes) => {
                let rest = bytes.split_off(bytes.len().min(max));
                if !rest.is_empty() {
                    coming.push_front((at_ms, StreamEvent::Bytes(rest)));
                }
                Ok(Some(bytes))
            }
            StreamEvent::End => {
                coming.push_front((at_ms, StreamEvent::End));
                Ok(Some(Vec::new()))
            }
            StreamEvent::Broken => {
                self.is_broken.set(true);
                Err(NetError::Closed)
            }
        }
    }
}

impl Connection for TestConnection {
    type Secret = TestSecret;

    fn write(&self, parts: &[Part<'_, TestSecret>]) -> Result<(), NetError> {
        self.check()?;
        let (mut bytes, mut shown) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Part::Bytes(part) => {
                    bytes.extend_from_slice(part);
                    shown.extend_from_slice(part);
                }
                Part::Secret(secret) => {
                    let secret = secret.written();
                    bytes.extend_from_slice(secret);
                    shown.resize(bytes.len(), b'*');
                    self.secrets.borrow_mut().push(secret.to_vec());
                }
            }
        }
        self.world.trace(Trace::Sent { at_ms: self.world.now_ms(), bytes: shown });
        self.put(&bytes)
    }

    fn read(&self, max: u32, timeout_ms: u32) -> Result<Vec<u8>, NetError> {
        let max = usize::try_from(max).map_err(|_| NetError::Other)?;
        if max == 0 {
            return Err(NetError::Other);
        }
        self.check()?;
        let now_ms = self.world.now_ms();
        let end_ms = now_ms.saturating_add(u64::from(timeout_ms));
        let cut_ms = end_ms.min(self.cancel_ms).min(self.world.deadline_ms).max(now_ms);
        match self.next(max, cut_ms)? {
            Some(bytes) => {
                let secrets = self.secrets.borrow();
                let bytes = secrets.iter().fold(bytes, |bytes, secret| redact(bytes, secret));
                let at_ms = self.world.now_ms();
                self.world.trace(Trace::Received { at_ms, bytes: bytes.clone() });
                Ok(bytes)
            }
            None if cut_ms < end_ms && cut_ms == self.cancel_ms => Err(NetError::Cancelled),
            None => Err(NetError::Timeout),
        }
    }

    fn farewell(&self, data: &[u8]) {
        *self.farewell.borrow_mut() = data.to_vec();
    }
}

impl Drop for TestConnection {
    fn drop(&mut self) {
        let farewell = self.farewell.take();
        if !farewell.is_empty() && !self.is_broken.get() {
            self.world.trace(Trace::Farewell);
            // Nobody is left to hear that it could not be sent.
            let _ = self.put(&farewell);
        }
    }
}

/// Where it stands whole in one piece; the real host looks across pieces, too.
fn redact(mut bytes: Vec<u8>, secret: &[u8]) -> Vec<u8> {
    for at in 0..bytes.len() {
        if !secret.is_empty() && bytes.get(at..).is_some_and(|rest| rest.starts_with(secret)) {
            bytes.iter_mut().skip(at).take(secret.len()).for_each(|byte| *byte = b'*');
        }
    }
    bytes
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn net_error(error: &io::Error) -> NetError {
    // ErrorKind grows with std: what is not known by name is Other.
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind is non-exhaustive")]
    match error.kind() {
        io::ErrorKind::ConnectionRefused => NetError::Refused,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => NetError::Unreachable,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => NetError::Closed,
        _ => NetError::Other,
    }
}
