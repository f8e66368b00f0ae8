//! What a plugin says of itself: the typed form of the section `node-remedy:manifest`, described
//! in `wit/manifest.md`. Parsing refuses everything that page does not define. Not here: finding
//! the section ([`crate::inspect`]), checking a method's parameters ([`crate::parameters`]).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::limits::MEMORY_BYTES_MOST;
use crate::manifest::error::field;
use crate::parameters::Schema;
use crate::types::Action;

mod asks;
mod auth;
pub mod error;
mod template;

pub use asks::{Asks, CredentialAsk, EndpointAsk, Operation, Protocol};
pub use auth::{Auth, Csrf, Login, LoginRequest, Logout, Place, SendAs};
pub use error::ManifestError;
pub use template::Template;

/// The one manifest version this host speaks.
const VERSION: u32 = 1;
const DESCRIPTION_CHARS_MAX: usize = 200;
/// A status of a FencePlugin shows it.
const VERSION_BYTES_MAX: usize = 128;
/// Endpoints and credentials together, for the same reason.
const ASKS_MAX: usize = 64;
const LATE_EFFECT_S_MAX: u32 = 3_600;
const DEADLINE_S_MAX: u32 = 3_600;
const MEMORY_BYTES_MIN: u64 = 65_536;

/// A plugin's description of itself, checked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// The version of this format, always 1.
    pub manifest_version: u32,
    /// What configurations call the plugin.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// One line for people.
    pub description: String,
    /// What its success proves.
    pub kind: Kind,
    /// What it can do; anything else is never called.
    pub actions: BTreeSet<Ability>,
    /// Those of its actions that may be asked for twice without harm.
    pub idempotent_actions: BTreeSet<Ability>,
    /// How long after a call without an answer its effect may still come.
    pub late_effect_seconds: u32,
    /// Identity fields its `status` reports for the machine behind the plug.
    pub identity: Vec<String>,
    /// What a method instance may set.
    pub parameters: Schema,
    /// Where it wants to connect and which secrets it wants used.
    pub asks: Asks,
    /// The longest a call may take.
    pub deadline_seconds: u32,
    /// Linear memory it needs at most.
    pub memory_bytes: u64,
    /// The JSON that it was read from, without spaces.
    #[serde(skip)]
    text: String,
}

/// What a method's success proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The machine's power.
    Power,
    /// Its path to the network.
    Fabric,
    /// Its access to storage.
    Storage,
    /// Nothing: it only sees.
    Watch,
    /// Nothing: it only decides what is tried next.
    Remedy,
}

impl Kind {
    /// Whether it speaks to a device.
    pub fn is_of_device(self) -> bool {
        match self {
            Self::Power | Self::Fabric | Self::Storage => true,
            Self::Watch | Self::Remedy => false,
        }
    }
}

/// An action a manifest may list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ability {
    /// Read the plug.
    Status,
    /// Cut it.
    Off,
    /// Restore it.
    On,
    /// One hard reset.
    Reset,
    /// Prove the path to it sound.
    Monitor,
    /// List the plugs of a device.
    Plugs,
}

impl From<Action> for Ability {
    fn from(action: Action) -> Self {
        match action {
            Action::Status => Self::Status,
            Action::Off => Self::Off,
            Action::On => Self::On,
            Action::Reset => Self::Reset,
            Action::Monitor => Self::Monitor,
            Action::Plugs => Self::Plugs,
        }
    }
}

