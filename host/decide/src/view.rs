//! The world as it looked at one moment, in plain values.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{Crossing, JobView, Liveness, Time, Verdict};

/// What was seen of one node and of what decides about it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct View {
    /// When it was taken.
    pub taken_at: Time,
    /// Whether it is the API server's own word.
    pub freshness: Freshness,
    /// The node; `None` when no Node of that name exists.
    pub node: Option<NodeView>,
    /// Pods bound to it, by UID.
    pub pods: Vec<PodView>,
    /// Volume attachments of it, by UID.
    pub attachments: Vec<AttachmentView>,
    /// Whether the condition that asked for this incident holds.
    pub trigger: Crossing,
    /// What the gate says.
    pub gate: Verdict,
    /// What people said.
    pub people: People,
    /// Whether the node writes a kernel dump.
    pub dump: Dump,
    /// The Node has another UID than the one that the incident is about, and is not known to be the same machine.
    pub is_another_machine: bool,
    /// Our own process runs on this node.
    pub hosts_us: bool,
    /// Another process says that it reaches the device that is waited for.
    pub reached_elsewhere: bool,
    /// Whether the plugs that were switched off fed another machine.
    pub neighbours: Neighbours,
    /// The record's last Job; `None` where nobody looked for it.
    pub job: Option<JobView>,
    /// Another threshold of the node is crossed whose first remedy fences it, and nothing speaks against that.
    pub fence_is_due: bool,
}

/// Whether other nodes fell silent or rebooted when a plug that knows no machine was switched off.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Neighbours {
    /// Each gave a sign of life since, or was silent long before.
    #[default]
    Heard,
    /// One of them was not heard yet.
    Awaited,
    /// This one fell silent or rebooted.
    Silent(String),
}

/// Where a view comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// Quorum reads.
    Live,
    /// A watch's cache: a reason to look again, never to act.
    Cached,
}

/// What is known of a kernel dump that a node writes, or wrote a while ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dump {
    /// Nothing is heard of one, or the node gave a sign of life since.
    #[default]
    None,
    /// One was heard, its messages ended, and the node gave no sign of life since: it may boot.
    Ended,
    /// Another process says that it hears one: a reason to wait, and no proof.
    Told,
    /// This process hears it itself, from a network that is trusted.
    Heard,
}

/// What people said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct People {
    /// The first off was approved.
    pub approved: bool,
}

/// A Node object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "marks that stand or not, each by itself")]
pub struct NodeView {
    /// `metadata.uid`.
    pub uid: String,
    /// Signs of life: boot id, Lease, reports.
    pub liveness: Liveness,
    /// When the object was made.
    pub created_at: Time,
    /// Conditions by type, ordered.
    pub conditions: Vec<ConditionView>,
    /// When the present boot was first heard of: what was before is another boot's. 0: not known.
    pub boot_heard_at: Time,
    /// Events about it that a threshold asks for; `None` while they are not known.
    pub events: Option<Vec<EventView>>,
    /// How its conditions changed; `None` while nobody watched.
    pub changes: Option<ChangesView>,
    /// The node Lease's duration; its kubelet renews four times as often.
    pub lease_duration: crate::Span,
    /// When the Lease last changed as the observer timed it; `None` without a Lease.
    pub lease_seen_at: Option<Time>,
    /// Since when it is renewed without a break, as the observer timed it: the renewal that ended the last
    /// silence, or when it was first seen.
    pub heard_since: Option<Time>,
    /// Since when the kubelet's port takes connections although the Lease is not renewed; `None` where it does not,
    /// or nobody asked.
    pub answers_since: Option<Time>,
    /// The observer saw it renewed. One that it only found says nothing of now: the node may have
    /// fallen silent long before.
    pub lease_was_renewed: bool,
    /// Our quarantine taint stands.
    pub quarantined: bool,
    /// The node is cordoned.
    pub cordoned: bool,
    /// Our annotation says that we cordoned the node; somebody may have uncordoned it since.
    pub cordoned_by_us: bool,
    /// The out-of-service taint stands.
    pub out_of_service: bool,
    /// The out-of-service taint stands and is ours.
    pub out_of_service_by_us: bool,
    /// Attached volumes that the kubelet says it uses: `kubernetes.io/csi/DRIVER^HANDLE` each.
    pub volumes_in_use: Vec<String>,
    /// The pod that the node's annotation names as the one that remedies it.
    pub remediation_pod: Option<String>,
}

impl NodeView {
    /// The volumes of this CSI driver that its kubelet says it uses.
    pub(crate) fn in_use_of(&self, driver: &str) -> impl Iterator<Item = &str> {
        let is_its = move |one: &&str| {
            let named = one.strip_prefix("kubernetes.io/csi/").and_then(|it| it.split_once('^'));
            named.is_some_and(|(its, _)| its == driver)
        };
        self.volumes_in_use.iter().map(String::as_str).filter(is_its)
    }
}

