//! What can be wrong with an instance or with the way to it. Data only; each field is read where it
//! bends something.

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
    /// Cut every answer to so many bytes.
    pub truncate: Option<usize>,
}

/// A fault that this model does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault(pub String);

impl std::fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no such fault of EC2: {}; there are {}", self.0, Faults::NAMES.join(", "))
    }
}

impl std::error::Error for UnknownFault {}

impl Faults {
    /// The names [`Faults::set`] knows.
    pub const NAMES: [&'static str; 19] = [
        "silent",
        "unreachable",
        "delay",
        "throttled",
        "unavailable",
        "denied",
        "blind",
        "unknown",
        "no_capacity",
        "forgets",
        "stuck",
        "slow_stop",
        "slow_start",
        "stale",
        "reply_lost",
        "fails_inside",
        "garbled",
        "truncate",
        "none",
    ];

    /// Sets a fault by name, as scenarios and test tables write it; lengths of time in milliseconds.
    /// 0 clears it; `none` clears all.
    pub fn set(&mut self, name: &str, value: u32) -> Result<(), UnknownFault> {
        let flag = value != 0;
        let ms = flag.then_some(u64::from(value));
        match name {
            "silent" => self.silent = flag,
            "unreachable" => self.unreachable = flag,
            "delay" => self.delay_ms = u64::from(value),
            "throttled" => self.throttled = flag,
            "unavailable" => self.unavailable = flag,
            "denied" => self.denied = flag,
            "blind" => self.blind = flag,
            "unknown" => self.unknown = flag,
            "no_capacity" => self.no_capacity = flag,
            "forgets" => self.forgets = flag,
            "stuck" => self.stuck = flag,
            "slow_stop" => self.slow_stop_ms = ms,
            "slow_start" => self.slow_start_ms = ms,
            "stale" => self.stale_ms = u64::from(value),
            "reply_lost" => self.reply_lost = flag,
            "fails_inside" => self.fails_inside = flag,
            "garbled" => self.garbled = flag,
            "truncate" => {
                self.truncate = flag.then(|| usize::try_from(value).unwrap_or(usize::MAX));
            }
            "none" => *self = Self::default(),
            unknown => return Err(UnknownFault(unknown.into())),
        }
        Ok(())
    }
}
