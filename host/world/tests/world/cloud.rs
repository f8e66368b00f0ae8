//! Instances of a cloud are tied to their machines both ways, and may be replaced.

use node_remedy_devices::ec2::{Answer, Request};
use node_remedy_world::World;
use node_remedy_world::api::{Key, Kind};
use node_remedy_world::facts::Power;
use node_remedy_world::scenario::START;
use node_remedy_world::time::after;

use crate::stage::{first, parse, run, seconds, timeline};

/// Three instances, one of which replaces another, with what is to happen.
fn scenario(faults: &str) -> node_remedy_world::Scenario {
    parse(&format!(
        "title: test
duration: 10m
nodes:
- {{ name: node-a, cloud: {{ zone: us-west-2b, stopTakes: 8s, startTakes: 6s }}, bootTime: 20s }}
- {{ name: node-b, providerID: aws:///eu-west-1a/i-0123456789abcdef0, cloud: {{}} }}
- {{ name: node-c, cloud: {{ replaces: node-a }}, bootTime: 20s }}
workloads:
  statefulSets:
  - {{ name: db, replicas: 2, toleration: 10s, parallel: true }}
expect: [{{ fact: podCreated }}]
faults:
{faults}"
    ))
}

#[test]
fn an_instance_has_the_providers_id_and_no_bmc() {
    let mut world = World::new(&scenario("- { at: 9m, cordon: node-b }"));
    world.advance(after(START, seconds(5)));
    let mut named = |node: &str| {
        let node = world.api().peek(&Key::cluster(Kind::Node, node))?;
        Some(node["spec"]["providerID"].as_str()?.to_owned())
    };
    assert_eq!(named("node-b").as_deref(), Some("aws:///eu-west-1a/i-0123456789abcdef0"));
    assert!(named("node-a").unwrap().starts_with("aws:///us-west-2b/i-"));
    assert_eq!(named("node-c"), None, "it is not there yet");
    assert_eq!((world.bmc_address("node-a"), world.power("node-c")), (None, Some(Power::Off)));
}

#[test]
fn the_api_listens_under_its_public_names_only() {
    let mut world = World::new(&scenario("- { at: 9m, cordon: node-b }"));
    assert_eq!(world.resolve("example.com"), None);
    let address = world.resolve("ec2.us-west-2.amazonaws.com").unwrap();
    let request = Request { method: "POST", target: "/", headers: &[], body: b"Action=Whatever" };
    let now = after(START, seconds(1));
    let reply = world.http((address, 443).into(), "me", &request, now).unwrap();
    let Answer::Response { status, body } = reply.answer else { panic!("{reply:?}") };
    assert_eq!(status, 400);
    assert!(String::from_utf8(body).unwrap().contains("<Code>InvalidAction</Code>"));
    assert_eq!(world.http((address, 80).into(), "me", &request, now), None);
    let mut bare = World::new(&crate::stage::scenario("- { at: 9m, cordon: node-c }"));
    assert_eq!(bare.resolve("ec2.us-west-2.amazonaws.com"), None);
    assert_eq!(bare.http((address, 443).into(), "me", &request, now), None);
}

/// What is stopping still runs, and so do its pods.
#[test]
fn power_follows_the_instance() {
    let world = run(&scenario(
        "- { at: 60s, powerOffByHand: node-a }\n- { at: 120s, powerOnByHand: node-a }",
    ));
    let at = |from, sentence| first(&world, from, sentence);
    assert_eq!(at(0.0, "node-a: power off by hand"), Some(68.0));
    let ended = "no longer written by default/db-0 on node-a";
    assert_eq!(at(60.0, ended), Some(68.0), "{}", timeline(&world));
    assert_eq!(at(0.0, "node-a: power on by hand"), Some(126.0));
    assert_eq!(at(0.0, "node-a: the kubelet started"), Some(146.0));
}

#[test]
fn what_is_terminated_is_gone_and_its_group_launches_another() {
    let world = run(&scenario("- { at: 60s, instanceTerminated: node-a }"));
    let at = |sentence| first(&world, 0.0, sentence);
    assert_eq!(at("node-a: power off by the device itself"), Some(65.0));
    assert_eq!(at("node-c: power on by the device itself"), Some(66.0));
    let gone = at("node-a: Node deleted (cloud-node-lifecycle-controller)").unwrap();
    assert!(gone > at("node-a: Ready Unknown").unwrap(), "{}", timeline(&world));
    assert!(at("node-c: Ready True").is_some());
    assert!(world.is_calm(seconds(60)), "what is gone for good does not count");
}

/// Nothing is deleted while the kubelet says that it is ready.
#[test]
fn a_fault_of_the_cloud_does_nothing_to_the_machine() {
    let world = run(&scenario(
        "- { at: 60s, cloudFault: { node: node-a, fault: stuck } }\n\
         - { at: 70s, powerOffByHand: node-a }\n\
         - { at: 300s, cloudFault: { node: node-a, fault: stuck, value: 0 } }",
    ));
    assert_eq!(first(&world, 0.0, "node-a: power off by hand"), Some(300.0));
    assert_eq!(first(&world, 0.0, "Node deleted"), None);
}
