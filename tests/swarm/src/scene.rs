//! What is true at one moment of a run: what the checks look at. It follows from the facts of
//! the world and from nothing that the controller says, except that it said it.

#![expect(clippy::wildcard_enum_match_arm, reason = "most facts change nothing that is kept here")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_simulate::CLIENT;
use node_remedy_world::facts::{ETCD, Power, PowerCause, What};
use node_remedy_world::time::{Time, after, between};

use crate::guards::Guards;

/// Who does what people do with kubectl.
pub const PEOPLE: &str = "people";
/// The taint that gives everything on a node away.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// What the taints begin with that are ours.
pub const OURS: &str = "node-remedy.io/";

/// What is known of a run beforehand.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Nodes that may be worked on at once.
    pub in_flight_max: usize,
    /// Power cycles of one incident.
    pub cycles_max: usize,
    /// From this share of lost nodes on, in percent, none is switched off.
    pub unhealthy_percent_max: usize,
    /// A node lost for so long counts as lost whenever an off is sent.
    pub seen_after: Duration,
    /// A node that is well for so long counts as well whenever an off is sent.
    pub well_after: Duration,
    /// Some BMC, or a cloud, tells what was true a while ago.
    pub has_stale_bmc: bool,
    /// A kernel that crashed gives back volumes, too (`kdumpReleases: all`).
    pub dumps_release_all: bool,
    /// A silent node gives back what the CSI driver detaches, which detaches nothing that is written to.
    pub drivers_check: bool,
    /// Nodes whose BMC nothing is wrong with, where every process lives all through the run.
    pub sound_bmcs: BTreeSet<String>,
    /// Nothing is wrong with the API server, the clocks and the processes of node-remedy.
    pub is_sound: bool,
    /// Devices whose plugs are ports: what hangs on one keeps its power.
    pub switches: BTreeSet<String>,
    /// Nodes whose BMC is another machine's.
    pub impostors: BTreeSet<String>,
    /// Nodes of one machine identity, which are among the impostors.
    pub twins: BTreeSet<String>,
    /// Outlets and ports that the configuration gives to the wrong node. S5 and S10 skip them.
    pub miswired: BTreeSet<u64>,
    /// How long a node has to be silent before it is fenced; none where something else can have it fenced.
    pub silent_for: Option<Duration>,
    /// The shortest `nodeConditionPeriod`, if every threshold watches Ready and no clock is set.
    pub unready_for: Option<Duration>,
    /// When the server's clock is set ahead, and by how much. A process that starts later overstates every age that began
    /// before.
    pub skips: Vec<(Time, Duration)>,
    /// No machine is switched off before somebody said yes.
    pub needs_approval: bool,
    /// A machine that others switched off stays off.
    pub leaves_off: bool,
    /// Nodes that are ill though their kubelets live.
    pub ill: BTreeSet<String>,
    /// Nodes that are lost in it and have to be well at its end, or somebody is told.
    pub lost: Vec<String>,
    /// Of these, those that nothing holds up in the end.
    pub unhindered: BTreeSet<String>,
    /// Some device has a fault at the end.
    pub has_faults: bool,
    /// Incidents whose NodeFence somebody deletes.
    pub deleted: BTreeSet<String>,
    /// People act behind node-remedy's back: what comes of it is theirs.
    pub has_people: bool,
    /// What guards go by that only some policies set.
    pub guards: Guards,
}

