//! SNMPv3's user: the engine that the keys belong to, its clock, and messages sealed and opened with
//! keys that the host keeps (User-based Security Model, RFC 3414 and 7860).

use std::cell::{Ref, RefCell};

use node_remedy_sdk::{Extension, Failure, FailureKind, Hash, Host, Key, Secret};

use crate::codec::{AUTHENTICATED, Data, ENCRYPTED, Kind, Pdu, REPORTABLE, Scoped, Secured};
use crate::failures::not_used;
use crate::limits;
use crate::link::Rejected;
use crate::parameters::{Level, Parameters, Privacy};

/// Who speaks, and how it is protected.
pub(crate) struct User<H: Host> {
    name: String,
    level: Level,
    hash: Hash,
    protocol: Privacy,
    context: String,
    account: H::Secret,
    privacy: Option<H::Secret>,
    engine: RefCell<Option<Engine<H::Key>>>,
}

/// The agent's engine, as far as it is known.
struct Engine<K> {
    id: Vec<u8>,
    boots: u32,
    time: u32,
    learned_ms: u64,
    auth: Option<K>,
    privacy: Option<K>,
}

/// A message that could be opened.
pub(crate) struct Opened {
    pub(crate) pdu: Pdu,
    pub(crate) is_authentic: bool,
    pub(crate) engine: Vec<u8>,
    pub(crate) boots: u32,
    pub(crate) time: u32,
}

