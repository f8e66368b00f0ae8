//! Whether the cluster as a whole allows another machine to be switched off.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::bug::{Bug, guard, is_sown};
use crate::{COOL_DOWN, SILENCE_MAX, Span, Time};

mod breaker;
mod control_plane;
mod device_network;
mod headroom;
mod people;
mod storage;
mod storm;

use self::storm::{refuse_full_domains, refuse_storm};

pub use self::breaker::{BreakerPolicy, Ending, IncidentView, Incidents, Tripped};
pub use self::device_network::DeviceNetwork;
pub use self::people::{ForeignCordon, Pause, WORD_LOOK_EVERY, Words};
pub use self::storage::StorageLease;

/// The limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GatePolicy {
    /// From this share of unhealthy nodes on, in percent, nothing is switched off.
    pub unhealthy_percent_max: u32,
    /// From this many unhealthy nodes on nothing is switched off; `None`: only the share counts.
    pub unhealthy_max: Option<u32>,
    /// From this many nodes on that fell silent at once, the target among them, it is not switched off.
    pub silent_at_once_max: u32,
    /// Runs that hold a slot at once.
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
    /// NodeFences that hold a slot, ours left out; of a run that holds one itself those whose names come before
    /// its own. There was room when it was given: of two that have one for the last room one goes on.
    pub in_flight: Vec<String>,
    /// The nodes that they are about.
    pub in_flight_on: Vec<String>,
    /// What people and other controllers said about the target.
    pub words: Words,
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
    pub sign_since: Option<Time>,
    /// No kubelet ever spoke for the target.
    pub never_joined: bool,
}

/// A13: a device that failed to switch a machine on, and that nobody has seen to yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClosedDevice {
    /// Which.
    pub device: String,
    /// The node whose machine it failed to switch on.
    pub node: String,
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

/// What the gate says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Verdict {
    /// Why not; empty: it is open.
    pub refusals: Vec<Refusal>,
    /// When it may say something else without anything new being seen.
    pub next_look: Option<Time>,
}

