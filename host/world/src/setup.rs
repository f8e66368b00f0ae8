//! The cluster as it stands when the timeline begins: machines, and the objects of an
//! administrator. Everything else comes to be by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use node_remedy_devices::bmc::Bmc;
use node_remedy_devices::ec2::Instance;
use node_remedy_devices::{bmc, ec2};
use serde_json::{Value, json};

use crate::api::object::{Key, part, set, text};
use crate::api::{ApiServer, Kind, Part};
use crate::machine::Machine;
use crate::machine::spec::Spec;
use crate::rng::Rng;
use crate::scenario::{
    BmcSpec, CloudSpec, NodeSpec, Order, PlugSpec, Scenario, StatefulSetSpec, VolumesSpec,
};
use crate::stage::{CSI_DRIVER, LEASE_NAMESPACE, LOCKS, REMEDY_NAMESPACE};
use crate::time::{Time, millis};

/// Who makes the first objects.
const NAME: &str = "admin";
/// BMCs have the addresses after this one, in the order of the nodes: the network that is
/// kept free for examples, and beyond it where there are more than 254.
const FIRST_BMC: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 0);
/// Nodes have the addresses after this one.
const FIRST_NODE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 0);
/// Where the cloud's API listens, whatever it is called: another network for examples.
pub(crate) const CLOUD: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), 443);
/// The account of simulated devices, where nobody says another.
pub(crate) const ACCOUNT: [&str; 2] = ["admin", "simulated"];
/// The port of IPMI.
pub(crate) const IPMI_PORT: u16 = 623;
/// Where a node says how to reach its BMC.
pub const BMC_ADDRESS_ANNOTATION: &str = "node-remedy.io/bmc-address";
/// What all annotations begin with that say where a node's devices are.
const ANNOTATION_PREFIX: &str = "node-remedy.io/";
/// The ConfigMap in which the same stands for people, and its key, as the examples name them.
pub(crate) const INVENTORY: [&str; 2] = ["machines", "nodes.csv"];
/// Its column for the BMC.
pub(crate) const BMC_ADDRESS_COLUMN: &str = "bmc-address";

/// The machine of the node of that number, counted from 0.
pub(crate) fn machine(scenario: &Scenario, number: usize, node: &NodeSpec, now: Time) -> Machine {
    let address = bmc_address(number, node);
    let places = places(scenario, number, node).into_iter();
    let annotations = places.map(|(name, place)| (format!("{ANNOTATION_PREFIX}{name}"), place));
    let spec = Spec {
        name: node.name.clone(),
        zone: node.zone.clone(),
        provider_id: node.provider_id.clone(),
        system_uuid: node.system_uuid.clone(),
        address: nth(FIRST_NODE, number).to_string(),
        labels: node.labels.clone(),
        annotations: annotations.collect(),
        boot_time: node.boot_time,
        feeds: node.feeds.len(),
    };
    let bmc = node.bmc.as_ref().map(|spec| {
        let seed = Rng::named(scenario.seed, &format!("bmc of {}", node.name)).draw();
        (address, bmc(spec, seed))
    });
    let machine = Machine::running(spec, bmc, scenario.seed, now);
    match &node.cloud {
        Some(cloud) => machine.in_cloud(instance(cloud)),
        None => machine,
    }
}

fn instance(spec: &CloudSpec) -> Instance {
    let config = ec2::Config {
        id: spec.id.clone(),
        zone: spec.zone.clone(),
        group: spec.group.clone(),
        stop_ms: millis(spec.stop_takes),
        start_ms: millis(spec.start_takes),
    };
    let mut instance = match spec.replaces {
        Some(_) => Instance::to_come(config),
        None => Instance::running(config),
    };
    instance.faults = spec.faults.clone();
    instance
}

/// The account of a scenario's cloud: what simulated BMCs take where nobody says another.
pub(crate) fn cloud_account() -> ec2::Account {
    let [key_id, secret] = ACCOUNT.map(str::to_owned);
    ec2::Account { key_id, secret }
}

fn bmc_address(number: usize, node: &NodeSpec) -> SocketAddr {
    let usual = SocketAddr::new(IpAddr::V4(nth(FIRST_BMC, number)), IPMI_PORT);
    node.bmc.as_ref().and_then(|bmc| bmc.address).unwrap_or(usual)
}

/// Where the node's BMC is, and which plugs it hangs on, as the methods of their devices name them:
/// `bmc-address`, `outlet-a`, `-b` and so on, and `switch-port`.
fn places(scenario: &Scenario, number: usize, node: &NodeSpec) -> BTreeMap<String, String> {
    let address = bmc_address(number, node).ip().to_string();
    let bmc = node.bmc.iter().map(|_| (BMC_ADDRESS_COLUMN.to_owned(), address.clone()));
    let named = |plug: &PlugSpec| {
        let device = scenario.devices.iter().find(|one| one.name == plug.device)?;
        Some(device.model.plug(plug.number))
    };
    let feeds = ('a'..='z').zip(&node.feeds);
    let feeds = feeds.map(|(letter, plug)| (format!("outlet-{letter}"), plug));
    let port = node.port.iter().map(|plug| ("switch-port".to_owned(), plug));
    let plugs = feeds.chain(port).filter_map(|(key, plug)| Some((key, named(plug)?)));
    bmc.chain(plugs).collect()
}

