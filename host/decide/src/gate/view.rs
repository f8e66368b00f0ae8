//! What the gate looks at: its policy, and every node that it counts.

use alloc::string::String;
use alloc::vec::Vec;

use crate::bug::{Bug, is_seeded};
use crate::gate::refusal::{ClosedDevice, Pause};
use crate::{COOL_DOWN, Span, Time};

/// The limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GatePolicy {
    /// From this share of unhealthy nodes on, in percent, nothing is switched off.
    pub unhealthy_percent_max: u32,
    /// From this many unhealthy nodes on nothing is switched off; `None`: only the share counts.
    pub unhealthy_max: Option<u32>,
    /// From this many nodes on that fell silent at once, the target among them, it is not switched off.
    pub silent_at_once_max: u32,
    /// Incidents that hold a slot at once.
    pub in_flight_max: u32,
    /// Between two incidents of one node.
    pub cool_down: Span,
    /// What a cordon that is not ours means.
    pub foreign_cordon: ForeignCordon,
    /// A node that was seen to use its storage within this time is left alone; `None`: not asked.
    pub storage_lease_age_max: Option<Span>,
    /// So large a share of all nodes must be left that can take the target's pods, in percent; `None`:
    /// not asked.
    pub schedulable_percent_min: Option<u32>,
    /// When too many incidents begin; `None`: nobody counts them.
    pub breaker: Option<BreakerPolicy>,
    /// Zones, racks, PDUs: limits within each.
    pub domains: Vec<DomainLimit>,
}

/// Limits within one failure domain, whose name is the value of a label of its nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DomainLimit {
    /// The label.
    pub key: String,
    /// From this share of unhealthy nodes of a domain on, in percent, none of it is switched off.
    pub unhealthy_percent_max: u32,
    /// Nodes of one domain that may be worked on at once; `None`: only the cluster's limit counts.
    pub in_flight_max: Option<u32>,
}

/// What the gate is told.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GateView {
    /// The node that is to be switched off.
    pub target: String,
    /// Every node of the cluster, the target among them.
    pub nodes: Vec<NodeHealth>,
    /// NodeFences that hold a slot, ours left out; of an incident that holds one itself those whose names come before
    /// its own. There was room when it was given: of two that have one for the last room one goes on.
    pub in_flight: Vec<String>,
    /// The nodes that they are about.
    pub in_flight_on: Vec<String>,
    /// What people and other controllers said about the target.
    pub vetoes: OperatorVetoes,
    /// What is known of the target's storage Lease.
    pub storage: StorageLease,
    /// What else began lately.
    pub incidents: Incidents,
    /// When something of ours was last heard from the API server.
    pub heard_at: Time,
    /// Of what the watch is broken, if of anything: what is known of it may be long past.
    pub not_followed: Option<String>,
    /// Another tool holds this node's Lease in `medik8s-leases`.
    pub held_by: Option<String>,
    /// A device of the plan through which nothing is switched off.
    pub closed_device: Option<ClosedDevice>,
    /// Why the pinned plan may cut another Node's machine.
    pub disputed: Option<String>,
    /// The node whose plug on a device of the plan was switched off, and is not verified yet (rule P8).
    pub unverified: Option<String>,
    /// Which devices answer this process.
    pub device_network: DeviceNetwork,
    /// When this node's last incident ended.
    pub last_incident_ended_at: Option<Time>,
    /// Since when the target is to be off: by its sign, or by the first release where the sign is gone.
    pub symptom_since: Option<Time>,
    /// No kubelet ever spoke for the target.
    pub never_joined: bool,
}

/// One node as the gate sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeHealth {
    /// Its name.
    pub name: String,
    /// Its own trigger does not hold and Ready is True.
    pub ready: bool,
    /// It is being fenced, or parked and off.
    pub down: bool,
    /// When its Lease was last renewed; `None` without a Lease.
    pub renewed_at: Option<Time>,
    /// Between which times its last renewal came, as far as is known; `None` without a Lease.
    pub renewed_between: Option<(Time, Time)>,
    /// Its last return, as far as this process saw one.
    pub came_back: Option<CameBack>,
    /// Its Lease's duration.
    pub lease_duration: Span,
    /// The value of each label of [`GatePolicy::domains`], in their order; `None` without the label.
    pub domains: Vec<Option<String>>,
    /// Nothing keeps the target's pods from it: no cordon, no taint that the target has not.
    pub takes_pods: bool,
    /// It carries the control plane, and with it a member of etcd.
    pub control_plane: bool,
    /// Whether the member of etcd that runs on it in a pod is Ready; `None` without such a pod.
    pub etcd: Option<bool>,
}

/// A node that was silent or not Ready, and no longer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CameBack {
    /// When it renewed its Lease again, or became Ready; the later of both.
    pub at: Time,
    /// When its last renewal before its silence was seen; `None` where it went on to renew.
    pub silent_since: Option<Time>,
}

/// A third of a cluster falling silent is a network's or a power line's doing, not the nodes'.
pub const UNHEALTHY_PERCENT_MAX: u32 = 30;

