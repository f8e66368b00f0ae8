//! A simulated kubelet: what the API server sees of a node.
//!
//! Three loops run side by side and end together: it renews its Lease, reports the node's status,
//! and brings its pods to what the API server wants. It follows a real kubelet wherever the control
//! plane looks: volumes are reported in use before they are mounted, a pod runs only when
//! `status.volumesAttached` has its volumes, a Ready that was lost is reported again. It is kinder
//! in one point: a change of `volumesInUse` is reported at once, not with the next 10 s round.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Container, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::hardware::{Hardware, PodPlan};
use crate::mirror::Mirror;
use crate::storage::DRIVER;

/// The namespace of the nodes' Leases.
const LEASES: &str = "kube-node-lease";
/// A real kubelet's Lease renewal varies so much.
const RENEW_JITTER_PERCENT: i64 = 4;
/// A real kubelet reports an unchanged status this often.
const REPORT_EVERY: Duration = Duration::from_mins(5);
/// A failed call to the API server is tried again after this long.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// Pods are looked at this often even when nothing changed: some of them finish by time.
const SYNC_EVERY: Duration = Duration::from_millis(500);

/// Runs for ever; the machine drops it when power or kubelet goes.
pub(crate) async fn run(hardware: &Hardware, boot_id: &str) {
    let kubelet = Kubelet { hardware, boot_id };
    while let Err(failure) = kubelet.register().await {
        kubelet.tell("register", &failure);
        tokio::time::sleep(TRY_AGAIN_AFTER).await;
    }
    let (in_use, in_use_changes) = watch::channel(kubelet.volumes_of_running());
    tokio::join!(
        kubelet.renew_lease(),
        kubelet.report_status(in_use_changes),
        kubelet.sync_pods(in_use),
    );
}

struct Kubelet<'a> {
    hardware: &'a Hardware,
    boot_id: &'a str,
}

