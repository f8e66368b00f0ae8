//! Documents of a registry, as far as they are read: the manifest of a component, of its signatures, and the list
//! of what refers to one (OCI image specification 1.1; the layout of WebAssembly artefacts).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a manifest of one artefact is.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// What a list of manifests is.
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The layer that is a component.
pub(super) const WASM: &str = "application/wasm";
/// The config of an artefact that holds one.
pub(super) const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";

/// Both kinds, and Docker's, so that a registry that has another one says so.
pub(super) const ANY_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

/// Something in a registry, by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

/// A manifest, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    #[serde(default)]
    pub(super) schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) config: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) layers: Option<Vec<Descriptor>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) manifests: Option<Vec<Descriptor>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

impl Document {
    /// Out of its bytes.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes)
            .map_err(|error| format!("found no manifest in JSON ({error}), expected {MANIFEST}"))
    }

    /// The layer that is the component, of so many bytes at most; a sentence where it is another kind of
    /// artefact.
    pub(super) fn component(&self, bytes_max: u64) -> Result<&Descriptor, String> {
        if let Some(manifests) = &self.manifests {
            return Err(format!(
                "found a list of {} manifests, expected the manifest of one component; name one of them by \
                 its digest: {}",
                manifests.len(),
                several(manifests.iter().map(|one| one.digest.as_str())),
            ));
        }
        match self.media_type.as_deref() {
            None | Some(MANIFEST) => {}
            Some(other) => {
                return Err(format!(
                    "found a manifest of media type {other:?}, expected {MANIFEST}"
                ));
            }
        }
        if self.schema_version != 2 {
            return Err(format!(
                "found a manifest of schema version {}, expected 2",
                self.schema_version
            ));
        }
        let config = self.config.as_ref().map(|config| config.media_type.as_str());
        if config != Some(WASM_CONFIG) {
            return Err(format!(
                "found a config of media type {:?}, expected {WASM_CONFIG}",
                config.unwrap_or_default()
            ));
        }
        let layers = self.layers.as_deref().unwrap_or_default();
        let [layer] = layers else {
            let found = several(layers.iter().map(|layer| layer.media_type.as_str()));
            return Err(format!("found {} layers ({found}), expected one", layers.len()));
        };
        if layer.media_type != WASM {
            return Err(format!(
                "found a layer of media type {:?}, expected {WASM}",
                layer.media_type
            ));
        }
        if layer.size <= bytes_max {
            return Ok(layer);
        }
        Err(format!(
            "found a layer of {} bytes, and a component has at most {bytes_max} (spec.limits.componentBytes)",
            layer.size
        ))
    }
}

/// The first of them.
fn several<'a>(all: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<String> =
        all.take(SHOWN + 1).map(|one| one.chars().take(80).collect()).collect();
    match shown.get(..SHOWN) {
        Some(first) if shown.len() > SHOWN => format!("{}, …", first.join(", ")),
        Some(_) | None => shown.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn manifest() -> Value {
        let digest = format!("sha256:{}", "0".repeat(64));
        json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": WASM_CONFIG, "digest": digest, "size": 2},
            "layers": [{"mediaType": WASM, "digest": digest, "size": 8_388_608}],
        })
    }

    fn component(manifest: &Value) -> Result<u64, String> {
        let document = Document::read(manifest.to_string().as_bytes())?;
        document.component(8 << 20).map(|layer| layer.size)
    }

    #[test]
    fn one_component_is_one_layer_and_everything_else_is_told() {
        assert_eq!(component(&manifest()), Ok(8 << 20));
        let layer = manifest()["layers"][0].clone();
        let tar = "application/vnd.oci.image.layer.v1.tar+gzip";
        for (pointer, value, says) in [
            ("/layers/0/size", json!(8_388_609), "found a layer of 8388609 bytes"),
            ("/layers/0/size", json!(u64::MAX), "and a component has at most 8388608"),
            ("/layers/0/mediaType", json!(tar), "found a layer of media type"),
            ("/layers", json!([]), "found 0 layers (), expected one"),
            (
                "/layers",
                json!([layer, layer]),
                "found 2 layers (application/wasm, application/wasm)",
            ),
            (
                "/config/mediaType",
                json!("application/vnd.oci.image.config.v1+json"),
                "expected application/vnd.wasm.config.v0+json",
            ),
            ("/config", Value::Null, "found a config of media type \"\""),
            (
                "/mediaType",
                json!("application/vnd.docker.distribution.manifest.v2+json"),
                "found a manifest of media type",
            ),
            ("/schemaVersion", json!(1), "found a manifest of schema version 1, expected 2"),
            ("/layers/0/size", json!(-1), "found no manifest in JSON"),
        ] {
            let mut changed = manifest();
            *changed.pointer_mut(pointer).unwrap() = value;
            let why = component(&changed).unwrap_err();
            assert!(why.contains(says), "{pointer}: {why}");
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": vec![layer; 9]});
        let why = component(&index).unwrap_err();
        assert!(why.starts_with("found a list of 9 manifests") && why.ends_with(", …"), "{why}");
    }
}
