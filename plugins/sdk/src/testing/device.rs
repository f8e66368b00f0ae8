//! Devices in memory, and what a plugin did to them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

/// A device in memory: takes a datagram, answers with datagrams and how long each takes.
///
/// ```
/// use node_remedy_sdk::testing::Device;
///
/// /// Answers once, late, and is silent from then on.
/// struct Dying(bool);
///
/// impl Device for Dying {
///     fn datagram(&mut self, _: u64, _: u64, data: &[u8]) -> Vec<(u64, Vec<u8>)> {
///         if std::mem::replace(&mut self.0, true) { Vec::new() } else { vec![(900, data.to_vec())] }
///     }
/// }
/// assert_eq!(Dying(true).datagram(0, 1, b"are you there"), []);
/// ```
pub trait Device {
    /// One datagram from a conversation (`peer` tells them apart).
    fn datagram(&mut self, now_ms: u64, peer: u64, data: &[u8]) -> Vec<(u64, Vec<u8>)>;
}

/// What the plugin did, in order.
///
/// ```
/// use node_remedy_sdk::Host;
/// use node_remedy_sdk::testing::{TestHost, Trace};
///
/// let host = TestHost::new(30_000);
/// host.begin_effect("off").unwrap();
/// assert_eq!(host.trace(), [Trace::BeganEffect { note: "off".to_owned() }]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// Sent a datagram.
    Sent {
        /// When.
        at_ms: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// Received one.
    Received {
        /// When.
        at_ms: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// Asked a web server.
    Asked {
        /// When.
        at_ms: u64,
        /// Method and path.
        line: String,
        /// The body.
        body: Vec<u8>,
    },
    /// Was answered by it.
    Answered {
        /// When.
        at_ms: u64,
        /// The status code.
        status: u16,
    },
    /// Passed the commit point.
    BeganEffect {
        /// Its note.
        note: String,
    },
    /// Wrote to the log.
    Logged(String),
    /// The host said farewell on its behalf.
    Farewell,
}

pub(crate) struct World {
    pub(crate) now_ms: Cell<u64>,
    pub(crate) deadline_ms: u64,
    pub(crate) began: Option<Instant>,
    pub(crate) peers: Cell<u64>,
    pub(crate) random: Cell<u64>,
    pub(crate) trace: RefCell<Vec<Trace>>,
    pub(crate) secret_uses: Rc<Cell<u32>>,
    pub(crate) checkpoint: RefCell<Option<Vec<u8>>>,
}

impl World {
    pub(crate) fn now_ms(&self) -> u64 {
        match self.began {
            Some(began) => u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            None => self.now_ms.get(),
        }
    }

    pub(crate) fn trace(&self, entry: Trace) {
        self.trace.borrow_mut().push(entry);
    }
}
