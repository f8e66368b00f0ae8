//! The one cluster object that every opening of a run is a compare-and-swap on.
//!
//! Two leaders cannot open two runs: both would have to write `RemedyBudget/default`,
//! and only one write wins; a budget stamped with a larger epoch refuses the older
//! leader altogether. An entry without its NodeFence is what a crash between the two
//! writes leaves, one whose NodeFence is Final what a failed return leaves; both are
//! removed when a leader begins, and when somebody finds no slot left.

use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::policy::{GateLimits, TopologyLimit};
use node_remedy_api::remedybudget::{InFlight, NAME, RemedyBudget, RemedyBudgetSpec};
use node_remedy_decide::bug::{Bug, guard};

use crate::cluster::{At, Cluster, ClusterError};
use crate::observe::Mirror;
use crate::observe::view::{holds_slot, is_open};
use crate::reconcile::slot_of;

/// A lost race is run again; more than this many in a row is somebody gone wild.
const RACES_MAX: u32 = 8;
/// The pause after the first lost race; each later one is twice as long.
const RACE_PAUSE: Duration = Duration::from_millis(25);

/// The answer to asking for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It is held, or was held already.
    Yes,
    /// None is left for it, because of these holders.
    Full(Vec<String>),
    /// A newer leader has stamped the budget.
    NewerEpoch(u64),
}

/// The largest epoch in the budget; zero where there is none yet.
pub async fn epoch<C: Cluster>(cluster: &C) -> Result<u64, ClusterError> {
    let budget = cluster.get::<RemedyBudget>(At::cluster(NAME)).await?;
    Ok(budget.map_or(0, |budget| budget.spec.epoch))
}

/// Stamps the budget with a new leader's epoch and drops entries without an open NodeFence.
pub async fn stamp<C: Cluster>(cluster: &C, epoch: u64) -> Result<Taken, ClusterError> {
    edit(cluster, epoch, async |cluster, spec| {
        let mut kept = Vec::new();
        for entry in spec.in_flight.drain(..) {
            let holds = match cluster.get::<NodeFence>(At::cluster(&entry.node_fence)).await {
                Ok(found) => found.as_ref().is_some_and(is_open),
                // It is there, and nobody knows whether it is over.
                Err(ClusterError::Unreadable(_)) => true,
                Err(error) => return Err(error),
            };
            if holds {
                kept.push(entry);
            } else {
                tracing::warn!(nodefence = entry.node_fence, "dropped a slot that nobody holds");
            }
        }
        spec.in_flight = kept;
        Ok(Taken::Yes)
    })
    .await
}

/// Takes a slot for `entry` if `room` is left, of all nodes and of each failure domain that its node is in.
pub async fn take<C: Cluster>(
    cluster: &C,
    epoch: u64,
    entry: &InFlight,
    room: Room<'_>,
) -> Result<Taken, ClusterError> {
    edit(cluster, epoch, async |cluster, spec| {
        if spec.in_flight.contains(entry) {
            return Ok(Taken::Yes);
        }
        let promised = room.promised(cluster, &spec.in_flight).await?;
        if let Some(holders) = room.is_full(entry, &spec.in_flight, &promised) {
            return Ok(Taken::Full(holders));
        }
        spec.in_flight.push(entry.clone());
        spec.in_flight.sort();
        Ok(Taken::Yes)
    })
    .await
}

/// How many runs may hold a slot, and which nodes share a failure domain.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    /// A policy's limits.
    pub limits: &'a GateLimits,
    /// Knows the nodes and their labels.
    pub mirror: &'a Mirror,
}

