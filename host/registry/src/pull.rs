//! Fetches one artefact: its manifest, the one layer that it names, and what was signed of it.

use http::StatusCode;
use node_remedy_api::fenceplugin::is_digest;
use node_remedy_sandbox::Digest;
use tokio::time::timeout;

use crate::artifact::{Artefact, Signature};
use crate::client::{Client, RegistryRequest};
use crate::error::OciError;
use crate::limits::{
    MANIFEST_BYTES_MAX, PAYLOAD_BYTES_MAX, PULL_TIME, REFERRERS_MAX, SIGNATURE_CHARACTERS_MAX,
    SIGNATURES_MAX,
};
use crate::manifest::{ANY_MANIFEST, Descriptor, Document, INDEX};

/// The layer over which a signature of cosign is made, and where the signature itself stands.
pub(super) const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
pub(super) const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// A signature over the component, as `plugin sign` makes it: the layer is its text.
pub(super) const OVER_COMPONENT: &str = "application/vnd.node-remedy.signature.v1";
/// A manifest of signatures, in a list of what refers to an artefact.
const COSIGN_SIGNATURES: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";

/// What is wanted of an image.
#[derive(Debug, Clone, Copy)]
pub struct PullSpec<'a> {
    /// The tag, or the manifest's digest.
    pub reference: &'a str,
    /// The component's digest.
    pub component: &'a str,
    /// How many bytes that may have; more are not fetched.
    pub component_bytes_max: u64,
    /// Whether its signatures are, too.
    pub signatures: bool,
}

/// What came; not looked at yet where that takes time.
#[derive(Debug)]
pub struct Pulled {
    what: String,
    artefact: Artefact,
}

impl Pulled {
    /// The artefact, if its bytes are those that its manifest names. Hashes, for some milliseconds.
    ///
    /// # Errors
    /// Where they are not.
    pub fn checked(self, component: &str) -> Result<Artefact, OciError> {
        self.artefact.checked(&self.what, component)
    }
}

/// Fetches it.
///
/// # Errors
/// Where it is not there, is something else, or lies about itself.
pub async fn pull(client: &mut Client<'_>, wanted: PullSpec<'_>) -> Result<Pulled, OciError> {
    let what = client.what(wanted.reference);
    let refused = |why: String| OciError::Artefact { what: what.clone(), why };
    let manifest = manifest(client, wanted.reference).await?;
    let manifest = manifest.ok_or_else(|| OciError::Missing {
        server: client.server().to_string(),
        what: what.clone(),
    })?;
    let document = Document::read(&manifest).map_err(refused)?;
    let layer = document.component(wanted.component_bytes_max).map_err(refused)?;
    // What is not wanted is not fetched either.
    if layer.digest != wanted.component {
        return Err(OciError::Digest {
            what: format!("the component of {what}"),
            found: layer.digest.clone(),
            expected: wanted.component.to_owned(),
        });
    }
    let component = blob(client, layer, &what).await?;
    let signatures = if wanted.signatures {
        signatures(client, &Digest::of(&manifest).to_string()).await?
    } else {
        Vec::new()
    };
    Ok(Pulled { what, artefact: Artefact { manifest, component, signatures } })
}

/// A manifest, or a list of them, by tag or digest; `None` where there is none.
pub(super) async fn manifest(
    client: &mut Client<'_>,
    reference: &str,
) -> Result<Option<Vec<u8>>, OciError> {
    let what = client.what(reference);
    let path = client.path(&format!("manifests/{reference}"));
    let response =
        client.ask(&RegistryRequest::get(path, ANY_MANIFEST, MANIFEST_BYTES_MAX)).await?;
    match response.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Ok(None),
        status => return Err(client.unexpected(status, &what)),
    }
    let manifest = response.into_body();
    let found = Digest::of(&manifest).to_string();
    if reference.starts_with("sha256:") && found != reference {
        let what = format!("the manifest of {what}");
        return Err(OciError::Digest { what, found, expected: reference.to_owned() });
    }
    Ok(Some(manifest))
}

/// What a descriptor names: exactly as many bytes as it says, whose digest the caller compares.
async fn blob(
    client: &mut Client<'_>,
    layer: &Descriptor,
    what: &str,
) -> Result<Vec<u8>, OciError> {
    let refused = |why| OciError::Artefact { what: what.to_owned(), why };
    let size = usize::try_from(layer.size).map_err(|error| refused(error.to_string()))?;
    if !is_digest(&layer.digest) {
        let digest: String = layer.digest.chars().take(80).collect();
        return Err(refused(format!(
            "found digest {digest:?}, expected sha256: and 64 hex digits"
        )));
    }
    let path = client.path(&format!("blobs/{}", layer.digest));
    let response = client.ask(&RegistryRequest::get(path, "", size).redirected()).await;
    let response = response.map_err(|error| {
        if let OciError::Artefact { why, .. } = error {
            return refused(format!(
                "its layer {}: {why}; its manifest says {size} bytes",
                layer.digest
            ));
        }
        error
    })?;
    if response.status() != StatusCode::OK {
        return Err(
            client.unexpected(response.status(), &format!("layer {} of {what}", layer.digest))
        );
    }
    let bytes = response.into_body();
    if bytes.len() != size {
        let (found, digest) = (bytes.len(), &layer.digest);
        return Err(refused(format!(
            "its layer {digest}: found {found} bytes, expected the {size} that its manifest says"
        )));
    }
    Ok(bytes)
}

