//! Scripts about the API server alone: names, versions, subresources, watches, rules.

use node_remedy_world::api::Kind;
use node_remedy_world::api::Kind::{
    ConfigMap, CsiDriver, CsiNode, Lease, Node, NodeFence, Pod, RemedyBudget, Secret, StatefulSet,
    VolumeAttachment,
};
use node_remedy_world::api::object::{part, set};
use serde_json::{Value, json};

use super::script::{
    Request, Script, Step, UID, VERSION, Watch, attached_nowhere, attachment, create, delete,
    force, get, hold, json_patch, let_go, merge, pod_nowhere, replace,
};

const GENERATION: &str = "/metadata/generation";
const GRACE: &str = "/metadata/deletionGracePeriodSeconds";
const LABELS: &str = "/metadata/labels";

/// All of them.
pub(crate) fn scripts() -> Vec<Script> {
    vec![
        names_are_taken_once(),
        stale_versions(),
        status_and_main(),
        generations(),
        lease_lock(),
        watch_from_before_the_history(),
        watch_with_bookmark(),
        budget(),
        fence(),
        blind_replaces(),
    ]
}

fn script(name: &'static str, steps: Vec<Step>) -> Script {
    Script { name, nodes: 0, steps }
}

fn node(spec: &Value) -> Value {
    json!({ "metadata": { "name": "{ns}-made" }, "spec": spec })
}

const MADE: &str = "{ns}-made";

fn names_are_taken_once() -> Script {
    let nameless = json!({
        "metadata": { "namespace": "{ns}" },
        "spec": { "containers": [{ "name": "main", "image": "none" }] },
    });
    script(
        "names",
        vec![
            pod_nowhere("one").note("/status/phase").note(GRACE).into(),
            pod_nowhere("one").into(),
            create(Pod, nameless).into(),
            get(Pod, "two").into(),
            merge(Pod, "two", json!({ "metadata": { "labels": { "a": "b" } } })).into(),
            delete(Pod, "two", Value::Null).into(),
        ],
    )
}

fn stale_versions() -> Script {
    let labelled = |value: &str| json!({ "metadata": { "labels": { "a": value } } });
    let with_version = |value: &str, version: &str| json!({ "metadata": { "labels": { "a": value }, "resourceVersion": version } });
    let whole = |version: Option<&str>, uid: Option<&str>| {
        let mut object = node(&json!({ "unschedulable": true }));
        if let Some(version) = version {
            set(part(&mut object, "metadata"), "resourceVersion", json!(version));
        }
        if let Some(uid) = uid {
            set(part(&mut object, "metadata"), "uid", json!(uid));
        }
        object
    };
    let tested = |version: &str| {
        json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": version },
            { "op": "add", "path": "/metadata/labels/a", "value": "3" },
        ])
    };
    let replaced = json!([
        { "op": "replace", "path": "/metadata/resourceVersion", "value": "{old}" },
        { "op": "add", "path": "/metadata/labels/a", "value": "never" },
    ]);
    script(
        "stale-versions",
        vec![
            create(Node, node(&json!({ "unschedulable": true })))
                .keep("old", VERSION)
                .keep("uid", UID)
                .into(),
            merge(Node, MADE, labelled("1")).into(),
            merge(Node, MADE, with_version("2", "{old}")).into(),
            replace(Node, MADE, whole(Some("{old}"), None)).into(),
            replace(Node, MADE, whole(None, Some("another"))).into(),
            replace(Node, MADE, whole(None, None)).note("/spec/unschedulable").into(),
            json_patch(Node, MADE, tested("{old}")).into(),
            json_patch(Node, MADE, replaced).into(),
            json_patch(Node, MADE, json!([{ "op": "remove", "path": "/spec/nothing" }])).into(),
            merge(Node, MADE, json!({ "metadata": { "uid": "another" } })).into(),
            merge(Node, MADE, json!({ "metadata": { "name": "renamed" } })).into(),
            get(Node, MADE).keep("new", VERSION).note(UID).into(),
            json_patch(Node, MADE, tested("{new}")).note(LABELS).into(),
            delete(Node, MADE, Value::Null).into(),
            replace(Node, MADE, whole(Some("{new}"), None)).into(),
        ],
    )
}

