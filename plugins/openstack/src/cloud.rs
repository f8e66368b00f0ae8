//! The cloud: which endpoint of the manifest is used, where Nova's API is, and what the catalogue says
//! of that. Not here: servers.

use node_remedy_sdk::web::{Api, Manner};
use node_remedy_sdk::{Failure, FailureKind, Fields, Host, Level};
use serde_json::Value;

const MANNER: Manner = Manner {
    endpoint: "compute",
    device: "OpenStack",
    request_ms: 25_000,
    headers: &[("Accept", "application/json")],
    unauthenticated: "check user, password, project and domains, or the application credential",
    denied: "check the roles in the project: member, or a role that may stop and start servers",
    missing: "check that compute-url is Nova's endpoint as the catalogue has it",
};

/// The same, by each of the ways to log in.
const BELOW: Manner = Manner { endpoint: "compute-below", ..MANNER };
const CREDENTIAL: Manner = Manner { endpoint: "compute-credential", ..MANNER };
const CREDENTIAL_BELOW: Manner = Manner { endpoint: "compute-credential-below", ..MANNER };

/// Nova, as one account sees it.
pub(crate) struct Cloud<'a, H> {
    pub(crate) api: Api<'a, H>,
    endpoint: &'static str,
    url: String,
    prefix: String,
}

impl<'a, H: Host> Cloud<'a, H> {
    /// What the parameters say.
    pub(crate) fn new(host: &'a H, parameters: &Fields, deadline_ms: u32) -> Result<Self, Failure> {
        let parameter = |name: &str| {
            let is_it = |(one, _): &&(String, String)| one == name;
            parameters.iter().find(is_it).map(|(_, value)| value.as_str())
        };
        let wrong = |sentence: String| Err(Failure::new(FailureKind::BadParameters, sentence));
        let auth_url = parameter("auth-url").unwrap_or_default();
        let has_credential = parameter("authentication") == Some("application-credential");
        if !has_credential && parameter("project").is_none() {
            return wrong("project is not set; a password needs one".to_owned());
        }
        let manner = match (path_of(auth_url), has_credential) {
            ("" | "/v3", false) => &MANNER,
            ("" | "/v3", true) => &CREDENTIAL,
            ("/identity" | "/identity/v3", false) => &BELOW,
            ("/identity" | "/identity/v3", true) => &CREDENTIAL_BELOW,
            (other, _) => {
                return wrong(format!(
                    "auth-url has the path {other:?}, expected /v3 or /identity/v3"
                ));
            }
        };
        let url = parameter("compute-url").unwrap_or_default().trim_end_matches('/').to_owned();
        let prefix = path_of(&url).to_owned();
        let is_version = |root: &str| {
            prefix.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !is_version("/v2.1") && !is_version("/compute/v2.1") {
            return wrong(format!(
                "compute-url has the path {prefix:?}, expected one that begins with /v2.1 or /compute/v2.1"
            ));
        }
        let api = Api::new(host, manner, deadline_ms);
        Ok(Self { api, endpoint: manner.endpoint, url, prefix })
    }

    /// A path of Nova.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Says so where the catalogue has Nova elsewhere: another region's Nova knows none of our servers.
    pub(crate) fn compare_with_catalogue(&self) {
        if let Some(difference) = self.difference() {
            self.api.host().log(Level::Warn, &difference);
        }
    }

    /// Where the catalogue has Nova, if that is not where we ask.
    pub(crate) fn difference(&self) -> Option<String> {
        let data = self.api.host().login_data(self.endpoint).ok()?;
        let data: Value = serde_json::from_str(&data).ok()?;
        let services = data.get("/token/catalog")?.as_array()?;
        let is_compute = |one: &&Value| one.get("type").and_then(Value::as_str) == Some("compute");
        let endpoints = services.iter().filter(is_compute);
        let endpoints = endpoints.filter_map(|one| one.get("endpoints")?.as_array()).flatten();
        let mut found = Vec::new();
        for endpoint in endpoints {
            let Some(url) = endpoint.get("url").and_then(Value::as_str) else { continue };
            let url = url.trim_end_matches('/');
            // Some catalogues write the project behind it.
            if url == self.url
                || url.strip_prefix(&self.url).is_some_and(|rest| rest.starts_with('/'))
            {
                return None;
            }
            let region = endpoint.get("region").and_then(Value::as_str).unwrap_or("?");
            if !found.iter().any(|one: &String| one.starts_with(url)) {
                found.push(format!("{url} ({region})"));
            }
        }
        let found = if found.is_empty() { "nowhere".to_owned() } else { found.join(", ") };
        Some(format!("compute-url is {}, and the catalogue has compute at {found}", self.url))
    }
}

/// The path of an URL, without the slash at its end.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').and_then(|at| rest.get(at..));
    path.unwrap_or_default().trim_end_matches('/')
}