/// A node condition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConditionView {
    /// Its type.
    pub kind: String,
    /// Its status.
    pub status: ConditionStatus,
    /// Its reason, one word.
    pub reason: String,
    /// Its lastTransitionTime, corrected by the API server's clock.
    pub since: Time,
    /// When it was last reported, corrected likewise; `None` where its writer does not say.
    pub reported: Option<Time>,
    /// When it was last seen to become another status than each of these.
    pub left: Vec<(ConditionStatus, Time)>,
}

/// An event about a node, with its repetitions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventView {
    /// Its reason, one word.
    pub reason: String,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// The component that told of it.
    pub source: String,
    /// So often it happened.
    pub count: u32,
    /// When it did first, corrected by the API server's clock.
    pub first: Time,
    /// When it did last, corrected likewise.
    pub last: Time,
}

/// How a node's conditions changed in its present boot, as this process saw it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ChangesView {
    /// All changes from then on are known.
    pub known_since: Time,
    /// Which condition changed its status, and when; in order of time.
    pub changes: Vec<(String, Time)>,
}

/// A condition's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

/// A pod bound to the node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PodView {
    /// `metadata.uid`.
    pub uid: String,
    /// `namespace/name`, for people.
    pub name: String,
    /// Why it is left alone, if it is.
    pub exempt: Option<Exempt>,
    /// Persistent volumes that it uses.
    pub volumes: Vec<VolumeView>,
    /// Its Ready condition is True: it serves, as far as the API server knows.
    pub ready: bool,
    /// Whether its deletion is under way.
    pub deletion: Deletion,
    /// Finalizers that hold it.
    pub finalizers: Vec<String>,
}

/// How far the deletion of a pod has come; one that was asked for is not asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Deletion {
    /// Nobody asked for it.
    #[default]
    NotAsked,
    /// It waits for its kubelet.
    Graceful,
    /// It waits for its finalizers only.
    AtOnce,
}

/// Why a pod is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exempt {
    /// It belongs to a DaemonSet.
    DaemonSet,
    /// It mirrors a static pod.
    Mirror,
    /// It tolerates the out-of-service taint.
    Tolerates,
    /// It has ended, and nobody asks for its deletion: nothing of it runs, and nothing waits for it to go.
    Ended,
}

/// Storage that a pod uses and that outlives it, or is not the node's own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeView {
    /// What stands behind it.
    pub backing: Backing,
    /// Its driver checks at detach (the policy's `safeDetachDrivers`).
    pub safe_detach: bool,
    /// How many may mount it.
    pub access: Access,
}

/// What stands behind a pod's volume. Only a PersistentVolume is covered by a grade that covers some.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Backing {
    /// Nobody knows.
    Unknown,
    /// What the pod itself names: an export of NFS, a target of iSCSI. Nothing attaches it.
    Inline,
    /// A PersistentVolume.
    Persistent {
        /// `metadata.name`.
        name: String,
        /// Its CSI driver; empty for one that is not CSI's.
        driver: String,
        /// As a Node's `status.volumesInUse` calls it: `kubernetes.io/csi/DRIVER^HANDLE`; empty for one that
        /// is not CSI's.
        in_use_as: String,
    },
}

impl VolumeView {
    /// Name of the PersistentVolume.
    pub fn name(&self) -> Option<&str> {
        match &self.backing {
            Backing::Persistent { name, .. } => Some(name),
            Backing::Unknown | Backing::Inline => None,
        }
    }

    /// Its CSI driver.
    pub fn driver(&self) -> Option<&str> {
        match &self.backing {
            Backing::Persistent { driver, .. } if !driver.is_empty() => Some(driver),
            Backing::Persistent { .. } | Backing::Unknown | Backing::Inline => None,
        }
    }

    /// As a Node's `status.volumesInUse` calls it.
    pub fn in_use_as(&self) -> Option<&str> {
        match &self.backing {
            Backing::Persistent { in_use_as, .. } if !in_use_as.is_empty() => Some(in_use_as),
            Backing::Persistent { .. } | Backing::Unknown | Backing::Inline => None,
        }
    }
}

/// How many may mount a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// One node (or pod) at a time writes.
    One,
    /// Many nodes write.
    Many,
}

/// A VolumeAttachment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttachmentView {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.name`.
    pub name: String,
    /// The persistent volume.
    pub volume: String,
    /// Its deletion was asked for.
    pub deleting: bool,
    /// Finalizers that hold it.
    pub finalizers: Vec<String>,
}

impl View {
    /// The Node of the machine that the incident is about, which may have registered anew under another UID.
    pub(crate) fn machine(&self) -> Option<&NodeView> {
        self.node.as_ref().filter(|_| !self.is_another_machine)
    }

    /// Whether the sign that asked for the incident is known to be gone.
    pub(crate) fn trigger_clear(&self) -> bool {
        matches!(self.trigger, Crossing::Clear { .. })
    }
}