fn status_and_main() -> Script {
    let both = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "unschedulable": true },
        "status": { "phase": "Terminated" },
    });
    let ready = json!({
        "metadata": { "labels": { "a": "b" }, "finalizers": ["example.com/hold"] },
        "spec": { "attacher": "another" },
        "status": { "attached": true },
    });
    let failed = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "activeDeadlineSeconds": 5 },
        "status": { "phase": "Failed" },
    });
    let noted = |request: Request| {
        request
            .note(LABELS)
            .note("/metadata/finalizers")
            .note("/status")
            .note("/spec/unschedulable")
    };
    let pod_noted = |request: Request| {
        request.note(LABELS).note("/spec/activeDeadlineSeconds").note("/status/phase")
    };
    script(
        "status-and-main",
        vec![
            attachment(MADE).into(),
            noted(merge(VolumeAttachment, MADE, ready.clone()).of_status())
                .note("/spec/attacher")
                .into(),
            noted(merge(VolumeAttachment, MADE, json!({ "status": { "attached": false } }))).into(),
            delete(VolumeAttachment, MADE, Value::Null).into(),
            create(Node, node(&json!({ "unschedulable": true }))).into(),
            merge(Node, MADE, both.clone()).of_status().note(LABELS).note("/status/phase").into(),
            merge(Node, MADE, json!({ "status": { "phase": "Pending" } }))
                .note("/status/phase")
                .into(),
            delete(Node, MADE, Value::Null).into(),
            pod_nowhere("one").into(),
            pod_noted(merge(Pod, "one", failed).of_status()).into(),
            pod_noted(merge(Pod, "one", json!({ "status": { "phase": "Running" } }))).into(),
            force(Pod, "one").into(),
            create(
                Lease,
                json!({ "metadata": { "name": "one", "namespace": "{ns}" }, "spec": {} }),
            )
            .into(),
            merge(Lease, "one", json!({ "status": { "a": "b" } })).of_status().into(),
        ],
    )
}

fn generations() -> Script {
    let label = |value: &str| json!({ "metadata": { "labels": { "a": value } } });
    let noted = |request: Request| -> Step { request.note(VERSION).note(GENERATION).into() };
    let kept = |request: Request| -> Step { request.keep("v", VERSION).note(GENERATION).into() };
    let set = json!({
        "metadata": { "name": "set", "namespace": "{ns}" },
        "spec": {
            "serviceName": "set", "replicas": 0,
            "selector": { "matchLabels": { "app": "set" } },
            "template": {
                "metadata": { "labels": { "app": "set" } },
                "spec": { "containers": [{ "name": "main", "image": "none" }] },
            },
        },
    });
    let lease = json!({ "metadata": { "name": "one", "namespace": "{ns}" }, "spec": {} });
    let cordon = json!({ "spec": { "unschedulable": true } });
    script(
        "generations",
        vec![
            kept(pod_nowhere("one")),
            noted(merge(Pod, "one", json!({ "spec": { "nodeName": "{ns}-nowhere" } }))),
            kept(merge(Pod, "one", label("1"))),
            noted(merge(Pod, "one", label("1"))),
            kept(merge(Pod, "one", json!({ "status": { "reason": "r" } })).of_status()),
            noted(merge(Pod, "one", json!({ "status": { "reason": "r" } })).of_status()),
            noted(merge(Pod, "one", json!({ "spec": { "activeDeadlineSeconds": 500 } }))),
            delete(Pod, "one", json!({})).into(),
            noted(get(Pod, "one")),
            kept(get(Pod, "one")),
            // A second delete changes nothing.
            delete(Pod, "one", json!({})).into(),
            noted(get(Pod, "one")),
            force(Pod, "one").into(),
            noted(create(Lease, lease)),
            noted(merge(Lease, "one", json!({ "spec": { "holderIdentity": "me" } }))),
            noted(create(Node, node(&json!({})))),
            // Only its answer: the control plane taints what is cordoned.
            noted(merge(Node, MADE, cordon)),
            delete(Node, MADE, Value::Null).into(),
            noted(attachment(MADE)),
            noted(merge(VolumeAttachment, MADE, label("1"))),
            delete(VolumeAttachment, MADE, Value::Null).into(),
            create(StatefulSet, set).note(GENERATION).into(),
            merge(StatefulSet, "set", label("1")).note(GENERATION).into(),
            merge(StatefulSet, "set", json!({ "spec": { "minReadySeconds": 5 } }))
                .note(GENERATION)
                .into(),
        ],
    )
}

