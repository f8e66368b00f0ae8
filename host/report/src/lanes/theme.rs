//! Light or dark.

/// Light or dark, for a picture that stands alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// For light pages.
    Light,
    /// For dark pages.
    Dark,
}
