//! Reading what machines hang on: PDUs with outlets, switches with ports, and who hangs where.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use node_remedy_devices::snmp::{Faults, Model};
use serde_saphyr::Location;

use super::raw::{RawNode, RawPdu, RawSwitch, Text};
use crate::scenario::names::is_object_name;
use crate::scenario::reader::Reader;
use crate::scenario::spec::{DeviceSpec, PlugSpec};

/// Devices have the addresses after this one, PDUs first, in their order: a network that is kept
/// free for examples.
const FIRST_DEVICE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 0);
/// The port of SNMP.
const SNMP_PORT: u16 = 161;
/// Outlets of a PDU where nothing is said, and ports of a switch.
const OUTLETS: u32 = 24;
const PORTS: u32 = 48;
/// The most plugs of a device: more than any chassis has.
const PLUGS_MAX: u32 = 1_024;
/// The community of a device where nothing is said.
const COMMUNITY: &str = "simulated";

/// What is said of a device of either kind.
#[derive(Clone, Copy)]
struct DeviceDraft<'a> {
    path: &'static str,
    name: &'a Text,
    address: Option<&'a Text>,
    community: Option<&'a String>,
    faults: &'a std::collections::BTreeMap<String, serde_saphyr::Spanned<u32>>,
    plugs: (u32, Location),
}

impl Reader {
    pub(super) fn devices(&mut self, pdus: &[RawPdu], switches: &[RawSwitch]) -> Vec<DeviceSpec> {
        let mut devices = Vec::new();
        for raw in pdus {
            let model = raw.make.as_ref().map_or(Some(Model::ApcRpdu2), |make| self.make(make));
            let plugs = raw.outlets.as_ref().map(|said| (said.value, said.referenced));
            let said = DeviceDraft {
                path: "pdus",
                name: &raw.name,
                address: raw.address.as_ref(),
                community: raw.community.as_ref(),
                faults: &raw.faults,
                plugs: plugs.unwrap_or((OUTLETS, Location::UNKNOWN)),
            };
            self.device(said, model.unwrap_or(Model::ApcRpdu2), &mut devices);
        }
        for raw in switches {
            let plugs = raw.ports.as_ref().map(|said| (said.value, said.referenced));
            let said = DeviceDraft {
                path: "switches",
                name: &raw.name,
                address: raw.address.as_ref(),
                community: raw.community.as_ref(),
                faults: &raw.faults,
                plugs: plugs.unwrap_or((PORTS, Location::UNKNOWN)),
            };
            self.device(said, Model::Switch, &mut devices);
        }
        devices
    }

    fn make(&mut self, said: &Text) -> Option<Model> {
        let pdus = || Model::ALL.iter().filter(|(_, model)| *model != Model::Switch);
        let found = pdus().find(|(name, _)| *name == said.value);
        if found.is_none() {
            let names: Vec<&str> = pdus().map(|(name, _)| *name).collect();
            let (found, names) = (&said.value, names.join(", "));
            let what = format!("pdus.make: found {found:?}, expected one of {names}");
            self.wrong(said.referenced, what);
        }
        found.map(|(_, model)| *model)
    }

    fn device(&mut self, said: DeviceDraft<'_>, model: Model, devices: &mut Vec<DeviceSpec>) {
        let DeviceDraft { path, name, .. } = said;
        if !is_object_name(&name.value) {
            self.not_a_name(&format!("{path}.name"), name);
        }
        if devices.iter().any(|one| one.name == name.value) {
            let found = &name.value;
            let what = format!("{path}.name: found {found:?} twice, expected distinct names");
            self.wrong(name.referenced, what);
        }
        let (plugs, at) = said.plugs;
        if !(1..=PLUGS_MAX).contains(&plugs) {
            let word = if model == Model::Switch { "ports" } else { "outlets" };
            self.wrong(at, format!("{path}.{word}: found {plugs}, expected 1 to {PLUGS_MAX}"));
        }
        let mut faults = Vec::new();
        for (fault, value) in said.faults {
            if Faults::default().set(fault, value.value).is_err() {
                self.no_such_device_fault(&format!("{path}.faults"), fault, value.referenced);
            }
            faults.push((fault.clone(), value.value));
        }
        let number = u32::try_from(devices.len()).unwrap_or(u32::MAX).saturating_add(1);
        let own = Ipv4Addr::from_bits(FIRST_DEVICE.to_bits().saturating_add(number));
        let address = said.address.map_or(IpAddr::V4(own), |text| {
            text.value.parse().unwrap_or_else(|_| {
                let found = &text.value;
                let what = format!("{path}.address: found {found:?}, expected an IP address");
                self.wrong(text.referenced, what);
                IpAddr::V4(own)
            })
        });
        let address = SocketAddr::new(address, SNMP_PORT);
        if devices.iter().any(|one| one.address == address) {
            let what = format!("{path}.address: {} is another device's", address.ip());
            self.wrong(said.address.map_or(name.referenced, |text| text.referenced), what);
        }
        devices.push(DeviceSpec {
            name: name.value.clone(),
            model,
            plugs: plugs.min(PLUGS_MAX),
            address,
            community: said.community.cloned().unwrap_or_else(|| COMMUNITY.to_owned()),
            faults,
        });
    }

