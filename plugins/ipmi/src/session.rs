//! Inside a session: packets that are authenticated and encrypted, each newer than the last, and
//! the close at the end, which the host sends if we no longer can.

use std::cell::Cell;

use node_remedy_sdk::{Cipher, Failure, FailureKind, Host, Key, Refused};

use crate::codec::message::{self, Command};
use crate::codec::packet::{self, Packet, Sealed};
use crate::codec::setup::Exchange;
use crate::codec::{Malformed, Suite};
use crate::failures;
use crate::limits;
use crate::link::{Link, Lost, Patience, Rejected, Wrong};
use crate::parameters::Privilege;

const SET_PRIVILEGE: Command = Command { netfn: 0x06, number: 0x3b };
const CLOSE: Command = Command { netfn: 0x06, number: 0x3c };

/// An open session.
pub(crate) struct Session<'l, H: Host> {
    link: &'l Link<'l, H>,
    suite: Suite,
    bmc_sid: u32,
    console_sid: u32,
    guid: [u8; 16],
    integrity: H::Key,
    confidentiality: H::Key,
    next_seq: Cell<u32>,
    farewell_seq: Cell<u32>,
    heard_seq: Cell<u32>,
    next_pair: Cell<u8>,
}

/// A response, taken out of its packet.
pub(crate) struct Reply {
    pub(crate) completion: u8,
    pub(crate) data: Vec<u8>,
}

impl<'l, H: Host> Session<'l, H> {
    /// A session that the BMC will hold once it has RAKP 3. Its keys are derived from `sik`.
    pub(crate) fn new(
        link: &'l Link<'l, H>,
        suite: Suite,
        exchange: &Exchange<'_>,
        guid: [u8; 16],
        sik: &H::Key,
    ) -> Result<Self, Failure> {
        let key = |byte: u8, length: usize| {
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            sik.derive(suite.hash(), &[byte; 20], length).map_err(not_used)
        };
        Ok(Self {
            link,
            suite,
            bmc_sid: exchange.bmc_sid,
            console_sid: exchange.console_sid,
            guid,
            integrity: key(1, suite.exchange_code_length())?,
            confidentiality: key(2, packet::BLOCK)?,
            next_seq: Cell::new(1),
            farewell_seq: Cell::new(0),
            heard_seq: Cell::new(0),
            next_pair: Cell::new(1),
        })
    }

    pub(crate) fn host(&self) -> &H {
        self.link.host()
    }

    pub(crate) fn suite(&self) -> Suite {
        self.suite
    }

    /// The GUID of RAKP 2.
    pub(crate) fn guid(&self) -> &[u8; 16] {
        &self.guid
    }

    /// Does the deadline leave room for this pause and another question?
    pub(crate) fn has_time_for(&self, pause_ms: u32) -> bool {
        self.link.has_time_for(pause_ms)
    }

    /// Raises the session from user, where it begins, to the privilege that switching needs.
    pub(crate) fn raise(&self, privilege: Privilege) -> Result<(), Failure> {
        let reply = self.ask(SET_PRIVILEGE, &[privilege.number()], Patience::Full);
        let reply = reply.map_err(|lost| lost.into_failure("set session privilege level"))?;
        if reply.completion == 0 {
            return Ok(());
        }
        Err(failures::privilege_refused(privilege, reply.completion))
    }

    /// One command and its response.
    pub(crate) fn ask(
        &self,
        command: Command,
        data: &[u8],
        patience: Patience,
    ) -> Result<Reply, Lost> {
        let pair = self.next_pair.get();
        self.next_pair.set(if pair >= message::PAIR_MAX { 1 } else { pair + 1 });
        let request = message::request(command, pair, data);
        let answered = self.link.exchange(
            patience,
            || self.seal_next(&request),
            |datagram| {
                let message = self.open_sealed(datagram)?;
                let response = message::response(&message)?;
                // Authentic, so it is an answer to what was asked before.
                if (response.command, response.pair) != (command, pair) {
                    return Err(Rejected::Late);
                }
                Ok(Reply { completion: response.completion, data: response.data.to_vec() })
            },
        )?;
        Ok(answered.value)
    }

