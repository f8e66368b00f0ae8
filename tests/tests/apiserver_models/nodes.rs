//! Scripts about what the control plane does about lost nodes: conditions, taints, evictions, zones.

use std::ops::RangeInclusive;

use node_remedy_world::api::Kind::{Node, Pod, VolumeAttachment};
use serde_json::{Value, json};

use super::script::Misfortune::{KubeletStarts, KubeletStops};
use super::script::{
    Script, Step, create, database, delete, force, get, merge, out_of_service, patience, pod,
};

/// From the last sign of life to Unknown: the grace period, at most one renewal before it and one
/// look after it; a busy machine may add to that.
const NOTICED_S: RangeInclusive<f64> = 5.0..=15.0;

/// A missing node's pods are left for 40 s and then until pod GC comes round, every 20 s.
const QUARANTINE_S: RangeInclusive<f64> = 40.0..=65.0;

/// The scripts whose nodes are some among many.
pub(crate) fn scripts() -> Vec<Script> {
    vec![
        eviction(),
        kubelet_returns(),
        cordon(),
        zone_disruption(),
        whole_zone(),
        node_deleted(),
        force_on_a_lost_node(),
        tolerant(),
    ]
}

/// A pod on a node, which will be waited for by the name given.
fn runs(name: &'static str, node: &str, patience_s: u64) -> Step {
    pod(name, node, &patience(patience_s)).into()
}

/// What is always seen when one node of several falls silent.
const A_LOST: Step = Step::Until(&[
    "node a: Ready Unknown",
    "node a: taint unreachable NoSchedule put",
    "node a: taint unreachable NoExecute put",
]);

fn eviction() -> Script {
    Script {
        name: "eviction",
        nodes: 2,
        steps: vec![
            runs("patient", "{a}", 300),
            runs("hasty", "{a}", 2),
            Step::Until(&["pod patient#1: Running", "pod hasty#1: Running"]),
            Step::Begin { a_runs: None },
            Step::Hit('a', KubeletStops),
            A_LOST,
            Step::Until(&["pod patient#1: no longer Ready", "pod hasty#1: no longer Ready"]),
            Step::Took {
                from: "node a: kubelet stops",
                to: "node a: Ready Unknown",
                within_s: NOTICED_S,
            },
            Step::Until(&["pod hasty#1: Terminating"]),
            Step::Took {
                from: "node a: taint unreachable NoExecute put",
                to: "pod hasty#1: Terminating",
                within_s: 1.0..=4.0,
            },
            // It stays so: nobody answers. The other is not touched for five minutes.
            delete(Pod, "hasty", Value::Null).note("/metadata/deletionGracePeriodSeconds").into(),
            force(Pod, "hasty").into(),
            Step::Until(&["pod hasty#1: gone"]),
        ],
    }
}

fn kubelet_returns() -> Script {
    Script {
        name: "kubelet-returns",
        nodes: 2,
        steps: vec![
            runs("patient", "{a}", 300),
            runs("hasty", "{a}", 1),
            Step::Until(&["pod patient#1: Running", "pod hasty#1: Running"]),
            Step::Begin { a_runs: None },
            Step::Hit('a', KubeletStops),
            A_LOST,
            Step::Until(&["pod patient#1: no longer Ready", "pod hasty#1: Terminating"]),
            Step::Hit('a', KubeletStarts),
            Step::Until(&[
                "node a: Ready True",
                "node a: taint unreachable NoSchedule lifted",
                "node a: taint unreachable NoExecute lifted",
                "pod hasty#1: gone",
            ]),
        ],
    }
}

fn cordon() -> Script {
    let cordon = |yes: bool| -> Step {
        merge(Node, "{a}", json!({ "spec": { "unschedulable": yes } })).into()
    };
    let waits = create(
        Pod,
        json!({
            "metadata": { "name": "waits", "namespace": "{ns}" },
            "spec": {
                "nodeSelector": { "topology.kubernetes.io/zone": "{ns}" },
                "containers": [{ "name": "main", "image": "none" }],
            },
        }),
    );
    Script {
        name: "cordon",
        nodes: 1,
        steps: vec![
            runs("stays", "{a}", 1),
            Step::Until(&["pod stays#1: Running"]),
            Step::Begin { a_runs: None },
            cordon(true),
            Step::Until(&["node a: taint unschedulable NoSchedule put"]),
            waits.into(),
            Step::Until(&["pod waits#1: created"]),
            cordon(false),
            Step::Until(&["node a: taint unschedulable NoSchedule lifted", "pod waits#1: Running"]),
            delete(Pod, "waits", Value::Null).into(),
            Step::Until(&["pod waits#1: Terminating", "pod waits#1: gone"]),
        ],
    }
}

