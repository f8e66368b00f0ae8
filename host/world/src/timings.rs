//! How long the cluster takes for what it does.

use std::time::Duration;

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

/// How csi-addons answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Its driver does what it is asked.
    #[default]
    Succeeded,
    /// Its driver fails, and changes nothing.
    Failed,
    /// It does not run.
    Never,
}
