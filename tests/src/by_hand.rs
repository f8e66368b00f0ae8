//! What an admin does with kubectl once a node's machine is off: the release without node-remedy.
//!
//! The control plane's own floor is measured with it, and the [`crate::Observer`] is tried on it.
//! Nothing here looks whether the machine is off.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::Cluster;
use crate::user::User;

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The out-of-service taint and `db-0`'s grace-0 delete, in this user's name.
pub async fn release(cluster: &Cluster, user: User, node: &str) -> Result<()> {
    let client = cluster.control_plane().client(user).await?;
    change_taints(&client, node, |taints| {
        taints.push(Taint {
            key: OUT_OF_SERVICE.to_owned(),
            value: Some("nodeshutdown".to_owned()),
            effect: "NoExecute".to_owned(),
            time_added: None,
        });
    })
    .await?;
    let pods = Api::<Pod>::namespaced(client, "default");
    pods.delete("db-0", &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}

/// Lifts the out-of-service taint, so that the node can be used again.
pub async fn lift_taint(cluster: &Cluster, user: User, node: &str) -> Result<()> {
    let client = cluster.control_plane().client(user).await?;
    change_taints(&client, node, |taints| taints.retain(|taint| taint.key != OUT_OF_SERVICE)).await
}

/// The list is replaced as a whole, so the write must fail if somebody else changed it meanwhile.
async fn change_taints(
    client: &Client,
    node: &str,
    change: impl Fn(&mut Vec<Taint>),
) -> Result<()> {
    let nodes = Api::<Node>::all(client.clone());
    loop {
        let read = nodes.get(node).await?;
        let mut taints = read.spec.and_then(|spec| spec.taints).unwrap_or_default();
        change(&mut taints);
        let patch = json!({
            "metadata": {"resourceVersion": read.metadata.resource_version},
            "spec": {"taints": taints},
        });
        match nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            outcome => return Ok(outcome.map(|_| ())?),
        }
    }
}
