//! An SNMP agent in memory, for native tests of a plugin: communities and users, access rules, and
//! what goes wrong with agents and with what is behind them. It answers as net-snmp's agent was seen to.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

use node_remedy_sdk::testing::{Device, TestHost, TestKey, TestSecret};
use node_remedy_sdk::{Cipher, Extension, Hash, Host, Key, Refused, Secret};

use crate::codec::{AUTHENTICATED, Data, ENCRYPTED, Kind, Oid, Pdu, Plain, Scoped, Secured, Value};
use crate::user::{code_length, key_length};

/// What a written number does: changes, and when; `None` where the device does not take it.
pub type Rule = Box<dyn Fn(i64) -> Option<Vec<Change>>>;

/// A change of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// After so long.
    pub after_ms: u64,
    /// Of which object.
    pub oid: Oid,
    /// To what.
    pub to: i64,
}

/// What goes wrong.
#[derive(Default)]
pub struct Faults {
    /// Says yes to each SET, and nothing happens.
    pub is_stuck: bool,
    /// Changes come so much later.
    pub late_ms: u64,
    /// What was changed changes back after so long.
    pub back_after_ms: Option<u64>,
    /// Answers so many questions, and then no more.
    pub falls_silent_after: Option<u32>,
    /// Answers no SET.
    pub is_silent_to_sets: bool,
    /// Answers each GET and GET-NEXT with this error-status.
    pub get_status: Option<u32>,
    /// Answers each SET with this error-status.
    pub set_status: Option<u32>,
    /// Its answers carry another request-id.
    pub has_wrong_ids: bool,
    /// Its answers are about another object.
    pub has_wrong_oids: bool,
    /// GET-NEXT goes on for ever.
    pub is_endless: bool,
    /// The clock it tells unasked is not the one it believes in.
    pub has_wrong_clock: bool,
    /// Reports this counter of `1.3.6.1.6.3.15.1.1` in answer to every question of a user.
    pub reports: Option<u32>,
    /// What becomes of its answers on the way.
    pub mangle: Option<fn(Vec<u8>) -> Vec<u8>>,
}

/// A user of SNMPv3.
pub struct Account {
    /// How it authenticates: hash and password.
    pub auth: Option<(Hash, &'static str)>,
    /// How it encrypts: cipher, extension, length of the key, password.
    pub privacy: Option<(Cipher, Extension, u32, &'static str)>,
    /// Whether it may write.
    pub may_write: bool,
}

/// The agent.
pub struct Agent {
    /// What it has.
    pub objects: BTreeMap<Oid, Value>,
    rules: BTreeMap<Oid, Rule>,
    accounts: BTreeMap<String, (Account, Option<TestKey>, Option<TestKey>)>,
    pending: Vec<(u64, Oid, i64)>,
    /// What was written and taken, in order.
    pub written: Vec<(Oid, i64)>,
    /// What goes wrong.
    pub faults: Faults,
    /// How long each answer takes.
    pub takes_ms: u64,
    engine: Vec<u8>,
    boots: u32,
    answered: u32,
}

const USM_STATS: [u32; 9] = [1, 3, 6, 1, 6, 3, 15, 1, 1];
/// Seconds that the agent was up when the call began.
const UP_S: u32 = 1_000;

impl Default for Agent {
    fn default() -> Self {
        Self::new()
    }
}

impl Agent {
    /// With communities `public` (reads) and `private` (writes), and no objects.
    pub fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            rules: BTreeMap::new(),
            accounts: BTreeMap::new(),
            pending: Vec::new(),
            written: Vec::new(),
            faults: Faults::default(),
            takes_ms: 20,
            engine: b"\x80\x00\x1f\x88\x80agent".to_vec(),
            boots: 3,
            answered: 0,
        }
    }

    /// With one more object.
    pub fn put(&mut self, oid: &[u32], value: Value) {
        self.objects.insert(oid.to_vec(), value);
    }

    /// With one more number.
    pub fn put_number(&mut self, oid: &[u32], number: i64) {
        self.put(oid, Value::Integer(number));
    }

    /// With one more text.
    pub fn put_text(&mut self, oid: &[u32], text: &str) {
        self.put(oid, Value::Text(text.as_bytes().to_vec()));
    }

