//! tmp
#![allow(clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]
use std::collections::BTreeMap;
use std::rc::Rc;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::coordination::v1::Lease;
use node_remedy_decide::Time;
use node_remedy_observe::condition_history::Changes;
use node_remedy_observe::packed_pod::PackedPod;
use node_remedy_observe::pruned::*;
use node_remedy_observe::store::Store;
use serde_json::json;
fn rss() -> usize {
    let s = std::fs::read_to_string("/proc/self/statm").unwrap();
    s.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
const N: usize = 20_000;
fn node(i: usize) -> PrunedNode {
    let name = format!("crowd-{i}");
    let c = |k: &str, s: &str, r: &str| json!({"type": k, "status": s, "reason": r, "message": "as a kubelet says it", "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let n = json!({"metadata": {"name": name, "uid": format!("3f2504e0-4f89-11d3-9a0c-{i:012}"), "resourceVersion": "123456", "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": "a"}, "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}},
     "spec": {"providerID": format!("metal://{name}")}, "status": {"nodeInfo": {"bootID": name, "systemUUID": name, "machineID": name, "kubeletVersion": "v1.36.3", "kubeProxyVersion": "", "architecture": "amd64", "operatingSystem": "linux", "osImage": "simulated", "kernelVersion": "simulated", "containerRuntimeVersion": "simulated://0"},
     "conditions": [c("MemoryPressure", "False", "KubeletHasSufficientMemory"), c("DiskPressure", "False", "KubeletHasNoDiskPressure"), c("PIDPressure", "False", "KubeletHasSufficientPID"), c("Ready", "True", "KubeletReady")]}});
    PrunedNode::of(serde_json::from_value::<Node>(n).unwrap()).unwrap()
}
fn pod(i: usize, k: usize) -> PrunedPod {
    let p = json!({"metadata": {"name": format!("crowd-{i}-{k}"), "namespace": "default", "uid": format!("3f2504e0-4f89-11d3-{k:04}-{i:012}")}, "spec": {"nodeName": format!("crowd-{i}"), "containers": []}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    PrunedPod::of(serde_json::from_value::<Pod>(p).unwrap()).unwrap()
}
fn main() {
    let (tx, _rx) = tokio::sync::mpsc::unbounded_channel();
    drop(_rx);
    let mut at = rss();
    let mut say = |what: &str, per: usize| { let now = rss(); println!("{what}: {} bytes each", (now - at) / per); at = now; };
    println!("sizes: node {} pod {} packed {} lease {} condition {}", size_of::<PrunedNode>(), size_of::<PrunedPod>(), size_of::<PackedPod>(), size_of::<PrunedLease>(), size_of::<Condition>());
    let nodes: Rc<Store<PrunedNode>> = Store::new("Node", tx.clone());
    let mut all = BTreeMap::new();
    for i in 0..N { let n = node(i); all.insert(n.name.clone(), n); }
    nodes.replace(all, BTreeMap::new());
    say("nodes", N);
    let changes = Changes::default();
    for n in nodes.all().values() { changes.note(None, n, Time(5)); }
    say("changes", N);
    for n in nodes.all().values() { changes.note(Some(n), n, Time(50)); }
    say("changes again", N);
    let leases: Rc<Store<PrunedLease>> = Store::new("Lease", tx.clone());
    let mut all = BTreeMap::new();
    for i in 0..N { let l: Lease = serde_json::from_value(json!({"metadata": {"name": format!("crowd-{i}")}, "spec": {"leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}})).unwrap(); all.insert(format!("kube-node-lease/crowd-{i}"), PrunedLease::of(l, Time(1)).unwrap()); }
    leases.replace(all, BTreeMap::new());
    say("leases", N);
    let pods: Rc<Store<PackedPod>> = Store::by_node("Pod", tx.clone(), |p| Some(p.unpack().node));
    let mut all = BTreeMap::new();
    for i in 0..N { for k in 0..10 { all.insert(format!("default/crowd-{i}-{k}"), PackedPod::of(&pod(i, k)).unwrap()); } }
    pods.replace(all, BTreeMap::new());
    say("pods", N * 10);
}