/// One reason not to switch a machine off, with its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Too large a share of the nodes is not well.
    UnhealthyShare {
        /// Silent or not Ready, the target among them.
        unhealthy: u32,
        /// Of so many.
        total: u32,
        /// The share, in percent, cut.
        percent: u32,
        /// The limit.
        percent_max: u32,
        /// Some of those that count as not well.
        examples: Vec<String>,
    },
    /// Too many nodes are not well.
    UnhealthyCount {
        /// Silent or not Ready, the target among them.
        unhealthy: u32,
        /// The limit.
        max: u32,
    },
    /// Too many nodes fell silent when the target did.
    SilentAtOnce {
        /// So many, the target among them.
        silent: u32,
        /// The limit.
        max: u32,
        /// Last renewals that lie within this time of the target's count as at once.
        window: Span,
        /// Some of them.
        examples: Vec<String>,
    },
    /// Too many nodes were not well a moment ago.
    StormTail {
        /// So many came back, and have to be heard a few times more.
        returning: u32,
        /// Until then at most, unless another one comes back.
        until: Time,
    },
    /// It cannot be told yet whether others fell silent too.
    SilenceNotJudged {
        /// When it can.
        until: Time,
        /// Nodes that have not renewed since.
        unheard: u32,
    },
    /// Too large a share of one domain's nodes is not well: it is the domain's trouble, not theirs.
    DomainUnhealthy {
        /// The label and its value.
        domain: String,
        /// Silent or not Ready, the target among them.
        unhealthy: u32,
        /// Of so many.
        total: u32,
        /// The share, in percent, cut.
        percent: u32,
        /// The limit.
        percent_max: u32,
    },
    /// So many nodes of one domain are worked on.
    DomainInFlight {
        /// The label and its value.
        domain: String,
        /// Which.
        nodes: Vec<String>,
        /// The limit.
        max: u32,
    },
    /// The target lacks a label that limits are set for.
    NoDomain {
        /// The label.
        key: String,
    },
    /// Without the target the control plane may not go on.
    ControlPlane {
        /// Other control-plane nodes that are well.
        well: u32,
        /// Control-plane nodes, the target among them.
        total: u32,
        /// So many of them must be well without it.
        quorum: u32,
        /// Other control-plane nodes that are not well, being fenced, or not heard since.
        unwell: Vec<String>,
    },
    /// Too few nodes would be left to take the target's pods.
    Headroom {
        /// Others that are well and that its pods may be scheduled to.
        left: u32,
        /// Nodes, the target among them.
        total: u32,
        /// The share, in percent, cut.
        percent: u32,
        /// The limit.
        percent_min: u32,
    },
    /// The target was seen to use its storage.
    StorageLease {
        /// So long ago.
        age: Span,
        /// The limit.
        age_max: Span,
    },
    /// It is not known whether the target uses its storage.
    StorageLeaseUnread {
        /// Why.
        why: String,
    },
    /// The target has no Lease to compare others with.
    NoLease,
    /// So many runs hold a slot.
    InFlight {
        /// Which.
        holders: Vec<String>,
        /// The limit.
        max: u32,
    },
    /// Too much began lately.
    BreakerOpen {
        /// Why.
        why: Tripped,
        /// When one is let through to try it.
        until: Time,
    },
    /// Too much began a while ago, and what was let through to try it goes on.
    BreakerHalfOpen {
        /// Which go on.
        going_on: Vec<String>,
    },
    /// It is not known what began lately.
    BreakerUnread {
        /// Why.
        why: String,
    },
    /// Somebody paused, or a window of the policy does.
    Paused(Pause),
    /// Somebody keeps us from this node by a label or an annotation.
    Excluded {
        /// Which.
        mark: String,
    },
    /// Somebody declared a maintenance of this node.
    Maintenance {
        /// Which, and why.
        what: String,
    },
    /// Somebody cordoned this node.
    Cordoned,
    /// An autoscaler removes this node.
    BeingRemoved {
        /// The taint that says so.
        taint: String,
    },
    /// It is not known what people said.
    WordsUnread {
        /// What could not be read, and why.
        what: String,
    },
    /// We may be the one who is cut off.
    OwnView {
        /// How long the API server has been silent.
        silent: Span,
        /// The limit.
        max: Span,
    },
    /// The caches may show what was, and what would forbid the cut may not have been told.
    WatchBroken {
        /// Of what.
        what: String,
    },
    /// Another tool works on this node.
    HeldByOther {
        /// Who.
        holder: String,
    },
    /// A device of the plan failed to switch on before.
    DeviceClosed(ClosedDevice),
    /// Since the plan was made another Node claims what it cuts, or its wiring was corrected.
    MachineDisputed {
        /// What was found.
        why: String,
    },
    /// A plug of the same device was switched off, and it is not known yet whose it was.
    NeighbourUnverified {
        /// The node that it is said to feed.
        node: String,
    },
    /// No device answers us: we may be the one who is cut off from them.
    DeviceNetworkLost {
        /// So many were asked.
        devices: u32,
        /// For how long none of them has answered.
        silent: Span,
        /// One of them, and why it did not answer.
        example: String,
    },
    /// This node had an incident a short while ago.
    CoolDown {
        /// When it may be touched again.
        until: Time,
    },
}

/// A third of a cluster falling silent is a network's or a power line's doing, not the nodes'.
pub const UNHEALTHY_PERCENT_MAX: u32 = 30;
/// Two machines may die in the same seconds; of three it is what they share that died.
pub const SILENT_AT_ONCE_MAX: u32 = 3;
/// One machine at a time, unless told otherwise.
pub const IN_FLIGHT_MAX: u32 = 1;
/// How many names a refusal lists.
const EXAMPLES_MAX: usize = 5;

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

impl Verdict {
    /// Whether nothing speaks against it.
    pub fn is_open(&self) -> bool {
        self.refusals.is_empty()
    }

    /// Why the pinned plan may cut another Node's machine.
    pub(crate) fn dispute(&self) -> Option<String> {
        let mut disputes = self.refusals.iter().filter_map(|refusal| {
            if let Refusal::MachineDisputed { why } = refusal { Some(why.clone()) } else { None }
        });
        disputes.next().filter(|_| guard(Bug::DisputeIgnored, true))
    }
}

