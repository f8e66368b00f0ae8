//! What an admin allows a plugin: as it is written, and what is wrong with it.

use std::net::{IpAddr, Ipv6Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::Path;

/// The HTTP methods that can be granted.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// The protocols that can be granted, as manifests write them.
const PROTOCOLS: [&str; 5] = ["udp", "tcp", "tls", "http", "https"];

/// What can be granted to be done with a credential; to see it is `reveal`.
const OPERATIONS: [&str; 4] = ["mac", "session-key", "usm-key", "write"];

/// How the host may authenticate, as manifests write it; `none`: it adds nothing.
const AUTH: [&str; 7] =
    ["none", "basic", "bearer", "header", "aws-sigv4", "google-service-account", "login"];

/// What a plugin may reach; its manifest's ask is cut down to this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The plugin.
    #[schemars(length(min = 1, max = 63))]
    pub plugin: String,
    /// What it may reach.
    #[serde(flatten)]
    pub allows: Allows,
}

/// One grant without its plugin: where it may connect, and how it may speak there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Allows {
    /// Networks, such as 10.1.0.0/16 or one address as 10.1.2.3/32. Loopback and link-local
    /// addresses are granted only one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 64)))]
    pub cidrs: Vec<String>,
    /// Protocols, of udp, tcp, tls, http and https; none: those that the plugin's manifest names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 16)))]
    pub protocols: Vec<String>,
    /// Host names, exactly as parameters write them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub hosts: Vec<String>,
    /// Ports; none: those that the plugin's manifest names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub ports: Vec<u16>,
    /// HTTP methods, such as GET and POST; none: those that the plugin's manifest names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6), inner(length(max = 8)))]
    pub methods: Vec<String>,
    /// Paths of HTTP requests, each with all that is below it, such as /redfish/v1; none: those that
    /// the plugin's manifest names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 1024)))]
    pub paths: Vec<String>,
    /// How the host may authenticate there for the plugin, of none, basic, bearer, header, aws-sigv4,
    /// google-service-account and login; none: as its manifest names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 32)))]
    pub auth: Vec<String>,
    /// Whom the device must prove to be, where the plugin speaks TLS; none: its name, to an authority
    /// that the system trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsGrant>,
    /// What may be done with its credentials, of mac, session-key, usm-key and write; none: what its
    /// manifest names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 16)))]
    pub operations: Vec<String>,
    /// Credentials whose bytes the plugin may see, because its device knows no other way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 63)))]
    pub reveal: Vec<String>,
    /// What the plugin may see of the answer to a login, as JSON pointers out of its manifest (`exposes`): it may be
    /// a token. Built-in plugins see what they name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 256)))]
    pub exposes: Vec<String>,
    /// How much of all that one call may use, where that is less than any call may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// How much one call may use; what is not said is what any call may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// HTTP requests, those of logins included; a logout is always made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 512))]
    pub http_requests: Option<u32>,
    /// Datagrams sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_048))]
    pub datagrams: Option<u32>,
    /// Operations with a credential itself; each is a guess at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub credential_operations: Option<u32>,
}

/// Whom the other side of TLS must prove to be: exactly one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TlsGrant {
    /// Its name, to one of these authorities: certificates in PEM.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 65_536))]
    pub ca_bundle: String,
    /// That it holds one of these keys, whatever its certificate says: SHA-256 of the
    /// SubjectPublicKeyInfo, as curl writes it: `sha256//BASE64` (RFC 7469, section 2.4).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 52)))]
    pub pins: Vec<String>,
    /// Nothing: whoever sits on the wire can read the credential.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}

/// Tells what is wrong with a grant that stands at `path`.
pub(crate) fn check(allows: &Allows, path: &Path, tell: &mut dyn FnMut(&Path, String)) {
    for (index, cidr) in allows.cidrs.iter().enumerate() {
        if !is_cidr(cidr) {
            let sentence =
                format!("found {cidr:?}, expected a network such as 10.1.0.0/16 or 10.1.2.3/32");
            tell(&path.field("cidrs").index(index), sentence);
        }
    }
    if allows.cidrs.is_empty() && allows.hosts.is_empty() {
        tell(path, "found neither cidrs nor hosts, expected one".to_owned());
    }
    for (field, written, known) in [
        ("protocols", &allows.protocols, PROTOCOLS.as_slice()),
        ("methods", &allows.methods, METHODS.as_slice()),
        ("operations", &allows.operations, OPERATIONS.as_slice()),
        ("auth", &allows.auth, AUTH.as_slice()),
    ] {
        for (index, word) in written.iter().enumerate() {
            if !known.contains(&word.as_str()) {
                let sentence = format!("found {word:?}, expected one of {}", known.join(", "));
                tell(&path.field(field).index(index), sentence);
            }
        }
    }
    for (index, granted) in allows.paths.iter().enumerate() {
        if !granted.starts_with('/') {
            let sentence = format!("found {granted:?}, expected a path such as /redfish/v1");
            tell(&path.field("paths").index(index), sentence);
        }
    }
    for (index, pointer) in allows.exposes.iter().enumerate() {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let sentence =
                format!("found {pointer:?}, expected a JSON pointer such as /token/catalog");
            tell(&path.field("exposes").index(index), sentence);
        }
    }
    if let Some(tls) = &allows.tls {
        check_tls(tls, &path.field("tls"), tell);
    }
}

fn check_tls(tls: &TlsGrant, path: &Path, tell: &mut dyn FnMut(&Path, String)) {
    for (index, pin) in tls.pins.iter().enumerate() {
        if !is_pin(pin) {
            let sentence = format!("found {pin:?}, expected sha256// and 32 bytes in base64");
            tell(&path.field("pins").index(index), sentence);
        }
    }
    let said = [!tls.ca_bundle.is_empty(), !tls.pins.is_empty(), tls.insecure];
    let said = said.into_iter().filter(|said| *said).count();
    if said != 1 {
        tell(path, format!("found {said} of caBundle, pins and insecure, expected one"));
    }
}

/// A SHA-256 as curl writes a pin: 43 digits of base64 and a filler.
fn is_pin(text: &str) -> bool {
    let digits = text.strip_prefix("sha256//").and_then(|digits| digits.strip_suffix('='));
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    digits.is_some_and(|digits| digits.len() == 43 && digits.bytes().all(is_digit))
}

/// Whether a text is a network that the sandbox takes.
pub fn is_cidr(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return false };
    let (bits, form) = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => (32, Form::Own),
        Ok(IpAddr::V6(address)) => (128, form_of(address)),
        Err(_) => return false,
    };
    prefix.parse::<u8>().is_ok_and(|prefix| match form {
        Form::Own => prefix <= bits,
        Form::LeadsToIpv4 => prefix == bits,
        Form::Disguise => false,
    })
}

/// What an IPv6 address is.
enum Form {
    /// Itself.
    Own,
    /// An IPv4 address that it leads to: mapped, NAT64. Of a network of them nobody could foresee where it leads.
    LeadsToIpv4,
    /// An IPv4 address in a form that is dialled as it is written: translated (SIIT), compatible, 6to4, Teredo.
    Disguise,
}

fn form_of(address: Ipv6Addr) -> Form {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, ..] => Form::LeadsToIpv4,
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Form::Own,
        [0, 0, 0, 0, 0 | 0xffff, 0, ..] | [0x2002, ..] | [0x2001, 0, ..] => Form::Disguise,
        [..] => Form::Own,
    }
}
