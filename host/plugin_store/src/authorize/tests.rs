//! What a grant lets a plugin reach, and what no grant opens.

use std::io;
use std::net::IpAddr;

use futures::future::BoxFuture;
use node_remedy_api::document::Document;
use node_remedy_api::plan;
use node_remedy_api::plan::NodeFacts;
use serde_json::json;

use super::*;

const PIN: &str = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Answers every name with one address.
struct Fixed(&'static str);

impl Names for Fixed {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let address = self.0.parse().map_err(io::Error::other);
        Box::pin(async move { address.map(|address| vec![address]) })
    }
}

fn manifest() -> Manifest {
    let manifest = json!({
        "manifestVersion": 1, "name": "web", "version": "0.1.0", "description": "d",
        "kind": "power", "actions": ["status", "off"], "idempotentActions": ["status"],
        "lateEffectSeconds": 1, "identity": [],
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["address"],
            "properties": { "address": { "type": "string" } }
        },
        "asks": {
            "endpoints": [{
                "name": "api", "protocol": "https", "from": "address",
                "methods": ["GET", "POST"], "paths": ["/redfish/v1"],
                "auth": { "scheme": "basic", "credential": "account" }
            }],
            "credentials": [{ "name": "account", "operations": ["write"], "optional": false }]
        },
        "deadlineSeconds": 30, "memoryBytes": 4_194_304
    });
    Manifest::parse(manifest.to_string().as_bytes()).unwrap()
}

fn grant(spec: serde_json::Value) -> Grant {
    let mut spec = spec;
    spec["plugin"] = "web".into();
    serde_json::from_value(spec).unwrap()
}

async fn decided(address: &str, grants: &[Grant]) -> Result<Grants, String> {
    let parameters = BTreeMap::from([("address".to_owned(), address.to_owned())]);
    decide("web", &manifest(), &parameters, unguarded(grants), &Fixed("192.0.2.9")).await
}

fn unguarded(grants: &[Grant]) -> Allowed<'_> {
    Allowed { grants, guarded: &[], set: None }
}

/// Whoever opens a whole network does not mean the API server that stands in it, by whatever name.
#[tokio::test]
async fn no_range_opens_the_cluster_s_own_addresses() {
    let guarded = [Cidr::exactly("192.0.2.9".parse().unwrap())];
    let wide = [grant(json!({ "cidrs": ["0.0.0.0/0"], "hosts": ["api.example.org"] }))];
    let exact = [grant(json!({ "cidrs": ["192.0.2.0/24", "192.0.2.9/32"] }))];
    for (address, grants, is_open) in [
        ("192.0.2.9", &wide, false),
        ("::ffff:192.0.2.9", &wide, false),
        ("api.example.org", &wide, false),
        ("192.0.2.8", &wide, true),
        ("192.0.2.9", &exact, true),
    ] {
        let parameters = BTreeMap::from([("address".to_owned(), address.to_owned())]);
        let allowed = Allowed { grants, guarded: &guarded, set: None };
        let names = Fixed("192.0.2.9");
        let decided = decide("web", &manifest(), &parameters, allowed, &names).await;
        assert_eq!(decided.is_ok(), is_open, "{address}: {decided:?}");
        if let Err(refusal) = decided {
            assert!(refusal.contains("this cluster's own"), "{refusal}");
            assert!(refusal.contains("add 192.0.2.9/32"), "{refusal}");
        }
    }
}

