//! `plugin verify`: what a component would be allowed, decided by the controller's own code for one address
//! out of each network, before anything is applied.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use futures::executor::block_on;
use node_remedy_api::document::Document;
use node_remedy_api::fenceplugin;
use node_remedy_api::fenceplugin::{Source, VerifyPolicy};
use node_remedy_api::limits::DOCUMENT_BYTES_MAX;
use node_remedy_api::plan::Grant;
use node_remedy_loader::granted::{Row, rows};
use node_remedy_loader::limits::limits;
use node_remedy_loader::signed_by;
use node_remedy_sandbox::manifest::Kind;
use node_remedy_sandbox::{Budget, Endpoint, Manifest, Trust};
use node_remedy_store::store::Plugins;
use serde_json::{Value, json};

use crate::args::Output;
use crate::files::read_text;
use crate::output::outln;
use crate::plugin::describe::scheme;
use crate::plugin::file::load;

/// What a FencePlugin makes of a component.
pub(super) fn verify(
    plugins: &Plugins,
    file: &Path,
    grants: &Path,
    signature: Option<&str>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let source = read(grants)?;
    let (wasm, plugin) = load(plugins, file, &limits(source.spec.limits.as_ref()))?;
    let manifest = plugin.manifest();
    let mut findings = Vec::new();
    if source.name != manifest.name {
        findings.push(format!(
            "the FencePlugin is {:?}, the manifest says {:?}",
            source.name, manifest.name
        ));
    }
    let digest = plugin.digest().to_string();
    if source.spec.digest != digest {
        findings.push(format!("spec.digest is {}, the component's {digest}", source.spec.digest));
    }
    let signer = source.spec.verify.as_ref().map(|verify| {
        let signer = signed_by(&wasm, signature, &verify.keys);
        // A registry has its signatures beside the component.
        let is_elsewhere = signature.is_none() && source.spec.source.oci.is_some();
        if is_elsewhere {
            return Err("is looked for in the registry; --signature checks one before".to_owned());
        }
        if let (Err(why), VerifyPolicy::Require) = (&signer, verify.policy) {
            findings.push(why.clone());
        }
        signer
    });
    match (manifest.kind, source.spec.grants.is_empty()) {
        (Kind::Remedy, true) => {}
        (Kind::Remedy, false) => {
            findings.push("spec.grants is not empty, and a remedy reaches nothing".to_owned());
        }
        (_, true) => {
            findings.push("spec.grants is empty: no method of it is ever ready".to_owned());
        }
        (_, false) => {}
    }
    let rows: Vec<_> = source.grants().flat_map(|grant| reached(manifest, &grant)).collect();
    for Reached { row, .. } in &rows {
        findings.extend(row.decided.as_ref().err().map(|why| format!("{}: {why}", row.to)));
    }
    match output {
        Output::Json => outln!(
            "{}",
            json!({
                "name": manifest.name, "digest": digest, "findings": findings,
                "signedBy": signer.and_then(Result::ok),
                "grants": rows.iter().map(|row| document(row, manifest)).collect::<Vec<_>>(),
            })
        ),
        Output::Text => {
            outln!("{} {}  {digest}", manifest.name, manifest.version);
            match signer {
                None => outln!("signature: none is wanted"),
                Some(Ok(key)) => outln!("signature: by {key}"),
                Some(Err(why)) => outln!("signature: {why}"),
            }
            for row in &rows {
                print(row, manifest)?;
            }
            for finding in &findings {
                outln!("✗ {finding}");
            }
        }
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a grant allows at one of its networks or names.
struct Reached {
    row: Row,
    /// The grant's ports; where it names none there is the one that the row was decided with.
    ports: Vec<u16>,
}

impl Reached {
    /// Where an endpoint may be spoken to.
    fn ports(&self, endpoint: &Endpoint) -> Vec<u16> {
        match self.ports.as_slice() {
            [] => vec![endpoint.address.port()],
            ports => ports.to_vec(),
        }
    }
}

fn reached(manifest: &Manifest, grant: &Grant) -> Vec<Reached> {
    let rows = block_on(rows(manifest, grant, usize::MAX));
    let ports = &grant.allows.ports;
    rows.into_iter().map(|row| Reached { row, ports: ports.clone() }).collect()
}

/// The one FencePlugin of a file.
fn read(file: &Path) -> anyhow::Result<Source> {
    let named = file.display().to_string();
    let failed = || format!("failed to read {named}");
    let text = read_text(file, DOCUMENT_BYTES_MAX).with_context(failed)?;
    let documents = Document::read_all(&named, &text);
    let documents = documents.value.with_context(|| documents.problems.to_string())?;
    let is_it = |document: &&Document| {
        document.root.get("kind").and_then(|kind| kind.text()) == Some("FencePlugin")
    };
    let document = documents.iter().find(is_it);
    let document =
        document.with_context(|| format!("{named}: found no FencePlugin, expected one"))?;
    let reading = fenceplugin::read(document);
    reading.value.with_context(|| reading.problems.to_string())
}

fn print(reached: &Reached, manifest: &Manifest) -> anyhow::Result<()> {
    let row = &reached.row;
    let Ok(grants) = &row.decided else { return Ok(()) };
    outln!("to {}", row.to);
    for (name, endpoint) in grants.endpoints() {
        outln!("{}", line(name, endpoint, &reached.ports(endpoint), manifest));
        if let Some(trust) = &endpoint.tls {
            outln!("             {:<16} TLS: {}", "", proof(trust));
        }
    }
    for ask in &manifest.asks.endpoints {
        if let Some(why) = grants.refused(&ask.name) {
            outln!("  left out   {:<16} optional: {why}", ask.name);
        }
    }
    for (name, operations) in grants.credentials() {
        let words: Vec<_> = operations.iter().map(|one| one.as_str()).collect();
        outln!("  credential {name:<16} {}", words.join(" "));
    }
    let Budget { http_requests, datagrams, credential_operations } = grants.budget();
    outln!(
        "  a call     {http_requests} HTTP requests, {datagrams} datagrams, {credential_operations} credential \
             operations at most"
    );
    Ok(())
}

/// An endpoint, for people.
fn line(name: &str, endpoint: &Endpoint, ports: &[u16], manifest: &Manifest) -> String {
    let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
    // A gap tells the last port from what follows, however many there are.
    let (protocol, ports) = (endpoint.protocol.as_str(), ports.join(" ") + " ");
    let ask = manifest.asks.endpoints.iter().find(|ask| ask.name == name);
    let auth = ask.map(|ask| scheme(&ask.auth)).unwrap_or_default();
    format!("  endpoint   {name:<16} {protocol:<5} port {ports:<5} {auth}  {}", http(endpoint))
}

fn document(reached: &Reached, manifest: &Manifest) -> Value {
    let row = &reached.row;
    let Ok(grants) = &row.decided else {
        return json!({"to": row.to, "refused": row.decided.as_ref().err()});
    };
    let endpoints = grants.endpoints().iter().map(|(name, endpoint)| {
        let ask = manifest.asks.endpoints.iter().find(|ask| ask.name == *name);
        json!({
            "name": name, "protocol": endpoint.protocol.as_str(), "ports": reached.ports(endpoint),
            "auth": ask.map(|ask| scheme(&ask.auth)), "tls": endpoint.tls.as_ref().map(tls),
            "methods": methods(endpoint), "paths": paths(endpoint),
        })
    });
    let credentials = grants.credentials().iter().map(|(name, operations)| {
        let words: Vec<_> = operations.iter().map(|one| one.as_str()).collect();
        json!({"name": name, "operations": words})
    });
    json!({
        "to": row.to, "endpoints": endpoints.collect::<Vec<_>>(),
        "credentials": credentials.collect::<Vec<_>>(),
        "budget": {
            "httpRequests": grants.budget().http_requests, "datagrams": grants.budget().datagrams,
            "credentialOperations": grants.budget().credential_operations,
        },
    })
}

/// Whom TLS must prove the other side to be, for people.
fn proof(trust: &Trust) -> String {
    match trust {
        Trust::SystemAuthorities => "its name, to an authority that the system trusts".to_owned(),
        Trust::Authorities(_) => "its name, to an authority of the grant's tls.caBundle".to_owned(),
        Trust::Pins(pins) => {
            let pins: Vec<_> = pins.iter().map(ToString::to_string).collect();
            format!("its key, which is {}", pins.join(" or "))
        }
        Trust::Insecure => {
            "nothing (insecure): who sits on the wire can read the credential".to_owned()
        }
    }
}

/// The same for programs.
fn tls(trust: &Trust) -> Value {
    match trust {
        Trust::SystemAuthorities => json!({"authorities": "system"}),
        Trust::Authorities(_) => json!({"authorities": "grant"}),
        Trust::Pins(pins) => {
            json!({"pins": pins.iter().map(ToString::to_string).collect::<Vec<_>>()})
        }
        Trust::Insecure => json!({"insecure": true}),
    }
}

fn methods(endpoint: &Endpoint) -> Vec<&'static str> {
    endpoint.http.iter().flat_map(|http| &http.methods).map(|method| method.as_str()).collect()
}

fn paths(endpoint: &Endpoint) -> Vec<String> {
    endpoint.http.iter().flat_map(|http| &http.paths).map(ToString::to_string).collect()
}

/// Methods and paths; empty where it is not HTTP.
fn http(endpoint: &Endpoint) -> String {
    match endpoint.http {
        Some(_) => format!("{} {}", methods(endpoint).join(","), paths(endpoint).join(" ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use node_remedy_api::plan::Allows;

    use super::*;

    const MANIFEST: &[u8] = include_bytes!("../../../../examples/plugins/tasmota/manifest.json");

    #[test]
    fn every_port_of_a_grant_is_shown() {
        let manifest = Manifest::parse(MANIFEST).unwrap();
        for (granted, shown, text) in [
            (json!([8080, 443]), json!([8080, 443]), "http  port 8080 443  basic  GET /cm"),
            (json!([]), json!([80]), "http  port 80    basic  GET /cm"),
        ] {
            let allows = json!({"cidrs": ["192.0.2.0/24"], "ports": granted});
            let allows: Allows = serde_json::from_value(allows).unwrap();
            let grant = Grant { plugin: manifest.name.clone(), allows };
            let [one] = &reached(&manifest, &grant)[..] else { panic!("one network") };
            let told = document(one, &manifest);
            assert_eq!(told["endpoints"][0]["ports"], shown);
            let (name, endpoint) =
                one.row.decided.as_ref().unwrap().endpoints().iter().next().unwrap();
            let said = line(name, endpoint, &one.ports(endpoint), &manifest);
            assert!(said.ends_with(text), "{said}");
        }
    }
}
