//! Who asks a registry: accounts out of a pull secret, and what a registry wants to be shown (RFC 7235, and the
//! distribution specification's token). Not here: asking.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use node_remedy_api::fenceplugin::Registry;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::limits::ACCOUNTS_BYTES_MAX;

/// The names under which the same registry stands in `config.json`.
const DOCKER: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// A name and a password.
#[derive(Clone)]
pub struct Account {
    /// Who.
    pub username: String,
    /// The password, or a token in its place.
    pub password: Zeroizing<String>,
}

/// `.dockerconfigjson`, as far as it is read.
#[derive(Deserialize)]
struct Accounts {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    auth: Option<Zeroizing<String>>,
    username: Option<String>,
    password: Option<Zeroizing<String>>,
}

impl Account {
    /// The one for `registry` in a `.dockerconfigjson`; none where it has none.
    ///
    /// # Errors
    /// A sentence where that cannot be read; no secret is in it.
    pub fn of(config: &[u8], registry: &Registry) -> Result<Option<Self>, String> {
        if config.len() > ACCOUNTS_BYTES_MAX {
            return Err(format!("found more than {ACCOUNTS_BYTES_MAX} bytes"));
        }
        // What serde says of wrong words may repeat them.
        let accounts: Accounts = serde_json::from_slice(config)
            .map_err(|error| format!("found no docker config in JSON (line {})", error.line()))?;
        let wanted = registry.to_string().to_ascii_lowercase();
        let is_it = |key: &str| {
            let key = key.split_once("://").map_or(key, |(_, rest)| rest);
            let key = key.split_once('/').map_or(key, |(host, _)| host).to_ascii_lowercase();
            key == wanted || DOCKER.contains(&key.as_str()) && DOCKER.contains(&wanted.as_str())
        };
        let Some((key, entry)) = accounts.auths.into_iter().find(|(key, _)| is_it(key)) else {
            return Ok(None);
        };
        let account = match entry {
            Entry { auth: Some(auth), .. } if !auth.is_empty() => {
                let joined = STANDARD.decode(auth.trim()).ok().map(Zeroizing::new);
                let joined = joined.and_then(|joined| {
                    std::str::from_utf8(&joined).ok().map(|text| Zeroizing::new(text.to_owned()))
                });
                joined.and_then(|joined| {
                    let (username, password) = joined.split_once(':')?;
                    Some((username.to_owned(), Zeroizing::new(password.to_owned())))
                })
            }
            Entry { username: Some(username), password: Some(password), .. } => {
                Some((username, password))
            }
            Entry { .. } => None,
        };
        let (username, password) = account.ok_or_else(|| {
            format!("found neither auth nor username and password that can be read for {key:?}")
        })?;
        Ok(Some(Self { username, password }))
    }

    /// The value of the header `Authorization`, scheme Basic.
    pub(super) fn basic(&self) -> Zeroizing<String> {
        let joined = Zeroizing::new(format!("{}:{}", self.username, self.password.as_str()));
        Zeroizing::new(format!("Basic {}", STANDARD.encode(joined.as_bytes())))
    }
}

/// What a registry wants to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A name and a password.
    Basic,
    /// A token, which is had at `realm`.
    Bearer {
        /// An URL.
        realm: String,
        /// By what name that knows the registry.
        service: Option<String>,
    },
}

impl Challenge {
    /// Out of the values of `WWW-Authenticate`; a token goes before a password.
    pub(super) fn read(values: &[&str]) -> Option<Self> {
        let schemes = values.iter().map(|value| {
            let value = value.trim();
            value.split_once(' ').unwrap_or((value, ""))
        });
        let find =
            |wanted: &str| schemes.clone().find(|(scheme, _)| scheme.eq_ignore_ascii_case(wanted));
        if let Some((_, parameters)) = find("bearer") {
            let realm = parameter(parameters, "realm")?;
            return Some(Self::Bearer { realm, service: parameter(parameters, "service") });
        }
        find("basic").map(|_| Self::Basic)
    }
}

