//! The world without node-remedy: what Kubernetes does by itself, and by hand, with a
//! lost node. Times are seconds from the scenario's start.

mod actors;
mod bmc;
mod cloud;
mod control_runs;
mod determinism;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod rack;
mod snapshot;
#[cfg(test)]
mod stage;
mod triggers;
