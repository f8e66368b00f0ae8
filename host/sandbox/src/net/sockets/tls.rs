//! How the host ends TLS: version 1.2 or 1.3, ring's ciphers, nothing remembered from one
//! connection to the next, and the other side proven as the grant says.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};

use crate::trust::{OtherKey, SpkiPin, Trust};

pub(super) fn config(trust: &Trust) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = match trust {
        Trust::SystemAuthorities => builder.with_root_certificates(system_authorities()?),
        Trust::Authorities(authorities) => builder.with_root_certificates(authorities.roots()?),
        Trust::Pins(pins) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pinned { pins: pins.clone(), provider })),
        Trust::Insecure => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified { provider }))
        }
    };
    let mut config = builder.with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// The authorities of the system, read once: there are some hundred and forty.
fn system_authorities() -> Result<Arc<RootCertStore>, Error> {
    static READ: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    if let Some(roots) = READ.get() {
        return Ok(Arc::clone(roots));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    // A system without any may get some later, so that is not remembered.
    if roots.is_empty() {
        let error = io::Error::new(io::ErrorKind::NotFound, "the system trusts no authority");
        return Err(Error::Other(OtherError(Arc::new(error))));
    }
    Ok(Arc::clone(READ.get_or_init(|| Arc::new(roots))))
}

/// Accepts whoever holds the key of a pin, and proves to hold it in the handshake.
#[derive(Debug)]
struct Pinned {
    pins: BTreeSet<SpkiPin>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let key = ParsedCertificate::try_from(end_entity)?.subject_public_key_info();
        let found = SpkiPin::of(&key);
        if self.pins.contains(&found) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::Other(OtherError(Arc::new(OtherKey(found)))).into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Accepts anyone, certificates that no library reads included: old devices have such.
#[derive(Debug)]
struct Unverified {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