impl Default for Setting {
    /// What examples/config/remedy.yaml says, and a run without anything special.
    fn default() -> Self {
        Self {
            in_flight_max: 1,
            cycles_max: 1,
            unhealthy_percent_max: 30,
            // A renewal is overdue after 12 s, and 0.4 s are what a kubelet may be late by itself.
            seen_after: Duration::from_secs(14),
            // An off is not sent on what was read more than 5 s ago.
            well_after: Duration::from_secs(6),
            has_stale_bmc: false,
            dumps_release_all: false,
            drivers_check: false,
            sound_bmcs: BTreeSet::new(),
            is_sound: false,
            switches: BTreeSet::new(),
            impostors: BTreeSet::new(),
            twins: BTreeSet::new(),
            miswired: BTreeSet::new(),
            silent_for: None,
            unready_for: None,
            skips: Vec::new(),
            needs_approval: false,
            leaves_off: false,
            ill: BTreeSet::new(),
            lost: Vec::new(),
            unhindered: BTreeSet::new(),
            has_faults: false,
            deleted: BTreeSet::new(),
            has_people: false,
            guards: Guards::default(),
        }
    }
}

/// The grade that rests on a driver's check.
pub const PARTITION: &str = "partition";
/// The grade that rests on a person's word.
pub const OPERATOR_CONFIRMED: &str = "operator-confirmed";
/// The grade that rests on cut storage, and covers the pods on it.
pub const STORAGE_FENCED: &str = "storage-fenced";

/// What a NetworkFence is called, before its name.
const NETWORK_FENCE: &str = "NetworkFence ";
/// The storage lets a node back within this time after somebody edited its NetworkFence.
const LET_BACK: Duration = Duration::from_secs(5);

/// What the maintenance of a node is called, before the node's name.
const MAINTENANCE: &str = "NodeMaintenance of-";

/// A kubelet that is back renews within 10 s, and what was decided before is carried out within 5 s.
const HEARD_AFTER: Duration = Duration::from_secs(15);

/// Why nobody hears a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ailment {
    Kubelet,
    Kernel,
    Network,
}