/// The signatures of the manifest of this digest, wherever they may stand: those that the registry lists as
/// referring to it, or that a list under a tag does where it has no such list, and cosign's own tag.
async fn signatures(client: &mut Client<'_>, digest: &str) -> Result<Vec<Signature>, OciError> {
    let tag = digest.replacen(':', "-", 1);
    let mut seen = Seen::default();
    let list = match referrers(client, digest).await? {
        Some(list) => Some(list),
        None => manifest(client, &tag).await?,
    };
    let list = list.and_then(|list| Document::read(&list).ok()).and_then(|list| list.manifests);
    let is_signatures = |one: &Descriptor| one.artifact_type.as_deref() == Some(COSIGN_SIGNATURES);
    let referring: Vec<_> = list.into_iter().flatten().filter(is_signatures).collect();
    for one in referring.iter().filter(|one| is_digest(&one.digest)).take(REFERRERS_MAX) {
        if let Some(manifest) = manifest(client, &one.digest).await? {
            signatures_in(client, &manifest, &one.digest, &mut seen).await?;
        }
    }
    let tag = format!("{tag}.sig");
    if let Some(manifest) = manifest(client, &tag).await? {
        signatures_in(client, &manifest, &tag, &mut seen).await?;
    }
    Ok(seen.signatures)
}

/// What refers to a manifest; `None` where the registry has no such list.
async fn referrers(client: &mut Client<'_>, digest: &str) -> Result<Option<Vec<u8>>, OciError> {
    let path = client.path(&format!("referrers/{digest}"));
    let response = client.ask(&RegistryRequest::get(path, INDEX, MANIFEST_BYTES_MAX)).await?;
    Ok((response.status() == StatusCode::OK).then(|| response.into_body()))
}

/// The signatures of one artefact, as far as they were looked at.
#[derive(Default)]
struct Seen {
    /// With those that are none after all.
    looked_at: usize,
    signatures: Vec<Signature>,
}

/// The signatures in one manifest of them.
async fn signatures_in(
    client: &mut Client<'_>,
    manifest: &[u8],
    reference: &str,
    seen: &mut Seen,
) -> Result<(), OciError> {
    let what = client.what(reference);
    let refused = |why: String| OciError::Artefact { what: what.clone(), why };
    let document = Document::read(manifest).map_err(refused)?;
    for layer in document.layers.iter().flatten() {
        let is_over_component = match layer.media_type.as_str() {
            SIMPLE_SIGNING => false,
            OVER_COMPONENT => true,
            // An attestation, or what is invented next.
            _ => continue,
        };
        if seen.looked_at >= SIGNATURES_MAX {
            tracing::warn!(
                "{what}: found more than {SIGNATURES_MAX} signatures; the rest is not looked at"
            );
            return Ok(());
        }
        seen.looked_at += 1;
        if usize::try_from(layer.size).is_ok_and(|size| size > PAYLOAD_BYTES_MAX) {
            return Err(refused(format!(
                "found a signature of {} bytes, expected at most {PAYLOAD_BYTES_MAX}",
                layer.size
            )));
        }
        let bytes = blob(client, layer, &what).await?;
        let digest = Digest::of(&bytes).to_string();
        if digest != layer.digest {
            let what = format!("a signature in {what}");
            return Err(OciError::Digest { what, found: digest, expected: layer.digest.clone() });
        }
        let signature = if is_over_component {
            String::from_utf8(bytes.clone()).ok()
        } else {
            layer.annotations.as_ref().and_then(|all| all.get(SIGNATURE).cloned())
        };
        let signature = signature.filter(|text| text.len() <= SIGNATURE_CHARACTERS_MAX);
        if let Some(signature) = signature {
            seen.signatures
                .push(Signature { payload: (!is_over_component).then_some(bytes), signature });
        }
    }
    Ok(())
}

/// Fetches it, or gives up when its time is over.
pub async fn pull_in_time(
    client: &mut Client<'_>,
    wanted: PullSpec<'_>,
) -> Result<Pulled, OciError> {
    let pulled = timeout(PULL_TIME, pull(client, wanted)).await;
    pulled.unwrap_or_else(|_| {
        let why = format!("it did not give everything within {} s", PULL_TIME.as_secs());
        Err(OciError::Unavailable { server: client.server().to_string(), why })
    })
}