/// Two machines may die in the same seconds; of three it is what they share that died.
pub const SILENT_AT_ONCE_MAX: u32 = 3;

/// One machine at a time, unless told otherwise.
pub const IN_FLIGHT_MAX: u32 = 1;

/// How many names a refusal lists.
pub(crate) const EXAMPLES_MAX: usize = 5;

impl Default for GatePolicy {
    fn default() -> Self {
        Self {
            unhealthy_percent_max: UNHEALTHY_PERCENT_MAX,
            unhealthy_max: None,
            silent_at_once_max: SILENT_AT_ONCE_MAX,
            in_flight_max: IN_FLIGHT_MAX,
            cool_down: COOL_DOWN,
            foreign_cordon: ForeignCordon::default(),
            storage_lease_age_max: None,
            schedulable_percent_min: None,
            breaker: Some(BreakerPolicy::default()),
            domains: Vec::new(),
        }
    }
}

/// What was said about the target, by whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct OperatorVetoes {
    /// Pauses that are for the target; those that are over count no more.
    pub pauses: Vec<Pause>,
    /// The label or annotation by which somebody keeps us from the node.
    pub excluded_by: Option<String>,
    /// A maintenance of the node that is declared, with its reason.
    pub maintenance: Option<String>,
    /// The node is cordoned, and not by us.
    pub cordoned_by_other: bool,
    /// The taint by which an autoscaler says that it removes the node.
    pub removed_by: Option<String>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
}

/// What a cordon that is not ours means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ForeignCordon {
    /// Somebody works on the node.
    #[default]
    Maintenance,
    /// Nothing: cordons are set for other reasons here.
    Ignore,
}

/// When too many incidents begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BreakerPolicy {
    /// From so many on, of all nodes together.
    pub incidents_max: u32,
    /// That begin within this time.
    pub window: Span,
    /// For how long nothing more is begun.
    pub cool_down: Span,
}

impl Default for BreakerPolicy {
    /// Machines that die by themselves are hours apart; five within one are something else's work.
    fn default() -> Self {
        Self { incidents_max: 5, window: Span::minutes(60), cool_down: Span::minutes(30) }
    }
}

/// The incidents that the breaker judges by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Incidents {
    /// Nobody asked.
    #[default]
    NotAsked,
    /// What is looked at has begun: nothing more is begun with it.
    Begun,
    /// All that are known.
    Known(Vec<IncidentView>),
    /// They could not be read.
    Unread {
        /// Why.
        why: String,
    },
}

/// One incident as the breaker sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IncidentView {
    /// Its `NodeFence`.
    pub name: String,
    /// When it was opened, by the clock of the replica that opened it.
    pub begun_at: Time,
    /// When it was created, by the API server; 0 where nobody says.
    pub created_at: Time,
    /// What became of it.
    pub ending: Ending,
}

impl IncidentView {
    /// The later of both stamps: the API server's clock may have been set ahead before the opener noticed, and an early
    /// start would end the cool-down early. A `created_at` in the future is ignored: the clock was set back.
    pub(crate) fn starts_at(&self, now: Time) -> Time {
        if self.created_at > now || is_seeded(Bug::CreationIgnored) {
            return self.begun_at;
        }
        self.begun_at.max(self.created_at)
    }
}

/// What became of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It goes on.
    None,
    /// It goes on, and since then it waits for a device or a person.
    Stalled(Time),
    /// Its node was well again.
    Well(Time),
    /// It stopped for a person.
    Failed(Time),
    /// It says nothing: a person stopped it, or the node is gone.
    Moot,
}

impl Ending {
    /// Nothing ends before it begins, whatever a clock that ran behind wrote.
    #[must_use]
    pub(crate) fn not_before(self, begun_at: Time) -> Self {
        match self {
            Self::Well(at) => Self::Well(at.max(begun_at)),
            Self::Failed(at) => Self::Failed(at.max(begun_at)),
            Self::None | Self::Stalled(_) | Self::Moot => self,
        }
    }
}

/// What is known of the Lease that whoever sees a node use its storage keeps for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum StorageLease {
    /// Nobody asked.
    #[default]
    NotAsked,
    /// There is none: nobody vouches for the node.
    Absent,
    /// It was last seen to be renewed then.
    Renewed {
        /// By our own clock, when another renewal than before was first read.
        at: Time,
    },
    /// It could not be read.
    Unread {
        /// Why.
        why: String,
    },
}

/// Which devices answered this process when it last asked them; none where nobody asked, or where the
/// target's incident is open already.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct DeviceNetwork {
    /// Devices that answered a short while ago.
    pub answering: u32,
    /// Devices that did not answer when they were last asked.
    pub silent: u32,
    /// Since when none of those answers.
    pub silent_since: Time,
    /// One of those, and why it did not answer.
    pub example: String,
}

impl DeviceNetwork {
    /// Whether several devices were asked and none answered.
    pub fn is_lost(&self) -> bool {
        self.answering == 0 && self.silent >= DEVICES_MIN
    }
}

/// One device that says nothing is a device; from so many on it is the network to them.
pub(crate) const DEVICES_MIN: u32 = 2;