    /// What the machine of this number of a group, from 0, hangs on: its feeds, and its port.
    pub(super) fn plugs(
        &mut self,
        raw: &RawNode,
        number: usize,
        devices: &[DeviceSpec],
    ) -> (Vec<PlugSpec>, Option<PlugSpec>) {
        let feeds = raw.feeds.iter();
        let feeds = feeds.filter_map(|said| self.plug("nodes.feeds", said, number, devices));
        let feeds: Vec<PlugSpec> = feeds.collect();
        let port = raw.port.as_ref();
        let port = port.and_then(|said| self.plug("nodes.port", said, number, devices));
        (feeds, port)
    }

    /// `DEVICE/NUMBER`, of a device and a plug that there are.
    pub(super) fn plug(
        &mut self,
        path: &str,
        said: &Text,
        number: usize,
        devices: &[DeviceSpec],
    ) -> Option<PlugSpec> {
        let found = &said.value;
        let parts = found.split_once('/').and_then(|(name, plug)| {
            let plug: u32 = plug.parse().ok()?;
            Some((name, plug.saturating_add(u32::try_from(number).ok()?)))
        });
        let Some((name, plug)) = parts else {
            let what = format!("{path}: found {found:?}, expected DEVICE/NUMBER");
            self.wrong(said.referenced, what);
            return None;
        };
        let suits = |one: &&DeviceSpec| match path {
            "nodes.feeds" => one.model != Model::Switch,
            "nodes.port" => one.model == Model::Switch,
            _ => true,
        };
        let Some(device) = devices.iter().filter(suits).find(|one| one.name == name) else {
            let kind = match path {
                "nodes.feeds" => "a PDU",
                "nodes.port" => "a switch",
                _ => "a PDU or switch",
            };
            let what = format!("{path}: found {name:?}, expected {kind} of this scenario");
            self.wrong(said.referenced, what);
            return None;
        };
        if !(1..=device.plugs).contains(&plug) {
            let what = format!("{path}: found {plug}, {name} has 1 to {}", device.plugs);
            self.wrong(said.referenced, what);
            return None;
        }
        Some(PlugSpec { device: name.to_owned(), number: plug })
    }

