//! The world: actors, their queue, and virtual time.
//!
//! Synchronous and single-threaded. Whoever drives it says how far time goes and, in
//! between, talks to the API server and the BMCs as any client would. The same scenario
//! and the same calls at the same times give the same facts.

mod device;
mod rack;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use node_remedy_devices::ec2;
use node_remedy_devices::ec2::{Reply, Request};

use crate::actors::attach_detach::AttachDetach;
use crate::actors::attacher::Attacher;
use crate::actors::csi_addons::CsiAddons;
use crate::actors::node_lifecycle::NodeLifecycle;
use crate::actors::pod_gc::PodGc;
use crate::actors::taint_eviction::TaintEviction;
use crate::actors::{Role, jobs, reaction, scheduler, stateful_set};
use crate::agenda::{Actor, Agenda};
use crate::api::object::{Key, condition_status, text};
use crate::api::{ApiServer, Change, Kind};
use crate::cloud::Cloud;
use crate::facts::{ETCD, Fact, Facts, Power, What};
use crate::happen::PEOPLE;
use crate::machine::node_status::KUBELET_PORT;
use crate::machine::{Machine, Peer, Sent};
use crate::scenario::{ControllerEvent, Etcd, Event, Fault, Scenario, Trigger};
use crate::stage::{LEADER_LEASE, LEADER_NAMESPACE, Stage};
use crate::time::{START, Time, after};
use crate::timings::Timings;
use crate::writers::{Writer, Writers};
use crate::{happen, observer, setup};
use device::{Device, devices};

/// How long after a change in the API a kubelet acts on it.
const KUBELET_REACTION: Duration = Duration::from_millis(20);

/// A cluster in virtual time.
#[derive(Debug)]
pub struct World {
    api: ApiServer,
    facts: Facts,
    writers: Writers,
    timings: Timings,
    now: Time,
    agenda: Agenda,
    turns: u64,
    faults: Vec<Fault>,
    /// When the last of them came to pass.
    happened: Time,
    /// Faults that wait for a fact.
    waiting: Vec<Waiting>,
    /// So many facts were held against what waits for them.
    heeded: usize,
    /// What befell processes of node-remedy and was not told them yet.
    applied_fault: Vec<AppliedFault>,
    /// What machines sent to node-remedy and nobody took yet.
    sent: Vec<Sent>,
    machines: Vec<Machine>,
    by_name: BTreeMap<String, usize>,
    by_address: BTreeMap<SocketAddr, usize>,
    /// PDUs and switches.
    rack: Vec<Device>,
    cloud: Cloud,
    control_plane: ControlPlane,
}

/// A fault that waits for a fact.
#[derive(Debug)]
struct Waiting {
    number: usize,
    /// So many such facts are still to come.
    left: usize,
}

/// Something that befell node-remedy.
#[derive(Debug, Clone)]
pub struct AppliedFault {
    /// When.
    pub at: Time,
    /// What.
    pub what: ControllerEvent,
    /// The process that led then; empty if none did.
    pub leader: String,
}

/// The actors that remember something between their turns.
#[derive(Debug)]
struct ControlPlane {
    node_lifecycle: NodeLifecycle,
    taint_eviction: TaintEviction,
    pod_gc: PodGc,
    attach_detach: AttachDetach,
    attacher: Attacher,
    csi_addons: CsiAddons,
}

