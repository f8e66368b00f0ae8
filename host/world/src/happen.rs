//! Misfortunes: what a scenario's faults do to machines and to objects.

use std::time::Duration;

use node_remedy_devices::UnknownFault;
use serde_json::{Value, json};

use crate::api::object::{Key, list, name, number, part, set, text, uid};
use crate::api::{ApiServer, DeleteOptions, Kind, Part};
use crate::detector;
use crate::facts::{Power, What};
use crate::machine::Machine;
use crate::machine::spec::Network;
use crate::scenario::{Etcd, Event, OperatorCommand};
use crate::stage::{LOCKS, Stage};
use crate::time::{Time, after, micros_stamp, read_stamp, seconds_stamp};

/// Who does what people do with kubectl.
pub(crate) const PEOPLE: &str = "people";

/// Another remediator, in locks and as a client.
const OTHER_REMEDY: &str = "node-healthcheck";

/// Whose finalizer holds a pod.
const HOLDER: &str = "example.com/backup";

/// The machine that the event hits, if it hits one.
pub(crate) fn to_machine(event: &Event) -> Option<&str> {
    match event {
        Event::KubeletStops(node)
        | Event::NetworkLost(node)
        | Event::MachineHangs(node)
        | Event::PowerOffByHand(node)
        | Event::PowerOnByHand(node)
        | Event::NodeComesBack(node)
        | Event::KernelDumps { node, .. }
        | Event::BmcFault { node, .. }
        | Event::CloudFault { node, .. }
        | Event::InstanceTerminated(node) => Some(node),
        Event::DeviceFault { .. }
        | Event::PlugByHand { .. }
        | Event::DeleteNode(_)
        | Event::Cordon(_)
        | Event::TaintOutOfService(_)
        | Event::ForceDeletePod { .. }
        | Event::HoldPod { .. }
        | Event::LetPodGo { .. }
        | Event::DeleteAttachments(_)
        | Event::Edit { .. }
        | Event::Remove { .. }
        | Event::NodeCondition { .. }
        | Event::NodeEvent { .. }
        | Event::OtherRemedy { .. }
        | Event::OperatorCommand { .. }
        | Event::ServerClock(_)
        | Event::Etcd(_)
        | Event::OfController(_) => None,
    }
}

/// Lets the event hit its machine.
pub(crate) fn apply_fault(machine: &mut Machine, stage: &mut Stage<'_>, event: &Event) {
    match event {
        Event::KubeletStops(_) => machine.stop_kubelet(stage),
        Event::NetworkLost(_) => machine.set_network(stage, Network::Lost),
        Event::MachineHangs(_) => machine.hang(stage),
        Event::PowerOffByHand(_) => machine.switch(stage, Power::Off),
        Event::PowerOnByHand(_) => machine.switch(stage, Power::On),
        Event::NodeComesBack(_) => machine.come_back(stage),
        Event::KernelDumps { dump, .. } => machine.dump(stage, dump),
        Event::BmcFault { fault, value, .. } => {
            if let Some((_, bmc)) = &mut machine.bmc {
                // The names of faults were checked when the scenario was read.
                let was = bmc.faults.another_guid;
                drop::<Result<(), UnknownFault>>(bmc.faults.set(fault, *value));
                let of_another = bmc.faults.another_guid;
                if of_another != was {
                    stage.say(What::BmcChanged { node: machine.spec.name.clone(), of_another });
                }
            }
        }
        Event::CloudFault { fault, value, .. } => {
            if let Some(instance) = &mut machine.cloud {
                // Checked likewise.
                let set = instance.set_fault(stage.now.0, fault, *value);
                drop::<Result<(), UnknownFault>>(set);
            }
        }
        Event::InstanceTerminated(_) => machine.terminate(stage),
        Event::DeviceFault { .. }
        | Event::PlugByHand { .. }
        | Event::DeleteNode(_)
        | Event::Cordon(_)
        | Event::TaintOutOfService(_)
        | Event::ForceDeletePod { .. }
        | Event::HoldPod { .. }
        | Event::LetPodGo { .. }
        | Event::DeleteAttachments(_)
        | Event::Edit { .. }
        | Event::Remove { .. }
        | Event::NodeCondition { .. }
        | Event::NodeEvent { .. }
        | Event::OtherRemedy { .. }
        | Event::OperatorCommand { .. }
        | Event::ServerClock(_)
        | Event::Etcd(_)
        | Event::OfController(_) => {}
    }
}

