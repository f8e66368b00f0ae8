//! What an admin allows a plugin, out of the grants that the plan carries. Each grant stands for
//! itself: the addresses of one are never reached with the trust or the paths of another.

use std::collections::{BTreeMap, BTreeSet};

use node_remedy_api::plan;
use node_remedy_api::plan::{Allows, Grant, TlsGrant};
use node_remedy_runtime::text::chain;
use node_remedy_sandbox::manifest::Operation;
use node_remedy_sandbox::{
    AdminGrant, Authorities, Budget, Cidr, Grants, HttpGrant, HttpMethod, Manifest, Names, Trust,
};

use crate::store::Plugins;

/// What a plan allows, and what no range in it opens.
#[derive(Clone, Copy)]
pub struct Allowed<'a> {
    /// The grants of the plan.
    pub grants: &'a [Grant],
    /// Addresses that no range of a grant opens.
    pub guarded: &'a [Cidr],
    /// What the method sets of the parameters, before the manifest's defaults; absent: all of them.
    pub set: Option<&'a BTreeMap<String, String>>,
}

/// What the first grant that covers it lets a method reach.
pub async fn decide(
    plugin: &str,
    manifest: &Manifest,
    parameters: &BTreeMap<String, String>,
    allowed: Allowed<'_>,
    names: &dyn Names,
) -> Result<Grants, String> {
    let mut refusals = Vec::new();
    for grant in allowed.grants.iter().filter(|grant| grant.plugin == plugin) {
        let guarded = allowed.guarded.to_vec();
        let chosen = chosen(plugin, manifest, parameters, allowed.set.unwrap_or(parameters));
        let admin = AdminGrant { guarded, chosen, ..admin_grant(plugin, manifest, &grant.allows)? };
        match Grants::decide(manifest, parameters, &admin, names).await {
            Ok(decided) => return Ok(decided),
            Err(refusal) => refusals.push(chain(&refusal)),
        }
    }
    if refusals.is_empty() {
        return Err(format!(
            "plugin {plugin:?} is granted nothing; add spec.grants to the FenceConfiguration, or to its FencePlugin where it is not built in: \
             {{plugin: {plugin}, cidrs: [ADDRESS/32]}}"
        ));
    }
    refusals.dedup();
    Err(refusals.join("; by another grant: "))
}

/// The endpoints whose address is none of the method's own: a component from outside is not to choose out of a range that was
/// opened for others.
fn chosen(
    plugin: &str,
    manifest: &Manifest,
    parameters: &BTreeMap<String, String>,
    set: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    if Plugins::is_builtin(plugin) {
        return BTreeSet::new();
    }
    // Another port of the same host is. Behind a bare IPv6 address a number makes another address.
    let is_at = |written: &str, host: &str| {
        let port = written.strip_prefix(host).and_then(|rest| rest.strip_prefix(':'));
        let takes_port = !host.contains(':') || host.starts_with('[') && host.ends_with(']');
        written == host || takes_port && port.is_some_and(|port| port.parse::<u16>().is_ok())
    };
    let asks = || manifest.asks.endpoints.iter();
    let own: Vec<&String> = asks().filter_map(|ask| set.get(&ask.from)).collect();
    let is_own = |written: &String| own.iter().any(|host| is_at(written, host));
    let unset = asks().filter(|ask| !set.contains_key(&ask.from));
    let chosen = unset.filter(|ask| !ask.written(parameters).as_ref().is_some_and(is_own));
    chosen.map(|ask| ask.name.clone()).collect()
}

/// An optional credential that a plugin must see and that a method names is granted, or the method
/// is not ready.
pub fn check_reveal<'a>(
    manifest: &Manifest,
    grants: &Grants,
    mut configured: impl Iterator<Item = &'a String>,
) -> Result<(), String> {
    let is_hidden = |name: &str| {
        let ask = manifest.asks.credentials.iter().find(|ask| ask.name == name);
        let is_asked = ask.is_some_and(|ask| ask.operations.contains(&Operation::Reveal));
        let granted = grants.credentials().get(name);
        is_asked && !granted.is_some_and(|granted| granted.contains(&Operation::Reveal))
    };
    match configured.find(|name| is_hidden(name)) {
        None => Ok(()),
        Some(name) => Err(format!(
            "plugin {:?} must see the credential {name:?} itself; add reveal: [{name}] to its grant",
            manifest.name
        )),
    }
}