/// The same of all nodes, in a table that no kubelet can write.
fn inventory(scenario: &Scenario) -> Value {
    let nodes = scenario.nodes.iter().enumerate();
    let rows: Vec<_> =
        nodes.map(|(number, node)| (&node.name, places(scenario, number, node))).collect();
    let columns: BTreeSet<&String> = rows.iter().flat_map(|(_, places)| places.keys()).collect();
    let line = |first: &str, cells: Vec<&str>| [vec![first], cells].concat().join(",");
    let header = line("node", columns.iter().map(|name| name.as_str()).collect());
    let lines = rows.iter().map(|(node, places)| {
        let cell = |name: &&String| places.get(*name).map_or("", String::as_str);
        line(node, columns.iter().map(cell).collect())
    });
    let table = std::iter::once(header).chain(lines).collect::<Vec<_>>().join("\n");
    let [name, key] = INVENTORY;
    json!({
        "metadata": { "name": name, "namespace": REMEDY_NAMESPACE },
        "data": { key: table },
    })
}

fn nth(first: Ipv4Addr, number: usize) -> Ipv4Addr {
    let number = u32::try_from(number).unwrap_or(u32::MAX).saturating_add(1);
    Ipv4Addr::from_bits(first.to_bits().saturating_add(number))
}

fn bmc(spec: &BmcSpec, seed: u64) -> Bmc {
    let administrator = bmc::User {
        name: spec.user.clone(),
        password: spec.password.clone().into_bytes(),
        privilege: bmc::Privilege::Administrator,
    };
    let mut bmc = Bmc::new(bmc::Config {
        guid: spec.guid,
        users: vec![administrator],
        suites: spec.suites.clone(),
        powered: true,
        seed,
        ..bmc::Config::default()
    });
    bmc.faults = spec.faults.clone();
    bmc
}

/// Makes the objects of a scenario.
pub(crate) fn objects(api: &mut ApiServer, scenario: &Scenario) {
    for namespace in ["default", "kube-system", LEASE_NAMESPACE, REMEDY_NAMESPACE, LOCKS] {
        make(api, Kind::Namespace, json!({ "metadata": { "name": namespace } }));
    }
    let driver = json!({
        "metadata": { "name": CSI_DRIVER },
        "spec": { "attachRequired": true, "podInfoOnMount": false },
    });
    make(api, Kind::CsiDriver, driver);
    for object in &scenario.existing {
        if let Some(kind) = kind_of(object) {
            api.restore(NAME, kind, object.clone());
        }
    }
    for document in &scenario.configuration {
        if let Some(kind) = kind_of(&document.object) {
            make(api, kind, document.object.clone());
        }
    }
    // One of its own that a scenario brings counts.
    make(api, Kind::ConfigMap, inventory(scenario));
    for set in &scenario.stateful_sets {
        if set.volumes == VolumesSpec::OneEach {
            for ordinal in 0..set.replicas {
                volume(api, set, ordinal);
            }
        }
        make(api, Kind::StatefulSet, stateful_set(set));
    }
}

fn kind_of(object: &Value) -> Option<Kind> {
    Kind::of_object(text(object, "/apiVersion"), text(object, "/kind"))
}

/// Makes an object unless one of that name is there: the first one counts.
fn make(api: &mut ApiServer, kind: Kind, object: Value) {
    drop(api.client(NAME).create(kind, object));
}

/// A PersistentVolume and the claim bound to it, both called after the pod.
fn volume(api: &mut ApiServer, set: &StatefulSetSpec, ordinal: u64) {
    let claim = format!("data-{}-{ordinal}", set.name);
    let name = format!("pv-{}-{}-{ordinal}", set.namespace, set.name);
    let storage = json!({ "storage": "10Gi" });
    let volume = json!({
        "metadata": { "name": name },
        "spec": {
            "capacity": storage,
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": { "namespace": set.namespace, "name": claim },
            "csi": { "driver": CSI_DRIVER, "volumeHandle": name },
        },
    });
    make(api, Kind::PersistentVolume, volume);
    let bound = json!({
        "metadata": { "name": claim, "namespace": set.namespace },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": storage },
            "volumeName": name,
        },
    });
    make(api, Kind::PersistentVolumeClaim, bound);
    let status = json!({ "status": { "phase": "Bound" } });
    let claim = Key::within(Kind::PersistentVolumeClaim, &set.namespace, &claim);
    let volume = Key::cluster(Kind::PersistentVolume, &name);
    for key in [claim, volume] {
        // Both were made just above.
        drop(api.client(NAME).merge_patch(&key, &status, Part::Status));
    }
}

fn stateful_set(spec: &StatefulSetSpec) -> Value {
    let tolerations: Vec<Value> = spec
        .toleration
        .iter()
        .flat_map(|toleration| {
            ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map(|key| {
                json!({
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": toleration.as_secs(),
                })
            })
        })
        .collect();
    let labels = json!({ "app": spec.name });
    let order = match spec.order {
        Order::OrderedReady => "OrderedReady",
        Order::Parallel => "Parallel",
    };
    let mut object = json!({
        "metadata": { "name": spec.name, "namespace": spec.namespace },
        "spec": {
            "serviceName": spec.name,
            "replicas": spec.replicas,
            "podManagementPolicy": order,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "containers": [{ "name": "main", "image": "example.com/main" }],
                    "tolerations": tolerations,
                },
            },
        },
    });
    if spec.volumes == VolumesSpec::OneEach {
        let claim = json!([{
            "metadata": { "name": "data" },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "10Gi" } },
            },
        }]);
        set(part(&mut object, "spec"), "volumeClaimTemplates", claim);
    }
    object
}
