//! A libvirt daemon in memory: domains, their states, and what goes wrong with each call. Numbers and
//! shapes are those that libvirtd 9.0 was seen to use.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use node_remedy_plugin_libvirt::Libvirt;
use node_remedy_sdk::testing::faults::{Fault as Row, Sessions};
use node_remedy_sdk::testing::{Stream, StreamEvent, TestHost, Trace};
use node_remedy_sdk::{Action, Failure, FenceMethod, Outcome, Request};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 60_000;

pub(crate) const UUID_A: &str = "11111111-2222-3333-4444-5555555555aa";
pub(crate) const UUID_B: &str = "11111111-2222-3333-4444-5555555555bb";

pub(crate) const AUTH_LIST: u32 = 66;
pub(crate) const OPEN: u32 = 1;
pub(crate) const CLOSE: u32 = 2;
pub(crate) const CREATE: u32 = 9;
pub(crate) const DESTROY: u32 = 12;
pub(crate) const BY_NAME: u32 = 23;
pub(crate) const BY_UUID: u32 = 24;
pub(crate) const MANAGED_SAVE: u32 = 183;
pub(crate) const CREATE_WITH_FLAGS: u32 = 196;
pub(crate) const STATE: u32 = 212;
pub(crate) const RESET: u32 = 245;
pub(crate) const LIST: u32 = 273;

