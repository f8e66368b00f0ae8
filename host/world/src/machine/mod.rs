//! A machine: power and its feeds, boots, its network, its BMC, and what runs on it.
//!
//! ```text
//!          power on            boot time            kubelet starts
//!   off ─────────────▶ booting ─────────▶ running ◀───────────────▶ kubelet stopped
//!    ▲                                      │  ▲
//!    └────────── power off ─────────────────┤  └── resumes ── hung
//!                                           └── hangs ─────────▶
//! ```
//! Processes live from their start to the loss of power; the death of the kubelet or of
//! the network does not end them. That is the whole problem that fencing solves.
//!
//! A machine on outlets has mains while any of them is on. Without mains it is off and its BMC dead;
//! when they come back it starts, whatever it was before, as machines that are fenced by their
//! outlets have to. A port that is down takes its network and nothing else: its storage is reached by
//! another path, so its processes write on.

mod cloud;
mod dump;
mod kubelet;
pub(crate) mod node_status;
mod processes;
pub(crate) mod spec;

use std::net::SocketAddr;
use std::time::Duration;

use node_remedy_devices::bmc;
use node_remedy_devices::bmc::Bmc;
use node_remedy_devices::ec2::Instance;

use self::dump::Dump;
use self::kubelet::Kubelet;
use self::processes::Processes;
use crate::facts::{Power, PowerCause, What};
use crate::machine::spec::{Network, Spec};
use crate::rng::Rng;
use crate::scenario::DumpSpec;
use crate::stage::{Stage, sooner};
use crate::time::{Time, after};

pub use crate::sent::Sent;
/// A machine.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) spec: Spec,
    pub(crate) bmc: Option<(SocketAddr, Bmc)>,
    /// What a cloud keeps of it, if it is an instance.
    pub(crate) cloud: Option<Instance>,
    power: Power,
    feeds: Vec<Power>,
    kernel: Kernel,
    /// What its crash kernel does while [`Kernel::Dumps`].
    dump: Option<Dump>,
    network: Network,
    /// Whether the port of its switch carries its traffic.
    port: Power,
    /// Whether what lies between is whole.
    cable: Network,
    boot: String,
    boots: Rng,
    kubelet: Option<Kubelet>,
    processes: Processes,
}

/// What the operating system does; means nothing without power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    Booting {
        until: Time,
    },
    Runs,
    Hangs,
    /// It crashed, and another one writes its memory to a disk.
    Dumps,
}

impl Machine {
    /// A machine that has run for a while, its kubelet about to register.
    pub(crate) fn running(
        spec: Spec,
        bmc: Option<(SocketAddr, Bmc)>,
        seed: u64,
        now: Time,
    ) -> Self {
        let mut boots = Rng::named(seed, &format!("boots of {}", spec.name));
        let boot = boots.uuid();
        let kubelet = Kubelet::restart(&spec.name, seed, now);
        let feeds = vec![Power::On; spec.feeds];
        Self {
            spec,
            bmc,
            cloud: None,
            power: Power::On,
            feeds,
            kernel: Kernel::Runs,
            dump: None,
            network: Network::Up,
            port: Power::On,
            cable: Network::Up,
            boot,
            boots,
            kubelet: Some(kubelet),
            processes: Processes::default(),
        }
    }

    /// The same machine as an instance of a cloud; one that is still to come has no power yet.
    pub(crate) fn in_cloud(mut self, instance: Instance) -> Self {
        if instance.is_to_come() {
            self.power = Power::Off;
            self.kubelet = None;
        }
        self.cloud = Some(instance);
        self
    }

    /// Whether the machine has power.
    pub(crate) fn power(&self) -> Power {
        self.power
    }

    /// The id of the current boot, or of the last one.
    pub(crate) fn boot(&self) -> &str {
        &self.boot
    }

