//! Every bound of this method, with its reason.

/// One answer. What libvirt asks of qemu is answered in milliseconds, or waits for a lock of up to
/// thirty seconds.
pub(crate) const ANSWER_MS: u64 = 20_000;

/// A change: libvirt gives qemu up to thirty seconds to end.
pub(crate) const CHANGE_MS: u64 = 45_000;

/// What no answer takes of the deadline, so that the call ends with a sentence and is not cut.
pub(crate) const LAST_WORDS_MS: u64 = 250;

/// A poll is not begun if it leaves less of the deadline for its answer.
pub(crate) const POLL_MS: u64 = 500;

/// The pause between polls.
pub(crate) const PAUSE_MS: u32 = 500;

/// One message. A thousand domains in a list are some 60 kB; libvirt's own limit is 32 MiB.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256 << 10;

/// One read: what the host gives at most.
pub(crate) const READ_BYTES: usize = 16 << 10;

/// Messages that nobody asked for, such as events, between a call and its answer.
pub(crate) const UNASKED_MAX: u32 = 16;

/// Domains that are listed with their states, each a call of its own.
pub(crate) const DOMAINS_MAX: usize = 256;

/// The name of a domain: a file of this name holds its definition.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The server's own sentence is cut here, in characters.
pub(crate) const SENTENCE_MAX: usize = 200;
