//! What can be wrong with a PDU or switch. Data only; each field is read where it bends something.

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

/// A fault that this model does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault(pub String);

impl std::fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Faults::NAMES.join(", ");
        write!(f, "no such fault of a PDU or switch: {}; there are {names}", self.0)
    }
}

impl std::error::Error for UnknownFault {}

impl Faults {
    /// The names [`Faults::set`] knows.
    pub const NAMES: [&'static str; 19] = [
        "drop",
        "delay",
        "dup",
        "silent",
        "dead",
        "no_input",
        "community",
        "set_status",
        "wrong_id",
        "wrong_oid",
        "stuck",
        "off_after",
        "reply_lost",
        "flip_back",
        "stale",
        "says_off",
        "tables_differ",
        "truncate",
        "none",
    ];

    /// Sets a fault by name, as scenarios and test tables write it. 0 clears it; `none` clears all.
    pub fn set(&mut self, name: &str, value: u32) -> Result<(), UnknownFault> {
        let flag = value != 0;
        let ms = flag.then_some(u64::from(value));
        match name {
            "drop" => self.drop = value,
            "delay" => self.delay_ms = u64::from(value),
            "dup" => self.dup = flag,
            "silent" => self.silent = flag,
            "dead" => self.dead = flag,
            "no_input" => self.no_input = flag,
            "community" => self.community = flag,
            "set_status" => self.set_status = flag.then_some(value),
            "wrong_id" => self.wrong_id = flag,
            "wrong_oid" => self.wrong_oid = flag,
            "stuck" => self.stuck = flag,
            "off_after" => self.late_ms = ms,
            "reply_lost" => self.reply_lost = flag,
            "flip_back" => self.flip_back_ms = ms,
            "stale" => self.stale_ms = ms,
            "says_off" => self.says_off = flag,
            "tables_differ" => self.tables_differ = flag,
            "truncate" => {
                self.truncate = flag.then(|| usize::try_from(value).unwrap_or(usize::MAX));
            }
            "none" => *self = Self::default(),
            unknown => return Err(UnknownFault(unknown.into())),
        }
        Ok(())
    }

    /// Whether it hears nothing.
    pub(super) fn is_deaf(&self) -> bool {
        self.silent || self.dead || self.no_input
    }
}
