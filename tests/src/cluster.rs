//! A whole cluster: a control plane, machines with BMCs, storage, and a database to lose.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, VolumeAttachment};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::control_plane::NodeMonitoring;
use crate::hardware::Plan;
use crate::ipmi::{Kind, Power};
use crate::observer::PowerLogs;
use crate::storage::DRIVER;
use crate::time::{Clock, until};
use crate::user::User;
use crate::{Attacher, Bmc, ControlPlane, Machine, Observer, Pace, Storage};

/// What the control plane needs to schedule, attach and start, on a busy machine.
const SETTLED_WITHIN: Duration = Duration::from_mins(1);
/// Pod GC comes round every 20 s.
const POD_GC_ROUND_WITHIN: Duration = Duration::from_secs(40);

/// How to make a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many nodes, named node-0, node-1, ….
    pub nodes: u32,
    /// How fast they are.
    pub pace: Pace,
    /// How the control plane judges them.
    pub monitoring: NodeMonitoring,
    /// What their BMCs are.
    pub bmcs: Kind,
}

impl Settings {
    /// Three nodes that renew every second, with Debian's `ipmi_sim`.
    pub const QUICK: Self = Self {
        nodes: 3,
        pace: Pace::QUICK,
        monitoring: NodeMonitoring::QUICK,
        bmcs: Kind::IpmiSim,
    };
}

/// A running cluster; dropped, it is gone.
pub struct Cluster {
    /// The clock of its machines.
    pub clock: Clock,
    /// Its volumes.
    pub storage: Storage,
    /// Its nodes' machines by node name.
    pub machines: BTreeMap<String, Machine>,
    /// Their BMCs by node name.
    pub bmcs: BTreeMap<String, Bmc>,
    client: Client,
    _attacher: Attacher,
    // Last: everything above talks to it.
    control_plane: ControlPlane,
}

impl Cluster {
    /// Starts one and waits until all its nodes are Ready.
    pub async fn start(name: &str, settings: Settings) -> Result<Self> {
        Self::start_in_cloud(name, settings, &[]).await
    }

    /// The same, of nodes that are these instances of a cloud, as its controller writes them.
    pub async fn start_in_cloud(
        name: &str,
        settings: Settings,
        provider_ids: &[String],
    ) -> Result<Self> {
        let mut provider_ids = provider_ids.iter();
        let control_plane = ControlPlane::start(name, settings.monitoring).await?;
        let folder = control_plane.folder().to_owned();
        let storage = Storage::create(folder.join("volumes"))?;
        let client = control_plane.client(User::Admin).await?;
        create(&Api::<CSIDriver>::all(client.clone()), csi_driver()).await?;
        let attacher_client = control_plane.client(User::Attacher).await?;
        let attacher = Attacher::start(attacher_client, storage.clone());

        let clock = Clock::start();
        let (mut machines, mut bmcs) = (BTreeMap::new(), BTreeMap::new());
        for number in 0..settings.nodes {
            let name = format!("node-{number}");
            let bmc = Bmc::start(settings.bmcs, &folder.join("bmc").join(&name)).await?;
            let plan = Plan {
                name: name.clone(),
                guid: bmc.guid().clone(),
                power: bmc.power_file(),
                pace: settings.pace,
                labels: BTreeMap::new(),
                provider_id: provider_ids.next().cloned().unwrap_or(format!("metal://{name}")),
            };
            let kubelet_client = control_plane.client(User::Kubelets).await?;
            let machine = Machine::start(plan, kubelet_client, storage.clone(), clock);
            bmcs.insert(name.clone(), bmc);
            machines.insert(name, machine);
        }
        let cluster =
            Self { clock, storage, machines, bmcs, client, _attacher: attacher, control_plane };
        for name in cluster.machines.keys() {
            cluster.until_ready(name, "True").await?;
        }
        Ok(cluster)
    }

    /// The control plane.
    #[must_use]
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// A client with a person's rights.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The machine of a node.
    pub fn machine(&self, node: &str) -> Result<&Machine> {
        self.machines.get(node).with_context(|| format!("no machine named {node}"))
    }

    /// The BMC of a node.
    pub fn bmc(&self, node: &str) -> Result<&Bmc> {
        self.bmcs.get(node).with_context(|| format!("no BMC named {node}"))
    }

    /// Whoever judges `user` from outside.
    #[must_use]
    pub fn observer(&self, user: User) -> Observer {
        let logs: PowerLogs =
            self.bmcs.iter().map(|(name, bmc)| (name.clone(), bmc.log_file())).collect();
        Observer::new(user.name(), self.storage.clone(), self.control_plane.audit_log(), logs)
    }

    /// Creates the StatefulSet `db` with one pod, `db-0`, and its volume `db-0-data`. Its pods
    /// leave a node that is not Ready after `toleration_s`.
    pub async fn create_database(&self, toleration_s: u32) -> Result<()> {
        create(&Api::<PersistentVolume>::all(self.client()), database_volume()).await?;
        let sets = Api::<StatefulSet>::namespaced(self.client(), "default");
        create(&sets, database(toleration_s)).await
    }

