//! PDUs and switches in a world: who hangs on which plug, and what becomes of it.
//!
//! They stand beside the machines because one of them serves many. A datagram to one of them, a
//! fault, or a hand on a plug may change plugs; what hangs on a plug follows at once. What they say
//! and do is their model's business (`node_remedy_devices::snmp`).

use std::net::SocketAddr;
use std::time::Duration;

use node_remedy_devices::UnknownFault;
use node_remedy_devices::snmp::{Cause, Change, PlugEvent, PlugReport, Saying};

use super::World;
use crate::agenda::Actor;
use crate::facts::{Power, PowerCause, What};
use crate::machine::{Machine, Peer};
use crate::scenario::Event;
use crate::time::Time;
use crate::world::device::{Device, End, Wire};

impl World {
    /// Where the PDU or switch of this name listens.
    pub fn device_address(&self, name: &str) -> Option<SocketAddr> {
        Some(self.rack.iter().find(|one| one.name == name)?.address)
    }

    /// A datagram for a PDU or switch, and its answers.
    pub(super) fn device_datagram(
        &mut self,
        to: SocketAddr,
        from: Peer<'_>,
        data: &[u8],
    ) -> Vec<(Duration, Vec<u8>)> {
        let number = self.rack.iter().position(|device| device.address == to);
        let now = self.now.0;
        let Some((number, device)) =
            number.and_then(|number| Some((number, self.rack.get_mut(number)?)))
        else {
            return Vec::new();
        };
        let replies = device.agent.datagram(now, data);
        for said in device.agent.drain_said() {
            let what = self.told(number, said, from.process);
            self.facts.note(self.now, what);
        }
        self.follow_device(number);
        self.heed_facts();
        let sent = replies.into_iter();
        sent.map(|reply| (Duration::from_millis(reply.delay_ms), reply.bytes)).collect()
    }

    /// A device's turn; says when the next one is due.
    pub(super) fn run_device(&mut self, number: usize) -> Option<Time> {
        self.rack.get_mut(number)?.agent.tick(self.now.0);
        self.follow_device(number);
        self.rack.get(number)?.agent.next_change().map(Time)
    }

    /// What hits a device, and what people do to plugs.
    pub(super) fn apply_to_devices(&mut self, what: &Event) {
        let now = self.now.0;
        let named = |name: &str| self.rack.iter().position(|device| device.name == name);
        if let Event::DeviceFault { device, fault, value } = what
            && let Some(number) = named(device)
        {
            if let Some(device) = self.rack.get_mut(number) {
                // The names of faults were checked when the scenario was read.
                drop::<Result<(), UnknownFault>>(device.agent.set_fault(now, fault, *value));
            }
            self.follow_device(number);
        } else if let Event::PlugByHand { plug, power } = what
            && let Some(number) = named(&plug.device)
        {
            if let Some(device) = self.rack.get_mut(number) {
                device.agent.set_plug(now, plug.number, *power == Power::On);
            }
            self.follow_device(number);
        } else if let Event::PowerOnByHand(node) | Event::NodeComesBack(node) = what {
            self.close_feeds(node);
        }
    }

    /// Who wants a machine on that has no mains switches its outlets on, too.
    fn close_feeds(&mut self, node: &str) {
        let Some(machine) = self.by_name.get(node).copied() else { return };
        if self.machines.get(machine).is_none_or(Machine::has_mains) {
            return;
        }
        let now = self.now.0;
        for number in 0..self.rack.len() {
            let Some(Device { agent, wires, .. }) = self.rack.get_mut(number) else { return };
            for (plug, wire) in wires {
                if wire.machine == machine && matches!(wire.end, End::Feed(_)) {
                    agent.set_plug(now, *plug, true);
                }
            }
            self.follow_device(number);
        }
    }

    /// Takes over what a device did since the last look.
    fn follow_device(&mut self, number: usize) {
        let Some(device) = self.rack.get_mut(number) else { return };
        let events = device.agent.drain_events();
        if let Some(next) = device.agent.next_change() {
            self.agenda.wake(Actor::Device(number), Time(next));
        }
        for event in events {
            self.follow_plug(number, &event);
        }
    }

    fn follow_plug(&mut self, number: usize, event: &PlugEvent) {
        let Some(device) = self.rack.get(number) else { return };
        let (wire, device) = (device.wires.get(&event.plug).copied(), device.name.clone());
        let power = power(event.on);
        let cause = match event.cause {
            Cause::Command { .. } => PowerCause::Command,
            Cause::FlipBack => PowerCause::Device,
            Cause::Outside => PowerCause::ByHand,
        };
        let (node, plug) = (self.hangs_on(number, event.plug), event.plug.into());
        self.facts.note(self.now, What::PlugChanged { node, device, plug, power, cause });
        let Some(Wire { machine, end }) = wire else { return };
        self.with_machine(machine, |machine, stage| match end {
            End::Feed(feed) => machine.set_feed(stage, feed, power, cause),
            End::Port => machine.set_port(stage, power),
        });
        self.agenda.wake(Actor::Machine(machine), self.now);
    }

    /// The node whose machine hangs on a plug; empty if none does.
    fn hangs_on(&self, number: usize, plug: u32) -> String {
        let wire = self.rack.get(number).and_then(|device| device.wires.get(&plug));
        let machine = wire.and_then(|wire| self.machines.get(wire.machine));
        machine.map(|machine| machine.spec.name.clone()).unwrap_or_default()
    }

    fn told(&self, number: usize, PlugReport { plug, what }: PlugReport, process: &str) -> What {
        let node = self.hangs_on(number, plug);
        let device = self.rack.get(number).map(|device| device.name.clone()).unwrap_or_default();
        let (plug, by) = (plug.into(), process.to_owned());
        match what {
            Saying::Yes(change) => {
                What::PlugAccepted { node, device, plug, command: command(change), by }
            }
            Saying::Refused(change, code) => {
                let (command, code) = (command(change), code.into());
                What::PlugRefused { node, device, plug, command, code, by }
            }
            Saying::Reads { on } => What::PlugReported { node, device, plug, power: power(on), by },
        }
    }
}

fn power(on: bool) -> Power {
    if on { Power::On } else { Power::Off }
}

fn command(change: Change) -> String {
    let word = match change {
        Change::Off => "off",
        Change::On => "on",
        Change::Reset => "reset",
    };
    word.to_owned()
}
