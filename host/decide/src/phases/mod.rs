//! What each phase does next, in the order an incident goes through them.
//!
//! Every phase is one function from the draft of a decision to `Stay` or `Go`. It looks at the record and at
//! the view, never at the event that woke it.

pub(crate) mod waiting;

pub(crate) mod cluster_actions;
pub(crate) mod contradiction;
pub(crate) mod deciding;
pub(crate) mod feeds;
pub(crate) mod isolating;
pub(crate) mod leave;
pub(crate) mod power;
pub(crate) mod releasing;
pub(crate) mod remedying;
pub(crate) mod verifying;

pub(crate) mod way_back;

mod identity_check;
pub(crate) mod pauses;
mod proving;
pub(crate) mod recovering;
mod wiring;