/// What is done to the answer of a call.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// There is none.
    Silent,
    /// The stream ends in its place.
    Close,
    /// It breaks in the middle.
    Midway,
    /// Its length is said to be this.
    Length(u32),
    /// One of the numbers of its head is this: 0 program, 1 version, 2 procedure, 3 type, 4 serial,
    /// 5 status.
    Head(usize, u32),
    /// Its payload is this.
    Payload(Vec<u8>),
    /// It is an error.
    Refuse(i32, &'static str),
    /// So many messages come before it.
    Unasked(usize),
    /// It comes byte by byte, so many milliseconds apart.
    Drip(u64),
    /// It is no message at all.
    Raw(&'static [u8]),
}

/// A machine of the hypervisor.
#[derive(Clone)]
pub(crate) struct Machine {
    name: String,
    uuid: String,
    pub(crate) state: u32,
    pub(crate) reason: u32,
    pub(crate) has_saved_memory: bool,
    /// What its state will be, and when.
    comes: Option<(u64, u32, u32)>,
}

/// The daemon.
#[derive(Default)]
pub(crate) struct Daemon {
    pub(crate) machines: Vec<Machine>,
    pub(crate) faults: BTreeMap<u32, Fault>,
    /// The first read of a state is a good one.
    pub(crate) fails_read_back: bool,
    /// Ways to log in that it offers; none: no way is needed.
    pub(crate) logins: Vec<u32>,
    /// What it says first, as daemons do inside TLS; nothing at all: the stream ends.
    pub(crate) greeting: Option<Vec<u8>>,
    /// How long after its yes a change shows.
    pub(crate) late_ms: u64,
    /// Says yes and does nothing.
    pub(crate) is_stuck: bool,
    /// Starts again by itself what it destroyed.
    pub(crate) flips_back: bool,
    /// It has ended the stream, and with it the session.
    pub(crate) has_hung_up: bool,
    /// Every call it heard, with the URI of those that open.
    pub(crate) calls: Vec<u32>,
    pub(crate) uris: Vec<String>,
    pub(crate) flags: Vec<u32>,
    /// Half a message.
    pub(crate) unread: Vec<u8>,
}

pub(crate) fn number(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

pub(crate) fn string(text: &str) -> Vec<u8> {
    let mut bytes = number(u32::try_from(text.len()).unwrap());
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn uuid_bytes(text: &str) -> Vec<u8> {
    u128::from_str_radix(&text.replace('-', ""), 16).unwrap().to_be_bytes().to_vec()
}

fn error(code: i32, said: &str) -> Vec<u8> {
    let head = [number(code.cast_unsigned()), number(10), number(1), string(said)].concat();
    // Level, no domain, three texts that are not there, two numbers, no network.
    [head, number(2), number(0), number(0), number(0), number(0), number(0), number(0), number(0)]
        .concat()
}

impl Machine {
    pub(crate) fn new(name: &str, uuid: &str, state: u32) -> Self {
        let (name, uuid) = (name.to_owned(), uuid.to_owned());
        Self { name, uuid, state, reason: 1, has_saved_memory: false, comes: None }
    }

    fn written(&self) -> Vec<u8> {
        [string(&self.name), uuid_bytes(&self.uuid), number(7)].concat()
    }
}

impl Daemon {
    /// With node-a, which runs, and node-b, which is shut off.
    pub(crate) fn with_two() -> Self {
        let machines = vec![Machine::new("node-a", UUID_A, 1), Machine::new("node-b", UUID_B, 5)];
        Self { machines, greeting: Some(vec![1]), ..Self::default() }
    }

    pub(crate) fn fault(mut self, call: u32, fault: Fault) -> Self {
        self.faults.insert(call, fault);
        self
    }

    /// With node-a in this state, for this reason.
    pub(crate) fn in_state(mut self, state: u32, reason: u32) -> Self {
        (self.machines[0].state, self.machines[0].reason) = (state, reason);
        self
    }

    /// Drivers that were opened and not closed.
    fn open_sessions(&self) -> usize {
        let closed = self.calls.iter().filter(|call| **call == CLOSE).count();
        if self.has_hung_up { 0 } else { self.uris.len().saturating_sub(closed) }
    }

    fn answer(&mut self, now_ms: u64, call: u32, payload: &[u8]) -> Result<Vec<u8>, Vec<u8>> {
        match call {
            AUTH_LIST => {
                let offered = if self.logins.is_empty() { vec![0] } else { self.logins.clone() };
                let count = number(u32::try_from(offered.len()).unwrap());
                return Ok([count, offered.into_iter().flat_map(number).collect()].concat());
            }
            OPEN => {
                assert_eq!(payload[..4], number(1));
                let length = u32::from_be_bytes(payload[4..8].try_into().unwrap()) as usize;
                self.uris.push(String::from_utf8(payload[8..8 + length].to_vec()).unwrap());
                return Ok(Vec::new());
            }
            CLOSE => return Ok(Vec::new()),
            LIST => {
                assert_eq!(payload, [number(1), number(0)].concat());
                let count = u32::try_from(self.machines.len()).unwrap();
                let machines = self.machines.iter().flat_map(Machine::written).collect();
                return Ok([number(count), machines, number(count)].concat());
            }
            _ => {}
        }
        let is_it = |machine: &&mut Machine| match call {
            BY_NAME => payload == string(&machine.name),
            BY_UUID => payload == uuid_bytes(&machine.uuid),
            _ => {
                let written = machine.written();
                let rest = payload.strip_prefix(written.as_slice());
                rest.is_some_and(|flags| flags.is_empty() || flags.len() == 4)
            }
        };
        let Some(machine) = self.machines.iter_mut().find(is_it) else {
            return Err(error(42, "Domain not found"));
        };
        if let Some((_, state, reason)) = machine.comes.take_if(|(at_ms, ..)| *at_ms <= now_ms) {
            (machine.state, machine.reason) = (state, reason);
        }
        let invalid = |said| Err(error(55, said));
        let late_ms = now_ms + self.late_ms;
        let mut comes = |state, reason| {
            machine.comes = (!self.is_stuck).then_some((late_ms, state, reason));
            Ok(Vec::new())
        };
        match call {
            BY_NAME | BY_UUID => Ok(machine.written()),
            STATE => Ok([number(machine.state), number(machine.reason)].concat()),
            MANAGED_SAVE => Ok(number(machine.has_saved_memory.into())),
            DESTROY | RESET if machine.state == 5 => invalid("domain is not running"),
            CREATE | CREATE_WITH_FLAGS if machine.state == 1 => invalid("domain is running"),
            DESTROY if self.flips_back => comes(1, 1),
            DESTROY => comes(5, 2),
            RESET => comes(1, 1),
            CREATE => comes(1, 1),
            CREATE_WITH_FLAGS => {
                let flags = payload.last_chunk().unwrap();
                self.flags.push(u32::from_be_bytes(*flags));
                comes(1, 1)
            }
            other => Err(error(39, &format!("unknown procedure: {other}"))),
        }
    }

    /// The answer as it goes over the wire.
    fn said(&mut self, now_ms: u64, message: &[u8]) -> Vec<(u64, StreamEvent)> {
        let number_at = |index: usize| {
            u32::from_be_bytes(message[index * 4..index * 4 + 4].try_into().unwrap())
        };
        assert_eq!(
            (number_at(1), number_at(2), number_at(4), number_at(6)),
            (0x2000_8086, 1, 0, 0)
        );
        let (call, serial) = (number_at(3), number_at(5));
        self.calls.push(call);
        let states = self.calls.iter().filter(|one| **one == STATE).count();
        let is_good = self.fails_read_back && call == STATE && states == 1;
        let fault = self.faults.get(&call).filter(|_| !is_good).cloned();
        let answer = match &fault {
            Some(Fault::Refuse(code, said)) => Err(error(*code, said)),
            Some(Fault::Payload(payload)) => Ok(payload.clone()),
            _ => self.answer(now_ms, call, &message[28..]),
        };
        let (status, payload) = match answer {
            Ok(payload) => (0, payload),
            Err(payload) => (1, payload),
        };
        let mut head = [0x2000_8086, 1, call, 1, serial, status];
        if let Some(Fault::Head(index, number)) = fault {
            head[index] = number;
        }
        let mut length = u32::try_from(28 + payload.len()).unwrap();
        if let Some(Fault::Length(wrong)) = fault {
            length = wrong;
        }
        let bytes = [number(length), head.into_iter().flat_map(number).collect(), payload].concat();
        let hangs_up = |fault| matches!(fault, &Fault::Close | &Fault::Midway | &Fault::Raw(_));
        self.has_hung_up |= fault.as_ref().is_some_and(hangs_up);
        match fault {
            Some(Fault::Silent) => Vec::new(),
            Some(Fault::Close) => vec![(5, StreamEvent::End)],
            Some(Fault::Midway) => {
                vec![
                    (5, StreamEvent::Bytes(bytes[..bytes.len() - 2].to_vec())),
                    (1, StreamEvent::Broken),
                ]
            }
            Some(Fault::Raw(raw)) => {
                vec![(5, StreamEvent::Bytes(raw.to_vec())), (1, StreamEvent::End)]
            }
            Some(Fault::Drip(ms)) => {
                let drops = bytes.iter().zip(1..);
                drops.map(|(byte, n)| (n * ms, StreamEvent::Bytes(vec![*byte]))).collect()
            }
            Some(Fault::Unasked(count)) => {
                let event = [28, 0x2000_8086, 1, 107, 2, 0, 0].into_iter().flat_map(number);
                let event: Vec<u8> = event.collect();
                vec![(5, StreamEvent::Bytes(event.repeat(count))), (5, StreamEvent::Bytes(bytes))]
            }
            Some(Fault::Length(_) | Fault::Head(..) | Fault::Payload(_) | Fault::Refuse(..))
            | None => vec![(5, StreamEvent::Bytes(bytes))],
        }
    }
}

impl Stream for Daemon {
    fn hear(&mut self, now_ms: u64, _: u64, data: &[u8]) -> Vec<(u64, StreamEvent)> {
        if data.is_empty() {
            return match &self.greeting {
                Some(bytes) if bytes.is_empty() => Vec::new(),
                Some(bytes) => vec![(3, StreamEvent::Bytes(bytes.clone()))],
                None => vec![(3, StreamEvent::End)],
            };
        }
        self.unread.extend(data);
        let mut said = Vec::new();
        while let Some(length) = self.unread.first_chunk().map(|head| u32::from_be_bytes(*head)) {
            let Some(message) = self.unread.get(..length as usize).map(<[u8]>::to_vec) else {
                break;
            };
            self.unread.drain(..message.len());
            said.extend(self.said(now_ms, &message));
        }
        said
    }
}

/// What a call came to.
pub(crate) struct Ended {
    pub(crate) result: Result<Outcome, Failure>,
    pub(crate) took_ms: u128,
    pub(crate) trace: Vec<Trace>,
    pub(crate) daemon: Rc<RefCell<Daemon>>,
}

impl Ended {
    /// As a row of the table of faults; the machine is on.
    pub(crate) fn fault<'a>(&'a self, name: &'a str) -> Row<'a> {
        let Self { result, took_ms, .. } = self;
        let (action, took_ms) = (Action::Off, *took_ms);
        let sessions = Sessions::Left(self.daemon.borrow().open_sessions());
        Row { name, action, result, took_ms, sessions, is_off: false }
    }

    /// The calls that may have changed something.
    pub(crate) fn changes(&self) -> Vec<u32> {
        let changes = [CREATE, CREATE_WITH_FLAGS, DESTROY, RESET];
        let daemon = self.daemon.borrow();
        daemon.calls.iter().copied().filter(|call| changes.contains(call)).collect()
    }
}

/// One call to a daemon, over TLS.
pub(crate) fn ask(daemon: Daemon, action: Action, plug: &str) -> Ended {
    let request = Request { plug: plug.to_owned(), ..Request::new(action, DEADLINE_MS) };
    ask_for(daemon, &request, |host| host)
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    daemon: Daemon,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended {
    let daemon = Rc::new(RefCell::new(daemon));
    let plain = TestHost::new(u64::from(request.deadline_ms)).stream("tls", daemon.clone());
    let host = host(plain);
    let result = Libvirt.run(request, &host);
    Ended { result, took_ms: host.elapsed().as_millis(), trace: host.trace(), daemon }
}
