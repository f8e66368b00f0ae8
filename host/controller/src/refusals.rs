//! Every decision not to act, with its numbers, where `explain` finds it.
//!
//! What is refused now stands in `RemedyBudget/default`'s status, at most one line per
//! node; an Event tells of each new reason. Numbers change all the time, so a line is
//! rewritten at most every [`WRITE_EVERY_MS`].

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use node_remedy_api::limits::{REFUSAL_CHARACTERS_MAX, REFUSALS_MAX};
use node_remedy_api::nodefence::FencedNode;
use node_remedy_api::remedybudget::{NAME, Refused, RemedyBudget};
use node_remedy_api::time::Moment;
use node_remedy_decide::{Hold, Refusal, Time};
use serde_json::json;

use crate::cluster::{At, Cluster};
use crate::controller::Parts;
use crate::record::events::Note;
use crate::record::metrics::ReasonLabel;
use crate::record::{notices, shortened};

/// An unchanged reason with newer numbers is written this often.
const WRITE_EVERY_MS: u64 = 10_000;

/// The word of a refusal that other processes look for.
pub const DEVICE_NETWORK_LOST: &str = "DeviceNetworkLost";

/// What is refused now.
#[derive(Debug, Default)]
pub struct Refusals {
    lines: BTreeMap<String, Refused>,
    written_at: u64,
    stale: bool,
}

impl Refusals {
    /// Notes that `node` is not acted on.
    pub async fn note<C: Cluster>(&mut self, parts: &Parts<C>, node: &str, reason: &Reason) {
        let (guard, sentence) = (reason.guard(), reason.to_string());
        let now = parts.clock.now();
        parts.metrics.refusals.get_or_create(&ReasonLabel { reason: guard.to_owned() }).inc();
        let before = self.lines.get(node);
        let line = line(node, reason, before, now);
        let is_new = before.is_none_or(|before| before.guard != guard);
        self.stale |= before != Some(&line);
        self.lines.insert(node.to_owned(), line);
        if is_new {
            tracing::info!(node, guard, "{sentence}");
            let uid = parts.mirror.nodes.find(node).map(|seen| seen.uid).unwrap_or_default();
            let about = FencedNode { name: node.to_owned(), uid, ..FencedNode::default() };
            let note = Note { reason: guard.to_owned(), text: sentence, warning: true };
            parts.tell(&about, &note).await;
        }
        if is_new || now.0.saturating_sub(self.written_at) >= WRITE_EVERY_MS {
            self.write(parts).await;
        }
    }

    /// Nothing is refused about `node` any more.
    pub async fn forget<C: Cluster>(&mut self, parts: &Parts<C>, node: &str) {
        if self.lines.remove(node).is_some() {
            self.stale = true;
            self.write(parts).await;
        }
    }

    async fn write<C: Cluster>(&mut self, parts: &Parts<C>) {
        if !self.stale {
            return;
        }
        let lines: Vec<&Refused> = self.lines.values().take(REFUSALS_MAX).collect();
        let patch = json!({"status": {"refusals": lines}});
        match parts.cluster.merge_status::<RemedyBudget>(At::cluster(NAME), &patch).await {
            Ok(_) => {
                self.stale = false;
                self.written_at = parts.clock.now().0;
            }
            Err(error) => tracing::warn!(%error, "failed to write refusals; with the next one"),
        }
    }
}

/// What is kept of a refusal: one reason is refused by since it was first said.
fn line(node: &str, reason: &Reason, before: Option<&Refused>, now: Time) -> Refused {
    let (guard, now) = (reason.guard(), Moment::from_ms(now.0));
    let since = before.filter(|before| before.guard == guard).map_or(now, |before| before.since);
    Refused {
        node: node.to_owned(),
        guard: guard.to_owned(),
        sentence: shortened(&reason.to_string(), REFUSAL_CHARACTERS_MAX),
        since,
        last: now,
    }
}

/// Why nothing is done about a node whose threshold is crossed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The core says so.
    Hold(Hold),
    /// It could not be carried out: what is missing.
    NotReady(String),
    /// It is only to be told.
    Shadow {
        /// The remedy that would be run.
        remedy: String,
    },
    /// The API server did not answer, or not as needed.
    ApiFailed(String),
}

impl Reason {
    /// Its CamelCase word.
    pub fn guard(&self) -> &'static str {
        match self {
            Self::Hold(hold) => word(hold),
            Self::NotReady(_) => "NotReady",
            Self::Shadow { .. } => "Shadow",
            Self::ApiFailed(_) => "ApiFailed",
        }
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hold(hold) => f.write_str(&notices::hold(hold)),
            Self::NotReady(what) => f.write_str(what),
            Self::Shadow { remedy } => {
                write!(f, "shadow mode: would run remedy {remedy} now")
            }
            Self::ApiFailed(error) => {
                write!(f, "the API server must be asked before anything is done: {error}")
            }
        }
    }
}

