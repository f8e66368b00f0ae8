//! Signatures over components, made and checked: what `cosign sign-blob --key` and `openssl` make. ECDSA on
//! P-256 with SHA-256 (FIPS 186-5, in ASN.1), and Ed25519 (RFC 8032), both in base64.
//!
//! Not here: whom an admin trusts, and where a signature stands.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    self, ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use sha2::{Digest as _, Sha256};

/// What goes before the point in the SubjectPublicKeyInfo of a key on P-256 (RFC 5480), and before the key in
/// that of Ed25519 (RFC 8410): DER leaves no choice.
const P256_PREFIX: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const ED25519_PREFIX: &[u8] =
    &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// An uncompressed point, and an Ed25519 key, in bytes.
const P256_POINT: usize = 65;
const ED25519_KEY: usize = 32;
/// Of a line of PEM (RFC 7468).
const PEM_LINE: usize = 64;
/// Of a signature's text; those of both kinds have less than a hundred bytes.
const SIGNATURE_TEXT_MAX: usize = 1_024;

/// A public key that signatures are checked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    kind: Kind,
    key: Vec<u8>,
    id: KeyId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    P256,
    Ed25519,
}

/// The SHA-256 of a key's SubjectPublicKeyInfo, by which people tell keys apart:
/// `openssl pkey -pubin -in KEY -outform DER | sha256sum`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 32]);

/// Why a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is not the file that is wanted.
    #[error("found no {0} in PEM, expected `-----BEGIN {0}-----`")]
    Pem(&'static str),
    /// It is of another sort.
    #[error("found a key of another sort, expected ECDSA on P-256 or Ed25519")]
    Sort,
}

/// Why a signature was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to sign")]
pub struct SignError;