impl World {
    /// The cluster of a scenario at its first moment: machines run, kubelets are about
    /// to register, pods are about to be made.
    pub fn new(scenario: &Scenario) -> Self {
        let (seed, now) = (scenario.seed, START);
        let mut api = ApiServer::new(seed, now);
        api.keep_changes();
        setup::objects(&mut api, scenario);
        let mut attach_detach = AttachDetach::new(seed, now);
        attach_detach.adopt(&api);
        let nodes = scenario.nodes.iter().enumerate();
        let machines: Vec<Machine> =
            nodes.map(|(number, node)| setup::machine(scenario, number, node, now)).collect();
        let numbered = || machines.iter().enumerate();
        let by_name =
            numbered().map(|(number, machine)| (machine.spec.name.clone(), number)).collect();
        let by_address = numbered()
            .filter_map(|(number, machine)| Some((machine.bmc.as_ref()?.0, number)))
            .collect();
        let rack = devices(scenario);
        let mut agenda = Agenda::default();
        let mut waiting = Vec::new();
        for (number, fault) in scenario.faults.iter().enumerate() {
            match &fault.when {
                None => agenda.wake(Actor::Fault(number), after(now, fault.at)),
                Some(trigger) => waiting.push(Waiting { number, left: trigger.time }),
            }
        }
        for number in 0..machines.len() {
            agenda.wake(Actor::Machine(number), now);
        }
        for role in Role::ALL {
            agenda.wake(Actor::Role(role), now);
        }
        Self {
            api,
            facts: Facts::default(),
            writers: Writers::default(),
            timings: scenario.timings.clone(),
            now,
            agenda,
            turns: 0,
            faults: scenario.faults.clone(),
            happened: START,
            waiting,
            heeded: 0,
            applied_fault: Vec::new(),
            sent: Vec::new(),
            machines,
            by_name,
            by_address,
            rack,
            cloud: Cloud::of(scenario),
            control_plane: ControlPlane {
                node_lifecycle: NodeLifecycle::new(now),
                taint_eviction: TaintEviction::default(),
                pod_gc: PodGc::new(seed, now),
                attach_detach,
                attacher: Attacher::default(),
                csi_addons: CsiAddons::default(),
            },
        }
    }

    /// What time it is.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When something will next happen by itself.
    pub fn next_at(&self) -> Option<Time> {
        if self.api.has_changes() { Some(self.now) } else { self.agenda.next_at() }
    }

    /// Lets time pass up to and including `to`. A time that is past changes nothing but
    /// lets the actors take note of what clients did.
    pub fn advance(&mut self, to: Time) {
        self.tell();
        while let Some((at, actor)) = self.agenda.take(to) {
            self.now = self.now.max(at);
            self.api.set_now(self.now);
            self.turns += 1;
            if let Some(next) = self.turn(actor) {
                // A moment later at the earliest: time must pass for the world to end.
                self.agenda.wake(actor, next.max(Time(self.now.0.saturating_add(1))));
            }
            self.tell();
        }
        self.now = self.now.max(to);
        self.api.set_now(self.now);
    }

    /// Notes what somebody else saw happen.
    pub fn note(&mut self, what: What) {
        self.facts.note(self.now, what);
    }

    /// The API server, for clients. Their writes are stamped with [`Self::now`].
    pub fn api(&mut self) -> &mut ApiServer {
        &mut self.api
    }

    /// A datagram that arrives at `to` at `now`, and the answers with the time that each
    /// takes. Nobody answers at an address without a device.
    pub fn datagram(
        &mut self,
        to: SocketAddr,
        from: Peer<'_>,
        data: &[u8],
        now: Time,
    ) -> Vec<(Duration, Vec<u8>)> {
        self.advance(now);
        let Some(number) = self.by_address.get(&to).copied() else {
            return self.device_datagram(to, from, data);
        };
        let replies =
            self.with_machine(number, |machine, stage| machine.datagram(stage, from, data));
        // Power may have changed, or may be going to.
        self.agenda.wake(Actor::Machine(number), self.now);
        self.heed_facts();
        replies.unwrap_or_default()
    }

    /// A request over HTTP that arrives at `to` at `now`, from a process of node-remedy, and what comes
    /// of it; none where nobody listens.
    pub fn http(
        &mut self,
        to: SocketAddr,
        by: &str,
        request: &Request<'_>,
        now: Time,
    ) -> Option<Reply> {
        self.advance(now);
        let asked = match self.cloud.read(to, request, now)? {
            Ok(asked) => asked,
            Err(reply) => return Some(reply),
        };
        let Some(number) = self.cloud.machine(&asked) else { return Some(ec2::no_such_instance()) };
        let reply =
            self.with_machine(number, |machine, stage| machine.cloud_request(stage, by, &asked));
        self.agenda.wake(Actor::Machine(number), self.now);
        self.heed_facts();
        reply
    }

    /// The address of a name.
    pub fn resolve(&self, host: &str) -> Option<IpAddr> {
        self.cloud.resolve(host)
    }

    /// What truly happened so far, in order.
    pub fn facts(&self) -> &[Fact] {
        self.facts.all()
    }

    /// Who writes to a PersistentVolume now.
    pub fn writers(&self, volume: &str) -> &[Writer] {
        self.writers.of(volume)
    }