    /// Waits until `db-0` runs and is Ready on a node other than `but_not`; answers its node.
    pub async fn database_runs(&self, but_not: Option<&str>) -> Result<String> {
        until("db-0 runs", SETTLED_WITHIN, || async {
            let Some(pod) = self.pod("db-0").await? else { return Ok(None) };
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            let is_elsewhere = node.as_deref() != but_not;
            Ok(node.filter(|_| is_elsewhere && is_running(&pod)))
        })
        .await
    }

    /// A pod of the default namespace, if it exists.
    pub async fn pod(&self, name: &str) -> Result<Option<Pod>> {
        Ok(Api::<Pod>::namespaced(self.client(), "default").get_opt(name).await?)
    }

    /// The node object.
    pub async fn node(&self, name: &str) -> Result<Node> {
        Ok(Api::<Node>::all(self.client()).get(name).await?)
    }

    /// Waits until the node's Ready condition has this status.
    pub async fn until_ready(&self, name: &str, status: &str) -> Result<()> {
        until(&format!("{name} has Ready {status}"), SETTLED_WITHIN, || async {
            Ok((ready_status(&self.node(name).await?) == Some(status)).then_some(()))
        })
        .await
    }

    /// Waits until the machine has this power.
    pub async fn until_power(&self, name: &str, power: Power) -> Result<()> {
        let bmc = self.bmc(name)?;
        until(&format!("{name} is {power:?}"), SETTLED_WITHIN, || async {
            Ok((bmc.power() == power).then_some(()))
        })
        .await
    }

    /// The nodes that volumes are attached to, as the API server has it: (volume, node).
    pub async fn attachments(&self) -> Result<Vec<(String, String)>> {
        let list = Api::<VolumeAttachment>::all(self.client()).list(&ListParams::default()).await?;
        Ok(list
            .into_iter()
            .map(|attachment| {
                let volume = attachment.spec.source.persistent_volume_name.unwrap_or_default();
                (volume, attachment.spec.node_name)
            })
            .collect())
    }

    /// Waits until the control plane's pod GC has demonstrably come round once: it deletes a pod
    /// that is Terminating on a node with the out-of-service taint in no other way. The node that
    /// this takes exists only meanwhile, is cordoned, and belongs to no machine.
    pub async fn pod_gc_round(&self) -> Result<()> {
        const WITNESS: &str = "pod-gc-witness";
        let nodes = Api::<Node>::all(self.client());
        let pods = Api::<Pod>::namespaced(self.client(), "default");
        let taint = json!({
            "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown",
            "effect": "NoExecute",
        });
        let spec = json!({"unschedulable": true, "taints": [taint]});
        create(&nodes, json!({"metadata": {"name": WITNESS}, "spec": spec})).await?;
        let spec = json!({
            "nodeName": WITNESS, "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "witness", "image": "none"}],
        });
        create(&pods, json!({"metadata": {"name": WITNESS}, "spec": spec})).await?;
        // The toleration above keeps taint eviction off it, and would keep pod GC off too, were
        // it not for the taint on a node that is not Ready. Graceful, so that it stays.
        pods.delete(WITNESS, &DeleteParams::default().grace_period(3_600)).await?;
        until("pod GC comes round", POD_GC_ROUND_WITHIN, || async {
            Ok(pods.get_opt(WITNESS).await?.is_none().then_some(()))
        })
        .await?;
        nodes.delete(WITNESS, &DeleteParams::default()).await?;
        Ok(())
    }

    /// A folder for a program's files beside the cluster's logs.
    pub fn folder_for(&self, name: &str) -> Result<PathBuf> {
        let folder = self.control_plane.folder().join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

/// The status of a node's Ready condition.
#[must_use]
pub fn ready_status(node: &Node) -> Option<&str> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some(&ready.status)
}

/// Whether a pod is Running, Ready and not being deleted.
#[must_use]
pub fn is_running(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let mut conditions = status.conditions.iter().flatten();
    pod.metadata.deletion_timestamp.is_none()
        && status.phase.as_deref() == Some("Running")
        && conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: kube::Resource + Clone + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object)?;
    let created = api.create(&PostParams::default(), &object).await;
    created.with_context(|| format!("failed to create {}", object.name_any()))?;
    Ok(())
}

fn csi_driver() -> Value {
    json!({"metadata": {"name": DRIVER}, "spec": {"attachRequired": true, "podInfoOnMount": false}})
}

/// Bound by name to the claim that the StatefulSet will make.
fn database_volume() -> Value {
    json!({
        "metadata": {"name": "db-0-data"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "claimRef": {"namespace": "default", "name": "data-db-0"},
            "csi": {"driver": DRIVER, "volumeHandle": "db-0-data"},
        },
    })
}

fn database(toleration_s: u32) -> Value {
    let both: Vec<_> = ["unreachable", "not-ready"]
        .iter()
        .map(|taint| {
            json!({
                "key": format!("node.kubernetes.io/{taint}"), "operator": "Exists",
                "effect": "NoExecute", "tolerationSeconds": toleration_s,
            })
        })
        .collect();
    json!({
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "replicas": 1,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {
                    "tolerations": both,
                    "containers": [{
                        "name": "db", "image": "none",
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }],
                },
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "",
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }],
        },
    })
}
