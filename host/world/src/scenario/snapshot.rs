//! A scenario out of a snapshot of one's own cluster: the same nodes, pods and volumes,
//! and one node is lost, or some are at once.
//!
//! The objects are taken over as they are, but for their times, which begin anew. What a
//! snapshot does not hold is assumed: a node's BMC answers at the address of its row in the
//! inventory, or of its annotation, reports the node's system UUID and takes the credentials,
//! which are made up; without either a node has no BMC. Nodes that are not Ready have been
//! silent from the start. Only StatefulSets make pods anew.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use node_remedy_devices::bmc::{Faults, Suite};
use serde_json::{Value, json};
use serde_saphyr::Location;

use super::ScenarioErrors;
use super::nodes::BOOT_TIME;
use crate::actors::attach_detach::attachment_key;
use crate::actors::attacher::finalizer;
use crate::api::Kind;
use crate::api::object::{condition_status, list, name, part, remove, set, text};
use crate::rng::Rng;
use crate::scenario::reader::Reader;
use crate::scenario::spec::{BmcSpec, Document, Event, Fault, NodeSpec, Scenario};
use crate::setup::{BMC_ADDRESS_ANNOTATION, BMC_ADDRESS_COLUMN, INVENTORY, IPMI_PORT};
use crate::stage::CSI_DRIVER;
use crate::time::{START, seconds_stamp};
use crate::timings::Timings;

/// The largest snapshot: a thousand nodes with a hundred pods each are less than that.
pub const SNAPSHOT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// When the node is lost: the cluster has settled by then.
const LOST_AT: Duration = Duration::from_mins(1);
/// Nodes that an error names.
const KNOWN_MAX: usize = 20;
/// What the title says besides where the cluster only tells what it would do.
const SHADOW_PLAYED: &str = ", and mode: shadow is played as enforce";
/// How long the scenario lasts.
const DURATION: Duration = Duration::from_mins(15);
/// The controller's namespace, where the credentials are made up.
const NAMESPACE: &str = "node-remedy";
/// The made-up account.
const ACCOUNT: (&str, &str) = ("admin", "simulated");

/// What is lost in a snapshot.
pub struct Loss<'a> {
    /// As the person said it: a node, or a selector.
    pub said: &'a str,
    /// Whether the node of this name, with these labels, is one of them.
    pub is_lost: &'a dyn Fn(&str, &BTreeMap<String, String>) -> bool,
    /// How.
    pub how: LossHow,
}

/// How nodes of a snapshot are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossHow {
    /// The kubelet stops; the machine runs on.
    KubeletStops,
    /// The network of the machine is lost, as behind a switch that fails; it runs on, and its BMC
    /// answers.
    NetworkLost,
    /// The machine is without power, and so is its BMC.
    Dark,
}

impl LossHow {
    fn title(self, said: &str) -> String {
        match self {
            Self::KubeletStops => format!("{said} is lost"),
            Self::NetworkLost => format!("{said} loses its network"),
            Self::Dark => format!("{said} goes dark"),
        }
    }

    fn events(self, node: &NodeSpec) -> Vec<Event> {
        let name = node.name.clone();
        match self {
            Self::KubeletStops => vec![Event::KubeletStops(name)],
            Self::NetworkLost => vec![Event::NetworkLost(name)],
            Self::Dark => {
                let (node, fault) = (name.clone(), "dead".to_owned());
                vec![Event::PowerOffByHand(name), Event::BmcFault { node, fault, value: 1 }]
            }
        }
    }
}

