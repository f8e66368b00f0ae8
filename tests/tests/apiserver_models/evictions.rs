//! Scripts about evictions: which pods ask a disruption budget, and what it says at zero. How many
//! disruptions a budget allows the real control plane works out a moment later than the model, so no
//! script asks for the last one that it allows.

use node_remedy_world::api::Kind::{Pod, PodDisruptionBudget};
use serde_json::{Value, json};

use super::script::{Request, Script, Step, UID, create, evict, get, merge, pod_nowhere};

/// All of them.
pub(crate) fn scripts() -> Vec<Script> {
    vec![budgets()]
}

/// A budget that needs so many of the pods of this label.
fn budget(name: &str, app: &str, least: &Value, more: &Value) -> Request {
    let mut spec = json!({ "minAvailable": least, "selector": { "matchLabels": { "app": app } } });
    json_patch::merge(&mut spec, more);
    let metadata = json!({ "name": name, "namespace": "{ns}" });
    create(PodDisruptionBudget, json!({ "metadata": metadata, "spec": spec }))
}

/// A pod of this label that runs, and serves or does not.
fn runs(name: &str, app: &str, ready: bool) -> Vec<Step> {
    let ready = if ready { "True" } else { "False" };
    let condition = json!({ "type": "Ready", "status": ready });
    let status = json!({ "status": { "phase": "Running", "conditions": [condition] } });
    vec![
        pod_nowhere(name).into(),
        merge(Pod, name, json!({ "metadata": { "labels": { "app": app } } })).into(),
        merge(Pod, name, status).of_status().into(),
    ]
}

fn budgets() -> Script {
    let now = json!({ "gracePeriodSeconds": 0 });
    let mut steps = vec![
        // Nobody there, nobody's budget, another UID.
        evict("none", Value::Null).into(),
        pod_nowhere("free").keep("uid", UID).into(),
        evict("free", json!({ "preconditions": { "uid": "another" } })).into(),
        evict("free", json!({ "gracePeriodSeconds": 0, "preconditions": { "uid": "{uid}" } }))
            .into(),
        get(Pod, "free").into(),
    ];
    // At zero: what serves stays, and what is on its way is let go.
    steps.push(budget("all", "db", &json!(1), &json!({})).into());
    steps.extend(runs("db-0", "db", true));
    steps.extend([
        evict("db-0", now.clone()).into(),
        evict("db-0", Value::Null).into(),
        get(Pod, "db-0").into(),
    ]);
    steps.extend([
        pod_nowhere("db-2").into(),
        merge(Pod, "db-2", json!({ "metadata": { "labels": { "app": "db" } } })).into(),
        evict("db-2", now.clone()).into(),
        get(Pod, "db-2").into(),
        budget(
            "idle",
            "web",
            &json!("100%"),
            &json!({ "unhealthyPodEvictionPolicy": "AlwaysAllow" }),
        )
        .into(),
    ]);
    steps.extend(runs("web-0", "web", false));
    steps.extend([evict("web-0", now.clone()).into(), get(Pod, "web-0").into()]);
    // Nobody can serve two masters.
    steps.push(budget("other", "db", &json!(0), &json!({})).into());
    steps.extend([evict("db-0", now).into(), get(Pod, "db-0").into()]);
    Script { name: "evictions", nodes: 0, steps }
}
