//! Brings a component into a registry, with a signature beside it where cosign looks for one.
//!
//! The same component makes the same manifest, byte for byte: pushing it twice changes nothing.

use std::collections::BTreeMap;

use http::header::LOCATION;
use http::{Method, StatusCode};
use node_remedy_sandbox::signature::{SignError, SigningKey};
use node_remedy_sandbox::{Digest, InspectError, shape};
use serde_json::{Value, json};

use crate::artifact::payload;
use crate::client::{Client, RegistryRequest};
use crate::credentials::in_query;
use crate::error::OciError;
use crate::manifest::{Descriptor, Document, MANIFEST, WASM, WASM_CONFIG};
use crate::pull::{OVER_COMPONENT, SIGNATURE, SIMPLE_SIGNING, manifest};
use crate::transport::Server;

/// The config of a manifest of signatures, as cosign has it.
const IMAGE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const NAME: &str = "org.opencontainers.image.title";
const VERSION: &str = "org.opencontainers.image.version";
const BYTES: &str = "application/octet-stream";

/// Why a component was not pushed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The registry did not take it.
    #[error(transparent)]
    Registry(#[from] OciError),
    /// It could not be read.
    #[error(transparent)]
    Component(#[from] InspectError),
    /// A document could not be written.
    #[error("failed to write a manifest as JSON")]
    Json(#[from] serde_json::Error),
    /// No signature was made.
    #[error(transparent)]
    Sign(#[from] SignError),
}

/// What is pushed.
#[derive(Debug, Clone, Copy)]
pub struct Component<'a> {
    /// The plugin's name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// It.
    pub wasm: &'a [u8],
}

/// What is pushed beside it.
pub enum Signing<'a> {
    /// Signed now, as cosign does, over the manifest.
    Key(&'a SigningKey),
    /// Signed before, as `plugin sign` does, over the component.
    Made(&'a str),
}

/// Pushes it under `reference`, a tag or nothing; gives the manifest's digest.
///
/// # Errors
/// Where the registry does not take it.
pub async fn push(
    client: &mut Client<'_>,
    component: Component<'_>,
    reference: Option<&str>,
) -> Result<String, PushError> {
    let Component { name, version, wasm } = component;
    let layer = descriptor(WASM, wasm);
    let config = serde_json::to_vec(&config(wasm, &layer)?)?;
    let annotations = [(NAME, name), (VERSION, version)];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let document = Document {
        schema_version: 2,
        media_type: Some(MANIFEST.to_owned()),
        config: Some(descriptor(WASM_CONFIG, &config)),
        layers: Some(vec![layer]),
        manifests: None,
        annotations: Some(BTreeMap::from(annotations)),
    };
    put_blob(client, wasm).await?;
    put_blob(client, &config).await?;
    let manifest = serde_json::to_vec(&document)?;
    let digest = Digest::of(&manifest).to_string();
    put_manifest(client, reference.unwrap_or(&digest), manifest).await?;
    Ok(digest)
}

/// Pushes a signature of the manifest of this digest, beside those that are there.
///
/// # Errors
/// Where none is made, or the registry does not take it.
pub async fn sign(
    client: &mut Client<'_>,
    image: &str,
    digest: &str,
    signing: &Signing<'_>,
) -> Result<(), PushError> {
    let (layer, bytes) = match signing {
        Signing::Key(key) => {
            let payload = payload(image, digest).into_bytes();
            let annotation = (SIGNATURE.to_owned(), key.sign(&payload)?);
            let annotations = Some(BTreeMap::from([annotation]));
            (Descriptor { annotations, ..descriptor(SIMPLE_SIGNING, &payload) }, payload)
        }
        Signing::Made(text) => {
            let bytes = text.as_bytes().to_vec();
            (descriptor(OVER_COMPONENT, &bytes), bytes)
        }
    };
    put_blob(client, &bytes).await?;
    let tag = format!("{}.sig", digest.replacen(':', "-", 1));
    let before = manifest(client, &tag).await?;
    let before = before.and_then(|before| Document::read(&before).ok());
    let mut layers = before.and_then(|before| before.layers).unwrap_or_default();
    layers.retain(|one| *one != layer);
    layers.push(layer);
    let config = json!({
        "architecture": "", "config": {}, "os": "",
        "rootfs": {"type": "layers", "diff_ids": digests(&layers)},
    });
    let config = serde_json::to_vec(&config)?;
    put_blob(client, &config).await?;
    let document = Document {
        schema_version: 2,
        media_type: Some(MANIFEST.to_owned()),
        config: Some(descriptor(IMAGE_CONFIG, &config)),
        layers: Some(layers),
        manifests: None,
        annotations: None,
    };
    put_manifest(client, &tag, serde_json::to_vec(&document)?).await?;
    Ok(())
}

/// What the config of an artefact says of its component.
fn config(wasm: &[u8], layer: &Descriptor) -> Result<Value, InspectError> {
    Ok(json!({
        "architecture": "wasm", "os": "wasip2", "layerDigests": [layer.digest],
        "component": {"exports": shape(wasm)?.exports},
    }))
}

fn digests(layers: &[Descriptor]) -> Vec<&str> {
    layers.iter().map(|layer| layer.digest.as_str()).collect()
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Descriptor {
    Descriptor {
        media_type: media_type.to_owned(),
        digest: Digest::of(bytes).to_string(),
        size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        artifact_type: None,
        annotations: None,
    }
}

/// Uploads bytes that the repository does not have.
async fn put_blob(client: &mut Client<'_>, bytes: &[u8]) -> Result<(), OciError> {
    let digest = Digest::of(bytes).to_string();
    let what = format!("layer {digest}");
    let there = client.ask(&RegistryRequest::head(client.path(&format!("blobs/{digest}")))).await?;
    if there.status() == StatusCode::OK {
        return Ok(());
    }
    let begin =
        RegistryRequest::send(Method::POST, client.path("blobs/uploads/"), BYTES, Vec::new());
    let begun = client.ask(&begin).await?;
    if begun.status() != StatusCode::ACCEPTED {
        return Err(client.unexpected(begun.status(), "uploads"));
    }
    let location = begun.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let location = location.unwrap_or_default();
    let path = if location.starts_with('/') {
        Some(location.to_owned())
    } else {
        // Behind a proxy it may not know that it speaks TLS.
        let found = Server::of_url(location);
        found.filter(|(server, _)| server.host == client.server().host).map(|(_, path)| path)
    };
    let path = path.ok_or_else(|| OciError::Unavailable {
        server: client.server().to_string(),
        why: format!("it wants uploads at {location:?}, which is another host"),
    })?;
    let mark = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{mark}digest={}", in_query(&digest));
    let put = client.ask(&RegistryRequest::send(Method::PUT, path, BYTES, bytes.to_vec())).await?;
    if put.status() != StatusCode::CREATED {
        return Err(client.unexpected(put.status(), &what));
    }
    Ok(())
}

async fn put_manifest(
    client: &mut Client<'_>,
    reference: &str,
    bytes: Vec<u8>,
) -> Result<(), OciError> {
    let what = client.what(reference);
    let path = client.path(&format!("manifests/{reference}"));
    let put = client.ask(&RegistryRequest::send(Method::PUT, path, MANIFEST, bytes)).await?;
    if put.status() != StatusCode::CREATED {
        return Err(client.unexpected(put.status(), &what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHOD: &[u8] = include_bytes!("../../../tests/fixtures/contract/0.1.0/libvirt.wasm");
    const REMEDY: &[u8] = include_bytes!("../../../tests/fixtures/contract/0.1.0/polite.wasm");

    #[test]
    fn the_config_says_what_its_component_exports() {
        for (wasm, export) in
            [(METHOD, "node-remedy:fence/method@0.1.0"), (REMEDY, "node-remedy:fence/remedy@0.1.0")]
        {
            let config = config(wasm, &descriptor(WASM, wasm)).unwrap();
            assert_eq!(config["component"]["exports"], json!([export]));
        }
    }
}