/// One of `name="value", …`.
fn parameter(parameters: &str, wanted: &str) -> Option<String> {
    let mut rest = parameters;
    loop {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim_matches([' ', ',', '\t']);
        let after = after.trim_start();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value.trim().to_owned());
        }
        rest = after;
    }
}

/// What a token server answers.
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<Zeroizing<String>>,
    access_token: Option<Zeroizing<String>>,
}

/// The value of the header `Authorization`, scheme Bearer.
pub(super) fn bearer(answer: &[u8]) -> Option<Zeroizing<String>> {
    let answer: TokenAnswer = serde_json::from_slice(answer).ok()?;
    let token = answer.token.or(answer.access_token)?;
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    is_token.then(|| Zeroizing::new(format!("Bearer {}", token.as_str())))
}

/// A value in a query (RFC 3986): what is not unreserved stands as its bytes.
pub(super) fn in_query(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing into a String does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_registry_and_by_no_other() {
        let config = br#"{"auths": {
            "https://registry.example.org/v2/": {"auth": "YTpi"},
            "mirror.example.org:5000": {"username": "c", "password": "d:e"},
            "https://index.docker.io/v1/": {"auth": "Zjpn"}
        }}"#;
        let found = |registry: &str| {
            let account = Account::of(config, &registry.parse().unwrap()).unwrap();
            account.map(|account| format!("{}:{}", account.username, account.password.as_str()))
        };
        assert_eq!(found("registry.example.org").as_deref(), Some("a:b"));
        assert_eq!(found("mirror.example.org:5000").as_deref(), Some("c:d:e"));
        assert_eq!(found("docker.io").as_deref(), Some("f:g"));
        for other in ["registry.example.org:5000", "mirror.example.org", "example.org"] {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_without_the_secret() {
        let registry = "r.example.org".parse().unwrap();
        for wrong in [
            "hunter2",
            r#"{"auths": ["hunter2"]}"#,
            r#"{"auths": {"r.example.org": {"auth": "hunter2"}}}"#,
            r#"{"auths": {"r.example.org": {"auth": 12}}}"#,
            r#"{"auths": {"r.example.org": {"username": "hunter2"}}}"#,
        ] {
            let Err(why) = Account::of(wrong.as_bytes(), &registry) else { panic!("{wrong}") };
            assert!(!why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn a_challenge_is_read_and_a_token_goes_before_a_password() {
        let read = Challenge::read;
        let bearer = r#"Bearer realm="https://a.example.org/token",service="r, s",scope="x=y""#;
        let expected = Challenge::Bearer {
            realm: "https://a.example.org/token".to_owned(),
            service: Some("r, s".to_owned()),
        };
        assert_eq!(read(&["Basic realm=\"x\"", bearer]), Some(expected));
        assert_eq!(read(&["basic"]), Some(Challenge::Basic));
        for none in ["Negotiate", "Bearer", "Bearer realm=\"https://cut", ""] {
            assert_eq!(read(&[none]), None, "{none}");
        }
        assert_eq!(in_query("repository:a/b:pull,push"), "repository%3Aa%2Fb%3Apull%2Cpush");
    }

    #[test]
    fn a_token_is_one_word() {
        let header = |answer: &str| bearer(answer.as_bytes()).map(|token| token.to_string());
        assert_eq!(header(r#"{"token": "abc"}"#).as_deref(), Some("Bearer abc"));
        assert_eq!(header(r#"{"access_token": "abc"}"#).as_deref(), Some("Bearer abc"));
        for wrong in
            [r#"{"token": ""}"#, r#"{"token": "a b"}"#, r#"{"token": "a\r\nb: c"}"#, "{}", ""]
        {
            assert_eq!(header(wrong), None, "{wrong}");
        }
    }
}
