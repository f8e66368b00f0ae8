//! What a plugin asks for: where it wants to connect and which secrets it wants used. Not here:
//! whether it gets it ([`crate::grants`]).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use zeroize::Zeroizing;

use super::auth::Auth;
use super::template::Template;
use crate::http_target::{HttpMethod, PathPrefix};

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

impl Asks {
    /// What it wants to see of the answers to logins.
    pub fn exposes(&self) -> impl Iterator<Item = &str> {
        fn of(ask: &EndpointAsk) -> &[String] {
            match &ask.auth {
                Auth::Login(login) => &login.exposes,
                Auth::None {}
                | Auth::Basic { .. }
                | Auth::Bearer { .. }
                | Auth::Header { .. }
                | Auth::AwsSigv4 { .. }
                | Auth::GoogleServiceAccount { .. } => &[],
            }
        }
        self.endpoints.iter().flat_map(of).map(String::as_str)
    }
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
    /// The address where that parameter is not set, with places for other parameters.
    #[serde(default)]
    pub default: Option<Template>,
    /// The port where the parameter names none.
    #[serde(default)]
    pub port: Option<u16>,
    /// How the host authenticates there on its behalf.
    #[serde(default)]
    pub auth: Auth,
    /// Whether most calls can do without it: where it is not granted, only the call that turns out to
    /// need it fails.
    #[serde(default)]
    pub optional: bool,
    /// For HTTP: the methods it needs.
    #[serde(default)]
    pub methods: BTreeSet<HttpMethod>,
    /// For HTTP: the paths it needs, each with all that is below it.
    #[serde(default)]
    pub paths: Vec<PathPrefix>,
}

impl EndpointAsk {
    /// The address as these parameters write it: their own, or the default's.
    pub fn written(&self, parameters: &BTreeMap<String, String>) -> Option<String> {
        if let Some(written) = parameters.get(&self.from) {
            return Some(written.clone());
        }
        let value = |name: &str| parameters.get(name).cloned().map(Zeroizing::new);
        self.default.as_ref()?.fill(value).map(|written| written.to_string())
    }
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