    /// Whether it runs, can be reached, and nothing that it was told is still to come.
    pub(crate) fn is_well(&self) -> bool {
        let is_up = self.power == Power::On && self.kernel == Kernel::Runs;
        let is_reached = self.network == Network::Up && self.kubelet.is_some();
        let is_settled = self.bmc.as_ref().is_none_or(|(_, bmc)| bmc.next_change().is_none());
        let is_settled = is_settled
            && self.cloud.as_ref().is_none_or(|instance| instance.next_change().is_none());
        is_up && is_reached && is_settled
    }

    /// One turn; says when the next one is due.
    pub(crate) fn run(&mut self, stage: &mut Stage<'_>) -> Option<Time> {
        self.follow_bmc(stage);
        let by_itself = self.bmc.as_ref().and_then(|(_, bmc)| bmc.next_change()).map(Time);
        let by_itself = sooner(by_itself, self.follow_cloud(stage));
        sooner(by_itself, self.run_software(stage))
    }

    /// A datagram for the BMC and its answers.
    pub(crate) fn datagram(
        &mut self,
        stage: &mut Stage<'_>,
        from: Peer<'_>,
        data: &[u8],
    ) -> Vec<(Duration, Vec<u8>)> {
        let has_mains = self.has_mains();
        let Some((_, bmc)) = self.bmc.as_mut().filter(|_| has_mains) else { return Vec::new() };
        let before = bmc.open_sessions();
        let replies = bmc.datagram(stage.now.0, from.line, data);
        let open = bmc.open_sessions();
        for command in bmc.drain_commands() {
            if let Some(what) = said(&self.spec.name, from.process, &command) {
                stage.say(what);
            }
        }
        if open != before {
            let open = u64::try_from(open).unwrap_or(u64::MAX);
            stage.say(What::BmcSessions { node: self.spec.name.clone(), open });
        }
        self.follow_bmc(stage);
        replies
            .into_iter()
            .map(|reply| (Duration::from_millis(reply.delay_ms), reply.bytes))
            .collect()
    }

    /// Somebody in the room presses the button, which does nothing without mains.
    pub(crate) fn switch(&mut self, stage: &mut Stage<'_>, power: Power) {
        if !self.has_mains() {
            return;
        }
        if let Some((_, bmc)) = &mut self.bmc {
            bmc.set_power(stage.now.0, power == Power::On);
            self.follow_bmc(stage);
        } else if let Some(instance) = &mut self.cloud {
            instance.switch_by_hand(stage.now.0, power == Power::On);
            self.follow_cloud(stage);
        } else if power != self.power {
            self.set_power(stage, power, PowerCause::ByHand);
        }
    }

    /// The kubelet process ends; everything else goes on.
    pub(crate) fn stop_kubelet(&mut self, stage: &mut Stage<'_>) {
        if self.kubelet.take().is_some() {
            stage.say(What::KubeletStopped { node: self.spec.name.clone() });
        }
    }

    /// Whether anything feeds it.
    pub(crate) fn has_mains(&self) -> bool {
        self.feeds.is_empty() || self.feeds.contains(&Power::On)
    }

    /// The outlet of its feed of that number, from 0, went on or off.
    pub(crate) fn set_feed(
        &mut self,
        stage: &mut Stage<'_>,
        feed: usize,
        power: Power,
        cause: PowerCause,
    ) {
        let had_mains = self.has_mains();
        if let Some(feed) = self.feeds.get_mut(feed) {
            *feed = power;
        }
        let now = stage.now.0;
        match (had_mains, self.has_mains()) {
            (true, true) | (false, false) => return,
            (true, false) => {
                if let Some((_, bmc)) = &mut self.bmc {
                    bmc.lose_mains();
                }
            }
            (false, true) => {
                if let Some((_, bmc)) = &mut self.bmc {
                    bmc.set_power(now, true);
                    // What it did follows from the mains, and is told as such.
                    drop(bmc.drain_power_events());
                }
            }
        }
        if power != self.power {
            self.set_power(stage, power, cause);
        }
    }

