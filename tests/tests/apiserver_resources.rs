//! The generated resources on a real API server: served, and refusing what their rules forbid.

use anyhow::{Context, Result};
use kube::api::{Api, DynamicObject, PostParams};
use node_remedy_tests::Cluster;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::process::repository;
use node_remedy_tests::remedy::{self, Installation};
use serde_json::{Value, json};

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
    ] {
        let refused = fences.create(&PostParams::default(), &fence(&spec)?).await;
        let refusal = refused.err().with_context(|| format!("{what} was accepted"))?.to_string();
        assert!(refusal.contains(reason), "{what}: {refusal}");
    }
    thresholds_are_one_sign_each(&remedy::custom(&client, "RemedyConfiguration")).await
}

/// Signs on both levels are kept as they are written, and what is none or two is refused.
async fn thresholds_are_one_sign_each(remedies: &Api<DynamicObject>) -> Result<()> {
    let text = std::fs::read_to_string(repository().join("examples/config/remedy-signs.yaml"))?;
    let written: DynamicObject = serde_saphyr::from_str(&text)?;
    let kept = remedies.create(&PostParams::default(), &written).await?;
    assert_eq!(kept.data.get("spec"), written.data.get("spec"), "nothing was pruned");

    let lease = json!({"nodeLeaseAge": "40s"});
    let deep = json!([{"any": [lease, {"neverJoined": "1h"}]}, {"not": lease}]);
    for (what, sign, reason) in [
        ("two signs", json!({"all": deep, "any": deep, "period": "1m"}), "a threshold is one sign"),
        ("no sign", json!({}), "a threshold is one sign"),
        ("no period", json!({"all": deep}), "all, any and not have a period"),
        ("a period too many", json!({"neverJoined": "1h", "period": "1m"}), "have a period"),
        ("an empty list", json!({"all": [], "period": "1m"}), "should have at least 1 items"),
        (
            "no Events",
            json!({"nodeEvent": {"reason": ["Oops"], "count": 0, "window": "1m"}}),
            "greater than or equal to 1",
        ),
    ] {
        let mut threshold = sign;
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
