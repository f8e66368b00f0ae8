//! Whether this process reaches devices at all. While several were asked and none answers, it opens
//! nothing that fences, and lets a process lead that says it hears devices. What is known comes from
//! probing, and from the calls of open runs; nothing is asked here. What is open already is never held back.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use node_remedy_api::nodefence::Rung;
use node_remedy_api::remedybudget::{DevicesAnswer, NAME, Refused, RemedyBudget};
use node_remedy_api::time::Moment;
use node_remedy_decide::{DeviceNetwork, End, FailureKind, HAND_OVER_AGAIN, Span, Time};
use serde_json::json;

use crate::cluster::{At, Cluster};
use crate::controller::Parts;
use crate::refusals::DEVICE_NETWORK_LOST;

/// A round takes its time: an answer counts for two of them and so much more.
const ROUND_MAX: Span = Span::minutes(1);
/// While none answers, they are asked again so soon.
const LOST_AGAIN: Duration = Duration::from_secs(30);
/// What another process says on the budget counts for so long.
const WORD_MAX: Span = Span::seconds(60);
/// Characters of what a device said that a refusal repeats.
const DETAIL_MAX: usize = 200;

/// What is known of one device.
#[derive(Debug)]
struct Heard {
    answers: bool,
    /// Since when that is so.
    since: Time,
    /// When it was last asked.
    at: Time,
    /// Why it did not answer.
    detail: String,
}

/// What this process knows of its way to the devices.
#[derive(Debug)]
pub struct Reach {
    devices: RefCell<BTreeMap<String, Heard>>,
    /// How often each is asked; `None`: never, and nothing is known.
    every: Option<Duration>,
    handed_over_at: Cell<Option<Time>>,
}

impl Reach {
    /// Nothing is known yet; devices are asked this often.
    pub fn new(every: Option<Duration>) -> Self {
        Self { devices: RefCell::default(), every, handed_over_at: Cell::new(None) }
    }

    /// Keeps what is known of these devices, and of no other.
    pub fn keep(&self, is_kept: impl Fn(&str) -> bool) {
        self.devices.borrow_mut().retain(|device, _| is_kept(device));
    }

    /// Notes what came of asking a device; `None`: nothing.
    pub fn note(&self, device: &str, answer: Option<Result<(), String>>, now: Time) {
        let Some(answer) = answer else { return };
        let answers = answer.is_ok();
        let mut devices = self.devices.borrow_mut();
        let before = devices.get(device).filter(|one| one.answers == answers);
        let since = before.map_or(now, |one| one.since);
        let detail = answer.err().unwrap_or_default().chars().take(DETAIL_MAX).collect();
        devices.insert(device.to_owned(), Heard { answers, since, at: now, detail });
    }

    /// Notes that a run's call was answered by a device that is asked, too. That it was not has many
    /// reasons; probing finds out.
    pub fn note_call(&self, device: &str, end: &End, now: Time) {
        let is_asked = self.devices.borrow().contains_key(device);
        if is_asked {
            self.note(device, answer_of(end).filter(Result::is_ok), now);
        }
    }

    /// What the gate is told. An answer grows old; silence lasts until the device is asked again.
    pub fn network(&self, now: Time) -> DeviceNetwork {
        let Some(every) = self.every else { return DeviceNetwork::default() };
        let every_ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
        let valid = Span(every_ms.saturating_mul(2).saturating_add(ROUND_MAX.0));
        let mut network = DeviceNetwork::default();
        for (device, heard) in &*self.devices.borrow() {
            if !heard.answers {
                network.silent = network.silent.saturating_add(1);
                network.silent_since = network.silent_since.max(heard.since);
                network.example = format!("{device}: {}", heard.detail);
            } else if now.since(heard.at) <= valid {
                network.answering = network.answering.saturating_add(1);
            }
        }
        network
    }

    /// When the devices are asked again, from when they last were.
    pub fn again(&self, every: Duration, now: Time) -> Duration {
        if self.network(now).is_lost() { every.min(LOST_AGAIN) } else { every }
    }
}

/// What the end of a call says of the way to its device: that something of it answered, or why nothing
/// did; `None` where it was not asked.
pub fn answer_of(end: &End) -> Option<Result<(), String>> {
    let failure = match end {
        End::Succeeded { .. } => return Some(Ok(())),
        End::Failed(failure) | End::NotAttempted(failure) => failure,
        End::Indeterminate => return None,
    };
    match failure.kind {
        // Without a Secret, a grant or an address nothing is asked; that a plan cannot be carried out for
        // want of it is refused by itself.
        FailureKind::Busy
        | FailureKind::Throttled
        | FailureKind::NotMade
        | FailureKind::Cancelled
        | FailureKind::Unsupported
        | FailureKind::BadParameters => None,
        // It said so itself.
        FailureKind::Unauthenticated
        | FailureKind::Denied
        | FailureKind::NoSuchPlug
        | FailureKind::Device => Some(Ok(())),
        // What makes no sense may be said by another.
        FailureKind::Unreachable
        | FailureKind::Timeout
        | FailureKind::Protocol
        | FailureKind::Other => Some(Err(failure.detail.clone())),
    }
}