/// Whether the cluster as a whole allows the target to be switched off.
///
/// Closed on doubt: every reason is listed, so that a person sees all of them at once.
pub fn gate(policy: &GatePolicy, view: &GateView, now: Time) -> Verdict {
    let mut verdict = Verdict::default();
    people::refuse_by_words(policy.foreign_cordon, &view.words, now, &mut verdict);
    refuse_by_peers(view, &mut verdict);
    device_network::refuse_device_network(&view.device_network, now, &mut verdict);
    storage::refuse_storage(policy.storage_lease_age_max, &view.storage, now, &mut verdict);
    refuse_by_time(policy, view, now, &mut verdict);
    breaker::refuse_by_breaker(policy.breaker.as_ref(), &view.incidents, now, &mut verdict);
    let holders = u32::try_from(view.in_flight.len()).unwrap_or(u32::MAX);
    if guard(Bug::SlotsUnlimited, holders >= policy.in_flight_max) {
        let holders = view.in_flight.clone();
        verdict.refusals.push(Refusal::InFlight { holders, max: policy.in_flight_max });
    }
    refuse_full_domains(policy, view, &mut verdict);
    refuse_storm(policy, view, now, &mut verdict);
    verdict
}

fn refuse_by_peers(view: &GateView, verdict: &mut Verdict) {
    if let Some(holder) = view.held_by.clone() {
        verdict.refusals.push(Refusal::HeldByOther { holder });
    }
    if let Some(closed) = view.closed_device.clone() {
        verdict.refusals.push(Refusal::DeviceClosed(closed));
    }
    if let Some(why) = view.disputed.clone().filter(|_| !is_sown(Bug::ClaimsReadOnce)) {
        verdict.refusals.push(Refusal::MachineDisputed { why });
    }
    if let Some(node) = view.unverified.clone().filter(|_| !is_sown(Bug::NeighboursAtOnce)) {
        verdict.refusals.push(Refusal::NeighbourUnverified { node });
    }
}

fn refuse_by_time(policy: &GatePolicy, view: &GateView, now: Time, verdict: &mut Verdict) {
    let silent = now.since(view.heard_at);
    if silent > SILENCE_MAX {
        verdict.refusals.push(Refusal::OwnView { silent, max: SILENCE_MAX });
    }
    if let Some(what) = view.not_followed.clone() {
        verdict.refusals.push(Refusal::WatchBroken { what });
    }
    let until = view.last_incident_ended_at.map(|ended_at| ended_at.after(policy.cool_down));
    if let Some(until) = until.filter(|until| now < *until) {
        verdict.refusals.push(Refusal::CoolDown { until });
        verdict.look_at(until);
    }
}

