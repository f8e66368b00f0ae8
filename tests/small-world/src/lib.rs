//! Everything that can happen to one node, its machine and two controllers, with a few faults.
//!
//! The decisions are the real ones, [`node_remedy_decide::step`]. Modelled around them, as small
//! as it goes: the record with its compare-and-swap, the lease, both processes between any two of
//! their steps, the device, the node. Every order of events is walked through, breadth first, and
//! what is promised is checked against the model's own facts in each, so what breaks is told by the
//! shortest order of events that leads there.
//!
//! In the order of reading: [`world`] is one moment, [`moves`] what can happen next, [`process`]
//! how a controller goes about an incident, [`device`] what comes of a call, [`clock`] how time
//! passes, [`invariants`] what must hold; [`book`] keeps decisions, [`same`] and [`same_world`] say
//! when two records and two worlds are one, [`search`] is the way through all of it and [`trace`]
//! tells one. [`bug`] lists what can be broken on purpose.

pub mod book;
pub mod bug;
pub mod clock;
pub mod device;
pub mod invariants;
pub mod moves;
pub mod process;
pub mod same;
pub mod same_world;
pub mod search;
pub mod trace;
mod words;
pub mod world;

#[cfg(test)]
mod tests;