impl Kubelet<'_> {
    fn name(&self) -> &str {
        &self.hardware.plan.name
    }

    fn tell(&self, what: &str, failure: &anyhow::Error) {
        eprintln!("kubelet {}: failed to {what}: {failure:#}", self.name());
    }

    /// Creates what a new node creates; a node that was here before finds it.
    async fn register(&self) -> Result<()> {
        let (name, client) = (self.name(), &self.hardware.client);
        let mut labels = self.hardware.plan.labels.clone();
        labels.insert("kubernetes.io/hostname".to_owned(), name.to_owned());
        labels.insert("kubernetes.io/os".to_owned(), "linux".to_owned());
        let node = create_or_get(
            &Api::<Node>::all(client.clone()),
            json!({
                "metadata": {
                    "name": name,
                    "labels": labels,
                    // Without it the control plane makes no VolumeAttachment for this node.
                    "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
                },
                "spec": {"providerID": self.hardware.plan.provider_id},
            }),
        )
        .await?;
        let owner = json!({
            "apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid(),
        });
        create_or_get(
            &Api::<CSINode>::all(client.clone()),
            json!({
                "metadata": {"name": name, "ownerReferences": [owner]},
                "spec": {"drivers": [{"name": DRIVER, "nodeID": name, "topologyKeys": null}]},
            }),
        )
        .await?;
        create_or_get(
            &Api::<Lease>::namespaced(client.clone(), LEASES),
            json!({
                "metadata": {"name": name, "ownerReferences": [owner]},
                "spec": {
                    "holderIdentity": name,
                    "leaseDurationSeconds": self.hardware.plan.pace.lease_duration_s,
                    "renewTime": micro_time(Timestamp::now()),
                },
            }),
        )
        .await?;
        Ok(())
    }

    async fn renew_lease(&self) {
        let leases = Api::<Lease>::namespaced(self.hardware.client.clone(), LEASES);
        loop {
            let renewal = json!({"spec": {"renewTime": micro_time(Timestamp::now())}});
            let written =
                leases.patch(self.name(), &PatchParams::default(), &Patch::Merge(renewal)).await;
            let pause = match written {
                Ok(_) => jittered(self.hardware.plan.pace.renew_every),
                Err(failure) => {
                    self.tell("renew its lease", &failure.into());
                    TRY_AGAIN_AFTER
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Reports when something changed, when the control plane thinks otherwise, and every 5 min.
    async fn report_status(&self, mut in_use: watch::Receiver<BTreeSet<String>>) {
        let api = Api::<Node>::all(self.hardware.client.clone());
        let mut own = Mirror::start(api.clone(), &format!("metadata.name={}", self.name()));
        own.synced().await;
        loop {
            let volumes = in_use.borrow_and_update().clone();
            let node = own.objects().into_iter().next();
            let patch = Patch::Strategic(self.status(node.as_ref(), &volumes));
            let reported = api.patch_status(self.name(), &PatchParams::default(), &patch).await;
            if let Err(failure) = reported {
                self.tell("report its status", &failure.into());
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
                continue;
            }
            let seen_otherwise = async {
                loop {
                    own.changed().await;
                    if !own.objects().first().is_some_and(is_ready) {
                        return;
                    }
                }
            };
            tokio::select! {
                _ = in_use.changed() => {}
                () = seen_otherwise => {}
                () = tokio::time::sleep(REPORT_EVERY) => {}
            }
        }
    }

    /// An address of its own on this machine.
    fn internal_ip(&self) -> Ipv4Addr {
        let uuid = self.hardware.plan.guid.as_uuid();
        let last = uuid.len().saturating_sub(6);
        let own = uuid.get(last..).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() & 0xff00_0000 | own.unwrap_or(1))
    }

    fn status(&self, node: Option<&Node>, in_use: &BTreeSet<String>) -> Value {
        let now = Timestamp::now();
        let condition = |kind: &str, status: &str, reason: &str| {
            let since = node.and_then(|node| since(node, kind, status)).unwrap_or(now);
            json!({
                "type": kind, "status": status, "reason": reason, "message": "",
                "lastHeartbeatTime": time(now), "lastTransitionTime": time(since),
            })
        };
        let resources = json!({"cpu": "8", "memory": "8Gi", "pods": "110"});
        json!({"status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [
                {"type": "Hostname", "address": self.name()},
                {"type": "InternalIP", "address": self.internal_ip()},
            ],
            "nodeInfo": {
                "bootID": self.boot_id,
                "systemUUID": self.hardware.plan.guid.as_uuid(),
                "machineID": self.hardware.plan.guid.as_uuid().replace('-', ""),
                "kubeletVersion": "v1.36.3", "kubeProxyVersion": "", "architecture": "amd64",
                "operatingSystem": "linux", "osImage": "simulated", "kernelVersion": "simulated",
                "containerRuntimeVersion": "simulated://0",
            },
            "volumesInUse": in_use,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady"),
            ],
        }})
    }

    async fn sync_pods(&self, in_use: watch::Sender<BTreeSet<String>>) {
        let client = &self.hardware.client;
        let own_pods = format!("spec.nodeName={}", self.name());
        let mut pods = Mirror::<Pod>::start(Api::all(client.clone()), &own_pods);
        let own_name = format!("metadata.name={}", self.name());
        let mut nodes = Mirror::<Node>::start(Api::all(client.clone()), &own_name);
        pods.synced().await;
        nodes.synced().await;
        loop {
            let bound = pods.objects();
            // A pod that the API server no longer knows was force-deleted: its containers end.
            for running in self.hardware.running() {
                if !bound.iter().any(|pod| pod.uid().as_deref() == Some(&running.uid)) {
                    self.hardware.stop_container(&running.uid);
                }
            }
            let node = nodes.objects().into_iter().next();
            let mut wanted = self.volumes_of_running();
            for pod in &bound {
                let synced = self.sync_pod(pod, node.as_ref(), &mut wanted).await;
                if let Err(failure) = synced {
                    self.tell(&format!("bring pod {} on", pod.name_any()), &failure);
                }
            }
            in_use.send_if_modified(|volumes| {
                let is_new = *volumes != wanted;
                *volumes = wanted;
                is_new
            });
            tokio::select! {
                () = pods.changed() => {}
                () = nodes.changed() => {}
                () = tokio::time::sleep(SYNC_EVERY) => {}
            }
        }
    }

    async fn sync_pod(
        &self,
        pod: &Pod,
        node: Option<&Node>,
        in_use: &mut BTreeSet<String>,
    ) -> Result<()> {
        let uid = pod.uid().context("a pod without UID")?;
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if pod.metadata.deletion_timestamp.is_some() {
            return self.end_pod(pod, &uid, in_use).await;
        }
        if matches!(phase, Some("Succeeded" | "Failed")) {
            self.hardware.stop_container(&uid);
            return Ok(());
        }
        if let Some(running_for) = self.hardware.running_for(&uid) {
            let is_done = running_for >= self.hardware.plan.pace.finish_pod;
            if is_done && !restarts(pod) {
                self.hardware.stop_container(&uid);
                return self.patch_pod(pod, &finished_status(pod)).await;
            }
            if !pod_is_ready(pod) {
                return self.patch_pod(pod, &running_status(pod)).await;
            }
            return Ok(());
        }
        let plan = self.plan_pod(pod, uid).await?;
        let names: BTreeSet<_> = plan.volumes.iter().map(|volume| unique_name(volume)).collect();
        in_use.extend(names.iter().cloned());
        if !names.is_subset(&attached_volumes(node)) {
            return Ok(());
        }
        tokio::time::sleep(self.hardware.plan.pace.start_pod).await;
        if self.hardware.start_container(&plan) {
            self.patch_pod(pod, &running_status(pod)).await?;
        }
        Ok(())
    }

    async fn end_pod(&self, pod: &Pod, uid: &str, in_use: &mut BTreeSet<String>) -> Result<()> {
        if self.hardware.running_for(uid).is_some() {
            tokio::time::sleep(self.hardware.plan.pace.stop_pod).await;
            self.hardware.stop_container(uid);
            *in_use = self.volumes_of_running();
        }
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let parameters = DeleteParams::default().grace_period(0).preconditions(preconditions);
        match self.pods_of(pod).delete(&pod.name_any(), &parameters).await {
            Ok(_) => Ok(()),
            // Gone, or a newer pod of that name: either way this one has ended.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn patch_pod(&self, pod: &Pod, status: &Value) -> Result<()> {
        // The UID makes it invalid when a new pod has taken the name.
        let patch = json!({"metadata": {"uid": pod.uid()}, "status": status});
        let parameters = PatchParams::default();
        let api = self.pods_of(pod);
        match api.patch_status(&pod.name_any(), &parameters, &Patch::Strategic(patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    fn pods_of(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.hardware.client.clone(), &pod.namespace().unwrap_or_default())
    }

    async fn plan_pod(&self, pod: &Pod, uid: String) -> Result<PodPlan> {
        let namespace = pod.namespace().unwrap_or_default();
        let client = &self.hardware.client;
        let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), &namespace);
        let volumes_api = Api::<PersistentVolume>::all(client.clone());
        let mut volumes = Vec::new();
        for name in claim_names(pod) {
            let claim = claims.get(name).await?;
            let bound = claim.spec.and_then(|spec| spec.volume_name).context("an unbound claim")?;
            let csi = volumes_api.get(&bound).await?.spec.and_then(|spec| spec.csi);
            volumes.push(csi.context("a volume without CSI source")?.volume_handle);
        }
        Ok(PodPlan { namespace, name: pod.name_any(), uid, volumes })
    }

    fn volumes_of_running(&self) -> BTreeSet<String> {
        let running = self.hardware.running();
        running.iter().flat_map(|plan| &plan.volumes).map(|volume| unique_name(volume)).collect()
    }
}