/// Does what people do to the API server and by way of it. Objects that are gone are no error:
/// people try, too.
pub(crate) fn by_people(api: &mut ApiServer, now: Time, event: &Event) {
    match event {
        Event::DeleteNode(node) => {
            let key = Key::cluster(Kind::Node, node);
            drop(api.client(PEOPLE).delete(&key, &DeleteOptions::default()));
        }
        Event::Cordon(node) => {
            let cordon = json!({ "spec": { "unschedulable": true } });
            let key = Key::cluster(Kind::Node, node);
            drop(api.client(PEOPLE).merge_patch(&key, &cordon, Part::Main));
        }
        Event::TaintOutOfService(node) => taint_out_of_service(api, now, node),
        Event::ForceDeletePod { namespace, name } => {
            let key = Key::within(Kind::Pod, namespace, name);
            let Some(pod) = api.peek(&key) else { return };
            let how = DeleteOptions::force(uid(pod));
            drop(api.client(PEOPLE).delete(&key, &how));
        }
        Event::HoldPod { namespace, name } => set_finalizers(api, namespace, name, &[HOLDER]),
        Event::LetPodGo { namespace, name } => set_finalizers(api, namespace, name, &[]),
        Event::DeleteAttachments(node) => {
            let attachments = api.all(Kind::VolumeAttachment);
            let of_node = attachments.filter(|one| text(one, "/spec/nodeName") == node);
            let names: Vec<String> = of_node.map(|one| name(one).to_owned()).collect();
            for name in names {
                let key = Key::cluster(Kind::VolumeAttachment, &name);
                drop(api.client(PEOPLE).delete(&key, &DeleteOptions::default()));
            }
        }
        Event::Edit { key, merge } => edit(api, key, merge),
        Event::Remove { key } => {
            drop(api.client(PEOPLE).delete(key, &DeleteOptions::default()));
        }
        Event::NodeCondition { node, kind, status, reason } => {
            detector::report(api, now, node, kind, (status, reason));
        }
        Event::NodeEvent { node, reason } => detector::tell(api, now, node, reason),
        Event::OtherRemedy { node, lasts } => lock(api, now, node, *lasts),
        Event::OperatorCommand { node, command } => give_command(api, node, *command),
        Event::ServerClock(by_ms) => api.set_clock(*by_ms),
        Event::Etcd(Etcd::Saved) => api.save(),
        Event::Etcd(Etcd::Restored) => {
            api.set_back(PEOPLE);
        }
        Event::KubeletStops(_)
        | Event::NetworkLost(_)
        | Event::MachineHangs(_)
        | Event::PowerOffByHand(_)
        | Event::PowerOnByHand(_)
        | Event::NodeComesBack(_)
        | Event::KernelDumps { .. }
        | Event::BmcFault { .. }
        | Event::DeviceFault { .. }
        | Event::PlugByHand { .. }
        | Event::CloudFault { .. }
        | Event::InstanceTerminated(_)
        | Event::OfController(_) => {}
    }
}

fn edit(api: &mut ApiServer, key: &Key, merge: &Value) {
    if api.peek(key).is_some() {
        drop(api.client(PEOPLE).merge_patch(key, merge, Part::Main));
        return;
    }
    let mut object = json!({ "metadata": { "name": key.name } });
    if key.kind.is_namespaced() {
        set(part(&mut object, "metadata"), "namespace", json!(key.namespace));
    }
    json_patch::merge(&mut object, merge);
    drop(api.client(PEOPLE).create(key.kind, object));
}

/// Takes the lock that remediators have agreed on, as medik8s/common does: whoever has it keeps it
/// until it runs out.
fn lock(api: &mut ApiServer, now: Time, node: &str, lasts: Duration) {
    let key = Key::within(Kind::Lease, LOCKS, &format!("node-{node}"));
    if let Some(lease) = api.peek(&key) {
        let renewed = read_stamp(text(lease, "/spec/renewTime")).unwrap_or_default();
        let seconds = number(lease, "/spec/leaseDurationSeconds").unwrap_or_default();
        if now <= after(renewed, Duration::from_secs(seconds)) {
            return;
        }
    }
    let spec = json!({
        "holderIdentity": OTHER_REMEDY,
        "leaseDurationSeconds": lasts.as_secs(),
        "acquireTime": micros_stamp(now),
        "renewTime": micros_stamp(now),
    });
    let metadata = json!({ "name": key.name, "namespace": key.namespace });
    let mut client = api.client(OTHER_REMEDY);
    if client.merge_patch(&key, &json!({ "spec": spec }), Part::Main).is_err() {
        // Refused only if it came to exist meanwhile, and then it is somebody's.
        drop(client.create(Kind::Lease, json!({ "metadata": metadata, "spec": spec })));
    }
}

/// Annotates the incident of a node that is not over, as the command line does.
fn give_command(api: &mut ApiServer, node: &str, command: OperatorCommand) {
    let is_of_node = |one: &&Value| {
        text(one, "/spec/node/name") == node && text(one, "/status/status") != "Final"
    };
    let Some(fence) = api.all(Kind::NodeFence).filter(is_of_node).last() else { return };
    let (fence_uid, boot) = (uid(fence), text(fence, "/status/livenessAtOpen/bootID"));
    let (annotation, value) = match command {
        OperatorCommand::Approve => ("approve", fence_uid.to_owned()),
        OperatorCommand::Retry => ("retry", fence_uid.to_owned()),
        OperatorCommand::Abort => ("abort", fence_uid.to_owned()),
        OperatorCommand::AbortLeaveOff => ("abort", format!("{fence_uid}/leave-off")),
        OperatorCommand::ConfirmOff => ("confirm-off", format!("{fence_uid}/{boot}/{PEOPLE}")),
    };
    let key = Key::cluster(Kind::NodeFence, name(fence));
    let mut annotations = json!({});
    set(&mut annotations, &format!("node-remedy.io/{annotation}"), json!(value));
    let patch = json!({ "metadata": { "annotations": annotations } });
    drop(api.client(PEOPLE).merge_patch(&key, &patch, Part::Main));
}

fn set_finalizers(api: &mut ApiServer, namespace: &str, name: &str, finalizers: &[&str]) {
    let key = Key::within(Kind::Pod, namespace, name);
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    drop(api.client(PEOPLE).merge_patch(&key, &patch, Part::Main));
}

fn taint_out_of_service(api: &mut ApiServer, now: Time, node: &str) {
    let key = Key::cluster(Kind::Node, node);
    let Some(object) = api.peek(&key) else { return };
    let mut taints: Vec<Value> = list(object, "/spec/taints").to_vec();
    taints.push(json!({
        "key": "node.kubernetes.io/out-of-service",
        "value": "nodeshutdown",
        "effect": "NoExecute",
        "timeAdded": seconds_stamp(now),
    }));
    let taints = json!({ "spec": { "taints": taints } });
    drop(api.client(PEOPLE).merge_patch(&key, &taints, Part::Main));
}
