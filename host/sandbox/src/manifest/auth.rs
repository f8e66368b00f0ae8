//! How the host authenticates at an endpoint, as data. Not here: doing it ([`crate::net`]).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::HeaderName;
use serde::Deserialize;
use serde_json::Value;

use super::template::Template;
use crate::http_target::HttpMethod;
use crate::reserved_headers::OF_THE_HOST;

/// How long what was logged in may be kept: a working day.
const KEEP_SECONDS_MAX: u32 = 36_000;
/// Of the headers that no plugin sets, those that a scheme is there for.
const FOR_PROOF: [&str; 1] = ["authorization"];

/// How the host authenticates at an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    tag = "scheme",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Auth {
    /// Not at all.
    None {},
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
    /// A header made of user name and secret with each request.
    Header {
        /// The plugin's name for the credential that holds both.
        credential: String,
        /// The header's name.
        name: String,
        /// Its value, with places `{identity}` and `{secret}`.
        value: Template,
    },
    /// A signature of each request (AWS Signature Version 4).
    AwsSigv4 {
        /// The plugin's name for the credential: access key id and secret access key.
        credential: String,
        /// The plugin's name for a session token, where the keys are temporary.
        #[serde(default)]
        token: Option<String>,
        /// The service that is signed for.
        service: String,
        /// The region that is signed for, with places for parameters.
        region: Template,
    },
    /// An access token for a Google service account (RFC 7523).
    GoogleServiceAccount {
        /// The plugin's name for the credential: the key file as Google hands it out.
        credential: String,
        /// The endpoint that gives tokens out; no plugin reaches it.
        at: String,
        /// What the token is good for.
        scope: String,
    },
    /// A session.
    Login(Box<Login>),
}

/// A session described as data: how it is begun, where the answer carries what proves it, how that
/// is sent, how it ends.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Login {
    /// The plugin's name for the credential.
    pub credential: String,
    /// The endpoint to log in at, where it is another; no plugin reaches that one.
    #[serde(default)]
    pub at: Option<String>,
    /// What is asked there.
    pub request: LoginRequest,
    /// Where the answer carries the token.
    pub token: Place,
    /// What must accompany every request that changes anything.
    #[serde(default)]
    pub csrf: Option<Csrf>,
    /// How the token is sent.
    pub send: SendAs,
    /// How the session is ended. One that has an end ends with the call.
    #[serde(default)]
    pub logout: Option<Logout>,
    /// How long one that has none is kept for further calls.
    #[serde(default)]
    pub keep_seconds: u32,
    /// JSON pointers into the answer that the plugin may see.
    #[serde(default)]
    pub exposes: Vec<String>,
}

/// A request that begins a session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoginRequest {
    /// Its method.
    pub method: HttpMethod,
    /// Its path and query, with places for parameters.
    pub path: Template,
    /// Its headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Whether it carries user name and password as RFC 7617 has them.
    #[serde(default)]
    pub basic: bool,
    /// Its body: JSON, with places in its strings.
    #[serde(default)]
    pub json: Option<Value>,
    /// Its body: a form, with places in its values.
    #[serde(default)]
    pub form: Option<BTreeMap<String, Template>>,
}

/// A place in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Place {
    /// A header.
    Header(String),
    /// A JSON pointer into the body (RFC 6901); the empty one is the whole.
    Json(String),
}

/// A value that accompanies every request that changes anything.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Csrf {
    /// Where the answer carries it.
    pub from: Place,
    /// The header it is sent in.
    pub header: String,
}

/// How a token is sent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected {header, prefix} or {cookie} as the way in which a token is sent"
)]
pub enum SendAs {
    /// In a header.
    Header {
        /// The header's name.
        header: String,
        /// What stands before the token.
        #[serde(default)]
        prefix: String,
    },
    /// In a cookie.
    Cookie {
        /// The cookie's name.
        cookie: String,
    },
}

/// How a session is ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Logout {
    /// The request's method.
    pub method: HttpMethod,
    /// Its path, with places for parameters, and `{location}` for the header `Location` of the answer
    /// to the login.
    pub path: Template,
}

/// A way to authenticate that cannot hold: where in the scheme, what was found, what could stand
/// there.
pub(super) type Finding = (&'static str, String, &'static str);

impl Default for Auth {
    fn default() -> Self {
        Self::NONE
    }
}

impl Auth {
    /// Not at all.
    pub const NONE: Self = Self::None {};

