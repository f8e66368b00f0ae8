//! A host in memory, for native tests of a plugin: virtual time, devices as plain values, secrets
//! kept on this side as the real host keeps them.
//!
//! It is no kinder than the real one: waiting costs (virtual) time, the deadline cuts every wait,
//! a farewell that was registered and not withdrawn is sent when the conversation ends, and each
//! use of a secret is counted. What it leaves out: the check of the manifest, and real sockets other
//! than [`TestHost::socket`] and [`TestHost::tcp_socket`] for trying a plugin on a real device.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::testing::device::World;
use crate::{Host, HttpRequest, HttpResponse, Level, NetError, Refused};

mod datagram;
mod device;
pub mod faults;
mod keys;
mod stream;
pub mod web;

use self::datagram::Link;
pub use self::datagram::TestDatagram;
pub use device::{Device, Trace};
pub use keys::{TestKey, TestSecret};
pub use stream::{Stream, StreamEvent, TestConnection};

impl<F: FnMut(u64, u64, &[u8]) -> Vec<(u64, Vec<u8>)>> Device for F {
    fn datagram(&mut self, now_ms: u64, peer: u64, data: &[u8]) -> Vec<(u64, Vec<u8>)> {
        self(now_ms, peer, data)
    }
}

/// An HTTP device in memory: takes a whole request, answers after so many milliseconds.
///
/// ```
/// use node_remedy_sdk::testing::Web;
/// use node_remedy_sdk::{HttpRequest, HttpResponse};
///
/// struct Starting;
///
/// impl Web for Starting {
///     fn exchange(&mut self, _: u64, _: &HttpRequest) -> (u64, HttpResponse) {
///         (50, HttpResponse { status: 503, headers: Vec::new(), body: Vec::new() })
///     }
/// }
/// ```
pub trait Web {
    /// One exchange.
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse);
}

impl<F: FnMut(u64, &HttpRequest) -> (u64, HttpResponse)> Web for F {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        self(now_ms, request)
    }
}

enum Endpoint {
    Device(Rc<RefCell<dyn Device>>),
    Socket(String),
    Web(Rc<RefCell<dyn Web>>),
    Stream(Rc<RefCell<dyn Stream>>),
    TcpSocket(String),
    Unreachable,
    Failing(NetError),
}

/// The host.
///
/// ```
/// use node_remedy_sdk::Host;
/// use node_remedy_sdk::testing::TestHost;
///
/// let host = TestHost::new(30_000).cancel_at(5_000);
/// assert!(!host.sleep(60_000), "it is cancelled meanwhile");
/// assert_eq!(host.elapsed_ms(), 5_000, "and no time has passed in truth");
/// ```
pub struct TestHost {
    world: Rc<World>,
    endpoints: BTreeMap<String, Endpoint>,
    credentials: BTreeMap<String, keys::Stored>,
    cancel_at_ms: Option<u64>,
    refuse_effect: Option<String>,
    login_data: BTreeMap<String, String>,
}

impl TestHost {
    /// A host in virtual time, which cuts the call at the deadline.
    pub fn new(deadline_ms: u64) -> Self {
        Self::in_time(deadline_ms, None)
    }

    /// A host in real time, for real devices.
    #[expect(clippy::disallowed_methods, reason = "this is the seam's real side in tests")]
    pub fn real_time(deadline_ms: u64) -> Self {
        Self::in_time(deadline_ms, Some(Instant::now()))
    }

    fn in_time(deadline_ms: u64, began: Option<Instant>) -> Self {
        Self {
            world: Rc::new(World {
                now_ms: Cell::new(0),
                deadline_ms,
                began,
                peers: Cell::new(0),
                random: Cell::new(1),
                trace: RefCell::default(),
                secret_uses: Rc::default(),
                checkpoint: RefCell::default(),
            }),
            endpoints: BTreeMap::new(),
            credentials: BTreeMap::new(),
            cancel_at_ms: None,
            refuse_effect: None,
            login_data: BTreeMap::new(),
        }
    }

    /// Puts a device behind an endpoint.
    #[must_use]
    pub fn device(mut self, endpoint: &str, device: Rc<RefCell<dyn Device>>) -> Self {
        self.endpoints.insert(endpoint.into(), Endpoint::Device(device));
        self
    }

    /// Puts a real UDP address behind an endpoint.
    #[must_use]
    pub fn socket(mut self, endpoint: &str, address: &str) -> Self {
        self.endpoints.insert(endpoint.into(), Endpoint::Socket(address.into()));
        self
    }

