//! BMCs answer at their addresses and are tied to their machines both ways.

use node_remedy_world::facts::Power;
use node_remedy_world::scenario::START;
use node_remedy_world::time::after;
use node_remedy_world::{Peer, World};

use crate::stage::{first, parse, scenario, seconds};

/// An RMCP presence ping (ASF), the smallest thing that a BMC answers.
const PING: [u8; 12] = [6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, 0x2a, 0, 0];

const ME: Peer<'_> = Peer { process: "me", line: 1 };

#[test]
fn a_bmc_answers_where_its_node_says_and_nobody_elsewhere() {
    let mut world = World::new(&scenario("- { at: 9m, cordon: node-c }"));
    let address = world.bmc_address("node-b").unwrap();
    assert_eq!(address.to_string(), "192.0.2.2:623");
    let now = after(START, seconds(1));
    let replies = world.datagram(address, ME, &PING, now);
    assert_eq!(replies.len(), 1);
    assert_eq!(replies[0].1[9], 0x2a, "the tag comes back");
    assert_eq!(world.datagram("192.0.2.99:623".parse().unwrap(), ME, &PING, now), []);
    assert_eq!(world.now(), now);
    let key = node_remedy_world::api::Key::cluster(node_remedy_world::api::Kind::Node, "node-b");
    let node = world.api().peek(&key).unwrap();
    let said = &node["metadata"]["annotations"][node_remedy_world::BMC_ADDRESS_ANNOTATION];
    assert_eq!(said, "192.0.2.2");
}

#[test]
fn faults_are_in_force_from_the_start_or_from_when_they_happen() {
    let mut world = World::new(&parse(
        "title: test
duration: 5m
nodes:
- { name: mute, bmc: { faults: { dead: 1 } } }
- { name: later }
- { name: none, bmc: { present: false } }
expect: [{ fact: podCreated }]
faults:
- { at: 60s, bmcFault: { node: later, fault: silent } }
- { at: 120s, bmcFault: { node: later, fault: silent, value: 0 } }",
    ));
    assert_eq!(world.bmc_address("none"), None);
    let mute = world.bmc_address("mute").unwrap();
    let later = world.bmc_address("later").unwrap();
    for (at, of_mute, of_later) in [(30, 0, 1), (90, 0, 0), (150, 0, 1)] {
        let now = after(START, seconds(at));
        assert_eq!(world.datagram(mute, ME, &PING, now).len(), of_mute, "{at}");
        assert_eq!(world.datagram(later, ME, &PING, now).len(), of_later, "{at}");
    }
}

#[test]
fn a_hand_on_the_switch_is_seen_by_machine_and_facts() {
    let mut world = World::new(&scenario("- { at: 60s, powerOffByHand: node-a }"));
    world.advance(after(START, seconds(59)));
    let boot = world.boot("node-a").unwrap().to_owned();
    assert_eq!(world.power("node-a"), Some(Power::On));
    world.advance(after(START, seconds(60)));
    assert_eq!(world.power("node-a"), Some(Power::Off));
    assert_eq!(first(&world, 0.0, "node-a: power off by hand"), Some(60.0));
    assert_eq!(world.boot("node-a"), Some(boot.as_str()), "a new one comes with power on");
    assert!(world.writers("pv-default-db-0").is_empty());
}
