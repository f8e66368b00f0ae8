//! Which devices do not answer, for `status` and `explain`.

use std::fmt::Write as _;

use kube::ResourceExt as _;
use node_remedy_api::conditions::{ConditionStatus, FENCE_READY};
use node_remedy_api::fenceconfiguration::{DeviceState, FenceConfiguration};
use node_remedy_runtime::cluster::kube::KubeCluster;
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{Cluster as _, ClusterError, Scope};

/// A line for each FenceConfiguration with a device that does not answer.
pub async fn told(cluster: &KubeCluster) -> anyhow::Result<String> {
    let mut out = String::new();
    for configuration in configurations(cluster).await? {
        let conditions = configuration.status.as_ref().map(|status| &status.conditions);
        let mut conditions = conditions.into_iter().flatten();
        let is_dead =
            conditions.find(|one| one.kind == FENCE_READY && one.status == ConditionStatus::False);
        if let Some(condition) = is_dead {
            let name = configuration.name_any();
            let message = condition.message.replace('\n', "; ");
            let _ = writeln!(out, "FenceConfiguration {name}: {message}");
        }
    }
    Ok(out)
}

/// A line for each device of this node that does not answer.
pub async fn of_node(cluster: &KubeCluster, node: &str) -> anyhow::Result<String> {
    let mut out = String::new();
    for configuration in configurations(cluster).await? {
        let devices = configuration.status.map(|status| status.devices).unwrap_or_default();
        let is_dead = |state| state == DeviceState::Inactive;
        for device in devices.iter().filter(|one| one.node == node && is_dead(one.state)) {
            let _ = writeln!(
                out,
                "{node} could not be fenced now: {} is INACTIVE: {}",
                device.device,
                device.detail.replace('\n', "; ")
            );
        }
    }
    Ok(out)
}

/// Those that can be read; of the others `unread` tells.
async fn configurations(cluster: &KubeCluster) -> Result<Vec<FenceConfiguration>, ClusterError> {
    let mut all = Vec::new();
    let keep = |read: Read<FenceConfiguration>| all.extend(read);
    cluster.list_each(&Scope::all(), keep).await?;
    Ok(all)
}
