//! Points in time and spans between them, in milliseconds of the API server's clock.
//!
//! There is no clock here: whoever asks says what time it is. All arithmetic saturates, so
//! that an absurd number in a record can delay an act, never bring one about.

use core::fmt;

/// Milliseconds since the Unix epoch, as the API server tells time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

/// A length of time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

impl Time {
    /// This moment plus `span`.
    #[must_use]
    pub const fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// How long ago `earlier` was; nothing if it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Whether this was no longer than `span` before `now`. What lies ahead of `now` was stamped by
    /// another clock, or before ours was set: nobody knows how old it is.
    #[must_use]
    pub fn is_within(self, span: Span, now: Self) -> bool {
        self <= now && now.since(self) <= span
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// So many seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }

    /// So many minutes.
    #[must_use]
    pub const fn minutes(minutes: u64) -> Self {
        Self::seconds(minutes.saturating_mul(60))
    }

    /// So many times this span.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ms) = (self.0 / 1_000, self.0 % 1_000);
        match (seconds / 3_600, seconds / 60 % 60, seconds % 60, ms) {
            (0, 0, 0, ms) => write!(f, "{ms} ms"),
            (0, 0, s, 0) => write!(f, "{s} s"),
            (0, 0, s, ms) => write!(f, "{s}.{} s", ms / 100),
            (0, m, 0, _) => write!(f, "{m} min"),
            (0, m, s, _) => write!(f, "{m} min {s} s"),
            (h, 0, _, _) => write!(f, "{h} h"),
            (h, m, _, _) => write!(f, "{h} h {m} min"),
        }
    }
}
