//! Reading the machines of a scenario that are instances of a cloud, and what happens to them.

use std::time::Duration;

use node_remedy_devices::ec2::Faults;
use serde_saphyr::Spanned;

use super::raw::{RawBmc, RawBmcFault, RawCloud, RawNode, Text};
use crate::rng::Rng;
use crate::scenario::reader::Reader;
use crate::scenario::spec::{CloudSpec, Event, NodeSpec};

/// Where an instance is, if nobody says.
const ZONE: &str = "eu-west-1a";
/// How long an instance takes to stop by force, and to start. Amazon's take up to a minute.
const STOP_TAKES: Duration = Duration::from_secs(10);
/// See [`STOP_TAKES`].
const START_TAKES: Duration = Duration::from_secs(6);

/// What a Node on an instance says of itself begins so.
const PROVIDER: &str = "aws:///";

impl Reader {
    /// The instance that a node is, if it is one.
    pub(super) fn cloud(&mut self, seed: u64, name: &str, raw: &RawNode) -> Option<CloudSpec> {
        let said = raw.cloud.as_ref()?;
        let at = said.referenced;
        if is_said(&raw.bmc) {
            let what = "nodes.bmc: expected none beside cloud: an instance has no BMC";
            self.wrong(at, what.to_owned());
        }
        let RawCloud { zone, group, stop_takes, start_takes, replaces, faults } = &said.value;
        let mut rng = Rng::named(seed, &format!("instance of {name}"));
        let mut id = format!("i-{:017x}", rng.draw());
        let mut is_in = zone.as_ref().map_or(ZONE, |zone| &zone.value).to_owned();
        if let Some(written) = &raw.provider_id {
            let read = written.strip_prefix(PROVIDER).and_then(|path| path.split_once('/'));
            match read.filter(|(in_zone, _)| zone.is_none() || *in_zone == is_in) {
                Some((in_zone, one)) if raw.count.is_none() => {
                    (is_in, id) = (in_zone.to_owned(), one.to_owned());
                }
                Some(_) | None => {
                    let what = format!(
                        "nodes.providerID: found {written:?}, expected aws:///ZONE/i-… of one node \
                         and of the zone of its cloud, or none"
                    );
                    self.wrong(at, what);
                }
            }
        }
        let mut known = Faults::default();
        for (fault, value) in faults {
            if known.set(fault, value.value).is_err() {
                self.no_such_cloud_fault("nodes.cloud.faults", fault, value);
            }
        }
        let takes = |reader: &mut Self, path: &str, said: &Option<Text>, usual| {
            said.as_ref().map_or(usual, |said| reader.duration(path, said))
        };
        let text = |said: &Option<Text>| said.as_ref().map(|said| said.value.clone());
        Some(CloudSpec {
            id,
            zone: is_in,
            group: text(group),
            stop_takes: takes(self, "nodes.cloud.stopTakes", stop_takes, STOP_TAKES),
            start_takes: takes(self, "nodes.cloud.startTakes", start_takes, START_TAKES),
            replaces: text(replaces),
            faults: known,
        })
    }

    /// What can only be said once all nodes are known.
    pub(super) fn replacements(&mut self, raws: &[RawNode], nodes: &[NodeSpec]) {
        for raw in raws {
            let said = raw.cloud.as_ref().and_then(|cloud| cloud.value.replaces.as_ref());
            let Some(said) = said else { continue };
            if !is_instance(nodes, &said.value) || said.value == raw.name.value {
                let found = &said.value;
                let what = format!(
                    "nodes.cloud.replaces: found {found:?}, expected another node that is an instance"
                );
                self.wrong(said.referenced, what);
            }
        }
    }

    /// A fault of the cloud that begins or ends.
    pub(super) fn cloud_fault(&mut self, raw: &RawBmcFault, instances: &[&str]) -> Event {
        self.instance("cloudFault.node", &raw.node, instances);
        let (node, fault) = (raw.node.value.clone(), raw.fault.value.clone());
        if Faults::default().set(&fault, 1).is_err() {
            self.no_such_cloud_fault("faults.cloudFault.fault", &fault, &raw.fault);
        }
        Event::CloudFault { node, fault, value: raw.value.unwrap_or(1) }
    }

    /// A node that has to be an instance.
    pub(super) fn instance(&mut self, field: &str, said: &Text, instances: &[&str]) {
        if !instances.contains(&said.value.as_str()) {
            let found = &said.value;
            let what =
                format!("faults.{field}: found {found:?}, expected a node that is an instance");
            self.wrong(said.referenced, what);
        }
    }

    fn no_such_cloud_fault<T>(&mut self, path: &str, found: &str, at: &Spanned<T>) {
        let names = Faults::names().collect::<Vec<_>>().join(", ");
        self.wrong(at.referenced, format!("{path}: found {found:?}, expected one of {names}"));
    }
}

fn is_instance(nodes: &[NodeSpec], name: &str) -> bool {
    nodes.iter().any(|node| node.name == name && node.cloud.is_some())
}

/// Whether anything is said of a BMC, but that there is none.
fn is_said(bmc: &RawBmc) -> bool {
    bmc.present == Some(true)
        || bmc.user.is_some()
        || bmc.password.is_some()
        || bmc.guid.is_some()
        || bmc.suites.is_some()
        || !bmc.faults.is_empty()
}
