//! Tests of `node_remedy_act::budget` in the model cluster or a simulated run.

use std::cell::Cell;
use std::rc::Rc;

use node_remedy_act::budget::*;
use node_remedy_api::nodefence::{FencedNode, NodeFence, NodeFenceSpec, Trigger};
use node_remedy_api::plan::NodePlan;
use node_remedy_api::policy::{GateLimits, IncidentPolicy, TopologyLimit};
use node_remedy_api::remedybudget::InFlight;
use node_remedy_api::time::{Moment, Span};
use node_remedy_model_cluster::interceptor::{Guarded, Interceptor, Request};
use node_remedy_observe::caches::{Cached, Caches};
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_runtime::cluster::{Cluster, ClusterError};
use node_remedy_simulate::testing::in_quiet_world;
use serde_json::json;
use tokio::sync::mpsc;

fn entry(name: &str) -> InFlight {
    InFlight { node_fence: name.to_owned(), node_uid: format!("uid-of-{name}") }
}

/// Takes a slot where only their number counts.
async fn take_of<C: Cluster>(
    cluster: &C,
    epoch: u64,
    name: &str,
    max: u32,
) -> Result<Taken, ClusterError> {
    let caches = Caches::new(&mpsc::unbounded_channel().0);
    let limits = GateLimits { max_in_flight: max, ..GateLimits::default() };
    let room = Room { limits: &limits, caches: &caches };
    take(cluster, epoch, &entry(name), room).await
}

/// Somebody else always writes first.
struct Contended(Rc<Cell<u32>>);

impl Interceptor for Contended {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if !request.is_write() {
            return Ok(());
        }
        self.0.set(self.0.get() + 1);
        Err(ClusterError::Conflict("a lost race".to_owned()))
    }
}

#[test]
fn lost_races_pause_longer_each_time_and_end() {
    in_quiet_world(|bench| async move {
        let cluster = bench.client("a");
        let writes = Rc::new(Cell::new(0));
        let contended = Guarded::new(cluster, Rc::new(Contended(Rc::clone(&writes))));
        let began = tokio::time::Instant::now();
        let given_back = stamp(&contended, 1).await;
        assert!(matches!(given_back, Err(ClusterError::Conflict(_))), "{given_back:?}");
        assert_eq!(writes.get(), RACES_MAX);
        assert!(began.elapsed() >= RACE_PAUSE * 127, "{:?}", began.elapsed());
    });
}

/// The spec of an incident within these limits.
fn spec_within(gate: GateLimits) -> NodeFenceSpec {
    NodeFenceSpec {
        node: FencedNode::default(),
        trigger: Trigger {
            condition_type: "Ready".to_owned(),
            status: "Unknown".to_owned(),
            since: Moment::from_ms(1),
            period: Span::from_s(1),
            symptom: None,
            condition_stale_after: None,
        },
        remedy: "fence".to_owned(),
        plan: NodePlan::default(),
        policy: IncidentPolicy::default(),
        gate,
        ladder: Vec::new(),
    }
}

fn full(holders: &[&str]) -> Taken {
    Taken::Full(holders.iter().map(|&one| one.to_owned()).collect())
}

#[test]
fn only_so_many_slots_are_given() {
    in_quiet_world(|bench| async move {
        let cluster = bench.client("a");
        assert_eq!(take_of(&cluster, 1, "n-1", 0).await, Ok(full(&[])));
        assert_eq!(take_of(&cluster, 1, "n-1", 1).await, Ok(Taken::Yes));
        assert_eq!(take_of(&cluster, 1, "n-1", 1).await, Ok(Taken::Yes), "held already");
        assert_eq!(take_of(&cluster, 1, "m-1", 1).await, Ok(full(&["n-1"])));
        assert_eq!(give_back(&cluster, 1, &entry("n-1")).await, Ok(Taken::Yes));
        assert_eq!(take_of(&cluster, 1, "m-1", 1).await, Ok(Taken::Yes));
    });
}

/// Two that ask at once get one slot of their rack between them; what is in no rack may be in any.
#[test] // promise: A19
fn a_rack_gives_only_so_many_slots_whoever_asks_at_once() {
    in_quiet_world(|bench| async move {
        let caches = Caches::new(&mpsc::unbounded_channel().0);
        for (name, rack) in [("a-1", "r0"), ("b-1", "r0"), ("c-1", "r1"), ("d-1", "")] {
            let node = json!({"metadata": {
                "name": name, "uid": format!("uid-of-{name}"), "labels": {"rack": rack},
            }});
            let mut node = PrunedNode::of(serde_json::from_value(node).unwrap()).unwrap();
            node.labels.retain(|_, rack| !rack.is_empty());
            caches.nodes.apply(name.to_owned(), node);
        }
        let rack = TopologyLimit {
            key: "rack".to_owned(),
            max_unhealthy_percent: 50,
            max_in_flight: Some(1),
        };
        let topologies = vec![rack];
        let limits = GateLimits { max_in_flight: 9, topologies, ..GateLimits::default() };
        let cluster = bench.client("a");
        let ask = async |name: &str| {
            let room = Room { limits: &limits, caches: &caches };
            take(&cluster, 1, &entry(name), room).await
        };
        let answers: [_; 2] = tokio::join!(ask("a-1"), ask("b-1")).into();
        let is_first = answers.first() == Some(&Ok(Taken::Yes));
        let (holder, other) = if is_first { ("a-1", "b-1") } else { ("b-1", "a-1") };
        assert!(answers.contains(&Ok(Taken::Yes)), "{answers:?}");
        assert!(answers.contains(&Ok(full(&[holder]))), "{answers:?}");
        assert_eq!(ask(holder).await, Ok(Taken::Yes), "held already");
        assert_eq!(ask("c-1").await, Ok(Taken::Yes), "of another rack");
        assert_eq!(ask("d-1").await, Ok(full(&[holder, "c-1"])), "of no known rack");
        assert_eq!(ask("gone-1").await, Ok(full(&[holder, "c-1"])), "of no known node");
        assert_eq!(give_back(&cluster, 1, &entry(holder)).await, Ok(Taken::Yes));
        assert_eq!(ask(other).await, Ok(Taken::Yes));
    });
}