impl Room<'_> {
    /// Whether a run on this node would join somebody against the limits that they hold a slot by, as far as
    /// the cache knows: whoever asks is spared the way to the budget.
    pub fn is_promised_away(self, node_uid: &str) -> bool {
        let entry = InFlight { node_fence: String::new(), node_uid: node_uid.to_owned() };
        let nodefences = self.mirror.nodefences.all();
        let holders = nodefences.values().map(|kept| &kept.0).filter(|one| holds_slot(one));
        let holders: Vec<&NodeFence> = holders.collect();
        let held: Vec<InFlight> = holders.iter().map(|one| slot_of(one)).collect();
        let mut promises = held.iter().zip(&holders);
        promises.any(|(owner, one)| self.is_broken(owner, &one.spec.gate, &entry, &held).is_some())
    }

    /// By which limits those hold their slots. What the cache does not have yet is asked for. Whose NodeFence cannot be
    /// read has a slot all the same, and nobody knows what it was promised.
    async fn promised<C: Cluster>(
        self,
        cluster: &C,
        held: &[InFlight],
    ) -> Result<BTreeMap<String, GateLimits>, ClusterError> {
        let mut promised = BTreeMap::new();
        for InFlight { node_fence: name, .. } in held {
            let known = self.mirror.nodefences.find(name).map(|kept| kept.0);
            let found = match known {
                Some(known) => Some(known),
                None => match cluster.get::<NodeFence>(At::cluster(name)).await {
                    // As the watch has it, too: not a garbled answer.
                    Err(ClusterError::Unreadable(_))
                        if self.mirror.nodefences.unread().contains_key(name) =>
                    {
                        None
                    }
                    found => found?,
                },
            };
            // An entry without its NodeFence promises nothing, and goes with the next stamp.
            promised.extend(found.map(|found| (name.clone(), found.spec.gate)));
        }
        Ok(promised)
    }

    /// Who holds the slots, where none is left for `entry`: by its own limits, or by those of somebody who holds
    /// one and is promised to be one of so many.
    fn is_full(
        self,
        entry: &InFlight,
        held: &[InFlight],
        promised: &BTreeMap<String, GateLimits>,
    ) -> Option<Vec<String>> {
        let theirs = held.iter().filter_map(|one| Some((one, promised.get(&one.node_fence)?)));
        let mut promises = iter::once((entry, self.limits)).chain(theirs);
        let full =
            promises.find_map(|(owner, limits)| self.is_broken(owner, limits, entry, held))?;
        Some(full.into_iter().map(|holder| holder.node_fence.clone()).collect())
    }

    /// Those who hold slots in the way of `entry`, by the limits of `owner`: one of them, or itself.
    fn is_broken<'h>(
        self,
        owner: &InFlight,
        limits: &GateLimits,
        entry: &InFlight,
        held: &'h [InFlight],
    ) -> Option<Vec<&'h InFlight>> {
        let is_full = |holders: &Vec<&InFlight>, max: u32| {
            holders.len() >= usize::try_from(max).unwrap_or(usize::MAX)
        };
        let all: Vec<&InFlight> = held.iter().collect();
        if guard(Bug::SlotsUnlimited, is_full(&all, limits.max_in_flight)) {
            return Some(all);
        }
        for TopologyLimit { key, max_in_flight, .. } in &limits.topologies {
            let Some(max) = *max_in_flight else { continue };
            let own = self.domain_of(owner, key);
            // A node that is gone, or has no label, may be of any domain.
            let shares = |other: &InFlight| {
                let domain = self.domain_of(other, key);
                own.is_none() || domain.is_none() || domain == own
            };
            let sharing: Vec<&InFlight> = held.iter().filter(|other| shares(other)).collect();
            if shares(entry) && guard(Bug::ZoneSlotsUnlimited, is_full(&sharing, max)) {
                return Some(sharing);
            }
        }
        None
    }

    fn domain_of(self, entry: &InFlight, key: &str) -> Option<String> {
        let nodes = self.mirror.nodes.all();
        let node = nodes.values().find(|node| node.uid == entry.node_uid)?;
        node.labels.get(key).cloned()
    }
}

/// Gives the slot of `entry` back.
pub async fn give_back<C: Cluster>(
    cluster: &C,
    epoch: u64,
    entry: &InFlight,
) -> Result<Taken, ClusterError> {
    edit(cluster, epoch, async |_, spec| {
        spec.in_flight.retain(|held| held != entry);
        Ok(Taken::Yes)
    })
    .await
}

