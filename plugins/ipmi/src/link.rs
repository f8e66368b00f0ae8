//! Asking and being answered over datagrams: send, wait, send again, a bounded number of times, and
//! look at what arrives until something is the answer. What is not the answer is dropped, and
//! remembered: silence and wrong answers are different failures.

use std::cell::Cell;
use std::fmt;

use node_remedy_sdk::{Datagram, Failure, FailureKind, Host, NetError};

use crate::codec::Malformed;
use crate::limits;

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// All the sends there are.
    Full,
    /// Two: for what would be nice to know.
    Brief,
    /// One, waited for as long as for all: what must not be done twice.
    Once,
    /// One, and a short wait: the close.
    Parting,
}

/// Why a datagram is not the answer.
pub(crate) enum Rejected {
    /// An answer to an earlier question, or the same one again: what networks do.
    Late,
    /// Something that should not have come.
    Wrong(Wrong),
    /// The host failed us while we looked at it.
    Fatal(Failure),
}

impl From<Malformed> for Rejected {
    fn from(malformed: Malformed) -> Self {
        Self::Wrong(Wrong::Malformed(malformed))
    }
}

/// What is wrong with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Malformed(Malformed),
    Kind,
    Tag,
    Session,
    Code,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(malformed) => malformed.fmt(f),
            Self::Kind => f.write_str("it is of another kind"),
            Self::Tag => f.write_str("it carries a message tag that was never sent"),
            Self::Session => f.write_str("it belongs to another session"),
            Self::Code => f.write_str("its authentication code is wrong"),
        }
    }
}

/// An answer, and how often the question was sent until it came.
pub(crate) struct Answered<T> {
    pub(crate) value: T,
    pub(crate) sends: u32,
}

/// Nothing that was the answer arrived.
pub(crate) enum Lost {
    Silence(Silence),
    Failed(Failure),
}

impl From<Failure> for Lost {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Lost {
    /// As a failure; `what` was being done.
    pub(crate) fn into_failure(self, what: &str) -> Failure {
        match self {
            Self::Silence(silence) => silence.into_failure(what),
            Self::Failed(failure) => failure,
        }
    }
}

/// How the silence was.
pub(crate) struct Silence {
    sends: u32,
    waited_ms: u64,
    wrong: u32,
    last_wrong: Option<Wrong>,
    heard_before: bool,
    out_of_time: bool,
}

impl Silence {
    /// Not even a wrong answer came.
    pub(crate) fn is_complete(&self) -> bool {
        self.wrong == 0
    }

    pub(crate) fn into_failure(self, what: &str) -> Failure {
        let Self { sends, waited_ms, wrong, .. } = self;
        let (kind, detail) = match self.last_wrong {
            Some(last) => (
                FailureKind::Protocol,
                format!("{what}: dropped {wrong} answers, the last because {last}"),
            ),
            // Whatever ended the wait: nobody was ever there.
            None if !self.heard_before => (
                FailureKind::Unreachable,
                format!(
                    "{what}: no answer in {waited_ms} ms ({sends} sent): check the address, the \
                     network, and that the BMC has IPMI over LAN enabled"
                ),
            ),
            None if self.out_of_time => (
                FailureKind::Timeout,
                format!("{what}: the call's deadline came after {waited_ms} ms without an answer"),
            ),
            None => (
                FailureKind::Timeout,
                format!(
                    "{what}: no answer in {waited_ms} ms ({sends} sent), though the BMC had \
                     answered before"
                ),
            ),
        };
        Failure::new(kind, detail).retryable()
    }
}

/// The way to one BMC, for one call.
pub(crate) struct Link<'h, H: Host> {
    host: &'h H,
    datagram: H::Datagram,
    end_ms: u64,
    slowest_ms: Cell<u32>,
    heard: Cell<bool>,
    tags: Cell<u8>,
}

impl<'h, H: Host> Link<'h, H> {
    pub(crate) fn open(host: &'h H, deadline_ms: u32) -> Result<Self, Failure> {
        let datagram = host.udp("bmc").map_err(|e| e.into_failure("open the way to the BMC"))?;
        Ok(Self {
            host,
            datagram,
            end_ms: u64::from(deadline_ms).saturating_sub(limits::CLOSE_RESERVE_MS),
            slowest_ms: Cell::new(0),
            heard: Cell::new(false),
            tags: Cell::new(0),
        })
    }

