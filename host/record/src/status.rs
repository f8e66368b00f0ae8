//! `NodeFence.status`, both ways: [`write`] says a record in the API's words, [`read`] takes it
//! back, and nothing is lost between them.
//!
//! What people and tools read beside it (step, names, conditions, history) follows from the
//! record and is never read back. A status that contradicts itself is not guessed at: [`park`]
//! stops its incident for a person. Whether a record makes sense, `decide` says.

pub mod conditions;
pub mod decided;
pub mod fields;
pub mod read;
pub mod write;

pub use crate::status::read::read;
pub use crate::status::write::{park, write};
pub use fields::BrokenRecord;

#[cfg(test)]
mod tests;
