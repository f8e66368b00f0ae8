//! The one cluster object that every opening of a run is a compare-and-swap on.
//!
//! Two leaders cannot open two runs: both would have to write `RemedyBudget/default`,
//! and only one write wins; a budget stamped with a larger epoch refuses the older
//! leader altogether. An entry without its NodeFence is what a crash between the two
//! writes leaves, one whose NodeFence is Final what a failed return leaves; both are
//! removed before anything is opened.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::remedybudget::{InFlight, NAME, RemedyBudget, RemedyBudgetSpec};
use node_remedy_decide::bug::{Bug, guard};

use crate::cluster::{At, Cluster, ClusterError};
use crate::observe::view::is_open;

/// A lost race is run again; more than this many in a row is somebody gone wild.
const RACES_MAX: usize = 8;

/// The answer to asking for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It is held, or was held already.
    Yes,
    /// All are held by these NodeFences.
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
            let found = cluster.get::<NodeFence>(At::cluster(&entry.node_fence)).await?;
            if found.as_ref().is_some_and(is_open) {
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

/// Takes a slot for `entry` if fewer than `max` are held.
pub async fn take<C: Cluster>(
    cluster: &C,
    epoch: u64,
    entry: &InFlight,
    max: u32,
) -> Result<Taken, ClusterError> {
    edit(cluster, epoch, async |_, spec| {
        if spec.in_flight.contains(entry) {
            return Ok(Taken::Yes);
        }
        let is_full = spec.in_flight.len() >= usize::try_from(max).unwrap_or(usize::MAX);
        if guard(Bug::SlotsUnlimited, is_full) {
            let holders = spec.in_flight.iter().map(|entry| entry.node_fence.clone());
            return Ok(Taken::Full(holders.collect()));
        }
        spec.in_flight.push(entry.clone());
        spec.in_flight.sort();
        Ok(Taken::Yes)
    })
    .await
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
    for _ in 0..RACES_MAX {
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
    use super::*;
    use crate::testing::in_quiet_world;

    fn entry(name: &str) -> InFlight {
        InFlight { node_fence: name.to_owned(), node_uid: format!("uid-of-{name}") }
    }

    #[test]
    fn only_so_many_slots_are_given() {
        in_quiet_world(|bench| async move {
            let cluster = bench.client("a");
            assert_eq!(take(&cluster, 1, &entry("n-1"), 1).await, Ok(Taken::Yes));
            assert_eq!(take(&cluster, 1, &entry("n-1"), 1).await, Ok(Taken::Yes), "held already");
            let full = Taken::Full(vec!["n-1".to_owned()]);
            assert_eq!(take(&cluster, 1, &entry("m-1"), 1).await, Ok(full));
            assert_eq!(give_back(&cluster, 1, &entry("n-1")).await, Ok(Taken::Yes));
            assert_eq!(take(&cluster, 1, &entry("m-1"), 1).await, Ok(Taken::Yes));
        });
    }

    #[test]
    fn an_older_leader_takes_nothing() {
        in_quiet_world(|bench| async move {
            let (old, new) = (bench.client("old"), bench.client("new"));
            assert_eq!(take(&old, 1, &entry("n-1"), 9).await, Ok(Taken::Yes));
            assert_eq!(stamp(&new, 2).await, Ok(Taken::Yes));
            assert_eq!(take(&old, 1, &entry("m-1"), 9).await, Ok(Taken::NewerEpoch(2)));
            assert_eq!(epoch(&new).await, Ok(2));
        });
    }

    #[test]
    fn two_leaders_never_take_the_last_slot_both() {
        in_quiet_world(|bench| async move {
            let (a, b) = (bench.client("a"), bench.client("b"));
            let (n, m) = (entry("n-1"), entry("m-1"));
            let (first, second) = tokio::join!(take(&a, 1, &n, 1), take(&b, 1, &m, 1));
            let taken = [first.unwrap(), second.unwrap()];
            assert_eq!(taken.iter().filter(|answer| **answer == Taken::Yes).count(), 1);
        });
    }

    #[test]
    fn a_slot_without_its_nodefence_is_dropped_by_the_next_leader() {
        in_quiet_world(|bench| async move {
            let cluster = bench.client("a");
            take(&cluster, 1, &entry("n-1"), 1).await.unwrap();
            stamp(&cluster, 2).await.unwrap();
            assert_eq!(take(&cluster, 2, &entry("m-1"), 1).await, Ok(Taken::Yes));
        });
    }
}
