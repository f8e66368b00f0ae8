//! What can be wrong with a BMC. Data only; each field is read where it bends something.

/// The faults in force. The default is a healthy BMC.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fault of its own; any may go with any"
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Ignore the next so many datagrams.
    pub drop: u32,
    /// Answer so much later.
    pub delay_ms: u64,
    /// Send every answer twice.
    pub dup: bool,
    /// Never answer, and do nothing.
    pub silent: bool,
    /// Without power itself: silent, and its sessions and pending changes are forgotten.
    pub dead: bool,
    /// Refuse to open sessions with this status.
    pub open_status: Option<u8>,
    /// Refuse RAKP 1 with this status.
    pub rakp2_status: Option<u8>,
    /// Refuse RAKP 3 with this status.
    pub rakp4_status: Option<u8>,
    /// A wrong key exchange code in RAKP 2.
    pub bad_rakp2: bool,
    /// A wrong integrity check value in RAKP 4.
    pub bad_rakp4: bool,
    /// A wrong authentication code on every packet of a session.
    pub bad_auth: bool,
    /// Wrong message tags while a session is set up.
    pub bad_tag: bool,
    /// Answers go to a session that does not exist.
    pub wrong_sid: bool,
    /// Refuse to list cipher suites (completion code c1).
    pub no_ciphers: bool,
    /// Never answer when asked for the list, as some BMCs do.
    pub mute_ciphers: bool,
    /// Say yes to power commands and do nothing.
    pub stuck: bool,
    /// Refuse power commands with this completion code.
    pub completion_code: Option<u8>,
    /// Say yes, change power so much later.
    pub late_ms: Option<u64>,
    /// Change power and never say so.
    pub control_reply_lost: bool,
    /// Every change turns back by itself after so long.
    pub flip_back_ms: Option<u64>,
    /// Status tells what was true so long ago.
    pub stale_ms: Option<u64>,
    /// Cut every answer to so many bytes.
    pub truncate: Option<usize>,
    /// Forget a session as soon as it is set up.
    pub kill_session: bool,
    /// Offer the old suite 0, which authenticates nobody, as the only one.
    pub only_suite_zero: bool,
}

/// A fault that this model does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault(pub String);

impl std::fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no such fault of a BMC: {}; there are {}", self.0, Faults::NAMES.join(", "))
    }
}

impl std::error::Error for UnknownFault {}

impl Faults {
    /// The names [`Faults::set`] knows.
    pub const NAMES: [&'static str; 25] = [
        "drop",
        "delay",
        "dup",
        "silent",
        "dead",
        "open_status",
        "rakp2_status",
        "rakp4_status",
        "bad_rakp2",
        "bad_rakp4",
        "bad_auth",
        "bad_tag",
        "wrong_sid",
        "no_ciphers",
        "mute_ciphers",
        "stuck",
        "cc",
        "off_after",
        "reply_lost",
        "flip_back",
        "stale",
        "truncate",
        "kill_session",
        "only_suite_zero",
        "none",
    ];

    /// Sets a fault by name, as scenarios and test tables write it. 0 clears it; `none` clears all.
    /// A number that does not fit the fault (a status is one byte) is cut to its largest value.
    pub fn set(&mut self, name: &str, value: u32) -> Result<(), UnknownFault> {
        let flag = value != 0;
        let byte = flag.then(|| u8::try_from(value).unwrap_or(u8::MAX));
        let ms = flag.then_some(u64::from(value));
        match name {
            "drop" => self.drop = value,
            "delay" => self.delay_ms = u64::from(value),
            "dup" => self.dup = flag,
            "silent" => self.silent = flag,
            "dead" => self.dead = flag,
            "open_status" => self.open_status = byte,
            "rakp2_status" => self.rakp2_status = byte,
            "rakp4_status" => self.rakp4_status = byte,
            "bad_rakp2" => self.bad_rakp2 = flag,
            "bad_rakp4" => self.bad_rakp4 = flag,
            "bad_auth" => self.bad_auth = flag,
            "bad_tag" => self.bad_tag = flag,
            "wrong_sid" => self.wrong_sid = flag,
            "no_ciphers" => self.no_ciphers = flag,
            "mute_ciphers" => self.mute_ciphers = flag,
            "stuck" => self.stuck = flag,
            "cc" => self.completion_code = byte,
            "off_after" => self.late_ms = ms,
            "reply_lost" => self.control_reply_lost = flag,
            "flip_back" => self.flip_back_ms = ms,
            "stale" => self.stale_ms = ms,
            "truncate" => {
                self.truncate = flag.then(|| usize::try_from(value).unwrap_or(usize::MAX));
            }
            "kill_session" => self.kill_session = flag,
            "only_suite_zero" => self.only_suite_zero = flag,
            "none" => *self = Self::default(),
            unknown => return Err(UnknownFault(unknown.into())),
        }
        Ok(())
    }
}
