//! A call to the libvirt daemon and its answer: messages with a length, a header and a payload in XDR,
//! over TCP or TLS. Not here: what the calls mean.

use std::cell::Cell;

use node_remedy_sdk::{Connection, Failure, FailureKind, Host, NetError, Part};

use crate::limits;
use crate::refusal::{self, protocol};
use crate::xdr::{Reader, Writer};

/// The remote protocol of libvirtd, and its only version.
const PROGRAM: u32 = 0x2000_8086;
const VERSION: u32 = 1;
/// The length itself and the header after it.
const HEAD_BYTES: usize = 28;

/// A call of the remote protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Procedure {
    pub(crate) number: u32,
    /// What it does, for people: "failed to …".
    pub(crate) what: &'static str,
    /// How long its answer may take.
    pub(crate) time_ms: u64,
}

/// One whole message.
struct Message {
    program: u32,
    version: u32,
    procedure: u32,
    kind: u32,
    serial: u32,
    status: u32,
    payload: Vec<u8>,
}

/// How a message travels (`type` in its header).
const CALL: u32 = 0;
const REPLY: u32 = 1;
const UNASKED: u32 = 2;

/// How a call went (`status` in its header).
const OK: u32 = 0;
const ERROR: u32 = 1;

const WHICH_TRANSPORT: &str = "is it a libvirt daemon, and is the parameter transport right?";

/// A daemon, for one call of ours.
pub(crate) struct Link<'a, H: Host> {
    host: &'a H,
    connection: H::Connection,
    deadline_ms: u64,
    serial: Cell<u32>,
    /// Whether it has said anything.
    is_heard: Cell<bool>,
}

impl<'a, H: Host> Link<'a, H> {
    pub(crate) fn open(host: &'a H, endpoint: &str, deadline_ms: u32) -> Result<Self, Failure> {
        let connection = host.tcp(endpoint).map_err(|error| {
            let mut failure = error.into_failure("connect to the libvirt daemon");
            if error == NetError::Timeout {
                failure.kind = FailureKind::Unreachable;
            }
            if error == NetError::Closed {
                failure.detail = format!("{}; {WHICH_TRANSPORT}", failure.detail);
            }
            failure
        })?;
        let deadline_ms = u64::from(deadline_ms);
        let (serial, is_heard) = (Cell::new(0), Cell::new(false));
        Ok(Self { host, connection, deadline_ms, serial, is_heard })
    }

