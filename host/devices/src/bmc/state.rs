//! A BMC and what it holds: its power, its sessions, what was asked of it.

use crate::Reply;
use crate::bmc::config::Config;
use crate::bmc::crypto::Random;
use crate::bmc::faults::Faults;
use crate::bmc::sessions::Sessions;
use crate::bmc::wire;
use crate::power::{Cause, PowerEvent, Supply};

/// The model.
#[derive(Clone, Debug)]
pub struct Bmc {
    /// What is wrong with it, from now on.
    pub faults: Faults,
    pub(crate) config: Config,
    pub(crate) supply: Supply,
    pub(super) sessions: Sessions,
    pub(crate) commands: Vec<CommandEvent>,
    pub(super) random: Random,
    pub(crate) now_ms: u64,
}

/// Commands kept until somebody drains them; a simulation that never does must not grow for ever.
pub(crate) const COMMANDS_KEPT: usize = 4096;

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
    pub(crate) fn guid(&self) -> [u8; 16] {
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

    pub(crate) fn answer(&mut self, peer: u64, data: &[u8]) -> Option<Vec<u8>> {
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

/// A command that reached the BMC, and what it answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEvent {
    /// When.
    pub at_ms: u64,
    /// The session's user; `None` outside sessions.
    pub user: Option<String>,
    /// Network function.
    pub netfn: u8,
    /// Command number.
    pub command: u8,
    /// Its data.
    pub data: Vec<u8>,
    /// The completion code.
    pub completion: u8,
    /// What was answered with it.
    pub answer: Vec<u8>,
}
