//! The sessions: slots, sequence windows, and the packets inside them.

use super::crypto;
use super::crypto::BLOCK;
use crate::bmc::config::{Privilege, Suite};

/// A session nobody uses ends after this long (the specification's 60 s).
const IDLE_MS: u64 = 60_000;
/// How far a sequence number may stand from the highest one seen.
const WINDOW: u32 = 16;

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) sid: u32,
    pub(super) remote_sid: u32,
    pub(super) suite: Suite,
    pub(super) peer: u64,
    pub(super) used_ms: u64,
    pub(super) stage: Stage,
}

#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// Opened, waiting for RAKP 1.
    Opened,
    /// RAKP 2 was sent, waiting for RAKP 3. A repeated RAKP 3 is answered again from `Up`.
    Keyed(Exchange),
    /// Authenticated.
    Up { exchange: Exchange, live: Live },
}

/// What both sides said while the keys were agreed on.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) user: String,
    pub(super) kuid: Vec<u8>,
    pub(super) sik: Vec<u8>,
    pub(super) role: u8,
    pub(super) name: Vec<u8>,
    pub(super) console_random: [u8; 16],
    pub(super) our_random: [u8; 16],
}

#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) privilege: Privilege,
    pub(super) privilege_max: Privilege,
    pub(super) integrity_key: Vec<u8>,
    pub(super) cipher_key: [u8; BLOCK],
    pub(super) sent: u32,
    highest: u32,
    /// Bit n: the number `highest - n` was seen.
    seen: u32,
}

impl Live {
    pub(super) fn new(suite: Suite, sik: &[u8], privilege_max: Privilege) -> Self {
        let mut cipher_key = [0; BLOCK];
        let derived = crypto::mac(suite, sik, &[&[2; 20]]);
        for (to, from) in cipher_key.iter_mut().zip(derived) {
            *to = from;
        }
        Self {
            privilege: Privilege::User,
            privilege_max,
            integrity_key: crypto::mac(suite, sik, &[&[1; 20]]),
            cipher_key,
            sent: 0,
            highest: 0,
            seen: 0,
        }
    }

    /// Is this number new and near enough? Then it is now seen.
    pub(super) fn accept(&mut self, seq: u32) -> bool {
        if seq == 0 {
            return false;
        }
        if let Some(ahead) = seq.checked_sub(self.highest).filter(|ahead| *ahead > 0) {
            // The first number is the console's to choose.
            if self.highest != 0 && ahead > WINDOW {
                return false;
            }
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = seq;
            return true;
        }
        let behind = self.highest - seq;
        let bit = 1_u32.checked_shl(behind).unwrap_or(0);
        if behind >= WINDOW || self.seen & bit != 0 {
            return false;
        }
        self.seen |= bit;
        true
    }
}

#[derive(Clone, Debug)]
pub(super) struct Sessions {
    slots: usize,
    next_sid: u32,
    held: Vec<Session>,
}

impl Sessions {
    pub(super) fn new(slots: usize) -> Self {
        Self { slots, next_sid: 0x0200_0100, held: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn open_count(&self) -> usize {
        self.held.iter().filter(|session| matches!(session.stage, Stage::Up { .. })).count()
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
    }

    pub(super) fn expire(&mut self, now_ms: u64) {
        self.held.retain(|session| now_ms.saturating_sub(session.used_ms) < IDLE_MS);
    }

    /// A slot for a new session, or `None` if all are taken.
    pub(super) fn open(&mut self, opening: &Opening) -> Option<u32> {
        let Opening { peer, remote_sid, suite, now_ms } = *opening;
        // A console that repeats its request did not hear our answer: the same slot serves it.
        self.held.retain(|session| {
            (session.peer, session.remote_sid) != (peer, remote_sid)
                || !matches!(session.stage, Stage::Opened)
        });
        if self.held.len() >= self.slots {
            return None;
        }
        let sid = self.next_sid;
        self.next_sid = self.next_sid.wrapping_add(1);
        let stage = Stage::Opened;
        self.held.push(Session { sid, remote_sid, suite, peer, used_ms: now_ms, stage });
        Some(sid)
    }

    pub(super) fn find(&mut self, sid: u32) -> Option<&mut Session> {
        self.held.iter_mut().find(|session| session.sid == sid)
    }

    pub(super) fn close(&mut self, sid: u32) {
        self.held.retain(|session| session.sid != sid);
    }
}

/// Who asks for a session, and for which.
pub(super) struct Opening {
    pub(super) peer: u64,
    pub(super) remote_sid: u32,
    pub(super) suite: Suite,
    pub(super) now_ms: u64,
}

/// Bytes of the authentication code on each packet.
pub(super) fn code_length(suite: Suite) -> usize {
    match suite {
        Suite::Sha1 => 12,
        Suite::Sha256 => 16,
    }
}
