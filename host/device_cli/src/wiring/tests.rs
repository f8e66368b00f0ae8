//! Trials in virtual time, with the shipped plugins, modelled PDUs and a modelled switch.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use node_remedy_act::node_lock;
use node_remedy_api::remedypause::RemedyPause;
use node_remedy_config::wiring::{Wiring, config_map};
use node_remedy_model_cluster::client::ModelCluster;
use node_remedy_model_cluster::driver::{Line, WorldNames};
use node_remedy_runtime::cluster::{At, Scope};
use node_remedy_sandbox::net::MemoryNet;
use node_remedy_sandbox::{Executor, Sandbox, SeededEntropy};
use node_remedy_simulate::testing;
use node_remedy_store::store::Plugins;
use node_remedy_world::facts::{Power, What};
use serde_json::json;

use super::*;

/// What every world here has: two PDUs, a switch, and how nodes hang on them.
const WORLD: &str = "
title: trials
seed: 7
duration: 60m
pdus:
- { name: pdu-a, make: apc, outlets: 8 }
- { name: pdu-b, make: apc, outlets: 8 }
switches:
- { name: switch, ports: 8 }
nodes:
NODES
configuration:
- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: FenceConfiguration
    metadata: { name: outlets }
    spec:
      nodeSelector: outlet
      trustedNodeFields: [\"${node.labels['outlet']}\"]
      templates:
      - name: a
        plugin: apc-pdu
        parameters: { address: 198.51.100.1, version: 2c }
        credentials: [{ name: community, secret: community, identityKey: \"\" }]
      - name: b
        plugin: apc-pdu
        parameters: { address: 198.51.100.2, version: 2c }
        credentials: [{ name: community, secret: community, identityKey: \"\" }]
      - name: switch
        plugin: snmp-switch
        parameters: { address: 198.51.100.3, version: 2c }
        credentials: [{ name: community, secret: community, identityKey: \"\" }]
      methods:
METHODS
      grants:
      - { plugin: apc-pdu, cidrs: [198.51.100.1/32, 198.51.100.2/32], reveal: [community] }
      - { plugin: snmp-switch, cidrs: [198.51.100.3/32], reveal: [community] }
- object:
    apiVersion: v1
    kind: Secret
    metadata: { name: community, namespace: node-remedy }
    stringData: { password: simulated }
faults: [HAPPENS]
expect: [{ fact: nodeCreated, times: 3 }]
";

const EARLIER: Moment = Moment::from_ms(1);

const SOLE: &str = "      - { name: outlet, template: a, plug: \"${node.labels['outlet']}\", action: reboot, soleFeed: true }
      powerManagement: [{ name: power, methods: [outlet] }]";
const BOTH: &str =
    "      - { name: one, template: a, plug: \"${node.labels['outlet']}\", action: reboot }
      - { name: two, template: b, plug: \"${node.labels['outlet']}\", action: reboot }
      powerManagement: [{ name: power, run: all, mustSuccess: true, methods: [one, two] }]";
const PORT: &str = "      - { name: port, template: switch, plug: \"Gi1/0/${node.labels['outlet']}\", action: off }
      isolation: [{ name: network, methods: [port] }]";

/// Three nodes, each with its outlet in a label and fed as it is said here.
fn nodes(feeds: [&str; 3], labels: [u8; 3]) -> String {
    let line = |((name, feeds), label): ((&str, &str), u8)| {
        format!(
            "- {{ name: node-{name}, bootTime: 20s, labels: {{ outlet: \"{label}\" }}, {feeds}, \
             bmc: {{ present: false }} }}\n"
        )
    };
    ["a", "b", "c"].into_iter().zip(feeds).zip(labels).map(line).collect()
}

fn fed_by_one() -> String {
    nodes(["feeds: [pdu-a/1]", "feeds: [pdu-a/2]", "feeds: [pdu-a/3]"], [1, 2, 3])
}

/// What came of the trials of a node's plugs, until one was not this node's.
struct Came {
    findings: Vec<Finding>,
    left_off: Vec<String>,
    /// The plugs that count as verified afterwards.
    verified: Vec<String>,
    /// The machines that lost their power, in order.
    went_dark: Vec<String>,
    is_paused: bool,
    pause_ends: bool,
    /// Whether the node's lock is still held.
    is_locked: bool,
}

/// Tries every plug of `node-a`.
fn came(nodes: &str, methods: &str, happens: &str) -> Came {
    came_with(nodes, methods, happens, |_| ())
}

/// The same, with something done before to what watches the cluster.
fn came_with(
    nodes: &str,
    methods: &str,
    happens: &str,
    change: impl FnOnce(&mut JoinSet<()>),
) -> Came {
    let world =
        WORLD.replace("NODES\n", nodes).replace("METHODS", methods).replace("HAPPENS", happens);
    let told = Rc::new(std::cell::RefCell::new(None));
    let result = told.clone();
    testing::in_world(&world, async |bench| {
        let cluster = bench.client("alice");
        let cordon = json!([{"op": "add", "path": "/spec/unschedulable", "value": true}]);
        let cordon = serde_json::from_value(cordon).unwrap();
        // Its kubelet makes the node a while after the world begins.
        tokio::time::sleep(Duration::from_secs(40)).await;
        cluster.patch::<Node>(At::cluster("node-a"), &cordon).await.unwrap();
        let came = try_all(&bench, cluster, change).await;
        *result.borrow_mut() = Some(came);
    });
    told.take().unwrap()
}

async fn try_all(
    world: &testing::Bench,
    cluster: ModelCluster,
    change: impl FnOnce(&mut JoinSet<()>),
) -> Came {
    let sandbox = Sandbox::new().unwrap();
    let ways = Ways {
        clock: world.clock.clone(),
        plugins: Plugins::new(sandbox),
        executor: Executor::Inline,
        net: Arc::new(MemoryNet::new(Arc::new(Line::new(
            world.shared.clone(),
            "alice".to_owned(),
            1,
        )))),
        entropy: Arc::new(SeededEntropy::new(7)),
        names: Arc::new(WorldNames(world.shared.clone())),
        guarded: Vec::new(),
    };
    let (_stop, stopped) = watch::channel(false);
    let mut watching = JoinSet::new();
    let set_up = Bench::set_up(cluster.clone(), "node-remedy", ways, stopped, &mut watching).await;
    let mut bench = set_up.unwrap();
    change(&mut watching);
    let args = WiringArgs {
        cluster: ClusterArgs { kubeconfig: None, namespace: "node-remedy".to_owned() },
        node: "node-a".to_owned(),
        method: None,
        yes: None,
        allow_pods: false,
        boot_timeout: Span::from_minutes(5),
        output: Output::Text,
    };
    let plan = bench.plan(&bench.node("node-a").unwrap()).unwrap();
    let plugs = plugs::to_try(&plan, None).unwrap();
    // Somebody tried the first one before: what is found now counts instead.
    let first =
        Tried::now(&bench.node("node-a").unwrap().fenced(), &plugs[0].method, &[], EARLIER, "bob");
    record::record(&cluster, "node-remedy", "node-a", &first).await.unwrap();
    let (mut findings, mut left_off) = (Vec::new(), Vec::new());
    for plug in &plugs {
        let node = bench.node("node-a").unwrap();
        refuse(&args, &bench, &plan).await.unwrap();
        let ended = try_one(&args, &mut bench, &node, &plan, plug, "alice").await.unwrap();
        left_off.extend(ended.left_off);
        findings.push(ended.finding);
        if findings.last() != Some(&Finding::Verified) {
            break;
        }
    }
    let node = bench.node("node-a").unwrap();
    let kept = cluster.get::<ConfigMap>(At::within("node-remedy", &config_map("node-a"))).await;
    let data = kept.unwrap().and_then(|one| one.data);
    let wiring = data.map(|data| Wiring::read(&data).unwrap()).unwrap_or_default();
    let is_verified = |plug: &&Plug| wiring.of(&node.fenced(), &plug.method, &plan).is_some();
    let lock = cluster.get::<Lease>(At::within(node_lock::NAMESPACE, "node-node-a")).await;
    let pauses = cluster.list::<RemedyPause>(&Scope::all()).await.unwrap();
    let dark = |what: &What| {
        let What::PowerChanged { node, power: Power::Off, .. } = what else { return None };
        Some(node.clone())
    };
    Came {
        verified: plugs.iter().filter(is_verified).map(|one| one.method.name.clone()).collect(),
        went_dark: world
            .shared
            .read(|world| world.facts().iter().filter_map(|fact| dark(&fact.what)).collect()),
        is_paused: !pauses.items.is_empty(),
        pause_ends: pauses.items.iter().any(|pause| pause.spec.until.is_some()),
        is_locked: lock.unwrap().is_some(),
        findings,
        left_off,
    }
}

fn words_of(all: &[&str]) -> Vec<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}

#[test]
fn a_right_plug_is_verified_by_the_machine_that_boots() {
    let came = came(&fed_by_one(), SOLE, "");
    assert_eq!((came.findings, came.left_off), (vec![Finding::Verified], vec![]));
    assert_eq!((came.verified, came.went_dark), (words_of(&["outlet"]), words_of(&["node-a"])));
    assert!(!came.is_paused && !came.is_locked);
}

#[test]
fn a_plug_of_another_machine_is_found_by_that_one_and_proves_nothing() {
    let crossed = nodes(["feeds: [pdu-a/1]", "feeds: [pdu-a/2]", "feeds: [pdu-a/3]"], [2, 1, 3]);
    let came = came(&crossed, SOLE, "");
    let plug = "outlet (plug 2 of apc-pdu/198.51.100.1)".to_owned();
    let others = Finding::FeedsOthers { plug, nodes: words_of(&["node-b"]) };
    assert_eq!((came.findings, came.left_off), (vec![others], vec![]));
    assert_eq!((came.verified, came.went_dark), (words_of(&[]), words_of(&["node-b"])));
    assert!(!came.is_paused, "the machine is back");
}

#[test]
fn of_two_feeds_each_is_proven_with_the_other_off() {
    let two = nodes(
        ["feeds: [pdu-a/1, pdu-b/1]", "feeds: [pdu-a/2, pdu-b/2]", "feeds: [pdu-a/3]"],
        [1, 2, 3],
    );
    let came = came(&two, BOTH, "");
    assert_eq!(came.findings, [Finding::Verified, Finding::Verified]);
    assert_eq!(came.verified, words_of(&["one", "two"]));
    assert_eq!(came.went_dark, words_of(&["node-a", "node-a"]));
}

/// What a plan does not know of is found, whichever way the cables are wrong.
#[test]
fn a_machine_that_another_feed_carries_is_not_proven() {
    let unknown_third = "feeds: [pdu-a/1, pdu-b/1, pdu-b/5]";
    let second_is_crossed = "feeds: [pdu-a/1, pdu-b/2]";
    for (feeds, neighbours) in
        [(unknown_third, "feeds: [pdu-a/2]"), (second_is_crossed, "feeds: [pdu-a/2, pdu-b/1]")]
    {
        let came = came(&nodes([feeds, neighbours, "feeds: [pdu-a/3]"], [1, 2, 3]), BOTH, "");
        assert_eq!(
            (came.findings, came.left_off),
            (vec![Finding::FeedsNothing], vec![]),
            "{feeds}"
        );
        assert_eq!((came.verified, came.went_dark), (words_of(&[]), words_of(&[])), "{feeds}");
    }
    // The second outlet carries nothing: a cable that was pulled, or a power supply that died.
    let came = came(
        &nodes(["feeds: [pdu-a/1]", "feeds: [pdu-a/2]", "feeds: [pdu-a/3]"], [1, 2, 3]),
        BOTH,
        "",
    );
    assert_eq!(came.findings, [Finding::Verified, Finding::CarriesNothing]);
    assert_eq!(came.verified, words_of(&["one"]));
}

#[test]
fn a_port_is_verified_by_a_node_that_is_silent_and_does_not_boot() {
    let ports = |ports: [u8; 3]| {
        let feeds = ports.map(|port| format!("feeds: [pdu-a/{port}], port: switch/{port}"));
        nodes([&feeds[0], &feeds[1], &feeds[2]], [1, 2, 3])
    };
    let right = came(&ports([1, 2, 3]), PORT, "");
    assert_eq!((right.findings, right.left_off), (vec![Finding::Verified], vec![]));
    assert_eq!((right.verified, right.went_dark), (words_of(&["port"]), words_of(&[])));
    let crossed = came(&ports([3, 2, 1]), PORT, "");
    let [Finding::FeedsOthers { nodes, .. }] = crossed.findings.as_slice() else {
        panic!("{:?}", crossed.findings)
    };
    assert_eq!((nodes, crossed.verified), (&words_of(&["node-c"]), words_of(&[])));
}

#[test]
fn a_plug_that_does_not_obey_proves_nothing_and_what_stays_off_is_told() {
    let stuck = "{ at: 30s, deviceFault: { device: pdu-a, fault: stuck } }";
    let never_off = came(&fed_by_one(), SOLE, stuck);
    let [Finding::NotProven(why)] = never_off.findings.as_slice() else {
        panic!("{:?}", never_off.findings)
    };
    assert!(why.contains("does not read off"), "{why}");
    assert_eq!((never_off.left_off, never_off.went_dark), (vec![], words_of(&[])));
    assert!(!never_off.is_paused);

    let sticks = "{ when: { fact: powerChanged, where: { node: node-a, power: \"off\" } }, \
                  after: 1ms, deviceFault: { device: pdu-a, fault: stuck } }";
    let never_on = came(&fed_by_one(), SOLE, sticks);
    let said = never_on.left_off.concat();
    assert!(said.contains("outlet (plug 1") && said.contains("does not read on"), "{said}");
    assert_eq!(never_on.verified, words_of(&[]), "a machine that is dark is not verified");
    assert!(never_on.is_paused && never_on.is_locked, "nor is it fenced for it");
    assert!(!never_on.pause_ends, "not until a person says so");
}

/// Whoever is told nothing any more hears of nobody: that is no silence.
#[test]
fn a_watch_that_broke_makes_nobody_silent() {
    let came = came_with(&fed_by_one(), SOLE, "", JoinSet::abort_all);
    let [Finding::NotProven(why)] = came.findings.as_slice() else { panic!("{:?}", came.findings) };
    assert!(why.contains("nobody could tell"), "{why}");
    assert_eq!((came.verified, came.went_dark), (words_of(&[]), words_of(&[])));
}