    pub(crate) fn host(&self) -> &'h H {
        self.host
    }

    /// Has anything arrived yet?
    pub(crate) fn heard(&self) -> bool {
        self.heard.get()
    }

    /// A number for a message, which no earlier message of this call carries.
    pub(crate) fn next_tag(&self) -> u8 {
        let tag = self.tags.get();
        self.tags.set(tag.wrapping_add(1));
        tag
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.host.elapsed_ms()
    }

    /// Does the deadline leave room for this pause and one more question?
    pub(crate) fn has_time_for(&self, pause_ms: u32) -> bool {
        let then_ms = self.now_ms() + u64::from(pause_ms) + u64::from(self.first_wait_ms());
        then_ms < self.end_ms
    }

    pub(crate) fn send(&self, datagram: &[u8]) -> Result<(), Failure> {
        self.datagram.send(datagram).map_err(|error| self.failed("send to the BMC", error))
    }

    /// The next datagram, if one arrives before `until_ms`.
    pub(crate) fn receive(&self, until_ms: u64) -> Result<Option<Vec<u8>>, Failure> {
        let left_ms = until_ms.min(self.end_ms).saturating_sub(self.now_ms());
        let Some(left_ms) = u32::try_from(left_ms).ok().filter(|left_ms| *left_ms > 0) else {
            return Ok(None);
        };
        let received = self.datagram.receive(left_ms);
        let received = received.map_err(|error| self.failed("receive from the BMC", error))?;
        if received.is_some() {
            self.heard.set(true);
        }
        Ok(received)
    }

    /// What the host sends if this call ends before its session is closed; empty once it is.
    pub(crate) fn farewell(&self, datagram: &[u8]) {
        self.datagram.farewell(datagram);
    }

    /// Remembers how long the BMC took.
    pub(crate) fn saw_round_trip(&self, since_ms: u64) {
        let took_ms = u32::try_from(self.now_ms().saturating_sub(since_ms)).unwrap_or(u32::MAX);
        self.slowest_ms.set(self.slowest_ms.get().max(took_ms));
    }

    /// Asks until the answer comes. `ask` makes each datagram anew; `accept` judges what arrives.
    pub(crate) fn exchange<T>(
        &self,
        patience: Patience,
        ask: impl Fn() -> Result<Vec<u8>, Failure>,
        accept: impl Fn(&[u8]) -> Result<T, Rejected>,
    ) -> Result<Answered<T>, Lost> {
        let began_ms = self.now_ms();
        let heard_before = self.heard.get();
        let (mut sends, mut wrong, mut last_wrong) = (0, 0, None);
        for wait_ms in self.waits_ms(patience) {
            self.send(&ask()?)?;
            sends += 1;
            let until_ms = self.now_ms() + u64::from(wait_ms);
            for _ in 0..limits::DATAGRAMS_PER_WAIT_MAX {
                let Some(arrived) = self.receive(until_ms)? else { break };
                match accept(&arrived) {
                    Ok(value) => {
                        self.saw_round_trip(began_ms);
                        return Ok(Answered { value, sends });
                    }
                    Err(Rejected::Late) => {}
                    Err(Rejected::Wrong(why)) => {
                        wrong += 1;
                        last_wrong = Some(why);
                    }
                    Err(Rejected::Fatal(failure)) => return Err(Lost::Failed(failure)),
                }
            }
            if self.now_ms() >= self.end_ms {
                break;
            }
        }
        let now_ms = self.now_ms();
        Err(Lost::Silence(Silence {
            sends,
            waited_ms: now_ms.saturating_sub(began_ms),
            wrong,
            last_wrong,
            heard_before,
            out_of_time: now_ms >= self.end_ms,
        }))
    }

    fn waits_ms(&self, patience: Patience) -> impl Iterator<Item = u32> + use<H> {
        let first_ms = self.first_wait_ms();
        let all_ms = first_ms * (limits::SENDS_MAX * (limits::SENDS_MAX + 1) / 2);
        let (sends, first_ms) = match patience {
            Patience::Full => (limits::SENDS_MAX, first_ms),
            Patience::Brief => (2, first_ms),
            Patience::Once => (1, all_ms),
            Patience::Parting => (1, limits::CLOSE_WAIT_MS),
        };
        (1..=sends).map(move |send| first_ms * send)
    }

    fn first_wait_ms(&self) -> u32 {
        self.slowest_ms
            .get()
            .saturating_mul(limits::ROUND_TRIPS_TO_WAIT)
            .clamp(limits::FIRST_WAIT_MS, limits::FIRST_WAIT_MAX_MS)
    }

    /// A BMC that was heard is not unreachable in the sense of "nothing reached it".
    fn failed(&self, what: &str, error: NetError) -> Failure {
        let mut failure = error.into_failure(what);
        if self.heard.get() && failure.kind == FailureKind::Unreachable {
            failure.kind = FailureKind::Timeout;
        }
        failure
    }
}