    /// A number that can be written.
    pub fn put_rule(&mut self, oid: &[u32], rule: Rule) {
        self.rules.insert(oid.to_vec(), rule);
    }

    /// A user of SNMPv3.
    pub fn put_account(&mut self, name: &str, account: Account) {
        let secret = |password: &str| -> Result<TestSecret, Refused> {
            TestHost::new(1).credential("it", None, password.as_bytes()).open("it")
        };
        let auth = account.auth.and_then(|(hash, password)| {
            secret(password)
                .and_then(|it| it.usm_key(hash, &self.engine, Extension::None, key_length(hash)))
                .ok()
        });
        let privacy = account.privacy.and_then(|(_, extension, length, password)| {
            let (hash, _) = account.auth?;
            let key =
                secret(password).and_then(|it| it.usm_key(hash, &self.engine, extension, length));
            key.ok()
        });
        self.accounts.insert(name.to_owned(), (account, auth, privacy));
    }

    /// What stands there now, as the device itself would say.
    pub fn truth(&mut self, now_ms: u64, oid: &[u32]) -> Option<i64> {
        self.let_time_pass(now_ms);
        match self.objects.get(oid) {
            Some(Value::Integer(number)) => Some(*number),
            Some(_) | None => None,
        }
    }

    /// The same, with something wrong.
    #[must_use]
    pub fn faulty(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// As what a [`TestHost`] has behind its endpoint.
    pub fn shared(self) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(self))
    }

    fn let_time_pass(&mut self, now_ms: u64) {
        self.pending.sort();
        let due = self.pending.iter().take_while(|(at_ms, _, _)| *at_ms <= now_ms).count();
        for (_, oid, to) in self.pending.drain(..due) {
            self.objects.insert(oid, Value::Integer(to));
        }
    }

    fn answer(&mut self, now_ms: u64, pdu: &Pdu, is_v1: bool, may_write: bool) -> Option<Pdu> {
        let mut answer = Pdu { kind: Kind::Response, ..pdu.clone() };
        if self.faults.has_wrong_ids {
            answer.id ^= 0x0f00;
        }
        let asked = match pdu.kind {
            Kind::Get | Kind::GetNext => self.faults.get_status,
            Kind::Set if self.faults.is_silent_to_sets => return None,
            Kind::Set => self.faults.set_status,
            Kind::Response | Kind::Report => return None,
        };
        if let Some(status) = asked {
            (answer.status, answer.index) = (status, 1);
            return Some(answer);
        }
        for (place, (oid, value)) in pdu.bindings.iter().enumerate() {
            let done = match pdu.kind {
                Kind::GetNext => Ok(self.next(oid)),
                Kind::Set if !may_write => Err(if is_v1 { 2 } else { 6 }),
                Kind::Set => self.check(oid, value, is_v1).map(|()| (oid.clone(), value.clone())),
                Kind::Get | Kind::Response | Kind::Report => Ok((oid.clone(), self.at(oid))),
            };
            let done = match done {
                Ok((_, Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMib)) if is_v1 => {
                    Err(2)
                }
                done => done,
            };
            match done {
                Ok(binding) => {
                    if let Some(slot) = answer.bindings.get_mut(place) {
                        *slot = binding;
                    }
                }
                Err(status) => {
                    answer.status = status;
                    answer.index = u32::try_from(place + 1).unwrap_or_default();
                    answer.bindings.clone_from(&pdu.bindings);
                    return Some(answer);
                }
            }
        }
        if pdu.kind == Kind::Set {
            self.write(now_ms, &pdu.bindings);
        }
        if self.faults.has_wrong_oids {
            answer.bindings.iter_mut().for_each(|(oid, _)| oid.push(7));
        }
        Some(answer)
    }

    fn at(&self, oid: &[u32]) -> Value {
        let Some(value) = self.objects.get(oid) else {
            let column = oid.split_last().map_or(oid, |(_, column)| column);
            let has_others = self.objects.keys().any(|other| other.starts_with(column));
            return if has_others { Value::NoSuchInstance } else { Value::NoSuchObject };
        };
        value.clone()
    }

    fn next(&self, oid: &[u32]) -> (Oid, Value) {
        if self.faults.is_endless {
            let mut next = oid.to_vec();
            match next.last_mut().filter(|_| oid.len() > 14) {
                Some(last) => *last += 1,
                None => next.push(1),
            }
            return (next, Value::Integer(1));
        }
        let mut later = self.objects.range((Bound::Excluded(oid.to_vec()), Bound::Unbounded));
        match later.next() {
            Some((oid, value)) => (oid.clone(), value.clone()),
            None => (oid.to_vec(), Value::EndOfMib),
        }
    }

    fn check(&self, oid: &[u32], value: &Value, is_v1: bool) -> Result<(), u32> {
        let Some(rule) = self.rules.get(oid) else { return Err(if is_v1 { 2 } else { 17 }) };
        let Value::Integer(number) = value else { return Err(if is_v1 { 3 } else { 7 }) };
        rule(*number).map(|_| ()).ok_or(if is_v1 { 3 } else { 10 })
    }

    fn write(&mut self, now_ms: u64, bindings: &[(Oid, Value)]) {
        for (oid, value) in bindings {
            let Value::Integer(number) = value else { continue };
            self.written.push((oid.clone(), *number));
            let changes = self.rules.get(oid).and_then(|rule| rule(*number)).unwrap_or_default();
            for Change { after_ms, oid, to } in
                changes.into_iter().filter(|_| !self.faults.is_stuck)
            {
                let at_ms = now_ms + after_ms + self.faults.late_ms;
                if let (Some(back_ms), Some(Value::Integer(was))) =
                    (self.faults.back_after_ms, self.objects.get(&oid))
                {
                    self.pending.push((at_ms + back_ms, oid.clone(), *was));
                }
                self.pending.push((at_ms, oid, to));
            }
        }
        self.let_time_pass(now_ms);
    }

    fn plain(&mut self, now_ms: u64, message: Plain) -> Option<Vec<u8>> {
        let may_write = match message.community.as_slice() {
            b"public" => false,
            b"private" => true,
            _ => return None,
        };
        let pdu = self.answer(now_ms, &message.pdu, message.version == 0, may_write)?;
        Plain { pdu, ..message }.encode().ok()
    }

    fn secured(&mut self, now_ms: u64, datagram: &[u8], message: &Secured) -> Option<Vec<u8>> {
        if message.engine != self.engine {
            return self.report(now_ms, message, 4, None);
        }
        let user = String::from_utf8_lossy(&message.user).into_owned();
        if !self.accounts.contains_key(&user) {
            return self.report(now_ms, message, 3, None);
        }
        let (account, auth, privacy) = self.accounts.get(&user)?;
        let (needs_auth, needs_privacy) =
            (message.flags & AUTHENTICATED != 0, message.flags & ENCRYPTED != 0);
        if (needs_auth && auth.is_none()) || (needs_privacy && privacy.is_none()) {
            return self.report(now_ms, message, 1, None);
        }
        if let Some(counter) = self.faults.reports {
            return self.report(now_ms, message, counter, None);
        }
        if let (true, Some((hash, _)), Some(key)) = (needs_auth, account.auth, auth) {
            let at = datagram.windows(message.code.len()).position(|some| some == message.code)?;
            let mut covered = datagram.to_vec();
            covered.iter_mut().skip(at).take(message.code.len()).for_each(|byte| *byte = 0);
            if key.mac(hash, &covered, code_length(hash)).ok()? != message.code {
                return self.report(now_ms, message, 5, None);
            }
            let time = time(now_ms);
            if message.boots != self.boots || message.time.abs_diff(time) > 150 {
                return self.report(now_ms, message, 2, Some(&user));
            }
        }
        let scoped = match &message.data {
            Data::Scoped(scoped) => scoped.clone(),
            Data::Sealed(bytes) => {
                let (cipher, _, _, _) = account.privacy?;
                let iv = iv(cipher, message.boots, message.time, &message.salt);
                // As net-snmp does: what does not decrypt is not answered.
                Scoped::decode(&privacy.as_ref()?.decrypt(cipher, &iv, bytes).ok()?).ok()?
            }
        };
        let may_write = account.may_write;
        let is_weak = account.privacy.is_some() && !needs_privacy;
        let pdu = if is_weak {
            Pdu { kind: Kind::Response, status: 16, ..scoped.pdu }
        } else {
            self.answer(now_ms, &scoped.pdu, false, may_write)?
        };
        let flags = message.flags & (AUTHENTICATED | ENCRYPTED);
        let scoped = Scoped { pdu, ..scoped };
        self.seal(now_ms, message, flags, &scoped, Some(&user))
    }

    fn report(
        &self,
        now_ms: u64,
        to: &Secured,
        counter: u32,
        user: Option<&str>,
    ) -> Option<Vec<u8>> {
        let oid = [&USM_STATS[..], &[counter, 0]].concat();
        let pdu = Pdu {
            kind: Kind::Report,
            id: 0,
            status: 0,
            index: 0,
            bindings: vec![(oid, Value::Unsigned(1))],
        };
        let scoped = Scoped { engine: self.engine.clone(), context: Vec::new(), pdu };
        let flags = if user.is_some() { AUTHENTICATED } else { 0 };
        self.seal(now_ms, to, flags, &scoped, user)
    }

    fn seal(
        &self,
        now_ms: u64,
        to: &Secured,
        flags: u8,
        scoped: &Scoped,
        user: Option<&str>,
    ) -> Option<Vec<u8>> {
        let is_wrong = self.faults.has_wrong_clock && user.is_none();
        let boots = if is_wrong { self.boots - 1 } else { self.boots };
        let mut message = Secured {
            id: if self.faults.has_wrong_ids { to.id ^ 0x0f00 } else { to.id },
            flags,
            engine: self.engine.clone(),
            boots,
            time: time(now_ms),
            user: to.user.clone(),
            code: Vec::new(),
            salt: Vec::new(),
            data: Data::Scoped(scoped.clone()),
        };
        let found = user.and_then(|user| self.accounts.get(user));
        if flags & ENCRYPTED != 0 {
            let (account, _, key) = found?;
            let (cipher, _, _, _) = account.privacy?;
            message.salt = vec![1, 2, 3, 4, 5, 6, 7, 8];
            let mut plain = scoped.encode().ok()?;
            if cipher == Cipher::DesCbc {
                plain.resize(plain.len().next_multiple_of(8), 0);
            }
            let iv = iv(cipher, message.boots, message.time, &message.salt);
            message.data = Data::Sealed(key.as_ref()?.encrypt(cipher, &iv, &plain).ok()?);
        }
        if flags & AUTHENTICATED != 0 {
            let (account, key, _) = found?;
            let (hash, _) = account.auth?;
            message.code = vec![0; usize::try_from(code_length(hash)).ok()?];
            let covered = message.encode().ok()?;
            message.code = key.as_ref()?.mac(hash, &covered, code_length(hash)).ok()?;
        }
        message.encode().ok()
    }
}

