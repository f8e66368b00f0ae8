//! Kernel dumps: machines whose crash kernel says, every few seconds, that it writes one.
//!
//! Every process listens, whoever leads: a crash kernel knows the addresses that somebody wrote into
//! its configuration, and which of them leads it does not know. Whoever hears it says so in an annotation
//! of the Node: for a leader that hears nothing, and for whoever is started in the middle of a dump. A message proves nothing of its sender, so only addresses that the
//! configuration gives a node count, and only inside the networks of its grant.
//!
//! Not here: what is done about a dump, which `decide` says.

use std::cell::RefCell;
use std::collections::BTreeMap;

use jiff::Timestamp;
use node_remedy_decide::{Dump, Span, Time};
use node_remedy_runtime::clock::{Clock, time_of};

use crate::live::Facts;
use crate::pruned::{PrunedLease, PrunedNode};

/// Says on the Node until when it is known to dump: a span of time in ISO 8601, then who sent and who
/// heard it.
pub const DUMP_TOLD: &str = "node-remedy.io/dump-told";

/// Between two tellings of one node's dump.
pub const TELL_EVERY: Span = Span::seconds(5);

/// So long after the last message a machine that has not renewed its Lease may still be booting.
pub const BOOTS_FOR: Span = Span::minutes(60);
/// A clock that is so far ahead tells nothing that can be believed.
const AHEAD_MAX: Span = Span::seconds(30);

/// Kernel dumps that this process heard, by node.
#[derive(Default)]
pub struct Dumps {
    heard: RefCell<BTreeMap<String, Sighting>>,
}

/// The latest message of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// When it came.
    pub at: Time,
    /// When it is over unless another one comes.
    until: Time,
    told_at: Option<Time>,
}

impl Dumps {
    /// Notes a message; says whether the node was not known to dump.
    pub fn note(&self, node: &str, now: Time, lasts: Span) -> bool {
        let mut heard = self.heard.borrow_mut();
        heard.retain(|_, sighting| now < sighting.until.after(BOOTS_FOR));
        let before = heard.get(node).copied();
        let told_at = before.and_then(|before| before.told_at);
        heard.insert(node.to_owned(), Sighting { at: now, until: now.after(lasts), told_at });
        before.is_none_or(|before| now >= before.until)
    }

    /// How many nodes a message is known of.
    pub fn known(&self) -> usize {
        self.heard.borrow().len()
    }

    /// The dump of this node is over.
    pub fn forget(&self, node: &str) {
        self.heard.borrow_mut().remove(node);
    }

    /// The sighting that is to be told now, which it then counts as.
    pub fn to_tell(&self, node: &str, now: Time) -> Option<Sighting> {
        let mut heard = self.heard.borrow_mut();
        let sighting = heard.get_mut(node).filter(|one| now < one.until)?;
        if sighting.told_at.is_some_and(|at| now < at.after(TELL_EVERY)) {
            return None;
        }
        sighting.told_at = Some(now);
        Some(*sighting)
    }
}

/// What is known of a dump of this node. A renewal of its Lease after the last message says that its
/// own kernel runs, whatever was sent in its name.
pub fn seen(dumps: &Dumps, clock: &Clock, facts: &Facts) -> Dump {
    let Some(node) = &facts.node else { return Dump::None };
    let now = clock.now();
    let alive_at = facts.lease.as_ref().map(PrunedLease::renewed_at);
    // Not in the future, not too old, and no renewal since: its own kernel does not run yet.
    let lasts = |(at, until): &(Time, Time)| {
        *at <= now.after(AHEAD_MAX)
            && now < until.after(BOOTS_FOR)
            && alive_at.is_none_or(|alive| alive <= *at)
    };
    let goes_on = |(_, until): (Time, Time)| now < until;
    let heard = dumps.heard.borrow().get(&node.name).map(|one| (one.at, one.until));
    let told = node.annotations.get(DUMP_TOLD).and_then(|text| read(text));
    let told = told.map(|(at, until)| (clock.when(at), clock.when(until)));
    let (heard, told) = (heard.filter(lasts), told.filter(lasts));
    if heard.is_some_and(goes_on) {
        Dump::Heard
    } else if told.is_some_and(goes_on) {
        Dump::Told
    } else if heard.or(told).is_some() {
        Dump::Ended
    } else {
        Dump::None
    }
}

/// Whether a Node still carries the annotation of a dump after its kernel runs again, or the time for that is over.
pub fn is_told_of_one_that_is_over(
    node: &PrunedNode,
    lease: Option<&PrunedLease>,
    clock: &Clock,
) -> bool {
    let Some(told) = node.annotations.get(DUMP_TOLD) else { return false };
    let Some((at, until)) = read(told) else { return true };
    let lives = lease.is_some_and(|lease| lease.renewed_at() > clock.when(at));
    lives || clock.now() >= clock.when(until).after(BOOTS_FOR)
}

/// The span of time in the annotation of a dump; `None` if it is none.
pub fn read(annotation: &str) -> Option<(Time, Time)> {
    let (at, until) = annotation.split_whitespace().next()?.split_once('/')?;
    let stamp = |text: &str| text.parse::<Timestamp>().ok().map(|stamp| time_of(&stamp));
    Some((stamp(at)?, stamp(until)?))
}