/// What is true at one moment.
#[derive(Debug, Default)]
pub struct Scene {
    /// Every node that was ever registered.
    pub nodes: BTreeSet<String>,
    /// Machines without power, and who took it.
    pub off: BTreeMap<String, PowerCause>,
    /// Outlets and ports that are off, by device and number, whose machine hangs on each, and who did
    /// it.
    pub dark_plugs: BTreeMap<(String, u64), (String, PowerCause)>,
    /// Machines that a cloud has taken away for good.
    pub gone: BTreeSet<String>,
    /// Machines that somebody other than us switched on after an off, and since when.
    pub on_behind_our_back: BTreeMap<String, Time>,
    /// Why nobody hears a node.
    ailments: BTreeMap<String, BTreeSet<Ailment>>,
    /// Nodes that nobody hears, and since when.
    pub lost: BTreeMap<String, Time>,
    /// The same; a silence that ended too shortly before for anybody to have heard the node counts.
    pub unheard_since: BTreeMap<String, Time>,
    /// Since when a node is well that was lost.
    pub well_since: BTreeMap<String, Time>,
    /// Taints by node, key and effect, and who put them there.
    pub taints: BTreeMap<(String, String, String), String>,
    /// Cordoned nodes, and who said so.
    pub cordoned: BTreeMap<String, String>,
    /// Since when nodes are cordoned.
    pub cordoned_since: BTreeMap<String, Time>,
    /// Since when a NodeMaintenance of a node stands.
    pub maintained_since: BTreeMap<String, Time>,
    /// Nodes whose pods or volumes somebody gave away without proof: what comes of it is theirs.
    pub released_by_people: BTreeSet<String>,
    /// Nodes of which we gave something away since their last boot.
    pub released: BTreeSet<String>,
    /// Nodes whose kernel crashed and has not been started again, and when: what ran there is dead.
    pub crashed: BTreeMap<String, Time>,
    /// Nodes that nobody heard when their pods were given back because drivers check, and when that was.
    partitioned: BTreeMap<String, Time>,
    /// Nodes that a person said are off, and that were not: what comes of it is theirs.
    pub said_off: BTreeSet<String>,
    /// Nodes that the storage keeps away.
    pub kept_away: BTreeSet<String>,
    /// When the storage last let a node back.
    pub let_back_at: BTreeMap<String, Time>,
    /// When a person last edited a NetworkFence.
    edited_fence_at: Option<Time>,
    /// Nodes whose storage a person gave back behind our release, and since when nobody cut it again.
    pub undone: BTreeMap<String, Time>,
    /// The boot of each node that its kubelet last started in.
    boots: BTreeMap<String, String>,
    /// Nodes whose last boot has ended.
    ended: BTreeSet<String>,
    /// Nodes whose present boot was proven to be kept from its storage.
    proven_cut: BTreeSet<String>,
    /// When each node was last proven to be kept from its storage.
    pub storage_cut: BTreeMap<String, Time>,
    /// The node of each process that writes, once for each of its volumes, by pod UID.
    pub writing: BTreeMap<String, Vec<String>>,
    /// UIDs of pods that ever wrote.
    wrote: BTreeSet<String>,
    /// When each pod was bound, by UID.
    pub bound_at: BTreeMap<String, Time>,
    /// When an `on` was last intended for a node, since its storage was cut.
    on_intended_at: BTreeMap<String, Time>,
    /// When people last deleted a Node while its storage was cut.
    deleted_cut_at: BTreeMap<String, Time>,
    /// When each machine last lost power.
    pub off_at: BTreeMap<String, Time>,
    /// When each machine was last read to be off, and was.
    pub read_off_at: BTreeMap<String, Time>,
    /// Each node's latest incident.
    pub incident: BTreeMap<String, String>,
    /// Each incident's state.
    pub states: BTreeMap<String, String>,
    /// Incidents that wait for a device, or did.
    pub awaited: BTreeSet<String>,
    /// Nodes whose last parked record says that they may be left off.
    pub told_left_off: BTreeSet<String>,
    /// Some device did not switch a machine on, which a person was told: nothing is switched off by
    /// it, or by any of its kind, until somebody acknowledges that.
    pub has_closed_devices: bool,
    /// Each node's `Ready`.
    pub ready: BTreeMap<String, String>,
    /// Incidents of which somebody said yes, and when first.
    pub approved: BTreeMap<String, Time>,
    /// Nodes that another remediator has, since when, and until when.
    pub locked: BTreeMap<String, (Time, Time)>,
    /// Since when a RemedyPause stands.
    pub paused_since: Option<Time>,
    /// What each policy says: `enforce`, `shadow`.
    modes: BTreeMap<String, String>,
    /// Since when no policy lets anybody act.
    pub idle_since: Option<Time>,
    /// The process that leads; empty if none does.
    pub leader: String,
}

