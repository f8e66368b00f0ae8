//! What a registry gave for one image, and whether it is what it should be: its digests, and who signed it.
//!
//! A signature stands over a payload that names the manifest's digest (cosign's "simple signing"), and the
//! manifest names the component's. A signature over the component itself, as `plugin sign` makes it, is
//! taken, too.

use node_remedy_api::conditions::{REASON_SIGNED_ANOTHER, REASON_UNSIGNED, REASON_WRONG_KEY};
use node_remedy_sandbox::Digest;
use node_remedy_sandbox::signature::{KeyId, PublicKey};
use serde::{Deserialize, Serialize};

use crate::error::OciError;
use crate::manifest::Document;
use crate::refusal::Refusal;

/// What simple signing calls a signature of an image.
const SIMPLE_SIGNING: &str = "cosign container image signature";

/// What makes cosign sign so where bundles, which are not read, are its default.
const SIMPLE_SIGNING_FLAGS: &str = "--new-bundle-format=false --use-signing-config=false";

/// What a registry gave for one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artefact {
    /// The manifest, byte for byte.
    pub manifest: Vec<u8>,
    /// Its one layer: the component.
    pub component: Vec<u8>,
    /// What stood beside it, where it was looked for.
    pub signatures: Vec<Signature>,
}

/// A signature, as it stood in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// What it is made over; `None`: the component.
    pub payload: Option<Vec<u8>>,
    /// It, in base64.
    pub signature: String,
}

