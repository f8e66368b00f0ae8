//! Every decision not to act, with its numbers, where `explain` finds it.
//!
//! What is refused now stands in `RemedyBudget/default`'s status, at most one line per
//! node; an Event tells of each new reason. Numbers change all the time, so a line is
//! rewritten at most every [`WRITE_EVERY_MS`].

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::rc::Rc;

use node_remedy_api::limits::{REFUSAL_CHARACTERS_MAX, REFUSALS_MAX};
use node_remedy_api::nodefence::FencedNode;
use node_remedy_api::remedybudget::{NAME, Refused, RemedyBudget};
use node_remedy_api::time::Moment;
use node_remedy_decide::{Hold, Refusal, Time};
use serde_json::json;
use tokio::task::JoinSet;

use crate::cluster::{At, Cluster};
use crate::controller::Parts;
use crate::record::events::Note;
use crate::record::metrics::{Metrics, ReasonLabel};
use crate::record::{notices, shortened};

/// An unchanged reason with newer numbers is written this often.
const WRITE_EVERY_MS: u64 = 10_000;
/// A new reason, this often: in a storm each of many nodes has one, and another one a moment later.
const NEWS_EVERY_MS: u64 = 1_000;

/// The word of a refusal that other processes look for.
pub const DEVICE_NETWORK_LOST: &str = "DeviceNetworkLost";

/// What is refused now. It is written beside the loop that opens incidents and hears people, one write at a time
/// with all that came meanwhile: hundreds of nodes and a slow API server hold nobody up.
#[derive(Debug, Default)]
pub struct Refusals {
    lines: BTreeMap<String, Refused>,
    written_at: u64,
    /// What is written is not what is refused now.
    stale: bool,
    /// Not only by its numbers.
    news: bool,
    /// Of each node the newest reason that no Event tells of yet.
    untold: BTreeMap<String, Note>,
    /// At most one; whether it was taken.
    writing: JoinSet<bool>,
    /// At most one.
    telling: JoinSet<()>,
}

impl Refusals {
    /// Notes that `node` is not acted on.
    pub fn note<C: Cluster>(&mut self, parts: &Parts<C>, node: &str, reason: &Reason) {
        let (guard, sentence) = (reason.guard(), reason.to_string());
        parts.metrics.refusals.get_or_create(&ReasonLabel { reason: guard.to_owned() }).inc();
        let before = self.lines.get(node);
        let line = line(node, reason, before, parts.clock.now());
        let is_new = before.is_none_or(|before| before.guard != guard);
        self.stale |= before != Some(&line);
        self.lines.insert(node.to_owned(), line);
        if is_new {
            tracing::info!(node, guard, "{sentence}");
            let note = Note { reason: guard.to_owned(), text: sentence, warning: true };
            self.untold.insert(node.to_owned(), note);
            self.news = true;
        }
    }

    /// How many nodes each guard keeps from being acted on.
    pub fn count(&self, metrics: &Metrics) {
        metrics.refused.clear();
        for line in self.lines.values() {
            metrics.refused.get_or_create(&ReasonLabel { reason: line.guard.clone() }).inc();
        }
    }

    /// Nothing is refused about `node` any more.
    pub fn forget<C: Cluster>(&mut self, parts: &Parts<C>, node: &str) {
        parts.audit.well(node);
        if self.lines.remove(node).is_some() {
            self.stale = true;
            self.news = true;
        }
    }

    /// When to write next; `None` if there is nothing to write, or a write is under way.
    pub fn next_write(&self) -> Option<Time> {
        let every = if self.news { NEWS_EVERY_MS } else { WRITE_EVERY_MS };
        (self.stale && self.writing.is_empty()).then(|| Time(self.written_at.saturating_add(every)))
    }

    /// Begins to write what was not written yet, unless a write is under way.
    pub fn write<C: Cluster>(&mut self, parts: &Rc<Parts<C>>) {
        let now = parts.clock.now().0;
        let is_due = self.next_write().is_some_and(|at| at.0 <= now);
        if is_due {
            (self.stale, self.news, self.written_at) = (false, false, now);
            let lines: Vec<&Refused> = self.lines.values().take(REFUSALS_MAX).collect();
            let patch = json!({"status": {"refusals": lines}});
            let parts = parts.clone();
            self.writing.spawn_local(async move {
                let written = parts.cluster.merge_status::<RemedyBudget>(At::cluster(NAME), &patch);
                let written = written.await;
                if let Err(error) = &written {
                    tracing::warn!(%error, "failed to write refusals; with the next one");
                }
                written.is_ok()
            });
        }
        if !self.untold.is_empty() && self.telling.is_empty() {
            let (untold, parts) = (std::mem::take(&mut self.untold), parts.clone());
            self.telling.spawn_local(async move {
                for (node, note) in untold {
                    let uid = parts.mirror.nodes.find(&node).map(|seen| seen.uid);
                    let uid = uid.unwrap_or_default();
                    let about = FencedNode { name: node, uid, ..FencedNode::default() };
                    parts.tell(&about, &note).await;
                }
            });
        }
    }

    /// Waits for what is being written, and begins with what came meanwhile.
    pub async fn written<C: Cluster>(&mut self, parts: &Rc<Parts<C>>) {
        tokio::select! {
            Some(written) = self.writing.join_next(), if !self.writing.is_empty() => {
                self.stale |= !written.unwrap_or_default();
            }
            Some(_) = self.telling.join_next(), if !self.telling.is_empty() => {}
            else => std::future::pending().await,
        }
        self.write(parts);
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
    /// Its kubelet takes connections, so it is given a minute to renew its Lease.
    StillAnswers {
        /// Where.
        at: String,
    },
    /// These conditions are missing, Unknown or stale, so that a compound threshold cannot be decided.
    ConditionUnknown {
        /// Their types, with commas between them.
        conditions: String,
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
            Self::StillAnswers { .. } => "StillAnswers",
            Self::ConditionUnknown { .. } => "ConditionUnknown",
            Self::ApiFailed(_) => "ApiFailed",
        }
    }

