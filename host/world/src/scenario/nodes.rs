//! Reading the machines of a scenario: groups of nodes, GUIDs, BMCs and what ails them.

use std::time::Duration;

use node_remedy_devices::bmc::{Faults, Suite};
use serde_saphyr::Location;

use super::raw::{RawBmc, RawNode, Text};
use crate::rng::Rng;
use crate::scenario::names::is_object_name;
use crate::scenario::reader::Reader;
use crate::scenario::spec::{BmcSpec, DeviceSpec, NodeSpec};

/// The most machines: what Kubernetes is tested with, three times over.
pub(super) const NODES: usize = 15_000;
/// How long a machine boots where nothing is said. Servers take minutes; a timeline does
/// not want to wait for them.
pub(super) const BOOT_TIME: Duration = Duration::from_secs(45);

impl Reader {
    pub(super) fn nodes(
        &mut self,
        seed: u64,
        raws: &[RawNode],
        at: Location,
        devices: &[DeviceSpec],
    ) -> Vec<NodeSpec> {
        let mut nodes: Vec<NodeSpec> = Vec::new();
        for raw in raws {
            let count = raw.count.as_ref().map_or(1, |count| count.value);
            if let Some(said) = raw.count.as_ref().filter(|said| !(1..=NODES).contains(&said.value))
            {
                let what = format!("nodes.count: found {count}, expected 1 to {NODES}");
                self.wrong(said.referenced, what);
                continue;
            }
            if !is_object_name(&raw.name.value) {
                self.not_a_name("nodes.name", &raw.name);
            }
            let boot_time = match &raw.boot_time {
                Some(text) => self.duration("nodes.bootTime", text),
                None => BOOT_TIME,
            };
            let labels = raw.labels.iter().map(|(key, value)| (key.clone(), value.clone()));
            let labels: Vec<(String, String)> = labels.collect();
            let width = count.to_string().len();
            for number in 1..=count {
                let name = match raw.count {
                    Some(_) => format!("{}-{number:0width$}", raw.name.value),
                    None => raw.name.value.clone(),
                };
                if nodes.iter().any(|node| node.name == name) {
                    let what = format!("nodes.name: found {name:?} twice, expected distinct names");
                    self.wrong(raw.name.referenced, what);
                }
                let guid = self.guid(seed, &name, &raw.bmc);
                let (feeds, port) = self.plugs(raw, number - 1, devices);
                let taken = |plug| nodes.iter().any(|node| node.hangs_on(plug));
                if let Some(plug) = feeds.iter().chain(&port).find(|plug| taken(plug)) {
                    let what = format!("nodes: found {plug} twice, expected a plug each");
                    self.wrong(raw.name.referenced, what);
                }
                let cloud = self.cloud(seed, &name, raw);
                let bmc = self.bmc(&raw.bmc, guid).filter(|_| cloud.is_none());
                let provider_id =
                    cloud.as_ref().map(|cloud| format!("aws:///{}/{}", cloud.zone, cloud.id));
                let uuid = raw.system_uuid.as_ref().map(|uuid| uuid.value.to_lowercase());
                nodes.push(NodeSpec {
                    name,
                    zone: raw.zone.clone(),
                    labels: labels.clone(),
                    provider_id: provider_id.or_else(|| raw.provider_id.clone()),
                    system_uuid: uuid.unwrap_or_else(|| uuid_text(&guid)),
                    boot_time,
                    bmc,
                    feeds,
                    port,
                    cloud,
                });
            }
        }
        self.replacements(raws, &nodes);
        if nodes.is_empty() || nodes.len() > NODES {
            let what = format!("nodes: found {}, expected 1 to {NODES}", nodes.len());
            self.wrong(at, what);
        }
        nodes
    }

    fn guid(&mut self, seed: u64, node: &str, bmc: &RawBmc) -> [u8; 16] {
        let mut drawn = [0; 16];
        let mut rng = Rng::named(seed, &format!("guid of {node}"));
        for half in drawn.chunks_mut(8) {
            half.copy_from_slice(&rng.draw().to_be_bytes());
        }
        let Some(said) = &bmc.guid else { return drawn };
        let digits: String = said.value.chars().filter(|letter| *letter != '-').collect();
        let read = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32);
        read.map_or_else(
            || {
                let found = &said.value;
                let what =
                    format!("nodes.bmc.guid: found {found:?}, expected 32 hexadecimal digits");
                self.wrong(said.referenced, what);
                drawn
            },
            u128::to_be_bytes,
        )
    }

    fn bmc(&mut self, raw: &RawBmc, guid: [u8; 16]) -> Option<BmcSpec> {
        let mut suites = Vec::new();
        for suite in raw.suites.iter().flatten() {
            match suite.value {
                3 => suites.push(Suite::Sha1),
                17 => suites.push(Suite::Sha256),
                other => {
                    let what = format!("nodes.bmc.suites: found {other}, expected 3 or 17");
                    self.wrong(suite.referenced, what);
                }
            }
        }
        let mut faults = Faults::default();
        for (name, value) in &raw.faults {
            if faults.set(name, value.value).is_err() {
                self.no_such_fault("nodes.bmc.faults", name, value.referenced);
            }
        }
        raw.present.unwrap_or(true).then(|| BmcSpec {
            user: raw.user.clone().unwrap_or_else(|| "admin".to_owned()),
            password: raw.password.clone().unwrap_or_else(|| "simulated".to_owned()),
            address: None,
            guid,
            suites: if raw.suites.is_some() { suites } else { vec![Suite::Sha256, Suite::Sha1] },
            faults,
        })
    }

    pub(super) fn no_such_fault(&mut self, path: &str, found: &str, at: Location) {
        let names = Faults::names().collect::<Vec<_>>().join(", ");
        self.wrong(at, format!("{path}: found {found:?}, expected one of {names}"));
    }

    pub(super) fn not_a_name(&mut self, path: &str, found: &Text) {
        let what = format!(
            "{path}: found {:?}, expected lower-case letters, digits and dashes, at most 63",
            found.value
        );
        self.wrong(found.referenced, what);
    }
}

/// A GUID as `systemUUID`, its bytes in the order of the wire.
fn uuid_text(guid: &[u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(*guid));
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default().to_owned();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}