/// A component from outside names further devices of a range by the defaults of its own manifest.
#[tokio::test]
async fn a_range_opens_no_address_that_a_manifest_says_itself() {
    let mut manifest = manifest();
    let mut second = manifest.asks.endpoints[0].clone();
    (second.name, second.from) = ("second".to_owned(), "second".to_owned());
    manifest.asks.endpoints.push(second);
    let decided_for = async |own: &str, plugin: &str, second: &str, cidrs: serde_json::Value| {
        let set = BTreeMap::from([("address".to_owned(), own.to_owned())]);
        let mut filled = set.clone();
        filled.insert("second".to_owned(), second.to_owned());
        let mut granted = grant(json!({ "cidrs": cidrs, "ports": [443, 8443] }));
        granted.plugin = plugin.to_owned();
        let granted = [granted];
        let allowed = Allowed { set: Some(&set), ..unguarded(&granted) };
        decide(plugin, &manifest, &filled, allowed, &Fixed("192.0.2.9")).await
    };
    let decided = async |plugin: &str, second: &str, cidrs: serde_json::Value| {
        decided_for("192.0.2.7", plugin, second, cidrs).await
    };
    let refusal = decided("web", "192.0.2.70", json!(["192.0.2.0/24"])).await.unwrap_err();
    assert!(refusal.contains("no range opens it; add 192.0.2.70/32"), "{refusal}");
    let exact = json!(["192.0.2.7/32", "192.0.2.70/32"]);
    assert!(decided("web", "192.0.2.70", exact).await.is_ok());
    // Another port of the method's own device.
    assert!(decided("web", "192.0.2.7:8443", json!(["192.0.2.0/24"])).await.is_ok());
    assert!(decided("redfish", "192.0.2.70", json!(["192.0.2.0/24"])).await.is_ok());
    // No port, but another machine.
    let range = json!(["2001:db8::/64"]);
    let another = decided_for("2001:db8::1", "web", "2001:db8::1:8443", range).await;
    assert!(another.is_err_and(|refusal| refusal.contains("no range opens it")));
}

#[tokio::test]
async fn each_grant_stands_for_itself() {
    let grants = [
        grant(json!({ "cidrs": ["192.0.2.0/24"], "tls": { "insecure": true } })),
        grant(json!({ "cidrs": ["198.51.100.0/24"], "tls": { "pins": [PIN] } })),
    ];
    for (address, trust) in [
        ("192.0.2.7", Trust::Insecure),
        ("198.51.100.7", Trust::Pins([PIN.parse().unwrap()].into())),
    ] {
        let decided = decided(address, &grants).await.unwrap();
        assert_eq!(decided.endpoints()["api"].tls, Some(trust), "{address}");
    }
    let pinned = grant(json!({ "cidrs": ["192.0.2.7/32"], "tls": { "pins": [PIN] } }));
    let [insecure, _] = &grants;
    let both = decided("192.0.2.7", &[pinned, insecure.clone()]).await.unwrap();
    let pins = Trust::Pins([PIN.parse().unwrap()].into());
    assert_eq!(both.endpoints()["api"].tls, Some(pins), "the first of two");
    let refusal = decided("203.0.113.7", &grants).await.unwrap_err();
    assert!(refusal.contains("no granted range holds"), "{refusal}");
    let refusal = decided("192.0.2.7", &[]).await.unwrap_err();
    assert!(refusal.contains("granted nothing; add spec.grants"), "{refusal}");
}

#[tokio::test]
async fn what_a_grant_leaves_out_is_what_the_manifest_names() {
    let whole = grant(json!({ "cidrs": ["192.0.2.7/32"] }));
    let endpoint = decided("192.0.2.7", &[whole]).await.unwrap().endpoints()["api"].clone();
    assert_eq!((endpoint.address.port(), endpoint.tls), (443, Some(Trust::SystemAuthorities)));
    let http = endpoint.http.unwrap();
    assert_eq!(http.methods, [HttpMethod::Get, HttpMethod::Post].into());
    assert_eq!(http.paths, ["/redfish/v1".parse().unwrap()]);

    let narrow = grant(json!({ "cidrs": ["192.0.2.7/32"], "paths": ["/redfish/v1/Systems/1"] }));
    let decided_of = decided("192.0.2.7", &[narrow]).await.unwrap();
    let http = decided_of.endpoints()["api"].http.clone().unwrap();
    assert_eq!(http.paths, ["/redfish/v1/Systems/1".parse().unwrap()]);

    let too_few = grant(json!({ "cidrs": ["192.0.2.7/32"], "methods": ["GET"] }));
    let refusal = decided("192.0.2.7", &[too_few]).await.unwrap_err();
    assert!(refusal.contains("method POST"), "{refusal}");
}

