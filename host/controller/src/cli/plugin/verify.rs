//! `plugin verify`: what a component would be allowed, decided by the controller's own code for one address
//! out of each network, before anything is applied.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use futures::future::BoxFuture;
use node_remedy_api::document::Document;
use node_remedy_api::fenceplugin::{self, Source, VerifyPolicy};
use node_remedy_api::limits::DOCUMENT_BYTES_MAX;
use node_remedy_api::plan::{Allows, Grant};
use node_remedy_sandbox::manifest::Kind;
use node_remedy_sandbox::{Budget, Cidr, Endpoint, Grants, Hazard, Manifest, Names};
use serde_json::{Value, json};

use super::file::load;
use super::scheme;
use crate::act::grant::{Allowed, decide};
use crate::cli::Output;
use crate::cli::file::read_text;
use crate::cli::out::outln;
use crate::outside::{limits, signed_by};
use crate::plugins::Plugins;

/// Where a name of a grant leads here: it is not looked up (RFC 5737 reserves it for documents).
const SOMEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const SOMEWHERE_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

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
    let rows: Vec<_> = source.grants().flat_map(|grant| rows(manifest, &grant)).collect();
    for row in &rows {
        findings.extend(row.decided.as_ref().err().map(|why| format!("{}: {why}", row.to)));
    }
    match output {
        Output::Json => outln!(
            "{}",
            json!({
                "name": manifest.name, "digest": digest, "findings": findings,
                "signedBy": signer.and_then(Result::ok),
                "grants": rows.iter().map(Row::document).collect::<Vec<_>>(),
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
                row.print(manifest)?;
            }
            for finding in &findings {
                outln!("✗ {finding}");
            }
        }
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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

/// What one network or name of a grant allows.
struct Row {
    to: String,
    decided: Result<Grants, String>,
}

fn rows(manifest: &Manifest, grant: &Grant) -> Vec<Row> {
    let Allows { cidrs, hosts, ports, .. } = &grant.allows;
    let port = ports.first().map(|port| format!(":{port}")).unwrap_or_default();
    let networks =
        cidrs.iter().filter_map(|text| Some((text.clone(), one_of(&text.parse().ok()?))));
    let networks = networks.map(|(text, address)| match address {
        IpAddr::V4(address) => (text, format!("{address}{port}")),
        IpAddr::V6(address) if port.is_empty() => (text, address.to_string()),
        IpAddr::V6(address) => (text, format!("[{address}]{port}")),
    });
    let hosts = hosts.iter().map(|host| (host.clone(), format!("{host}{port}")));
    let row = |(to, sample): (String, String)| {
        let asks = manifest.asks.endpoints.iter();
        let parameters: BTreeMap<_, _> =
            asks.map(|ask| (ask.from.clone(), sample.clone())).collect();
        let allowed = Allowed { grants: std::slice::from_ref(grant), guarded: &[] };
        let decided = decide(&manifest.name, manifest, &parameters, allowed, &Somewhere);
        Row { to, decided: futures::executor::block_on(decided) }
    };
    networks.chain(hosts).map(row).collect()
}

/// An address of a network that a device could have.
fn one_of(network: &Cidr) -> IpAddr {
    let first = network.first();
    let next = match first {
        IpAddr::V4(address) => IpAddr::V4(u32::from(address).saturating_add(1).into()),
        IpAddr::V6(address) => IpAddr::V6(u128::from(address).saturating_add(1).into()),
    };
    let is_one = |address: &IpAddr| network.holds(*address) && Hazard::of(*address).is_none();
    [next, SOMEWHERE, SOMEWHERE_V6].into_iter().find(is_one).unwrap_or(first)
}

/// Every name leads to the same address.
struct Somewhere;

impl Names for Somewhere {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![SOMEWHERE]) })
    }
}

impl Row {
    fn print(&self, manifest: &Manifest) -> anyhow::Result<()> {
        let Ok(grants) = &self.decided else { return Ok(()) };
        outln!("to {}", self.to);
        for (name, endpoint) in grants.endpoints() {
            let (protocol, port) = (endpoint.protocol.as_str(), endpoint.address.port());
            let ask = manifest.asks.endpoints.iter().find(|ask| ask.name == *name);
            let auth = ask.map(|ask| scheme(&ask.auth)).unwrap_or_default();
            outln!(
                "  endpoint   {name:<16} {protocol:<5} port {port:<5} {auth}  {}",
                http(endpoint)
            );
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

    fn document(&self) -> Value {
        let Ok(grants) = &self.decided else {
            return json!({"to": self.to, "refused": self.decided.as_ref().err()});
        };
        let endpoints = grants.endpoints().iter().map(|(name, endpoint)| {
            json!({
                "name": name, "protocol": endpoint.protocol.as_str(), "port": endpoint.address.port(),
                "methods": methods(endpoint), "paths": paths(endpoint),
            })
        });
        let credentials = grants.credentials().iter().map(|(name, operations)| {
            let words: Vec<_> = operations.iter().map(|one| one.as_str()).collect();
            json!({"name": name, "operations": words})
        });
        json!({
            "to": self.to, "endpoints": endpoints.collect::<Vec<_>>(),
            "credentials": credentials.collect::<Vec<_>>(),
            "budget": {
                "httpRequests": grants.budget().http_requests, "datagrams": grants.budget().datagrams,
                "credentialOperations": grants.budget().credential_operations,
            },
        })
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
