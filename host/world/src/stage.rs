//! What every actor of the world is given when its turn comes, and how fast they are.

use crate::api::ApiServer;
use crate::facts::{Facts, What};
use crate::machine::Sent;
use crate::time::Time;
use crate::timings::Timings;
use crate::writers::Writers;

/// The world as one actor sees it during its turn.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) api: &'a mut ApiServer,
    pub(crate) facts: &'a mut Facts,
    pub(crate) writers: &'a mut Writers,
    pub(crate) timings: &'a Timings,
    pub(crate) now: Time,
    /// What machines send to node-remedy.
    pub(crate) sent: &'a mut Vec<Sent>,
}

impl Stage<'_> {
    pub(crate) fn say(&mut self, what: What) {
        self.facts.note(self.now, what);
    }
}

/// Driver of the modelled volumes.
pub(crate) const CSI_DRIVER: &str = "block.csi.node-remedy.io";

/// Where node-remedy lives.
pub(crate) const REMEDY_NAMESPACE: &str = "node-remedy";

/// Who node-remedy is in the locks of nodes.
pub(crate) const REMEDY: &str = "node-remedy";

/// Where remediators lock nodes.
pub(crate) const LOCKS: &str = "medik8s-leases";

/// The Lease of the process of node-remedy that leads, wherever that runs.
pub(crate) const LEADER_LEASE: &str = "node-remedy-leader";

/// The namespace of that Lease.
pub(crate) const LEADER_NAMESPACE: &str = "kube-system";

/// Where kubelets keep their Leases.
pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";

/// The earlier of two moments, where a missing one is never.
pub(crate) fn sooner(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, None) => one,
        (None, other) => other,
    }
}