fn lease_lock() -> Script {
    let held = |by: &str, version: Option<&str>| {
        let mut lease = json!({
            "metadata": { "name": "lock", "namespace": "{ns}" },
            "spec": { "holderIdentity": by, "leaseDurationSeconds": 15 },
        });
        if let Some(version) = version {
            set(part(&mut lease, "metadata"), "resourceVersion", json!(version));
        }
        lease
    };
    let holder = |request: Request| -> Step { request.note("/spec/holderIdentity").into() };
    script(
        "lease-lock",
        vec![
            create(Lease, held("one", None)).keep("old", VERSION).into(),
            create(Lease, held("two", None)).into(),
            holder(replace(Lease, "lock", held("two", Some("{old}")))),
            holder(replace(Lease, "lock", held("three", Some("{old}")))),
            holder(replace(Lease, "lock", held("three", None))),
            holder(get(Lease, "lock")),
        ],
    )
}

fn watch_from_before_the_history() -> Script {
    let from = |kind, fields, from| Step::Watch(Watch { kind, fields, from, keep: "bookmark" });
    script(
        "old-watch",
        vec![
            pod_nowhere("one").keep("made", VERSION).into(),
            Step::ForgetHistory,
            from(NodeFence, "", "1"),
            force(Pod, "one").into(),
            pod_nowhere("other").into(),
            from(Pod, "metadata.name=one", "{made}"),
            force(Pod, "other").into(),
        ],
    )
}

/// A bookmark leads past what a watch was not told of, and nothing is told twice.
fn watch_with_bookmark() -> Script {
    let watch = |fields, from| Step::Watch(Watch { kind: Pod, fields, from, keep: "bookmark" });
    let phase = |phase: &str| -> Step {
        merge(Pod, "two", json!({ "status": { "phase": phase } })).of_status().into()
    };
    let label = |name: &str, value: &str| -> Step {
        merge(Pod, name, json!({ "metadata": { "labels": { "a": value } } })).into()
    };
    script(
        "bookmarks",
        vec![
            pod_nowhere("one").keep("made", VERSION).into(),
            pod_nowhere("two").into(),
            label("two", "1"),
            phase("Failed"),
            label("two", "2"),
            phase("Running"),
            force(Pod, "one").into(),
            pod_nowhere("three").into(),
            watch("metadata.name=two", "{made}"),
            watch("metadata.name!=three,status.phase!=Failed", "{made}"),
            label("two", "3"),
            label("three", "1"),
            watch("metadata.name!=three", "{bookmark}"),
            force(Pod, "two").into(),
            force(Pod, "three").into(),
        ],
    )
}

