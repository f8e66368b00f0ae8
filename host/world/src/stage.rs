//! What every actor of the world is given when its turn comes, and how fast they are.

use std::time::Duration;

use crate::actors::csi_addons::Answer;
use crate::api::ApiServer;
use crate::facts::{Facts, What};
use crate::machine::Sent;
use crate::time::Time;
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

/// How long things take in this cluster, and what its CSI driver does. The defaults are a real cluster's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timings {
    /// `--node-monitor-grace-period`: silence after which Ready becomes Unknown.
    pub node_monitor_grace: Duration,
    /// `--node-monitor-period`: how often the node lifecycle controller looks.
    pub node_monitor_period: Duration,
    /// The kubelet's Lease renewal; each one is up to 4 % early or late.
    pub lease_renewal: Duration,
    /// From a kubelet's start after a boot, and its first renewal, to its first status: the new boot's ID, Ready,
    /// and the volumes in use come together.
    pub first_status: Duration,
    /// From a network that is back to the kubelet's first request: its connections wait before they try again.
    pub network_back: Duration,
    /// From a mounted volume to a running container.
    pub pod_start: Duration,
    /// How long a container takes to end when asked to.
    pub pod_stop: Duration,
    /// What the CSI driver takes to attach, and to detach.
    pub attach: Duration,
    /// The CSI driver detaches nothing that somebody writes to.
    pub checks_at_detach: bool,
    /// How long csi-addons takes with a NetworkFence.
    pub network_fence: Duration,
    /// How it answers.
    pub csi_addons: Answer,
    /// The pools of storage that every volume lies in part in: a machine writes until each keeps it away. Empty: there is one.
    pub storage_pools: Vec<String>,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            node_monitor_grace: Duration::from_secs(50),
            node_monitor_period: Duration::from_secs(5),
            lease_renewal: Duration::from_secs(10),
            first_status: Duration::ZERO,
            network_back: Duration::ZERO,
            pod_start: Duration::from_secs(1),
            pod_stop: Duration::from_secs(2),
            attach: Duration::from_millis(200),
            checks_at_detach: false,
            network_fence: Duration::from_secs(2),
            csi_addons: Answer::Succeeded,
            storage_pools: Vec::new(),
        }
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