#[tokio::test]
async fn a_name_is_granted_wherever_it_leads_but_not_to_loopback() {
    let named = [grant(json!({ "hosts": ["BMC-7.example.org"] }))];
    let endpoint = decided("bmc-7.example.org", &named).await.unwrap();
    assert_eq!(endpoint.endpoints()["api"].address.to_string(), "192.0.2.9:443");
    assert!(decided("bmc-8.example.org", &named).await.is_err());
    let parameters = BTreeMap::from([("address".to_owned(), "bmc-7.example.org".to_owned())]);
    let inward =
        decide("web", &manifest(), &parameters, unguarded(&named), &Fixed("127.0.0.1")).await;
    assert!(inward.unwrap_err().contains("only its exact address opens"));
}

#[tokio::test]
async fn a_credential_that_a_plugin_must_see_is_granted_or_the_method_is_not_ready() {
    let mut manifest = manifest();
    let mut community = manifest.asks.credentials[0].clone();
    community.name = "community".to_owned();
    community.optional = true;
    community.operations = [Operation::Reveal].into();
    manifest.asks.credentials.push(community);
    let parameters = BTreeMap::from([("address".to_owned(), "192.0.2.7".to_owned())]);
    for (reveal, is_ready) in [(json!([]), false), (json!(["community"]), true)] {
        let granted = [grant(json!({ "cidrs": ["192.0.2.7/32"], "reveal": reveal }))];
        let names = Fixed("192.0.2.9");
        let decided =
            decide("web", &manifest, &parameters, unguarded(&granted), &names).await.unwrap();
        let named = ["account".to_owned(), "community".to_owned()];
        assert!(check_reveal(&manifest, &decided, named[..1].iter()).is_ok());
        let checked = check_reveal(&manifest, &decided, named.iter());
        assert_eq!(checked.is_ok(), is_ready, "{checked:?}");
        if let Err(refusal) = checked {
            assert!(refusal.contains("add reveal: [community] to its grant"), "{refusal}");
        }
    }
}

#[test]
fn a_budget_is_what_a_grant_says() {
    let of = |budget: serde_json::Value| {
        let allows = serde_json::json!({"cidrs": ["10.9.0.0/16"], "budget": budget});
        let allows: Allows = serde_json::from_value(allows).unwrap();
        budget_of(allows.budget.unwrap())
    };
    assert_eq!(of(serde_json::json!({})), Budget::default());
    let less = serde_json::json!({"httpRequests": 3, "datagrams": 4, "credentialOperations": 5});
    let expected = Budget { http_requests: 3, datagrams: 4, credential_operations: 5 };
    assert_eq!(of(less), expected);
}

/// Who opens the community has not opened the password.
/// A manifest may name one value of an answer as its token and have the one that counts shown to the plugin.
#[tokio::test]
async fn what_a_login_shows_is_granted_to_a_plugin_from_outside() {
    let mut manifest = manifest();
    manifest.asks.endpoints[0].auth = serde_json::from_value(json!({
        "scheme": "login", "credential": "account",
        "request": {"method": "POST", "path": "/redfish/v1/login", "basic": true},
        "token": {"json": "/token_type"}, "send": {"header": "X-Token"},
        "exposes": ["/access_token"],
    }))
    .unwrap();
    let parameters = BTreeMap::from([("address".to_owned(), "192.0.2.7".to_owned())]);
    let decided = async |plugin: &str, exposes: serde_json::Value| {
        let mut granted = grant(json!({ "cidrs": ["192.0.2.7/32"], "exposes": exposes }));
        granted.plugin = plugin.to_owned();
        let granted = [granted];
        let names = Fixed("192.0.2.9");
        decide(plugin, &manifest, &parameters, unguarded(&granted), &names).await
    };
    let refusal = decided("web", json!([])).await.unwrap_err();
    assert!(refusal.contains("to grants.exposes, if the plugin may read it"), "{refusal}");
    assert!(decided("web", json!(["/token_type"])).await.is_err());
    assert!(decided("web", json!(["/access_token"])).await.is_ok());
    // One that is built in is this program's own.
    assert!(decided("openstack", json!([])).await.is_ok());
}

