//! How a session is set up: open session, then RAKP 1 to 4.

use super::sessions::{Exchange, Live, Opening, Stage};
use super::{crypto, wire};
use crate::bmc::config::{Privilege, Suite};
use crate::bmc::state::Bmc;

const NO_RESOURCES: u8 = 0x01;
const BAD_SID: u8 = 0x02;
const BAD_ROLE: u8 = 0x09;
const BAD_NAME: u8 = 0x0d;
const BAD_INTEGRITY: u8 = 0x0f;
const NO_SUITE: u8 = 0x11;
const ILLEGAL_PARAMETER: u8 = 0x12;

/// Set in the role byte: look the user up by name, whatever the privilege.
const NAME_ONLY: u8 = 0x10;

impl Suite {
    /// The numbers of its three algorithms: authentication, integrity, confidentiality.
    pub(super) fn algorithms(self) -> [u8; 3] {
        match self {
            Self::Sha1 => [1, 1, 1],
            Self::Sha256 => [3, 4, 1],
        }
    }

    /// Its number in the list of suites.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Sha1 => 3,
            Self::Sha256 => 17,
        }
    }
}

impl Privilege {
    pub(super) fn number(self) -> u8 {
        match self {
            Self::User => 2,
            Self::Operator => 3,
            Self::Administrator => 4,
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        match number {
            2 => Some(Self::User),
            3 => Some(Self::Operator),
            4 => Some(Self::Administrator),
            _ => None,
        }
    }
}

impl Bmc {
    pub(super) fn open_session(&mut self, peer: u64, body: &[u8]) -> Option<Vec<u8>> {
        let (&tag, &asked) = (body.first()?, body.get(1)?);
        let remote_sid = le_u32(body, 4)?;
        match self.admit(peer, remote_sid, body) {
            Ok((sid, suite)) => {
                // Privilege 0 asks for the highest there is.
                let granted = match asked & 0xf {
                    0 => 4,
                    asked => asked,
                };
                let mut out = vec![0, granted, 0];
                out.extend(remote_sid.to_le_bytes());
                out.extend(sid.to_le_bytes());
                for (kind, algorithm) in (0..).zip(suite.algorithms()) {
                    out.extend([kind, 0, 0, 8, algorithm, 0, 0, 0]);
                }
                self.set_up(wire::KIND_OPEN_REPLY, tag, &out)
            }
            Err(status) => {
                let mut out = vec![status, 0, 0];
                out.extend(remote_sid.to_le_bytes());
                self.set_up(wire::KIND_OPEN_REPLY, tag, &out)
            }
        }
    }

    fn admit(&mut self, peer: u64, remote_sid: u32, body: &[u8]) -> Result<(u32, Suite), u8> {
        if let Some(status) = self.faults.open_status {
            return Err(status);
        }
        let algorithm = |at: usize| body.get(at).copied().ok_or(ILLEGAL_PARAMETER);
        let asked = [algorithm(12)?, algorithm(20)?, algorithm(28)?];
        let offered = self.offered_suites();
        let suite = offered.iter().copied().find(|suite| suite.algorithms() == asked);
        let suite = suite.ok_or(NO_SUITE)?;
        let opening = Opening { peer, remote_sid, suite, now_ms: self.now_ms };
        let sid = self.sessions.open(&opening).ok_or(NO_RESOURCES)?;
        Ok((sid, suite))
    }

    /// The suites a session can be opened with; never the one that authenticates nobody.
    fn offered_suites(&self) -> Vec<Suite> {
        if self.faults.only_suite_zero { Vec::new() } else { self.config.suites.clone() }
    }

    pub(super) fn rakp_1(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        let &tag = body.first()?;
        let sid = le_u32(body, 4)?;
        let guid = self.guid();
        let our_random = self.random.bytes();
        let bad_code = self.faults.bad_rakp2;
        // A session that is up keeps its keys: RAKP 1 cannot start it over.
        let pending = self.sessions.find(sid).filter(|s| !matches!(s.stage, Stage::Up { .. }));
        let Some((remote_sid, suite)) = pending.map(|s| (s.remote_sid, s.suite)) else {
            return self.refuse(wire::KIND_RAKP_2, tag, BAD_SID, 0);
        };
        let exchange = match self.exchange(suite, body, our_random) {
            Ok(exchange) => exchange,
            Err(status) => {
                self.sessions.close(sid);
                return self.refuse(wire::KIND_RAKP_2, tag, status, remote_sid);
            }
        };
        let mut code = crypto::mac(
            suite,
            &exchange.kuid,
            &[
                &remote_sid.to_le_bytes(),
                &sid.to_le_bytes(),
                &exchange.console_random,
                &our_random,
                &guid,
                &who(&exchange),
            ],
        );
        if bad_code {
            code.fill(0);
        }
        let session = self.sessions.find(sid)?;
        session.stage = Stage::Keyed(exchange);
        let mut out = vec![0, 0, 0];
        out.extend(remote_sid.to_le_bytes());
        out.extend(our_random);
        out.extend(guid);
        out.extend(code);
        self.set_up(wire::KIND_RAKP_2, tag, &out)
    }

