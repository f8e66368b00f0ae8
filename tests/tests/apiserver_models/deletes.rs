//! Scripts about deletes: which object is meant, how long it may take, and who holds it.

use node_remedy_world::api::Kind::{Pod, VolumeAttachment};
use serde_json::{Value, json};

use super::script::{
    Script, Step, UID, VERSION, attachment, create, delete, force, get, hold, let_go, merge,
    pod_nowhere,
};

const GRACE: &str = "/metadata/deletionGracePeriodSeconds";
const MADE: &str = "{ns}-made";

/// All of them.
pub(crate) fn scripts() -> Vec<Script> {
    vec![delete_preconditions(), delete_options(), grace_periods(), foreign_finalizers()]
}

fn script(name: &'static str, steps: Vec<Step>) -> Script {
    Script { name, nodes: 0, steps }
}

fn delete_preconditions() -> Script {
    let when = |preconditions: Value| {
        delete(Pod, "one", json!({ "gracePeriodSeconds": 0, "preconditions": preconditions }))
    };
    script(
        "preconditions",
        vec![
            pod_nowhere("one").keep("uid", UID).keep("old", VERSION).into(),
            merge(Pod, "one", json!({ "metadata": { "labels": { "a": "1" } } }))
                .keep("new", VERSION)
                .into(),
            when(json!({ "uid": "another" })).into(),
            when(json!({ "resourceVersion": "{old}" })).into(),
            when(json!({ "uid": "{uid}", "resourceVersion": "{old}" })).into(),
            get(Pod, "one").note(VERSION).into(),
            when(json!({ "uid": "{uid}", "resourceVersion": "{new}" })).into(),
            when(json!({ "uid": "{uid}" })).into(),
            // The name is free for a successor, which the old UID does not hit.
            pod_nowhere("one").note(UID).into(),
            when(json!({ "uid": "{uid}" })).into(),
            force(Pod, "one").into(),
        ],
    )
}

fn delete_options() -> Script {
    let made = |name: &str| -> Step { pod_nowhere(name).into() };
    script(
        "body-and-query",
        vec![
            made("both"),
            delete(Pod, "both", json!({ "gracePeriodSeconds": 5 }))
                .query("gracePeriodSeconds=0")
                .into(),
            get(Pod, "both").note(GRACE).into(),
            made("empty-body"),
            delete(Pod, "empty-body", json!({})).query("gracePeriodSeconds=0").into(),
            get(Pod, "empty-body").note(GRACE).into(),
            made("query"),
            delete(Pod, "query", Value::Null).query("gracePeriodSeconds=7").into(),
            get(Pod, "query").note(GRACE).into(),
            delete(Pod, "query", Value::Null).query("gracePeriodSeconds=0").into(),
            get(Pod, "query").into(),
            made("neither"),
            delete(Pod, "neither", Value::Null).into(),
            get(Pod, "neither").note(GRACE).into(),
            force(Pod, "both").into(),
            force(Pod, "empty-body").into(),
            force(Pod, "neither").into(),
        ],
    )
}

fn grace_periods() -> Script {
    let within = |name: &str, seconds: u64| -> Step {
        delete(Pod, name, json!({ "gracePeriodSeconds": seconds })).into()
    };
    let look = |name: &str| -> Step { get(Pod, name).note(GRACE).into() };
    let failed = json!({ "status": { "phase": "Failed" } });
    script(
        "grace-periods",
        vec![
            pod_nowhere("one").into(),
            within("one", 60),
            look("one"),
            delete(Pod, "one", Value::Null).into(),
            look("one"),
            within("one", 10),
            look("one"),
            within("one", 100),
            look("one"),
            merge(Pod, "one", failed.clone()).of_status().into(),
            delete(Pod, "one", Value::Null).into(),
            look("one"),
            within("one", 0),
            look("one"),
            pod_nowhere("failed").into(),
            merge(Pod, "failed", failed).of_status().into(),
            within("failed", 60),
            look("failed"),
            create(
                Pod,
                json!({
                    "metadata": { "name": "unbound", "namespace": "{ns}" },
                    "spec": {
                        "nodeSelector": { "no": "node" },
                        "containers": [{ "name": "main", "image": "none" }],
                    },
                }),
            )
            .into(),
            within("unbound", 60),
            look("unbound"),
        ],
    )
}

fn foreign_finalizers() -> Script {
    let more = json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/late"] } });
    let look = |kind, name: &str| -> Step {
        get(kind, name).note("/metadata/finalizers").note(GRACE).into()
    };
    script(
        "foreign-finalizers",
        vec![
            pod_nowhere("one").into(),
            Step::Begin { a_runs: None },
            hold(Pod, "one").into(),
            force(Pod, "one").into(),
            Step::Until(&["pod one#1: Terminating"]),
            look(Pod, "one"),
            force(Pod, "one").into(),
            merge(Pod, "one", more.clone()).into(),
            pod_nowhere("one").into(),
            let_go(Pod, "one").into(),
            Step::Until(&["pod one#1: gone"]),
            attachment(MADE).into(),
            hold(VolumeAttachment, MADE).into(),
            delete(VolumeAttachment, MADE, Value::Null).into(),
            look(VolumeAttachment, MADE),
            force(VolumeAttachment, MADE).into(),
            merge(VolumeAttachment, MADE, more).into(),
            attachment(MADE).into(),
            let_go(VolumeAttachment, MADE).into(),
            get(VolumeAttachment, MADE).into(),
            attachment(MADE).into(),
            delete(VolumeAttachment, MADE, Value::Null).into(),
            pod_nowhere("two").into(),
            hold(Pod, "two").into(),
            delete(Pod, "two", json!({ "gracePeriodSeconds": 60 })).into(),
            // Its grace period is not over, so that it stays when its finalizer goes.
            let_go(Pod, "two").into(),
            look(Pod, "two"),
            force(Pod, "two").into(),
            Step::Until(&["pod two#1: gone"]),
        ],
    )
}
