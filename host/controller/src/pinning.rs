//! Keeps which machine each Node was when it was first seen ([`node_remedy_observe::pins`]).
//!
//! The leader adds what is missing, on the very version of the ConfigMap that it saw, and never changes what is
//! there: that is a person's to do. Where the ConfigMap is missing, nothing is kept, and the log says so.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use node_remedy_context::context::Context;
use node_remedy_observe::pins;
use node_remedy_observe::pins::CONFIG_MAP;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError};
use serde_json::{Value, json};

/// How often the leader looks for Nodes that are new.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Keeps them for as long as this process lives, whether devices are probed or not.
pub async fn keep<C: Cluster>(context: Rc<Context<C>>) {
    let mut was_there = true;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let caches = &context.caches;
        if context.leads() && caches.nodes.is_followed() && caches.config_maps.is_followed() {
            let is_there = look(&context).await;
            if was_there && !is_there {
                tracing::info!(
                    "ConfigMap {CONFIG_MAP} is not there: a node that changes the machine it says it is goes \
                     unnoticed; see deploy/identities.yaml"
                );
            }
            was_there = is_there;
        }
    }
}

/// Adds Nodes that are new, and drops those that are gone. Whether the ConfigMap is there.
async fn look<C: Cluster>(context: &Context<C>) -> bool {
    let caches = &context.caches;
    let kept = caches.config_maps.all().values().find_map(|kept| {
        let metadata = &kept.0.metadata;
        (metadata.name.as_deref() == Some(CONFIG_MAP)).then(|| kept.0.clone())
    });
    let Some(kept) = kept else { return false };
    let (added, gone) = {
        let none = BTreeMap::new();
        let nodes = caches.nodes.all();
        pins::missing(kept.data.as_ref().unwrap_or(&none), nodes.values())
    };
    // A Node that cannot be read now is there all the same, and keeps its pin.
    let gone = if caches.nodes.unread().is_empty() { gone } else { Vec::new() };
    if added.is_empty() && gone.is_empty() {
        return true;
    }
    if let Err(error) = write(context, &kept, &added, &gone).await {
        tracing::warn!(%error, "failed to keep which machines nodes are; again soon");
    }
    true
}

async fn write<C: Cluster>(
    context: &Context<C>,
    kept: &ConfigMap,
    added: &BTreeMap<String, String>,
    gone: &[String],
) -> Result<(), ClusterError> {
    let mut edits: Vec<Value> = Vec::new();
    if let Some(version) = &kept.metadata.resource_version {
        edits.push(json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
    }
    if kept.data.is_none() {
        edits.push(json!({"op": "add", "path": "/data", "value": {}}));
    }
    let add = |(uid, uuid): (&String, &String)| json!({"op": "add", "path": format!("/data/{uid}"), "value": uuid});
    edits.extend(added.iter().map(add));
    edits.extend(gone.iter().map(|uid| json!({"op": "remove", "path": format!("/data/{uid}")})));
    let patch = serde_json::from_value::<json_patch::Patch>(Value::Array(edits))
        .map_err(|error| ClusterError::Invalid(error.to_string()))?;
    let namespace = kept.metadata.namespace.as_deref().unwrap_or_default();
    context.cluster.patch::<ConfigMap>(At::within(namespace, CONFIG_MAP), &patch).await.map(|_| ())
}