    fn exchange(&self, suite: Suite, body: &[u8], our_random: [u8; 16]) -> Result<Exchange, u8> {
        if let Some(status) = self.faults.rakp2_status {
            return Err(status);
        }
        let field = |range: std::ops::Range<usize>| body.get(range).ok_or(ILLEGAL_PARAMETER);
        let mut console_random = [0; 16];
        console_random.copy_from_slice(field(8..24)?);
        let [role, _, _, name_length] = field(24..28)? else { return Err(ILLEGAL_PARAMETER) };
        let name = field(28..28 + usize::from(*name_length))?.to_vec();
        let asked = Privilege::from_number(role & 0xf).ok_or(BAD_ROLE)?;
        let mut named = self.config.users.iter().filter(|user| user.name.as_bytes() == name);
        let user = if role & NAME_ONLY == 0 {
            named.find(|user| user.privilege == asked)
        } else {
            named.next()
        };
        let user = user.ok_or(BAD_NAME)?;
        if asked > user.privilege {
            return Err(BAD_ROLE);
        }
        let key = self.config.kg.as_ref().unwrap_or(&user.password);
        let length = [*role, *name_length];
        let sik = crypto::mac(suite, key, &[&console_random, &our_random, &length, &name]);
        Ok(Exchange {
            user: user.name.clone(),
            kuid: user.password.clone(),
            sik,
            role: *role,
            name,
            console_random,
            our_random,
        })
    }

    pub(super) fn rakp_3(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        let [tag, status, ..] = *body else { return None };
        let sid = le_u32(body, 4)?;
        let code = body.get(8..).unwrap_or_default();
        let Some(session) = self.sessions.find(sid) else {
            return self.refuse(wire::KIND_RAKP_4, tag, BAD_SID, 0);
        };
        if status != 0 {
            // The console did not believe us: that is the end of it, without an answer.
            self.sessions.close(sid);
            return None;
        }
        let (suite, remote_sid) = (session.suite, session.remote_sid);
        let exchange = match &session.stage {
            Stage::Opened => return self.refuse(wire::KIND_RAKP_4, tag, BAD_SID, remote_sid),
            Stage::Up { .. } if self.faults.strict_rakp3 => return None,
            Stage::Keyed(exchange) | Stage::Up { exchange, .. } => exchange.clone(),
        };
        let wanted = crypto::mac(
            suite,
            &exchange.kuid,
            &[&exchange.our_random, &remote_sid.to_le_bytes(), &who(&exchange)],
        );
        let refusal = self.faults.rakp4_status.or((wanted != code).then_some(BAD_INTEGRITY));
        if let Some(status) = refusal {
            self.sessions.close(sid);
            return self.refuse(wire::KIND_RAKP_4, tag, status, remote_sid);
        }
        self.bring_up(sid, suite, &exchange);
        if self.faults.lose_rakp4 > 0 {
            self.faults.lose_rakp4 -= 1;
            return None;
        }
        let mut check = crypto::mac(
            suite,
            &exchange.sik,
            &[&exchange.console_random, &sid.to_le_bytes(), &self.guid()],
        );
        check.truncate(super::sessions::code_length(suite));
        if self.faults.bad_rakp4 {
            check.fill(0);
        }
        if self.faults.kill_session {
            self.sessions.close(sid);
        }
        let mut out = vec![0, 0, 0];
        out.extend(remote_sid.to_le_bytes());
        out.extend(check);
        self.set_up(wire::KIND_RAKP_4, tag, &out)
    }

    fn bring_up(&mut self, sid: u32, suite: Suite, exchange: &Exchange) {
        let now_ms = self.now_ms;
        let Some(session) = self.sessions.find(sid) else { return };
        session.used_ms = now_ms;
        if matches!(session.stage, Stage::Keyed(_)) {
            let most = Privilege::from_number(exchange.role & 0xf).unwrap_or(Privilege::User);
            let live = Live::new(suite, &exchange.sik, most);
            session.stage = Stage::Up { exchange: exchange.clone(), live };
        }
    }

    fn refuse(&self, kind: u8, tag: u8, status: u8, remote_sid: u32) -> Option<Vec<u8>> {
        let mut out = vec![status, 0, 0];
        out.extend(remote_sid.to_le_bytes());
        self.set_up(kind, tag, &out)
    }

    fn set_up(&self, kind: u8, tag: u8, rest: &[u8]) -> Option<Vec<u8>> {
        let mut body = vec![tag ^ if self.faults.bad_tag { 0x55 } else { 0 }];
        body.extend(rest);
        wire::plain(kind, &body)
    }
}

/// Role, length and name, as every code covers them.
fn who(exchange: &Exchange) -> Vec<u8> {
    let mut out = vec![exchange.role, u8::try_from(exchange.name.len()).unwrap_or(u8::MAX)];
    out.extend(&exchange.name);
    out
}

fn le_u32(body: &[u8], at: usize) -> Option<u32> {
    let (bytes, _) = body.get(at..)?.split_first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}
