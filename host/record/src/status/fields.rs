//! What reading and writing a record share.

use std::fmt::Debug;

use node_remedy_decide::MethodIndex;

/// A status that no record was written as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("status.{field}: found {found}, expected {expected}")]
pub struct BrokenRecord {
    /// Where.
    pub field: String,
    /// What stands there.
    pub found: String,
    /// What could stand there.
    pub expected: String,
}

pub(crate) fn broken(
    field: impl Into<String>,
    found: &(impl Debug + ?Sized),
    expected: impl Into<String>,
) -> BrokenRecord {
    BrokenRecord { field: field.into(), found: format!("{found:?}"), expected: expected.into() }
}

/// Characters of a sentence; the CRD takes no more.
pub(crate) const SENTENCE_MAX: usize = 4096;

/// Characters of an object's or method's name; the CRD takes no more.
pub(crate) const NAME_MAX: usize = 253;

/// A place that does not fit is one that no plan has: it is refused when it is read.
pub(crate) fn place(method: MethodIndex) -> u32 {
    u32::try_from(method).unwrap_or(u32::MAX)
}

pub(crate) fn cut(text: &str, characters_max: usize) -> String {
    text.chars().take(characters_max).collect()
}
