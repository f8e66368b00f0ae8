//! The parts of Kubernetes that decide what becomes of a lost node's pods, as models.
//!
//! Each is a small file with the behaviour of Kubernetes 1.36 and 1.37 as far as somebody here
//! can tell the difference, read from its source and compared with the real one. An
//! actor is given its turn and says when it wants the next; a change in the API gives it
//! one too, after the latency that [`reaction`] names. None of them keeps a cache: what
//! they read is never stale.

pub(crate) mod attach_detach;
pub(crate) mod attacher;
pub(crate) mod csi_addons;
pub(crate) mod jobs;
pub(crate) mod node_lifecycle;
pub(crate) mod pod_gc;
pub(crate) mod scheduler;
pub(crate) mod stateful_set;
pub(crate) mod taint_eviction;
mod taints;

use std::time::Duration;

use crate::api::Kind;

/// The actors that there is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    NodeLifecycle,
    TaintEviction,
    PodGc,
    StatefulSets,
    Jobs,
    Scheduler,
    AttachDetach,
    Attacher,
    CsiAddons,
}

impl Role {
    pub(crate) const ALL: [Self; 9] = [
        Self::NodeLifecycle,
        Self::TaintEviction,
        Self::PodGc,
        Self::StatefulSets,
        Self::Jobs,
        Self::Scheduler,
        Self::AttachDetach,
        Self::Attacher,
        Self::CsiAddons,
    ];
}

/// How long after a change of an object of `kind` the actor has its turn; none if it
/// does not watch that kind. Watches and work queues take some milliseconds; the
/// attach-detach controller looks every 100 ms.
pub(crate) fn reaction(role: Role, kind: Kind) -> Option<Duration> {
    let watched: &[(Kind, u64)] = match role {
        Role::NodeLifecycle => &[(Kind::Node, 20)],
        Role::TaintEviction | Role::Scheduler => &[(Kind::Node, 20), (Kind::Pod, 20)],
        Role::PodGc => &[],
        Role::StatefulSets => &[(Kind::Pod, 30), (Kind::StatefulSet, 30)],
        Role::Jobs => &[(Kind::Pod, 30), (Kind::Job, 30)],
        Role::AttachDetach => &[(Kind::Pod, 100), (Kind::Node, 100), (Kind::VolumeAttachment, 100)],
        Role::Attacher => &[(Kind::VolumeAttachment, 10)],
        Role::CsiAddons => &[(Kind::NetworkFence, 20)],
    };
    let (_, ms) = watched.iter().find(|(watched, _)| *watched == kind)?;
    Some(Duration::from_millis(*ms))
}