fn admin_grant(plugin: &str, manifest: &Manifest, grant: &Allows) -> Result<AdminGrant, String> {
    let asks = &manifest.asks;
    let mut exposes: BTreeSet<String> = grant.exposes.iter().cloned().collect();
    if Plugins::is_builtin(plugin) {
        exposes.extend(asks.exposes().map(str::to_owned));
    }
    let asked = asks.credentials.iter().flat_map(|ask| ask.operations.iter().copied());
    let asked = asked.filter(|operation| *operation != Operation::Reveal);
    let speaks = asks.endpoints.iter().map(|ask| ask.protocol);
    // A word that no manifest of this host knows allows nothing; `check` names it.
    let allows =
        |words: &[String], word: &str| words.is_empty() || words.iter().any(|one| one == word);
    let mut admin = AdminGrant {
        hosts: grant.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
        ports: grant.ports.iter().map(|port| *port..=*port).collect(),
        protocols: speaks.filter(|one| allows(&grant.protocols, one.as_str())).collect(),
        http: http_grant(manifest, grant)?,
        auth: (!grant.auth.is_empty()).then(|| grant.auth.iter().cloned().collect()),
        trust: trust(grant.tls.as_ref())?,
        operations: asked.filter(|one| allows(&grant.operations, one.as_str())).collect(),
        reveal: grant.reveal.iter().cloned().collect(),
        exposes,
        budget: budget_of(grant.budget.unwrap_or_default()),
        ..AdminGrant::default()
    };
    for cidr in &grant.cidrs {
        admin.cidrs.push(cidr.parse::<Cidr>().map_err(|error| chain(&error))?);
    }
    if grant.ports.is_empty() {
        let asked = asks.endpoints.iter().filter_map(|ask| ask.port.or(ask.protocol.usual_port()));
        admin.ports.extend(asked.map(|port| port..=port));
    }
    Ok(admin)
}

fn budget_of(allowed: plan::Budget) -> Budget {
    let any = Budget::default();
    Budget {
        http_requests: allowed.http_requests.unwrap_or(any.http_requests),
        datagrams: allowed.datagrams.unwrap_or(any.datagrams),
        credential_operations: allowed.credential_operations.unwrap_or(any.credential_operations),
    }
}

fn http_grant(manifest: &Manifest, grant: &Allows) -> Result<HttpGrant, String> {
    let mut granted = HttpGrant::default();
    for word in &grant.methods {
        let method = HttpMethod::parse(word).ok_or_else(|| format!("no HTTP method {word:?}"))?;
        granted.methods.insert(method);
    }
    for path in &grant.paths {
        granted.paths.push(path.parse().map_err(|error| chain(&error))?);
    }
    for ask in &manifest.asks.endpoints {
        if grant.methods.is_empty() {
            granted.methods.extend(ask.methods.iter().copied());
        }
        if grant.paths.is_empty() {
            granted.paths.extend(ask.paths.iter().cloned());
        }
    }
    Ok(granted)
}

fn trust(tls: Option<&TlsGrant>) -> Result<Trust, String> {
    let Some(TlsGrant { ca_bundle, pins, insecure }) = tls else { return Ok(Trust::default()) };
    match (ca_bundle.as_str(), pins.as_slice(), insecure) {
        ("", [], true) => Ok(Trust::Insecure),
        (pem, [], false) if !pem.is_empty() => Authorities::from_pem(pem.as_bytes())
            .map(Trust::Authorities)
            .map_err(|error| chain(&error)),
        ("", pins @ [_, ..], false) => pins
            .iter()
            .map(|pin| pin.parse().map_err(|error| chain(&error)))
            .collect::<Result<_, _>>()
            .map(Trust::Pins),
        (_, _, _) => Err("tls of a grant says not exactly one of caBundle, pins, insecure".into()),
    }
}

#[cfg(test)]
mod tests;