impl Manifest {
    /// Reads and checks the section's bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let unread = |error: serde_json::Error| ManifestError::Json(error.to_string());
        let manifest: Self = serde_json::from_slice(bytes).map_err(unread)?;
        manifest.check()?;
        let text = serde_json::from_slice::<serde_json::Value>(bytes).map_err(unread)?.to_string();
        Ok(Self { text, ..manifest })
    }

    /// The JSON that it was read from: whoever parses it has the same manifest.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the plugin can do it.
    pub fn can(&self, action: Action) -> bool {
        self.actions.contains(&action.into())
    }

    fn check(&self) -> Result<(), ManifestError> {
        if self.manifest_version != VERSION {
            return Err(field("manifestVersion", self.manifest_version, VERSION));
        }
        check_name("name", &self.name)?;
        if let Err(error) = semver::Version::parse(&self.version) {
            return Err(field("version", &self.version, format!("semver ({error})")));
        }
        if self.version.len() > VERSION_BYTES_MAX {
            let expected = format!("at most {VERSION_BYTES_MAX}");
            return Err(field("version", format!("{} bytes", self.version.len()), expected));
        }
        let asks = self.asks.endpoints.len() + self.asks.credentials.len();
        if asks > ASKS_MAX {
            return Err(field("asks", format!("{asks} of them"), format!("at most {ASKS_MAX}")));
        }
        let characters = self.description.chars().count();
        if characters > DESCRIPTION_CHARS_MAX {
            let expected = format!("at most {DESCRIPTION_CHARS_MAX}");
            return Err(field("description", format!("{characters} characters"), expected));
        }
        if self.kind.is_of_device() && !self.actions.contains(&Ability::Status) {
            return Err(field("actions", "no status", "status, which is the only proof"));
        }
        if let Some(extra) = self.idempotent_actions.difference(&self.actions).next() {
            return Err(field("idempotentActions", format!("{extra:?}"), "a subset of actions"));
        }
        in_range("lateEffectSeconds", self.late_effect_seconds, 0, LATE_EFFECT_S_MAX)?;
        in_range("deadlineSeconds", self.deadline_seconds, 1, DEADLINE_S_MAX)?;
        in_range("memoryBytes", self.memory_bytes, MEMORY_BYTES_MIN, MEMORY_BYTES_MOST)?;
        self.parameters.check()?;
        self.check_endpoints()?;
        self.check_credentials()
    }

    fn check_endpoints(&self) -> Result<(), ManifestError> {
        let mut seen = BTreeSet::new();
        for (index, ask) in self.asks.endpoints.iter().enumerate() {
            let at = |key: &str| format!("asks.endpoints[{index}].{key}");
            check_name(&at("name"), &ask.name)?;
            if !seen.insert(&ask.name) {
                return Err(field(&at("name"), &ask.name, "a name used once"));
            }
            if !self.parameters.properties.contains_key(&ask.from) {
                return Err(field(&at("from"), &ask.from, "one of the parameters"));
            }
            if ask.methods.is_empty() == ask.protocol.speaks_http() {
                let found = format!("{} for {}", ask.methods.len(), ask.protocol.as_str());
                return Err(field(&at("methods"), found, "at least one for HTTP, none for others"));
            }
            if ask.paths.is_empty() == ask.protocol.speaks_http() {
                let found = format!("{} for {}", ask.paths.len(), ask.protocol.as_str());
                return Err(field(&at("paths"), found, "at least one for HTTP, none for others"));
            }
            if let Some(place) = ask.default.as_ref().and_then(|template| {
                template.places().find(|place| !self.parameters.properties.contains_key(*place))
            }) {
                return Err(field(&at("default"), format!("{{{place}}}"), "one of the parameters"));
            }
            self.check_auth(&at("auth"), ask)?;
        }
        Ok(())
    }

    /// The host puts a credential on a connection only if the manifest asks for just that.
    fn check_auth(&self, path: &str, ask: &EndpointAsk) -> Result<(), ManifestError> {
        let Some(credential) = ask.auth.credential() else { return Ok(()) };
        if !ask.protocol.speaks_http() {
            let expected = "scheme none, for this protocol knows no other";
            return Err(field(path, credential, expected));
        }
        for credential in [Some(credential), ask.auth.second_credential()].into_iter().flatten() {
            let asked = self.asks.credentials.iter().find(|asked| asked.name == credential);
            if !asked.is_some_and(|asked| asked.operations.contains(&Operation::Write)) {
                let expected = "one of asks.credentials with the operation write";
                return Err(field(&format!("{path}.credential"), credential, expected));
            }
        }
        let is_parameter = |name: &str| self.parameters.properties.contains_key(name);
        ask.auth
            .check(is_parameter)
            .map_err(|(key, found, expected)| field(&format!("{path}.{key}"), found, expected))?;
        let at = ask.auth.at().unwrap_or(&ask.name);
        let other = self.asks.endpoints.iter().find(|other| other.name == at);
        if let (Auth::Login(login), Some(other)) = (&ask.auth, other) {
            check_session(path, login, other)?;
        }
        let Some(at) = ask.auth.at() else { return Ok(()) };
        let is_sound = |other: &EndpointAsk| {
            let is_there = ask.optional || !other.optional;
            let is_bare = other.auth == Auth::NONE && other.name != ask.name;
            other.protocol.speaks_http() && is_bare && is_there
        };
        if other.is_some_and(is_sound) {
            return Ok(());
        }
        let expected = "another HTTP endpoint whose scheme is none, no less needed than this one";
        Err(field(&format!("{path}.at"), at, expected))
    }

    fn check_credentials(&self) -> Result<(), ManifestError> {
        let mut seen = BTreeMap::new();
        for (index, ask) in self.asks.credentials.iter().enumerate() {
            let at = |key: &str| format!("asks.credentials[{index}].{key}");
            check_name(&at("name"), &ask.name)?;
            if seen.insert(&ask.name, index).is_some() {
                return Err(field(&at("name"), &ask.name, "a name used once"));
            }
            if ask.operations.is_empty() {
                return Err(field(&at("operations"), "none", "at least one"));
            }
        }
        Ok(())
    }
}