/// What the gate is told before a run of this ladder is opened: one whose first remedy is a Job, or is done
/// in the cluster, needs no device yet, and later waits at it.
pub fn of_opening<C: Cluster>(parts: &Parts<C>, ladder: &[Rung]) -> DeviceNetwork {
    if ladder.first().is_none_or(Rung::is_of_plan) {
        parts.reach.network(parts.clock.now())
    } else {
        DeviceNetwork::default()
    }
}

/// Who stands by and hears devices says so, where the leader refuses for want of them.
pub async fn say_heard<C: Cluster>(parts: &Parts<C>) {
    if parts.reach.network(parts.clock.now()).answering == 0 {
        return;
    }
    let Some(budget) = read(parts).await else { return };
    let is_for_it = |one: &Refused| one.guard == DEVICE_NETWORK_LOST && is_fresh(parts, one.last);
    if !budget.status.unwrap_or_default().refusals.iter().any(is_for_it) {
        return;
    }
    let at = Moment::from_ms(parts.clock.now().0);
    let word = DevicesAnswer { process: parts.process.clone(), at };
    let patch = json!({"status": {"devicesAnswer": word}});
    if let Err(error) = parts.cluster.merge_status::<RemedyBudget>(At::cluster(NAME), &patch).await
    {
        tracing::debug!(%error, "failed to say that devices answer here; again soon");
    }
}

/// A leader whom no device answers lets one lead who says that it hears them; not again for a while, as
/// for a single device.
pub async fn let_lead<C: Cluster>(parts: &Parts<C>) {
    let now = parts.clock.now();
    let reach = &parts.reach;
    let is_too_soon = |at: Time| now < at.after(HAND_OVER_AGAIN);
    if !reach.network(now).is_lost() || reach.handed_over_at.get().is_some_and(is_too_soon) {
        return;
    }
    let Some(budget) = read(parts).await else { return };
    let word = budget.status.and_then(|status| status.devices_answer);
    if word.is_some_and(|word| word.process != parts.process && is_fresh(parts, word.at)) {
        reach.handed_over_at.set(Some(now));
        parts.hand_over.notify_one();
    }
}

async fn read<C: Cluster>(parts: &Parts<C>) -> Option<RemedyBudget> {
    // Without an answer nothing is handed over; it is asked for again soon.
    parts.cluster.get::<RemedyBudget>(At::cluster(NAME)).await.ok().flatten()
}

fn is_fresh<C: Cluster>(parts: &Parts<C>, at: Moment) -> bool {
    parts.clock.now().since(parts.clock.when(Time(at.ms))) <= WORD_MAX
}

#[cfg(test)]
mod tests {
    use node_remedy_decide::{Failure, PlugState};

    use super::*;

    fn ended(kind: FailureKind) -> End {
        End::NotAttempted(Failure { kind, detail: "no answer".to_owned() })
    }

    #[test]
    fn an_answer_grows_old_and_silence_lasts_until_the_device_is_asked_again() {
        let reach = Reach::new(Some(Duration::from_mins(5)));
        let at = |minutes| Time(1_000_000).after(Span::minutes(minutes));
        let silence = || Some(Err("no answer".to_owned()));
        assert!(!reach.network(at(0)).is_lost(), "nobody was asked");
        reach.note("pdu-a", silence(), at(0));
        assert!(!reach.network(at(0)).is_lost(), "one device is a device");
        reach.note("pdu-b", silence(), at(1));
        reach.note("pdu-c", Some(Ok(())), at(1));
        assert!(!reach.network(at(12)).is_lost(), "one of them answered");
        assert_eq!(reach.network(at(13)).answering, 0, "two rounds ago");
        assert!(reach.network(at(60)).is_lost());
        assert_eq!(reach.network(at(60)).silent_since, at(1), "since then both are silent");
        reach.note("pdu-b", None, at(61));
        assert!(reach.network(at(61)).is_lost(), "it was not asked");
        assert_eq!(reach.again(Duration::from_mins(5), at(61)), LOST_AGAIN);

        let off = End::Succeeded { state: PlugState::Off, identity: Vec::new() };
        reach.note_call("elsewhere", &off, at(62));
        reach.note_call("pdu-a", &ended(FailureKind::Other), at(62));
        assert!(reach.network(at(62)).is_lost());
        reach.note_call("pdu-a", &off, at(62));
        assert!(!reach.network(at(62)).is_lost(), "a run's own call was answered");
        assert_eq!(reach.again(Duration::from_mins(5), at(62)), Duration::from_mins(5));

        reach.note("pdu-a", silence(), at(70));
        reach.keep(|device| device == "pdu-a");
        assert!(!reach.network(at(70)).is_lost(), "no plan names the others any more");
    }

    #[test]
    fn a_device_that_refuses_answers_and_one_that_was_not_asked_says_nothing() {
        let answers = |kind| answer_of(&ended(kind)).map(|answer| answer.is_ok());
        for kind in [FailureKind::Unauthenticated, FailureKind::NoSuchPlug, FailureKind::Device] {
            assert_eq!(answers(kind), Some(true), "{kind:?}");
        }
        for kind in [FailureKind::Unreachable, FailureKind::Timeout, FailureKind::Protocol] {
            assert_eq!(answers(kind), Some(false), "{kind:?}");
        }
        for kind in [FailureKind::Busy, FailureKind::Throttled, FailureKind::NotMade] {
            assert_eq!(answers(kind), None, "{kind:?}");
        }
    }
}
