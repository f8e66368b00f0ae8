//! A datagram of a machine to node-remedy.

use std::net::SocketAddr;

/// A datagram that a machine sent to node-remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The process that it went to, from 1; to all of them where there is none.
    pub controller: Option<u32>,
    /// Who sent it.
    pub from: SocketAddr,
    /// The port that it was sent to.
    pub port: u16,
    /// What is in it.
    pub data: Vec<u8>,
}