impl<H: Host> User<H> {
    pub(crate) fn open(host: &H, parameters: Parameters) -> Result<Self, Failure> {
        let account = host.open("account").map_err(|refused| not_used("account", &refused))?;
        let bad = |detail: &str| Failure::new(FailureKind::BadParameters, detail);
        let name = account.identity().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| bad("the credential account has no user name"))?;
        if name.len() > limits::NAME_BYTES_MAX {
            return Err(bad("the user name is longer than the 32 bytes that SNMPv3 has for it"));
        }
        let privacy = match parameters.level {
            Level::Open | Level::Authentic => None,
            Level::Private => {
                Some(host.open("privacy").map_err(|refused| not_used("privacy", &refused))?)
            }
        };
        let Parameters { level, hash, privacy: protocol, context, version: _ } = parameters;
        let engine = RefCell::default();
        Ok(Self { name, level, hash, protocol, context, account, privacy, engine })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.level == Level::Private
    }

    pub(crate) fn has_engine(&self) -> bool {
        self.engine.borrow().is_some()
    }

    /// The question that an agent answers with its engine id (RFC 3414, 4).
    pub(crate) fn discovery(id: i32) -> Secured {
        let pdu = Pdu { kind: Kind::Get, id, status: 0, index: 0, bindings: Vec::new() };
        Secured {
            id,
            flags: REPORTABLE,
            engine: Vec::new(),
            boots: 0,
            time: 0,
            user: Vec::new(),
            code: Vec::new(),
            salt: Vec::new(),
            data: Data::Scoped(Scoped { engine: Vec::new(), context: Vec::new(), pdu }),
        }
    }

    /// Believes that this is the agent's engine and clock. Keys are made for a new engine only: each
    /// costs the host some milliseconds.
    pub(crate) fn adopt(
        &self,
        id: &[u8],
        boots: u32,
        time: u32,
        learned_ms: u64,
    ) -> Result<(), Failure> {
        let mut known = self.engine.borrow_mut();
        if let Some(engine) = known.as_mut().filter(|engine| engine.id == id) {
            (engine.boots, engine.time, engine.learned_ms) = (boots, time, learned_ms);
            return Ok(());
        }
        let auth = match self.level {
            Level::Open => None,
            Level::Authentic | Level::Private => {
                let key =
                    self.account.usm_key(self.hash, id, Extension::None, key_length(self.hash));
                Some(key.map_err(|refused| not_used("account", &refused))?)
            }
        };
        let (extension, length) = self.protocol.key();
        let privacy = self.privacy.as_ref().map(|secret| {
            let key = secret.usm_key(self.hash, id, extension, length);
            key.map_err(|refused| not_used("privacy", &refused))
        });
        let privacy = privacy.transpose()?;
        *known = Some(Engine { id: id.to_vec(), boots, time, learned_ms, auth, privacy });
        Ok(())
    }

    /// Forgets the engine: it is asked for anew.
    pub(crate) fn forget(&self) {
        *self.engine.borrow_mut() = None;
    }

    /// The PDU as a message that the engine believes.
    pub(crate) fn seal(&self, host: &H, pdu: &Pdu) -> Result<Vec<u8>, Failure> {
        let engine = self.engine()?;
        let time = engine.time_at(host.elapsed_ms());
        let scoped = Scoped {
            engine: engine.id.clone(),
            context: self.context.clone().into_bytes(),
            pdu: pdu.clone(),
        };
        let (data, salt) = match &engine.privacy {
            None => (Data::Scoped(scoped), Vec::new()),
            Some(key) => self.encrypt(host, key, &engine, time, &scoped)?,
        };
        let mut message = Secured {
            id: pdu.id,
            flags: self.flags() | REPORTABLE,
            engine: engine.id.clone(),
            boots: engine.boots,
            time,
            user: self.name.clone().into_bytes(),
            code: Vec::new(),
            salt,
            data,
        };
        let encode = |message: &Secured| message.encode().map_err(|error| not_made(error.0));
        if let Some(key) = &engine.auth {
            // The code covers the message with zeros in its place (RFC 3414, 6.3.1).
            let length = code_length(self.hash);
            message.code = vec![0; usize::try_from(length).unwrap_or_default()];
            let code = key.mac(self.hash, &encode(&message)?, length);
            message.code = code.map_err(|refused| not_used("account", &refused))?;
        }
        encode(&message)
    }

    fn encrypt(
        &self,
        host: &H,
        key: &H::Key,
        engine: &Engine<H::Key>,
        time: u32,
        scoped: &Scoped,
    ) -> Result<(Data, Vec<u8>), Failure> {
        let mut plain = scoped.encode().map_err(|error| not_made(error.0))?;
        let random = host.random(8);
        let (salt, iv) = match self.protocol {
            Privacy::Des => {
                plain.resize(plain.len().next_multiple_of(8), 0);
                let drawn = random.get(..4).unwrap_or_default();
                let salt = [&engine.boots.to_be_bytes(), drawn].concat();
                (salt.clone(), salt)
            }
            Privacy::Aes128 | Privacy::Aes256 | Privacy::Aes256Cisco => {
                (random.clone(), aes_iv(engine.boots, time, &random))
            }
        };
        let sealed = key.encrypt(self.protocol.cipher(), &iv, &plain);
        let sealed = sealed.map_err(|refused| not_used("privacy", &refused))?;
        Ok((Data::Sealed(sealed), salt))
    }

    /// What a datagram says, if it is believed.
    pub(crate) fn open_message(
        &self,
        datagram: &[u8],
        now_ms: u64,
        is_ours: impl Fn(i32) -> Result<(), Rejected>,
    ) -> Result<Opened, Rejected> {
        let message = Secured::decode(datagram)?;
        is_ours(message.id)?;
        let is_authentic = message.flags & AUTHENTICATED != 0;
        if is_authentic {
            self.check(datagram, &message)?;
        }
        let scoped = match &message.data {
            Data::Scoped(_) if message.flags & ENCRYPTED != 0 => {
                return Err(Rejected::Wrong("it says that it is encrypted, and is not"));
            }
            Data::Scoped(scoped) => scoped.clone(),
            Data::Sealed(_) if !is_authentic => {
                return Err(Rejected::Wrong("it is encrypted and not authenticated"));
            }
            Data::Sealed(bytes) => self.decrypt(&message, bytes)?,
        };
        match scoped.pdu.kind {
            Kind::Report => {}
            Kind::Response => self.check_response(&message, &scoped, now_ms)?,
            Kind::Get | Kind::GetNext | Kind::Set => {
                return Err(Rejected::Wrong("it is a question, not an answer"));
            }
        }
        let Secured { engine, boots, time, .. } = message;
        Ok(Opened { pdu: scoped.pdu, is_authentic, engine, boots, time })
    }

    /// Its code is what only someone with our key can make.
    fn check(&self, datagram: &[u8], message: &Secured) -> Result<(), Rejected> {
        let engine = self.engine.borrow();
        let known = engine.as_ref().filter(|engine| engine.id == message.engine);
        let Some(key) = known.and_then(|engine| engine.auth.as_ref()) else {
            return Err(Rejected::Wrong("it comes from another engine"));
        };
        if message.user != self.name.as_bytes() {
            return Err(Rejected::Wrong("it is for another user"));
        }
        let length = code_length(self.hash);
        if u32::try_from(message.code.len()) != Ok(length) {
            return Err(Rejected::Wrong("its authentication code has another length"));
        }
        // The agent's own encoding counts, so its bytes are taken and the code in them blanked.
        let mut covered = datagram.to_vec();
        let mut places = datagram.windows(message.code.len()).enumerate();
        let places: Vec<_> =
            places.by_ref().filter(|(_, window)| *window == message.code.as_slice()).collect();
        let [(at, _)] = *places else {
            return Err(Rejected::Wrong("its authentication code stands in it twice"));
        };
        covered.iter_mut().skip(at).take(message.code.len()).for_each(|byte| *byte = 0);
        let wanted = key.mac(self.hash, &covered, length);
        let wanted = wanted.map_err(|refused| Rejected::Fatal(not_used("account", &refused)))?;
        if !same(&wanted, &message.code) {
            return Err(Rejected::Wrong("its authentication code is wrong"));
        }
        Ok(())
    }

    fn decrypt(&self, message: &Secured, bytes: &[u8]) -> Result<Scoped, Rejected> {
        let engine = self.engine.borrow();
        let Some(key) = engine.as_ref().and_then(|engine| engine.privacy.as_ref()) else {
            return Err(Rejected::Wrong("it is encrypted, and was not asked to be"));
        };
        if message.salt.len() != 8 {
            return Err(Rejected::Wrong("its salt is not eight bytes"));
        }
        let iv = match self.protocol {
            Privacy::Des if !bytes.len().is_multiple_of(8) => {
                return Err(Rejected::Wrong("what is encrypted is not whole blocks"));
            }
            Privacy::Des => message.salt.clone(),
            Privacy::Aes128 | Privacy::Aes256 | Privacy::Aes256Cisco => {
                aes_iv(message.boots, message.time, &message.salt)
            }
        };
        let plain = key.decrypt(self.protocol.cipher(), &iv, bytes);
        let plain = plain.map_err(|refused| Rejected::Fatal(not_used("privacy", &refused)))?;
        Ok(Scoped::decode(&plain)?)
    }

    /// As well protected as the question, and not an old one again (RFC 3414, 3.2.7).
    fn check_response(
        &self,
        message: &Secured,
        scoped: &Scoped,
        now_ms: u64,
    ) -> Result<(), Rejected> {
        if message.flags & (AUTHENTICATED | ENCRYPTED) != self.flags() {
            return Err(Rejected::Wrong("it is protected otherwise than the question"));
        }
        let engine = self.engine.borrow();
        let Some(engine) = engine.as_ref().filter(|engine| engine.id == message.engine) else {
            return Err(Rejected::Wrong("it comes from another engine"));
        };
        if scoped.context != self.context.as_bytes() {
            return Err(Rejected::Wrong("it is about another context"));
        }
        let is_old = message.boots < engine.boots
            || (message.boots == engine.boots
                && message.time.saturating_add(limits::TIME_WINDOW_S) < engine.time_at(now_ms));
        if engine.auth.is_some() && is_old {
            return Err(Rejected::Wrong("it is older than the agent's clock allows"));
        }
        Ok(())
    }

    fn flags(&self) -> u8 {
        match self.level {
            Level::Open => 0,
            Level::Authentic => AUTHENTICATED,
            Level::Private => AUTHENTICATED | ENCRYPTED,
        }
    }

    fn engine(&self) -> Result<Ref<'_, Engine<H::Key>>, Failure> {
        Ref::filter_map(self.engine.borrow(), Option::as_ref)
            .map_err(|_| Failure::new(FailureKind::Other, "the agent's engine is not known yet"))
    }
}

