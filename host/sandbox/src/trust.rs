//! Whom a TLS endpoint must prove to be. Not here: the handshake ([`crate::net`]).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use sha2::{Digest as _, Sha256};

/// What the other side of a TLS connection must prove. The name it must prove is the one that
/// the endpoint's parameter writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// Its name, to an authority that the system trusts.
    #[default]
    SystemAuthorities,
    /// Its name, to one of these authorities and no others.
    Authorities(Authorities),
    /// That it holds the key of one of these pins, whatever its certificate says: devices sign
    /// their own.
    Pins(BTreeSet<SpkiPin>),
    /// Nothing. Whoever sits on the wire can read the credential.
    Insecure,
}

/// Certificates of authorities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorities(Vec<CertificateDer<'static>>);

/// The SHA-256 of a certificate's SubjectPublicKeyInfo, written as curl writes it:
/// `sha256//BASE64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpkiPin([u8; 32]);

/// Why a text says nothing about whom to trust.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The bundle of authorities cannot be used.
    #[error("failed to read the CA bundle: found {0}, expected certificates in PEM")]
    Bundle(String),
    /// The pin cannot be read.
    #[error("failed to read the pin: found {0:?}, expected sha256// and 32 bytes in base64")]
    Pin(String),
}

/// Which check of TLS the other side did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TlsRefusal {
    /// No authority that is trusted signed its certificate.
    #[error("no trusted authority signed its certificate; trust its authority or pin its key")]
    Authority,
    /// Its certificate names other hosts.
    #[error("its certificate is for other names than the address says")]
    Name,
    /// Its certificate has expired, or is not valid yet.
    #[error("its certificate is not valid at this time")]
    Time,
    /// It holds another key.
    #[error("its key is {found}, which is not pinned")]
    Pin {
        /// The pin of the key that it holds.
        found: SpkiPin,
    },
    /// Its certificate is none that an authority vouches for, such as an authority's own.
    #[error("its certificate cannot be checked by an authority; pin its key")]
    Certificate,
    /// There is nobody to vouch for anything.
    #[error("the system trusts no authority; trust one or pin its key")]
    NoAuthorities,
    /// No version and cipher in common, or it speaks no TLS.
    #[error("it agreed on no TLS 1.2 or 1.3")]
    Handshake,
}

/// What a pinned connection found instead, inside TLS's own error.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the key is {0}")]
pub(crate) struct OtherKey(pub(crate) SpkiPin);

impl TlsRefusal {
    /// What an error of TLS says of the other side.
    pub(crate) fn of(error: &rustls::Error) -> Self {
        use rustls::CertificateError as Wrong;
        let rustls::Error::InvalidCertificate(wrong) = error else { return Self::Handshake };
        // It grows with rustls: what is not known by name is a certificate that cannot be used.
        #[expect(clippy::wildcard_enum_match_arm, reason = "CertificateError is non-exhaustive")]
        match wrong {
            Wrong::UnknownIssuer | Wrong::BadSignature => Self::Authority,
            Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => Self::Name,
            Wrong::Expired
            | Wrong::ExpiredContext { .. }
            | Wrong::NotValidYet
            | Wrong::NotValidYetContext { .. } => Self::Time,
            Wrong::Other(other) => match other.0.downcast_ref::<OtherKey>() {
                Some(OtherKey(found)) => Self::Pin { found: *found },
                None => Self::Certificate,
            },
            _ => Self::Certificate,
        }
    }
}

impl Authorities {
    /// Reads certificates in PEM, at least one.
    pub fn from_pem(pem: &[u8]) -> Result<Self, TrustError> {
        let certificates = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| TrustError::Bundle(error.to_string()))?;
        if certificates.is_empty() {
            return Err(TrustError::Bundle("no certificate".to_owned()));
        }
        let authorities = Self(certificates);
        authorities.roots().map_err(|error| TrustError::Bundle(error.to_string()))?;
        Ok(authorities)
    }

    /// The certificates as TLS uses them.
    pub(crate) fn roots(&self) -> Result<RootCertStore, rustls::Error> {
        let mut roots = RootCertStore::empty();
        for certificate in &self.0 {
            roots.add(certificate.clone())?;
        }
        Ok(roots)
    }
}

impl SpkiPin {
    /// The pin of a key, given as DER.
    pub fn of(subject_public_key_info: &[u8]) -> Self {
        Self(Sha256::digest(subject_public_key_info).into())
    }
}

impl FromStr for SpkiPin {
    type Err = TrustError;

    fn from_str(text: &str) -> Result<Self, TrustError> {
        let bytes = text.strip_prefix("sha256//").and_then(|text| STANDARD.decode(text).ok());
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| TrustError::Pin(text.to_owned()))
    }
}

impl fmt::Display for SpkiPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256//{}", STANDARD.encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_read_as_it_is_written() {
        let pin = SpkiPin::of(b"a key");
        assert_eq!(pin.to_string().parse(), Ok(pin));
        for wrong in ["", "sha256//", "sha256//AAAA", "sha1//AAAA", "sha256//!"] {
            assert!(wrong.parse::<SpkiPin>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bundle_holds_certificates() {
        let ca = rcgen::generate_simple_self_signed(vec!["ca".to_owned()]).unwrap();
        assert!(Authorities::from_pem(ca.cert.pem().as_bytes()).is_ok());
        let forged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for wrong in ["", "words", forged] {
            assert!(Authorities::from_pem(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
