//! Sockets of a call, and what comes in on them.

use std::sync::Arc;

use zeroize::Zeroizing;

use crate::bindings::node_remedy::fence::net::NetError as Wire;
use crate::net::Stream;
use crate::net::backend::Datagram;
use crate::net::stream_redactor::StreamRedactor;
use crate::secret::Secret;

/// An open socket of a call.
pub(crate) struct Socket {
    pub(crate) endpoint: String,
    pub(crate) datagram: Box<dyn Datagram>,
    /// Sent by the host when the socket goes, unless the plugin withdrew it by an empty one.
    pub(crate) farewell: Option<Vec<u8>>,
}

pub(crate) type Answer<T> = wasmtime::Result<Result<T, Wire>>;

/// An open connection of a call.
pub(crate) struct Connection {
    pub(crate) endpoint: String,
    pub(crate) stream: Box<dyn Stream>,
    /// Sent by the host when the connection goes, unless the plugin withdrew it by an empty one.
    pub(crate) farewell: Option<Vec<u8>>,
    /// Whether what was begun to be written was written to its end. After half a message the other
    /// side understands nothing more.
    pub(crate) is_whole: bool,
    /// Whether the other side closed.
    pub(crate) has_ended: bool,
    pub(super) stream_redactor: StreamRedactor,
    /// What came and the guest has not read yet.
    pub(crate) unread: Vec<u8>,
}

/// What a wait on a stream comes to.
pub(crate) enum Came {
    Bytes(Vec<u8>),
    /// Nothing, for so long that what is kept back goes on.
    Pause,
}

/// What a write puts on the wire, and what is shown of it.
pub(crate) struct Message {
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    pub(crate) shown: Vec<u8>,
    pub(crate) secrets: Vec<Arc<Secret>>,
}
