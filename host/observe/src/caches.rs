//! Observe: the world as plain values, from caches for watching and live before acting.
//!
//! In the order data flows: [`crate::pruned`] prunes objects, [`crate::store`] keeps them, [`crate::reflector`]
//! keeps the stores equal to the API server, [`Caches`] is all stores together, `view`
//! makes of them what `decide` reads. Nothing here judges.

use std::cell::Cell;
use std::rc::Rc;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use node_remedy_api::fenceconfiguration::FenceConfiguration;
use node_remedy_api::fenceplugin::FencePlugin;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::remedyconfiguration::RemedyConfiguration;
use node_remedy_api::remedypause::RemedyPause;
use node_remedy_decide::Time;
use node_remedy_runtime::clock::Clock;
use node_remedy_runtime::cluster::{Cluster, Object, Scope};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::answers::Answers;
use crate::condition_history::Changes;
use crate::node_events::NodeEvents;
use crate::off_sightings::OffSightings;
use crate::pods::{PackedPod, PrunedPod};
use crate::pruned::{PrunedAttachment, PrunedLease, PrunedNode};
use crate::reflector::{OnAnswer, reflect};
use crate::store::{Changed, Store};
use crate::unhealthy_nodes::UnhealthyNodes;

/// Where kubelets keep their Leases.
pub const NODE_LEASES: &str = "kube-node-lease";

/// The key of a node's Lease in its store.
pub fn lease_key(node: &str) -> String {
    format!("{NODE_LEASES}/{node}")
}

/// Everything the controller watches.
pub struct Caches {
    /// By name.
    pub nodes: Rc<Store<PrunedNode>>,
    /// By namespace/name.
    pub pods: Rc<Store<PackedPod>>,
    /// By name.
    pub attachments: Rc<Store<PrunedAttachment>>,
    /// By namespace/name; the names are the nodes'.
    pub leases: Rc<Store<PrunedLease>>,
    /// By name.
    pub remedies: Rc<Store<Cached<RemedyConfiguration>>>,
    /// By name.
    pub fences: Rc<Store<Cached<FenceConfiguration>>>,
    /// By name.
    pub plugins: Rc<Store<Cached<FencePlugin>>>,
    /// By namespace/name; those of our own namespace, without their binary data.
    pub config_maps: Rc<Store<Cached<ConfigMap>>>,
    /// By name.
    pub nodefences: Rc<Store<Cached<NodeFence>>>,
    /// Events about nodes, while any are asked for.
    pub events: NodeEvents,
    /// How nodes' conditions changed.
    pub changes: Rc<Changes>,
    /// When each recorded off was first seen.
    pub off_sightings: Rc<OffSightings>,
    /// Nodes with a sign of their own.
    pub unhealthy: UnhealthyNodes,
    /// Which silent nodes answer.
    pub answers: Answers,
    /// By name.
    pub pauses: Rc<Store<Cached<RemedyPause>>>,
    heard: Rc<Cell<Time>>,
}

/// An object kept whole, equal to another of the same resourceVersion.
#[derive(Debug, Clone)]
pub struct Cached<K>(pub K);

impl<K: Object> PartialEq for Cached<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0.meta().uid == other.0.meta().uid
            && self.0.meta().resource_version == other.0.meta().resource_version
    }
}

impl<K: Object> Cached<K> {
    #[expect(clippy::unnecessary_wraps, reason = "as a reflector's `see`, which may drop")]
    fn of(mut object: K, _before: Option<&Self>) -> Option<Self> {
        object.meta_mut().managed_fields = None;
        Some(Self(object))
    }
}

impl Caches {
    /// Empty stores that report to `changes`.
    pub fn new(changes: &mpsc::UnboundedSender<Changed>) -> Rc<Self> {
        Rc::new(Self {
            nodes: Store::new("Node", changes.clone()),
            pods: Store::by_node("Pod", changes.clone(), |pod: &PackedPod| Some(pod.node())),
            attachments: Store::by_node("VolumeAttachment", changes.clone(), |one| {
                Some(one.node.clone())
            }),
            leases: Store::new("Lease", changes.clone()),
            remedies: Store::new("RemedyConfiguration", changes.clone()),
            fences: Store::new("FenceConfiguration", changes.clone()),
            plugins: Store::new("FencePlugin", changes.clone()),
            config_maps: Store::new("ConfigMap", changes.clone()),
            nodefences: Store::new("NodeFence", changes.clone()),
            events: NodeEvents::new(changes),
            changes: Rc::default(),
            off_sightings: Rc::default(),
            unhealthy: UnhealthyNodes::default(),
            answers: Answers::new(changes),
            pauses: Store::new("RemedyPause", changes.clone()),
            heard: Rc::new(Cell::new(Time(0))),
        })
    }

