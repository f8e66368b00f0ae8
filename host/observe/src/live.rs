//! One node's objects: from the caches, or read from the API server right now.
//!
//! What cannot be undone is decided on live facts only (rule A1): quorum reads of the
//! node, its Lease, its pods and its attachments, all at once, timed before the first.
//!
//! No field selects attachments by node, and a cluster has thousands: those that the watch
//! told of are read by name. One that it has not told of yet is not released; none is taken
//! for gone that the server did not say is gone.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use node_remedy_decide::{Freshness, Time};
use node_remedy_runtime::clock::Clock;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, Scope};

use crate::caches::{Caches, NODE_LEASES, lease_key};
use crate::node_events::PrunedEvent;
use crate::pods::PrunedPod;
use crate::pruned::{PrunedAttachment, PrunedLease, PrunedNode};
use crate::vetoes;
use crate::vetoes::LiveVetoes;

/// How long Events are waited for: a look has to be young when it is acted on.
const EVENTS_READ_MAX: Duration = Duration::from_secs(4);
/// Attachments read at once.
const READS_AT_ONCE: usize = 16;

/// Everything about one node.
#[derive(Debug, Clone)]
pub struct Facts {
    /// When the first of it was read.
    pub taken_at: Time,
    /// Whether the API server said it, or a cache.
    pub freshness: Freshness,
    /// The node, if there is one of that name.
    pub node: Option<PrunedNode>,
    /// Its Lease.
    pub lease: Option<PrunedLease>,
    /// Pods bound to it, by UID.
    pub pods: BTreeMap<String, PrunedPod>,
    /// Its volume attachments, by UID.
    pub attachments: BTreeMap<String, PrunedAttachment>,
    /// Events about it that are asked for; `None` while they are not known.
    pub events: Option<Vec<PrunedEvent>>,
    /// What people and other controllers said, about all nodes.
    pub live: LiveVetoes,
}

/// From the caches.
pub fn cached(caches: &Caches, clock: &Clock, name: &str) -> Facts {
    Facts {
        taken_at: clock.now(),
        freshness: Freshness::Cached,
        node: caches.nodes.find(name),
        lease: caches.leases.find(&lease_key(name)),
        pods: by_pod_uid(caches.pods_of_node(name).into_iter()),
        attachments: by_uid(caches.attachments.of_node(name).into_iter()),
        events: caches.events.of(name),
        live: vetoes::cached(caches),
    }
}

/// From the API server, by quorum reads.
pub async fn live<C: Cluster>(
    cluster: &C,
    caches: &Caches,
    clock: &Clock,
    name: &str,
) -> Result<Facts, ClusterError> {
    let taken_at = clock.now();
    let on_node = Scope::all().matching("spec.nodeName", name);
    let (node, lease, pods, attachments, events, live) = futures::try_join!(
        cluster.get::<Node>(At::cluster(name)),
        cluster.get::<Lease>(At::within(NODE_LEASES, name)),
        cluster.list::<Pod>(&on_node),
        attachments_of(cluster, caches, name),
        async { Ok(events_of(cluster, caches, name).await) },
        async { Ok(vetoes::read(cluster).await) },
    )?;
    caches.hear(clock.now());
    Ok(Facts {
        taken_at,
        freshness: Freshness::Live,
        node: node.and_then(|node| dated(caches, clock, node)),
        lease: lease.and_then(|lease| timed(caches, clock, lease)),
        pods: by_pod_uid(pods.items.into_iter().filter_map(PrunedPod::of)),
        attachments: by_uid(attachments.into_iter().filter(|one| one.node == name)),
        events,
        live,
    })
}

/// Events that cannot be read in time are not known: nothing is cut for them then, and nothing else waits for them.
async fn events_of<C: Cluster>(
    cluster: &C,
    caches: &Caches,
    name: &str,
) -> Option<Vec<PrunedEvent>> {
    let read = tokio::time::timeout(EVENTS_READ_MAX, caches.events.live(cluster, name)).await;
    read.ok()?.ok()?
}

/// The attachments that the watch told of, as the API server has them now.
async fn attachments_of<C: Cluster>(
    cluster: &C,
    caches: &Caches,
    node: &str,
) -> Result<Vec<PrunedAttachment>, ClusterError> {
    let known = caches.attachments.of_node(node).into_iter();
    stream::iter(known.map(|one| one.name))
        .map(|name| async move { cluster.get::<VolumeAttachment>(At::cluster(&name)).await })
        .buffered(READS_AT_ONCE)
        .try_filter_map(|found| std::future::ready(Ok(found.and_then(PrunedAttachment::of))))
        .try_collect()
        .await
}

/// A Node read live, its conditions dated against what the watch saw last.
fn dated(caches: &Caches, clock: &Clock, node: Node) -> Option<PrunedNode> {
    let seen = PrunedNode::of(node)?;
    let before = caches.nodes.find(&seen.name);
    Some(seen.after(before.as_ref(), clock))
}

/// A Lease read live: renewed since the cache saw it means renewed now.
pub fn timed(caches: &Caches, clock: &Clock, lease: Lease) -> Option<PrunedLease> {
    let seen = PrunedLease::of(lease, clock.now())?;
    match caches.leases.find(&lease_key(&seen.node)) {
        Some(before) if before.renewed == seen.renewed => Some(before),
        Some(before) => Some(seen.after(&before)),
        None => Some(seen),
    }
}

fn by_pod_uid(pods: impl Iterator<Item = PrunedPod>) -> BTreeMap<String, PrunedPod> {
    pods.map(|pod| (pod.uid.clone(), pod)).collect()
}

fn by_uid(all: impl Iterator<Item = PrunedAttachment>) -> BTreeMap<String, PrunedAttachment> {
    all.map(|one| (one.uid.clone(), one)).collect()
}
