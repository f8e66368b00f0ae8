//! node-remedy: sees nodes misbehave, proves them off or isolated, releases what they
//! held, brings them back.
//!
//! The one path is observe → decide → record → act → record; [`reconcile`] is where it
//! is walked. Decisions are `node-remedy-decide`'s, device protocols are plugins'. This
//! crate deliberately contains neither.

pub mod act;
pub mod admin;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod controller;
pub mod desk;
pub mod device_network;
pub mod guard;
pub mod hex;
pub mod lease;
pub mod listen;
pub mod observe;
pub mod opening;
pub mod outside;
pub mod pinning;
pub mod plugins;
pub mod probing;
pub mod reconcile;
pub mod record;
pub mod refusals;
pub mod second_opinion;
pub mod simulate;
pub mod sweep;
#[cfg(test)]
mod testing;