    /// Its scheme, as manifests write it.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::None {} => "none",
            Self::Basic { .. } => "basic",
            Self::Bearer { .. } => "bearer",
            Self::Header { .. } => "header",
            Self::AwsSigv4 { .. } => "aws-sigv4",
            Self::GoogleServiceAccount { .. } => "google-service-account",
            Self::Login(_) => "login",
        }
    }

    /// Its scheme, and of a session what it shows the plugin and how it ends, for people.
    pub fn told(&self) -> String {
        let mut told = self.scheme().to_owned();
        let Self::Login(login) = self else { return told };
        if !login.exposes.is_empty() {
            let _ = write!(told, ", shows the plugin {}", login.exposes.join(" "));
        }
        if let Some(Logout { method, path }) = &login.logout {
            let _ = write!(told, ", ends by {} {path}", method.as_str());
        }
        told
    }

    /// The credential it needs.
    pub fn credential(&self) -> Option<&str> {
        match self {
            Self::None {} => None,
            Self::Basic { credential }
            | Self::Bearer { credential }
            | Self::Header { credential, .. }
            | Self::AwsSigv4 { credential, .. }
            | Self::GoogleServiceAccount { credential, .. } => Some(credential),
            Self::Login(login) => Some(&login.credential),
        }
    }

    /// A second credential that it uses where there is one.
    pub(crate) fn second_credential(&self) -> Option<&str> {
        match self {
            Self::AwsSigv4 { token, .. } => token.as_deref(),
            Self::None {}
            | Self::Basic { .. }
            | Self::Bearer { .. }
            | Self::Header { .. }
            | Self::GoogleServiceAccount { .. }
            | Self::Login(_) => None,
        }
    }

    /// The endpoint it logs in at, where that is another.
    pub(crate) fn at(&self) -> Option<&str> {
        match self {
            Self::GoogleServiceAccount { at, .. } => Some(at),
            Self::Login(login) => login.at.as_deref(),
            Self::None {}
            | Self::Basic { .. }
            | Self::Bearer { .. }
            | Self::Header { .. }
            | Self::AwsSigv4 { .. } => None,
        }
    }

    /// What of it cannot hold, whatever the manifest says elsewhere.
    pub(super) fn check(&self, is_parameter: impl Fn(&str) -> bool) -> Result<(), Finding> {
        match self {
            Self::None {} | Self::Basic { .. } | Self::Bearer { .. } => Ok(()),
            Self::GoogleServiceAccount { .. } => Ok(()),
            Self::Header { name, value, .. } => {
                check_header("name", name)?;
                check_places("value", value, is_account)
            }
            Self::AwsSigv4 { region, .. } => check_places("region", region, is_parameter),
            Self::Login(login) => login.check(is_parameter),
        }
    }
}

impl Login {
    /// Whether its end can undo nothing but the session that it began.
    pub(crate) fn ends_where_it_began(&self) -> bool {
        let Some(logout) = &self.logout else { return true };
        let is_own = logout.path == self.request.path || logout.path.to_string() == "{location}";
        is_own && self.request.method == HttpMethod::Post
    }

    fn check(&self, is_parameter: impl Fn(&str) -> bool) -> Result<(), Finding> {
        let is_known = |name: &str| is_account(name) || is_parameter(name);
        check_places("request.path", &self.request.path, &is_parameter)?;
        for name in self.request.headers.keys() {
            check_header("request.headers", name)?;
        }
        match (&self.request.json, &self.request.form) {
            (Some(_), Some(_)) => {
                return Err(("request", "json and form".to_owned(), "one of them at most"));
            }
            (Some(json), None) => check_json(json, &is_known)?,
            (None, Some(form)) => {
                form.values().try_for_each(|one| check_places("request.form", one, is_known))?;
            }
            (None, None) => {}
        }
        check_place("token", &self.token)?;
        if let Some(csrf) = &self.csrf {
            check_place("csrf.from", &csrf.from)?;
            check_header("csrf.header", &csrf.header)?;
        }
        match &self.send {
            SendAs::Header { header, .. } => check_header("send.header", header)?,
            SendAs::Cookie { cookie } => check_header("send.cookie", cookie)?,
        }
        if let Some(logout) = &self.logout {
            let is_known = |name: &str| name == "location" || is_parameter(name);
            check_places("logout.path", &logout.path, is_known)?;
        }
        if self.keep_seconds > KEEP_SECONDS_MAX {
            return Err(("keepSeconds", self.keep_seconds.to_string(), "at most 36000"));
        }
        if self.logout.is_some() && self.keep_seconds > 0 {
            let found = "beside logout".to_owned();
            return Err(("keepSeconds", found, "one of both: what has an end ends with the call"));
        }
        self.exposes.iter().try_for_each(|pointer| check_pointer("exposes", pointer))
    }
}

fn is_account(place: &str) -> bool {
    matches!(place, "identity" | "secret")
}

fn check_places(
    path: &'static str,
    template: &Template,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), Finding> {
    match template.places().find(|place| !is_known(place)) {
        Some(place) => Err((path, format!("{{{place}}}"), "a place that has a value here")),
        None => Ok(()),
    }
}

fn check_json(json: &Value, is_known: &impl Fn(&str) -> bool) -> Result<(), Finding> {
    match json {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) => match Template::parse(text) {
            Ok(template) => check_places("request.json", &template, is_known),
            Err(_) => Err(("request.json", text.clone(), "a name and } after each {")),
        },
        Value::Array(members) => members.iter().try_for_each(|one| check_json(one, is_known)),
        Value::Object(members) => members.values().try_for_each(|one| check_json(one, is_known)),
    }
}

fn check_place(path: &'static str, place: &Place) -> Result<(), Finding> {
    match place {
        Place::Header(name) if HeaderName::from_bytes(name.as_bytes()).is_err() => {
            Err((path, name.clone(), "the name of a header"))
        }
        Place::Header(_) => Ok(()),
        Place::Json(pointer) => check_pointer(path, pointer),
    }
}

fn check_pointer(path: &'static str, pointer: &str) -> Result<(), Finding> {
    if pointer.is_empty() || pointer.starts_with('/') {
        return Ok(());
    }
    Err((path, pointer.to_owned(), "a JSON pointer, which begins with / or is empty"))
}

/// A header that a scheme may set.
fn check_header(path: &'static str, name: &str) -> Result<(), Finding> {
    let is_token = HeaderName::from_bytes(name.as_bytes()).is_ok();
    let known = name.to_ascii_lowercase().replace('_', "-");
    let is_for_proof = FOR_PROOF.contains(&known.as_str());
    if is_token && (is_for_proof || !OF_THE_HOST.contains(&known.as_str())) {
        return Ok(());
    }
    Err((path, name.to_owned(), "the name of a header that changes nothing about what is asked"))
}