    /// Whether the node's machine has power; none if there is no such machine.
    pub fn power(&self, node: &str) -> Option<Power> {
        Some(self.machine(node)?.power())
    }

    /// The id of the machine's current or last boot.
    pub fn boot(&self, node: &str) -> Option<&str> {
        Some(self.machine(node)?.boot())
    }

    /// Whether the kubelet of a node of this address takes connections.
    pub fn takes_connections(&self, to: SocketAddr) -> bool {
        let is_there = |machine: &&Machine| machine.spec.address == to.ip().to_string();
        let machine = self.machines.iter().find(is_there);
        to.port() == KUBELET_PORT && machine.is_some_and(Machine::takes_connections)
    }

    /// Where the node's BMC listens.
    pub fn bmc_address(&self, node: &str) -> Option<SocketAddr> {
        Some(self.machine(node)?.bmc.as_ref()?.0)
    }

    /// Sessions open on the node's BMC now; a client that is done leaves none.
    pub fn bmc_sessions(&self, node: &str) -> Option<usize> {
        Some(self.machine(node)?.bmc.as_ref()?.1.open_sessions())
    }

    /// Whether nothing is wrong and nothing is to come: machines run and their nodes are ready, no
    /// incident is open, no fault has a time, and nothing happened for so long.
    pub fn is_calm(&self, since: Duration) -> bool {
        let latest = self.facts.all().last().map_or(START, |fact| fact.at).max(self.happened);
        after(latest, since) <= self.now
            && !(0..self.faults.len()).any(|number| self.agenda.has(Actor::Fault(number)))
            && self.rack.iter().all(Device::is_settled)
            && self.machines.iter().filter(|machine| machine.is_there()).all(|machine| {
                let node = self.api.peek(&Key::cluster(Kind::Node, &machine.spec.name));
                machine.is_well()
                    && node.is_some_and(|node| condition_status(node, "Ready") == "True")
            })
            && self.api.all(Kind::NodeFence).all(|fence| text(fence, "/status/status") == "Final")
    }

    /// How many turns the actors have had: the measure of a simulation's speed.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// How many writes the API server has committed.
    pub fn writes(&self) -> u64 {
        self.api.version()
    }

    fn machine(&self, node: &str) -> Option<&Machine> {
        self.machines.get(*self.by_name.get(node)?)
    }

    fn turn(&mut self, actor: Actor) -> Option<Time> {
        match actor {
            Actor::Fault(number) => {
                self.happen(number);
                None
            }
            Actor::Machine(number) => self.with_machine(number, Machine::run).flatten(),
            Actor::Device(number) => self.run_device(number),
            Actor::Role(role) => {
                let mut stage = Stage {
                    api: &mut self.api,
                    facts: &mut self.facts,
                    writers: &mut self.writers,
                    timings: &self.timings,
                    now: self.now,
                    sent: &mut self.sent,
                };
                self.control_plane.run(role, &mut stage)
            }
        }
    }

    /// What befell processes of node-remedy since the last time.
    pub fn take_applied_faults(&mut self) -> Vec<AppliedFault> {
        std::mem::take(&mut self.applied_fault)
    }

    /// What machines sent to node-remedy since the last time.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// Gives what waited for a fact its turn.
    fn heed_facts(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let Some(new) = self.facts.all().get(self.heeded..) else { return };
        self.heeded = self.heeded.saturating_add(new.len());
        for fact in new {
            for waiting in &mut self.waiting {
                let Some(fault) = self.faults.get(waiting.number) else { continue };
                let means = |trigger: &Trigger| trigger.pattern.means(&fact.what);
                if waiting.left > 0 && fault.when.as_ref().is_some_and(means) {
                    waiting.left -= 1;
                    if waiting.left == 0 {
                        let at = after(fact.at, fault.at);
                        self.agenda.wake(Actor::Fault(waiting.number), at);
                    }
                }
            }
        }
        self.waiting.retain(|waiting| waiting.left > 0);
    }

    fn happen(&mut self, number: usize) {
        let Some(fault) = self.faults.get(number).cloned() else { return };
        self.happened = self.now;
        let Event::OfController(what) = fault.what else { return self.apply_fault(&fault.what) };
        let key = Key::within(Kind::Lease, LEADER_NAMESPACE, LEADER_LEASE);
        let lease = self.api.peek(&key);
        let leader = lease.map(|lease| text(lease, "/spec/holderIdentity").to_owned());
        let leader = leader.unwrap_or_default();
        self.applied_fault.push(AppliedFault { at: self.now, what, leader });
    }

