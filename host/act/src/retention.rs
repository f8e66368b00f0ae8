//! How long the records of ended incidents are kept: history for people, with an end.
//!
//! Only Final ones are ever removed. Some of each node always stay, also because the next
//! one's number and the cool-down are read from the last one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_decide::{Span, Time};
use node_remedy_observe::caches::Caches;
use node_remedy_observe::device_quarantine;
use node_remedy_runtime::cluster::{At, Cluster, DeleteHow};

/// Two weeks are kept whatever their number: questions about an incident are asked within them.
const KEPT: Span = Span::minutes(14 * 24 * 60);
/// So many of each node are kept whatever their age.
const KEPT_PER_NODE: usize = 10;
/// Deleted in one go; the rest follows with the next incident that ends.
const DELETED_AT_ONCE: usize = 100;

/// An incident that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ended {
    node: String,
    name: String,
    uid: Option<String>,
    at: Time,
}

/// Removes what need not be kept any longer; a failure is logged and tried again next time.
pub async fn tidy<C: Cluster>(cluster: &C, caches: &Caches, now: Time) {
    let ended = caches.nodefences.all().values().filter_map(|kept| ended(&kept.0)).collect();
    for old in surplus(ended, now).into_iter().take(DELETED_AT_ONCE) {
        let how = DeleteHow { uid: old.uid, ..DeleteHow::default() };
        match cluster.delete::<NodeFence>(At::cluster(&old.name), &how).await {
            Ok(_) => tracing::info!(nodefence = old.name, "removed an old record"),
            Err(error) => {
                tracing::info!(nodefence = old.name, %error, "failed to remove an old record");
            }
        }
    }
}

/// `None` for one that goes on, or that keeps a device closed: these are never removed.
fn ended(nodefence: &NodeFence) -> Option<Ended> {
    let speaks = node_remedy_observe::nodefences::is_open(nodefence)
        || device_quarantine::is_closing(nodefence);
    let status = nodefence.status.as_ref().filter(|_| !speaks)?;
    Some(Ended {
        node: nodefence.spec.node.name.clone(),
        name: nodefence.name_any(),
        uid: nodefence.uid(),
        at: Time(status.entered_at.ms),
    })
}

/// Those that are old and not among the last of their node.
fn surplus(ended: Vec<Ended>, now: Time) -> Vec<Ended> {
    let mut by_node: BTreeMap<String, Vec<Ended>> = BTreeMap::new();
    for one in ended {
        by_node.entry(one.node.clone()).or_default().push(one);
    }
    let mut surplus = Vec::new();
    for mut of_node in by_node.into_values() {
        of_node.sort_by_key(|one| Reverse(one.at));
        let others = of_node.into_iter().skip(KEPT_PER_NODE);
        surplus.extend(others.filter(|one| now.since(one.at) > KEPT));
    }
    surplus
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    const NOW: Time = Time(100 * DAY_MS);

    /// `count` incidents of a node; the first ended so many days ago, each next a minute later.
    fn incidents(node: &str, count: u64, days_ago: u64) -> Vec<Ended> {
        let one = |number| Ended {
            node: node.to_owned(),
            name: format!("{node}-{number}"),
            uid: None,
            at: Time((100 - days_ago) * DAY_MS + number * 60_000),
        };
        (1..=count).map(one).collect()
    }

    fn removed(all: Vec<Ended>) -> Vec<String> {
        surplus(all, NOW).into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn the_last_ten_of_each_node_are_kept_whatever_their_age() {
        let mut all = incidents("a", 12, 30);
        all.extend(incidents("b", 10, 30));
        all.extend(incidents("c", 11, 90));
        assert_eq!(removed(all), ["a-2", "a-1", "c-1"]);
    }

    #[test]
    fn two_weeks_are_kept_whatever_their_number() {
        assert_eq!(removed(incidents("a", 30, 14)), [""; 0]);
        let mut all = incidents("a", 3, 15);
        all.extend(incidents("a", 10, 1));
        assert_eq!(removed(all), ["a-3", "a-2", "a-1"]);
    }
}
