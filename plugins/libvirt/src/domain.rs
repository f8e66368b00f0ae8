//! A domain, as libvirt calls a machine: how the right one is found, what its state means, what it
//! can be asked for. Not here: how calls travel.

use node_remedy_sdk::{Failure, FailureKind, Fields, Host, PlugState};

use crate::limits;
use crate::refusal::NO_DOMAIN;
use crate::refusal::protocol;
use crate::rpc::{Link, Procedure};
use crate::xdr::{Reader, Writer};

const fn reads(number: u32, what: &'static str) -> Procedure {
    Procedure { number, what, time_ms: limits::ANSWER_MS }
}

const fn changes(number: u32, what: &'static str) -> Procedure {
    Procedure { number, what, time_ms: limits::CHANGE_MS }
}

const LOOKUP_BY_NAME: Procedure = reads(23, "find the domain by its name");
const LOOKUP_BY_UUID: Procedure = reads(24, "find the domain by its UUID");
const GET_STATE: Procedure = reads(212, "read the state of the domain");
const HAS_MANAGED_SAVE: Procedure = reads(183, "look whether the domain's memory was saved");
const LIST: Procedure = reads(273, "list the domains");
const CREATE: Procedure = changes(9, "start the domain");
const DESTROY: Procedure = changes(12, "destroy the domain");
const CREATE_WITH_FLAGS: Procedure = changes(196, "start the domain from scratch");
const RESET: Procedure = changes(245, "reset the domain");

/// Memory that was saved is thrown away, and the machine boots.
const FORCE_BOOT: u32 = 8;
const NO_FLAGS: u32 = 0;
/// Why a domain is shut off (`virDomainShutoffReason`): nobody remembers, as of each that was off when
/// the daemon started.
const FORGOTTEN: u32 = 0;
/// It was shut down, destroyed, or crashed, here: it ran here, and does no more. Any other reason may stand
/// for a machine that came here or left, and runs elsewhere.
const ENDED_HERE: [u32; 3] = [1, 2, 3];
/// It went to another hypervisor.
const MIGRATED: u32 = 4;
/// Its memory was saved.
const SAVED: u32 = 5;
/// Why a domain is paused (`virDomainPausedReason`): it is coming or going, or did half of that.
const MIGRATING: [u32; 3] = [2, 12, 13];

/// A domain. It is spoken of by its UUID, whatever becomes of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Domain {
    pub(crate) name: String,
    uuid: [u8; 16],
    /// The number of a running one; it changes with each start.
    id: i32,
    /// It may have gone to another hypervisor.
    moves: bool,
}

/// What a domain is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Destroy,
    Start,
    Reset,
}

/// What a domain's state was read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    state: u32,
    reason: u32,
    moves: bool,
}

impl Domain {
    /// Finds the domain of this name or UUID.
    pub(crate) fn find<H: Host>(link: &Link<'_, H>, plug: &str) -> Result<Self, Failure> {
        if plug.is_empty() || plug.len() > limits::NAME_BYTES_MAX {
            let detail = "the plug names no domain; expected the name or UUID of one";
            return Err(Failure::new(FailureKind::NoSuchPlug, detail));
        }
        if let Some(uuid) = uuid_of(plug) {
            match link.call(LOOKUP_BY_UUID, &Writer::default().fixed(&uuid).done()) {
                // A name may look like a UUID.
                Err(failure) if failure.device_code == Some(NO_DOMAIN) => {}
                found => {
                    let found = Self::only(LOOKUP_BY_UUID, &found?)?;
                    return found.if_it(LOOKUP_BY_UUID, |domain| domain.uuid == uuid);
                }
            }
        }
        let found = link.call(LOOKUP_BY_NAME, &Writer::default().string(plug).done())?;
        Self::only(LOOKUP_BY_NAME, &found)?.if_it(LOOKUP_BY_NAME, |domain| domain.name == plug)
    }

