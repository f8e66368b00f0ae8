//! The generated resources on a real API server: served, and refusing what their rules forbid.

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use node_remedy_tests::Cluster;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::process::repository;
use node_remedy_tests::remedy::{self, Installation};
use serde_json::{Value, json};

/// What is said of a stage that runs one of several and must succeed with each.
const ONLY_ONE: &str = "mustSuccess says nothing";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_resources_are_served_and_refuse_by_their_rules() -> Result<()> {
    let cluster = Cluster::start("resources", Settings { nodes: 1, ..Settings::QUICK }).await?;
    remedy::install(&cluster, &Installation::default()).await?;
    let client = cluster.client();
    let fences = remedy::custom(&client, "FenceConfiguration");
    let kept = fences.get("machines").await?;
    assert!(kept.data.pointer("/spec/methods/0/action").is_some(), "nothing was pruned");

    let selector = json!("kubernetes.io/os=linux");
    for (what, spec, reason) in [
        ("no way to fence", json!({"nodeSelector": selector}), "isolation, by powerManagement"),
        (
            "a method of two kinds",
            json!({
                "nodeSelector": selector,
                "methods": [{"name": "both", "plugin": "ipmi", "builtin": "quarantine"}],
                "powerManagement": [{"name": "power", "methods": ["both"]}],
            }),
            "exactly one of template, plugin and builtin",
        ),
        (
            "an empty selector",
            json!({
                "nodeSelector": "",
                "powerManagement": [{"name": "power", "methods": ["off"]}],
            }),
            "nodeSelector",
        ),
        ("a method that may fail nothing", one_of_many("isolation"), ONLY_ONE),
        ("the same of power", one_of_many("powerManagement"), ONLY_ONE),
        ("the same of recovery", one_of_many("recovery"), ONLY_ONE),
    ] {
        let refused = fences.create(&PostParams::default(), &fence(&spec)?).await;
        let refusal = refused.err().with_context(|| format!("{what} was accepted"))?.to_string();
        assert!(refusal.contains(reason), "{what}: {refusal}");
    }
    plugins_and_budgets_have_names_of_their_own(&client).await?;
    let remedies = remedy::custom(&client, "RemedyConfiguration");
    remedies_are_one_kind_each(&remedies).await?;
    thresholds_are_one_symptom_each(&remedies).await
}

/// Of a stage that runs only one of its methods none must succeed.
fn one_of_many(step: &str) -> Value {
    let stage = |more: Value| {
        let mut stage = json!({"name": "stage", "methods": ["cut"]});
        json_patch::merge(&mut stage, &more);
        json!([stage])
    };
    let mut spec = json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "methods": [{"name": "cut", "plugin": "ipmi", "action": "reboot"}],
        "powerManagement": stage(json!({})),
    });
    let wrong = stage(json!({"run": "only-one", "mustSuccess": true}));
    json_patch::merge(&mut spec, &json!({step: wrong}));
    spec
}

/// A plugin's name is a part of other names, and there is one budget.
async fn plugins_and_budgets_have_names_of_their_own(client: &Client) -> Result<()> {
    let digest = format!("sha256:{}", "0".repeat(64));
    let plugin = json!({
        "source": {"configMap": {"name": "p", "key": "p.wasm"}}, "digest": digest, "grants": [],
    });
    let budget = json!({"epoch": 1, "inFlight": []});
    for (kind, name, spec, reason) in [
        ("FencePlugin", "a.dot", &plugin, "a-z, 0-9 and -"),
        ("FencePlugin", &*"a".repeat(41), &plugin, "a-z, 0-9 and -"),
        ("RemedyBudget", "another", &budget, "default"),
    ] {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "node-remedy.io/v1alpha1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        }))?;
        let refused = remedy::custom(client, kind).create(&PostParams::default(), &object).await;
        let refusal = refused.err().with_context(|| format!("{name} was accepted"))?.to_string();
        assert!(refusal.contains(reason), "{kind} {name}: {refusal}");
    }
    Ok(())
}

