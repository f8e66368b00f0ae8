//! Datagrams of the host in memory: devices that are plain values, and real sockets for trying a plugin on a
//! real device.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::rc::Rc;
use std::time::Duration;

use crate::testing::device::{Device, Trace, World};
use crate::{Datagram, NetError};

pub(super) enum Link {
    Device(Rc<RefCell<dyn Device>>),
    Socket(UdpSocket),
    Unreachable,
}

/// A conversation of the host in memory.
///
/// ```
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Datagram, Host, NetError};
///
/// let unreachable = TestHost::new(30_000).unreachable("lamp").udp("lamp");
/// assert_eq!(unreachable.and_then(|lamp| lamp.send(b"off")), Err(NetError::Unreachable));
/// ```
pub struct TestDatagram {
    pub(super) peer: u64,
    pub(super) world: Rc<World>,
    pub(super) cancel_ms: u64,
    pub(super) link: Link,
    /// Arrival time, order of sending, bytes.
    pub(super) arriving: RefCell<BTreeMap<(u64, u64), Vec<u8>>>,
    pub(super) farewell: RefCell<Vec<u8>>,
}

/// The largest datagram a socket is read for.
const DATAGRAM_MAX: usize = 2048;

impl Datagram for TestDatagram {
    fn send(&self, data: &[u8]) -> Result<(), NetError> {
        let now_ms = self.world.now_ms();
        if now_ms >= self.cancel_ms {
            return Err(NetError::Cancelled);
        }
        if now_ms >= self.world.deadline_ms {
            return Err(NetError::Timeout);
        }
        self.world.trace(Trace::Sent { at_ms: now_ms, bytes: data.to_vec() });
        self.put(data)
    }

    fn receive(&self, timeout_ms: u32) -> Result<Option<Vec<u8>>, NetError> {
        let now_ms = self.world.now_ms();
        let end_ms = now_ms.saturating_add(u64::from(timeout_ms));
        let cut_ms = end_ms.min(self.cancel_ms).min(self.world.deadline_ms).max(now_ms);
        let got = match &self.link {
            Link::Unreachable => None,
            Link::Device(_) => {
                let mut arriving = self.arriving.borrow_mut();
                let first = arriving.first_entry().filter(|first| first.key().0 <= cut_ms);
                self.world
                    .now_ms
                    .set(first.as_ref().map_or(cut_ms, |first| now_ms.max(first.key().0)));
                first.map(std::collections::btree_map::OccupiedEntry::remove)
            }
            Link::Socket(socket) => {
                let wait = Duration::from_millis((cut_ms - now_ms).max(1));
                socket.set_read_timeout(Some(wait)).map_err(|_| NetError::Other)?;
                let mut buffer = vec![0; DATAGRAM_MAX];
                match socket.recv(&mut buffer) {
                    Ok(length) => {
                        buffer.truncate(length);
                        Some(buffer)
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                        return Err(NetError::Refused);
                    }
                    Err(_) => None,
                }
            }
        };
        match got {
            Some(bytes) => {
                let at_ms = self.world.now_ms();
                self.world.trace(Trace::Received { at_ms, bytes: bytes.clone() });
                Ok(Some(bytes))
            }
            None if cut_ms < end_ms && cut_ms == self.cancel_ms => Err(NetError::Cancelled),
            None if cut_ms < end_ms => Err(NetError::Timeout),
            None => Ok(None),
        }
    }

    fn farewell(&self, data: &[u8]) {
        *self.farewell.borrow_mut() = data.to_vec();
    }
}

impl TestDatagram {
    fn put(&self, data: &[u8]) -> Result<(), NetError> {
        match &self.link {
            Link::Unreachable => Err(NetError::Unreachable),
            Link::Socket(socket) => {
                socket.send(data).map(|_| ()).map_err(|_| NetError::Unreachable)
            }
            Link::Device(device) => {
                let now_ms = self.world.now_ms();
                let replies = device.borrow_mut().datagram(now_ms, self.peer, data);
                let mut arriving = self.arriving.borrow_mut();
                for (delay_ms, bytes) in replies {
                    let order = arriving.len() as u64;
                    let mut key = (now_ms.saturating_add(delay_ms), order);
                    while arriving.contains_key(&key) {
                        key.1 += 1;
                    }
                    arriving.insert(key, bytes);
                }
                Ok(())
            }
        }
    }
}

impl Drop for TestDatagram {
    fn drop(&mut self) {
        let farewell = self.farewell.take();
        if !farewell.is_empty() {
            self.world.trace(Trace::Farewell);
            // Nobody is left to hear that it could not be sent.
            let _ = self.put(&farewell);
        }
    }
}
