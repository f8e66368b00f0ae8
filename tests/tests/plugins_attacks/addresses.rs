//! Attacks 1–8, 10–16, 20–22, 64: addresses that must not be reached, in every spelling. Whoever sits there
//! listens, and counts; each is shown to count by a visitor of the test's own.

use std::collections::BTreeSet;

use anyhow::{Context as _, Error, Result, ensure};
use node_remedy_api::document::Document;
use node_remedy_api::plan::{self, NodeFacts};
use node_remedy_sandbox::{AdminGrant, Ended};
use serde_json::json;

use super::alone::alone;
use super::canary;
use super::host::{Case, Host, Try, attempt, case, fleet, wide};
use super::victims::{Device, Resolver, Server};

/// An address that a parameter names and nobody may reach.
struct Forbidden<'a> {
    number: u8,
    part: &'a str,
    attack: &'a str,
    how: &'a str,
    grant: AdminGrant,
    urls: &'a [&'a str],
    victims: &'a [&'a str],
    reason: &'a str,
}

const OWN: &str = "http://10.9.0.7/";
const MAPPED: &[&str] = &["http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]/"];
const DISGUISED: &[&str] = &[
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::169.254.169.254]/",
    "http://[2002:a9fe:a9fe::1]/",
    "http://[::169.254.169.254]/",
    "http://[::ffff:0:169.254.169.254]/",
    "http://[2001:0:53aa:64c:0:0:5601:5601]/",
];
const DISGUISES: &[&str] =
    &["[64:ff9b::a9fe:a9fe]:80", "[2002:a9fe:a9fe::1]:80", "169.254.169.254:80"];
const LITERALS: &[&str] = &[
    "http://0x7f.0.0.1/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://0xa9fea9fe/",
    "http://169.254.43518/",
];
const CONFUSING: &[&str] = &[
    "http://10.9.0.7@169.254.169.254/",
    "http://169.254.169.254\\@10.9.0.7/",
    "http://10.9.0.7:80@169.254.169.254/",
    "http://169.254.169.254#@10.9.0.7/",
    "http://169.254.169.254?@10.9.0.7/",
    "http://10.9.0.7 169.254.169.254/",
    "http://[10.9.0.7]/",
    "//169.254.169.254/",
    "file:///etc/passwd",
];
const NAMES: &[&str] =
    &["http://bmc.example./", "http://bmç.example/", "http://bmc。example/", "http://①②⑦.0.0.1/"];

