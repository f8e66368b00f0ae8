//! Which devices answer, as this process knows it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use node_remedy_api::fenceconfiguration::DeviceState;
use node_remedy_decide::{DeviceNetwork, End, FailureKind, Span, Time};

/// A plug of a device: what a method switches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The device, as a method's `device`.
    pub device: String,
    /// The plug, as a method's `plug`.
    pub plug: String,
}

/// What a device last said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Whether it answered.
    pub state: DeviceState,
    /// Why not; empty where it did.
    pub detail: String,
}

/// What has to answer so that a node can be fenced.
#[derive(Debug, Clone)]
pub struct Path {
    /// The node's name.
    pub node: String,
    /// The node's UID.
    pub uid: String,
    /// The objects that its plan comes from, or would, as `Kind/name`.
    pub sources: Vec<String>,
    /// Its devices, or why there is no plan.
    pub places: Result<Vec<Place>, String>,
}

impl Path {
    /// Whether the node can be fenced: ACTIVE when every device is, INACTIVE with the first that is not;
    /// `None` while one was never asked.
    pub fn state(&self, answers: &BTreeMap<Place, Answer>) -> Option<Answer> {
        let places = match &self.places {
            Ok(places) => places,
            Err(why) => {
                return Some(Answer { state: DeviceState::Inactive, detail: why.clone() });
            }
        };
        let dead = |place: &Place| {
            let answer = answers.get(place).filter(|one| one.state == DeviceState::Inactive)?;
            Some(Answer {
                detail: format!("{}: {}", place.device, answer.detail),
                ..answer.clone()
            })
        };
        let is_known = places.iter().all(|place| answers.contains_key(place));
        let alive = Answer { state: DeviceState::Active, detail: String::new() };
        places.iter().find_map(dead).or(is_known.then_some(alive))
    }
}

/// What this process knows of devices, from one term of leadership to the next.
#[derive(Debug, Default)]
pub struct Paths {
    /// By device.
    pub answers: RefCell<BTreeMap<Place, Answer>>,
    /// What was last told of each node.
    pub told: RefCell<BTreeMap<String, DeviceState>>,
}

/// A round takes its time: an answer counts for two of them and so much more.
pub const ROUND_MAX: Span = Span::minutes(1);

/// While none answers, they are asked again so soon.
pub const LOST_AGAIN: Duration = Duration::from_secs(30);

/// Characters of what a device said that a refusal repeats.
pub const DETAIL_MAX: usize = 200;

/// What is known of one device.
#[derive(Debug)]
pub struct DeviceContact {
    pub(crate) answers: bool,
    /// Since when that is so.
    pub(crate) since: Time,
    /// When it was last asked.
    pub(crate) at: Time,
    /// Why it did not answer.
    pub(crate) detail: String,
}

/// What this process knows of its way to the devices.
#[derive(Debug)]
pub struct Reach {
    pub(crate) devices: RefCell<BTreeMap<String, DeviceContact>>,
    /// How often each is asked; `None`: never, and nothing is known.
    pub(crate) every: Option<Duration>,
    /// When leadership was last handed over for want of devices.
    pub handed_over_at: Cell<Option<Time>>,
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
        devices.insert(device.to_owned(), DeviceContact { answers, since, at: now, detail });
    }

    /// Notes that an incident's call was answered by a device that is asked, too. That it was not has many
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

#[cfg(test)]
mod tests {
    use node_remedy_decide::{Failure, PlugState};

    use super::*;

    fn ended(kind: FailureKind) -> End {
        End::NotAttempted(Failure { kind, detail: "no answer".to_owned() })
    }

    #[test] // promise: G17
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
        assert!(!reach.network(at(62)).is_lost(), "an incident's own call was answered");
        assert_eq!(reach.again(Duration::from_mins(5), at(62)), Duration::from_mins(5));

        reach.note("pdu-a", silence(), at(70));
        reach.keep(|device| device == "pdu-a");
        assert!(!reach.network(at(70)).is_lost(), "no plan names the others any more");
    }

    #[test] // promise: G17
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
