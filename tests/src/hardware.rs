//! What a machine is below its kubelet: power, boots, and containers that write.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;

use crate::ipmi::{Guid, Power, PowerFile};
use crate::storage::{Storage, Write};
use crate::time::{Clock, Task};

/// How often a container writes to each of its volumes.
pub(crate) const WRITE_EVERY: Duration = Duration::from_millis(50);

/// How often the machine notices its own power: shorter than any off that a BMC makes.
pub(crate) const LOOK_AT_POWER_EVERY: Duration = Duration::from_millis(20);

/// How fast a machine and its kubelet are.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How often the kubelet renews its Lease, give or take 4 %; a real one every 10 s.
    pub renew_every: Duration,
    /// What the Lease promises: four renewals, as in a real one.
    pub lease_duration_s: i32,
    /// From power on to the kubelet's start; a real machine takes more than 5 s.
    pub boot: Duration,
    /// From the kubelet's start to its first sync: so long old pods run unasked.
    pub first_sync: Duration,
    /// From mounted to Running.
    pub start_pod: Duration,
    /// From asked to end to ended.
    pub stop_pod: Duration,
    /// What a pod that does not restart runs before it succeeds.
    pub finish_pod: Duration,
}

impl Pace {
    /// As a real node with default settings, on hardware that boots quickly.
    pub const REAL: Self = Self {
        renew_every: Duration::from_secs(10),
        lease_duration_s: 40,
        boot: Duration::from_secs(5),
        first_sync: Duration::from_millis(500),
        start_pod: Duration::from_millis(300),
        stop_pod: Duration::from_millis(100),
        finish_pod: Duration::from_secs(1),
    };
    /// A kubelet that renews every second, for tests that wait for a loss to be noticed.
    pub const QUICK: Self =
        Self { renew_every: Duration::from_secs(1), lease_duration_s: 4, ..Self::REAL };
}

/// What makes one machine.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The node's name.
    pub name: String,
    /// The machine's identity, as its firmware tells kubelet and BMC alike.
    pub guid: Guid,
    /// Its power.
    pub power: PowerFile,
    /// How fast it is.
    pub pace: Pace,
    /// Labels beside the host name.
    pub labels: BTreeMap<String, String>,
    /// What its node's `spec.providerID` is.
    pub provider_id: String,
}

impl Plan {
    /// A machine that has no BMC: its power is on and stays on.
    #[must_use]
    pub fn without_bmc(name: &str, pace: Pace, labels: BTreeMap<String, String>) -> Self {
        let (guid, power) = (Guid::fresh(), PowerFile::always_on());
        let provider_id = format!("metal://{name}");
        Self { name: name.to_owned(), guid, power, pace, labels, provider_id }
    }
}

/// What the kubelet sees of its machine.
pub(crate) struct Hardware {
    pub(crate) plan: Plan,
    pub(crate) client: Client,
    pub(crate) storage: Storage,
    pub(crate) clock: Clock,
    pub(crate) state: Mutex<State>,
    pub(crate) kubelet_is_wanted: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) boot_id: Option<String>,
    pub(crate) containers: BTreeMap<String, Container>,
    /// What ran when power went: a booting node starts it again.
    remembered: BTreeMap<String, PodPlan>,
}

#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) plan: PodPlan,
    started_ms: u64,
    _writer: Task,
}

/// What a node needs to know to run a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodPlan {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Handles of its volumes.
    pub(crate) volumes: Vec<String>,
}

impl Hardware {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a pod's containers, if each volume can be mounted here. Says whether they run.
    pub(crate) fn start_container(&self, plan: &PodPlan) -> bool {
        let node = &self.plan.name;
        if !plan.volumes.iter().all(|volume| self.storage.is_attached(volume, node)) {
            return false;
        }
        let mut state = self.state();
        let Some(boot_id) = state.boot_id.clone() else { return false };
        let writer = Writer {
            node: node.clone(),
            pod: plan.clone(),
            boot_id,
            power: self.plan.power.clone(),
            storage: self.storage.clone(),
            clock: self.clock,
        };
        let container = Container {
            plan: plan.clone(),
            started_ms: self.clock.now_ms(),
            _writer: Task::spawn(writer.run()),
        };
        state.containers.entry(plan.uid.clone()).or_insert(container);
        true
    }

    /// Ends a pod's containers.
    pub(crate) fn stop_container(&self, uid: &str) {
        self.state().containers.remove(uid);
    }

    /// How long a pod has run here, if it does.
    pub(crate) fn running_for(&self, uid: &str) -> Option<Duration> {
        let started_ms = self.state().containers.get(uid)?.started_ms;
        Some(Duration::from_millis(self.clock.now_ms().saturating_sub(started_ms)))
    }

    /// The pods that run here.
    pub(crate) fn running(&self) -> Vec<PodPlan> {
        self.state().containers.values().map(|container| container.plan.clone()).collect()
    }

    pub(crate) async fn power_is(&self, wanted: Power) {
        let mut ticks = tokio::time::interval(LOOK_AT_POWER_EVERY);
        while self.plan.power.read() != wanted {
            ticks.tick().await;
        }
    }

    pub(crate) fn begin_boot(&self) -> String {
        let boot_id = random_uuid();
        self.state().boot_id = Some(boot_id.clone());
        self.kubelet_is_wanted.send_replace(true);
        boot_id
    }

    pub(crate) fn lose_power(&self) {
        let mut state = self.state();
        state.boot_id = None;
        let containers = std::mem::take(&mut state.containers);
        let plans = containers.into_iter().map(|(uid, container)| (uid, container.plan));
        state.remembered.extend(plans);
    }

    /// A booting node starts what it ran before, whatever the cluster has decided since.
    pub(crate) fn start_remembered(&self) {
        let remembered = std::mem::take(&mut self.state().remembered);
        for plan in remembered.values() {
            self.start_container(plan);
        }
    }
}

/// A container's only work: to write to its volumes while its machine has power.
pub(crate) struct Writer {
    pub(crate) node: String,
    pub(crate) pod: PodPlan,
    pub(crate) boot_id: String,
    pub(crate) power: PowerFile,
    pub(crate) storage: Storage,
    pub(crate) clock: Clock,
}

impl Writer {
    pub(crate) async fn run(self) {
        let mut ticks = tokio::time::interval(WRITE_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // Looked at for each write: the machine's own look may be 20 ms old.
            if self.power.read() == Power::Off {
                return;
            }
            if self.storage.is_kept_away(&self.node) {
                continue;
            }
            for volume in &self.pod.volumes {
                let write = Write {
                    pod: self.pod.name.clone(),
                    boot_id: self.boot_id.clone(),
                    at_ms: self.clock.now_ms(),
                    uid: self.pod.uid.clone(),
                };
                if let Err(failure) = self.storage.append(volume, &write) {
                    eprintln!("{}: failed to write to {volume}: {failure:#}", self.pod.name);
                }
            }
        }
    }
}

/// The kernel's own source of boot ids.
pub(crate) fn random_uuid() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid");
    text.map(|uuid| uuid.trim().to_owned()).unwrap_or_default()
}
