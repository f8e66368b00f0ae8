//! What a kubelet says of its node: the objects it registers and the status it posts.

use serde_json::{Map, Value, json};

use crate::api::object::{Key, condition_status, part, set, set_condition, text};
use crate::api::{ApiServer, Kind};
use crate::machine::spec::Spec;
use crate::stage::CSI_DRIVER;
use crate::time::{Time, seconds_stamp};

/// The conditions that a healthy kubelet reports as False. One that a fault made True it goes on
/// reporting so, until another takes that back.
const PRESSURES: [&str; 3] = ["MemoryPressure", "DiskPressure", "PIDPressure"];

/// Makes the Node and the CSINode where they are missing.
pub(super) fn register(api: &mut ApiServer, machine: &Spec, client: &str) {
    if api.peek(&Key::cluster(Kind::Node, &machine.name)).is_some() {
        return;
    }
    let mut labels = Map::new();
    labels.insert("kubernetes.io/hostname".to_owned(), json!(machine.name));
    if let Some(zone) = &machine.zone {
        labels.insert("topology.kubernetes.io/zone".to_owned(), json!(zone));
    }
    labels.extend(machine.labels.iter().map(|(key, value)| (key.clone(), json!(value))));
    let mut annotations = Map::new();
    // Without it the attach-detach controller leaves the node's volumes to the kubelet.
    let attach = "volumes.kubernetes.io/controller-managed-attach-detach";
    annotations.insert(attach.to_owned(), json!("true"));
    annotations.extend(machine.annotations.iter().map(|(key, value)| (key.clone(), json!(value))));
    let mut node = json!({
        "metadata": { "name": machine.name, "labels": labels, "annotations": annotations },
        "spec": {},
    });
    if let Some(provider_id) = &machine.provider_id {
        set(part(&mut node, "spec"), "providerID", json!(provider_id));
    }
    let csi_node = json!({
        "metadata": { "name": machine.name },
        "spec": { "drivers": [
            { "name": CSI_DRIVER, "nodeID": machine.name, "topologyKeys": [] }
        ] },
    });
    let mut client = api.client(client);
    // A second registration finds the objects there, which is what it wants.
    drop(client.create(Kind::Node, node));
    drop(client.create(Kind::CsiNode, csi_node));
}

/// Whether the status says what a kubelet of this boot would say: others change its
/// conditions, and nothing else in it ever changes during a boot.
pub(super) fn is_current(node: &Value, boot: &str, readiness: &str) -> bool {
    text(node, "/status/nodeInfo/bootID") == boot
        && condition_status(node, "Ready") == readiness
        && PRESSURES
            .iter()
            .all(|pressure| ["False", "True"].contains(&condition_status(node, pressure)))
}

/// Where a kubelet takes connections (`port` of kubelet-config.v1beta1).
pub(crate) const KUBELET_PORT: u16 = 10_250;

/// Fills in the status as the kubelet sees it; heartbeats are left as they are.
pub(super) fn fill(node: &mut Value, machine: &Spec, boot: &str, readiness: &str, now: Time) {
    let stamp = seconds_stamp(now);
    let status = part(node, "status");
    set(
        status,
        "addresses",
        json!([
            { "type": "InternalIP", "address": machine.address },
            { "type": "Hostname", "address": machine.name },
        ]),
    );
    set(status, "daemonEndpoints", json!({ "kubeletEndpoint": { "Port": KUBELET_PORT } }));
    let resources = json!({ "cpu": "8", "memory": "16Gi", "pods": "110" });
    set(status, "capacity", resources.clone());
    set(status, "allocatable", resources);
    set(
        status,
        "nodeInfo",
        json!({
            "architecture": "amd64",
            "bootID": boot,
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.12.48",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.3",
            "machineID": machine.system_uuid.replace('-', ""),
            "operatingSystem": "linux",
            "osImage": "Debian GNU/Linux 13 (trixie)",
            "systemUUID": machine.system_uuid,
        }),
    );
    for pressure in PRESSURES {
        if condition_status(node, pressure) == "True" {
            continue;
        }
        let more = json!({ "reason": "KubeletHasEnough", "message": "the kubelet has enough" });
        set_condition(node, pressure, "False", &stamp, more);
    }
    let (reason, message) = if readiness == "True" {
        ("KubeletReady", "kubelet is posting ready status")
    } else {
        ("KubeletNotReady", "container runtime network not ready")
    };
    let more = json!({ "reason": reason, "message": message });
    set_condition(node, "Ready", readiness, &stamp, more);
}

/// Stamps the kubelet's own conditions as reported now; others' are theirs.
pub(super) fn stamp(node: &mut Value, now: Time) {
    let stamp = seconds_stamp(now);
    let conditions = part(part(node, "status"), "conditions");
    for condition in conditions.as_array_mut().into_iter().flatten() {
        let kind = text(condition, "/type");
        if kind == "Ready" || PRESSURES.contains(&kind) {
            set(condition, "lastHeartbeatTime", json!(stamp));
        }
    }
}