impl Scenario {
    /// What would happen if these were lost in the cluster that `text`, a List of its objects, shows.
    pub fn from_snapshot(file: &str, text: &str, loss: &Loss<'_>) -> Result<Self, ScenarioErrors> {
        let mut reader = Reader { file: file.to_owned(), errors: Vec::new() };
        let documents = reader.yaml::<Value>(text, SNAPSHOT_BYTES_MAX).unwrap_or_default();
        let items: Vec<Value> = documents.into_iter().flat_map(items).collect();
        let mut scenario = Self {
            title: loss.how.title(loss.said),
            seed: 1,
            duration: DURATION,
            until_calm: None,
            shuffle: false,
            admit: None,
            timings: Timings::default(),
            nodes: Vec::new(),
            devices: Vec::new(),
            controllers: 1,
            second_installation: false,
            stateful_sets: Vec::new(),
            configuration: Vec::new(),
            existing: Vec::new(),
            faults: Vec::new(),
            expect: Vec::new(),
            expect_without: Vec::new(),
        };
        let addresses = bmc_addresses(&items);
        let mut lost = BTreeSet::new();
        for item in items {
            let labels = item.pointer("/metadata/labels").cloned().unwrap_or_default();
            let labels = serde_json::from_value(labels).unwrap_or_default();
            if (loss.is_lost)(name(&item), &labels) {
                lost.insert(name(&item).to_owned());
            }
            let address = addresses.get(name(&item)).map(String::as_str);
            scenario.take(file, item, address);
        }
        let nodes = || scenario.nodes.iter().filter(|node| lost.contains(&node.name));
        if reader.errors.is_empty() && nodes().next().is_none() {
            let known = scenario.nodes.iter().take(KNOWN_MAX).map(|node| node.name.as_str());
            let known: Vec<&str> = known.collect();
            let more = if scenario.nodes.len() > KNOWN_MAX { ", …" } else { "" };
            let what = match known.as_slice() {
                [] => {
                    "--lose, --power-loss: found no Node in this file, expected a snapshot of a cluster; \
                       to make one: node-remedy snapshot"
                        .to_owned()
                }
                known => format!(
                    "--lose, --power-loss: found {:?}, expected one of the nodes {}{more}, or a selector that selects some",
                    loss.said,
                    known.join(", ")
                ),
            };
            reader.wrong(Location::UNKNOWN, what);
        }
        let events = nodes().flat_map(|node| loss.how.events(node));
        let fault = |what| Fault { at: LOST_AT, when: None, what };
        let faults: Vec<Fault> = events.map(fault).collect();
        scenario.faults.extend(faults);
        if reader.errors.is_empty() { Ok(scenario) } else { Err(ScenarioErrors(reader.errors)) }
    }

    /// Takes one object over; kinds that no model uses are left out.
    fn take(&mut self, file: &str, mut item: Value, bmc_address: Option<&str>) {
        let Some(kind) = Kind::of_object(text(&item, "/apiVersion"), text(&item, "/kind")) else {
            return;
        };
        restart_times(&mut item);
        match kind {
            Kind::Node => {
                if condition_status(&item, "Ready") != "True" {
                    let what = Event::NetworkLost(name(&item).to_owned());
                    self.faults.push(Fault { at: Duration::ZERO, when: None, what });
                }
                self.nodes.push(node(&item, bmc_address));
                self.existing.push(item);
            }
            Kind::VolumeAttachment => self.existing.push(attachment(&item)),
            Kind::FenceConfiguration => {
                self.configuration.extend(credentials(file, &item));
                self.existing.push(item);
            }
            Kind::Pod
            | Kind::Namespace
            | Kind::ConfigMap
            | Kind::Secret
            | Kind::PersistentVolume
            | Kind::PersistentVolumeClaim
            | Kind::StatefulSet
            | Kind::DaemonSet
            | Kind::PodDisruptionBudget
            | Kind::CsiNode
            | Kind::CsiDriver
            | Kind::FencePlugin
            | Kind::RemedyPause
            | Kind::NodeMaintenance
            | Kind::NetworkFence => self.existing.push(item),
            Kind::RemedyConfiguration => {
                if let Some(mode) = item.pointer_mut("/spec/mode").filter(|one| *one == "shadow") {
                    // The question is what would be done.
                    *mode = "enforce".into();
                    self.title.push_str(SHADOW_PLAYED);
                }
                self.existing.push(item);
            }
            // Kubelets make their Leases; what happened before the snapshot is over.
            // Other people's Jobs are left to their pods.
            Kind::Lease
            | Kind::Job
            | Kind::CoreEvent
            | Kind::Event
            | Kind::NodeFence
            | Kind::RemedyBudget => {}
        }
    }
}

fn items(mut document: Value) -> Vec<Value> {
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_),
        )
        | None => vec![document],
    }
}

/// The scenario has its own calendar: what was, was at its beginning.
fn restart_times(item: &mut Value) {
    let start = json!(seconds_stamp(START));
    let metadata = part(item, "metadata");
    remove(metadata, "resourceVersion");
    set(metadata, "creationTimestamp", start.clone());
    let conditions = item.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        for stamp in ["lastHeartbeatTime", "lastTransitionTime"] {
            if condition.get(stamp).is_some_and(|stamp| !stamp.is_null()) {
                set(condition, stamp, start.clone());
            }
        }
    }
}

