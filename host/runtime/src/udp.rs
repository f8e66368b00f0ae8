//! The seam for datagrams that come by themselves: ports that are listened on, each until its ear is
//! dropped. Not here: who may send, and what a datagram means (`host/probe/src/kdump_listener.rs`).

use std::any::Any;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as Bound};
use std::rc::Rc;

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::metrics::{DatagramLabel, Metrics};

/// More than any datagram may have that is looked at, so that a longer one shows as longer.
const BYTES_MAX: usize = 2_048;

/// A datagram as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// The port that it came to.
    pub port: u16,
    /// Who sent it, as far as the network says so.
    pub from: SocketAddr,
    /// What is in it; a long one may be cut.
    pub data: Vec<u8>,
}

/// Listens until it is dropped.
pub struct UdpSubscription(#[expect(dead_code, reason = "it is there to be dropped")] Box<dyn Any>);

impl UdpSubscription {
    /// Something that listens until it is dropped.
    pub fn new(what: impl Any) -> Self {
        Self(Box::new(what))
    }
}

/// Where datagrams come in.
pub trait Listen {
    /// Listens on a UDP port of every address of this machine. What comes while `heard` is full is
    /// dropped.
    ///
    /// # Errors
    /// Where the port cannot be had.
    fn listen(&self, port: u16, heard: mpsc::Sender<Datagram>) -> io::Result<UdpSubscription>;
}

/// The system's sockets.
pub struct UdpPorts {
    metrics: Rc<Metrics>,
}

impl UdpPorts {
    /// Counts what it drops.
    pub fn new(metrics: Rc<Metrics>) -> Self {
        Self { metrics }
    }
}

struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Listen for UdpPorts {
    fn listen(&self, port: u16, heard: mpsc::Sender<Datagram>) -> io::Result<UdpSubscription> {
        // IPv4 comes to it, too; a machine may have no IPv6.
        let bound = Bound::bind((Ipv6Addr::UNSPECIFIED, port))
            .or_else(|_| Bound::bind((Ipv4Addr::UNSPECIFIED, port)))?;
        bound.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(bound)?;
        let metrics = self.metrics.clone();
        let task = tokio::task::spawn_local(async move {
            let mut buffer = [0; BYTES_MAX];
            loop {
                let (length, from) = match socket.recv_from(&mut buffer).await {
                    Ok(received) => received,
                    Err(error) => {
                        // An answer of ICMP to nobody; the socket itself stays usable.
                        tracing::debug!(port, %error, "failed to receive a datagram");
                        tokio::task::yield_now().await;
                        continue;
                    }
                };
                let data = buffer.get(..length).unwrap_or_default().to_vec();
                if heard.try_send(Datagram { port, from, data }).is_err() {
                    metrics.datagrams.get_or_create(&DatagramLabel { result: "queue-full" }).inc();
                }
            }
        });
        Ok(UdpSubscription::new(Task(task.abort_handle())))
    }
}
