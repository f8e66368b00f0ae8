//! Reads the bytes at a plugin's source, as they stand there.

use k8s_openapi::api::core::v1::ConfigMap;
use node_remedy_api::conditions::{REASON_NOT_IMMUTABLE, REASON_SOURCE_MISSING};
use node_remedy_api::fenceplugin::{ConfigMapSource, PluginSource};

use super::Refusal;
use crate::cluster::{At, Cluster};
use crate::controller::Parts;

/// The packed component.
pub(super) async fn fetch<C: Cluster>(
    parts: &Parts<C>,
    source: &PluginSource,
) -> Result<Vec<u8>, Refusal> {
    let ConfigMapSource { name, key } = &source.config_map;
    let namespace = &parts.calls.namespace;
    let what = format!("ConfigMap {namespace}/{name}");
    let object = parts.cluster.get::<ConfigMap>(At::within(namespace, name)).await;
    let object = object.map_err(|error| {
        Refusal::passing(REASON_SOURCE_MISSING, format!("failed to read {what}: {error}"))
    })?;
    // Its coming wakes whoever waits.
    let missing = |why| Refusal::new(REASON_SOURCE_MISSING, why);
    let Some(object) = object else {
        return Err(missing(format!("{what} does not exist; create it with key {key:?}")));
    };
    if object.immutable != Some(true) {
        let why = format!(
            "{what} is not immutable: what was checked could be changed; set immutable: true"
        );
        return Err(Refusal::new(REASON_NOT_IMMUTABLE, why));
    }
    let mut data = object.binary_data.unwrap_or_default();
    data.remove(key).map(|bytes| bytes.0).ok_or_else(|| {
        let known = data.keys().cloned().collect::<Vec<_>>().join(", ");
        missing(match known.as_str() {
            "" => format!("{what} has no binaryData; expected key {key:?}"),
            known => format!("{what} has no binaryData {key:?}; it has {known}"),
        })
    })
}
