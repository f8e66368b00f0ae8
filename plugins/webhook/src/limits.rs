//! Every bound of this method, with its reason.

/// One request. Small devices take a second or two, and longer while their radio sleeps.
pub(crate) const REQUEST_MS: u32 = 10_000;

/// What no request takes of the deadline, so that the call ends with a sentence and is not cut.
pub(crate) const LAST_WORDS_MS: u64 = 250;

/// A poll is not begun if it leaves less of the deadline for its answer.
pub(crate) const ANSWER_MS: u64 = 1_000;

/// The pause between polls.
pub(crate) const PAUSE_MS: u32 = 1_000;

/// The name of an outlet.
pub(crate) const PLUG_BYTES_MAX: usize = 200;

/// A device's own word is cut here, in characters.
pub(crate) const WORD_MAX: usize = 60;