    /// Ends the session; if the answer does not come, the host says it once more.
    pub(crate) fn close(&self) {
        let closed = self.ask(CLOSE, &self.bmc_sid.to_le_bytes(), Patience::Parting);
        if closed.is_ok() {
            self.withdraw_farewell();
        }
    }

    /// Says the close once, of a session that may stand on the BMC's side only; nothing waits for an answer.
    pub(crate) fn give_up(&self) -> Result<(), Failure> {
        let close = message::request(CLOSE, 0, &self.bmc_sid.to_le_bytes());
        self.link.send(&self.seal_next(&close)?)?;
        self.withdraw_farewell();
        Ok(())
    }

    /// The BMC holds no session (any more).
    pub(crate) fn withdraw_farewell(&self) {
        self.link.farewell(&[]);
    }

    /// Leaves the host a close that the BMC will still take a few packets from now.
    pub(crate) fn renew_farewell(&self) -> Result<(), Failure> {
        let seq = self.next_seq.get().wrapping_add(limits::FAREWELL_AHEAD);
        let close = message::request(CLOSE, 0, &self.bmc_sid.to_le_bytes());
        self.link.farewell(&self.seal(seq, &close)?);
        self.farewell_seq.set(seq);
        Ok(())
    }

    fn seal_next(&self, message: &[u8]) -> Result<Vec<u8>, Failure> {
        let seq = self.next_seq.get();
        if seq >= self.farewell_seq.get() {
            self.renew_farewell()?;
        }
        self.next_seq.set(seq.wrapping_add(1));
        self.seal(seq, message)
    }

    fn seal(&self, seq: u32, message: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut body = random(self.link.host()).to_vec();
        let padded = packet::pad(message);
        let blocks = self.confidentiality.encrypt(Cipher::AesCbc, &body, &padded);
        body.extend(blocks.map_err(not_used)?);
        let covered = packet::covered(self.bmc_sid, seq, &body);
        let code = self.code(&covered)?;
        Ok(packet::sealed(&covered, &code))
    }

    fn open_sealed(&self, datagram: &[u8]) -> Result<Vec<u8>, Rejected> {
        let sealed = match packet::parse(datagram)? {
            Packet::Sealed(sealed) => sealed,
            // What the questions of the set-up were answered with, once more.
            Packet::Plain { .. } => return Err(Rejected::Late),
        };
        if sealed.sid != self.console_sid {
            return Err(Rejected::Wrong(Wrong::Session));
        }
        self.check(&sealed)?;
        let (iv, blocks) =
            sealed.body.split_at_checked(packet::BLOCK).ok_or(Malformed::TooShort)?;
        if blocks.is_empty() || !blocks.len().is_multiple_of(packet::BLOCK) {
            return Err(Malformed::Length.into());
        }
        let plain = self.confidentiality.decrypt(Cipher::AesCbc, iv, blocks);
        let plain = plain.map_err(|refused| Rejected::Fatal(not_used(refused)))?;
        Ok(packet::unpad(&plain)?.to_vec())
    }

    /// Authentic, and newer than all before it.
    fn check(&self, sealed: &Sealed<'_>) -> Result<(), Rejected> {
        let (covered, found) = sealed.covered_and_code(self.suite.packet_code_length())?;
        let wanted = self.code(covered).map_err(Rejected::Fatal)?;
        if !same(&wanted, found) {
            return Err(Rejected::Wrong(Wrong::Code));
        }
        if sealed.seq <= self.heard_seq.get() {
            return Err(Rejected::Late);
        }
        self.heard_seq.set(sealed.seq);
        Ok(())
    }

    fn code(&self, covered: &[u8]) -> Result<Vec<u8>, Failure> {
        let length = u32::try_from(self.suite.packet_code_length()).unwrap_or(u32::MAX);
        self.integrity.mac(self.suite.hash(), covered, length).map_err(not_used)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
pub(crate) fn not_used(refused: Refused) -> Failure {
    let detail = format!("failed to use the credential: {refused}");
    Failure::new(FailureKind::Denied, detail)
}

/// Sixteen random bytes: a nonce, or an initialisation vector.
pub(crate) fn random<H: Host>(host: &H) -> [u8; 16] {
    let mut out = [0; 16];
    for (to, from) in out.iter_mut().zip(host.random(16)) {
        *to = from;
    }
    out
}

/// Compares codes in a time that does not depend on where they differ.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