/// Whoever holds a slot was promised by its own policy to be one of so many.
#[test] // promise: A19
fn nobody_joins_a_holder_whose_limits_are_stricter() {
    in_quiet_world(|bench| async move {
        let caches = Caches::new(&mpsc::unbounded_channel().0);
        let strict = GateLimits { max_in_flight: 1, ..GateLimits::default() };
        let wide = GateLimits { max_in_flight: 9, ..GateLimits::default() };
        let holder = NodeFence::new("n-1", spec_within(strict.clone()));
        caches.nodefences.apply("n-1".to_owned(), Cached(holder));
        let cluster = bench.client("a");
        let ask = async |name: &str, limits: &GateLimits| {
            take(&cluster, 1, &entry(name), Room { limits, caches: &caches }).await
        };
        assert_eq!(ask("n-1", &strict).await, Ok(Taken::Yes));
        assert_eq!(ask("m-1", &wide).await, Ok(full(&["n-1"])));
        // No watch has told of it yet: the API server knows.
        caches.nodefences.remove("n-1");
        assert_eq!(ask("m-1", &wide).await, Ok(Taken::Yes), "a slot without its NodeFence");
        assert_eq!(give_back(&cluster, 1, &entry("m-1")).await, Ok(Taken::Yes));
        let holder = NodeFence::new("n-1", spec_within(strict.clone()));
        cluster.create(&holder).await.unwrap();
        assert_eq!(ask("m-1", &wide).await, Ok(full(&["n-1"])));
        assert_eq!(give_back(&cluster, 1, &entry("n-1")).await, Ok(Taken::Yes));
        assert_eq!(ask("m-1", &wide).await, Ok(Taken::Yes));
        assert_eq!(ask("o-1", &wide).await, Ok(Taken::Yes));
        // An incident that is seen to hold its slot spares others the way to the budget.
        let room = Room { limits: &wide, caches: &caches };
        let mut holder = NodeFence::new("n-1", spec_within(strict.clone()));
        caches.nodefences.apply("n-1".to_owned(), Cached(holder.clone()));
        assert!(!room.is_promised_away("uid-of-p-1"), "it holds none");
        let at = "2026-11-25T04:00:00.000Z";
        let status = json!({
            "node": "n", "step": "Isolation", "status": "New", "phase": "Waiting",
            "enteredAt": at, "openedAt": at, "attempt": 1, "phaseFirstOperation": 1,
            "retries": 0, "restarts": 0, "epoch": 1, "process": "p",
            "livenessAtOpen": {"bootID": "b"}, "nextOperation": 1, "slotHeld": true,
            "goal": {"kind": "bringBack"},
        });
        holder.status = Some(serde_json::from_value(status).unwrap());
        caches.nodefences.apply("n-1".to_owned(), Cached(holder));
        assert!(room.is_promised_away("uid-of-p-1"));
    });
}

#[test]
fn an_older_leader_takes_nothing() {
    in_quiet_world(|bench| async move {
        let (old, new) = (bench.client("old"), bench.client("new"));
        assert_eq!(take_of(&old, 1, "n-1", 9).await, Ok(Taken::Yes));
        assert_eq!(stamp(&new, 2).await, Ok(Taken::Yes));
        assert_eq!(take_of(&old, 1, "m-1", 9).await, Ok(Taken::NewerEpoch(2)));
        assert_eq!(epoch(&new).await, Ok(2));
    });
}

#[test]
fn two_leaders_never_take_the_last_slot_both() {
    in_quiet_world(|bench| async move {
        let (a, b) = (bench.client("a"), bench.client("b"));
        let (first, second) = tokio::join!(take_of(&a, 1, "n-1", 1), take_of(&b, 1, "m-1", 1));
        let taken = [first.unwrap(), second.unwrap()];
        assert_eq!(taken.iter().filter(|answer| **answer == Taken::Yes).count(), 1);
    });
}

#[test]
fn a_slot_without_its_nodefence_is_dropped_by_the_next_leader() {
    in_quiet_world(|bench| async move {
        let cluster = bench.client("a");
        take_of(&cluster, 1, "n-1", 1).await.unwrap();
        stamp(&cluster, 2).await.unwrap();
        assert_eq!(take_of(&cluster, 2, "m-1", 1).await, Ok(Taken::Yes));
    });
}