fn forbidden() -> [Forbidden<'static>; 15] {
    let one = |number, attack, urls, victims, reason| Forbidden {
        number,
        part: "",
        attack,
        how: "an address in a parameter, under a grant of 0.0.0.0/0 and ::/0",
        grant: wide(),
        urls,
        victims,
        reason,
    };
    [
        one(
            1,
            "IMDS 169.254.169.254",
            &["http://169.254.169.254/latest/meta-data/iam/", "http://169.254.169.254/"],
            &["169.254.169.254:80"],
            "a cloud's metadata service",
        ),
        one(
            2,
            "IMDS fd00:ec2::254",
            &["http://[fd00:ec2::254]/", "http://[fd00:ec2::23]/", "http://[fd20:ce::254]/"],
            &["[fd00:ec2::254]:80", "[fd00:ec2::23]:80", "[fd20:ce::254]:80"],
            "a cloud's metadata service",
        ),
        one(
            3,
            "loopback, kubelet 10250",
            &["http://127.0.0.1:10250/pods", "http://127.8.8.8:10250/"],
            &["127.0.0.1:10250", "127.8.8.8:10250"],
            "a loopback address",
        ),
        one(4, "::1", &["http://[::1]:10250/"], &["[::1]:10250"], "a loopback address"),
        one(
            5,
            "kubernetes.default.svc",
            &["http://kubernetes.default.svc/api"],
            &["10.96.0.1:80"],
            "this cluster's own",
        ),
        Forbidden {
            part: "a",
            how: "pods and services in a parameter, under a grant for devices",
            grant: fleet(),
            ..one(
                6,
                "pod and service CIDR",
                &["http://10.244.0.9/", "http://10.96.0.9/"],
                &["10.244.0.9:80", "10.96.0.9:80"],
                "which no granted range holds",
            )
        },
        Forbidden {
            part: "b",
            ..one(
                6,
                "our own pod and the API server",
                &["http://10.244.0.5/", "http://10.96.0.1/"],
                &["10.244.0.5:80", "10.96.0.1:80"],
                "this cluster's own",
            )
        },
        Forbidden {
            how: "the device's own host with a port that is not granted",
            grant: fleet(),
            ..one(
                8,
                "right host, wrong port",
                &["http://10.9.0.7:22/", "http://10.9.0.7:8080/"],
                &["10.9.0.7:22", "10.9.0.7:8080"],
                "which is not granted",
            )
        },
        one(11, "mixed A records", &["http://mixed.example/"], &["169.254.169.254:80"], "metadata"),
        one(12, "::ffff:169.254.169.254", MAPPED, &["169.254.169.254:80"], "metadata"),
        one(13, "NAT64, 6to4, IPv4-compatible, Teredo", DISGUISED, DISGUISES, "metadata"),
        one(
            14,
            "literals in hex, octal, decimal",
            LITERALS,
            &["127.0.0.1:80", "169.254.169.254:80"],
            "expected an IPv4 address",
        ),
        one(
            15,
            "0.0.0.0",
            &["http://0.0.0.0/", "http://[::]/", "http://0.1.2.3/"],
            &["127.0.0.1:80", "[::1]:80"],
            "the unspecified address",
        ),
        Forbidden {
            how: "the device's own address in forms of IPv6, under a grant of its IPv4 network",
            grant: fleet(),
            ..one(
                69,
                "IPv4 dialled as 6to4, Teredo",
                &[
                    "http://[2002:a09:7::1]/",
                    "http://[::10.9.0.7]/",
                    "http://[2001:0:53aa:64c::f5f6:fff8]/",
                ],
                &["[2002:a09:7::1]:80"],
                "in IPv6 that may lead elsewhere",
            )
        },
        one(16, "userinfo, backslash, @", CONFUSING, &["169.254.169.254:80"], "expected"),
    ]
}