    /// Every domain of the hypervisor, running or not.
    pub(crate) fn all<H: Host>(link: &Link<'_, H>) -> Result<Vec<Self>, Failure> {
        let asks_for_all = Writer::default().number(1).number(NO_FLAGS).done();
        let answer = link.call(LIST, &asks_for_all)?;
        let mut reader = Reader::new(&answer);
        let count = reader.number().and_then(|count| usize::try_from(count).ok());
        let Some(count) = count.filter(|count| *count <= limits::DOMAINS_MAX) else {
            let found =
                format!("more than {} domains, or none that can be read", limits::DOMAINS_MAX);
            return Err(protocol(LIST.what, &found));
        };
        let domains = (0..count).map(|_| Self::read(&mut reader)).collect::<Option<Vec<_>>>();
        domains.ok_or_else(|| truncated(LIST))
    }

    /// The same, where machines may be migrated or may not.
    pub(crate) fn moving(self, moves: bool) -> Self {
        Self { moves, ..self }
    }

    pub(crate) fn state<H: Host>(&self, link: &Link<'_, H>) -> Result<Read, Failure> {
        let answer = link.call(GET_STATE, &self.and_flags(NO_FLAGS))?;
        let mut reader = Reader::new(&answer);
        let (Some(state), Some(mut reason), true) =
            (reader.number(), reader.number(), reader.is_done())
        else {
            return Err(truncated(GET_STATE));
        };
        // What was saved is forgotten as the reason, and found by itself.
        if (state, reason, self.moves) == (5, FORGOTTEN, false) && self.has_saved_memory(link)? {
            reason = SAVED;
        }
        Ok(Read { state, reason, moves: self.moves })
    }

    /// What a change will call, so that all that can be asked before is asked before.
    pub(crate) fn prepare<H: Host>(
        &self,
        link: &Link<'_, H>,
        change: Change,
    ) -> Result<(Procedure, Vec<u8>), Failure> {
        if change.is_lasting()
            && let Some(why) = self.state(link)?.forbids(change)
        {
            return Err(Failure::new(
                FailureKind::Busy,
                format!("{} not sent: {why}", change.word()),
            ));
        }
        Ok(match change {
            Change::Destroy => (DESTROY, self.written().done()),
            Change::Reset => (RESET, self.and_flags(NO_FLAGS)),
            // Started with its old memory it would go on where it was, with all it was about to
            // write.
            Change::Start if self.has_saved_memory(link)? => {
                (CREATE_WITH_FLAGS, self.and_flags(FORCE_BOOT))
            }
            Change::Start => (CREATE, self.written().done()),
        })
    }

    /// What libvirt gives the machine as its UUID, as `dmidecode` shows it inside.
    pub(crate) fn identity(&self) -> Fields {
        if self.uuid == [0; 16] {
            return Fields::new();
        }
        let hex = format!("{:032x}", u128::from_be_bytes(self.uuid));
        let part = |from, to| hex.get(from..to).unwrap_or_default();
        let groups = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
        vec![("system-uuid".to_owned(), groups.join("-"))]
    }