impl<K> Engine<K> {
    /// Its clock, which counts on from what it told.
    fn time_at(&self, now_ms: u64) -> u32 {
        let since_s = now_ms.saturating_sub(self.learned_ms) / 1_000;
        self.time.saturating_add(u32::try_from(since_s).unwrap_or(u32::MAX))
    }
}

fn not_made(why: &str) -> Failure {
    Failure::new(FailureKind::Other, format!("failed to make the message: {why}"))
}

/// RFC 3826, 3.1.2.1.
fn aes_iv(boots: u32, time: u32, salt: &[u8]) -> Vec<u8> {
    [&boots.to_be_bytes(), &time.to_be_bytes(), salt].concat()
}

/// How long a key of this hash is.
pub(crate) fn key_length(hash: Hash) -> u32 {
    match hash {
        Hash::Md5 => 16,
        Hash::Sha1 => 20,
        Hash::Sha224 => 28,
        Hash::Sha256 => 32,
        Hash::Sha384 => 48,
        Hash::Sha512 => 64,
    }
}

/// How long a message's code is (RFC 3414, 6 and 7; RFC 7860, 4).
pub(crate) fn code_length(hash: Hash) -> u32 {
    match hash {
        Hash::Md5 | Hash::Sha1 => 12,
        Hash::Sha224 => 16,
        Hash::Sha256 => 24,
        Hash::Sha384 => 32,
        Hash::Sha512 => 48,
    }
}

/// Compares codes in a time that does not depend on where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
