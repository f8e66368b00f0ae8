//! A baseboard management controller: the managed side of IPMI 2.0 over RMCP+.
//!
//! ```text
//!  datagram ─▶ wire ─▶ session set-up (setup) ─▶ sessions ─▶ commands ─▶ power
//!                          faults bend any of these ─────────────────────┘
//! ```
//!
//! The caller owns time: [`Bmc::datagram`] and [`Bmc::tick`] take it, and [`Bmc::next_change`] says
//! when power will change by itself. Faults are data ([`Faults`]) and can be changed at any moment.

mod commands;
mod crypto;
mod faults;
mod sessions;
mod setup;
mod wire;

pub use crate::Reply;
pub use crate::power::{Cause, Change, PowerEvent};
pub use commands::CommandEvent;
pub use faults::Faults;

use crypto::Random;
use sessions::Sessions;

use crate::power::Supply;

/// Cipher suites of this model. Suite 0 and its like, which authenticate or encrypt nothing, cannot
/// be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suite {
    /// 3: RAKP-HMAC-SHA1, HMAC-SHA1-96, AES-CBC-128.
    Sha1,
    /// 17: RAKP-HMAC-SHA256, HMAC-SHA256-128, AES-CBC-128.
    Sha256,
}

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Privilege {
    /// 2: read.
    User,
    /// 3: and switch power.
    Operator,
    /// 4: and configure.
    Administrator,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// At most 16 bytes.
    pub name: String,
    /// At most 20 bytes.
    pub password: Vec<u8>,
    /// The highest privilege it may ask for.
    pub privilege: Privilege,
}

/// What a BMC is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// As it goes over the wire.
    pub guid: [u8; 16],
    /// The accounts.
    pub users: Vec<User>,
    /// The BMC's own key, for those that have one set.
    pub kg: Option<Vec<u8>>,
    /// The suites offered, in the order of the list it gives.
    pub suites: Vec<Suite>,
    /// Sessions it holds at once, half-open ones counted.
    pub session_slots: usize,
    /// Is the machine powered at first?
    pub powered: bool,
    /// Everything random comes from here.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        let account = |name: &str, password: &str, privilege| User {
            name: name.into(),
            password: password.into(),
            privilege,
        };
        Self {
            guid: *b"\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab\xac\xad\xae\xaf",
            users: vec![
                account("admin", "secret", Privilege::Administrator),
                account("op", "oppw", Privilege::Operator),
                account("viewer", "viewpw", Privilege::User),
            ],
            kg: None,
            suites: vec![Suite::Sha1, Suite::Sha256],
            session_slots: 8,
            powered: true,
            seed: 1,
        }
    }
}

/// The model.
#[derive(Clone, Debug)]
pub struct Bmc {
    /// What is wrong with it, from now on.
    pub faults: Faults,
    config: Config,
    supply: Supply,
    sessions: Sessions,
    commands: Vec<CommandEvent>,
    random: Random,
    now_ms: u64,
}

/// Commands kept until somebody drains them; a simulation that never does must not grow for ever.
const COMMANDS_KEPT: usize = 4096;

impl Bmc {
    /// A healthy BMC.
    pub fn new(config: Config) -> Self {
        Self {
            faults: Faults::default(),
            supply: Supply::new(config.powered),
            sessions: Sessions::new(config.session_slots),
            commands: Vec::new(),
            random: Random::new(config.seed),
            now_ms: 0,
            config,
        }
    }

    /// What it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The machine that it names, as it goes over the wire.
    fn guid(&self) -> [u8; 16] {
        let named = self.config.guid;
        if self.faults.another_guid { named.map(|byte| !byte) } else { named }
    }

    /// Takes one datagram from a peer (any number that tells callers apart) and answers.
    pub fn datagram(&mut self, now_ms: u64, peer: u64, data: &[u8]) -> Vec<Reply> {
        self.tick(now_ms);
        if self.faults.silent || self.faults.dead {
            return Vec::new();
        }
        if self.faults.drop > 0 {
            self.faults.drop -= 1;
            return Vec::new();
        }
        let Some(mut bytes) = self.answer(peer, data) else { return Vec::new() };
        if let Some(length) = self.faults.truncate {
            bytes.truncate(length);
        }
        let reply = Reply { delay_ms: self.faults.delay_ms, bytes };
        if self.faults.dup { vec![reply.clone(), reply] } else { vec![reply] }
    }

    /// Lets time pass: power changes that are due happen, sessions that are idle end.
    pub fn tick(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        if self.faults.dead {
            self.lose_mains();
        }
        self.supply.tick(self.now_ms, self.faults.flip_back_ms);
        self.sessions.expire(self.now_ms);
    }

    /// When power will next change by itself.
    pub fn next_change(&self) -> Option<u64> {
        self.supply.next_change()
    }

    /// Is the machine powered? The truth, whatever its status answers say.
    pub fn powered(&self) -> bool {
        self.supply.powered()
    }

    /// The mains went, its standby power with them: it has no memory of anything.
    pub fn lose_mains(&mut self) {
        self.sessions.clear();
        self.supply.forget();
    }

    /// Somebody presses the button, or pulls the plug.
    pub fn set_power(&mut self, now_ms: u64, powered: bool) {
        self.tick(now_ms);
        self.supply.set(self.now_ms, powered, Cause::Outside);
    }

    /// The power changes since the last call.
    pub fn drain_power_events(&mut self) -> Vec<PowerEvent> {
        self.supply.drain()
    }

    /// The commands carried out or refused since the last call, inside and outside sessions.
    pub fn drain_commands(&mut self) -> Vec<CommandEvent> {
        std::mem::take(&mut self.commands)
    }

    /// Sessions that are open now: authenticated, and not closed.
    pub fn open_sessions(&self) -> usize {
        self.sessions.open_count()
    }

    /// Sessions that somebody began and has not finished setting up.
    pub fn half_open_sessions(&self) -> usize {
        self.sessions.len() - self.sessions.open_count()
    }

    fn answer(&mut self, peer: u64, data: &[u8]) -> Option<Vec<u8>> {
        match wire::parse(data)? {
            wire::Packet::Ping { tag } => Some(wire::pong(tag)),
            wire::Packet::V15(message) => {
                let reply = self.message(message, None)?;
                wire::v15(&reply)
            }
            wire::Packet::Plain { kind: wire::KIND_IPMI, body } => {
                let reply = self.message(body, None)?;
                wire::plain(wire::KIND_IPMI, &reply)
            }
            wire::Packet::Plain { kind: wire::KIND_OPEN, body } => self.open_session(peer, body),
            wire::Packet::Plain { kind: wire::KIND_RAKP_1, body } => self.rakp_1(body),
            wire::Packet::Plain { kind: wire::KIND_RAKP_3, body } => self.rakp_3(body),
            wire::Packet::Plain { .. } => None,
            wire::Packet::Sealed(sealed) => self.sealed(&sealed),
        }
    }
}

#[cfg(test)]
mod tests;
