//! What can be said of a method without reading a Secret, asking a device or leading: what its plugin
//! says of itself, and whether configuration and grants give the plugin what it asks for.

use node_remedy_api::plan::{Credential, Grant, Method, PluginKind};
use node_remedy_api::time::Span;
use node_remedy_config::plan::PluginFacts;
use node_remedy_runtime::text::chain;
use node_remedy_sandbox::manifest::Kind;
use node_remedy_sandbox::{Manifest, Names};

use crate::authorize;
use crate::authorize::Allowed;
use crate::store::Plugins;

/// What plans call a plugin's first credential.
const FIRST_CREDENTIAL: &str = "default";

/// What a plugin says of itself.
///
/// # Errors
/// Where there is none of that name, or it cannot be loaded.
pub fn facts_of(plugins: &Plugins, name: &str) -> Result<PluginFacts, String> {
    let (manifest, digest) = plugins.about(name).map_err(|error| chain(&error))?;
    Ok(PluginFacts {
        digest: digest.to_string(),
        kind: kind_of_plugin(manifest.kind),
        late_effect: Span::from_s(u64::from(manifest.late_effect_seconds)),
        identity: manifest.identity,
    })
}

/// What a plugin's success proves, as records have it.
pub fn kind_of_plugin(kind: Kind) -> PluginKind {
    match kind {
        Kind::Power => PluginKind::Power,
        Kind::Fabric => PluginKind::Fabric,
        Kind::Storage => PluginKind::Storage,
        Kind::Watch => PluginKind::Watch,
        Kind::Remedy => PluginKind::Remedy,
    }
}

/// Whether parameters, grants and the names of credentials suffice for a method of a plugin; `names`
/// resolves the hosts that it names. Which addresses are the cluster's own is not known here.
///
/// # Errors
/// What is missing.
pub async fn ready(
    plugins: &Plugins,
    method: &Method,
    grants: &[Grant],
    names: &dyn Names,
) -> Result<(), String> {
    let Some(name) = method.plugin.as_deref() else { return Ok(()) };
    if Plugins::is_watcher(name) {
        return watcher_ready(plugins, name, method, grants);
    }
    let (manifest, _) = plugins.about(name).map_err(|error| chain(&error))?;
    let parameters = manifest.parameters.fill(&method.parameters).map_err(|error| chain(&error))?;
    let allowed = Allowed { grants, guarded: &[], set: Some(&method.parameters) };
    let granted = authorize::decide(name, &manifest, &parameters, allowed, names).await?;
    let configured: Vec<String> =
        method.credentials.keys().map(|name| credential_of(&manifest, name)).collect();
    authorize::check_reveal(&manifest, &granted, configured.iter())?;
    all_credentials(&manifest, |name| configured.iter().any(|given| given == name))
}

/// What only sees calls nobody: its grant says who is heard.
pub fn watcher_ready(
    plugins: &Plugins,
    name: &str,
    method: &Method,
    grants: &[Grant],
) -> Result<(), String> {
    let (manifest, _) = plugins.about(name).map_err(|error| chain(&error))?;
    manifest.parameters.fill(&method.parameters).map_err(|error| chain(&error))?;
    let is_heard = |grant: &Grant| grant.plugin == name && !grant.allows.cidrs.is_empty();
    if grants.iter().any(is_heard) {
        return Ok(());
    }
    Err(format!(
        "plugin {name:?} hears nobody; add spec.grants to the FenceConfiguration: \
         {{plugin: {name}, cidrs: [NETWORK]}} with the networks that the machines send from"
    ))
}

/// What a plugin calls a credential that a configuration names: `default` is its first that is not
/// optional.
pub fn credential_of(manifest: &Manifest, name: &str) -> String {
    let asks = &manifest.asks.credentials;
    let first = asks.iter().find(|ask| !ask.optional).or_else(|| asks.first());
    match (name, first) {
        (FIRST_CREDENTIAL, Some(ask)) => ask.name.clone(),
        _ => name.to_owned(),
    }
}

/// Whether every credential that a plugin cannot do without is there.
pub fn all_credentials(manifest: &Manifest, is_there: impl Fn(&str) -> bool) -> Result<(), String> {
    let mut asked = manifest.asks.credentials.iter().filter(|ask| !ask.optional);
    match asked.find(|ask| !is_there(&ask.name)) {
        Some(ask) => Err(format!(
            "plugin {} asks for the credential {:?} and the method names none",
            manifest.name, ask.name
        )),
        None => Ok(()),
    }
}

/// Where a credential stands, in words; never what it is.
pub fn place_of(credential: &Credential) -> String {
    match (&credential.secret, &credential.config_map) {
        (Some(place), _) if place.identity_key.is_empty() => {
            format!("Secret {} (key {})", place.name, place.secret_key)
        }
        (Some(place), _) => {
            format!("Secret {} (keys {}, {})", place.name, place.identity_key, place.secret_key)
        }
        (None, Some(place)) => format!("IN PLAIN TEXT in ConfigMap {}", place.name),
        (None, None) => "nowhere".to_owned(),
    }
}
