//! A scenario as it is played.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use node_remedy_devices::bmc::{Faults, Suite};
use node_remedy_devices::ec2;
use node_remedy_devices::snmp::Model;
use serde_json::Value;

use crate::api::{Admit, Key};
use crate::facts::Power;
use crate::scenario::expectation::{Expectation, Pattern};
use crate::timings::Timings;

/// A scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// One line that says what it is about.
    pub title: String,
    /// What all randomness follows from.
    pub seed: u64,
    /// How long it lasts at most.
    pub duration: Duration,
    /// It is over before, once the cluster was calm for so long ([`crate::World::is_calm`]).
    pub until_calm: Option<Duration>,
    /// What node-remedy could do next at one moment it does in an order drawn from the seed, instead of first
    /// come, first served.
    pub shuffle: bool,
    /// What the definitions of custom resources do with what node-remedy writes. No file says it; without, they
    /// take everything.
    pub admit: Option<Admit>,
    /// How fast the cluster is.
    pub timings: Timings,
    /// The machines.
    pub nodes: Vec<NodeSpec>,
    /// The PDUs and switches that they hang on.
    pub devices: Vec<DeviceSpec>,
    /// Processes of node-remedy; one of them leads.
    pub controllers: u32,
    /// The last of them belongs to another installation, in a namespace of its own with nothing in it.
    pub second_installation: bool,
    /// The workloads.
    pub stateful_sets: Vec<StatefulSetSpec>,
    /// Objects that exist from the start: configurations, Secrets, ConfigMaps.
    pub configuration: Vec<Document>,
    /// Objects of a snapshot, which keep their UIDs and status. No file can give them.
    pub existing: Vec<Value>,
    /// What hits the cluster, in order of time.
    pub faults: Vec<Fault>,
    /// What must be true at the end of a run under node-remedy.
    pub expect: Vec<Expectation>,
    /// What must be true at the end of the same run without it.
    pub expect_without: Vec<Expectation>,
}

/// A machine and its node.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    /// The node's name.
    pub name: String,
    /// `topology.kubernetes.io/zone`: a zone, a rack.
    pub zone: Option<String>,
    /// Labels beside hostname and zone.
    pub labels: Vec<(String, String)>,
    /// `spec.providerID`.
    pub provider_id: Option<String>,
    /// `nodeInfo.systemUUID`, as the machine's firmware says it.
    pub system_uuid: String,
    /// From power on to a running kubelet.
    pub boot_time: Duration,
    /// Its management controller, if it has one.
    pub bmc: Option<BmcSpec>,
    /// The outlets that feed it, any of which is enough; without one nothing can take its mains.
    pub feeds: Vec<PlugSpec>,
    /// The port of a switch through which it reaches the network.
    pub port: Option<PlugSpec>,
    /// What a cloud keeps of it, if it is an instance.
    pub cloud: Option<CloudSpec>,
}

/// A PDU or a switch.
#[derive(Debug, Clone)]
pub struct DeviceSpec {
    /// Its name, for whoever writes or reads a scenario.
    pub name: String,
    /// Which it is.
    pub model: Model,
    /// How many outlets or ports it has.
    pub plugs: u32,
    /// Where it listens.
    pub address: SocketAddr,
    /// The community that it takes.
    pub community: String,
    /// What is wrong with it from the start: faults by name, and how much of each.
    pub faults: Vec<(String, u32)>,
}

impl DeviceSpec {
    /// Whether its plugs are ports, and no outlets.
    pub fn is_switch(&self) -> bool {
        self.model == Model::Switch
    }
}

/// An outlet or a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlugSpec {
    /// The device's name.
    pub device: String,
    /// Which one, from 1.
    pub number: u32,
}

/// An instance of EC2.
#[derive(Debug, Clone)]
pub struct CloudSpec {
    /// `i-` and hexadecimal digits.
    pub id: String,
    /// Such as `eu-west-1a`.
    pub zone: String,
    /// The autoscaling group that it belongs to.
    pub group: Option<String>,
    /// How long it takes to stop.
    pub stop_takes: Duration,
    /// How long it takes to start, before it boots.
    pub start_takes: Duration,
    /// The node whose instance it replaces: it is launched when that one is terminated.
    pub replaces: Option<String>,
    /// What is wrong from the start.
    pub faults: ec2::Faults,
}

/// A management controller.
#[derive(Debug, Clone)]
pub struct BmcSpec {
    /// Administrator's name.
    pub user: String,
    /// Administrator's password.
    pub password: String,
    /// Where it listens; by default it gets an address of the example network.
    pub address: Option<SocketAddr>,
    /// The system GUID it reports.
    pub guid: [u8; 16],
    /// The cipher suites it offers.
    pub suites: Vec<Suite>,
    /// What is wrong with it from the start.
    pub faults: Faults,
}

impl NodeSpec {
    /// Whether this plug is one of its feeds, or its port.
    pub fn hangs_on(&self, plug: &PlugSpec) -> bool {
        self.feeds.iter().chain(&self.port).any(|own| own == plug)
    }
}

