//! The one cluster object that every opening of an incident is a compare-and-swap on.
//!
//! Two leaders cannot open two incidents: both would have to write `RemedyBudget/default`,
//! and only one write wins; a budget stamped with a larger epoch refuses the older
//! leader altogether. An entry without its NodeFence is what a crash between the two
//! writes leaves, one whose NodeFence is Final what a failed return leaves; both are
//! removed when a leader begins, and when somebody finds no slot left.

use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::policy::{GateLimits, TopologyLimit};
use node_remedy_api::remedybudget::{InFlight, NAME, RemedyBudget, RemedyBudgetSpec};
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_observe::caches::Caches;
use node_remedy_observe::nodefences::{holds_slot, is_open};
use node_remedy_runtime::cluster::{At, Cluster, ClusterError};

/// A lost race is run again; more than this many in a row is somebody gone wild.
pub const RACES_MAX: u32 = 8;
/// The pause after the first lost race; each later one is twice as long.
pub const RACE_PAUSE: Duration = Duration::from_millis(25);

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

/// How many incidents may hold a slot, and which nodes share a failure domain.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    /// A policy's limits.
    pub limits: &'a GateLimits,
    /// Knows the nodes and their labels.
    pub caches: &'a Caches,
}

impl Room<'_> {
    /// Whether an incident on this node would join somebody against the limits that they hold a slot by, as far as
    /// the cache knows: whoever asks is spared the way to the budget.
    pub fn is_promised_away(self, node_uid: &str) -> bool {
        let entry = InFlight { node_fence: String::new(), node_uid: node_uid.to_owned() };
        let nodefences = self.caches.nodefences.all();
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
            let known = self.caches.nodefences.find(name).map(|kept| kept.0);
            let found = match known {
                Some(known) => Some(known),
                None => match cluster.get::<NodeFence>(At::cluster(name)).await {
                    // As the watch has it, too: not a garbled answer.
                    Err(ClusterError::Unreadable(_))
                        if self.caches.nodefences.unread().contains_key(name) =>
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
        let nodes = self.caches.nodes.all();
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

/// The budget's entry of an incident.
pub fn slot_of(nodefence: &NodeFence) -> node_remedy_api::remedybudget::InFlight {
    node_remedy_api::remedybudget::InFlight {
        node_fence: nodefence.name_any(),
        node_uid: nodefence.spec.node.uid.clone(),
    }
}
