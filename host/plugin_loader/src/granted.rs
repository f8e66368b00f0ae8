//! What the grants of a `FencePlugin` let its component reach, for its status and for `plugin verify`: decided by
//! what decides of calls ([`node_remedy_store::authorize::decide`]), for one address out of each network. Addresses that no range opens are
//! closed all the same.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures::future::BoxFuture;
use node_remedy_api::limits::{STATUS_GRANT_CHARACTERS_MAX, STATUS_GRANTS_MAX};
use node_remedy_api::plan::{Allows, Grant};
use node_remedy_runtime::text::shortened;
use node_remedy_sandbox::{Cidr, Endpoint, Grants, Hazard, Manifest, Names, Trust};
use node_remedy_store::authorize::{Allowed, decide};

/// Where a name of a grant leads here: it is not looked up (RFC 5737 and RFC 3849 reserve both for documents).
const SOMEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const SOMEWHERE_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// What one network or name of a grant allows.
pub struct Row {
    /// As it is written.
    pub to: String,
    /// What a call there may do, or why there can be none.
    pub decided: Result<Grants, String>,
}

/// What a grant leaves of a manifest's asks, for its first so many networks and names.
pub async fn rows(manifest: &Manifest, grant: &Grant, max: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (to, address) in samples(&grant.allows).take(max) {
        let asks = manifest.asks.endpoints.iter();
        let parameters: BTreeMap<_, _> =
            asks.map(|ask| (ask.from.clone(), address.clone())).collect();
        let allowed = Allowed { grants: std::slice::from_ref(grant), guarded: &[], set: None };
        let decided = decide(&manifest.name, manifest, &parameters, allowed, &Somewhere).await;
        rows.push(Row { to, decided });
        tokio::task::yield_now().await;
    }
    rows
}

/// One line for each network and each name of the grants; what does not fit is counted in the last one.
pub(super) async fn lines(manifest: &Manifest, grants: impl Iterator<Item = Grant>) -> Vec<String> {
    let (mut lines, mut beyond) = (Vec::new(), 0_usize);
    let most = STATUS_GRANTS_MAX.saturating_sub(1);
    for grant in grants {
        // Each is decided on the controller's one thread, and read again with every status.
        let left = most.saturating_sub(lines.len());
        let all = grant.allows.cidrs.len().saturating_add(grant.allows.hosts.len());
        beyond = beyond.saturating_add(all.saturating_sub(left));
        for Row { to, decided } in rows(manifest, &grant, left).await {
            let line = match decided {
                Ok(decided) => format!("to {to}: {}", told(manifest, &grant.allows, &decided)),
                Err(refusal) => format!("to {to}: refused: {refusal}"),
            };
            lines.push(shortened(&line, STATUS_GRANT_CHARACTERS_MAX));
        }
    }
    if beyond > 0 {
        lines.push(format!("and {beyond} more networks and names"));
    }
    lines
}

/// What is left of the asks.
fn told(manifest: &Manifest, allows: &Allows, decided: &Grants) -> String {
    let endpoints = decided.endpoints().iter().map(|(name, granted)| {
        let ports: Vec<_> = match allows.ports.as_slice() {
            [] => vec![granted.address.port().to_string()],
            ports => ports.iter().map(ToString::to_string).collect(),
        };
        let (protocol, ports) = (granted.protocol.as_str(), ports.join(" "));
        format!("endpoint {name}: {protocol}, port {ports}{}{}", trusted(granted), http(granted))
    });
    let left_out = manifest.asks.endpoints.iter().filter_map(|ask| {
        let why = decided.refused(&ask.name)?;
        Some(format!("endpoint {}: left out: {why}", ask.name))
    });
    let credentials = decided.credentials().iter().map(|(name, operations)| {
        let words: Vec<_> = operations.iter().map(|one| one.as_str()).collect();
        format!("credential {name}: {}", words.join(" "))
    });
    let budget = decided.budget();
    let call = format!(
        "a call: {} HTTP requests, {} datagrams, {} credential operations",
        budget.http_requests, budget.datagrams, budget.credential_operations
    );
    let context = endpoints.chain(left_out).chain(credentials).chain([call]);
    context.collect::<Vec<_>>().join("; ")
}