    /// Lets something hit the cluster now, beside what its scenario says.
    pub fn apply_fault(&mut self, what: &Event) {
        self.apply_to_devices(what);
        let machine = happen::to_machine(what).and_then(|node| self.by_name.get(node).copied());
        if let Some(number) = machine {
            self.with_machine(number, |machine, stage| happen::apply_fault(machine, stage, what));
            self.agenda.wake(Actor::Machine(number), self.now);
            if let Event::InstanceTerminated(node) = what {
                self.replace(node);
            }
            return;
        }
        let before = self.api.version();
        happen::by_people(&mut self.api, self.now, what);
        if let Event::Edit { key, .. } | Event::Remove { key } = what
            && self.api.version() != before
        {
            let object = format!("{} {}", key.kind.name(), key.name);
            self.facts.note(self.now, What::Edited { object, by: PEOPLE.to_owned() });
        }
        if *what == Event::Etcd(Etcd::Restored) && self.api.version() != before {
            let object = ETCD.to_owned();
            self.facts.note(self.now, What::Edited { object, by: PEOPLE.to_owned() });
        }
    }

    /// Launches what replaces a node's instance.
    fn replace(&mut self, node: &str) {
        for number in self.cloud.replacements(node) {
            if let Some(machine) = self.machines.get_mut(number) {
                machine.launch(self.now);
                self.agenda.wake(Actor::Machine(number), self.now);
            }
        }
    }

    fn with_machine<T>(
        &mut self,
        number: usize,
        act: impl FnOnce(&mut Machine, &mut Stage<'_>) -> T,
    ) -> Option<T> {
        let machine = self.machines.get_mut(number)?;
        let mut stage = Stage {
            api: &mut self.api,
            facts: &mut self.facts,
            writers: &mut self.writers,
            timings: &self.timings,
            now: self.now,
            sent: &mut self.sent,
        };
        Some(act(machine, &mut stage))
    }

    /// Tells everybody who watches what was written since the last time.
    fn tell(&mut self) {
        for change in self.api.take_changes() {
            observer::note(&mut self.facts, &change);
            for role in Role::ALL {
                if let Some(latency) = reaction(role, change.key.kind) {
                    self.agenda.wake(Actor::Role(role), after(change.at, latency));
                }
            }
            if let Some(number) = concerned(&change).and_then(|node| self.by_name.get(node)) {
                self.agenda.wake(Actor::Machine(*number), after(change.at, KUBELET_REACTION));
            }
        }
        self.heed_facts();
    }
}

impl ControlPlane {
    fn run(&mut self, role: Role, stage: &mut Stage<'_>) -> Option<Time> {
        match role {
            Role::NodeLifecycle => self.node_lifecycle.run(stage),
            Role::TaintEviction => self.taint_eviction.run(stage),
            Role::PodGc => Some(self.pod_gc.run(stage)),
            Role::AttachDetach => self.attach_detach.run(stage),
            Role::Attacher => self.attacher.run(stage),
            Role::CsiAddons => self.csi_addons.run(stage),
            Role::Scheduler => {
                scheduler::run(stage);
                None
            }
            Role::Jobs => jobs::run(stage),
            Role::StatefulSets => {
                stateful_set::run(stage);
                None
            }
        }
    }
}

/// The node whose kubelet watches the changed object.
fn concerned(change: &Change) -> Option<&str> {
    match change.key.kind {
        Kind::Node => Some(&change.key.name),
        Kind::Pod => Some(text(&change.object, "/spec/nodeName")),
        Kind::Namespace
        | Kind::ConfigMap
        | Kind::Secret
        | Kind::CoreEvent
        | Kind::Event
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::Lease
        | Kind::StatefulSet
        | Kind::DaemonSet
        | Kind::Job
        | Kind::PodDisruptionBudget
        | Kind::VolumeAttachment
        | Kind::CsiNode
        | Kind::CsiDriver
        | Kind::RemedyConfiguration
        | Kind::FenceConfiguration
        | Kind::FencePlugin
        | Kind::NodeFence
        | Kind::RemedyBudget
        | Kind::RemedyPause
        | Kind::NodeMaintenance
        | Kind::NetworkFence => None,
    }
}