impl Scene {
    /// Takes note of what happened.
    pub fn note(&mut self, at: Time, what: &What) {
        self.released.extend(released_by_us(what).map(str::to_owned));
        if let What::ProofRecorded { node, grade, .. } = what
            && grade == STORAGE_FENCED
        {
            self.proven_cut.insert(node.clone());
        }
        // Others take away what is to go once a proof lets them.
        let (node, has_written) = match what {
            What::PodGone { node, uid, .. } => (Some(node), self.wrote.contains(uid)),
            What::DetachRequested { node, .. } => (Some(node), true),
            _ => (None, false),
        };
        self.released
            .extend(node.filter(|node| has_written && self.proven_cut.contains(*node)).cloned());
        if let Some(node) = what.told_off().filter(|node| self.off.contains_key(*node)) {
            self.read_off_at.insert(node.to_owned(), at);
        }
        match what {
            What::NodeCreated { node } => {
                self.nodes.insert(node.clone());
            }
            What::KubeletStopped { node } => self.lose(node, Ailment::Kubelet, at),
            What::NetworkLost { node } => self.lose(node, Ailment::Network, at),
            What::MachineHung { node } => self.lose(node, Ailment::Kernel, at),
            What::KubeletStarted { node, boot } => {
                self.mend(node, Ailment::Kubelet, at);
                // A machine that hung and was reset has another kernel now.
                self.mend(node, Ailment::Kernel, at);
                self.crashed.remove(node);
                self.said_off.remove(node);
                if self.is_new_boot(node, boot) {
                    self.proven_cut.remove(node);
                    self.released.remove(node);
                    self.undone.remove(node);
                }
                self.boots.insert(node.clone(), boot.clone());
                self.ended.remove(node);
            }
            What::NetworkBack { node } => self.mend(node, Ailment::Network, at),
            What::KernelDumpStarted { node } => {
                self.lose(node, Ailment::Kernel, at);
                self.lose(node, Ailment::Kubelet, at);
                self.crashed.insert(node.clone(), at);
                self.ended.insert(node.clone());
            }
            What::MachineResumed { node } | What::KernelDumpWritten { node } => {
                self.mend(node, Ailment::Kernel, at);
            }
            What::PowerChanged { node, power: Power::Off, cause } => {
                // Until a kubelet starts again, whoever switches the machine on.
                self.lose(node, Ailment::Kubelet, at);
                self.mend(node, Ailment::Kernel, at);
                self.ended.insert(node.clone());
                self.off.insert(node.clone(), *cause);
                self.off_at.insert(node.clone(), at);
                self.undone.remove(node);
                self.on_behind_our_back.remove(node);
            }
            What::PowerChanged { node, power: Power::On, cause } => {
                self.off.remove(node);
                self.crashed.remove(node);
                if *cause != PowerCause::Command {
                    self.on_behind_our_back.insert(node.clone(), at);
                }
            }
            What::PlugChanged { node, device, plug, power, cause } => {
                let plug = (device.clone(), *plug);
                match power {
                    Power::Off => self.dark_plugs.insert(plug, (node.clone(), *cause)),
                    Power::On => self.dark_plugs.remove(&plug),
                };
            }
            What::InstanceTerminated { node } => {
                self.gone.insert(node.clone());
            }
            What::TaintAdded { node, key, effect, by } => {
                if by == PEOPLE && key == OUT_OF_SERVICE {
                    self.released_by_people.insert(node.clone());
                }
                self.taints.insert((node.clone(), key.clone(), effect.clone()), by.clone());
            }
            What::TaintRemoved { node, key, effect, .. } => {
                self.taints.remove(&(node.clone(), key.clone(), effect.clone()));
            }
            What::Cordoned { node, by } => {
                self.cordoned.insert(node.clone(), by.clone());
                self.cordoned_since.insert(node.clone(), at);
            }
            What::Uncordoned { node, .. } => {
                self.cordoned.remove(node);
                self.cordoned_since.remove(node);
            }
            What::IntentRecorded { node, action, .. } if action == "on" => {
                self.on_intended_at.insert(node.clone(), at);
            }
            What::NodeDeleted { node, by } => {
                if by == PEOPLE && self.kept_away.contains(node) {
                    self.deleted_cut_at.insert(node.clone(), at);
                }
                self.nodes.remove(node);
                self.taints.retain(|(of, _, _), _| of != node);
                self.cordoned.remove(node);
                self.cordoned_since.remove(node);
                self.gave_away(node, by);
            }
            What::PodGone { node, by, .. } | What::DetachRequested { node, by, .. } => {
                self.gave_away(node, by);
            }
            What::PodScheduled { uid, .. } => {
                self.bound_at.insert(uid.clone(), at);
            }
            What::WriterStarted { uid, node, .. } => {
                self.wrote.insert(uid.clone());
                self.writing.entry(uid.clone()).or_default().push(node.clone());
            }
            What::WriterStopped { uid, .. } => {
                let nodes = self.writing.entry(uid.clone()).or_default();
                nodes.pop();
                if nodes.is_empty() {
                    self.writing.remove(uid);
                }
            }
            What::StorageCut { node } => {
                self.kept_away.insert(node.clone());
                self.on_intended_at.remove(node);
                self.undone.remove(node);
            }
            What::StorageBack { node } => {
                self.kept_away.remove(node);
                self.let_back_at.insert(node.clone(), at);
                if self.was_deleted_meanwhile(node) {
                    self.released_by_people.insert(node.clone());
                }
                let by_people = self.is_let_back_by_people(at);
                // What is off writes nothing.
                let may_write = !self.off.contains_key(node);
                if by_people && may_write && self.released.contains(node) {
                    self.undone.insert(node.clone(), at);
                }
            }
            What::Edited { object, by } if by == PEOPLE && object.starts_with(NETWORK_FENCE) => {
                self.edited_fence_at = Some(at);
            }
            // Incidents that are forgotten know of no release either, and what writes may be bound elsewhere again.
            What::Edited { object, .. } if object == ETCD => {
                self.released_by_people.extend(self.writing.values().flatten().cloned());
                self.released.clear();
                self.proven_cut.clear();
                self.undone.clear();
            }
            What::FenceState { node, fence, state, .. } => {
                self.incident.insert(node.clone(), fence.clone());
                self.states.insert(fence.clone(), state.clone());
            }
            What::NodeReady { node, status, .. } => {
                self.ready.insert(node.clone(), status.clone());
            }
            What::ParkedRecorded { node, reason, left_off, .. } => {
                self.has_closed_devices |= reason == "OnFailed";
                self.told_left_off.remove(node);
                if *left_off > 0 {
                    self.told_left_off.insert(node.clone());
                }
            }
            What::DeviceAwaited { fence, .. } => {
                self.awaited.insert(fence.clone());
            }
            What::NodeLocked { node, lasts, .. } => {
                self.locked.insert(node.clone(), (at, after(at, Duration::from_secs(*lasts))));
            }
            What::Edited { object, .. } if object.starts_with("RemedyPause ") => {
                // Made once a run, and taken away.
                self.paused_since = if self.paused_since.is_some() { None } else { Some(at) };
            }
            What::Edited { object, .. } if object.starts_with(MAINTENANCE) => {
                let node = object.strip_prefix(MAINTENANCE).unwrap_or_default();
                // Likewise.
                if self.maintained_since.remove(node).is_none() {
                    self.maintained_since.insert(node.to_owned(), at);
                }
            }
            What::OperatorCommand { fence, command, .. } if command == "approve" => {
                self.approved.entry(fence.clone()).or_insert(at);
            }
            What::PolicyMode { policy, mode } => {
                self.modes.insert(policy.clone(), mode.clone());
                let acts = self.modes.values().any(|mode| mode == "enforce");
                self.idle_since = if acts { None } else { self.idle_since.or(Some(at)) };
            }
            What::ProofRecorded { node, grade, .. }
                if grade == PARTITION && self.is_unheard(node, at) =>
            {
                self.partitioned.insert(node.clone(), at);
            }
            What::ProofRecorded { node, grade, .. }
                if grade == OPERATOR_CONFIRMED && !self.off.contains_key(node) =>
            {
                self.said_off.insert(node.clone());
                self.released_by_people.insert(node.clone());
            }
            What::ProofRecorded { node, grade, .. } if grade == STORAGE_FENCED => {
                self.storage_cut.insert(node.clone(), at);
            }
            What::LeaderChanged { process } => self.leader.clone_from(process),
            _ => {}
        }
    }