/// Three of four nodes lost: the third is told unreachable and its pods stay, until a node is back.
fn zone_disruption() -> Script {
    Script {
        name: "zone-disruption",
        nodes: 4,
        steps: vec![
            runs("one", "{a}", 1),
            runs("two", "{b}", 1),
            runs("three", "{c}", 1),
            Step::Until(&["pod one#1: Running", "pod two#1: Running", "pod three#1: Running"]),
            Step::Begin { a_runs: None },
            Step::Hit('a', KubeletStops),
            A_LOST,
            Step::Until(&["pod one#1: no longer Ready", "pod one#1: Terminating"]),
            Step::Hit('b', KubeletStops),
            Step::Until(&[
                "node b: Ready Unknown",
                "node b: taint unreachable NoSchedule put",
                "node b: taint unreachable NoExecute put",
                "pod two#1: no longer Ready",
                "pod two#1: Terminating",
            ]),
            Step::Hit('c', KubeletStops),
            Step::Until(&[
                "node c: Ready Unknown",
                "node c: taint unreachable NoSchedule put",
                "pod three#1: no longer Ready",
            ]),
            // Were evictions not stopped, the next would come ten seconds after the last.
            Step::Nothing { for_s: 12 },
            // The node lifecycle controller puts queued NoExecute taints every 100 ms, so it may put this one before it has
            // counted the zone's lost nodes.
            Step::Race { lost_by: "node c: taint unreachable NoExecute put" },
            Step::Hit('a', KubeletStarts),
            Step::Until(&[
                "node a: Ready True",
                "node a: taint unreachable NoSchedule lifted",
                "node a: taint unreachable NoExecute lifted",
                "pod one#1: gone",
                "node c: taint unreachable NoExecute put",
                "pod three#1: Terminating",
            ]),
        ],
    }
}

/// All nodes of one zone lost while others live: evictions go on.
fn whole_zone() -> Script {
    Script {
        name: "whole-zone",
        nodes: 1,
        steps: vec![
            runs("one", "{a}", 1),
            Step::Until(&["pod one#1: Running"]),
            Step::Begin { a_runs: None },
            Step::Hit('a', KubeletStops),
            A_LOST,
            Step::Until(&["pod one#1: no longer Ready", "pod one#1: Terminating"]),
        ],
    }
}

fn node_deleted() -> Script {
    let mut steps = database(300);
    steps.extend([
        Step::Begin { a_runs: Some("db-0") },
        Step::Hit('a', KubeletStops),
        A_LOST,
        Step::Until(&["pod db-0#1: no longer Ready"]),
        delete(Node, "{a}", Value::Null).into(),
        Step::Until(&["node a: gone", "pod db-0#1: gone", "pod db-0#2: bound to b"]),
        Step::Took { from: "node a: gone", to: "pod db-0#1: gone", within_s: QUARANTINE_S },
        // What the node last had mounted it is believed to have mounted still: six minutes.
        Step::Nothing { for_s: 10 },
        get(VolumeAttachment, "{attachment}").note("/status/attached").into(),
    ]);
    Script { name: "node-deleted", nodes: 2, steps }
}

/// A pod that is deleted by force on a lost node is gone, and nobody asks whether it runs on.
fn force_on_a_lost_node() -> Script {
    Script {
        name: "force-delete",
        nodes: 2,
        steps: vec![
            runs("one", "{a}", 300),
            Step::Until(&["pod one#1: Running"]),
            Step::Begin { a_runs: None },
            Step::Hit('a', KubeletStops),
            A_LOST,
            Step::Until(&["pod one#1: no longer Ready"]),
            delete(Pod, "one", Value::Null).into(),
            Step::Until(&["pod one#1: Terminating"]),
            force(Pod, "one").into(),
            Step::Until(&["pod one#1: gone"]),
            runs("one", "{a}", 300),
            Step::Until(&["pod one#2: created", "pod one#2: bound to a"]),
            Step::Hit('a', KubeletStarts),
            Step::Until(&[
                "node a: Ready True",
                "node a: taint unreachable NoSchedule lifted",
                "node a: taint unreachable NoExecute lifted",
                "pod one#2: Running",
            ]),
        ],
    }
}

/// What tolerates everything is not evicted, and pod GC takes it only once somebody deletes it.
fn tolerant() -> Script {
    Script {
        name: "tolerant",
        nodes: 2,
        steps: vec![
            pod("one", "{a}", &json!([{ "operator": "Exists" }])).into(),
            Step::Until(&["pod one#1: Running"]),
            Step::Begin { a_runs: None },
            Step::Hit('a', KubeletStops),
            A_LOST,
            Step::Until(&["pod one#1: no longer Ready"]),
            out_of_service("{a}").into(),
            Step::Until(&["node a: taint out-of-service NoExecute put"]),
            // Longer than a round of pod GC.
            Step::Nothing { for_s: 22 },
            delete(Pod, "one", json!({ "gracePeriodSeconds": 3_600 })).into(),
            Step::Until(&["pod one#1: Terminating", "pod one#1: Failed", "pod one#1: gone"]),
        ],
    }
}

/// Every node of the cluster lost: it is rather the control plane that is cut off. A script for a
/// control plane of its own.
pub(crate) fn all_nodes() -> Script {
    Script {
        name: "all-nodes",
        nodes: 2,
        steps: vec![
            runs("one", "{a}", 300),
            runs("two", "{b}", 1),
            Step::Until(&["pod one#1: Running", "pod two#1: Running"]),
            Step::Begin { a_runs: None },
            Step::Hit('a', KubeletStops),
            A_LOST,
            Step::Until(&["pod one#1: no longer Ready"]),
            Step::Hit('b', KubeletStops),
            // What was already said of the first is taken back, and nothing is said of the second.
            Step::Until(&[
                "node b: Ready Unknown",
                "node b: taint unreachable NoSchedule put",
                "pod two#1: no longer Ready",
                "node a: taint unreachable NoExecute lifted",
            ]),
            Step::Nothing { for_s: 12 },
            Step::Hit('a', KubeletStarts),
            Step::Until(&[
                "node a: Ready True",
                "node a: taint unreachable NoSchedule lifted",
                "node b: taint unreachable NoExecute put",
                "pod two#1: Terminating",
            ]),
        ],
    }
}
