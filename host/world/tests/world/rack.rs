//! PDUs and switches answer at their addresses and are tied to the machines that hang on them.

use node_remedy_world::api::{Key, Kind};
use node_remedy_world::facts::Power;
use node_remedy_world::scenario::START;
use node_remedy_world::time::after;
use node_remedy_world::{Peer, World};

use crate::stage::{first, parse, run, seconds, timeline};

/// SNMPv2c as net-snmp sends it, community `simulated`: outlet 3 of an APC PDU off.
const OUTLET_3_OFF: &str = "3032020101040973696d756c61746564a322020109020100020100301730150610\
                            2b06010401823e01011a090204010503020102";
/// And: the first port of a switch down.
const PORT_1_DOWN: &str = "302d020101040973696d756c61746564a31d0201090201000201003012301006\
                           0b2b0601020102020107ce11020102";

const ME: Peer<'_> = Peer { process: "me", line: 1 };

/// Two machines on two PDUs and a switch; the second has a BMC, too.
fn rack(faults: &str) -> String {
    format!(
        "title: test
seed: 7
duration: 10m
cluster: {{ nodeMonitorGrace: 16s, nodeMonitorPeriod: 2s }}
pdus:
- {{ name: pdu-a }}
- {{ name: pdu-b, make: eaton }}
switches:
- {{ name: leaf, address: 192.0.2.250 }}
nodes:
- {{ name: node-a, feeds: [pdu-a/3, pdu-b/3], port: leaf/1, bmc: {{ present: false }} }}
- {{ name: node-b, feeds: [pdu-a/4, pdu-b/4], port: leaf/2 }}
- {{ name: node-c }}
workloads:
  statefulSets:
  - {{ name: db, replicas: 1, toleration: 10s }}
expect:
- {{ fact: podCreated }}
faults:
{faults}"
    )
}

fn set(world: &mut World, device: &str, hex: &str, at: u64) -> usize {
    let digits: Vec<char> = hex.chars().collect();
    let byte =
        |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("digits");
    let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
    let address = world.device_address(device).expect("a device");
    world.datagram(address, ME, &bytes, after(START, seconds(at))).len()
}

#[test]
fn a_machine_on_two_outlets_has_power_while_one_is_on() {
    let mut world = World::new(&parse(&rack("- { at: 60s, plugOffByHand: pdu-b/3 }")));
    world.advance(after(START, seconds(61)));
    assert_eq!(world.power("node-a"), Some(Power::On), "{}", timeline(&world));
    assert_eq!(set(&mut world, "pdu-a", OUTLET_3_OFF, 70), 1);
    assert_eq!(world.power("node-a"), Some(Power::On), "a relay takes its time");
    world.advance(after(START, seconds(71)));
    assert_eq!(world.power("node-a"), Some(Power::Off));
    assert_eq!(world.power("node-b"), Some(Power::On));
    for (at, sentence) in [
        (60.0, "node-a: pdu-b/3 off by hand"),
        (70.0, "node-a: pdu-a/3 said yes to off"),
        (70.4, "node-a: pdu-a/3 off by a command"),
        (70.4, "node-a: power off by a command"),
    ] {
        assert_eq!(first(&world, 0.0, sentence), Some(at), "{sentence}: {}", timeline(&world));
    }
}

#[test]
fn nodes_say_which_plugs_they_hang_on_as_the_methods_name_them() {
    let mut world = World::new(&parse(&rack("- { at: 9m, cordon: node-c }")));
    world.advance(after(START, seconds(10)));
    assert_eq!(world.device_address("leaf").unwrap().to_string(), "192.0.2.250:161");
    assert_eq!(world.device_address("pdu-b").unwrap().to_string(), "198.51.100.2:161");
    let node = world.api().peek(&Key::cluster(Kind::Node, "node-b")).unwrap();
    let said = |key: &str| node["metadata"]["annotations"][format!("node-remedy.io/{key}")].clone();
    assert_eq!((said("outlet-a"), said("outlet-b")), ("4".into(), "4".into()));
    assert_eq!((said("switch-port"), said("bmc-address")), ("Gi1/0/2".into(), "192.0.2.2".into()));
}

/// The network is gone, and everything on the machine goes on, its writes to its volume too.
#[test]
fn a_port_that_is_down_takes_the_network_and_stops_no_writer() {
    let mut world = World::new(&parse(&rack(
        "- { at: 90s, networkLost: node-a }\n- { at: 120s, plugOnByHand: leaf/1 }\n- { at: 150s, nodeComesBack: node-a }",
    )));
    assert_eq!(set(&mut world, "leaf", PORT_1_DOWN, 60), 1);
    world.advance(after(START, seconds(89)));
    assert_eq!(first(&world, 0.0, "node-a: the network is gone"), Some(60.4));
    assert!(first(&world, 60.0, "node-a: Ready Unknown").is_some(), "{}", timeline(&world));
    assert_eq!(world.writers("pv-default-db-0").len(), 1);
    world.advance(after(START, seconds(149)));
    assert_eq!(first(&world, 0.0, "node-a: the network is back"), None, "the cable is broken too");
    world.advance(after(START, seconds(150)));
    assert_eq!(first(&world, 0.0, "node-a: the network is back"), Some(150.0));
    assert_eq!(world.power("node-a"), Some(Power::On));
}

/// Without mains a BMC is dead; with them its machine starts, whatever it was.
#[test]
fn mains_that_go_and_come_take_machine_and_bmc_with_them() {
    let world = run(&parse(&rack(
        "- { at: 60s, powerOffByHand: node-b }
- { at: 70s, deviceFault: { device: pdu-a, fault: no_input } }
- { at: 80s, deviceFault: { device: pdu-b, fault: no_input } }
- { at: 90s, powerOnByHand: node-b }
- { at: 100s, deviceFault: { device: pdu-b, fault: none } }",
    )));
    let at = |sentence| first(&world, 0.0, sentence);
    assert_eq!(at("node-b: power off by hand"), Some(60.0));
    assert_eq!(at("node-a: pdu-a/3 off by the device itself"), Some(70.0));
    assert_eq!(at("node-a: power off by the device itself"), Some(80.0));
    assert_eq!(at("node-a: power on by the device itself"), Some(100.0));
    assert_eq!(at("node-b: power on by hand"), None, "nothing is behind the button");
    assert_eq!(at("node-b: power on by the device itself"), Some(100.0));
    assert_eq!(at("node-c: power"), None);
}

/// Who wants a machine on whose outlets are off switches them on.
#[test]
fn a_machine_is_switched_on_by_hand_at_its_outlets() {
    let world = run(&parse(&rack(
        "- { at: 60s, plugOffByHand: pdu-a/3 }
- { at: 60s, plugOffByHand: pdu-b/3 }
- { at: 90s, powerOnByHand: node-a }",
    )));
    let at = |sentence| first(&world, 0.0, sentence);
    assert_eq!(at("node-a: power off by hand"), Some(60.0));
    assert_eq!((at("node-a: pdu-a/3 on"), at("node-a: pdu-b/3 on")), (Some(90.0), Some(90.0)));
    assert_eq!(at("node-a: power on by hand"), Some(90.0));
}
