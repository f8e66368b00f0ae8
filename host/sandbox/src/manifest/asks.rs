//! What a plugin asks for: where it wants to connect and which secrets it wants used. Not here:
//! whether it gets it ([`crate::grants`]).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::http_target::{HttpMethod, PathPrefix};

/// Schemes of the contract that this version of the host does not apply yet. A plugin that needs
/// one learns it when it is loaded, not when it is called.
const SCHEMES_TO_COME: [&str; 5] =
    ["aws-sigv4", "google-service-account", "azure-client-credentials", "mtls", "login"];

/// Everything a plugin asks for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Asks {
    /// Where it wants to connect.
    #[serde(default)]
    pub endpoints: Vec<EndpointAsk>,
    /// Which secrets it wants used on its behalf.
    #[serde(default)]
    pub credentials: Vec<CredentialAsk>,
}

/// One place a plugin wants to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EndpointAsk {
    /// What the plugin passes to `net`.
    pub name: String,
    /// How it wants to speak.
    pub protocol: Protocol,
    /// The parameter that holds the address.
    pub from: String,
    /// The port where the parameter names none.
    #[serde(default)]
    pub port: Option<u16>,
    /// How the host authenticates there on its behalf.
    #[serde(default)]
    pub auth: Auth,
    /// For HTTP: the methods it needs.
    #[serde(default)]
    pub methods: BTreeSet<HttpMethod>,
    /// For HTTP: the paths it needs, each with all that is below it.
    #[serde(default)]
    pub paths: Vec<PathPrefix>,
}

/// How a plugin speaks to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Datagrams.
    Udp,
    /// A plain stream.
    Tcp,
    /// A stream inside TLS, which the host ends.
    Tls,
    /// Plain HTTP requests.
    Http,
    /// HTTP requests inside TLS, which the host ends.
    Https,
}

impl Protocol {
    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Whether requests are HTTP, and its address may be written as an URL.
    pub fn speaks_http(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    /// Whether the host ends TLS for it.
    pub fn has_tls(self) -> bool {
        matches!(self, Self::Tls | Self::Https)
    }

    /// The port where nobody names one.
    pub fn usual_port(self) -> Option<u16> {
        match self {
            Self::Http => Some(80),
            Self::Https => Some(443),
            Self::Udp | Self::Tcp | Self::Tls => None,
        }
    }
}

/// How the host authenticates at an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenAuth")]
pub enum Auth {
    /// Not at all.
    #[default]
    None,
    /// User name and password with each request (RFC 7617).
    Basic {
        /// The plugin's name for the credential that holds both.
        credential: String,
    },
    /// A token with each request (RFC 6750).
    Bearer {
        /// The plugin's name for the credential that is the token.
        credential: String,
    },
}

impl Auth {
    /// The credential it needs.
    pub fn credential(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Basic { credential } | Self::Bearer { credential } => Some(credential),
        }
    }
}

/// An auth scheme as the manifest writes it.
#[derive(Deserialize)]
struct WrittenAuth {
    scheme: String,
    credential: Option<String>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

impl TryFrom<WrittenAuth> for Auth {
    type Error = String;

    fn try_from(written: WrittenAuth) -> Result<Self, String> {
        let WrittenAuth { scheme, credential, others } = written;
        if SCHEMES_TO_COME.contains(&scheme.as_str()) {
            let known = "none, basic and bearer are the schemes this version of the host applies";
            return Err(format!("auth.scheme: found {scheme}, which is to come; {known}"));
        }
        let auth = match (scheme.as_str(), credential) {
            ("none", None) => Self::None,
            ("none", Some(_)) => return Err("auth: scheme none uses no credential".to_owned()),
            ("basic", Some(credential)) => Self::Basic { credential },
            ("bearer", Some(credential)) => Self::Bearer { credential },
            ("basic" | "bearer", None) => {
                return Err(format!("auth.credential: found none, expected one for {scheme}"));
            }
            _ => {
                let expected = "expected none, basic or bearer";
                return Err(format!("auth.scheme: found {scheme}, {expected}"));
            }
        };
        match others.keys().next() {
            None => Ok(auth),
            Some(other) => Err(format!("auth: found {other}, which scheme {scheme} does not have")),
        }
    }
}

/// One secret a plugin wants used on its behalf.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CredentialAsk {
    /// What the plugin passes to `credentials.open`.
    pub name: String,
    /// What it wants done with the secret.
    pub operations: BTreeSet<Operation>,
    /// Whether a call can do without it.
    #[serde(default)]
    pub optional: bool,
}

/// Something that can be done with a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A message authentication code under it.
    Mac,
    /// A session key made from it.
    SessionKey,
    /// An SNMPv3 key made from it.
    UsmKey,
    /// The host puts it on a connection.
    Write,
    /// The bytes themselves.
    Reveal,
}

impl Operation {
    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mac => "mac",
            Self::SessionKey => "session-key",
            Self::UsmKey => "usm-key",
            Self::Write => "write",
            Self::Reveal => "reveal",
        }
    }
}
