//! What can be wrong with a BMC. Data only; each field is read where it bends something.

use crate::faults::{self, Named, UnknownFault};

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
    /// Keep the next so many answers to RAKP 3 to itself, with the session up.
    pub lose_rakp4: u32,
    /// A session that is up answers no RAKP 3: it was said before.
    pub strict_rakp3: bool,
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
    /// Name another machine by its GUID: its address was given to that one's BMC.
    pub another_guid: bool,
}

const TABLE: [Named<Faults>; 27] = [
    ("drop", |faults, value| faults.drop = value.count()),
    ("delay", |faults, value| faults.delay_ms = value.ms()),
    ("dup", |faults, value| faults.dup = value.flag()),
    ("silent", |faults, value| faults.silent = value.flag()),
    ("dead", |faults, value| faults.dead = value.flag()),
    ("open_status", |faults, value| faults.open_status = value.some_byte()),
    ("rakp2_status", |faults, value| faults.rakp2_status = value.some_byte()),
    ("rakp4_status", |faults, value| faults.rakp4_status = value.some_byte()),
    ("lose_rakp4", |faults, value| faults.lose_rakp4 = value.count()),
    ("strict_rakp3", |faults, value| faults.strict_rakp3 = value.flag()),
    ("bad_rakp2", |faults, value| faults.bad_rakp2 = value.flag()),
    ("bad_rakp4", |faults, value| faults.bad_rakp4 = value.flag()),
    ("bad_auth", |faults, value| faults.bad_auth = value.flag()),
    ("bad_tag", |faults, value| faults.bad_tag = value.flag()),
    ("wrong_sid", |faults, value| faults.wrong_sid = value.flag()),
    ("no_ciphers", |faults, value| faults.no_ciphers = value.flag()),
    ("mute_ciphers", |faults, value| faults.mute_ciphers = value.flag()),
    ("stuck", |faults, value| faults.stuck = value.flag()),
    ("cc", |faults, value| faults.completion_code = value.some_byte()),
    ("off_after", |faults, value| faults.late_ms = value.some_ms()),
    ("reply_lost", |faults, value| faults.control_reply_lost = value.flag()),
    ("flip_back", |faults, value| faults.flip_back_ms = value.some_ms()),
    ("stale", |faults, value| faults.stale_ms = value.some_ms()),
    ("truncate", |faults, value| faults.truncate = value.some_len()),
    ("kill_session", |faults, value| faults.kill_session = value.flag()),
    ("only_suite_zero", |faults, value| faults.only_suite_zero = value.flag()),
    ("another_guid", |faults, value| faults.another_guid = value.flag()),
];

impl Faults {
    /// The names [`Faults::set`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        faults::names(&TABLE)
    }

    /// Sets a fault by name. 0 clears it; `none` clears all. A status that is larger than a byte is cut
    /// to 255.
    pub fn set(&mut self, name: &str, value: u32) -> Result<(), UnknownFault> {
        faults::set(self, ("a BMC", &TABLE), name, value)
    }
}