    pub(super) fn no_such_device_fault(&mut self, path: &str, found: &str, at: Location) {
        let names = Faults::names().collect::<Vec<_>>().join(", ");
        self.wrong(at, format!("{path}: found {found:?}, expected one of {names}"));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::scenario::spec::Scenario;

    const GOOD: &str = "title: t
duration: 1m
pdus: [{ name: pdu-a, outlets: 4 }, { name: pdu-b, make: eaton, faults: { stale: 900 } }]
switches: [{ name: leaf }]
nodes:
- { name: one, feeds: [pdu-a/1, pdu-b/1], port: leaf/3 }
- { name: two, count: 2, feeds: [pdu-a/3] }
faults:
- { at: 9s, deviceFault: { device: leaf, fault: stuck } }
- { at: 9s, plugOffByHand: pdu-b/7 }
expect: [{ fact: podCreated }]";

    fn read(text: &str) -> Result<Scenario, String> {
        let read = Scenario::parse("s.yaml", text, &|name| Err(format!("no file {name}")));
        read.map_err(|errors| errors.to_string())
    }

    #[test]
    fn machines_of_a_group_hang_on_plugs_in_a_row() {
        let scenario = read(GOOD).unwrap();
        let feeds = |node: usize| {
            let feeds = scenario.nodes[node].feeds.iter();
            feeds.map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(feeds(0), ["pdu-a/1", "pdu-b/1"]);
        assert_eq!((feeds(1), feeds(2)), (vec!["pdu-a/3".into()], vec!["pdu-a/4".into()]));
        let addresses = scenario.devices.iter().map(|device| device.address.to_string());
        let expected = ["198.51.100.1:161", "198.51.100.2:161", "198.51.100.3:161"];
        assert_eq!(addresses.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn mistakes_about_plugs_are_named_with_their_place() {
        let rows = [
            (
                "make: eaton",
                "make: acme",
                expect![[
                    r#"s.yaml:3:58: pdus.make: found "acme", expected one of apc, apc-rpdu, eaton"#
                ]],
            ),
            (
                "outlets: 4",
                "outlets: 0",
                expect![[r"
                s.yaml:3:32: pdus.outlets: found 0, expected 1 to 1024
                s.yaml:6:24: nodes.feeds: found 1, pdu-a has 1 to 0
                s.yaml:7:34: nodes.feeds: found 3, pdu-a has 1 to 0
                s.yaml:7:34: nodes.feeds: found 4, pdu-a has 1 to 0"]],
            ),
            (
                "stale: 900",
                "stalle: 900",
                expect![[
                    r#"s.yaml:3:83: pdus.faults: found "stalle", expected one of drop, delay, dup, silent, dead, no_input, community, set_status, wrong_id, wrong_oid, stuck, off_after, reply_lost, flip_back, stale, says_off, tables_differ, truncate, none"#
                ]],
            ),
            (
                "name: leaf }",
                "name: pdu-a }",
                expect![[r#"
                s.yaml:4:20: switches.name: found "pdu-a" twice, expected distinct names
                s.yaml:6:49: nodes.port: found "leaf", expected a switch of this scenario
                s.yaml:9:36: faults.deviceFault.device: found "leaf", expected a PDU or switch of this scenario"#]],
            ),
            (
                "name: leaf }",
                "name: leaf, address: 198.51.100.1 }",
                expect!["s.yaml:4:35: switches.address: 198.51.100.1 is another device's"],
            ),
            (
                "name: leaf }",
                "name: leaf, address: here }",
                expect![[r#"s.yaml:4:35: switches.address: found "here", expected an IP address"#]],
            ),
            (
                "pdu-b/1",
                "pdu-b",
                expect![[r#"s.yaml:6:33: nodes.feeds: found "pdu-b", expected DEVICE/NUMBER"#]],
            ),
            (
                "pdu-b/1",
                "leaf/1",
                expect![[
                    r#"s.yaml:6:33: nodes.feeds: found "leaf", expected a PDU of this scenario"#
                ]],
            ),
            ("leaf/3", "leaf/49", expect!["s.yaml:6:49: nodes.port: found 49, leaf has 1 to 48"]),
            (
                "[pdu-a/3]",
                "[pdu-a/1]",
                expect!["s.yaml:7:11: nodes: found pdu-a/1 twice, expected a plug each"],
            ),
            (
                "device: leaf",
                "device: stem",
                expect![[
                    r#"s.yaml:9:36: faults.deviceFault.device: found "stem", expected a PDU or switch of this scenario"#
                ]],
            ),
            (
                "stuck",
                "stock",
                expect![[
                    r#"s.yaml:9:49: faults.deviceFault.fault: found "stock", expected one of drop, delay, dup, silent, dead, no_input, community, set_status, wrong_id, wrong_oid, stuck, off_after, reply_lost, flip_back, stale, says_off, tables_differ, truncate, none"#
                ]],
            ),
            (
                "pdu-b/7",
                "pdu-b/70",
                expect!["s.yaml:10:28: faults.plugOffByHand: found 70, pdu-b has 1 to 24"],
            ),
        ];
        for (good, bad, expected) in rows {
            assert!(GOOD.contains(good), "{good}");
            expected.assert_eq(&read(&GOOD.replacen(good, bad, 1)).unwrap_err());
        }
    }
}
