//! What speaks against cutting anything now, and what the gate says in the end.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::bug::{Bug, guard};
use crate::{Span, Time};

/// Why the breaker is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Tripped {
    /// So many incidents began within the window.
    TooMany {
        /// How many.
        begun: u32,
        /// The limit.
        max: u32,
        /// Within this time.
        window: Span,
    },
    /// The one that was let through to try it failed.
    TrialFailed {
        /// Its `NodeFence`.
        name: String,
    },
}

/// Somebody wants nothing to be cut.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pause {
    /// Why.
    pub reason: String,
    /// Who, or which window of the policy.
    pub by: String,
    /// When it ends by itself; `None`: when somebody ends it.
    pub until: Option<Time>,
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
        unhealthy: Vec<String>,
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
    /// So many incidents hold a slot.
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
    VetoesUnread {
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

impl Verdict {
    pub(crate) fn look_at(&mut self, at: Time) {
        self.next_look = Some(self.next_look.map_or(at, |earlier| earlier.min(at)));
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnhealthyShare { unhealthy, total, percent, percent_max, .. } => {
                write!(f, "unhealthy {unhealthy} of {total} = {percent} % ≥ {percent_max} %")
            }
            Self::UnhealthyCount { unhealthy, max } => {
                write!(f, "unhealthy {unhealthy} ≥ {max} nodes")
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
                "too many nodes were unhealthy a moment ago: {returning} came back and must renew \
                 three times first"
            ),
            Self::SilenceNotJudged { unheard, .. } => {
                write!(f, "too early to tell whether {unheard} other nodes fell silent too")
            }
            Self::DomainUnhealthy { domain, unhealthy, total, percent, percent_max } => write!(
                f,
                "{domain}: unhealthy {unhealthy} of {total} = {percent} % ≥ {percent_max} %; look at what \
                 they share"
            ),
            Self::DomainInFlight { domain, nodes, max } => {
                write!(f, "{domain}: in flight {} ≥ {max}: {}", nodes.len(), nodes.join(", "))
            }
            Self::NoDomain { key } => {
                write!(f, "the node has no label {key}, for which topologies sets limits; label it")
            }
            Self::ControlPlane { well, total, quorum, unhealthy } => {
                write!(f, "control plane: {well} of {total} nodes well without this one")?;
                if well < quorum {
                    write!(f, " < {quorum} for etcd's quorum")?;
                }
                if unhealthy.is_empty() {
                    return Ok(());
                }
                write!(f, "; first see to {}", unhealthy.join(", "))
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
            Self::VetoesUnread { what } => {
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

impl Refusal {
    /// Whether so many are lost that it looks like a network's doing, and not their own.
    pub const fn is_storm(&self) -> bool {
        matches!(
            self,
            Self::UnhealthyShare { .. }
                | Self::UnhealthyCount { .. }
                | Self::SilentAtOnce { .. }
                | Self::DomainUnhealthy { .. }
        )
    }

    /// Whether the machine is in other hands, or may be another one than the node.
    pub(crate) const fn is_anothers(&self) -> bool {
        matches!(self, Self::HeldByOther { .. } | Self::MachineDisputed { .. })
    }

    /// Whether a person wants the machine left alone. Such a word is waited for as long as it
    /// stands: no time-out of ours ends it.
    pub fn is_a_persons(&self) -> bool {
        match self {
            Self::Paused(_) | Self::Excluded { .. } | Self::Maintenance { .. } | Self::Cordoned => {
                true
            }
            Self::UnhealthyShare { .. }
            | Self::UnhealthyCount { .. }
            | Self::SilentAtOnce { .. }
            | Self::StormTail { .. }
            | Self::SilenceNotJudged { .. }
            | Self::StorageLease { .. }
            | Self::StorageLeaseUnread { .. }
            | Self::NoLease
            | Self::ControlPlane { .. }
            | Self::Headroom { .. }
            | Self::DomainUnhealthy { .. }
            | Self::DomainInFlight { .. }
            | Self::NoDomain { .. }
            | Self::InFlight { .. }
            | Self::BreakerOpen { .. }
            | Self::BreakerHalfOpen { .. }
            | Self::BreakerUnread { .. }
            | Self::OwnView { .. }
            | Self::WatchBroken { .. }
            | Self::HeldByOther { .. }
            | Self::DeviceClosed(_)
            | Self::MachineDisputed { .. }
            | Self::NeighbourUnverified { .. }
            | Self::DeviceNetworkLost { .. }
            | Self::CoolDown { .. }
            | Self::VetoesUnread { .. }
            | Self::BeingRemoved { .. } => false,
        }
    }

    /// Until when a pause or an open breaker lasts, where that is known.
    pub fn lasts_until(&self) -> Option<Time> {
        match self {
            Self::Paused(pause) => pause.until,
            Self::BreakerOpen { until, .. } => Some(*until),
            Self::UnhealthyShare { .. }
            | Self::UnhealthyCount { .. }
            | Self::SilentAtOnce { .. }
            | Self::StormTail { .. }
            | Self::SilenceNotJudged { .. }
            | Self::StorageLease { .. }
            | Self::StorageLeaseUnread { .. }
            | Self::NoLease
            | Self::ControlPlane { .. }
            | Self::Headroom { .. }
            | Self::DomainUnhealthy { .. }
            | Self::DomainInFlight { .. }
            | Self::NoDomain { .. }
            | Self::InFlight { .. }
            | Self::BreakerHalfOpen { .. }
            | Self::BreakerUnread { .. }
            | Self::OwnView { .. }
            | Self::WatchBroken { .. }
            | Self::HeldByOther { .. }
            | Self::DeviceClosed(_)
            | Self::MachineDisputed { .. }
            | Self::NeighbourUnverified { .. }
            | Self::DeviceNetworkLost { .. }
            | Self::CoolDown { .. }
            | Self::VetoesUnread { .. }
            | Self::BeingRemoved { .. }
            | Self::Excluded { .. }
            | Self::Maintenance { .. }
            | Self::Cordoned => None,
        }
    }
}

impl Verdict {
    /// Whether a person wants the machine left alone.
    pub fn is_kept_by_a_person(&self) -> bool {
        self.refusals.iter().any(Refusal::is_a_persons)
    }
}

/// A13: a device that failed to switch a machine on, and that nobody has seen to yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClosedDevice {
    /// Which.
    pub device: String,
    /// The node whose machine it failed to switch on.
    pub node: String,
}