/// What a signature of cosign is made over.
#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    critical: Critical,
    optional: Option<serde_json::Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Critical {
    identity: Identity,
    image: Signed,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Identity {
    /// Not looked at: a mirror has another name than what it mirrors.
    docker_reference: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Signed {
    docker_manifest_digest: String,
}

impl Artefact {
    /// The manifest's digest.
    pub fn digest(&self) -> String {
        Digest::of(&self.manifest).to_string()
    }

    /// It, if its manifest names one component, the one of this digest, and that is what is in it.
    ///
    /// # Errors
    /// Where it is something else.
    pub fn checked(self, what: &str, component: &str) -> Result<Self, OciError> {
        let refused = |why| OciError::Artefact { what: what.to_owned(), why };
        let document = Document::read(&self.manifest).map_err(refused)?;
        // What is here already is as large as it is.
        let layer = document.component(u64::MAX).map_err(refused)?;
        let found = Digest::of(&self.component).to_string();
        for (of, found, expected) in [
            ("component", layer.digest.as_str(), component),
            ("layer", found.as_str(), layer.digest.as_str()),
        ] {
            if found != expected {
                let (found, expected) = (found.to_owned(), expected.to_owned());
                let what = format!("the {of} of {what}");
                return Err(OciError::Digest { what, found, expected });
            }
        }
        Ok(self)
    }

    /// Which of these keys signed it.
    ///
    /// # Errors
    /// Where none did.
    pub fn signer(&self, what: &str, keys: &[PublicKey]) -> Result<KeyId, Refusal> {
        if self.signatures.is_empty() {
            let why = format!(
                "{what} has no signature in cosign's simple-signing format, expected one from \
                 `node-remedy plugin push --key` or `cosign sign --key`; cosign 3 makes it with {SIMPLE_SIGNING_FLAGS}"
            );
            return Err(Refusal::passing(REASON_UNSIGNED, why));
        }
        let digest = self.digest();
        let mut of_another = None;
        for Signature { payload, signature } in &self.signatures {
            let message = payload.as_deref().unwrap_or(&self.component);
            let made_it = keys.iter().find(|key| key.verifies(message, signature));
            let Some(key) = made_it.map(PublicKey::id) else { continue };
            match payload.as_deref().map(signed_manifest) {
                None => return Ok(key),
                Some(Ok(signed)) if signed == digest => return Ok(key),
                Some(Ok(signed)) => of_another = Some(format!("of manifest {signed}")),
                Some(Err(why)) => of_another = Some(why),
            }
        }
        // Another one may come.
        if let Some(another) = of_another {
            let why =
                format!("the signature of {what} is {another}, expected one of manifest {digest}");
            return Err(Refusal::passing(REASON_SIGNED_ANOTHER, why));
        }
        let ids: Vec<_> = keys.iter().map(|key| key.id().to_string()).collect();
        let why = format!("none of the keys made a signature of {what}: {}", ids.join(", "));
        Err(Refusal::passing(REASON_WRONG_KEY, why))
    }
}

/// What is signed for the manifest of this digest, in `image`, a registry and a repository.
pub(super) fn payload(image: &str, digest: &str) -> String {
    let payload = Payload {
        critical: Critical {
            identity: Identity { docker_reference: image.to_owned() },
            image: Signed { docker_manifest_digest: digest.to_owned() },
            kind: SIMPLE_SIGNING.to_owned(),
        },
        optional: None,
    };
    serde_json::to_string(&payload).unwrap_or_default()
}

/// Of which manifest a payload speaks.
fn signed_manifest(payload: &[u8]) -> Result<String, String> {
    let payload: Payload = serde_json::from_slice(payload)
        .map_err(|error| format!("over no payload of simple signing ({error})"))?;
    if payload.critical.kind != SIMPLE_SIGNING {
        let kind: String = payload.critical.kind.chars().take(80).collect();
        return Err(format!("of something of type {kind:?}"));
    }
    Ok(payload.critical.image.docker_manifest_digest)
}

#[cfg(test)]
mod tests {
    use node_remedy_sandbox::signature::SigningKey;
    use serde_json::json;

    use super::*;
    use crate::manifest::{MANIFEST, WASM, WASM_CONFIG};

    const COMPONENT: &[u8] = b"a component";
    const PUBLIC: [&str; 2] = [
        include_str!("../../sandbox/src/signature/p256.pub"),
        include_str!("../../sandbox/src/signature/ed25519.pub"),
    ];
    const PRIVATE: [&str; 2] = [
        include_str!("../../sandbox/src/signature/p256.key"),
        include_str!("../../sandbox/src/signature/ed25519.key"),
    ];

    fn artefact() -> Artefact {
        let digest = Digest::of(COMPONENT).to_string();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": WASM_CONFIG, "digest": digest, "size": 2},
            "layers": [{"mediaType": WASM, "digest": digest, "size": COMPONENT.len()}],
        });
        let manifest = manifest.to_string().into_bytes();
        Artefact { manifest, component: COMPONENT.to_vec(), signatures: Vec::new() }
    }

    fn keys(pem: &[&str]) -> Vec<PublicKey> {
        pem.iter().map(|pem| PublicKey::from_pem(pem).unwrap()).collect()
    }

    /// Signed with the key of this number.
    fn signed(key: usize, payload: Option<String>) -> Signature {
        let payload = payload.map(String::into_bytes);
        let key = SigningKey::from_pem(PRIVATE[key]).unwrap();
        let signature = key.sign(payload.as_deref().unwrap_or(COMPONENT)).unwrap();
        Signature { payload, signature }
    }

    #[test]
    fn an_artefact_is_what_its_digests_say() {
        let digest = Digest::of(COMPONENT).to_string();
        assert_eq!(artefact().checked("it", &digest), Ok(artefact()));
        let zero = format!("sha256:{}", "0".repeat(64));
        let other = artefact().checked("it", &zero).unwrap_err().to_string();
        assert_eq!(other, format!("the component of it: found {digest}, expected {zero}"));
        let changed = Artefact { component: b"another one".to_vec(), ..artefact() };
        let other = changed.checked("it", &digest).unwrap_err().to_string();
        assert!(other.starts_with("the layer of it: found sha256:"), "{other}");
    }

    #[test]
    fn a_signature_counts_for_the_manifest_that_it_names() {
        let digest = artefact().digest();
        let with = |signatures| Artefact { signatures, ..artefact() };
        for (number, public) in PUBLIC.iter().enumerate() {
            let id = keys(&[public])[0].id();
            let own = signed(number, Some(payload("r.example.org/tasmota", &digest)));
            let stray = Signature { payload: None, signature: "AAAA".to_owned() };
            let both = with(vec![stray, own.clone()]);
            assert_eq!(both.signer("it", &keys(&PUBLIC)), Ok(id));
            assert_eq!(with(vec![signed(number, None)]).signer("it", &keys(&PUBLIC)), Ok(id));
            let other = [PUBLIC[1 - number]];
            let refusal = both.signer("it", &keys(&other)).unwrap_err();
            assert_eq!(refusal.reason, REASON_WRONG_KEY, "{}", refusal.why);
        }
        let refusal = artefact().signer("it", &keys(&PUBLIC)).unwrap_err();
        assert_eq!((refusal.reason, refusal.may_pass), (REASON_UNSIGNED, true));
        // Whoever signed with a bundle has to learn why that does not count.
        for part in ["simple-signing format", SIMPLE_SIGNING_FLAGS] {
            assert!(refusal.why.contains(part), "{}", refusal.why);
        }
    }

    #[test]
    fn a_signature_of_another_artefact_is_told_from_one_by_another_key() {
        let zero = format!("sha256:{}", "0".repeat(64));
        let digest = artefact().digest();
        let of_kind = payload("r", &digest).replace("container image", "blob");
        for (payload, says) in [
            (payload("r", &zero), format!("of manifest {zero}, expected one of manifest {digest}")),
            (of_kind, "of something of type \"cosign blob signature\"".to_owned()),
            ("{}".to_owned(), "over no payload of simple signing".to_owned()),
            (digest.clone(), "over no payload of simple signing".to_owned()),
        ] {
            let signatures = vec![signed(0, Some(payload))];
            let refusal = Artefact { signatures, ..artefact() }.signer("it", &keys(&PUBLIC));
            let refusal = refusal.unwrap_err();
            assert_eq!(refusal.reason, REASON_SIGNED_ANOTHER);
            assert!(refusal.why.contains(&says), "{}", refusal.why);
        }
    }
}