impl std::fmt::Display for PlugSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.device, self.number)
    }
}

/// A StatefulSet.
#[derive(Debug, Clone)]
pub struct StatefulSetSpec {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How many pods.
    pub replicas: u64,
    /// Whether each pod has a volume of its own.
    pub volumes: VolumesSpec,
    /// How long pods stay on a node that is not ready; the cluster's default is 300 s.
    pub toleration: Option<Duration>,
    /// Whether pods are started all at once.
    pub order: Order,
}

/// Whether pods of a set have volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumesSpec {
    /// One ReadWriteOnce volume each, called `data`.
    OneEach,
    /// None.
    None,
}

/// In which order the pods of a set are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One after the other, each when the one before is ready.
    OrderedReady,
    /// All at once.
    Parallel,
}

/// An object that exists from the start, and where it was written.
#[derive(Debug, Clone)]
pub struct Document {
    /// The file, for messages.
    pub source: String,
    /// The object.
    pub object: Value,
}

/// Something that hits the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// How long after the start, or after what it waits for.
    pub at: Duration,
    /// What has to happen before.
    pub when: Option<Trigger>,
    /// What.
    pub what: Event,
}

/// What a fault waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// A fact that this speaks of.
    pub pattern: Pattern,
    /// The how manieth of them, from 1.
    pub time: usize,
}

/// What can hit a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The kubelet process of a node ends; its pods run on.
    KubeletStops(String),
    /// A node's path to the API server breaks; its pods and its BMC go on.
    NetworkLost(String),
    /// A node's kernel hangs.
    MachineHangs(String),
    /// Somebody switches a machine off.
    PowerOffByHand(String),
    /// Somebody switches a machine on.
    PowerOnByHand(String),
    /// What ailed a node is over; a machine that is off is switched on.
    NodeComesBack(String),
    /// A node's kernel panics and writes a dump.
    KernelDumps {
        /// Whose.
        node: String,
        /// How.
        dump: DumpSpec,
    },
    /// A fault of a BMC begins or, with the value 0, ends.
    BmcFault {
        /// Whose BMC.
        node: String,
        /// One of the device model's names.
        fault: String,
        /// How much of it.
        value: u32,
    },
    /// A fault of a PDU or switch begins or, with the value 0, ends.
    DeviceFault {
        /// The device's name.
        device: String,
        /// One of the device model's names.
        fault: String,
        /// How much of it.
        value: u32,
    },
    /// A fault of the cloud with an instance begins or, with the value 0, ends.
    CloudFault {
        /// Which node's instance.
        node: String,
        /// One of the device model's names.
        fault: String,
        /// How much of it.
        value: u32,
    },
    /// Somebody switches an outlet, or a port.
    PlugByHand {
        /// Which.
        plug: PlugSpec,
        /// To what.
        power: Power,
    },
    /// The cloud takes a node's instance away for good; what replaces it is launched.
    InstanceTerminated(String),
    /// Somebody deletes the Node object.
    DeleteNode(String),
    /// Somebody cordons a node.
    Cordon(String),
    /// Somebody sets the out-of-service taint.
    TaintOutOfService(String),
    /// Somebody deletes a pod by force.
    ForceDeletePod {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        name: String,
    },
    /// Somebody's finalizer keeps a pod from going.
    HoldPod {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        name: String,
    },
    /// That finalizer is taken away.
    LetPodGo {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        name: String,
    },
    /// Somebody deletes the VolumeAttachments of a node.
    DeleteAttachments(String),
    /// Somebody changes an object by a JSON merge patch (RFC 7386), or makes it.
    Edit {
        /// Which.
        key: Key,
        /// What it is to say.
        merge: Value,
    },
    /// Somebody deletes an object.
    Remove {
        /// Which.
        key: Key,
    },
    /// A problem detector on a node says once how a condition is.
    NodeCondition {
        /// Of which node.
        node: String,
        /// Its type.
        kind: String,
        /// `True`, `False` or `Unknown`.
        status: String,
        /// Why, in one word.
        reason: String,
    },
    /// A problem detector tells of something on a node by an Event, or counts one more on it.
    NodeEvent {
        /// On which node.
        node: String,
        /// What it was, in one word.
        reason: String,
    },
    /// Another remediator takes the lock of a node, unless somebody has it.
    OtherRemedy {
        /// Whose.
        node: String,
        /// For how long.
        lasts: Duration,
    },
    /// A person gives a command about the incident of a node; nothing if it has none.
    OperatorCommand {
        /// Whose.
        node: String,
        /// Which.
        command: OperatorCommand,
    },
    /// The clock of the control plane's machine is set so many milliseconds ahead or back.
    ServerClock(i64),
    /// Somebody saves the cluster's data, or sets it back.
    Etcd(Etcd),
    /// Something hits node-remedy itself; whoever plays it sees to that.
    OfController(ControllerEvent),
}

