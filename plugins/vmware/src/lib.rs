//! The power of a virtual machine of VMware vSphere, over vCenter's REST API in its new form (`/api`) and
//! its old one (`/rest`).
//!
//! One call: find the machine that the plug names, do one thing, read back. In the order a call runs:
//!
//! * `vcenter`: the two forms, and what they answer
//! * `machine`: which machine it is, what it reads, and when that is off
//!
//! The host begins a session for each call and ends it; neither password nor session is in this memory.
//!
//! What this deliberately is not: VMware Tools, ESXi without vCenter, or a judgement about a host that
//! vCenter does not hear.

mod machine;
mod vcenter;

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::{
    Failure, FenceMethod, Host, Outcome, PlugInfo, PlugsRequest, Request, fence_plugin,
};

use machine::VirtualMachine;
use vcenter::VCenter;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct VMware;

fence_plugin!(VMware);

impl FenceMethod for VMware {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let vcenter = VCenter::new(host, &request.parameters, request.deadline_ms);
        let machine = VirtualMachine::find(&vcenter, &request.plug)?;
        let mut machine = Managed { vcenter: &vcenter, machine, is_fresh: true };
        carry_out(request, host, &mut machine)
    }

    fn plugs(&self, request: &PlugsRequest, host: &impl Host) -> Result<Vec<PlugInfo>, Failure> {
        let vcenter = VCenter::new(host, &request.parameters, request.deadline_ms);
        machine::all(&vcenter)
    }
}

/// A virtual machine of a vCenter.
struct Managed<'a, H> {
    vcenter: &'a VCenter<'a, H>,
    machine: VirtualMachine,
    /// Whether nobody looked at what was read of it yet.
    is_fresh: bool,
}

impl<H: Host> Machine for Managed<'_, H> {
    fn read(&mut self) -> Result<Reading, Failure> {
        if !std::mem::take(&mut self.is_fresh) {
            self.machine = VirtualMachine::read(self.vcenter, &self.machine.id)?;
        }
        let (state, words) = self.machine.state(self.vcenter);
        Ok(Reading { state, words, identity: self.machine.identity() })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        Ok(word(change).to_owned())
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        self.vcenter.switch(&self.machine.id, word(change))
    }
}

/// What vCenter calls it. None of them asks an operating system.
fn word(change: Change) -> &'static str {
    match change {
        Change::Off => "stop",
        Change::On => "start",
        Change::Reset => "reset",
    }
}