#[test]
fn no_address_that_is_not_granted_is_reached() -> Result<()> {
    alone("addresses::no_address_that_is_not_granted_is_reached", async || {
        let _resolver = Resolver::start().await?;
        let host = Host::start().await?;
        let device = Server::well("10.9.0.7:80").await?;
        for forbidden in &forbidden() {
            is_not_reached(&host, forbidden, &device).await?;
        }
        another_nodes_device(&host).await?;
        names_that_are_no_plain_names(&host).await?;
        many_at_once(&host).await?;
        ports_and_doors(&host).await?;
        a_nodes_own_word(&host).await?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

#[test]
fn a_name_is_looked_up_once_and_its_address_kept() -> Result<()> {
    alone("addresses::a_name_is_looked_up_once_and_its_address_kept", async || {
        let resolver = Resolver::start().await?;
        let host = Host::start().await?;
        let device = Server::well("10.9.0.7:80").await?;
        let victim = Server::victim("169.254.169.254:80").await?;
        let how = "a name with TTL 0: its first answer the device, its second 169.254.169.254";
        let again = |name: &str| attempt("fetch-again-and-again").number(20).with("url", name);
        host.attack(
            case(10, "DNS rebinding", how),
            async || {
                // The name's first answer is granted; a call asks twenty times, and for no name.
                let rebind = again("http://rebind.example/");
                host.says(&rebind, Ended::Returned, "20 answers").await?;
                let lookups =
                    resolver.asked().iter().filter(|name| *name == "rebind.example").count();
                ensure!(lookups == 1, "it was looked up {lookups} times");
                ensure!(device.connections() == 20, "{} requests", device.connections());
                // The next call is decided anew.
                let said = host.says(&rebind, Ended::Returned, "metadata").await?;
                victim.nobody_came("169.254.169.254:80").await?;
                let why = said.rsplit("found ").next().unwrap_or_default();
                Ok(format!("20 requests, one look-up; the next call: {why}"))
            },
            async || host.says(&again("http://bmc.example/"), Ended::Returned, "20 answers").await,
        )
        .await?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

fn get(url: &str) -> Try {
    attempt("fetch").with("url", url)
}

/// Every spelling is refused with its reason, nobody at any of the addresses hears of it, and the twin
/// reaches the device under the same grant.
async fn is_not_reached(host: &Host, forbidden: &Forbidden<'_>, device: &Server) -> Result<()> {
    let Forbidden { number, part, attack, how, grant, urls, victims, reason } = forbidden;
    let attack_made = async || {
        let mut listening = Vec::new();
        for at in *victims {
            listening.push((at, Server::victim(at).await?));
        }
        let mut first = None;
        for url in *urls {
            let try_it = get(url).under(grant.clone());
            let said = host.says(&try_it, Ended::Returned, "refused: denied: ").await?;
            ensure!(said.contains(reason), "{url}: {said}, expected {reason:?}");
            first.get_or_insert(said);
        }
        for (at, victim) in &listening {
            victim.nobody_came(at).await?;
        }
        Ok(first.unwrap_or_default())
    };
    let before = device.connections();
    let twin = async || {
        let url = if *number == 11 { "http://bmc.example/" } else { OWN };
        let said = host.says(&get(url).under(grant.clone()), Ended::Returned, "[on]").await?;
        ensure!(device.connections() == before + 1, "the device was not asked");
        Ok(format!("{url}: {said}"))
    };
    host.attack(Case { number: *number, part, attack, how }, attack_made, twin).await
}

async fn another_nodes_device(host: &Host) -> Result<()> {
    let other = Server::victim("10.9.0.8:80").await?;
    let how = "10.9.0.8 in path, headers and endpoint names, where 10.9.0.7 is this node's";
    let own = || get(OWN).under(fleet());
    let tries = [
        own().with("path", "http://10.9.0.8/power"),
        own().with("path", "//10.9.0.8/power"),
        own().with("path", "@10.9.0.8/power"),
        own().with("headers", "Host=10.9.0.8"),
        own().with("headers", "X-Forwarded-Host=10.9.0.8|Host=10.9.0.8:80"),
        own().with("endpoint", "http://10.9.0.8/"),
        own().with("endpoint", "10.9.0.8"),
    ];
    host.attack(
        case(7, "another node's BMC", how),
        async || {
            let mut said = String::new();
            for one in &tries {
                said = host.says(one, Ended::Returned, "refused: denied").await?;
            }
            other.nobody_came("10.9.0.8:80").await?;
            Ok(said)
        },
        async || host.says(&own(), Ended::Returned, "[on]").await,
    )
    .await
}

async fn names_that_are_no_plain_names(host: &Host) -> Result<()> {
    let how = "names with a dot at the end, letters beyond ASCII, full-width digits";
    host.attack(
        case(20, "IDN and trailing dot", how),
        async || {
            let mut said = String::new();
            for name in NAMES {
                said = host.says(&get(name), Ended::Returned, "expected an IPv4").await?;
            }
            Ok(said)
        },
        // Written as it travels, a name of any language is a name.
        async || host.says(&get("http://xn--bmc-oua.example/"), Ended::Returned, "[on]").await,
    )
    .await
}

async fn many_at_once(host: &Host) -> Result<()> {
    let device = Device::start("10.9.0.7:623").await?;
    let datagram = |address: &str| attempt("datagram").with("address", address);
    let how = "255.255.255.255, 224.0.0.1, ff02::1, and the granted net's own broadcast address";
    host.attack(
        case(21, "broadcast and multicast UDP", how),
        async || {
            let mut said = String::new();
            for (address, reason) in [
                ("255.255.255.255", "a broadcast address"),
                ("224.0.0.1", "a multicast address"),
                ("[ff02::1]:623", "a multicast address"),
            ] {
                said = host.says(&datagram(address), Ended::Returned, reason).await?;
            }
            // Which address that is only the kernel knows, and it wants to be told that it is meant.
            let net = datagram("10.9.255.255");
            host.says(&net, Ended::Returned, "refused: other").await?;
            ensure!(device.heard().is_empty(), "heard {:?}", device.heard());
            Ok(said)
        },
        async || host.says(&datagram("10.9.0.7"), Ended::Returned, "outcome on").await,
    )
    .await
}

async fn ports_and_doors(host: &Host) -> Result<()> {
    let device = Device::start("10.9.0.7:623").await?;
    let victims = ["10.9.0.7:22", "10.9.0.8:80", "127.0.0.1:80"];
    let how = "12,600 names of machines and ports, over UDP, TCP and HTTP, beside a granted device";
    let address = "10.9.0.7";
    host.attack(
        case(22, "port scan", how),
        async || {
            let mut listening = Vec::new();
            for at in victims {
                listening.push((at, Server::victim(at).await?));
            }
            let scan = attempt("guess-endpoints").with("address", address);
            let said = host.says(&scan, Ended::Returned, "0 of 12600 doors").await?;
            for (at, victim) in &listening {
                victim.nobody_came(at).await?;
            }
            ensure!(device.heard().is_empty(), "heard {:?}", device.heard());
            Ok(said)
        },
        async || {
            let own = attempt("datagram").with("address", address);
            host.says(&own, Ended::Returned, "outcome on").await
        },
    )
    .await
}

/// The address of a method's device, taken from what the node's own kubelet may write.
const OWN_WORD: &str = "${node.annotations['example.com/bmc']}";

/// What a plan for the node grants to its method, whose address is this text, in each form of configuration.
fn plans(address: &str, node: &NodeFacts) -> Result<Vec<Result<AdminGrant, String>>> {
    let own = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fence-config-w1"},
        "data": {
            "config.properties": "node_name=w1\npower_management=bmc",
            "fence-method-bmc": format!("agent_name=fence_ipmilan\nipaddr={address}\nsecret=bmc"),
        },
    });
    let selecting = json!({
        "apiVersion": "node-remedy.io/v1alpha1", "kind": "FenceConfiguration", "metadata": {"name": "bmc"},
        "spec": {
            "nodeSelector": "rack",
            "methods": [{
                "name": "bmc", "plugin": "ipmi", "action": "reboot", "parameters": {"address": address},
            }],
            "powerManagement": [{"name": "power", "methods": ["bmc"]}],
            "grants": [{"plugin": "ipmi", "cidrs": ["127.0.0.1/32", "10.9.0.7/32"]}],
        },
    });
    let config_maps = plan::read_config_maps(&[Document::from_object(&own)]);
    let sources = config_maps.into_iter().map(|one| one.reading);
    let mut granted = Vec::new();
    for source in sources.chain([plan::read(&Document::from_object(&selecting))]) {
        let Some(source) = source.value else {
            granted.push(Err(source.problems.to_string()));
            continue;
        };
        let plan = source.plan_for(node, &BTreeSet::new());
        let plan = plan.value.with_context(|| plan.problems.to_string())?;
        let cidrs = plan.grants.iter().flat_map(|grant| &grant.allows.cidrs);
        let cidrs = cidrs.map(|cidr| Ok(cidr.parse()?)).collect::<Result<_>>()?;
        granted.push(Ok(AdminGrant { cidrs, ..fleet() }));
    }
    Ok(granted)
}

async fn a_nodes_own_word(host: &Host) -> Result<()> {
    let device = Device::start("10.9.0.7:623").await?;
    let thief = Device::start("127.0.0.1:623").await?;
    let annotations =
        [("example.com/bmc".to_owned(), "127.0.0.1".to_owned())].into_iter().collect();
    let node = NodeFacts { name: "w1".to_owned(), annotations, ..NodeFacts::default() };
    let how = "its annotation says 127.0.0.1, and its address is taken from there";
    let ask = |address: &str, grant| attempt("datagram").with("address", address).under(grant);
    host.attack(
        case(64, "a node names its own BMC", how),
        async || {
            let mut said = String::new();
            for plan in plans(OWN_WORD, &node)? {
                match plan {
                    Ok(grant) => said = host.honest(&ask("127.0.0.1", grant)).await?,
                    Err(why) => said = why,
                }
                ensure!(said.contains("which the node itself can write"), "{said}");
            }
            ensure!(thief.heard().is_empty(), "heard {:?}", thief.heard());
            Ok(said)
        },
        async || {
            let mut said = String::new();
            for plan in plans("10.9.0.7", &node)? {
                let grant = plan.map_err(Error::msg)?;
                said = host.says(&ask("10.9.0.7", grant), Ended::Returned, "outcome on").await?;
            }
            ensure!(device.heard().len() > 1, "the device was not asked");
            Ok(said)
        },
    )
    .await
}
