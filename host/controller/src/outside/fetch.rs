//! Reads the bytes at a plugin's source, as they stand there.

use k8s_openapi::api::core::v1::ConfigMap;
use node_remedy_api::conditions::{REASON_NOT_IMMUTABLE, REASON_SOURCE_MISSING};
use node_remedy_api::fenceplugin::{ConfigMapSource, PluginSource};

use super::Refusal;
use crate::cluster::{At, Cluster};
use crate::controller::Parts;

/// What ends the key of a signature, beside that of its component.
const SIGNATURE: &str = "sig";

/// What stood at a source.
#[derive(Debug)]
pub(super) struct Fetched {
    /// Where, for people.
    pub(super) what: String,
    /// The component's own name there, which says how it is packed.
    pub(super) name: String,
    /// The packed component.
    pub(super) packed: Vec<u8>,
    /// The signature beside it, in base64.
    pub(super) signature: Option<String>,
}

/// Reads it.
pub(super) async fn fetch<C: Cluster>(
    parts: &Parts<C>,
    source: &PluginSource,
) -> Result<Fetched, Refusal> {
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
    let (mut binary, mut text) =
        (object.binary_data.unwrap_or_default(), object.data.unwrap_or_default());
    let beside = format!("{key}.{SIGNATURE}");
    let in_binary = binary.remove(&beside).and_then(|bytes| String::from_utf8(bytes.0).ok());
    let signature = in_binary.or_else(|| text.remove(&beside));
    let Some(packed) = binary.remove(key) else {
        let known = binary.keys().cloned().collect::<Vec<_>>().join(", ");
        return Err(missing(match known.as_str() {
            "" => format!("{what} has no binaryData; expected key {key:?}"),
            known => format!("{what} has no binaryData {key:?}; it has {known}"),
        }));
    };
    Ok(Fetched { what, name: key.clone(), packed: packed.0, signature })
}
