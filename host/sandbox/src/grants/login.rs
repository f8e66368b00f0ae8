//! Whether a grant opens what the host asks for when it logs in.

use node_remedy_decide::bug::{Bug, guard};
use std::collections::BTreeMap;

use crate::grants::Grants;
use crate::grants::error::GrantError;
use crate::grants::http::login_path;
use crate::manifest::{Auth, EndpointAsk};

impl Grants {
    /// Sees that the host may ask for what a session needs at its beginning and its end, and keeps the plugin away from
    /// an endpoint where only the host logs in.
    pub(crate) fn check_login(
        &mut self,
        ask: &EndpointAsk,
        parameters: &BTreeMap<String, String>,
    ) -> Result<(), GrantError> {
        let at = ask.auth.at().unwrap_or(&ask.name).to_owned();
        let Some(policy) = self.endpoints.get_mut(&at).and_then(|at| at.http.as_mut()) else {
            return Ok(());
        };
        policy.is_host_only |= ask.auth.at().is_some();
        let Auth::Login(login) = &ask.auth else { return Ok(()) };
        let end = login.logout.as_ref().map(|end| ("logout", end.method, &end.path));
        for (what, method, path) in
            [("login", login.request.method, &login.request.path)].into_iter().chain(end)
        {
            // Where an answer leads is looked at when it is there.
            let is_known = !path.places().any(|place| place == "location");
            let path = login_path(path, parameters).unwrap_or_default();
            let bare = path.split('?').next().unwrap_or_default();
            let missing = |found: String, add: String| GrantError::NotGranted {
                ask: format!("the {what} at endpoint '{at}'"),
                found,
                reason: "which is not granted".to_owned(),
                add,
            };
            let is_own_end = what == "logout" && login.ends_where_it_began();
            if !policy.methods.contains(&method) && !is_own_end {
                let method = method.as_str();
                let add = format!("{method} to grants.methods");
                return Err(missing(format!("method {method}"), add));
            }
            if guard(Bug::LoginUnchecked, is_known && !policy.holds(bare)) {
                return Err(missing(format!("path {bare}"), format!("{bare} to grants.paths")));
            }
        }
        Ok(())
    }
}