/// What begins a session and what ends it are requests like any other of the endpoint.
fn check_session(path: &str, login: &Login, at: &EndpointAsk) -> Result<(), ManifestError> {
    let request = &login.request;
    if !at.methods.contains(&request.method) {
        let path = format!("{path}.request.method");
        return Err(field(&path, request.method.as_str(), "one of the methods of the endpoint"));
    }
    if let Some(logout) = &login.logout
        && !login.ends_where_it_began()
        && !at.methods.contains(&logout.method)
    {
        let expected = "one of the methods of the endpoint, or the end of a session that a POST began, where it began";
        let path = format!("{path}.logout.method");
        return Err(field(&path, logout.method.as_str(), expected));
    }
    let end = login.logout.as_ref().map(|end| ("logout", &end.path));
    for (what, asked) in [("request", &request.path)].into_iter().chain(end) {
        // One with places is looked at once they are filled.
        let Some(text) = asked.as_text() else { continue };
        let bare = text.split('?').next().unwrap_or_default();
        if !at.paths.iter().any(|prefix| prefix.holds(bare)) {
            let path = format!("{path}.{what}.path");
            return Err(field(&path, bare, "a path below one of the paths of the endpoint"));
        }
    }
    Ok(())
}

fn check_name(path: &str, name: &str) -> Result<(), ManifestError> {
    let sound = (1..=40).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if sound {
        return Ok(());
    }
    Err(field(path, format!("{name:?}"), "1 to 40 of a-z, 0-9 and -"))
}

