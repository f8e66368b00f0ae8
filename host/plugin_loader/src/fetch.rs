//! Reads the bytes at a plugin's source, as they stand there.

use k8s_openapi::api::core::v1::ConfigMap;
use node_remedy_api::conditions::{REASON_NOT_IMMUTABLE, REASON_REFUSED, REASON_SOURCE_MISSING};
use node_remedy_api::fenceplugin::{ConfigMapSource, OciSource, PluginSource};
use node_remedy_context::context::Context;
use node_remedy_registry::cache::CachedImage;
use node_remedy_registry::refusal::Refusal;
use node_remedy_runtime::cluster::{At, Cluster};

use crate::desired::{DesiredPlugin, Fetched, Found};

/// What ends the key of a signature, beside that of its component.
const SIGNATURE: &str = "sig";

/// Reads it.
pub(super) async fn fetch<C: Cluster>(
    context: &Context<C>,
    wanted: DesiredPlugin<'_>,
) -> Result<Fetched, Refusal> {
    match wanted.source {
        PluginSource { config_map: Some(source), oci: None } => {
            from_config_map(context, source).await
        }
        PluginSource { config_map: None, oci: Some(source) } => {
            from_registry(context, source, wanted).await
        }
        PluginSource { .. } => {
            let why = "spec.source: expected exactly one of configMap and oci";
            Err(Refusal::new(REASON_REFUSED, why))
        }
    }
}

async fn from_registry<C: Cluster>(
    context: &Context<C>,
    source: &OciSource,
    wanted: DesiredPlugin<'_>,
) -> Result<Fetched, Refusal> {
    let DesiredPlugin { digest: component, manifest, limits, verify, .. } = wanted;
    let component_bytes_max = limits.component_bytes;
    let asked = crate::from_registry::ImageRequest {
        source,
        component,
        manifest,
        verify,
        component_bytes_max,
    };
    let had = crate::from_registry::fetch(context, asked).await?;
    let crate::from_registry::Had { artefact, manifest, is_new } = had;
    let kept = CachedImage { image: source.image.clone(), artefact };
    // Never packed: the layer is the component.
    let name = "component.wasm".to_owned();
    let found = Found::Artefact { kept, manifest, is_new };
    Ok(Fetched { what: source.image.clone(), name, found })
}

async fn from_config_map<C: Cluster>(
    context: &Context<C>,
    source: &ConfigMapSource,
) -> Result<Fetched, Refusal> {
    let ConfigMapSource { name, key } = source;
    let namespace = &context.calls.namespace;
    let what = format!("ConfigMap {namespace}/{name}");
    let object = context.cluster.get::<ConfigMap>(At::within(namespace, name)).await;
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
    let found = Found::Beside { packed: packed.0, signature };
    Ok(Fetched { what, name: key.clone(), found })
}