    /// Puts a web server behind an endpoint.
    #[must_use]
    pub fn web(mut self, endpoint: &str, web: Rc<RefCell<dyn Web>>) -> Self {
        self.endpoints.insert(endpoint.into(), Endpoint::Web(web));
        self
    }

    /// Puts a device that speaks over streams behind an endpoint.
    #[must_use]
    pub fn stream(mut self, endpoint: &str, device: Rc<RefCell<dyn Stream>>) -> Self {
        self.endpoints.insert(endpoint.into(), Endpoint::Stream(device));
        self
    }

    /// Puts a real TCP address behind an endpoint.
    #[must_use]
    pub fn tcp_socket(mut self, endpoint: &str, address: &str) -> Self {
        self.endpoints.insert(endpoint.into(), Endpoint::TcpSocket(address.into()));
        self
    }

    /// Makes an endpoint one that the network cannot reach.
    #[must_use]
    pub fn unreachable(mut self, endpoint: &str) -> Self {
        self.endpoints.insert(endpoint.into(), Endpoint::Unreachable);
        self
    }

    /// Makes an endpoint one at which every request fails so: TLS, or the host's login.
    #[must_use]
    pub fn failing(mut self, endpoint: &str, error: NetError) -> Self {
        self.endpoints.insert(endpoint.into(), Endpoint::Failing(error));
        self
    }

    /// Configures a credential.
    #[must_use]
    pub fn credential(mut self, name: &str, identity: Option<&str>, secret: &[u8]) -> Self {
        let (identity, bytes) = (identity.map(str::to_owned), secret.to_vec());
        let stored = keys::Stored { identity, bytes, may_reveal: false };
        self.credentials.insert(name.into(), stored);
        self
    }

    /// Lets the plugin see the bytes of a credential that was configured, as an admin's grant does.
    #[must_use]
    pub fn revealing(mut self, name: &str) -> Self {
        if let Some(stored) = self.credentials.get_mut(name) {
            stored.may_reveal = true;
        }
        self
    }

    /// Cancels the call at this moment.
    #[must_use]
    pub fn cancel_at(mut self, at_ms: u64) -> Self {
        self.cancel_at_ms = Some(at_ms);
        self
    }

    /// Refuses the commit point with this reason.
    #[must_use]
    pub fn refuse_effect(mut self, reason: &str) -> Self {
        self.refuse_effect = Some(reason.into());
        self
    }

    /// What a login at this endpoint shows of its answer, as JSON.
    #[must_use]
    pub fn login_data(mut self, endpoint: &str, data: &str) -> Self {
        self.login_data.insert(endpoint.into(), data.into());
        self
    }

    /// Another seed for [`Host::random`].
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.world.random.set(seed);
        self
    }

    /// What the plugin did so far.
    pub fn trace(&self) -> Vec<Trace> {
        self.world.trace.borrow().clone()
    }

    /// Time since the call began, for measuring. Virtual time counts whole milliseconds.
    pub fn elapsed(&self) -> Duration {
        match self.world.began {
            Some(began) => began.elapsed(),
            None => Duration::from_millis(self.world.now_ms.get()),
        }
    }

    /// How often a secret or key was used.
    pub fn secret_uses(&self) -> u32 {
        self.world.secret_uses.get()
    }

    /// The last checkpoint.
    pub fn last_checkpoint(&self) -> Option<Vec<u8>> {
        self.world.checkpoint.borrow().clone()
    }

    fn cancel_ms(&self) -> u64 {
        self.cancel_at_ms.unwrap_or(u64::MAX)
    }
}

impl Host for TestHost {
    type Secret = TestSecret;
    type Key = TestKey;
    type Datagram = TestDatagram;
    type Connection = TestConnection;

    fn udp(&self, endpoint: &str) -> Result<TestDatagram, NetError> {
        let link = match self.endpoints.get(endpoint) {
            None
            | Some(
                Endpoint::Web(_)
                | Endpoint::Stream(_)
                | Endpoint::TcpSocket(_)
                | Endpoint::Failing(_),
            ) => return Err(NetError::Denied),
            Some(Endpoint::Unreachable) => Link::Unreachable,
            Some(Endpoint::Device(device)) => Link::Device(Rc::clone(device)),
            Some(Endpoint::Socket(address)) => {
                let local = if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
                let socket = UdpSocket::bind(local).map_err(|_| NetError::Other)?;
                socket.connect(address).map_err(|_| NetError::Unreachable)?;
                Link::Socket(socket)
            }
        };
        self.world.peers.set(self.world.peers.get() + 1);
        Ok(TestDatagram {
            peer: self.world.peers.get(),
            world: Rc::clone(&self.world),
            cancel_ms: self.cancel_ms(),
            link,
            arriving: RefCell::default(),
            farewell: RefCell::default(),
        })
    }

