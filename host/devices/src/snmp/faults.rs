//! What can be wrong with a PDU or switch. Data only; each field is read where it bends something.

use crate::faults::{self, Named, UnknownFault};

/// The faults in force. The default is a healthy device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Ignore the next so many datagrams.
    pub(super) drop: u32,
    /// Answer so much later.
    pub(super) delay_ms: u64,
    /// Send every answer twice.
    pub(super) dup: bool,
    /// Never answer, and do nothing that is asked.
    pub(super) silent: bool,
    /// Its controller is dead: silent, pending changes are forgotten, and its relays stay as they are.
    pub(super) dead: bool,
    /// Nothing feeds it: dead, and nothing behind it is fed. Its relays keep their places.
    pub(super) no_input: bool,
    /// It takes another community from now on, and answers the one it had with silence.
    pub(super) community: bool,
    /// Refuse what is written with this error-status.
    pub(super) set_status: Option<u32>,
    /// Answers carry another request-id.
    pub(super) wrong_id: bool,
    /// Answers are about other objects.
    pub(super) wrong_oid: bool,
    /// Say yes to what is written and move no relay.
    pub(super) stuck: bool,
    /// Say yes, switch so much later.
    pub(super) late_ms: Option<u64>,
    /// Switch and never say so.
    pub(super) reply_lost: bool,
    /// Every change turns back by itself after so long.
    pub(super) flip_back_ms: Option<u64>,
    /// What is read was true so long ago.
    pub(super) stale_ms: Option<u64>,
    /// Everything reads off.
    pub(super) says_off: bool,
    /// The newer of two tables says the opposite of the older one.
    pub(super) tables_differ: bool,
    /// Cut every answer to so many bytes.
    pub(super) truncate: Option<usize>,
}

const TABLE: [Named<Faults>; 18] = [
    ("drop", |faults, value| faults.drop = value.count()),
    ("delay", |faults, value| faults.delay_ms = value.ms()),
    ("dup", |faults, value| faults.dup = value.flag()),
    ("silent", |faults, value| faults.silent = value.flag()),
    ("dead", |faults, value| faults.dead = value.flag()),
    ("no_input", |faults, value| faults.no_input = value.flag()),
    ("community", |faults, value| faults.community = value.flag()),
    ("set_status", |faults, value| faults.set_status = value.some()),
    ("wrong_id", |faults, value| faults.wrong_id = value.flag()),
    ("wrong_oid", |faults, value| faults.wrong_oid = value.flag()),
    ("stuck", |faults, value| faults.stuck = value.flag()),
    ("off_after", |faults, value| faults.late_ms = value.some_ms()),
    ("reply_lost", |faults, value| faults.reply_lost = value.flag()),
    ("flip_back", |faults, value| faults.flip_back_ms = value.some_ms()),
    ("stale", |faults, value| faults.stale_ms = value.some_ms()),
    ("says_off", |faults, value| faults.says_off = value.flag()),
    ("tables_differ", |faults, value| faults.tables_differ = value.flag()),
    ("truncate", |faults, value| faults.truncate = value.some_len()),
];

impl Faults {
    /// The names [`Faults::set`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        faults::names(&TABLE)
    }

    /// Sets a fault by name; lengths of time in milliseconds. 0 clears it; `none` clears all.
    pub fn set(&mut self, name: &str, value: u32) -> Result<(), UnknownFault> {
        faults::set(self, ("a PDU or switch", &TABLE), name, value)
    }

    /// Whether it hears nothing.
    pub(super) fn is_deaf(&self) -> bool {
        self.silent || self.dead || self.no_input
    }
}