    /// The port of its switch went on or off.
    pub(crate) fn set_port(&mut self, stage: &mut Stage<'_>, power: Power) {
        self.port = power;
        self.follow_network(stage);
    }

    /// The path to the API server goes or comes.
    pub(crate) fn set_network(&mut self, stage: &mut Stage<'_>, network: Network) {
        self.cable = network;
        self.follow_network(stage);
    }

    fn follow_network(&mut self, stage: &mut Stage<'_>) {
        let network = if self.port == Power::On { self.cable } else { Network::Lost };
        if network == self.network {
            return;
        }
        self.network = network;
        let node = self.spec.name.clone();
        stage.say(match network {
            Network::Up => What::NetworkBack { node },
            Network::Lost => What::NetworkLost { node },
        });
        if let Some(kubelet) = self.kubelet.as_mut().filter(|_| network == Network::Up) {
            kubelet.report_soon(after(stage.now, stage.timings.network_back));
        }
    }

    /// Whether its kubelet takes connections from others.
    pub(crate) fn takes_connections(&self) -> bool {
        let is_up = self.power == Power::On && self.kernel == Kernel::Runs;
        is_up && self.network == Network::Up && self.kubelet.is_some()
    }

    /// The kernel stops. Nothing writes while it hangs; it may go on at any time.
    pub(crate) fn hang(&mut self, stage: &mut Stage<'_>) {
        if self.power == Power::On && self.kernel == Kernel::Runs {
            self.kernel = Kernel::Hangs;
            stage.say(What::MachineHung { node: self.spec.name.clone() });
            self.processes.pause(stage, &self.spec.name, &self.boot);
        }
    }

    /// The kernel panics: nothing of it runs any more, the crash kernel writes a dump, then boots.
    pub(crate) fn dump(&mut self, stage: &mut Stage<'_>, spec: &DumpSpec) {
        if self.power == Power::On && self.kernel == Kernel::Runs {
            self.kernel = Kernel::Dumps;
            self.dump = Some(Dump::begin(spec, stage.now));
            stage.say(What::KernelDumpStarted { node: self.spec.name.clone() });
            self.lose_software(stage);
        }
    }

    /// Whatever ailed the machine while it had power is over: hang, network, kubelet.
    pub(crate) fn come_back(&mut self, stage: &mut Stage<'_>) {
        if self.power == Power::Off {
            self.set_network(stage, Network::Up);
            return self.switch(stage, Power::On);
        }
        if self.kernel == Kernel::Hangs {
            self.kernel = Kernel::Runs;
            stage.say(What::MachineResumed { node: self.spec.name.clone() });
            self.processes.resume(stage, &self.spec.name, &self.boot);
        }
        self.set_network(stage, Network::Up);
        if self.kubelet.is_none() && self.kernel == Kernel::Runs {
            let seed = self.boots.draw();
            self.take(stage, Kubelet::restart(&self.spec.name, seed, stage.now));
        }
    }

    fn run_software(&mut self, stage: &mut Stage<'_>) -> Option<Time> {
        match (self.power, self.kernel) {
            (Power::Off, _) | (Power::On, Kernel::Hangs) => None,
            (Power::On, Kernel::Booting { until }) if stage.now < until => Some(until),
            (Power::On, Kernel::Booting { .. }) => {
                self.kernel = Kernel::Runs;
                let seed = self.boots.draw();
                self.take(stage, Kubelet::start(&self.spec.name, seed, stage.now));
                self.run_software(stage)
            }
            (Power::On, Kernel::Dumps) => {
                let Some(dump) = &mut self.dump else { return None };
                if stage.now >= dump.ends {
                    self.dump = None;
                    stage.say(What::KernelDumpWritten { node: self.spec.name.clone() });
                    self.boot_up(stage.now);
                    return self.run_software(stage);
                }
                let (sent, due) = dump.run(stage.now, &self.spec.address);
                stage.sent.extend(sent.filter(|_| self.network == Network::Up));
                Some(due)
            }
            (Power::On, Kernel::Runs) => {
                let due = self.processes.run(stage, &self.spec.name, &self.boot);
                let Some(kubelet) = &mut self.kubelet else { return due };
                let looks =
                    kubelet.run(stage, &self.spec, &self.boot, self.network, &mut self.processes);
                sooner(sooner(due, looks), self.processes.due())
            }
        }
    }

