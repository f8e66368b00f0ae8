//! Packets inside of a session: opened, answered, and sealed again.

use crate::bmc::crypto::BLOCK;
use crate::bmc::sessions::{Stage, code_length};
use crate::bmc::state::Bmc;
use crate::bmc::{crypto, wire};

impl Bmc {
    /// A packet of a session: checked, opened, carried out, and the answer sealed.
    pub(super) fn sealed(&mut self, packet: &wire::Sealed<'_>) -> Option<Vec<u8>> {
        let now_ms = self.now_ms;
        let session = self.sessions.find(packet.sid)?;
        let suite = session.suite;
        let Stage::Up { live, .. } = &mut session.stage else { return None };
        let covered = packet.whole.len().checked_sub(code_length(suite))?;
        let (covered, code) = packet.whole.split_at_checked(covered)?;
        let wanted = crypto::mac(suite, &live.integrity_key, &[covered]);
        if !wanted.starts_with(code) || !live.accept(packet.seq) {
            return None;
        }
        let message = unpad(crypto::decrypt(&live.cipher_key, packet.body)?)?;
        session.used_ms = now_ms;
        let reply = self.message(&message, Some(packet.sid));
        let sealed = reply.and_then(|reply| self.seal(packet.sid, reply));
        if closes(&message) {
            self.sessions.close(packet.sid);
        }
        sealed
    }

    fn seal(&mut self, sid: u32, mut message: Vec<u8>) -> Option<Vec<u8>> {
        let iv = self.random.bytes();
        let (wrong_sid, bad_auth) = (self.faults.wrong_sid, self.faults.bad_auth);
        let session = self.sessions.find(sid)?;
        let suite = session.suite;
        let Stage::Up { live, .. } = &mut session.stage else { return None };
        let pad = (BLOCK - (message.len() + 1) % BLOCK) % BLOCK;
        message.extend((1..=pad).filter_map(|byte| u8::try_from(byte).ok()));
        message.push(u8::try_from(pad).ok()?);
        live.sent = live.sent.wrapping_add(1);
        let encrypted = crypto::encrypt(&live.cipher_key, &iv, &message);
        let remote_sid = session.remote_sid ^ if wrong_sid { 0x5a5a } else { 0 };
        wire::sealed(remote_sid, live.sent, &encrypted, |packet| {
            let mut code = crypto::mac(suite, &live.integrity_key, &[packet]);
            code.truncate(code_length(suite));
            if let (true, Some(first)) = (bad_auth, code.first_mut()) {
                *first ^= 1;
            }
            code
        })
    }
}

pub(super) fn closes(message: &[u8]) -> bool {
    wire::message(message).is_some_and(|message| (message.netfn, message.command) == (6, 0x3c))
}

/// The message without the padding that encryption needed.
pub(super) fn unpad(mut plain: Vec<u8>) -> Option<Vec<u8>> {
    let pad = usize::from(plain.pop()?);
    let length = plain.len().checked_sub(pad)?;
    plain.truncate(length);
    Some(plain)
}