impl Device for Agent {
    fn datagram(&mut self, now_ms: u64, _: u64, data: &[u8]) -> Vec<(u64, Vec<u8>)> {
        self.let_time_pass(now_ms);
        if self.faults.falls_silent_after.is_some_and(|most| self.answered >= most) {
            return Vec::new();
        }
        let answer = match (Plain::decode(data), Secured::decode(data)) {
            (Ok(message), _) => self.plain(now_ms, message),
            (Err(_), Ok(message)) => self.secured(now_ms, data, &message),
            (Err(_), Err(_)) => None,
        };
        let Some(answer) = answer else { return Vec::new() };
        self.answered += 1;
        let answer = self.faults.mangle.map_or(answer.clone(), |mangle| mangle(answer));
        vec![(self.takes_ms, answer)]
    }
}

/// The agent's clock.
fn time(now_ms: u64) -> u32 {
    UP_S.saturating_add(u32::try_from(now_ms / 1_000).unwrap_or(u32::MAX))
}

fn iv(cipher: Cipher, boots: u32, time: u32, salt: &[u8]) -> Vec<u8> {
    match cipher {
        Cipher::DesCbc => salt.to_vec(),
        Cipher::AesCbc | Cipher::AesCfb128 => {
            [&boots.to_be_bytes(), &time.to_be_bytes(), salt].concat()
        }
    }
}
