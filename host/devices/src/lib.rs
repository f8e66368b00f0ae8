//! Models of fence devices, for the simulator in virtual time and for native plugin tests.
//!
//! A model is sans-IO and deterministic: bytes and the time go in, bytes and the time they are to
//! be sent at come out. It has no clock and no socket; its randomness comes from a seed. It shares
//! no code with the plugin that will talk to it, so that a misreading of the protocol is not made
//! twice, and it is checked against `ipmitool` and net-snmp's tools, or by published examples.
//!
//! What it deliberately is not: a fence device for production, a complete BMC, PDU or switch, or a complete
//! cloud.

pub mod bmc;
pub mod ec2;
mod faults;
mod power;
pub mod snmp;

pub use faults::UnknownFault;

/// A datagram on its way back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// How long the device takes.
    pub delay_ms: u64,
    /// What it sends.
    pub bytes: Vec<u8>,
}
