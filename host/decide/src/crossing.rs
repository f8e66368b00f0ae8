//! Whether a threshold is crossed.

use crate::Time;

/// Whether a threshold is crossed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Crossing {
    /// The sign is not there.
    Clear {
        /// Ready is True too. Whether that is newer than the trigger, the record knows.
        ready: bool,
        /// When the sign may be there without anything new being seen.
        next_look: Option<Time>,
    },
    /// Nobody knows: Unknown where it does not count, or nothing to look at. Clears nothing.
    Unclear,
    /// The sign is there, and not yet for long enough.
    Ripening {
        /// Since when.
        since: Time,
        /// When it will be crossed.
        crosses_at: Time,
    },
    /// It has gone on for long enough.
    Crossed {
        /// Since when the sign is there.
        since: Time,
    },
}

impl Crossing {
    /// When this may change without anything new being seen.
    pub const fn next_look(&self) -> Option<Time> {
        match self {
            Self::Clear { next_look, .. } => *next_look,
            Self::Ripening { crosses_at, .. } => Some(*crosses_at),
            Self::Unclear | Self::Crossed { .. } => None,
        }
    }
}