/// The one RemedyBudget there may be; only one script can have it.
fn budget() -> Script {
    let made = |name: &str, epoch: u64| {
        let spec = json!({ "epoch": epoch, "inFlight": [] });
        json!({ "metadata": { "name": name }, "spec": spec, "status": { "refusals": [] } })
    };
    let epoch = |epoch: u64| json!({ "spec": { "epoch": epoch } });
    let noted = |request: Request| -> Step {
        request.note(GENERATION).note("/spec/epoch").note("/status").into()
    };
    let held = json!({
        "metadata": { "labels": { "a": "b" } }, "spec": { "epoch": 9 },
        "status": { "refusals": [] },
    });
    script(
        "budget",
        vec![
            noted(create(RemedyBudget, made("{ns}-other", 2))),
            noted(create(RemedyBudget, made("default", 2))),
            noted(merge(RemedyBudget, "default", epoch(3))),
            noted(merge(RemedyBudget, "default", epoch(2))),
            noted(merge(RemedyBudget, "default", held).of_status().note(LABELS)),
            noted(merge(RemedyBudget, "default", json!({ "status": null }))),
            noted(replace(RemedyBudget, "default", made("default", 4))),
            delete(RemedyBudget, "default", Value::Null).into(),
        ],
    )
}

fn fence() -> Script {
    let hour = "1h";
    let policy = json!({
        "approval": false, "backoff": hour, "cleanupTimeout": hour, "deviceTimeout": hour,
        "gateTimeout": hour, "grades": [], "identity": "require", "isolateAfter": hour,
        "offTimeout": hour, "onTimeout": hour, "parkIsolated": false, "pdbPatience": hour,
        "podsPerMinute": 10, "powerAfter": hour, "powerOnIfFoundOff": true,
        "recoverTimeout": hour, "releaseMode": "prompt", "releaseTimeout": hour,
        "restarts": 1, "retries": 1,
    });
    let spec = json!({
        "gate": { "coolDown": hour, "maxInFlight": 1, "maxUnhealthyPercent": 49 },
        "node": { "name": "a", "uid": "u" },
        "plan": { "methods": [] },
        "policy": policy,
        "remedy": "repair",
        "trigger": {
            "conditionType": "Ready", "period": hour, "since": "2026-01-01T00:00:00Z",
            "status": "Unknown",
        },
    });
    let name = "{ns}-1";
    let noted = |request: Request| -> Step { request.note(GENERATION).note("/spec/remedy").into() };
    script(
        "fence",
        vec![
            noted(create(NodeFence, json!({ "metadata": { "name": name }, "spec": spec }))),
            noted(merge(NodeFence, name, json!({ "spec": { "remedy": "terminate" } }))),
            noted(merge(NodeFence, name, json!({ "metadata": { "labels": { "a": "b" } } }))),
            hold(NodeFence, name).into(),
            noted(delete(NodeFence, name, Value::Null)),
            noted(get(NodeFence, name)),
            let_go(NodeFence, name).into(),
            get(NodeFence, name).into(),
        ],
    )
}

/// Who replaces an object without saying which version: some kinds take it, some do not.
fn blind_replaces() -> Script {
    let of = |kind: Kind, spec: Value| -> [Step; 2] {
        let metadata = if kind.is_namespaced() {
            json!({ "name": "one", "namespace": "{ns}" })
        } else {
            json!({ "name": MADE })
        };
        let mut object = json!({ "metadata": metadata });
        if !spec.is_null() {
            set(&mut object, "spec", spec);
        }
        let name = if kind.is_namespaced() { "one" } else { MADE };
        [create(kind, object.clone()).into(), replace(kind, name, object).into()]
    };
    let steps = [
        of(Lease, json!({})),
        of(ConfigMap, Value::Null),
        of(Secret, Value::Null),
        of(Node, json!({})),
        of(CsiNode, json!({ "drivers": [] })),
        of(CsiDriver, json!({ "attachRequired": false })),
        of(VolumeAttachment, attached_nowhere()),
    ];
    let mut steps: Vec<Step> = steps.into_iter().flatten().collect();
    for kind in [Node, CsiNode, CsiDriver, VolumeAttachment] {
        steps.push(delete(kind, MADE, Value::Null).into());
    }
    script("blind-replaces", steps)
}
