//! What a guest's resources stand for on the host's side. A guest holds numbers; the host's table
//! turns them into these, and into nothing else.
#![expect(unreachable_pub, reason = "the generated bindings re-export them with `pub use`")]

use std::collections::BTreeSet;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::manifest::Operation;
use crate::secret::Secret;

/// A guest's `secret`, with what was granted for it.
pub struct SecretHandle {
    pub(crate) secret: Arc<Secret>,
    pub(crate) operations: BTreeSet<Operation>,
}

/// A guest's `key`.
pub struct DerivedKey(pub(crate) Zeroizing<Vec<u8>>);

/// A guest's `datagram`: the number of a socket of its call.
pub struct DatagramHandle(pub(crate) u32);

/// A guest's `connection`: the number of a connection of its call.
pub struct ConnectionHandle(pub(crate) u32);
