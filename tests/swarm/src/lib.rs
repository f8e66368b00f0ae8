//! Runs in which everything goes wrong, each a function of its seed, judged by facts.
//!
//! ```text
//! seed ─▶ run (a scenario's text) ─▶ node-remedy's simulator ─▶ facts ─▶ checks
//!            ▲                                                               │
//!            └────── shrink (the same with fewer faults) ◀── violation ──┘
//! ```
//! A run is written as a scenario, so that `node-remedy simulate` plays it too and draws its
//! report. The judge knows the world and not the controller. Nothing here decides anything on the
//! controller's behalf.

#[cfg(feature = "seeded-bugs")]
pub mod bugs;
pub mod checks;
pub mod corpus;
pub mod coverage;
pub mod crash;
pub mod ddmin;
mod definitions;
pub mod failure;
pub mod guards;
pub mod judge;
pub mod play;
pub mod scene;
pub mod seed_run;
pub mod setting;
pub mod shrink;
mod unhindered;
