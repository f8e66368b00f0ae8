//! Every bound of this method, with its reason.

/// How often a message is sent before its silence counts. Two losses in a row happen on management
/// networks; four mean that nobody is there.
pub(crate) const SENDS_MAX: u32 = 4;

/// The first wait for an answer; the n-th is n times as long, so that all four take 5 s. A BMC
/// answers within milliseconds, a busy one within a few hundred.
pub(crate) const FIRST_WAIT_MS: u32 = 500;

/// A BMC that was seen to be slower than that gets this many of its own round trips as the first
/// wait. Repeating RAKP 1 to a BMC that is only slow makes it forget its first answer.
pub(crate) const ROUND_TRIPS_TO_WAIT: u32 = 3;

/// And no more than this, whatever it was seen to take.
pub(crate) const FIRST_WAIT_MAX_MS: u32 = 3_000;

/// Sessions that are begun until one stands. A BMC that lost track of one, or whose last word was lost, takes
/// no word of it again; the last session is waited for longest.
pub(crate) const SESSIONS_MAX: u32 = 3;

/// Waits for the list of cipher suites: together one second, because some BMCs never answer.
pub(crate) const DISCOVER_WAITS_MS: [u32; 2] = [400, 600];

/// Once the BMC has answered anything, the list gets this many of its round trips more,
pub(crate) const LIST_ROUND_TRIPS: u32 = 8;
/// at least so long,
pub(crate) const LIST_GRACE_MIN_MS: u32 = 15;
/// and at most so long.
pub(crate) const LIST_GRACE_MAX_MS: u32 = 250;

/// Pages of the list that are read: 128 bytes of records, more than any BMC has suites for.
pub(crate) const LIST_PAGES_MAX: u8 = 8;

/// Datagrams looked at while waiting for one answer, so that a flood cannot keep a call busy.
pub(crate) const DATAGRAMS_PER_WAIT_MAX: u32 = 256;

/// What is kept back of the deadline for closing the session.
pub(crate) const CLOSE_RESERVE_MS: u64 = 400;

/// How long the answer to the close is waited for; the host repeats it as a farewell if none came.
pub(crate) const CLOSE_WAIT_MS: u32 = 200;

/// The farewell's sequence number stands this far ahead, so that it need not be made anew for each
/// packet; the specification's window is 16 wide.
pub(crate) const FAREWELL_AHEAD: u32 = 4;

/// User names are at most this long in RAKP.
pub(crate) const USER_NAME_MAX: usize = 16;

/// The pause before the n-th poll: machines that go off do so within a second or take many.
pub(crate) fn poll_pause_ms(polls: u32) -> u32 {
    if polls <= 8 { 250 } else { 1_000 }
}
