//! Events about nodes, such as node-problem-detector's. They are watched only while a threshold
//! asks for some, and only those are kept that it asks for: the newest of each node.
//!
//! The two APIs for Events serve the same objects; this is the older one, which carries counts and
//! can be selected by what it is about.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::rc::Rc;

use k8s_openapi::api::core::v1::Event;
use node_remedy_decide::{EventView, Span, Time};
use node_remedy_runtime::clock::{Clock, time_of};
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{Cluster, ClusterError, Scope};
use tokio::sync::{mpsc, watch};

use crate::reflector::{OnAnswer, reflect};
use crate::store::{Changed, Store};

/// Where Events about objects without a namespace are written.
pub const NAMESPACE: &str = "default";
/// Kept of one node; a sign counts to a hundred, and each may stand for many occurrences.
const EVENTS_OF_NODE_MAX: usize = 256;
/// An API server keeps Events for an hour, and no sign asks for older ones.
const KEPT_FOR: Span = Span::minutes(61);
/// What Kubernetes' own client counts in one Event at once, and how often more of it: its filter against spam. What says
/// more was written by hand.
const COUNT_AT_ONCE: u32 = 25;
const COUNT_EVERY: Span = Span::minutes(5);
/// Our own Events are no sign of anything.
const OURS: &str = "node-remedy.io/controller";

/// An Event about a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrunedEvent {
    /// `metadata.uid`.
    pub uid: String,
    /// The node's name.
    pub node: String,
    /// What stands as the node's UID: where kubelets and node-problem-detector write, the name again.
    pub node_uid: String,
    /// Its reason.
    pub reason: String,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// The component that wrote it.
    pub source: String,
    /// So often it happened.
    pub count: u32,
    /// When it did first, by whoever wrote it.
    pub first: Time,
    /// When it did last, likewise.
    pub last: Time,
}

impl PrunedEvent {
    /// Reads what matters of an Event about a node; `None` for any other one, and for our own.
    pub fn of(event: Event) -> Option<Self> {
        let about = event.involved_object;
        if about.kind.as_deref() != Some("Node") {
            return None;
        }
        let source = event.source.unwrap_or_default().component.filter(|name| !name.is_empty());
        let source = source.or(event.reporting_component).unwrap_or_default();
        if source == OURS {
            return None;
        }
        let series = event.series.unwrap_or_default();
        let count = event.count.max(series.count).unwrap_or(1).max(1);
        let micro = event.event_time.map(|stamp| time_of(&stamp.0));
        let first = event.first_timestamp.map(|stamp| time_of(&stamp.0)).or(micro);
        let last = [
            event.last_timestamp.map(|stamp| time_of(&stamp.0)),
            series.last_observed_time.map(|stamp| time_of(&stamp.0)),
            micro,
        ];
        let last = last.into_iter().flatten().max().or(first)?;
        let first = first.unwrap_or(last);
        Some(Self {
            uid: event.metadata.uid?,
            node: about.name?,
            node_uid: about.uid.unwrap_or_default(),
            reason: event.reason.unwrap_or_default(),
            kind: event.type_.unwrap_or_default(),
            source,
            count: u32::try_from(count).unwrap_or(1).min(count_max(last.since(first))),
            first,
            last,
        })
    }

    /// Whether it is about this very Node object, and not about one of that name before it, or about none.
    pub fn is_about(&self, name: &str, uid: &str) -> bool {
        self.node == name && (self.node_uid == uid || self.node_uid == name)
    }

    /// As decisions see it; when it happened is told by `clock`.
    pub fn view(&self, clock: &Clock) -> EventView {
        EventView {
            reason: self.reason.clone(),
            kind: self.kind.clone(),
            source: self.source.clone(),
            count: self.count,
            first: clock.when(self.first),
            last: clock.when(self.last),
        }
    }
}

/// The most that an honest component counts in one Event of this length.
fn count_max(length: Span) -> u32 {
    let steady = length.0.checked_div(COUNT_EVERY.0).unwrap_or_default();
    COUNT_AT_ONCE.saturating_add(u32::try_from(steady).unwrap_or(u32::MAX))
}

