//! Whether the methods of a configuration can be called at all, as far as files say it: what their plugins
//! ask for, and what is granted. What is taken from a node or resolved by name is not known here.

use std::collections::BTreeMap;
use std::net::IpAddr;

use futures::executor::block_on;
use node_remedy_api::document::{Problem, Problems, Severity, Spot, nearest};
use node_remedy_api::plan::{
    Credential, FenceSource, Method, MethodUse, Written, is_cloud, is_hidden,
};
use node_remedy_sandbox::{HostPort, Manifest, SystemNames};
use node_remedy_store::describe;
use node_remedy_store::store::Plugins;

/// Adds what is wrong with each method, if nothing else was said of its place.
pub(super) fn check(source: &FenceSource, plugins: &Plugins, problems: &mut Problems) {
    for method in source.uses() {
        let Some(plugin) = &method.plugin else { continue };
        // That there is no such plugin is said elsewhere; of one from outside, files may say nothing.
        let Ok((manifest, _)) = plugins.about(plugin) else { continue };
        let found = of_method(&method, &manifest);
        let is_callable = found.is_empty();
        for problem in found {
            if !problems.errors().any(|one| is_same_place(one, &problem)) {
                problems.push(problem);
            }
        }
        let grants = source.grants_given().filter(|_| is_callable);
        let grants = grants.filter(|all| all.iter().any(|grant| grant.plugin == *plugin));
        let called = grants.and_then(|grants| Some((grants, addressed(&method, &manifest)?)));
        if let Some((grants, called)) = called
            // Nothing is looked up: every host is an address.
            && let Err(why) = block_on(describe::ready(plugins, &called, grants, &SystemNames))
        {
            problems.push(error(&method.spot, format!("{}: {why}", method.name)));
        }
    }
}

fn error(spot: &Spot, sentence: String) -> Problem {
    let Spot { origin, place, path } = spot.clone();
    Problem { origin, place, path, severity: Severity::Error, sentence }
}

fn is_same_place(one: &Problem, other: &Problem) -> bool {
    (&one.origin, one.place, &one.path) == (&other.origin, other.place, &other.path)
}

/// What the plugin would refuse.
fn of_method(method: &MethodUse, manifest: &Manifest) -> Vec<Problem> {
    let (schema, plugin) = (&manifest.parameters, &manifest.name);
    let mut found = Vec::new();
    for (name, Written { text, expression, spot }) in &method.written.parameters {
        let sentence = if !schema.properties.contains_key(name) {
            Some(unknown(name, manifest))
        } else if expression.is_some() {
            None
        } else {
            schema.check_value(name, text).err().map(|refused| refused.to_string())
        };
        found.extend(sentence.map(|sentence| error(spot, sentence)));
    }
    let of_method = |why: String| error(&method.spot, format!("{}: {why}", method.name));
    // A cloud's own name of an instance may tell the rest.
    let is_told = is_cloud(plugin)
        && method.written.plug.as_ref().is_some_and(|plug| plug.expression.is_some());
    let is_set = |name: &String| method.written.parameters.contains_key(name);
    for name in schema.required.iter().filter(|name| !is_told && !is_set(name)) {
        let why = format!("found no {name}, which the plugin {plugin} requires");
        found.push(of_method(why));
    }
    let asks = &manifest.asks.credentials;
    let given: Vec<String> =
        method.credentials.iter().map(|name| describe::credential_of(manifest, name)).collect();
    for name in given.iter().filter(|name| !asks.iter().any(|ask| ask.name == **name)) {
        let known: Vec<_> = asks.iter().map(|ask| ask.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let why = format!("found a credential {name:?}, expected of the plugin {plugin}: {known}");
        found.push(of_method(why));
    }
    let missing = describe::all_credentials(manifest, |name| given.iter().any(|one| one == name));
    found.extend(missing.err().map(of_method));
    found
}

fn unknown(name: &str, manifest: &Manifest) -> String {
    if is_hidden(name) {
        return "found a secret in plain text, expected credentials with a secretRef".to_owned();
    }
    let names = || manifest.parameters.properties.keys().map(String::as_str);
    if let Some(near) = nearest(name, names()) {
        return format!("found an unknown parameter, expected {near} (did you mean that?)");
    }
    let known = names().collect::<Vec<_>>().join(", ");
    format!("found a parameter that the plugin {} has not, expected one of {known}", manifest.name)
}

/// The method as it is called, where everything is written out and every host is an address.
fn addressed(method: &MethodUse, manifest: &Manifest) -> Option<Method> {
    let written = &method.written.parameters;
    if written.values().any(|one| one.expression.is_some()) {
        return None;
    }
    let parameters: BTreeMap<String, String> =
        written.iter().map(|(name, one)| (name.clone(), one.text.clone())).collect();
    let filled = manifest.parameters.fill(&parameters).ok()?;
    let mut addresses = manifest.asks.endpoints.iter().filter_map(|ask| {
        let place = HostPort::parse(&ask.written(&filled)?, ask.protocol).ok()?;
        Some(place.host.parse::<IpAddr>().is_ok())
    });
    if !addresses.all(|is_address| is_address) {
        return None;
    }
    let nowhere = Credential { secret: None, config_map: None };
    let credentials = method.credentials.iter().map(|name| (name.clone(), nowhere.clone()));
    Some(Method {
        plugin: method.plugin.clone(),
        parameters,
        credentials: credentials.collect(),
        ..Method::named(&method.name)
    })
}