    fn take(&mut self, stage: &mut Stage<'_>, kubelet: Kubelet) {
        self.kubelet = Some(kubelet);
        let (node, boot) = (self.spec.name.clone(), self.boot.clone());
        stage.say(What::KubeletStarted { node, boot });
    }

    /// Takes over what the BMC did since the last look.
    fn follow_bmc(&mut self, stage: &mut Stage<'_>) {
        let Some((_, bmc)) = &mut self.bmc else { return };
        bmc.tick(stage.now.0);
        for event in bmc.drain_power_events() {
            let cause = match event.cause {
                bmc::Cause::Command { .. } => PowerCause::Command,
                bmc::Cause::FlipBack => PowerCause::Device,
                bmc::Cause::Outside => PowerCause::ByHand,
            };
            match event.change {
                bmc::Change::Off => self.set_power(stage, Power::Off, cause),
                bmc::Change::On => self.set_power(stage, Power::On, cause),
                bmc::Change::Reset => self.reset(stage, cause),
            }
        }
    }

    fn reset(&mut self, stage: &mut Stage<'_>, cause: PowerCause) {
        stage.say(What::MachineReset { node: self.spec.name.clone(), cause });
        self.lose_software(stage);
        self.boot_up(stage.now);
    }

    fn set_power(&mut self, stage: &mut Stage<'_>, power: Power, cause: PowerCause) {
        self.power = power;
        stage.say(What::PowerChanged { node: self.spec.name.clone(), power, cause });
        match power {
            Power::Off => self.lose_software(stage),
            Power::On => self.boot_up(stage.now),
        }
    }

    fn lose_software(&mut self, stage: &mut Stage<'_>) {
        self.kubelet = None;
        self.processes.lose_power(stage, &self.spec.name, &self.boot);
    }

    fn boot_up(&mut self, now: Time) {
        self.boot = self.boots.uuid();
        self.kernel = Kernel::Booting { until: after(now, self.spec.boot_time) };
    }
}

/// Who sent a datagram.
#[derive(Debug, Clone, Copy)]
pub struct Peer<'a> {
    /// A process of node-remedy.
    pub process: &'a str,
    /// Tells senders apart, as an address and a port do.
    pub line: u64,
}

/// Chassis control, the only IPMI command that can change power.
const CHASSIS_CONTROL: (u8, u8) = (0x00, 0x02);
/// Get chassis status; the lowest bit of its first byte is power.
const CHASSIS_STATUS: (u8, u8) = (0x00, 0x01);

fn said(node: &str, by: &str, event: &bmc::CommandEvent) -> Option<What> {
    let (node, by) = (node.to_owned(), by.to_owned());
    let asked = (event.netfn, event.command);
    if asked == CHASSIS_STATUS && event.completion == 0 {
        let is_on = event.answer.first().is_some_and(|state| state & 1 == 1);
        return Some(What::BmcReported {
            node,
            power: if is_on { Power::On } else { Power::Off },
            by,
        });
    }
    if asked != CHASSIS_CONTROL {
        return None;
    }
    let command = match event.data.first() {
        Some(0) => "off".to_owned(),
        Some(1) => "on".to_owned(),
        Some(2) => "cycle".to_owned(),
        Some(3) => "reset".to_owned(),
        Some(5) => "soft-off".to_owned(),
        Some(other) => other.to_string(),
        None => "nothing".to_owned(),
    };
    Some(match event.completion {
        0 => What::BmcAccepted { node, command, by },
        code => What::BmcRefused { node, command, code, by },
    })
}