    pub(crate) fn host(&self) -> &'a H {
        self.host
    }

    /// Whether a pause and one more call fit into the deadline.
    pub(crate) fn has_time_for(&self, pause_ms: u32) -> bool {
        let then_ms = self.host.elapsed_ms() + u64::from(pause_ms) + limits::POLL_MS;
        then_ms + limits::LAST_WORDS_MS < self.deadline_ms
    }

    /// Has the host send this call when the connection ends.
    pub(crate) fn leave_with(&self, procedure: Procedure) {
        // No other message of the connection bears this serial.
        self.connection.farewell(&message(procedure, u32::MAX, &[]));
    }

    /// One byte, which is all that a daemon says of its own accord; none where it closed.
    pub(crate) fn greeting(&self) -> Result<Option<u8>, Failure> {
        let what = "hear whether the libvirt daemon lets us in";
        match self.connection.read(1, self.left_ms(self.until_ms(limits::ANSWER_MS))) {
            Ok(bytes) => Ok(bytes.first().copied()),
            // Daemons do not say good-bye inside TLS.
            Err(NetError::Closed) => Ok(None),
            Err(error) => Err(self.unanswered(what, error)),
        }
    }

    /// Calls and waits for the answer's payload.
    pub(crate) fn call(&self, procedure: Procedure, payload: &[u8]) -> Result<Vec<u8>, Failure> {
        let what = procedure.what;
        let serial = self.serial.get() + 1;
        self.serial.set(serial);
        let sent = message(procedure, serial, payload);
        let written = self.connection.write(&[Part::Bytes(&sent)]);
        written.map_err(|error| self.unanswered(what, error))?;
        let until_ms = self.until_ms(procedure.time_ms);
        for _ in 0..=limits::UNASKED_MAX {
            let answer = self.receive(what, until_ms)?;
            if answer.kind == UNASKED && answer.status == OK {
                continue;
            }
            check(what, &answer, procedure, serial)?;
            return match answer.status {
                OK => Ok(answer.payload),
                ERROR => Err(refusal::read(what, &answer.payload)),
                other => Err(protocol(what, &format!("an answer of status {other}"))),
            };
        }
        Err(protocol(what, &format!("more than {} messages of its own", limits::UNASKED_MAX)))
    }

    fn receive(&self, what: &str, until_ms: u64) -> Result<Message, Failure> {
        let head = self.take(what, HEAD_BYTES, until_ms)?;
        let mut reader = Reader::new(&head);
        let mut number = || reader.number().unwrap_or_default();
        let length = number();
        let (program, version, procedure) = (number(), number(), number());
        let (kind, serial, status) = (number(), number(), number());
        let payload = usize::try_from(length).ok().and_then(|it| it.checked_sub(HEAD_BYTES));
        let Some(payload) = payload.filter(|payload| *payload <= limits::MESSAGE_BYTES_MAX) else {
            return Err(protocol(what, &format!("a message of {length} bytes")));
        };
        let payload = self.take(what, payload, until_ms)?;
        Ok(Message { program, version, procedure, kind, serial, status, payload })
    }

    /// So many bytes, in whatever pieces they come.
    fn take(&self, what: &str, length: usize, until_ms: u64) -> Result<Vec<u8>, Failure> {
        let mut taken = Vec::with_capacity(length);
        while taken.len() < length {
            let wanted = (length - taken.len()).min(limits::READ_BYTES);
            let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
            let piece = match self.connection.read(wanted, self.left_ms(until_ms)) {
                Ok(piece) if piece.is_empty() => Err(NetError::Closed),
                piece => piece,
            };
            let piece = piece.map_err(|error| self.unanswered(what, error))?;
            self.is_heard.set(true);
            taken.extend(piece);
        }
        Ok(taken)
    }

    fn until_ms(&self, time_ms: u64) -> u64 {
        let last_ms = self.deadline_ms.saturating_sub(limits::LAST_WORDS_MS);
        self.host.elapsed_ms().saturating_add(time_ms).min(last_ms)
    }

    fn left_ms(&self, until_ms: u64) -> u32 {
        u32::try_from(until_ms.saturating_sub(self.host.elapsed_ms())).unwrap_or(u32::MAX)
    }

    fn unanswered(&self, what: &str, error: NetError) -> Failure {
        let mut failure = error.into_failure(what);
        if self.is_heard.get() {
            return failure;
        }
        let check = match error {
            NetError::Timeout => {
                failure.kind = FailureKind::Unreachable;
                "is a libvirt daemon at this address?"
            }
            NetError::Closed => WHICH_TRANSPORT,
            NetError::Tls => {
                "does it ask for a certificate of ours (tls_no_verify_certificate = 0)?"
            }
            NetError::Denied
            | NetError::Unreachable
            | NetError::Refused
            | NetError::TooLarge
            | NetError::Cancelled
            | NetError::Login
            | NetError::NotLeader
            | NetError::Other => return failure,
        };
        failure.detail = format!("{}; {check}", failure.detail);
        failure
    }
}

fn message(procedure: Procedure, serial: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEAD_BYTES + payload.len()).unwrap_or(u32::MAX);
    let head = Writer::default().number(length).number(PROGRAM).number(VERSION);
    head.number(procedure.number).number(CALL).number(serial).number(OK).fixed(payload).done()
}

/// Whether an answer is one, and to this call.
fn check(what: &str, answer: &Message, call: Procedure, serial: u32) -> Result<(), Failure> {
    let Message { program, version, .. } = *answer;
    if (program, version) != (PROGRAM, VERSION) {
        let found = format!("program {program:#010x} version {version}");
        return Err(protocol(what, &format!("{found}, which is not libvirt's")));
    }
    if answer.kind != REPLY {
        return Err(protocol(what, &format!("a message of type {}", answer.kind)));
    }
    if (answer.procedure, answer.serial) != (call.number, serial) {
        let found = format!("the answer to call {} of {}", answer.serial, answer.procedure);
        return Err(protocol(what, &format!("{found}, expected {serial} of {}", call.number)));
    }
    Ok(())
}
