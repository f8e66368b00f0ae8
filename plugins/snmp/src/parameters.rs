//! What the method instance is configured with, the same for all methods that speak SNMP. The host
//! has checked it against the manifest's schema and filled in defaults; it is parsed all the same.

use node_remedy_sdk::{Cipher, Extension, Failure, FailureKind, Fields, Hash};

use crate::limits;

/// Which SNMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2c,
    V3,
}

/// What protects a message of SNMPv3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// `noAuthNoPriv`
    Open,
    /// `authNoPriv`
    Authentic,
    /// `authPriv`
    Private,
}

/// How messages are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privacy {
    Des,
    Aes128,
    Aes256,
    Aes256Cisco,
}

impl Privacy {
    pub(crate) fn cipher(self) -> Cipher {
        match self {
            Self::Des => Cipher::DesCbc,
            Self::Aes128 | Self::Aes256 | Self::Aes256Cisco => Cipher::AesCfb128,
        }
    }

    /// How many bytes of key, and how they are made where the hash gives fewer.
    pub(crate) fn key(self) -> (Extension, u32) {
        match self {
            // Eight of key, eight of pre-IV.
            Self::Des | Self::Aes128 => (Extension::None, 16),
            Self::Aes256 => (Extension::Blumenthal, 32),
            Self::Aes256Cisco => (Extension::Reeder, 32),
        }
    }
}

/// Parameters of one call. The address is the host's business: it stands behind the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) version: Version,
    pub(crate) level: Level,
    pub(crate) hash: Hash,
    pub(crate) privacy: Privacy,
    pub(crate) context: String,
}

impl Parameters {
    pub(crate) fn read(fields: &Fields) -> Result<Self, Failure> {
        let given = |name: &str, default: &'static str| {
            let found = fields.iter().find(|(key, _)| key == name);
            found.map_or(default.to_owned(), |(_, value)| value.clone())
        };
        let version = match given("version", "3").as_str() {
            "1" => Version::V1,
            "2c" => Version::V2c,
            "3" => Version::V3,
            other => return Err(bad("version", other, "1, 2c or 3")),
        };
        let level = match given("security-level", "auth-priv").as_str() {
            "no-auth-no-priv" => Level::Open,
            "auth-no-priv" => Level::Authentic,
            "auth-priv" => Level::Private,
            other => {
                let expected = "no-auth-no-priv, auth-no-priv or auth-priv";
                return Err(bad("security-level", other, expected));
            }
        };
        let hash = match given("auth-protocol", "sha1").as_str() {
            "md5" => Hash::Md5,
            "sha1" => Hash::Sha1,
            "sha224" => Hash::Sha224,
            "sha256" => Hash::Sha256,
            "sha384" => Hash::Sha384,
            "sha512" => Hash::Sha512,
            other => {
                let expected = "md5, sha1, sha224, sha256, sha384 or sha512";
                return Err(bad("auth-protocol", other, expected));
            }
        };
        let privacy = match given("privacy-protocol", "aes128").as_str() {
            "des" => Privacy::Des,
            "aes128" => Privacy::Aes128,
            "aes256" => Privacy::Aes256,
            "aes256-cisco" => Privacy::Aes256Cisco,
            other => {
                return Err(bad("privacy-protocol", other, "des, aes128, aes256 or aes256-cisco"));
            }
        };
        let context = given("context-name", "");
        if context.len() > limits::NAME_BYTES_MAX {
            return Err(bad("context-name", &context, "at most 32 bytes"));
        }
        Ok(Self { version, level, hash, privacy, context })
    }
}

fn bad(name: &str, found: &str, expected: &str) -> Failure {
    let detail = format!("{name}: found {found:?}, expected {expected}");
    Failure::new(FailureKind::BadParameters, detail)
}
