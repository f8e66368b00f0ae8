//! Certificates of one test cluster: an authority, the API server's certificate, and the key that
//! signs service account tokens. Valid for this run only; nothing is reused.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// Where the files lie.
#[derive(Debug)]
pub struct Pki {
    /// The authority that clients must trust.
    pub ca_certificate: PathBuf,
    /// The API server's certificate, for loopback.
    pub server_certificate: PathBuf,
    /// Its key.
    pub server_key: PathBuf,
    /// Signs service account tokens.
    pub tokens_key: PathBuf,
    /// Verifies them.
    pub tokens_public_key: PathBuf,
    /// The authority's certificate as PEM text.
    pub ca_pem: String,
}

impl Pki {
    /// Makes new keys and certificates in `folder`.
    pub fn generate(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        authority.distinguished_name.push(DnType::CommonName, "node-remedy test authority");
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"];
        let mut server = CertificateParams::new(names.map(String::from))?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server_key = KeyPair::generate()?;
        let server = server.signed_by(&server_key, &authority)?;
        let tokens_key = KeyPair::generate()?;

        let write = |name: &str, text: &str| -> Result<PathBuf> {
            let path = folder.join(name);
            std::fs::write(&path, text)?;
            Ok(path)
        };
        Ok(Self {
            ca_certificate: write("ca.crt", &authority.pem())?,
            server_certificate: write("apiserver.crt", &server.pem())?,
            server_key: write("apiserver.key", &server_key.serialize_pem())?,
            tokens_key: write("tokens.key", &tokens_key.serialize_pem())?,
            tokens_public_key: write("tokens.pub", &tokens_key.public_key_pem())?,
            ca_pem: authority.pem(),
        })
    }
}