    /// Whether a person wants this node left as it is.
    pub fn is_kept_by_people(&self, node: &str) -> bool {
        let is_cordoned = self.cordoned.get(node).is_some_and(|by| by == PEOPLE);
        is_cordoned || self.maintained_since.contains_key(node) || self.paused_since.is_some()
    }

    /// Whether the storage lets a node back now because a person edited a NetworkFence.
    pub fn is_let_back_by_people(&self, at: Time) -> bool {
        self.edited_fence_at.is_some_and(|edit| between(edit, at) <= LET_BACK)
    }

    /// Since when a node's pods may be given back because drivers check; what is decided while it is not
    /// heard is carried out a little later.
    pub fn partitioned_at(&self, node: &str, at: Time) -> Option<&Time> {
        let is_back = |since: &Time| between(*since, at) > HEARD_AFTER;
        self.partitioned.get(node).filter(|_| !self.well_since.get(node).is_some_and(is_back))
    }

    /// Whether a node is lost, or was so lately that nobody may have heard it since.
    pub fn is_unheard(&self, node: &str, at: Time) -> bool {
        let back = self.well_since.get(node);
        self.lost.contains_key(node) || back.is_some_and(|back| between(*back, at) <= HEARD_AFTER)
    }

    /// Whether a kubelet that starts does so in another boot than the last one that was known.
    pub fn is_new_boot(&self, node: &str, boot: &str) -> bool {
        self.ended.contains(node) || self.boots.get(node).is_some_and(|last| last != boot)
    }