    /// Whether it speaks of this threshold's remedy, by what it lacks or by its devices, and of no other one.
    pub fn is_of_remedy(&self) -> bool {
        match self {
            Self::NotReady(_) => true,
            Self::Hold(Hold::Gate(refusals)) => refusals.iter().all(|refusal| {
                matches!(
                    refusal,
                    Refusal::DeviceClosed(_)
                        | Refusal::MachineDisputed { .. }
                        | Refusal::NeighbourUnverified { .. }
                        | Refusal::DeviceNetworkLost { .. }
                )
            }),
            Self::Hold(_)
            | Self::Shadow { .. }
            | Self::StillAnswers { .. }
            | Self::ConditionUnknown { .. }
            | Self::ApiFailed(_) => false,
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
            Self::StillAnswers { at } => write!(
                f,
                "its Lease is overdue, but its kubelet accepts connections at {at}: it has a minute to renew"
            ),
            Self::ConditionUnknown { conditions } => write!(
                f,
                "the node is silent, and a threshold cannot be decided: missing, Unknown or stale conditions: {conditions}; \
                 check their types and what reports them, or add a threshold without them"
            ),
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
        Refusal::SilentAtOnce { .. } => "SilentAtOnce",
        Refusal::StormTail { .. } => "StormTail",
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
        Refusal::WatchBroken { .. } => "WatchBroken",
        Refusal::HeldByOther { .. } => "HeldByOther",
        Refusal::DeviceClosed(_) => "DeviceClosed",
        Refusal::MachineDisputed { .. } => "MachineDisputed",
        Refusal::NeighbourUnverified { .. } => "NeighbourUnverified",
        Refusal::DeviceNetworkLost { .. } => DEVICE_NETWORK_LOST,
        Refusal::CoolDown { .. } => "CoolDown",
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::Value;

    use super::*;
    use crate::cluster::ClusterError;
    use crate::testing::{Door, Request, example, play_behind};

    /// The Events of a night, and what its RemedyBudget said last.
    #[derive(Default)]
    struct Heard {
        events: RefCell<Vec<String>>,
        refusals: RefCell<Value>,
    }

    impl Door for Heard {
        async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
            let object = request.object().unwrap_or_default();
            if request.resource == "events" && request.verb == "create" {
                let text = |field| object[field].as_str().unwrap_or_default().to_owned();
                self.events.borrow_mut().push(format!("{}: {}", text("reason"), text("note")));
            }
            if let Some(refusals) = object.pointer("/status/refusals") {
                self.refusals.replace(refusals.clone());
            }
            Ok(())
        }
    }

    /// A policy of the name, with these thresholds.
    fn policy(name: &str, thresholds: &str) -> String {
        format!(
            "- object: {{ apiVersion: node-remedy.io/v1alpha1, kind: RemedyConfiguration, metadata: {{ name: {name} }}, \
             spec: {{ remedyConfigs: [{{ name: away, cluster: cordon }}], thresholdConfigs: [{thresholds}] }} }}"
        )
    }

    const SILENT: &str = "{ nodeLeaseAge: 20s, remedy1: [{ name: fence }] }";

    #[test]
    fn a_node_that_two_policies_select_is_left_alone_and_told_of() {
        let both = [policy("one", SILENT), policy("two", SILENT)].join("\n");
        let night =
            example("lost-node.yaml", |text| text.replace("- file: ../config/remedy.yaml", &both));
        let heard = Rc::new(Heard::default());
        let played = play_behind(&night, &heard);
        assert!(played.collected.incidents.is_empty());
        let told = heard.events.borrow().join("\n");
        assert!(told.starts_with("NotReady: ") && told.lines().count() == 1, "{told}");
        assert!(told.contains("one") && told.contains("two"), "{told}");
    }

    #[test]
    fn what_one_remedy_lacks_keeps_no_other_threshold_waiting() {
        let ill = "{ nodeConditionType: Ready, nodeConditionStatus: false, nodeConditionPeriod: 5s, \
                   remedy1: [{ name: away }] }";
        let thresholds = format!("{SILENT}, {ill}");
        let night = example("lost-node.yaml", |text| {
            let text = text.replace("- file: ../config/remedy.yaml", &policy("all", &thresholds));
            text.replace("name: bmc-credentials", "name: other-credentials")
        });
        let heard = Rc::new(Heard::default());
        let played = play_behind(&night, &heard);
        let remedies = played.collected.incidents.values().map(|(one, ..)| one.spec.remedy.clone());
        assert_eq!(remedies.collect::<Vec<_>>(), ["away"], "{:?}", heard.events);
        assert!(heard.events.borrow()[0].contains("bmc-credentials"), "{:?}", heard.events);
    }

    #[test]
    fn nothing_is_refused_of_a_node_that_is_gone() {
        for (deletes, lines) in [(false, 1), (true, 0)] {
            let night = example("lost-node.yaml", |text| {
                let text = text.replace("name: bmc-credentials", "name: other-credentials");
                let more = if deletes { "\n- { at: 5m, deleteNode: node-a }" } else { "" };
                text.replace("kubeletStops: node-a }", &format!("kubeletStops: node-a }}{more}"))
            });
            let heard = Rc::new(Heard::default());
            play_behind(&night, &heard);
            let told = heard.refusals.borrow();
            assert_eq!(told.as_array().map(Vec::len), Some(lines), "{:?}", heard.events);
        }
    }

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
