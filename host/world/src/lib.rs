//! A cluster in virtual time: API server, control plane, kubelets, machines, BMCs.
//!
//! ```text
//!  scenario ──▶ setup ──▶ world ──▶ agenda ──▶ machine (kubelet, processes, BMC)
//!                          │  ▲               └▶ actors (lifecycle, eviction, GC, volumes, …)
//!               datagrams ─┘  └─ api ◀── clients, among them the controller under test
//!                                 └──▶ observer ──▶ facts ──▶ expectations
//! ```
//! It exists so that the production controller can live through a run in milliseconds
//! and be judged by what truly happened. No clock, no threads, no hash order; randomness
//! from the scenario's seed only. It decides nothing on the controller's behalf and
//! contains no second implementation of it.

mod actors;
mod agenda;
pub mod api;
mod cloud;
mod detector;
pub mod facts;
mod happen;
mod machine;
mod observer;
pub mod rng;
pub mod scenario;
mod sent;
mod setup;
mod stage;
pub mod time;
mod timings;
mod volumes;
mod world;
mod writers;

pub use self::machine::{Peer, Sent};
pub use self::setup::BMC_ADDRESS_ANNOTATION;
pub use self::world::{AppliedFault, World};
pub use self::writers::Writer;
pub use scenario::Scenario;
pub use timings::{Answer, Timings};
