//! Every bound of this method, with its reason.

/// One request. BMCs that collect what they answer take several seconds, and some twenty.
pub(crate) const REQUEST_MS: u32 = 25_000;

/// Pages of a collection that are read, and members of all of them: the largest chassis have a few
/// dozen systems.
pub(crate) const PAGES_MAX: usize = 16;
/// See [`PAGES_MAX`].
pub(crate) const MEMBERS_MAX: usize = 128;

/// A device's own sentence is cut here, in characters.
pub(crate) const SENTENCE_MAX: usize = 200;

/// A poll is not begun if it leaves less of the deadline for its answer.
pub(crate) const ANSWER_MS: u64 = 1_000;

/// What no request takes of the deadline, so that the call ends with a sentence and is not cut.
pub(crate) const LAST_WORDS_MS: u64 = 250;

/// The pause before the n-th poll: a BMC's web server is slow, and its machine not much faster.
pub(crate) fn poll_pause_ms(polls: u32) -> u32 {
    if polls <= 8 { 1_000 } else { 3_000 }
}
