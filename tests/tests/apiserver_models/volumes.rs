//! Scripts about a StatefulSet's pod and its volume: who lets go of what, and when.

use node_remedy_world::api::Kind::{Node, Pod, VolumeAttachment};
use serde_json::{Value, json};

use super::script::Misfortune::KubeletStops;
use super::script::{
    Script, Step, database, delete, force, get, json_patch, let_go, merge, out_of_service,
};

/// The attach-detach controller verifies what it believes so often. A re-attach was measured 28 s
/// after a delete; it may be any part of this.
const VERIFY_S: f64 = 60.0;
/// Pod GC comes round so often.
const POD_GC_S: f64 = 20.0;
/// What a busy machine may add.
const SLACK_S: f64 = 5.0;

/// All of them.
pub(crate) fn scripts() -> Vec<Script> {
    vec![
        attachment_deleted_alone(),
        pod_and_attachment_deleted(),
        out_of_service_alone(),
        not_before_the_old_pod_is_gone(),
        held_attachment(),
        moved_by_hand(),
    ]
}

/// `db-0` runs on a, whose kubelet stops; the pod is marked and stays.
fn lost(patience_s: u64) -> Vec<Step> {
    let mut steps = database(patience_s);
    steps.extend([
        Step::Begin { a_runs: Some("db-0") },
        Step::Hit('a', KubeletStops),
        Step::Until(&[
            "node a: Ready Unknown",
            "node a: taint unreachable NoSchedule put",
            "node a: taint unreachable NoExecute put",
            "pod db-0#1: no longer Ready",
        ]),
    ]);
    steps
}

const TERMINATING: Step = Step::Until(&["pod db-0#1: Terminating"]);

/// The attachment of the volume to node a; each side names it in its own way.
const ATTACHMENT: &str = "{attachment}";

/// The pod runs elsewhere with its volume, which the first node has no more.
const MOVED: Step = Step::Until(&[
    "pod db-0#1: gone",
    "volume data on a: to be detached",
    "volume data on a: gone",
    "pod db-0#2: created",
    "pod db-0#2: bound to b",
    "volume data on b: asked for",
    "volume data on b: attached",
    "volume data on b: reported",
    "pod db-0#2: Running",
]);

/// Missed at some time within a period, and the second time, right after a look, a whole one later.
fn attachment_deleted_alone() -> Script {
    let deleted = [
        delete(VolumeAttachment, ATTACHMENT, Value::Null).into(),
        Step::Until(&["volume data on a: to be detached", "volume data on a: gone"]),
        Step::Until(&["volume data on a: asked for", "volume data on a: attached"]),
        // Only then the attach-detach controller knows, and does not try again at once.
        Step::Until(&["volume data on a: reported"]),
    ];
    let took = |least_s: f64| Step::Took {
        from: "volume data on a: gone",
        to: "volume data on a: asked for",
        within_s: least_s..=VERIFY_S + SLACK_S,
    };
    let mut steps = lost(1);
    steps.push(TERMINATING);
    steps.extend(deleted.clone());
    steps.push(took(0.0));
    steps.extend(deleted);
    steps.push(took(VERIFY_S - SLACK_S));
    Script { name: "reattach", nodes: 2, steps }
}

fn pod_and_attachment_deleted() -> Script {
    let mut steps = lost(1);
    steps.extend([
        TERMINATING,
        force(Pod, "db-0").into(),
        delete(VolumeAttachment, ATTACHMENT, Value::Null).into(),
        MOVED,
        Step::Took {
            from: "volume data on a: gone",
            to: "volume data on b: asked for",
            within_s: 0.0..=VERIFY_S + SLACK_S,
        },
    ]);
    Script { name: "pod-and-attachment", nodes: 2, steps }
}

fn out_of_service_alone() -> Script {
    let mut steps = lost(300);
    steps.extend([
        out_of_service("{a}").into(),
        Step::Until(&["node a: taint out-of-service NoExecute put"]),
        TERMINATING,
        Step::Until(&["pod db-0#1: Failed"]),
        MOVED,
        Step::Took {
            from: "node a: taint out-of-service NoExecute put",
            to: "pod db-0#1: gone",
            within_s: 0.0..=POD_GC_S + SLACK_S,
        },
    ]);
    Script { name: "out-of-service", nodes: 2, steps }
}

/// The StatefulSet waits for its old pod, the new pod for its volume, the volume for the taint.
fn not_before_the_old_pod_is_gone() -> Script {
    let mut steps = lost(1);
    steps.extend([
        TERMINATING,
        get(Pod, "db-0").note("/metadata/deletionGracePeriodSeconds").into(),
        force(Pod, "db-0").into(),
        Step::Until(&["pod db-0#1: gone", "pod db-0#2: created", "pod db-0#2: bound to b"]),
        // The volume is said to be in use on a node that is not ready: six minutes.
        Step::Nothing { for_s: 10 },
        get(VolumeAttachment, ATTACHMENT).note("/status/attached").into(),
        out_of_service("{a}").into(),
        Step::Until(&[
            "node a: taint out-of-service NoExecute put",
            "volume data on a: to be detached",
            "volume data on a: gone",
            "volume data on b: asked for",
            "volume data on b: attached",
            "pod db-0#2: Running",
        ]),
        Step::Took {
            from: "node a: taint out-of-service NoExecute put",
            to: "volume data on b: attached",
            within_s: 0.0..=SLACK_S,
        },
    ]);
    Script { name: "waits", nodes: 2, steps }
}

/// A stranger's finalizer on an attachment keeps the volume from every other node.
fn held_attachment() -> Script {
    let hold = json!([
        { "op": "add", "path": "/metadata/finalizers/-", "value": "example.com/hold" },
    ]);
    let mut steps = lost(1);
    steps.extend([
        TERMINATING,
        json_patch(VolumeAttachment, ATTACHMENT, hold).into(),
        // In this order: an eviction that finds its pod gone tries the name again, and may hit the
        // successor.
        force(Pod, "db-0").into(),
        Step::Until(&["pod db-0#1: gone", "pod db-0#2: created", "pod db-0#2: bound to b"]),
        out_of_service("{a}").into(),
        Step::Until(&[
            "node a: taint out-of-service NoExecute put",
            "volume data on a: to be detached",
        ]),
        Step::Nothing { for_s: 5 },
        let_go(VolumeAttachment, ATTACHMENT).into(),
        Step::Until(&[
            "volume data on a: gone",
            "volume data on b: asked for",
            "volume data on b: attached",
            "pod db-0#2: Running",
        ]),
    ]);
    Script { name: "held-attachment", nodes: 2, steps }
}

/// With every part alive: a node is cordoned, its pod deleted, and the volume follows it.
fn moved_by_hand() -> Script {
    let mut steps = database(300);
    steps.extend([
        Step::Begin { a_runs: Some("db-0") },
        merge(Node, "{a}", json!({ "spec": { "unschedulable": true } })).into(),
        Step::Until(&["node a: taint unschedulable NoSchedule put"]),
        delete(Pod, "db-0", Value::Null).into(),
        TERMINATING,
        MOVED,
    ]);
    Script { name: "moved-by-hand", nodes: 2, steps }
}
