//! `NodeFence.status`, both ways: [`write`] says a record in the API's words, [`read`] takes it
//! back, and nothing is lost between them.
//!
//! What people and tools read beside it (step, names, conditions, history) follows from the
//! record and is never read back. A status that contradicts itself is not guessed at: [`park`]
//! stops its run for a person. Whether a record makes sense as a run, `decide` says.

mod conditions;
mod decided;
mod read;
mod words;
mod write;

pub use self::read::{BrokenRecord, read};
pub(crate) use self::words::Twin;
pub(crate) use self::write::{component, what_is_left, what_stands};
pub use self::write::{park, write};

#[cfg(test)]
mod tests;
