//! What a watcher of datagrams is written against. It is a function of what came and of what it left
//! itself the last time; the host owns the socket and drops what comes from strangers.

use crate::Fields;

/// One watcher. A fresh value is made for each datagram.
///
/// ```
/// use node_remedy_sdk::{DatagramWatcher, Sight};
///
/// /// Counts how often it heard from a sender.
/// #[derive(Default)]
/// struct Counter;
///
/// impl DatagramWatcher for Counter {
///     const MANIFEST: &'static str = r#"{ "manifestVersion": 1, "name": "counter" }"#;
///
///     fn on_datagram(&self, peer: &str, _: &[u8], state: &[u8]) -> (Sight, Vec<u8>) {
///         let heard = state.first().map_or(1, |heard| heard.saturating_add(1));
///         (Sight::Sighting(vec![("peer".to_owned(), peer.to_owned())]), vec![heard])
///     }
/// }
///
/// let (_, state) = Counter.on_datagram("192.0.2.7", b"here", &[]);
/// assert_eq!(Counter.on_datagram("192.0.2.7", b"here", &state).1, [2]);
/// ```
pub trait DatagramWatcher: Default {
    /// The manifest, as JSON.
    const MANIFEST: &'static str;

    /// What a datagram of a sender means, and what to be shown with the next one of the same sender.
    fn on_datagram(&self, peer: &str, data: &[u8], state: &[u8]) -> (Sight, Vec<u8>);
}

/// What a datagram means.
///
/// ```
/// use node_remedy_sdk::Sight;
///
/// let boot = vec![("boot".to_owned(), "2".to_owned())];
/// assert_ne!(Sight::Sighting(boot.clone()), Sight::Finished(boot));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Nothing.
    Ignore,
    /// What is watched for is going on.
    Sighting(Fields),
    /// It has come to its end.
    Finished(Fields),
}
