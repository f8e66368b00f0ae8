//! A baseboard management controller: the managed side of IPMI 2.0 over RMCP+.
//!
//! ```text
//!  datagram ─▶ wire ─▶ session set-up (setup) ─▶ sessions ─▶ commands ─▶ power
//!                          faults bend any of these ─────────────────────┘
//! ```
//!
//! The caller owns time: [`Bmc::datagram`] and [`Bmc::tick`] take it, and [`Bmc::next_change`] says
//! when power will change by itself. Faults are data ([`Faults`]) and can be changed at any moment.

mod commands;
mod config;
mod crypto;
mod faults;
mod sealed;
mod sessions;
mod setup;
mod state;
mod wire;

pub use crate::Reply;
pub use crate::bmc::state::CommandEvent;
pub use crate::power::{Cause, Change, PowerEvent};
pub use config::{Config, Privilege, Suite, User};
pub use faults::Faults;
pub use state::Bmc;

#[cfg(test)]
mod tests;
