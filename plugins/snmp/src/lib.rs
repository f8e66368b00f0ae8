//! SNMP for fence methods: one call's conversation with one agent, and what PDUs and switches
//! have in common. The SDK's companion, a library and not a plugin: `apc-pdu`, `eaton-pdu` and
//! `snmp-switch` are built on it.
//!
//! In the order a call runs:
//!
//! * `parameters`: version, security level and protocols that the method instance is configured with
//! * `session`: GET, GET-NEXT, SET, and what an agent's refusal means
//! * `user`: SNMPv3's engine, clock and keys; the keys stay with the host
//! * `link`: datagrams, repeated a bounded number of times
//! * `codec`: bytes, by `rasn-snmp`, without any I/O
//! * `plug`: what every plug does the same: read, switch, read back
//! * `outlets`: PDUs, whose outlets stand in one of several tables
//!
//! What this deliberately is not: traps, informs, GETBULK, views, or writing anything but integers.

#[doc(hidden)]
pub mod codec;
mod failures;
mod limits;
mod link;
mod outlets;
mod parameters;
mod plug;
mod session;
mod user;

#[cfg(feature = "testing")]
pub mod testing;

pub use codec::{Oid, Value};
pub use outlets::{Command, Outlet, States, Tree, join, number};
pub use plug::{Plug, Reading, Switch, carry_out, no_such_plug};
pub use session::Session;