/// Whom the other side of TLS must prove to be.
fn trusted(granted: &Endpoint) -> &'static str {
    match &granted.tls {
        None => "",
        Some(Trust::SystemAuthorities) => ", by the system's authorities",
        Some(Trust::Authorities(_)) => ", by the caBundle",
        Some(Trust::Pins(_)) => ", by the pins",
        Some(Trust::Insecure) => ", insecure",
    }
}

/// Authentication, methods and paths.
fn http(granted: &Endpoint) -> String {
    let Some(policy) = &granted.http else { return String::new() };
    let methods: Vec<_> = policy.methods.iter().map(|method| method.as_str()).collect();
    let paths: Vec<_> = policy.paths.iter().map(ToString::to_string).collect();
    format!(", auth {}, {} {}", policy.auth.told(), methods.join(","), paths.join(" "))
}

/// Each network and name as it is written, and an address of it.
fn samples(allows: &Allows) -> impl Iterator<Item = (String, String)> + '_ {
    let port = allows.ports.first().map(|port| format!(":{port}")).unwrap_or_default();
    let of_name = port.clone();
    let networks = allows.cidrs.iter().map(move |written| {
        let address = match written.parse().map(|network| one_of(&network)) {
            Ok(IpAddr::V4(address)) => format!("{address}{port}"),
            Ok(IpAddr::V6(address)) if port.is_empty() => address.to_string(),
            Ok(IpAddr::V6(address)) => format!("[{address}]{port}"),
            Err(_) => written.clone(),
        };
        (written.clone(), address)
    });
    let names = allows.hosts.iter().map(move |host| (host.clone(), format!("{host}{of_name}")));
    networks.chain(names)
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MANIFEST: &[u8] = include_bytes!("../../../examples/plugins/tasmota/manifest.json");

    async fn told(grants: Value) -> Vec<String> {
        let manifest = Manifest::parse(MANIFEST).unwrap();
        let grants: Vec<Allows> = serde_json::from_value(grants).unwrap();
        let grants = grants.into_iter().map(|allows| Grant { plugin: "tasmota".into(), allows });
        lines(&manifest, grants).await
    }

    #[tokio::test]
    async fn a_status_tells_what_is_left_of_ask_and_grant() {
        let said = told(json!([
            {"cidrs": ["10.9.0.0/16"], "paths": ["/"], "budget": {"httpRequests": 7}},
            {"hosts": ["relay.example.org"], "ports": [8080, 8081]},
            {"cidrs": ["fd00:9::/32"], "ports": [80], "methods": ["POST"]},
        ]));
        let rest = "2048 datagrams, 64 credential operations";
        let wanted = [
            format!(
                "to 10.9.0.0/16: endpoint relay: http, port 80, auth basic, GET /cm; \
                 credential account: write; a call: 7 HTTP requests, {rest}"
            ),
            format!(
                "to relay.example.org: endpoint relay: http, port 8080 8081, auth basic, GET /cm; \
                 credential account: write; a call: 512 HTTP requests, {rest}"
            ),
            "to fd00:9::/32: refused: failed to grant endpoint 'relay': found method GET, which is \
             not granted; add GET to grants.methods"
                .to_owned(),
        ];
        assert_eq!(said.await, wanted);
        assert!(told(json!([])).await.is_empty());
    }

    #[tokio::test]
    async fn what_a_status_tells_of_grants_is_bounded() {
        let networks: Vec<_> = (0..64).map(|last| format!("10.9.{last}.0/24")).collect();
        let whole = told(json!([{"cidrs": networks[..63]}])).await;
        assert_eq!(whole.len(), 63);
        assert!(whole.iter().all(|line| line.starts_with("to 10.9.")), "{whole:?}");
        let many = told(json!([{"cidrs": networks}, {"cidrs": networks}])).await;
        assert_eq!(many.len(), STATUS_GRANTS_MAX);
        assert_eq!(many.last().unwrap(), "and 65 more networks and names");

        let path = format!("/cm/{}", "x".repeat(1_000));
        let long = told(json!([{"cidrs": ["10.9.0.0/16"], "paths": [path, format!("{path}y")]}]));
        let [line] = &long.await[..] else { panic!("one line") };
        assert_eq!(line.chars().count(), STATUS_GRANT_CHARACTERS_MAX);
        assert!(line.ends_with('…'), "{line}");
    }
}