#[tokio::test]
async fn a_credential_is_revealed_only_where_its_own_name_stands() {
    let mut manifest = manifest();
    manifest.asks.credentials[0].operations.insert(Operation::Reveal);
    let mut community = manifest.asks.credentials[0].clone();
    community.name = "community".to_owned();
    manifest.asks.credentials.push(community);
    let parameters = BTreeMap::from([("address".to_owned(), "192.0.2.7".to_owned())]);
    let decided = async |reveal: serde_json::Value| {
        let granted = [grant(json!({ "cidrs": ["192.0.2.7/32"], "reveal": reveal }))];
        decide("web", &manifest, &parameters, unguarded(&granted), &Fixed("192.0.2.9")).await
    };
    let refusal = decided(json!(["community"])).await.unwrap_err();
    assert!(
        refusal.ends_with("add account to grants.reveal, if the plugin may read it"),
        "{refusal}"
    );
    assert!(decided(json!(["community", "account"])).await.is_ok());
}

#[tokio::test]
async fn protocols_and_operations_are_narrowed_by_a_grant() {
    for (more, refused) in [
        (json!({ "protocols": ["https"], "operations": ["write"] }), None),
        (json!({ "protocols": ["http", "udp"] }), Some("add https to grants.protocols")),
        (json!({ "operations": ["mac"] }), Some("add write to grants.operations")),
    ] {
        let mut narrow = more.clone();
        narrow["cidrs"] = json!(["192.0.2.7/32"]);
        let decided = decided("192.0.2.7", &[grant(narrow)]).await;
        let refusal = decided.err();
        assert_eq!(refusal.is_some(), refused.is_some(), "{more}: {refusal:?}");
        assert!(refusal.is_none_or(|said| refused.is_some_and(|wanted| said.ends_with(wanted))));
    }
}

/// Of a node that nobody configured the provider's own hosts are granted, and those only.
#[tokio::test]
async fn a_default_plan_is_granted_what_its_plugin_asks_for() {
    let plugins: [(&[u8], &str, &[&str]); 3] = [
        (
            include_bytes!("../../../../plugins/aws/manifest.json"),
            "aws:///eu-west-1a/i-0123456789abcdef0",
            &["ec2.eu-west-1.amazonaws.com", "autoscaling.eu-west-1.amazonaws.com"],
        ),
        (
            include_bytes!("../../../../plugins/gce/manifest.json"),
            "gce://p-1/europe-west1-b/worker-1",
            &["compute.googleapis.com", "oauth2.googleapis.com"],
        ),
        (
            include_bytes!("../../../../plugins/azure/manifest.json"),
            "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/w",
            &["management.azure.com", "login.microsoftonline.com"],
        ),
    ];
    for (manifest, provider_id, hosts) in plugins {
        let manifest = Manifest::parse(manifest).unwrap();
        let node = NodeFacts { provider_id: provider_id.to_owned(), ..NodeFacts::default() };
        let plan = plan::default_plan(&node).unwrap();
        let method = plan.methods.iter().find(|one| one.plugin.is_some()).unwrap();
        let place = method.credentials["default"].secret.as_ref().unwrap();
        assert_eq!(place.name, format!("{}-credentials", manifest.name));
        let names = Fixed("192.0.2.9");
        let decided =
            decide(&manifest.name, &manifest, &method.parameters, unguarded(&plan.grants), &names);
        let decided = decided.await.unwrap();
        let granted: Vec<&str> = plan.grants[0].allows.hosts.iter().map(String::as_str).collect();
        assert_eq!((granted.as_slice(), plan.grants.len()), (hosts, 1));
        assert_eq!(decided.endpoints().len(), manifest.asks.endpoints.len(), "{provider_id}");

        // Any other place is none of it.
        let address = BTreeMap::from([("address".to_owned(), "198.51.100.1".to_owned())]);
        let elsewhere: BTreeMap<_, _> =
            method.parameters.clone().into_iter().chain(address).collect();
        let refused =
            decide(&manifest.name, &manifest, &elsewhere, unguarded(&plan.grants), &names).await;
        assert!(refused.is_err(), "{provider_id}: {refused:?}");
    }
    // Requests to a region that nobody knows are granted nowhere.
    let nowhere = NodeFacts { provider_id: "aws:///zone/i-1".to_owned(), ..NodeFacts::default() };
    assert_eq!(plan::default_plan(&nowhere).unwrap().grants, []);
}