async fn create_or_get<K>(api: &Api<K>, object: Value) -> Result<K>
where
    K: Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object)?;
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            Ok(api.get(&object.name_any()).await?)
        }
        outcome => Ok(outcome?),
    }
}

fn claim_names(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    volumes
        .iter()
        .filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
}

fn unique_name(volume: &str) -> String {
    format!("kubernetes.io/csi/{DRIVER}^{volume}")
}

fn attached_volumes(node: Option<&Node>) -> BTreeSet<String> {
    let attached = node.and_then(|node| node.status.as_ref()?.volumes_attached.as_deref());
    attached.unwrap_or_default().iter().map(|volume| volume.name.clone()).collect()
}

fn restarts(pod: &Pod) -> bool {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    policy.unwrap_or("Always") == "Always"
}

fn is_ready(node: &Node) -> bool {
    since(node, "Ready", "True").is_some()
}

/// Since when the node's condition has this status, if it has.
fn since(node: &Node, kind: &str, status: &str) -> Option<Timestamp> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|condition| condition.type_ == kind)?;
    (condition.status == status).then_some(condition.last_transition_time.as_ref()?.0)
}

fn pod_is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    let mut conditions = conditions.unwrap_or_default().iter();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn running_status(pod: &Pod) -> Value {
    let now = time(Timestamp::now());
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let statuses: Vec<_> = containers
        .iter()
        .map(|container| {
            json!({
                "name": container.name, "image": container.image, "imageID": "simulated",
                "ready": true, "started": true, "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            })
        })
        .collect();
    json!({
        "phase": "Running", "startTime": now, "hostIP": "127.0.0.1",
        "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [condition("Initialized"), condition("ContainersReady"), condition("Ready")],
        "containerStatuses": statuses,
    })
}

/// A container whose command is `false ARGUMENT…` fails, and the arguments are what it wrote last.
fn finished_status(pod: &Pod) -> Value {
    let now = time(Timestamp::now());
    let condition = |kind: &str| json!({"type": kind, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now});
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let last_words = |container: &Container| {
        let command = container.command.as_deref().unwrap_or_default();
        command
            .split_first()
            .filter(|(program, _)| *program == "false")
            .map(|(_, rest)| rest.join(" "))
    };
    let statuses: Vec<_> = containers
        .iter()
        .map(|container| {
            let words = last_words(container);
            json!({
                "name": container.name, "image": container.image, "imageID": "simulated",
                "ready": false, "started": false, "restartCount": 0,
                "state": {"terminated": {
                    "exitCode": i32::from(words.is_some()), "message": words, "finishedAt": now,
                }},
            })
        })
        .collect();
    let has_failed = containers.iter().any(|container| last_words(container).is_some());
    json!({
        "phase": if has_failed { "Failed" } else { "Succeeded" },
        "conditions": [condition("ContainersReady"), condition("Ready")],
        "containerStatuses": statuses,
    })
}

/// Give or take 4 %, by the clock's last digits: randomness enough to keep kubelets apart.
fn jittered(pause: Duration) -> Duration {
    let spread = i64::from(Timestamp::now().subsec_nanosecond() / 1_000 % 1_000);
    let per_100_000 = (spread * 2 - 999) * RENEW_JITTER_PERCENT + 100_000;
    pause.mul_f64(f64::from(i32::try_from(per_100_000).unwrap_or(100_000)) / 100_000.0)
}

fn time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn micro_time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewals_stay_within_four_percent() {
        for _ in 0..1_000 {
            let pause = jittered(Duration::from_secs(10));
            assert!((9_600..=10_400).contains(&pause.as_millis()), "{pause:?}");
        }
    }

    #[test]
    fn a_condition_keeps_its_transition_time_only_with_its_status() {
        let node: Node = serde_json::from_value(json!({"metadata": {}, "status": {"conditions": [
            {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]}}))
        .unwrap();
        assert!(since(&node, "Ready", "Unknown").is_some());
        assert!(since(&node, "Ready", "True").is_none());
    }
}