/// Reads, edits and writes until no one else wrote in between.
async fn edit<C: Cluster>(
    cluster: &C,
    epoch: u64,
    change: impl AsyncFn(&C, &mut RemedyBudgetSpec) -> Result<Taken, ClusterError>,
) -> Result<Taken, ClusterError> {
    let mut last = ClusterError::Conflict("the budget keeps changing".to_owned());
    for race in 0..RACES_MAX {
        if race > 0 {
            tokio::time::sleep(RACE_PAUSE * (1 << (race - 1))).await;
        }
        let found = cluster.get::<RemedyBudget>(At::cluster(NAME)).await?;
        let mut budget = found.clone().unwrap_or_else(empty);
        if budget.spec.epoch > epoch {
            return Ok(Taken::NewerEpoch(budget.spec.epoch));
        }
        let before = budget.spec.clone();
        budget.spec.epoch = epoch;
        let answer = change(cluster, &mut budget.spec).await?;
        if found.is_some() && budget.spec == before {
            return Ok(answer);
        }
        let written = match found {
            Some(_) => cluster.replace(&budget).await,
            None => cluster.create(&budget).await,
        };
        match written {
            Ok(_) => return Ok(answer),
            Err(error @ (ClusterError::Conflict(_) | ClusterError::AlreadyExists(_))) => {
                last = error;
            }
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

fn empty() -> RemedyBudget {
    RemedyBudget {
        metadata: ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() },
        spec: RemedyBudgetSpec::default(),
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use node_remedy_api::nodefence::{FencedNode, NodeFenceSpec, Trigger};
    use node_remedy_api::plan::NodePlan;
    use node_remedy_api::policy::RunPolicy;
    use node_remedy_api::time::{Moment, Span};
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::*;
    use crate::observe::Kept;
    use crate::observe::seen::NodeSeen;
    use crate::simulate::door::Guarded;
    use crate::testing::{Door, Request, in_quiet_world};

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
        let mirror = Mirror::new(&mpsc::unbounded_channel().0);
        let limits = GateLimits { max_in_flight: max, ..GateLimits::default() };
        let room = Room { limits: &limits, mirror: &mirror };
        take(cluster, epoch, &entry(name), room).await
    }

    /// Somebody else always writes first.
    struct Contended(Rc<Cell<u32>>);

    impl Door for Contended {
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

    /// The spec of a run within these limits.
    fn spec_within(gate: GateLimits) -> NodeFenceSpec {
        NodeFenceSpec {
            node: FencedNode::default(),
            trigger: Trigger {
                condition_type: "Ready".to_owned(),
                status: "Unknown".to_owned(),
                since: Moment::from_ms(1),
                period: Span::from_s(1),
                sign: None,
                condition_stale_after: None,
            },
            remedy: "fence".to_owned(),
            plan: NodePlan::default(),
            policy: RunPolicy::default(),
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
    #[test]
    fn a_rack_gives_only_so_many_slots_whoever_asks_at_once() {
        in_quiet_world(|bench| async move {
            let mirror = Mirror::new(&mpsc::unbounded_channel().0);
            for (name, rack) in [("a-1", "r0"), ("b-1", "r0"), ("c-1", "r1"), ("d-1", "")] {
                let node = json!({"metadata": {
                    "name": name, "uid": format!("uid-of-{name}"), "labels": {"rack": rack},
                }});
                let mut node = NodeSeen::of(serde_json::from_value(node).unwrap()).unwrap();
                node.labels.retain(|_, rack| !rack.is_empty());
                mirror.nodes.apply(name.to_owned(), node);
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
                let room = Room { limits: &limits, mirror: &mirror };
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
    #[test]
    fn nobody_joins_a_holder_whose_limits_are_stricter() {
        in_quiet_world(|bench| async move {
            let mirror = Mirror::new(&mpsc::unbounded_channel().0);
            let strict = GateLimits { max_in_flight: 1, ..GateLimits::default() };
            let wide = GateLimits { max_in_flight: 9, ..GateLimits::default() };
            let holder = NodeFence::new("n-1", spec_within(strict.clone()));
            mirror.nodefences.apply("n-1".to_owned(), Kept(holder));
            let cluster = bench.client("a");
            let ask = async |name: &str, limits: &GateLimits| {
                take(&cluster, 1, &entry(name), Room { limits, mirror: &mirror }).await
            };
            assert_eq!(ask("n-1", &strict).await, Ok(Taken::Yes));
            assert_eq!(ask("m-1", &wide).await, Ok(full(&["n-1"])));
            // No watch has told of it yet: the API server knows.
            mirror.nodefences.remove("n-1");
            assert_eq!(ask("m-1", &wide).await, Ok(Taken::Yes), "a slot without its NodeFence");
            assert_eq!(give_back(&cluster, 1, &entry("m-1")).await, Ok(Taken::Yes));
            let holder = NodeFence::new("n-1", spec_within(strict.clone()));
            cluster.create(&holder).await.unwrap();
            assert_eq!(ask("m-1", &wide).await, Ok(full(&["n-1"])));
            assert_eq!(give_back(&cluster, 1, &entry("n-1")).await, Ok(Taken::Yes));
            assert_eq!(ask("m-1", &wide).await, Ok(Taken::Yes));
            assert_eq!(ask("o-1", &wide).await, Ok(Taken::Yes));
            // A run that is seen to hold its slot spares others the way to the budget.
            let room = Room { limits: &wide, mirror: &mirror };
            let mut holder = NodeFence::new("n-1", spec_within(strict.clone()));
            mirror.nodefences.apply("n-1".to_owned(), Kept(holder.clone()));
            assert!(!room.is_promised_away("uid-of-p-1"), "it holds none");
            let at = "2026-11-25T04:00:00.000Z";
            let status = json!({
                "node": "n", "step": "Isolation", "status": "New", "phase": "Waiting",
                "enteredAt": at, "openedAt": at, "attempt": 1, "phaseFirstOperation": 1,
                "retries": 0, "restarts": 0, "epoch": 1, "process": "p",
                "signsAtOpen": {"bootID": "b"}, "nextOperation": 1, "slotHeld": true,
                "goal": {"kind": "bringBack"},
            });
            holder.status = Some(serde_json::from_value(status).unwrap());
            mirror.nodefences.apply("n-1".to_owned(), Kept(holder));
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
}
