//! What a watcher of datagrams is written against. It is a function of what came and of what it left
//! itself the last time; the host owns the socket and drops what comes from strangers.

use crate::Fields;

/// One watcher. A fresh value is made for each datagram.
pub trait DatagramWatcher: Default {
    /// The manifest, as JSON.
    const MANIFEST: &'static str;

    /// What a datagram of a sender means, and what to be shown with the next one of the same sender.
    fn on_datagram(&self, peer: &str, data: &[u8], state: &[u8]) -> (Sight, Vec<u8>);
}

/// What a datagram means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Nothing.
    Ignore,
    /// What is watched for is going on.
    Sighting(Fields),
    /// It has come to its end.
    Finished(Fields),
}