    /// Starts one reflector per store; they end with `tasks`.
    pub fn start<C: Cluster>(
        &self,
        cluster: &C,
        clock: &Clock,
        namespace: &str,
        tasks: &mut JoinSet<()>,
    ) {
        let heard: OnAnswer = {
            let (cell, clock) = (self.heard.clone(), clock.clone());
            Rc::new(move || cell.set(clock.now()))
        };
        let all = Scope::all;
        let own = || Scope::within(namespace);
        let see_lease = {
            let clock = clock.clone();
            move |lease: Lease, before: Option<&PrunedLease>| {
                let new = PrunedLease::of(lease, clock.now())?;
                // A write that renews nothing is no sign of life.
                Some(match before {
                    Some(before) if before.renewed == new.renewed => before.clone(),
                    Some(before) => new.after(before),
                    None => new,
                })
            }
        };
        self.changes.begin(clock.now());
        let see_node = {
            let (clock, changes) = (clock.clone(), self.changes.clone());
            move |node: Node, before: Option<&PrunedNode>| {
                let seen = PrunedNode::of(node)?;
                changes.note(before, &seen, clock.now());
                Some(seen.after(before, &clock))
            }
        };
        let see_nodefence = {
            let (clock, offs) = (clock.clone(), self.off_sightings.clone());
            move |nodefence: NodeFence, before: Option<&Cached<NodeFence>>| {
                offs.note(&nodefence, clock.now());
                Cached::of(nodefence, before)
            }
        };
        let events = self.events.kept(cluster.clone(), clock.clone(), heard.clone());
        tasks.spawn_local(async move {
            events.await;
        });
        let mut keep = Keeper { cluster, heard, tasks };
        keep.up(all(), &self.nodes, see_node);
        keep.up(all(), &self.pods, |pod: Pod, _: Option<&PackedPod>| {
            Some(PackedPod::of(&PrunedPod::of(pod)?))
        });
        keep.up(all(), &self.attachments, |one: VolumeAttachment, _: Option<&PrunedAttachment>| {
            PrunedAttachment::of(one)
        });
        keep.up(Scope::within(NODE_LEASES), &self.leases, see_lease);
        keep.up(all(), &self.remedies, Cached::<RemedyConfiguration>::of);
        keep.up(all(), &self.fences, Cached::<FenceConfiguration>::of);
        keep.up(all(), &self.plugins, Cached::<FencePlugin>::of);
        // Plugins are read once, when they are loaded.
        keep.up(
            own(),
            &self.config_maps,
            |mut one: ConfigMap, before: Option<&Cached<ConfigMap>>| {
                one.binary_data = None;
                Cached::of(one, before)
            },
        );
        keep.up(all(), &self.nodefences, see_nodefence);
        keep.up(all(), &self.pauses, Cached::<RemedyPause>::of);
    }

    /// What has not been listed yet; empty: all stores are filled.
    pub fn missing(&self) -> Vec<String> {
        let missing = self.watched().into_iter().filter(|one| !one.is_synced);
        missing.map(|one| format!("not listed yet: {}", one.what)).collect()
    }

    /// What is not told of right now; empty: whatever can allow or forbid a cut comes here.
    pub fn not_followed(&self) -> Vec<&'static str> {
        let lost = self.watched().into_iter().filter(|one| !one.is_followed);
        lost.map(|one| one.what).collect()
    }

    fn watched(&self) -> [Watched; 10] {
        [
            Watched::of("nodes", &self.nodes),
            Watched::of("pods", &self.pods),
            Watched::of("volumeattachments", &self.attachments),
            Watched::of("leases in kube-node-lease", &self.leases),
            Watched::of("remedyconfigurations (is the CRD installed?)", &self.remedies),
            Watched::of("fenceconfigurations (is the CRD installed?)", &self.fences),
            Watched::of("fenceplugins (is the CRD installed?)", &self.plugins),
            Watched::of("configmaps of our namespace", &self.config_maps),
            Watched::of("nodefences (is the CRD installed?)", &self.nodefences),
            Watched::of("remedypauses (is the CRD installed?)", &self.pauses),
        ]
    }

    /// The pods of a node, in the order of their names.
    pub fn pods_of_node(&self, node: &str) -> Vec<PrunedPod> {
        self.pods.map_of_node(node, |key, pod| pod.unpack(key))
    }

    /// When the API server last told us anything.
    pub fn heard(&self) -> Time {
        self.heard.get()
    }

    /// Notes that the API server answered a probe.
    pub fn hear(&self, now: Time) {
        self.heard.set(now);
    }
}

/// How one kind is watched.
struct Watched {
    what: &'static str,
    is_synced: bool,
    is_followed: bool,
}

impl Watched {
    fn of<V: PartialEq>(what: &'static str, store: &Store<V>) -> Self {
        Self { what, is_synced: store.is_synced(), is_followed: store.is_followed() }
    }
}

struct Keeper<'a, C> {
    cluster: &'a C,
    heard: OnAnswer,
    tasks: &'a mut JoinSet<()>,
}

impl<C: Cluster> Keeper<'_, C> {
    fn up<K, V, S>(&mut self, scope: Scope, store: &Rc<Store<V>>, see: S)
    where
        K: Object,
        V: PartialEq + 'static,
        S: Fn(K, Option<&V>) -> Option<V> + 'static,
    {
        let kept = reflect(self.cluster.clone(), scope, store.clone(), see, self.heard.clone());
        self.tasks.spawn_local(async move {
            kept.await;
        });
    }
}
