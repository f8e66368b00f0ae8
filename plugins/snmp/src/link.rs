//! Asking and being answered over datagrams: send, wait, send again, a bounded number of times, and
//! look at what arrives until something is the answer. What is not the answer is dropped, and
//! remembered: silence and wrong answers are different failures.

use std::cell::Cell;

use node_remedy_sdk::{Datagram, Failure, FailureKind, Host, NetError};

use crate::codec::Malformed;
use crate::limits;

/// How often a question is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// All the sends there are.
    Full,
    /// One, waited for as long as for all: what must not be done twice.
    Once,
}

/// What silence may mean besides an agent that is not there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hint {
    /// Where nothing was ever heard of it.
    pub(crate) at_first: &'static str,
    /// Where it had answered before.
    pub(crate) later: &'static str,
}

/// Why a datagram is not the answer.
pub(crate) enum Rejected {
    /// An answer to an earlier question, or the same one again: what networks do.
    Late,
    /// Something that should not have come.
    Wrong(&'static str),
    /// The host failed us while we looked at it.
    Fatal(Failure),
}

impl From<Malformed> for Rejected {
    fn from(malformed: Malformed) -> Self {
        Self::Wrong(malformed.0)
    }
}

/// The way to one agent, for one call.
pub(crate) struct Link<'h, H: Host> {
    host: &'h H,
    datagram: H::Datagram,
    end_ms: u64,
    slowest_ms: Cell<u32>,
    heard: Cell<bool>,
}

impl<'h, H: Host> Link<'h, H> {
    pub(crate) fn open(host: &'h H, deadline_ms: u32) -> Result<Self, Failure> {
        let datagram =
            host.udp("agent").map_err(|error| error.into_failure("open the way to the agent"))?;
        Ok(Self {
            host,
            datagram,
            end_ms: u64::from(deadline_ms).saturating_sub(limits::LAST_WORDS_MS),
            slowest_ms: Cell::new(0),
            heard: Cell::new(false),
        })
    }

    pub(crate) fn host(&self) -> &'h H {
        self.host
    }

    /// Does the deadline leave room for this pause and one more question?
    pub(crate) fn has_time_for(&self, pause_ms: u32) -> bool {
        let pause_ms = u64::from(pause_ms) + u64::from(self.first_wait_ms());
        self.host.elapsed_ms() + pause_ms < self.end_ms
    }

    /// Sends until the answer comes, and judges what arrives by `accept`.
    pub(crate) fn exchange<T>(
        &self,
        what: &str,
        hint: Hint,
        patience: Patience,
        message: &[u8],
        accept: impl Fn(&[u8]) -> Result<T, Rejected>,
    ) -> Result<T, Failure> {
        let began_ms = self.host.elapsed_ms();
        let (mut sends, mut wrong, mut last_wrong) = (0_u32, 0_u32, None);
        for wait_ms in self.waits_ms(patience) {
            self.datagram.send(message).map_err(|error| self.failed("send to the agent", error))?;
            sends += 1;
            let until_ms = self.host.elapsed_ms() + u64::from(wait_ms);
            for _ in 0..limits::DATAGRAMS_PER_WAIT_MAX {
                let Some(arrived) = self.receive(until_ms)? else { break };
                match accept(&arrived) {
                    Ok(answer) => {
                        let took_ms = self.host.elapsed_ms().saturating_sub(began_ms);
                        let took_ms = u32::try_from(took_ms).unwrap_or(u32::MAX);
                        self.slowest_ms.set(self.slowest_ms.get().max(took_ms));
                        self.heard.set(true);
                        return Ok(answer);
                    }
                    Err(Rejected::Late) => {}
                    Err(Rejected::Wrong(why)) => {
                        wrong += 1;
                        last_wrong = Some(why);
                    }
                    Err(Rejected::Fatal(failure)) => return Err(failure),
                }
            }
            if self.host.elapsed_ms() >= self.end_ms {
                break;
            }
        }
        let waited_ms = self.host.elapsed_ms().saturating_sub(began_ms);
        let (kind, detail) = match last_wrong {
            Some(why) => (
                FailureKind::Protocol,
                format!("{what}: dropped {wrong} answers, the last because {why}"),
            ),
            None if self.heard.get() => (
                FailureKind::Timeout,
                format!(
                    "{what}: no answer in {waited_ms} ms ({sends} sent), though the agent had \
                     answered before{}",
                    hint.later
                ),
            ),
            None => (
                FailureKind::Unreachable,
                format!(
                    "{what}: no answer in {waited_ms} ms ({sends} sent): check the address, the \
                     network, and that the device has SNMP on{}",
                    hint.at_first
                ),
            ),
        };
        Err(Failure::new(kind, detail).retryable())
    }

    /// The next datagram, if one arrives before `until_ms`.
    fn receive(&self, until_ms: u64) -> Result<Option<Vec<u8>>, Failure> {
        let left_ms = until_ms.min(self.end_ms).saturating_sub(self.host.elapsed_ms());
        let Some(left_ms) = u32::try_from(left_ms).ok().filter(|left_ms| *left_ms > 0) else {
            return Ok(None);
        };
        let received = self.datagram.receive(left_ms);
        received.map_err(|error| self.failed("receive from the agent", error))
    }

    fn waits_ms(&self, patience: Patience) -> impl Iterator<Item = u32> + use<H> {
        let first_ms = self.first_wait_ms();
        let all_ms = first_ms * (limits::SENDS_MAX * (limits::SENDS_MAX + 1) / 2);
        let (sends, first_ms) = match patience {
            Patience::Full => (limits::SENDS_MAX, first_ms),
            Patience::Once => (1, all_ms),
        };
        (1..=sends).map(move |send| first_ms * send)
    }

    fn first_wait_ms(&self) -> u32 {
        self.slowest_ms
            .get()
            .saturating_mul(limits::ROUND_TRIPS_TO_WAIT)
            .clamp(limits::FIRST_WAIT_MS, limits::FIRST_WAIT_MAX_MS)
    }

    /// An agent that was heard is not unreachable in the sense of "nothing reached it".
    fn failed(&self, what: &str, error: NetError) -> Failure {
        let mut failure = error.into_failure(what);
        if self.heard.get() && failure.kind == FailureKind::Unreachable {
            failure.kind = FailureKind::Timeout;
        }
        failure
    }
}