/// The words of all that holds a run back.
pub fn hold_words(hold: &Hold) -> String {
    match hold {
        Hold::Gate(refusals) => refusals.iter().map(refusal_word).collect::<Vec<_>>().join(" "),
        Hold::NotYet { .. }
        | Hold::NoSlot
        | Hold::Approval { .. }
        | Hold::Proof
        | Hold::Dump { .. }
        | Hold::JobRefused { .. }
        | Hold::NotDecided { .. }
        | Hold::CleanUp { .. }
        | Hold::TriggerClear
        | Hold::OwnNode
        | Hold::StaleView => word(hold).to_owned(),
    }
}

/// The CamelCase word of what holds a run back.
pub fn word(hold: &Hold) -> &'static str {
    match hold {
        Hold::NotYet { .. } => "NotYet",
        Hold::Gate(refusals) => refusals.first().map_or("Gate", refusal_word),
        Hold::NoSlot => "NoSlot",
        Hold::Approval { .. } => "Approval",
        Hold::Dump { .. } => "Dump",
        Hold::JobRefused { .. } => "JobRefused",
        Hold::NotDecided { .. } => "NotDecided",
        Hold::CleanUp { .. } => "CleanUp",
        Hold::Proof => "Proof",
        Hold::TriggerClear => "TriggerClear",
        Hold::OwnNode => "OwnNode",
        Hold::StaleView => "StaleView",
    }
}

/// The CamelCase word of a refusal.
pub fn refusal_word(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::UnhealthyShare { .. } => "UnhealthyShare",
        Refusal::UnhealthyCount { .. } => "UnhealthyCount",
        Refusal::SilenceNotJudged { .. } => "SilenceNotJudged",
        Refusal::DomainUnhealthy { .. } => "DomainUnhealthy",
        Refusal::DomainInFlight { .. } => "DomainInFlight",
        Refusal::NoDomain { .. } => "NoDomain",
        Refusal::ControlPlane { .. } => "ControlPlane",
        Refusal::Headroom { .. } => "Headroom",
        Refusal::StorageLease { .. } => "StorageLease",
        Refusal::StorageLeaseUnread { .. } => "StorageLeaseUnread",
        Refusal::NoLease => "NoLease",
        Refusal::InFlight { .. } => "InFlight",
        Refusal::BreakerOpen { .. } => "BreakerOpen",
        Refusal::BreakerHalfOpen { .. } => "BreakerHalfOpen",
        Refusal::BreakerUnread { .. } => "BreakerUnread",
        Refusal::Paused(_) => "Paused",
        Refusal::Excluded { .. } => "Excluded",
        Refusal::Maintenance { .. } => "Maintenance",
        Refusal::Cordoned => "Cordoned",
        Refusal::BeingRemoved { .. } => "BeingRemoved",
        Refusal::WordsUnread { .. } => "WordsUnread",
        Refusal::OwnView { .. } => "OwnView",
        Refusal::HeldByOther { .. } => "HeldByOther",
        Refusal::DeviceClosed(_) => "DeviceClosed",
        Refusal::DeviceNetworkLost { .. } => DEVICE_NETWORK_LOST,
        Refusal::CoolDown { .. } => "CoolDown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines are written at once: one that is refused would take the others with it.
    #[test]
    fn a_reason_is_as_long_as_the_api_server_takes_it() {
        let line_of = |what: String| line("n", &Reason::NotReady(what), None, Time(1)).sentence;
        let fits = "ä".repeat(REFUSAL_CHARACTERS_MAX);
        assert_eq!(line_of(fits.clone()), fits);
        let cut = line_of(format!("{fits}ä"));
        assert_eq!(cut.chars().count(), REFUSAL_CHARACTERS_MAX);
        assert!(cut.starts_with("ää") && cut.ends_with("ä…"));
    }

    #[test]
    fn a_reason_is_refused_by_since_it_was_first_said() {
        let missing = Reason::NotReady("no Secret".to_owned());
        let first = line("n", &missing, None, Time(1));
        assert_eq!((first.since, first.last), (Moment::from_ms(1), Moment::from_ms(1)));
        let again = line("n", &missing, Some(&first), Time(9));
        assert_eq!((again.since, again.last), (Moment::from_ms(1), Moment::from_ms(9)));
        let other = line("n", &Reason::Hold(Hold::NoSlot), Some(&again), Time(10));
        assert_eq!((other.guard.as_str(), other.since), ("NoSlot", Moment::from_ms(10)));
    }
}
