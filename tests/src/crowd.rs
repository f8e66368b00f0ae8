//! Many nodes that are well and do nothing: what a large cluster is, most of the time.
//!
//! They are no [`crate::Machine`]s: no BMC, no kubelet, no pods that run. Each has a Node as large
//! as a real one, a CSINode, a Lease that is renewed every 10 s and pods that are said to run. So
//! thousands fit beside a control plane on one machine.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::time::Task;

/// As kubelets do by default.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// Requests in flight: the API server's own limit for writes is 200.
const AT_ONCE: usize = 64;
/// A real node lists the images that it has; these make most of its size.
const IMAGES: usize = 30;

/// Nodes named crowd-0, crowd-1, …; dropped, they fall silent.
pub struct Crowd {
    _renewals: Task,
}

impl Crowd {
    /// Creates `nodes` nodes with `pods_each` pods each, and keeps their Leases renewed. Answers
    /// when all are there.
    pub async fn join(client: Client, nodes: u32, pods_each: u32) -> Result<Self> {
        stream::iter(0..nodes)
            .map(|number| create(client.clone(), number, pods_each))
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(Self { _renewals: Task::spawn(renew(client, nodes)) })
    }
}

async fn create(client: Client, number: u32, pods_each: u32) -> Result<()> {
    let name = format!("crowd-{number}");
    let parameters = PostParams::default();
    let nodes = Api::<Node>::all(client.clone());
    let leases = Api::<Lease>::namespaced(client.clone(), "kube-node-lease");
    leases.create(&parameters, &serde_json::from_value(lease(&name))?).await?;
    nodes.create(&parameters, &serde_json::from_value(node(&name))?).await?;
    let pods = Api::<Pod>::namespaced(client, "default");
    for pod in 0..pods_each {
        let pod_name = format!("{name}-{pod}");
        pods.create(&parameters, &serde_json::from_value(self::pod(&pod_name, &name))?).await?;
        let running = json!({"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True"},
        ]}});
        let patch = Patch::Merge(running);
        pods.patch_status(&pod_name, &PatchParams::default(), &patch)
            .await
            .with_context(|| format!("failed to let {pod_name} run"))?;
    }
    Ok(())
}

/// Renews every Lease once in each round, spread evenly over it.
async fn renew(client: Client, nodes: u32) {
    let leases = Api::<Lease>::namespaced(client, "kube-node-lease");
    loop {
        let round = Instant::now();
        stream::iter(0..nodes)
            .map(|number| {
                let leases = leases.clone();
                async move {
                    tokio::time::sleep_until(round + RENEW_EVERY * number / nodes).await;
                    let renewal = json!({"spec": {"renewTime": now()}});
                    let name = format!("crowd-{number}");
                    let patch = Patch::Merge(renewal);
                    let renewed = leases.patch(&name, &PatchParams::default(), &patch).await;
                    if let Err(failure) = renewed {
                        eprintln!("{name}: failed to renew its Lease: {failure}");
                    }
                }
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<()>>()
            .await;
        tokio::time::sleep_until(round + RENEW_EVERY).await;
    }
}

fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

fn lease(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now()},
    })
}

fn node(name: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "as a kubelet says it",
            "lastHeartbeatTime": format!("{:.0}", Timestamp::now()),
            "lastTransitionTime": format!("{:.0}", Timestamp::now()),
        })
    };
    let images: Vec<_> = (0..IMAGES)
        .map(|image| {
            json!({
                "names": [
                    format!("registry.example.com/team/service-{image}@sha256:{:064x}", image),
                    format!("registry.example.com/team/service-{image}:v1.{image}.0"),
                ],
                "sizeBytes": 100_000_000,
            })
        })
        .collect();
    let resources = json!({"cpu": "8", "memory": "8Gi", "pods": "110"});
    json!({
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": "a",
            },
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"providerID": format!("metal://{name}")},
        "status": {
            "capacity": resources, "allocatable": resources, "images": images,
            "nodeInfo": {
                "bootID": name, "systemUUID": name, "machineID": name,
                "kubeletVersion": "v1.36.3", "kubeProxyVersion": "", "architecture": "amd64",
                "operatingSystem": "linux", "osImage": "simulated", "kernelVersion": "simulated",
                "containerRuntimeVersion": "simulated://0",
            },
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady"),
            ],
        },
    })
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "crowd", "part-of": "a-larger-whole"}},
        "spec": {
            "nodeName": node,
            "containers": [{
                "name": "main", "image": "registry.example.com/team/service-1:v1.1.0",
                "env": [{"name": "MODE", "value": "production"}],
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            }],
        },
    })
}