/// The Events that are asked for.
pub struct NodeEvents {
    asked: watch::Sender<BTreeSet<String>>,
    /// Which node each Event is about; that of its own is in `by_node`.
    store: Rc<Store<About>>,
    by_node: Rc<RefCell<ByNode>>,
}

/// Events by node and UID.
type ByNode = BTreeMap<String, BTreeMap<String, PrunedEvent>>;

/// A version of an Event, and its node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct About {
    node: String,
    count: u32,
    last: Time,
}

impl NodeEvents {
    /// None yet; news are reported to `changes`.
    pub fn new(changes: &mpsc::UnboundedSender<Changed>) -> Self {
        let store = Store::new("Event", changes.clone());
        Self { asked: watch::Sender::default(), store, by_node: Rc::default() }
    }

    /// From now on Events with these reasons are asked for.
    pub fn ask(&self, reasons: BTreeSet<String>) {
        self.asked.send_if_modified(|asked| {
            let is_new = *asked != reasons;
            *asked = reasons;
            is_new
        });
    }

    /// The node that an Event of the store is about.
    pub fn node_of(&self, key: &str) -> Option<String> {
        self.store.find(key).map(|about| about.node)
    }

    /// What is known of a node; `None` while nothing is asked for or nothing was listed.
    pub fn of(&self, node: &str) -> Option<Vec<PrunedEvent>> {
        let is_known = !self.asked.borrow().is_empty() && self.store.is_synced();
        let events = self.by_node.borrow();
        is_known.then(|| events.get(node).into_iter().flat_map(BTreeMap::values).cloned().collect())
    }

    /// The same by a quorum read; `None` while nothing is asked for.
    pub async fn live<C: Cluster>(
        &self,
        cluster: &C,
        node: &str,
    ) -> Result<Option<Vec<PrunedEvent>>, ClusterError> {
        let asked = self.asked.borrow().clone();
        if asked.is_empty() {
            return Ok(None);
        }
        let about = about_nodes().matching("involvedObject.name", node);
        let mut events = Vec::new();
        // One that cannot be read is no sign.
        let keep = |read: Read<Event>| events.extend(read.ok().and_then(PrunedEvent::of));
        cluster.list_each(&about, keep).await?;
        events.retain(|one| asked.contains(&one.reason));
        events.sort_by_key(|one| std::cmp::Reverse(one.last));
        events.truncate(EVENTS_OF_NODE_MAX);
        Ok(Some(events))
    }

