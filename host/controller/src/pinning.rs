//! Keeps which machine each Node was when it was first seen ([`crate::observe::pins`]).
//!
//! The leader adds what is missing, on the very version of the ConfigMap that it saw, and never changes what is
//! there: that is a person's to do. Where the ConfigMap is missing, nothing is kept, and the log says so.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::cluster::{At, Cluster, ClusterError};
use crate::controller::Parts;
use crate::observe::pins::{self, CONFIG_MAP};

/// Adds Nodes that are new, and drops those that are gone.
pub async fn keep<C: Cluster>(parts: &Parts<C>) {
    let mirror = &parts.mirror;
    if !parts.leads() || !mirror.nodes.is_followed() || !mirror.config_maps.is_followed() {
        return;
    }
    let kept = mirror.config_maps.all().values().find_map(|kept| {
        let metadata = &kept.0.metadata;
        (metadata.name.as_deref() == Some(CONFIG_MAP)).then(|| kept.0.clone())
    });
    let Some(kept) = kept else {
        tracing::info!(
            "ConfigMap {CONFIG_MAP} is not there: a node that changes the machine it says it is goes unnoticed; \
             see deploy/identities.yaml"
        );
        return;
    };
    let (added, gone) = {
        let none = BTreeMap::new();
        let nodes = mirror.nodes.all();
        pins::missing(kept.data.as_ref().unwrap_or(&none), nodes.values())
    };
    if added.is_empty() && gone.is_empty() {
        return;
    }
    if let Err(error) = write(parts, &kept, &added, &gone).await {
        tracing::warn!(%error, "failed to keep which machines nodes are; again soon");
    }
}

async fn write<C: Cluster>(
    parts: &Parts<C>,
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
    parts.cluster.patch::<ConfigMap>(At::within(namespace, CONFIG_MAP), &patch).await.map(|_| ())
}