impl Verdict {
    fn look_at(&mut self, at: Time) {
        self.next_look = Some(self.next_look.map_or(at, |earlier| earlier.min(at)));
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnhealthyShare { unhealthy, total, percent, percent_max, .. } => {
                write!(f, "unwell {unhealthy} of {total} = {percent} % ≥ {percent_max} %")
            }
            Self::UnhealthyCount { unhealthy, max } => {
                write!(f, "unwell {unhealthy} ≥ {max} nodes")
            }
            Self::SilentAtOnce { silent, max, window, examples } => {
                write!(
                    f,
                    "silent at once: {silent} ≥ {max} nodes, within {window} of each other ({}",
                    examples.join(", ")
                )?;
                let is_all = examples.len() >= usize::try_from(*silent).unwrap_or(usize::MAX);
                f.write_str(if is_all { ")" } else { ", …)" })?;
                f.write_str("; look at what they share")
            }
            Self::StormTail { returning, .. } => write!(
                f,
                "too many nodes were unwell a moment ago: {returning} came back and must renew \
                 three times first"
            ),
            Self::SilenceNotJudged { unheard, .. } => {
                write!(f, "too early to tell whether {unheard} other nodes fell silent too")
            }
            Self::DomainUnhealthy { domain, unhealthy, total, percent, percent_max } => write!(
                f,
                "{domain}: unwell {unhealthy} of {total} = {percent} % ≥ {percent_max} %; look at what \
                 they share"
            ),
            Self::DomainInFlight { domain, nodes, max } => {
                write!(f, "{domain}: in flight {} ≥ {max}: {}", nodes.len(), nodes.join(", "))
            }
            Self::NoDomain { key } => {
                write!(f, "the node has no label {key}, for which topologies sets limits; label it")
            }
            Self::ControlPlane { well, total, quorum, unwell } => {
                write!(f, "control plane: {well} of {total} nodes well without this one")?;
                if well < quorum {
                    write!(f, " < {quorum} for etcd's quorum")?;
                }
                if unwell.is_empty() {
                    return Ok(());
                }
                write!(f, "; first see to {}", unwell.join(", "))
            }
            Self::Headroom { left, total, percent, percent_min } => write!(
                f,
                "headroom: {left} of {total} = {percent} % of the nodes would be left to take its pods \
                 < {percent_min} %; uncordon or add some"
            ),
            Self::StorageLease { age, age_max } => {
                write!(f, "the node still used its storage {age} ago < {age_max}: it is alive")
            }
            Self::StorageLeaseUnread { why } => {
                write!(f, "failed to read whether the node uses its storage: {why}")
            }
            Self::NoLease => f.write_str(
                "the node has no Lease in kube-node-lease, so nobody can tell since when it is silent, and it is not cut; \
                 restart its kubelet",
            ),
            Self::InFlight { holders, max } => {
                write!(f, "in flight {} ≥ {max}: {}", holders.len(), holders.join(", "))
            }
            Self::BreakerOpen { why: Tripped::TooMany { begun, max, window }, .. } => write!(
                f,
                "breaker open: {begun} incidents began within {window} ≥ {max}; look for what they \
                 share"
            ),
            Self::BreakerOpen { why: Tripped::TrialFailed { name }, .. } => {
                write!(f, "breaker open: {name}, let through to try it, failed; see to that")
            }
            Self::BreakerHalfOpen { going_on } => write!(
                f,
                "breaker half-open: one at a time until one ends well, and these go on: {}",
                going_on.join(", ")
            ),
            Self::BreakerUnread { why } => {
                write!(f, "failed to read how many incidents began: {why}")
            }
            Self::Paused(Pause { reason, by, .. }) => write!(f, "paused by {by}: {reason}"),
            Self::Excluded { mark } => {
                write!(f, "excluded by {mark}; remove it to have it acted on")
            }
            Self::Maintenance { what } => write!(f, "in maintenance: {what}"),
            Self::Cordoned => f.write_str(
                "cordoned by somebody else, which counts as maintenance; uncordon it, or set \
                 cordonedByOthers: ignore",
            ),
            Self::BeingRemoved { taint } => {
                write!(f, "an autoscaler removes this node (taint {taint})")
            }
            Self::WordsUnread { what } => {
                write!(f, "failed to read whether somebody wants it left alone: {what}")
            }
            Self::OwnView { silent, max } => {
                write!(
                    f,
                    "nothing heard from the API server for {silent} > {max}: we may be cut off"
                )
            }
            Self::WatchBroken { what } => write!(f, "its watch is broken of {what}"),
            Self::HeldByOther { holder } => {
                write!(f, "{holder} holds this node's Lease in medik8s-leases")
            }
            Self::DeviceClosed(ClosedDevice { device, node }) => write!(
                f,
                "{device} failed to switch {node} on; see to it, then node-remedy ack {node}"
            ),
            Self::MachineDisputed { why } => write!(
                f,
                "{why}; nothing more is cut: correct what is wrong, then delete the NodeFence (kubectl delete \
                 nodefence)"
            ),
            Self::NeighbourUnverified { node } => write!(
                f,
                "the plug of {node} on the same device was switched off, and nobody knows yet whether it was the right \
                 one"
            ),
            Self::DeviceNetworkLost { devices, silent, example } => write!(
                f,
                "none of the {devices} devices has answered this replica for {silent}: its own network \
                 to them may be lost ({example})"
            ),
            Self::CoolDown { .. } => {
                f.write_str("the node's last incident ended a short while ago")
            }
        }
    }
}