/// What is done with the data of the cluster, all at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Etcd {
    /// A copy is kept, in place of any before it.
    Saved,
    /// Everything is what the copy says, if there is one.
    Restored,
}

/// A person's command about an incident, as the command line gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorCommand {
    /// The first off may be sent.
    Approve,
    /// Try again.
    Retry,
    /// Stop; after an off, switch on first.
    Abort,
    /// Stop, and leave the machine as it is.
    AbortLeaveOff,
    /// The machine was seen to be off, in the boot that the incident is about.
    ConfirmOff,
}

impl OperatorCommand {
    /// Every command, by its name in scenarios.
    pub const ALL: [(&str, Self); 5] = [
        ("approve", Self::Approve),
        ("retry", Self::Retry),
        ("abort", Self::Abort),
        ("abort-leave-off", Self::AbortLeaveOff),
        ("confirm-off", Self::ConfirmOff),
    ];
}

/// How a kernel dump is written, and told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpSpec {
    /// From the panic to the boot.
    pub lasts: Duration,
    /// The one process of node-remedy, from 1, that the crash kernel knows; none: all of them.
    pub controller: Option<u32>,
    /// The address that the messages come from; none: the node's own.
    pub from: Option<IpAddr>,
    /// Whether the machine writes the most significant byte first.
    pub big_endian: bool,
}

/// What can hit node-remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerEvent {
    /// One of its processes ends, at whatever it waits for, and is started again later.
    Killed(Outage),
    /// One of its processes stands still, and goes on where it was.
    Paused(Outage),
    /// The way between it and the API server is bad.
    ApiFault(ApiFault),
    /// The clocks of the machine of one of its processes go wrong.
    ClockFault(ClockFault),
    /// One of its processes reaches no device for a while.
    DevicesLost(Outage),
}

/// What goes wrong with the clocks of a process of node-remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockFault {
    /// Of which one, from 1.
    pub controller: u32,
    /// What.
    pub change: ClockChange,
}

/// How a machine's clocks go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockChange {
    /// The wall clock is set so many milliseconds ahead or back.
    Jump(i64),
    /// From now on all clocks run so many thousandths too fast or too slow.
    Drift(i32),
}

/// A process of node-remedy that does nothing for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// Which one, from 1; where nothing is said the one that leads then, or the first.
    pub controller: Option<u32>,
    /// For how long.
    pub lasts: Duration,
}

/// What some of node-remedy's requests meet for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiFault {
    /// What they meet.
    pub fault: ApiFaultKind,
    /// Requests with this verb only, as audit logs name it: `get`, `patch`.
    pub verb: Option<&'static str>,
    /// Requests for this resource only, as audit logs name it: `secrets`, `pods/status`.
    pub resource: Option<&'static str>,
    /// How many of a hundred.
    pub percent: u32,
    /// For how long.
    pub lasts: Duration,
}

/// What a request to the API server can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiFaultKind {
    /// 5xx, or no answer; it was not carried out.
    Unavailable,
    /// A write was carried out, and its answer is lost.
    AnswerLost,
    /// A write is carried out so long after its client has given up waiting for it.
    CarriedOutLate(Duration),
    /// 429.
    Throttled,
    /// 409 to a write: somebody else wrote first.
    Conflict,
    /// 403: a right is missing, or a webhook forbids it.
    Denied,
    /// It takes so much longer.
    Slow(Duration),
    /// A watch ends with an error when it would tell of something.
    WatchesBreak,
    /// A watch ends with 410 when it would tell of something.
    HistoryGone,
    /// A watch tells so much later.
    WatchesLag(Duration),
    /// A watch stays open and tells nothing any more, when it would tell of something.
    WatchesFreeze,
}

impl ApiFaultKind {
    /// The names that scenarios use. `slow`, `carriedOutLate` and `watchesLag` also say how long with `takes`.
    pub const NAMES: [&str; 11] = [
        "unavailable",
        "answerLost",
        "carriedOutLate",
        "throttled",
        "conflict",
        "slow",
        "watchesBreak",
        "historyGone",
        "watchesLag",
        "watchesFreeze",
        "denied",
    ];
}

impl ApiFault {
    /// What a fault can be of, as audit logs name it; a status, and the eviction of pods, are apart.
    pub const RESOURCES: [&str; 24] = [
        "configmaps",
        "events",
        "fenceconfigurations",
        "fenceconfigurations/status",
        "fenceplugins",
        "fenceplugins/status",
        "jobs",
        "leases",
        "networkfences",
        "nodefences",
        "nodefences/status",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "pods/eviction",
        "pods/status",
        "remedybudgets",
        "remedybudgets/status",
        "remedyconfigurations",
        "remedyconfigurations/status",
        "remedypauses",
        "secrets",
        "volumeattachments",
    ];
    /// The verbs that a fault can be of.
    pub const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

    /// Whether a request with this verb for this resource meets it.
    pub fn is_of(&self, verb: &str, resource: &str) -> bool {
        self.verb.is_none_or(|one| one == verb) && self.resource.is_none_or(|one| one == resource)
    }
}