    fn fetch(&self, endpoint: &str, request: &HttpRequest) -> Result<HttpResponse, NetError> {
        let now_ms = self.world.now_ms();
        if now_ms >= self.cancel_ms() {
            return Err(NetError::Cancelled);
        }
        if now_ms >= self.world.deadline_ms {
            return Err(NetError::Timeout);
        }
        let web = match self.endpoints.get(endpoint) {
            Some(Endpoint::Web(web)) => web,
            Some(Endpoint::Unreachable) => return Err(NetError::Unreachable),
            Some(Endpoint::Failing(error)) => return Err(*error),
            None
            | Some(
                Endpoint::Device(_)
                | Endpoint::Socket(_)
                | Endpoint::Stream(_)
                | Endpoint::TcpSocket(_),
            ) => return Err(NetError::Denied),
        };
        let line = format!("{} {}", request.method, request.path);
        self.world.trace(Trace::Asked { at_ms: now_ms, line, body: request.body.clone() });
        let (takes_ms, response) = web.borrow_mut().exchange(now_ms, request);
        let there_ms = now_ms.saturating_add(takes_ms);
        let end_ms = now_ms.saturating_add(u64::from(request.timeout_ms));
        let cut_ms = end_ms.min(self.cancel_ms()).min(self.world.deadline_ms);
        self.world.now_ms.set(there_ms.min(cut_ms));
        if there_ms > cut_ms {
            let is_cancelled = cut_ms == self.cancel_ms();
            return Err(if is_cancelled { NetError::Cancelled } else { NetError::Timeout });
        }
        self.world.trace(Trace::Answered { at_ms: there_ms, status: response.status });
        Ok(response)
    }

    fn login_data(&self, endpoint: &str) -> Result<String, NetError> {
        self.login_data.get(endpoint).cloned().ok_or(NetError::Denied)
    }

    fn tcp(&self, endpoint: &str) -> Result<TestConnection, NetError> {
        let world = Rc::clone(&self.world);
        match self.endpoints.get(endpoint) {
            Some(Endpoint::Stream(device)) => {
                Ok(TestConnection::in_memory(world, self.cancel_ms(), Rc::clone(device)))
            }
            Some(Endpoint::TcpSocket(address)) => {
                TestConnection::on_socket(world, self.cancel_ms(), address)
            }
            Some(Endpoint::Unreachable) => Err(NetError::Unreachable),
            None
            | Some(
                Endpoint::Device(_) | Endpoint::Socket(_) | Endpoint::Web(_) | Endpoint::Failing(_),
            ) => Err(NetError::Denied),
        }
    }

    fn open(&self, credential: &str) -> Result<TestSecret, Refused> {
        let stored = self.credentials.get(credential).ok_or(Refused::NoSuchCredential)?;
        Ok(TestSecret::new(stored.clone(), Rc::clone(&self.world.secret_uses)))
    }

    fn log(&self, _level: Level, message: &str) {
        self.world.trace(Trace::Logged(message.into()));
    }

    fn begin_effect(&self, note: &str) -> Result<(), String> {
        if let Some(reason) = &self.refuse_effect {
            return Err(reason.clone());
        }
        self.world.trace(Trace::BeganEffect { note: note.into() });
        Ok(())
    }

    fn checkpoint(&self, state: &[u8]) -> Result<(), String> {
        *self.world.checkpoint.borrow_mut() = Some(state.to_vec());
        Ok(())
    }

    fn cancelled(&self) -> bool {
        self.world.now_ms() >= self.cancel_ms().min(self.world.deadline_ms)
    }

    fn sleep(&self, ms: u32) -> bool {
        let now_ms = self.world.now_ms();
        let wake_ms = now_ms.saturating_add(u64::from(ms));
        let until_ms = wake_ms.min(self.cancel_ms()).min(self.world.deadline_ms).max(now_ms);
        match self.world.began {
            #[expect(clippy::disallowed_methods, reason = "this is the seam's real side in tests")]
            Some(_) => std::thread::sleep(Duration::from_millis(until_ms - now_ms)),
            None => self.world.now_ms.set(until_ms),
        }
        until_ms == wake_ms
    }

    fn elapsed_ms(&self) -> u64 {
        self.world.now_ms()
    }

    fn random(&self, length: u32) -> Vec<u8> {
        let mut state = self.world.random.get();
        let bytes = (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        self.world.random.set(state);
        bytes
    }
}

#[cfg(test)]
mod tests;
