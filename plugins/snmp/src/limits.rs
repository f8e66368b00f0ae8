//! Every bound of this library, with its reason.

/// How often a message is sent before its silence counts. Two losses in a row happen on management
/// networks; four mean that nobody answers.
pub(crate) const SENDS_MAX: u32 = 4;

/// The first wait for an answer; the n-th is n times as long, so that all four take 5 s. The
/// controllers inside PDUs are slow, and answer within a second.
pub(crate) const FIRST_WAIT_MS: u32 = 500;

/// An agent that was seen to be slower gets this many of its own round trips as the first wait,
pub(crate) const ROUND_TRIPS_TO_WAIT: u32 = 3;
/// and no more than this.
pub(crate) const FIRST_WAIT_MAX_MS: u32 = 3_000;

/// Datagrams looked at while waiting for one answer, so that a flood cannot keep a call busy.
pub(crate) const DATAGRAMS_PER_WAIT_MAX: u32 = 64;

/// The largest message that is read, and what we say of ourselves as msgMaxSize. Everything asked
/// here fits into the 484 bytes that each agent must take (RFC 3417, 3.2.5).
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// Arcs of an object identifier (RFC 3416, 4.1).
pub(crate) const ARCS_MAX: usize = 128;

/// Rows of one table that are walked: large chassis have some hundred ports.
pub(crate) const ROWS_MAX: usize = 1_024;

/// How often a call starts anew because the agent says that its clock or engine is another one:
/// once for each, and once more for a clock that was set meanwhile.
pub(crate) const RESYNCS_MAX: u32 = 3;

/// An authentic message that is older than this is not believed (RFC 3414, 2.2.3).
pub(crate) const TIME_WINDOW_S: u32 = 150;

/// Engine ids (RFC 3411, SnmpEngineID).
pub(crate) const ENGINE_ID_BYTES_MAX: usize = 32;

/// User names (RFC 3414, 2.4), and names of contexts.
pub(crate) const NAME_BYTES_MAX: usize = 32;

/// A device's own words are cut here, in characters.
pub(crate) const WORDS_MAX: usize = 64;

/// Plugs that a sentence lists.
pub(crate) const LISTED_MAX: usize = 24;

/// What no question takes of the deadline, so that the call ends with a sentence and is not cut.
pub(crate) const LAST_WORDS_MS: u64 = 250;

/// How often a plug is read again that was told something and does not read so: a second in all. A
/// link needs some 0.4 s to fall.
pub(crate) const SETTLE_POLLS: u32 = 4;

/// The pause before the n-th poll: relays switch within a second, and ports a little later.
pub(crate) fn poll_pause_ms(polls: u32) -> u32 {
    if polls <= 8 { 250 } else { 1_000 }
}

/// What may follow a decrypted message: a block of AES. Some agents pad a message that fills its last
/// block with a whole one more.
pub(crate) const PADDING_MAX: usize = 16;