    /// Watches while something is asked for, and lists again when that is something else.
    pub fn kept<C: Cluster>(
        &self,
        cluster: C,
        clock: Clock,
        heard: OnAnswer,
    ) -> impl Future<Output = Infallible> + use<C> {
        let (store, by_node) = (self.store.clone(), self.by_node.clone());
        let mut asked = self.asked.subscribe();
        async move {
            loop {
                let reasons = asked.borrow_and_update().clone();
                store.clear();
                by_node.borrow_mut().clear();
                let kept = async {
                    if reasons.is_empty() {
                        std::future::pending::<()>().await;
                    }
                    let (by_node, clock) = (by_node.clone(), clock.clone());
                    let see = move |event: Event, _: Option<&About>| {
                        let seen =
                            PrunedEvent::of(event).filter(|one| reasons.contains(&one.reason))?;
                        Some(note(&mut by_node.borrow_mut(), seen, clock.now()))
                    };
                    reflect(cluster.clone(), about_nodes(), store.clone(), see, heard.clone())
                        .await;
                };
                tokio::select! {
                    () = kept => {}
                    changed = asked.changed() => if changed.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            }
        }
    }
}

fn about_nodes() -> Scope {
    Scope::within(NAMESPACE).matching("involvedObject.kind", "Node")
}

/// Keeps the newest of each node, and of no node what is too old to count.
fn note(by_node: &mut ByNode, seen: PrunedEvent, now: Time) -> About {
    let about = About { node: seen.node.clone(), count: seen.count, last: seen.last };
    if !by_node.contains_key(&seen.node) {
        by_node.retain(|_, events| events.values().any(|one| now.since(one.last) <= KEPT_FOR));
    }
    let events = by_node.entry(seen.node.clone()).or_default();
    events.insert(seen.uid.clone(), seen);
    events.retain(|_, one| now.since(one.last) <= KEPT_FOR);
    while events.len() > EVENTS_OF_NODE_MAX {
        let oldest = events.values().min_by_key(|one| one.last).map(|one| one.uid.clone());
        let Some(oldest) = oldest else { break };
        events.remove(&oldest);
    }
    about
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(uid: &str, more: &Value) -> Option<PrunedEvent> {
        let mut object = json!({
            "metadata": {"name": uid, "namespace": "default", "uid": uid},
            "involvedObject": {"kind": "Node", "name": "node-a"},
            "reason": "KernelOops",
            "type": "Warning",
            "source": {"component": "kernel-monitor"},
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:05:00Z",
            "count": 3,
        });
        json_patch::merge(&mut object, more);
        PrunedEvent::of(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn an_event_says_how_often_and_when_in_either_form() {
        let old = event("a", &json!({})).unwrap();
        assert_eq!((old.count, old.last.since(old.first)), (3, Span::minutes(5)));
        let new = event(
            "b",
            &json!({
                "source": null, "reportingComponent": "kernel-monitor", "firstTimestamp": null,
                "lastTimestamp": null, "count": null, "eventTime": "2026-01-01T00:00:00.000000Z",
                "series": {"count": 3, "lastObservedTime": "2026-01-01T00:05:00.000000Z"},
            }),
        );
        assert_eq!(new, Some(PrunedEvent { uid: "b".to_owned(), ..old }));
        let once = event("c", &json!({"count": null, "lastTimestamp": null})).unwrap();
        assert_eq!((once.count, once.first), (1, once.last));
        assert_eq!(event("d", &json!({"involvedObject": {"kind": "Pod"}})), None);
        assert_eq!(event("e", &json!({"source": {"component": OURS}})), None);
    }

    /// An Event is anybody's word who may create one in its namespace.
    #[test]
    fn what_was_written_by_hand_counts_no_more_than_a_component_would_say() {
        let at_once = json!({"count": 100, "firstTimestamp": "2026-01-01T00:05:00Z"});
        assert_eq!(event("a", &at_once).unwrap().count, 25);
        assert_eq!(event("b", &json!({"count": 100})).unwrap().count, 26);
        assert_eq!(event("c", &json!({"count": 26})).unwrap().count, 26);
        assert_eq!(event("d", &json!({"count": -7})).unwrap().count, 1);
        for (uid, is_so) in
            [("uid-a", true), ("node-a", true), ("uid-of-before", false), ("", false)]
        {
            let seen = event("e", &json!({"involvedObject": {"uid": uid}})).unwrap();
            assert_eq!(seen.is_about("node-a", "uid-a"), is_so, "{uid:?}");
            assert!(!seen.is_about("node-b", "uid-a"));
        }
        assert!(!event("f", &json!({})).unwrap().is_about("node-a", "uid-a"), "about no object");
    }

    #[test]
    fn only_the_newest_events_of_a_node_are_kept() {
        let mut by_node = ByNode::new();
        let mut now = Time(0);
        for number in 0..300 {
            let stamp = format!("2026-01-01T00:{:02}:{:02}Z", 5 + number / 60, number % 60);
            let seen = event(&format!("e{number}"), &json!({"lastTimestamp": stamp})).unwrap();
            now = seen.last;
            note(&mut by_node, seen, now);
        }
        let kept = &by_node["node-a"];
        assert_eq!(kept.len(), EVENTS_OF_NODE_MAX);
        assert!(kept.values().all(|one| now.since(one.last) < Span::seconds(256)), "{kept:?}");
        let other = event("x", &json!({"involvedObject": {"name": "node-b"}})).unwrap();
        note(&mut by_node, other, now.after(KEPT_FOR).after(Span(1)));
        assert_eq!(by_node.keys().collect::<Vec<_>>(), ["node-b"]);
    }
}
