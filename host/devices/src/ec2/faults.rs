//! What can be wrong with an instance or with the way to it. Data only; each field is read where it
//! bends something.

use crate::faults::{self, Named, UnknownFault};

/// The faults in force. The default is a service that does as it is told.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fault of its own; any may go with any"
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Never answer, and do nothing.
    pub silent: bool,
    /// No way leads there.
    pub unreachable: bool,
    /// Answer so much later.
    pub delay_ms: u64,
    /// Refuse everything because too much was asked (`RequestLimitExceeded`).
    pub throttled: bool,
    /// Refuse everything because the service is overloaded (`Unavailable`).
    pub unavailable: bool,
    /// Refuse changes: the key's policies do not allow them (`UnauthorizedOperation`).
    pub denied: bool,
    /// Refuse reads for the same reason.
    pub blind: bool,
    /// Know no such instance (`InvalidInstanceID.NotFound`).
    pub unknown: bool,
    /// Refuse to start for want of capacity.
    pub no_capacity: bool,
    /// Accept a stop or a start, and do nothing.
    pub forgets: bool,
    /// Whatever is stopping or starting does so for ever.
    pub stuck: bool,
    /// Take so long to stop.
    pub slow_stop_ms: Option<u64>,
    /// Take so long to start.
    pub slow_start_ms: Option<u64>,
    /// Reads tell what was true so long ago.
    pub stale_ms: u64,
    /// Do what is asked, and close the connection without an answer.
    pub reply_lost: bool,
    /// Do what is asked, and say that it failed inside (`InternalError`).
    pub fails_inside: bool,
    /// Answer with a web page.
    pub garbled: bool,
    /// It hibernates: it reads as stopped, its memory is kept, and a start lets it go on where it was.
    pub hibernated: bool,
    /// Cut every answer to so many bytes.
    pub truncate: Option<usize>,
}

const TABLE: [Named<Faults>; 19] = [
    ("silent", |faults, value| faults.silent = value.flag()),
    ("unreachable", |faults, value| faults.unreachable = value.flag()),
    ("delay", |faults, value| faults.delay_ms = value.ms()),
    ("throttled", |faults, value| faults.throttled = value.flag()),
    ("unavailable", |faults, value| faults.unavailable = value.flag()),
    ("denied", |faults, value| faults.denied = value.flag()),
    ("blind", |faults, value| faults.blind = value.flag()),
    ("unknown", |faults, value| faults.unknown = value.flag()),
    ("no_capacity", |faults, value| faults.no_capacity = value.flag()),
    ("forgets", |faults, value| faults.forgets = value.flag()),
    ("stuck", |faults, value| faults.stuck = value.flag()),
    ("slow_stop", |faults, value| faults.slow_stop_ms = value.some_ms()),
    ("slow_start", |faults, value| faults.slow_start_ms = value.some_ms()),
    ("stale", |faults, value| faults.stale_ms = value.ms()),
    ("reply_lost", |faults, value| faults.reply_lost = value.flag()),
    ("fails_inside", |faults, value| faults.fails_inside = value.flag()),
    ("garbled", |faults, value| faults.garbled = value.flag()),
    ("hibernated", |faults, value| faults.hibernated = value.flag()),
    ("truncate", |faults, value| faults.truncate = value.some_len()),
];

impl Faults {
    /// The names [`Faults::set`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        faults::names(&TABLE)
    }

    /// Sets a fault by name; lengths of time in milliseconds. 0 clears it; `none` clears all.
    pub fn set(&mut self, name: &str, value: u32) -> Result<(), UnknownFault> {
        faults::set(self, ("EC2", &TABLE), name, value)
    }
}
