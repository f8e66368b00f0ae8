//! What this version cannot read of our own kinds, for `status` and `explain`. Pauses that cannot be
//! read are told with the others.

use std::fmt::Write as _;

use node_remedy_api::fenceconfiguration::FenceConfiguration;
use node_remedy_api::fenceplugin::FencePlugin;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::remedyconfiguration::RemedyConfiguration;
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{Cluster, ClusterError, Object, Scope};

/// A line for each.
pub async fn told<C: Cluster>(cluster: &C) -> Result<String, ClusterError> {
    let mut out = of_kind::<RemedyConfiguration, C>(cluster).await?;
    out += &of_kind::<FenceConfiguration, C>(cluster).await?;
    out += &of_kind::<NodeFence, C>(cluster).await?;
    match of_kind::<FencePlugin, C>(cluster).await {
        Ok(plugins) => out += &plugins,
        // Who uses no plugins from outside need not be allowed to see them.
        Err(ClusterError::Denied(_) | ClusterError::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(out)
}

async fn of_kind<K: Object, C: Cluster>(cluster: &C) -> Result<String, ClusterError> {
    let mut out = String::new();
    let keep = |read: Read<K>| {
        let Err(one) = read else { return };
        let (kind, name, why) = (K::kind(&()), one.name(), one.why());
        let _ = match one.text("/spec/node/name") {
            Some(node) => writeln!(out, "{kind} {name} of {node} cannot be read: {why}"),
            None => writeln!(out, "{kind} {name} cannot be read: {why}"),
        };
    };
    cluster.list_each(&Scope::all(), keep).await?;
    Ok(out)
}