/// The host proves who asks in no other way than the grant names, whatever the manifest does.
#[tokio::test]
async fn a_grant_names_how_the_host_may_authenticate() {
    let login = json!({
        "scheme": "login", "credential": "account",
        "request": { "method": "POST", "path": "/redfish/v1/Sessions", "basic": true },
        "token": { "header": "X-Auth-Token" }, "send": { "header": "X-Auth-Token" },
    });
    let basic = json!({ "scheme": "basic", "credential": "account" });
    let none = json!({ "scheme": "none" });
    for (asked, granted, refused) in [
        (&basic, json!([]), None),
        (&basic, json!(["login", "basic"]), None),
        (&basic, json!(["login"]), Some("add basic to grants.auth")),
        (&basic, json!(["none"]), Some("add basic to grants.auth")),
        (&basic, json!(["Basic"]), Some("add basic to grants.auth")),
        (&login, json!([]), None),
        (&login, json!(["login"]), None),
        (&login, json!(["basic"]), Some("add login to grants.auth")),
        (&none, json!(["basic"]), None),
    ] {
        let mut manifest = manifest();
        manifest.asks.endpoints[0].auth = serde_json::from_value(asked.clone()).unwrap();
        let grants = [grant(json!({ "cidrs": ["192.0.2.7/32"], "auth": granted }))];
        let parameters = BTreeMap::from([("address".to_owned(), "192.0.2.7".to_owned())]);
        let names = Fixed("192.0.2.9");
        let decided = decide("web", &manifest, &parameters, unguarded(&grants), &names).await;
        match (decided, refused) {
            (Ok(decided), None) => {
                let http = decided.endpoints()["api"].http.as_ref().unwrap();
                assert_eq!(http.auth, manifest.asks.endpoints[0].auth);
            }
            (Err(said), Some(wanted)) => assert!(said.ends_with(wanted), "{said}"),
            (decided, _) => panic!("{asked} by {granted}: {decided:?}"),
        }
    }
}

#[tokio::test]
async fn trust_is_said_once() {
    for tls in [json!({}), json!({ "pins": [PIN], "insecure": true })] {
        let unclear = grant(json!({ "cidrs": ["192.0.2.7/32"], "tls": tls }));
        let refusal = decided("192.0.2.7", &[unclear]).await.unwrap_err();
        assert!(refusal.contains("not exactly one"), "{refusal}");
    }
}

/// Whoever applies an example lets its plugin do what it is there for, and no more than its hosts.
#[tokio::test]
async fn the_examples_of_clouds_grant_what_their_plugins_ask() {
    for (provider_id, example, manifest, hosts) in [
        (
            "aws:///eu-west-1a/i-0123456789abcdef0",
            include_str!("../../../../examples/config/fence-aws.yaml"),
            include_str!("../../../../plugins/aws/manifest.json"),
            vec!["autoscaling.eu-west-1.amazonaws.com", "ec2.eu-west-1.amazonaws.com"],
        ),
        (
            "gce://p/z/n",
            include_str!("../../../../examples/config/fence-gce.yaml"),
            include_str!("../../../../plugins/gce/manifest.json"),
            vec!["compute.googleapis.com", "oauth2.googleapis.com"],
        ),
        (
            "azure:///subscriptions/s",
            include_str!("../../../../examples/config/fence-azure.yaml"),
            include_str!("../../../../plugins/azure/manifest.json"),
            vec!["login.microsoftonline.com", "management.azure.com"],
        ),
    ] {
        let documents = Document::read_all("f.yaml", example).value.unwrap();
        let source = plan::read(&documents[0]).value.unwrap();
        let node = NodeFacts { provider_id: provider_id.to_owned(), ..NodeFacts::default() };
        let plan = source.plan_for(&node, &std::collections::BTreeSet::new()).value.unwrap();
        let method = plan.methods.iter().find(|method| method.plugin.is_some()).unwrap();
        let manifest = Manifest::parse(manifest.as_bytes()).unwrap();
        let parameters = manifest.parameters.fill(&method.parameters).unwrap();
        let names = Fixed("192.0.2.9");
        let decided =
            decide(&manifest.name, &manifest, &parameters, unguarded(&plan.grants), &names)
                .await
                .unwrap();
        let mut reached: Vec<_> =
            decided.endpoints().values().map(|endpoint| endpoint.host.clone()).collect();
        reached.sort();
        assert_eq!(reached, hosts);
        assert_eq!(method.plug, provider_id);
    }
}