/// The BMCs' addresses by node, as the inventory has them, if it is there.
fn bmc_addresses(items: &[Value]) -> BTreeMap<String, String> {
    let [config_map, key] = INVENTORY;
    let is_inventory =
        |item: &&Value| text(item, "/kind") == "ConfigMap" && name(item) == config_map;
    let table =
        items.iter().find(is_inventory).and_then(|item| item.get("data")?.get(key)?.as_str());
    let mut lines = table.unwrap_or_default().lines();
    let mut header = lines.next().unwrap_or_default().split(',');
    let Some(column) = header.position(|name| name.trim() == BMC_ADDRESS_COLUMN) else {
        return BTreeMap::new();
    };
    let cell = |line: &str, number: usize| Some(line.split(',').nth(number)?.trim().to_owned());
    lines.filter_map(|line| Some((cell(line, 0)?, cell(line, column)?))).collect()
}

fn node(item: &Value, bmc_address: Option<&str>) -> NodeSpec {
    let system_uuid = text(item, "/status/nodeInfo/systemUUID").to_lowercase();
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let annotations = item.pointer("/metadata/annotations");
    let said = annotations.and_then(|all| all.get(BMC_ADDRESS_ANNOTATION)?.as_str());
    let address = bmc_address.or(said);
    NodeSpec {
        name: name(item).to_owned(),
        zone: some(text(item, "/metadata/labels/topology.kubernetes.io~1zone")),
        labels: Vec::new(),
        provider_id: some(text(item, "/spec/providerID")),
        boot_time: BOOT_TIME,
        bmc: address.and_then(read_address).map(|address| BmcSpec {
            user: ACCOUNT.0.to_owned(),
            password: ACCOUNT.1.to_owned(),
            address: Some(address),
            guid: guid(name(item), &system_uuid),
            suites: vec![Suite::Sha256, Suite::Sha1],
            faults: Faults::default(),
        }),
        cloud: None,
        system_uuid,
        feeds: Vec::new(),
        port: None,
    }
}

fn read_address(text: &str) -> Option<SocketAddr> {
    let bare = || text.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, IPMI_PORT));
    text.parse::<SocketAddr>().ok().or_else(bare)
}

fn guid(node: &str, system_uuid: &str) -> [u8; 16] {
    let digits: String = system_uuid.chars().filter(|letter| *letter != '-').collect();
    let mut rng = Rng::named(1, &format!("guid of {node}"));
    let mut drawn = || (u128::from(rng.draw()) << 64) | u128::from(rng.draw());
    u128::from_str_radix(&digits, 16).unwrap_or_else(|_| drawn()).to_be_bytes()
}

/// An attachment as the one modelled driver makes it.
fn attachment(item: &Value) -> Value {
    let volume = text(item, "/spec/source/persistentVolumeName");
    let node = text(item, "/spec/nodeName");
    let mut taken = item.clone();
    let metadata = part(&mut taken, "metadata");
    set(metadata, "name", json!(attachment_key(volume, node).name));
    set(metadata, "finalizers", json!([finalizer()]));
    set(part(&mut taken, "spec"), "attacher", json!(CSI_DRIVER));
    taken
}

/// Secrets under the names that a configuration gives, with the made-up account.
fn credentials(file: &str, configuration: &Value) -> Vec<Document> {
    let methods = ["/spec/templates", "/spec/methods"].map(|at| list(configuration, at));
    let credentials = methods.into_iter().flatten().flat_map(|one| list(one, "/credentials"));
    let key = |credential: &Value, field: &str, default: &str| {
        let said = text(credential, field);
        if said.is_empty() { default.to_owned() } else { said.to_owned() }
    };
    let secret = |credential: &Value| {
        let mut data = json!({});
        set(&mut data, &key(credential, "/identityKey", "username"), json!(ACCOUNT.0));
        set(&mut data, &key(credential, "/secretKey", "password"), json!(ACCOUNT.1));
        let object = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": text(credential, "/secret"), "namespace": NAMESPACE },
            "stringData": data,
        });
        Document { source: file.to_owned(), object }
    };
    credentials.map(secret).collect()
}
