//! Decisions, and nothing else: `step(plan, policy, record, event, now)` says what an incident's
//! record becomes, what is to be done then, and when to look again.
//!
//! In the order data flows: a [`View`] of the world crosses a [`Threshold`], passes the
//! [`gate`] and opens an incident; each [`Event`] takes the incident's [`Record`] through the
//! automaton, with its [`Proof`]s and releases; what comes out are [`Effect`]s.
//!
//! Nothing here reads a clock, draws a random number, writes a log or waits. Nothing here
//! panics. Everything is ordered, so that the same input gives the same output, byte for byte.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod automaton;
pub mod bug;
mod choice;
mod crossing;
mod cut;
mod decided;
mod draft;
mod effect;
mod event;
mod gate;
mod identity;
mod journal;
mod ladder;
mod liveness;
mod open;
mod operation;
mod people;
mod phase;
mod phases;
mod plan;
mod policy;
mod proof;
mod reckoning;
mod record;
mod release;
mod remedy;
mod retry;
mod rule;
mod standing;
mod symptom;
mod threshold;
mod time;
mod view;

pub use automaton::step;
pub use choice::{Choice, Decided};
pub use crossing::*;
pub use decided::{DECISIONS_MAX, WAIT_MAX};
pub use effect::*;
pub use event::*;
pub use gate::*;
pub use liveness::*;
pub use open::*;
pub use operation::*;
pub use phase::*;
pub use plan::*;
pub use policy::*;
pub use proof::*;
pub use record::*;
pub use release::Cover;
pub use remedy::*;
pub use rule::*;
pub use symptom::{READY, Symptom, never_joined};
pub use threshold::*;
pub use time::{Span, Time};
pub use view::*;

#[cfg(test)]
mod tests;
