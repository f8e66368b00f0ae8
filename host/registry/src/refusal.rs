//! Why a plugin is not loaded.

/// Why a plugin is not loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One word, a reason of the condition `Ready`.
    pub reason: &'static str,
    /// A sentence for people.
    pub why: String,
    /// Whether trying again may help, though nothing was changed.
    pub may_pass: bool,
}

impl Refusal {
    /// A refusal that only a change of the object ends.
    pub fn new(reason: &'static str, why: impl Into<String>) -> Self {
        Self { reason, why: why.into(), may_pass: false }
    }

    /// The same, of something that may pass by itself.
    pub fn passing(reason: &'static str, why: impl Into<String>) -> Self {
        Self { may_pass: true, ..Self::new(reason, why) }
    }
}