    fn lose(&mut self, node: &str, ailment: Ailment, at: Time) {
        if !self.is_unheard(node, at) {
            self.unheard_since.insert(node.to_owned(), at);
        }
        self.ailments.entry(node.to_owned()).or_default().insert(ailment);
        self.lost.entry(node.to_owned()).or_insert(at);
        self.well_since.remove(node);
    }

    fn mend(&mut self, node: &str, ailment: Ailment, at: Time) {
        let Some(ailments) = self.ailments.get_mut(node) else { return };
        ailments.remove(&ailment);
        if ailments.is_empty() && self.lost.remove(node).is_some() {
            self.well_since.insert(node.to_owned(), at);
        }
    }

    /// Whether people deleted a Node while its storage was on its way back.
    fn was_deleted_meanwhile(&self, node: &str) -> bool {
        let intended_at = self.on_intended_at.get(node);
        intended_at.zip(self.deleted_cut_at.get(node)).is_some_and(|(on, deleted)| on < deleted)
    }

    fn gave_away(&mut self, node: &str, by: &str) {
        // What cannot write is given away to nobody, until somebody lets it back.
        if by == PEOPLE && !self.kept_away.contains(node) {
            self.released_by_people.insert(node.to_owned());
        }
    }

    /// Whether a node that is there is lost for so long.
    pub fn is_lost_for(&self, node: &str, long: Duration, at: Time) -> bool {
        let since = self.lost.get(node).filter(|_| self.nodes.contains(node));
        since.is_some_and(|since| between(*since, at) > long)
    }

    /// Who put this taint on the node, if it is there.
    pub fn tainted_by(&self, node: &str, key: &str, effect: &str) -> Option<&str> {
        let taint = (node.to_owned(), key.to_owned(), effect.to_owned());
        self.taints.get(&taint).map(String::as_str)
    }

    /// Whether the node carries our out-of-service taint.
    pub fn is_out_of_service_by_us(&self, node: &str) -> bool {
        let is_ours =
            |taint: &(String, String, String)| taint.0 == node && taint.1 == OUT_OF_SERVICE;
        self.taints.iter().any(|(taint, by)| is_ours(taint) && by == CLIENT)
    }

    /// Whether the node carries a taint of ours.
    pub fn is_quarantined(&self, node: &str) -> bool {
        self.taints.keys().any(|(of, key, _)| of == node && key.starts_with(OURS))
    }

    /// The state of a node's latest incident.
    pub fn state_of(&self, node: &str) -> Option<&str> {
        self.states.get(self.incident.get(node)?).map(String::as_str)
    }
}

/// The node that a fact says node-remedy gives something of away.
pub fn released_by_us(what: &What) -> Option<&str> {
    match what {
        What::PodGone { node, by, .. } | What::DetachRequested { node, by, .. } if by == CLIENT => {
            Some(node)
        }
        // Whoever owns it replaces it.
        What::PodPhase { node, phase, by, .. } if by == CLIENT && phase == "Failed" => Some(node),
        What::TaintAdded { node, key, by, .. } if by == CLIENT && key == OUT_OF_SERVICE => {
            Some(node)
        }
        _ => None,
    }
}
