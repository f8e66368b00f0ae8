//! Instances of Amazon EC2, as its query API (version 2016-11-15) lets them be read and switched.
//!
//! ```text
//!  request ─▶ account (who asks, is it signed) ─▶ asked ─▶ instance ─▶ wire (XML)
//!                                            faults bend ───┘
//! ```
//!
//! A request is about one instance, so a world may keep each where it keeps the machine. The caller
//! owns time: everything takes it, and [`Instance::next_change`] says when a state will change by
//! itself. Faults are data ([`Faults`]) and can be changed at any moment.
//!
//! Not here: other actions than those of a fence method, requests about several instances, pages.

mod account;
mod exchange;
mod faults;
mod instance;
mod model;
mod signature;
#[cfg(test)]
mod tests;
mod wire;

pub use crate::ec2::model::{Config, State};
pub use account::{Account, Ec2Request};
pub use exchange::{Answer, Event, LATENCY_MS, Reply, Request};
pub use faults::Faults;
pub use instance::{Cause, Change, Instance, PowerEvent};
pub use model::Action;

/// The answer to whoever asks for an instance that there is not.
pub fn no_such_instance() -> Reply {
    instance::NOT_FOUND.reply()
}
