//! Turning host names into addresses, for the grant check only: what it answers is checked address
//! by address, and a name is never resolved again on the way to the socket.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use futures::future::BoxFuture;

/// A resolver whose servers are gone takes much longer by itself.
const RESOLVE_MAX: Duration = Duration::from_secs(5);

/// Turns a host name into all its addresses.
pub trait Names: Send + Sync {
    /// All addresses of the name.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The names of the system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNames;

/// Knows no name at all: addresses must be written as addresses.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoNames;

impl Names for SystemNames {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::time::timeout(RESOLVE_MAX, tokio::net::lookup_host((host, 0)));
            let found = found.await.map_err(|_| {
                let sentence = format!("no answer in {} s", RESOLVE_MAX.as_secs());
                io::Error::new(io::ErrorKind::TimedOut, sentence)
            })??;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

impl Names for NoNames {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let error = io::Error::new(io::ErrorKind::NotFound, "no name is known here");
        Box::pin(async move { Err(error) })
    }
}