    fn has_saved_memory<H: Host>(&self, link: &Link<'_, H>) -> Result<bool, Failure> {
        match link.call(HAS_MANAGED_SAVE, &self.and_flags(NO_FLAGS)) {
            Ok(answer) => {
                let mut reader = Reader::new(&answer);
                reader.number().map(|found| found != 0).ok_or_else(|| truncated(HAS_MANAGED_SAVE))
            }
            // A driver that saves none has none.
            Err(failure) if failure.kind == FailureKind::Unsupported => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    fn only(asked: Procedure, answer: &[u8]) -> Result<Self, Failure> {
        let mut reader = Reader::new(answer);
        Self::read(&mut reader).filter(|_| reader.is_done()).ok_or_else(|| truncated(asked))
    }

    fn if_it(self, asked: Procedure, is_it: impl Fn(&Self) -> bool) -> Result<Self, Failure> {
        if is_it(&self) {
            return Ok(self);
        }
        Err(protocol(asked.what, "another domain than the one that was asked for"))
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let name = reader.string(limits::NAME_BYTES_MAX)?;
        let uuid = reader.fixed()?;
        Some(Self { name, uuid, id: reader.signed()?, moves: true })
    }

    fn written(&self) -> Writer {
        let id = self.id.cast_unsigned();
        Writer::default().string(&self.name).fixed(&self.uuid).number(id)
    }

    fn and_flags(&self, flags: u32) -> Vec<u8> {
        self.written().number(flags).done()
    }
}

impl Change {
    pub(crate) fn leads_to(self) -> PlugState {
        match self {
            Self::Destroy => PlugState::Off,
            Self::Start | Self::Reset => PlugState::On,
        }
    }

    /// Whether a machine that is so already needs nothing.
    pub(crate) fn is_lasting(self) -> bool {
        self != Self::Reset
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Destroy => "destroy",
            Self::Start => "start",
            Self::Reset => "reset",
        }
    }
}

impl Read {
    /// `virDomainState`. A machine that stands still is not off: whoever wakes it has it write on.
    pub(crate) fn power(self) -> PlugState {
        match (self.state, self.reason) {
            // Running, or waiting for something: the word for it is Xen's.
            (1 | 2, _) => PlugState::On,
            (4, _) => PlugState::Transitioning,
            // It runs elsewhere, or may, or whoever wakes it has it write on.
            (5, MIGRATED | SAVED) => PlugState::Unknown,
            (5, reason) if self.moves && !ENDED_HERE.contains(&reason) => PlugState::Unknown,
            (5, _) => PlugState::Off,
            (_, _) => PlugState::Unknown,
        }
    }

    /// Why a machine that may run on another hypervisor is not destroyed or started here: what is destroyed may be an
    /// empty shell that reads off afterwards, and what is started would run twice.
    fn forbids(self, change: Change) -> Option<String> {
        let runs_elsewhere = match (self.state, self.reason) {
            (3, reason) => MIGRATING.contains(&reason),
            (5, MIGRATED) => true,
            // Started from scratch, without the memory.
            (5, SAVED) => false,
            (5, reason) => change == Change::Start && self.moves && !ENDED_HERE.contains(&reason),
            (_, _) => false,
        };
        runs_elsewhere.then(|| self.words())
    }

    /// The same for people.
    pub(crate) fn words(self) -> String {
        match (self.state, self.reason) {
            (1, _) => "the domain is running".to_owned(),
            (2, _) => "the domain is blocked".to_owned(),
            (3, reason) if MIGRATING.contains(&reason) => {
                "the domain is being migrated, and may run on another hypervisor".to_owned()
            }
            (3, _) => "the domain is paused, which is not off".to_owned(),
            (4, _) => "the domain is shutting down".to_owned(),
            (5, MIGRATED) => "the domain was migrated and runs on another hypervisor".to_owned(),
            (5, SAVED) => "the domain's memory was saved, which is not off".to_owned(),
            (5, FORGOTTEN) if self.moves => "the domain is shut off, and the libvirt daemon has forgotten \
                                             why: it may have been migrated and run on another \
                                             hypervisor. If it never is, say so with migration: never"
                .to_owned(),
            (5, reason) if self.moves && !ENDED_HERE.contains(&reason) => format!(
                "the domain is shut off for the reason {reason}, as after a migration that failed: it may run on \
                 another hypervisor. If it is never migrated, say so with migration: never"
            ),
            (5, _) => "the domain is shut off".to_owned(),
            (6, _) => "the domain has crashed, which is not off".to_owned(),
            (7, _) => "the domain sleeps, which is not off".to_owned(),
            (state, _) => format!("the domain is in state {state}, which nobody knows"),
        }
    }
}

fn truncated(asked: Procedure) -> Failure {
    protocol(asked.what, "an answer of another shape")
}

/// 32 hexadecimal digits, whatever stands between them.
fn uuid_of(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|letter| *letter != '-').collect();
    let is_hex = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_hex)?;
    Some(number.to_be_bytes())
}

/// Hexadecimal digits alike, whatever stands between them.
pub(crate) fn is_same_uuid(one: &str, other: &str) -> bool {
    uuid_of(one).is_some_and(|uuid| uuid_of(other) == Some(uuid))
}
