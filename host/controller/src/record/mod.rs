//! Record: what was decided and what came of it, each fact by one writer.
//!
//! [`write`] puts the record into NodeFence.status before anything is done; [`status`]
//! is the translation both ways; Events, metrics and the audit line follow from it.
//! [`retention`] removes records that nobody needs any more.

pub mod accepted;
pub mod audit;
pub mod audit_file;
pub mod chain;
pub mod events;
pub mod holds;
pub mod keep;
pub mod metrics;
pub mod notices;
pub mod paths;
pub mod repeats;
pub mod retention;
pub mod standstill;
pub mod status;
pub mod write;

/// The text, or its beginning and `…`: at most so many characters.
pub(crate) fn shortened(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.to_owned();
    }
    text.chars().take(characters_max.saturating_sub(1)).chain(['…']).collect()
}