/// A remedy is of one kind, and only a Job has a deadline and is tried again.
async fn remedies_are_one_kind_each(remedies: &Api<DynamicObject>) -> Result<()> {
    let job = json!({"spec": {"containers": [{"name": "job", "image": "job:1"}]}});
    for (what, remedy, reason) in [
        ("two kinds", json!({"method": "reset", "cluster": "drain"}), "exactly one of"),
        ("no kind", json!({}), "exactly one of"),
        ("a Job and more", json!({"podTemplate": job, "method": "reset"}), "exactly one of"),
        ("a deadline of no Job", json!({"cluster": "drain", "deadline": "5m"}), "podTemplate"),
        ("tries of no Job", json!({"method": "reset", "backoffLimit": 2}), "podTemplate"),
    ] {
        let mut remedy = remedy;
        json_patch::merge(&mut remedy, &json!({"name": "one"}));
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "node-remedy.io/v1alpha1", "kind": "RemedyConfiguration",
            "metadata": {"name": "refused"},
            "spec": {
                "thresholdConfigs": [{"nodeLeaseAge": "40s", "remedy1": [{"name": "one"}]}],
                "remedyConfigs": [remedy],
            },
        }))?;
        let refused = remedies.create(&PostParams::default(), &object).await;
        let refusal = refused.err().with_context(|| format!("{what} was accepted"))?.to_string();
        assert!(refusal.contains(reason), "{what}: {refusal}");
    }
    Ok(())
}

/// Symptoms on both levels are kept as they are written, and what is none or two is refused.
async fn thresholds_are_one_symptom_each(remedies: &Api<DynamicObject>) -> Result<()> {
    let text = std::fs::read_to_string(repository().join("examples/config/remedy-symptoms.yaml"))?;
    let written: DynamicObject = serde_saphyr::from_str(&text)?;
    let kept = remedies.create(&PostParams::default(), &written).await?;
    assert_eq!(kept.data.get("spec"), written.data.get("spec"), "nothing was pruned");

    let lease = json!({"nodeLeaseAge": "40s"});
    let deep = json!([{"any": [lease, {"neverJoined": "1h"}]}, {"not": lease}]);
    for (what, symptom, reason) in [
        (
            "two symptoms",
            json!({"all": deep, "any": deep, "period": "1m"}),
            "a threshold is one symptom",
        ),
        ("no symptom", json!({}), "a threshold is one symptom"),
        (
            "a condition without its period",
            json!({"nodeConditionType": "Ready", "nodeConditionStatus": false}),
            "nodeConditionPeriod",
        ),
        (
            "a period of no condition",
            json!({"neverJoined": "1h", "nodeConditionPeriod": "5s"}),
            "nodeConditionPeriod",
        ),
        ("no period", json!({"all": deep}), "all, any and not have a period"),
        ("a period too many", json!({"neverJoined": "1h", "period": "1m"}), "have a period"),
        ("an empty list", json!({"all": [], "period": "1m"}), "should have at least 1 items"),
        (
            "no Events",
            json!({"nodeEvent": {"reason": ["Oops"], "count": 0, "window": "1m"}}),
            "greater than or equal to 1",
        ),
    ] {
        let mut threshold = symptom;
        let fields = threshold.as_object_mut().context("a map")?;
        fields.insert("remedy1".to_owned(), json!([{"name": "fence"}]));
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "node-remedy.io/v1alpha1",
            "kind": "RemedyConfiguration",
            "metadata": {"name": "refused"},
            "spec": {"thresholdConfigs": [threshold]},
        }))?;
        let refused = remedies.create(&PostParams::default(), &object).await;
        let refusal = refused.err().with_context(|| format!("{what} was accepted"))?.to_string();
        assert!(refusal.contains(reason), "{what}: {refusal}");
    }
    Ok(())
}

fn fence(spec: &Value) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "node-remedy.io/v1alpha1",
        "kind": "FenceConfiguration",
        "metadata": {"name": "refused"},
        "spec": spec,
    }))?)
}
