//! What a method instance may ask for over HTTP: the manifest's methods and paths, and the admin's,
//! intersected. Not here: what a request may look like at all ([`crate::http_target`]).

use std::collections::{BTreeMap, BTreeSet};

use node_remedy_decide::bug::{Bug, is_seeded};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use zeroize::Zeroizing;

use crate::grants::error::GrantError;
use crate::http_target::{HttpMethod, PathPrefix};
use crate::manifest::{Auth, EndpointAsk, Template};

/// What stands in a path for itself (RFC 3986, unreserved).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What an admin allows over HTTP. Nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpGrant {
    /// The methods.
    pub methods: BTreeSet<HttpMethod>,
    /// The paths, each with all that is below it.
    pub paths: Vec<PathPrefix>,
}

/// What one endpoint may be asked for, and how the host authenticates there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPolicy {
    /// The methods.
    pub methods: BTreeSet<HttpMethod>,
    /// The paths, each with all that is below it.
    pub paths: Vec<PathPrefix>,
    /// What the host adds to each request.
    pub auth: Auth,
    /// Whether only the host asks there, to log in for another endpoint.
    pub is_host_only: bool,
}

impl HttpGrant {
    /// Intersects ask and grant. An asked method must be granted; an asked path must be granted in
    /// part at least, and what is left of it is all that may be asked for.
    pub(super) fn policy(&self, ask: &EndpointAsk) -> Result<HttpPolicy, GrantError> {
        let missing = |found: String, reason: &str, add: String| GrantError::NotGranted {
            ask: format!("endpoint '{}'", ask.name),
            found,
            reason: reason.to_owned(),
            add,
        };
        let ungranted = ask.methods.difference(&self.methods).next();
        if let Some(method) = ungranted.filter(|_| !is_seeded(Bug::AskIsGrant)) {
            let method = method.as_str();
            let add = format!("{method} to grants.methods");
            return Err(missing(format!("method {method}"), "which is not granted", add));
        }
        let mut paths = BTreeSet::new();
        for asked in &ask.paths {
            let granted: Vec<_> =
                self.paths.iter().filter_map(|granted| asked.intersect(granted)).collect();
            if granted.is_empty() {
                let add = format!("{asked} to grants.paths");
                return Err(missing(format!("path {asked}"), "which no granted path holds", add));
            }
            paths.extend(granted.into_iter().cloned());
        }
        Ok(HttpPolicy {
            methods: ask.methods.clone(),
            paths: paths.into_iter().collect(),
            auth: ask.auth.clone(),
            is_host_only: false,
        })
    }
}

/// A path with its places filled by parameters, each as one segment.
pub(crate) fn login_path(
    path: &Template,
    parameters: &BTreeMap<String, String>,
) -> Option<Zeroizing<String>> {
    let value = |name: &str| {
        let value = parameters.get(name)?;
        Some(Zeroizing::new(utf8_percent_encode(value, UNRESERVED).to_string()))
    };
    path.fill(value)
}

impl HttpPolicy {
    /// Whether the path may be asked for.
    pub(crate) fn holds(&self, path: &str) -> bool {
        self.paths.iter().any(|prefix| prefix.holds(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Protocol;

    fn ask(methods: &[HttpMethod], paths: &[&str]) -> EndpointAsk {
        EndpointAsk {
            name: "api".to_owned(),
            protocol: Protocol::Https,
            from: "url".to_owned(),
            default: None,
            port: None,
            auth: Auth::NONE,
            optional: false,
            methods: methods.iter().copied().collect(),
            paths: prefixes(paths),
        }
    }

    fn prefixes(paths: &[&str]) -> Vec<PathPrefix> {
        paths.iter().map(|path| path.parse().unwrap()).collect()
    }

    fn grant(methods: &[HttpMethod], paths: &[&str]) -> HttpGrant {
        HttpGrant { methods: methods.iter().copied().collect(), paths: prefixes(paths) }
    }

    #[test]
    fn what_is_asked_and_granted_is_left() {
        use HttpMethod::{Delete, Get, Post};
        let ask = ask(&[Get, Post], &["/redfish/v1"]);
        let whole = grant(&[Get, Post, Delete], &["/"]).policy(&ask).unwrap();
        assert_eq!(whole.methods, ask.methods);
        assert!(whole.holds("/redfish/v1/Systems") && !whole.holds("/shell"));

        let narrow = grant(&[Get, Post], &["/redfish/v1/Systems/1", "/x"]).policy(&ask).unwrap();
        assert!(narrow.holds("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"));
        assert!(!narrow.holds("/redfish/v1/Systems/2") && !narrow.holds("/x"));
    }

    #[test]
    fn a_refusal_says_what_to_add() {
        use HttpMethod::{Get, Post};
        let ask = ask(&[Get, Post], &["/redfish/v1", "/api"]);
        let rows = [
            (grant(&[Get], &["/"]), "method POST, which is not granted; add POST to"),
            (grant(&[Get, Post], &[]), "path /redfish/v1, which no granted path holds; add"),
            (grant(&[Get, Post], &["/redfish"]), "add /api to grants.paths"),
            (HttpGrant::default(), "add GET to grants.methods"),
        ];
        for (grant, expected) in rows {
            let refusal = grant.policy(&ask).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
}