fn in_range<T: Copy + PartialOrd + std::fmt::Display>(
    path: &str,
    found: T,
    min: T,
    max: T,
) -> Result<(), ManifestError> {
    if found >= min && found <= max {
        return Ok(());
    }
    Err(field(path, found, format!("{min} to {max}")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The example that the contract prints, which the first plugin embeds.
    const IPMI: &str = include_str!("../../../plugins/ipmi/manifest.json");

    #[test]
    fn the_manifest_of_ipmi_is_read() {
        let manifest = Manifest::parse(IPMI.as_bytes()).unwrap();
        assert_eq!(manifest.name, "ipmi");
        assert!(manifest.can(Action::Off));
        assert_eq!(manifest.asks.endpoints[0].protocol, Protocol::Udp);
        assert!(manifest.asks.credentials[0].operations.contains(&Operation::SessionKey));
    }

    /// Changes one place of the example and gives the refusal.
    fn refusal(path: &str, value: Value) -> String {
        let mut manifest: Value = serde_json::from_str(IPMI).unwrap();
        if let Some(place) = manifest.pointer_mut(path) {
            *place = value;
        } else {
            let (parent, key) = path.rsplit_once('/').unwrap();
            let parent = manifest.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            parent.insert(key.to_owned(), value);
        }
        Manifest::parse(manifest.to_string().as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_hold_is_refused_by_name() {
        let rows = [
            ("/manifestVersion", json!(2), "manifestVersion: found 2"),
            ("/name", json!("../x"), "name: found"),
            ("/version", json!("one"), "version: found one"),
            ("/description", json!("x".repeat(201)), "description: found 201 characters"),
            ("/kind", json!("magic"), "unknown variant `magic`"),
            ("/actions", json!(["off"]), "actions: found no status"),
            ("/idempotentActions", json!(["plugs"]), "idempotentActions: found Plugs"),
            ("/lateEffectSeconds", json!(3601), "lateEffectSeconds: found 3601"),
            ("/lateEffectSeconds", json!(-1), "invalid value"),
            ("/deadlineSeconds", json!(0), "deadlineSeconds: found 0"),
            ("/memoryBytes", json!(1_u64 << 40), "memoryBytes: found"),
            ("/surprise", json!(1), "unknown field `surprise`"),
            ("/asks/endpoints/0/from", json!("nowhere"), "asks.endpoints[0].from: found nowhere"),
            ("/asks/endpoints/0/auth/scheme", json!("oauth9"), "unknown variant `oauth9`"),
            ("/asks/endpoints/0/auth/scheme", json!("login"), "missing field `credential`"),
            ("/asks/endpoints/0/auth/scheme", json!("basic"), "missing field `credential`"),
            ("/asks/endpoints/0/auth", json!({"scheme": "none", "x": 1}), "unknown field `x`"),
            (
                "/asks/endpoints/0/auth",
                json!({"scheme": "none", "credential": "account"}),
                "unknown field `credential`",
            ),
            (
                "/asks/endpoints/0/auth",
                json!({"scheme": "basic", "credential": "account"}),
                "endpoints[0].auth: found account, expected scheme none",
            ),
            ("/asks/endpoints/0/methods", json!(["GET"]), "methods: found 1 for udp"),
            ("/asks/endpoints/0/paths", json!(["/"]), "paths: found 1 for udp"),
            ("/asks/endpoints/0/protocol", json!("https"), "methods: found 0 for https"),
            ("/asks/endpoints/0/protocol", json!("gopher"), "unknown variant `gopher`"),
            ("/asks/endpoints/0/port", json!(65536), "invalid value"),
            ("/asks/credentials/1/name", json!("account"), "a name used once"),
            ("/asks/credentials/0/operations", json!([]), "operations: found none"),
            ("/asks/credentials/0/operations", json!(["steal"]), "unknown variant `steal`"),
            ("/parameters/properties/address/pattern", json!("."), "unknown field `pattern`"),
            ("/parameters/additionalProperties", json!(true), "additionalProperties: found true"),
        ];
        for (path, value, expected) in rows {
            let message = refusal(path, value);
            assert!(message.contains(expected), "{path}: {message}");
        }
    }

    #[test]
    fn an_http_endpoint_says_what_it_needs() {
        let redfish = |endpoint: Value| {
            let mut manifest: Value = serde_json::from_str(IPMI).unwrap();
            manifest["asks"]["endpoints"][0] = endpoint;
            manifest["asks"]["credentials"][0]["operations"] = json!(["write"]);
            Manifest::parse(manifest.to_string().as_bytes()).map_err(|error| error.to_string())
        };
        let sound = json!({
            "name": "bmc", "protocol": "https", "from": "address", "methods": ["GET", "POST"],
            "paths": ["/redfish/v1"], "auth": {"scheme": "basic", "credential": "account"},
        });
        let session = |login: &str, logout: Option<&str>| {
            let mut auth = json!({
                "scheme": "login", "credential": "account", "token": {"json": "/token"},
                "request": {"method": "POST", "path": login, "basic": true},
                "send": {"header": "X-Token"},
            });
            if let Some(path) = logout {
                auth["logout"] = json!({"method": "POST", "path": path});
            }
            auth
        };
        let manifest = redfish(sound.clone()).unwrap();
        assert_eq!(manifest.asks.endpoints[0].auth.credential(), Some("account"));
        let rows = [
            ("methods", json!([]), "methods: found 0 for https"),
            ("methods", json!(["TRACE"]), "unknown variant `TRACE`"),
            ("paths", json!([]), "paths: found 0 for https"),
            ("paths", json!(["/a/../b"]), "failed to read the path"),
            ("auth", json!({"scheme": "bearer", "credential": "kg"}), "credential: found kg"),
            ("auth", json!({"scheme": "basic", "credential": "x"}), "credential: found x"),
            ("auth", json!({"scheme": "mtls", "credential": "account"}), "unknown variant `mtls`"),
            ("default", json!("bmc.{zone}.example.org"), "default: found {zone}, expected one of"),
            (
                "auth",
                json!({
                    "scheme": "login", "credential": "account", "token": {"json": "/token"},
                    "request": {"method": "POST", "path": "/redfish/v1/x", "basic": true},
                    "send": {"header": "X-Token"},
                    "logout": {"method": "DELETE", "path": "/redfish/v1/Systems/1"},
                }),
                "auth.logout.method: found DELETE, expected one of the methods of the endpoint",
            ),
            ("auth", session("/login", None), "auth.request.path: found /login, expected a path"),
            (
                "auth",
                session("/redfish/v1/x", Some("/end")),
                "auth.logout.path: found /end, expected a path below one of the paths",
            ),
            ("methods", json!(["GET"]), "auth.request.method: found POST, expected one of"),
        ];
        for (key, value, expected) in rows {
            let mut endpoint = sound.clone();
            if expected.starts_with("auth.request.method") {
                endpoint["auth"] = session("/redfish/v1/x", None);
            }
            endpoint[key] = value;
            let refusal = redfish(endpoint).unwrap_err();
            assert!(refusal.contains(expected), "{key}: {refusal}");
        }
    }

    #[test]
    fn a_key_given_twice_is_refused() {
        let twice = IPMI.replacen("\"name\": \"ipmi\"", "\"name\": \"ipmi\", \"name\": \"x\"", 1);
        assert!(Manifest::parse(twice.as_bytes()).is_err());
        let twice = IPMI.replacen(
            "\"address\": {",
            "\"address\": {\"type\":\"string\"}, \"address\": {",
            1,
        );
        assert!(Manifest::parse(twice.as_bytes()).unwrap_err().to_string().contains("address"));
    }
}