impl PublicKey {
    /// Reads a public key in PEM: `cosign.pub`, or what `openssl pkey -pubout` writes.
    ///
    /// # Errors
    /// Where it is none, or of a sort that is not checked here.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes());
        let der = der.map_err(|_| KeyError::Pem("PUBLIC KEY"))?;
        Self::from_der(&der).ok_or(KeyError::Sort)
    }

    fn from_der(der: &[u8]) -> Option<Self> {
        let after =
            |prefix: &[u8], length| der.strip_prefix(prefix).filter(|key| key.len() == length);
        let p256 = after(P256_PREFIX, P256_POINT).map(|key| (Kind::P256, key));
        let ed25519 = || after(ED25519_PREFIX, ED25519_KEY).map(|key| (Kind::Ed25519, key));
        let (kind, key) = p256.or_else(ed25519)?;
        Some(Self { kind, key: key.to_vec(), id: KeyId(Sha256::digest(der).into()) })
    }

    /// As people write it down: `-----BEGIN PUBLIC KEY-----` and what follows.
    pub fn to_pem(&self) -> String {
        let prefix = match self.kind {
            Kind::P256 => P256_PREFIX,
            Kind::Ed25519 => ED25519_PREFIX,
        };
        let text = STANDARD.encode([prefix, &self.key].concat());
        let mut pem = String::from("-----BEGIN PUBLIC KEY-----\n");
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, more) = rest.split_at(rest.len().min(PEM_LINE));
            pem.push_str(line);
            pem.push('\n');
            rest = more;
        }
        pem + "-----END PUBLIC KEY-----\n"
    }

    /// By what people know it.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Whether the owner of the private key signed `message`; `text` is the signature in base64.
    pub fn verifies(&self, message: &[u8], text: &str) -> bool {
        let text = text.trim();
        if text.len() > SIGNATURE_TEXT_MAX {
            return false;
        }
        let Ok(bytes) = STANDARD.decode(text) else { return false };
        let algorithm: &dyn signature::VerificationAlgorithm = match self.kind {
            Kind::P256 => &ECDSA_P256_SHA256_ASN1,
            Kind::Ed25519 => &signature::ED25519,
        };
        signature::UnparsedPublicKey::new(algorithm, &self.key).verify(message, &bytes).is_ok()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A private key that signs. It is never shown.
pub struct SigningKey(Pair);

enum Pair {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// Reads a private key in PEM that is not encrypted (PKCS #8): what `openssl genpkey` writes.
    ///
    /// # Errors
    /// Where it is none, or of a sort that nothing here checks.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes());
        let der = der.map_err(|_| KeyError::Pem("PRIVATE KEY"))?;
        let der = der.secret_pkcs8_der();
        let p256 =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der, &SystemRandom::new());
        let ed25519 = || Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(Pair::Ed25519);
        p256.map(Pair::P256).or_else(|_| ed25519()).map(Self).map_err(|_| KeyError::Sort)
    }

    /// The key that checks what this one signs.
    pub fn public(&self) -> Option<PublicKey> {
        let (prefix, key) = match &self.0 {
            Pair::P256(pair) => (P256_PREFIX, pair.public_key().as_ref()),
            Pair::Ed25519(pair) => (ED25519_PREFIX, pair.public_key().as_ref()),
        };
        PublicKey::from_der(&[prefix, key].concat())
    }

    /// The signature over `message`, in base64.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub fn sign(&self, message: &[u8]) -> Result<String, SignError> {
        match &self.0 {
            Pair::P256(pair) => {
                let signed = pair.sign(&SystemRandom::new(), message).map_err(|_| SignError)?;
                Ok(STANDARD.encode(signed))
            }
            Pair::Ed25519(pair) => Ok(STANDARD.encode(pair.sign(message))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by OpenSSL 3.0: `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` and `-algorithm
    /// ED25519`; signed `a component` by `openssl dgst -sha256 -sign` and `openssl pkeyutl -sign -rawin`.
    const OPENSSL: [(&str, &str); 2] = [
        (include_str!("signature/p256.pub"), include_str!("signature/p256.sig")),
        (include_str!("signature/ed25519.pub"), include_str!("signature/ed25519.sig")),
    ];
    const MESSAGE: &[u8] = b"a component";
    const PRIVATE: [&str; 2] =
        [include_str!("signature/p256.key"), include_str!("signature/ed25519.key")];

    #[test]
    fn what_openssl_signed_is_verified_and_nothing_else() {
        let keys = OPENSSL.map(|(pem, _)| PublicKey::from_pem(pem).unwrap());
        for (index, (_, signature)) in OPENSSL.iter().enumerate() {
            for (other, key) in keys.iter().enumerate() {
                assert_eq!(key.verifies(MESSAGE, signature), index == other, "{index} by {other}");
                assert!(!key.verifies(b"another component", signature));
            }
        }
        for nothing in ["", "AAAA", "no base64", &"A".repeat(4_000)] {
            assert!(keys.iter().all(|key| !key.verifies(MESSAGE, nothing)), "{nothing}");
        }
    }

    #[test]
    fn every_changed_byte_of_a_signature_is_seen() {
        for (pem, signature) in OPENSSL {
            let key = PublicKey::from_pem(pem).unwrap();
            let bytes = STANDARD.decode(signature.trim()).unwrap();
            for place in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[place] ^= 1;
                assert!(!key.verifies(MESSAGE, &STANDARD.encode(changed)), "byte {place}");
            }
        }
    }

    #[test]
    fn what_is_signed_here_is_verified_by_the_public_key() {
        for ((pem, _), private) in OPENSSL.into_iter().zip(PRIVATE) {
            let (public, private) =
                (PublicKey::from_pem(pem).unwrap(), SigningKey::from_pem(private).unwrap());
            assert_eq!(private.public(), Some(public.clone()));
            assert_eq!(public.to_pem().trim(), pem.trim(), "as OpenSSL writes it");
            assert!(public.verifies(MESSAGE, &private.sign(MESSAGE).unwrap()));
        }
    }

    #[test]
    fn a_key_of_another_sort_is_refused() {
        let other = include_str!("signature/p384.pub");
        assert_eq!(PublicKey::from_pem(other), Err(KeyError::Sort));
        let refusal = PublicKey::from_pem(PRIVATE[0]).unwrap_err().to_string();
        assert_eq!(refusal, "found no PUBLIC KEY in PEM, expected `-----BEGIN PUBLIC KEY-----`");
    }

    /// As `openssl pkey -pubin -outform DER | sha256sum` has it.
    #[test]
    fn a_key_is_known_by_the_digest_that_openssl_gives() {
        let id = PublicKey::from_pem(OPENSSL[0].0).unwrap().id().to_string();
        assert_eq!(id, include_str!("signature/p256.id").trim());
    }
}
