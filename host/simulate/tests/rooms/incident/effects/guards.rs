//! What a guard goes by cannot be read: an API server that denies one request for as long as a run
//! lasts. Nothing is cut, and the reason says which guard it was.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use node_remedy_model_cluster::interceptor::{Interceptor, Request};
use node_remedy_record::reason::{Reason, hold_words};
use node_remedy_runtime::cluster::ClusterError;
use node_remedy_simulate::testing::{example, play_behind};
use node_remedy_world::Scenario;
use tokio::time::Instant;

use crate::incident::effects::cuts;

/// By then the caches are filled and one process leads; the node is lost later.
const FROM: Duration = Duration::from_secs(50);

/// An API server that denies one kind of request from [`FROM`] on.
struct Denies {
    verb: &'static str,
    resource: &'static str,
    namespace: Option<&'static str>,
    /// When the run began: its first request.
    began: OnceCell<Instant>,
    denied: Cell<usize>,
}

impl Interceptor for Denies {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let is_it = request.verb == self.verb
            && request.resource == self.resource
            && request.namespace == self.namespace;
        let since = self.began.get_or_init(Instant::now).elapsed();
        if !is_it || since < FROM {
            return Ok(());
        }
        self.denied.set(self.denied.get() + 1);
        Err(ClusterError::Denied("a row of the test".to_owned()))
    }
}

/// What is asked, within which namespace, and the word of the reason.
struct Row {
    verb: &'static str,
    resource: &'static str,
    namespace: Option<&'static str>,
    guard: &'static str,
}

const fn row(
    verb: &'static str,
    resource: &'static str,
    namespace: Option<&'static str>,
    guard: &'static str,
) -> Row {
    Row { verb, resource, namespace, guard }
}

const ROWS: [Row; 9] = [
    row("get", "leases", Some("medik8s-leases"), "ApiFailed"),
    row("get", "leases", Some("storage"), "StorageLeaseUnread"),
    row("list", "remedypauses", None, "VetoesUnread"),
    row("list", "nodemaintenances", None, "VetoesUnread"),
    row("list", "nodefences", None, "BreakerUnread"),
    row("get", "remedybudgets", None, "ApiFailed"),
    row("update", "remedybudgets", None, "ApiFailed"),
    row("get", "nodes", None, "ApiFailed"),
    row("get", "leases", Some("kube-node-lease"), "ApiFailed"),
];

/// A node is lost where every guard that reads anything is asked for.
fn run() -> Scenario {
    let guarded = "- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: RemedyConfiguration
    metadata: { name: guarded }
    spec:
      thresholdConfigs: [{ nodeLeaseAge: 20s, remedy1: [{ name: fence }] }]
      policies:
        storageLeases: { namespace: storage, maxAge: 40s }
        breaker: { maxIncidents: 3, window: 30m, coolDown: 20m }";
    example("lost-node.yaml", |text| text.replace("- file: ../config/remedy.yaml", guarded))
}

#[test] // promise: G4, G8, G9, G11, G14, G18
fn a_guard_that_cannot_be_read_cuts_nothing() {
    // The same run with everything readable: it is the row that keeps the node on.
    let open = row("no verb", "", None, "");
    assert_eq!(play(&open).0, 1);
    for row in ROWS {
        let (cuts, denied, reasons) = play(&row);
        let what = format!("{} {} in {:?}", row.verb, row.resource, row.namespace);
        assert!(denied > 0, "{what}: nobody asked");
        assert_eq!(cuts, 0, "{what}");
        assert!(reasons.contains(row.guard), "{what}: {reasons:?}");
    }
}

/// How often power was cut, how often the row's request was denied, and the words of all reasons.
fn play(row: &Row) -> (usize, usize, BTreeSet<String>) {
    let &Row { verb, resource, namespace, .. } = row;
    let interceptor =
        Rc::new(Denies { verb, resource, namespace, began: OnceCell::new(), denied: Cell::new(0) });
    let played = play_behind(&run(), &interceptor);
    let words = played.collected.refused.iter().flat_map(|refused| match &refused.reason {
        Reason::Hold(hold) => hold_words(hold).split(' ').map(str::to_owned).collect(),
        other @ (Reason::NotReady(_)
        | Reason::Shadow { .. }
        | Reason::StillAnswers { .. }
        | Reason::ConditionUnknown { .. }
        | Reason::ApiFailed(_)) => {
            vec![other.guard().to_owned()]
        }
    });
    (cuts(&played.facts), interceptor.denied.get(), words.collect())
}

/// An API server whose watches break in their second minute; those of NodeFences are not taken up
/// again, nor are these listed.
struct BreaksWatches {
    began: OnceCell<Instant>,
}

impl BreaksWatches {
    fn since(&self) -> Duration {
        self.began.get_or_init(Instant::now).elapsed()
    }
}

impl Interceptor for BreaksWatches {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let since = self.since();
        let is_it = request.resource == "nodefences" && matches!(request.verb, "list" | "watch");
        if is_it && since > FROM {
            return Err(ClusterError::Denied("no longer".to_owned()));
        }
        Ok(())
    }

    async fn told(&self, _: &str) -> Result<(), ClusterError> {
        // A watch that nothing comes of has a bookmark after a minute.
        if (55..65).contains(&self.since().as_secs()) {
            return Err(ClusterError::Unavailable("the connection broke".to_owned()));
        }
        Ok(())
    }
}

/// An API server whose first watch of policies brings nothing.
struct FreezesWatch {
    lists: Cell<u32>,
}

impl Interceptor for FreezesWatch {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if request.resource == "remedyconfigurations" && request.verb == "list" {
            self.lists.set(self.lists.get() + 1);
        }
        Ok(())
    }

    async fn told(&self, resource: &str) -> Result<(), ClusterError> {
        if resource == "remedyconfigurations" && self.lists.get() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// A connection that is there and silent looks like a cluster in which nothing changes, but for bookmarks.
#[test]
fn what_a_frozen_watch_did_not_tell_is_listed_before_anything_is_cut() {
    let interceptor = Rc::new(FreezesWatch { lists: Cell::new(0) });
    let run = example("lost-node.yaml", |text| {
        let shadow = "{ at: 20s, edit: { kind: RemedyConfiguration, name: bare-metal, merge: { spec: { mode: shadow } } } }";
        text.replace("- { at: 60s, kubelet", &format!("- {shadow}\n- {{ at: 200s, kubelet"))
    });
    let played = play_behind(&run, &interceptor);
    assert_eq!((cuts(&played.facts), interceptor.lists.get()), (0, 2));
}

/// What became of other incidents closes devices and begins cool-downs, and is read from what is watched.
#[test] // promise: G12
fn a_leader_whose_watch_of_incidents_is_broken_begins_nothing_and_says_so() {
    let interceptor = Rc::new(BreaksWatches { began: OnceCell::new() });
    let played = play_behind(&example("lost-node.yaml", |text| text), &interceptor);
    assert_eq!(cuts(&played.facts), 0);
    let last = played.collected.refused.last().map(|refused| refused.reason.clone());
    let said = last.as_ref().map(ToString::to_string).unwrap_or_default();
    assert_eq!(last.as_ref().map(Reason::guard), Some("ApiFailed"), "{said}");
    assert!(said.contains("nodefences"), "{said}");
}
