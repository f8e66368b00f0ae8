//! The generated resources on a real API server: served, and refusing what their rules forbid.

use anyhow::{Context, Result};
use kube::api::{DynamicObject, PostParams};
use node_remedy_tests::Cluster;
use node_remedy_tests::cluster::Settings;
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
