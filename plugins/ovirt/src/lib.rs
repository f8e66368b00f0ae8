//! The power of a virtual machine of oVirt or Red Hat Virtualization, over the engine's REST API v4.
//!
//! One call: find the machine that the plug names, do one thing, read back. In the order a call runs:
//!
//! * `engine`: how the API is spoken to, and how a machine is found
//! * here: what it reads, what it is asked
//!
//! The host logs in for a token; neither password nor token is in this memory. `stop` cuts the power; the
//! engine says yes at once and acts later, so the outcome is what was read afterwards.
//!
//! What this deliberately is not: `shutdown`, which asks, or the fencing of hypervisors.

mod engine;

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::web::{Api, Body};
use node_remedy_sdk::{
    Failure, FenceMethod, Host, Outcome, PlugInfo, PlugState, PlugsRequest, Request, fence_plugin,
};
use serde_json::json;

use engine::VirtualMachine;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ovirt;

fence_plugin!(Ovirt);

impl FenceMethod for Ovirt {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let api = Api::new(host, &engine::MANNER, request.deadline_ms);
        let machine = VirtualMachine::find(&api, &request.plug)?;
        let mut machine = Managed { api: &api, machine, is_fresh: true };
        carry_out(request, host, &mut machine)
    }

    fn plugs(&self, request: &PlugsRequest, host: &impl Host) -> Result<Vec<PlugInfo>, Failure> {
        let api = Api::new(host, &engine::MANNER, request.deadline_ms);
        let info = |one: VirtualMachine| PlugInfo {
            state: state(&one.status),
            plug: one.id,
            name: one.name,
            identity: Vec::new(),
        };
        Ok(engine::all(&api)?.into_iter().map(info).collect())
    }
}

/// A virtual machine of an engine.
struct Managed<'a, H> {
    api: &'a Api<'a, H>,
    machine: VirtualMachine,
    /// Whether nobody looked at what was read of it yet.
    is_fresh: bool,
}

impl<H: Host> Machine for Managed<'_, H> {
    fn read(&mut self) -> Result<Reading, Failure> {
        if !std::mem::take(&mut self.is_fresh) {
            self.machine = VirtualMachine::read(self.api, &self.machine.id)?;
        }
        let VirtualMachine { id, status, .. } = &self.machine;
        // The engine shows a machine its own id as the UUID of its firmware.
        let identity = vec![("system-uuid".to_owned(), id.clone())];
        Ok(Reading { state: state(status), words: format!("status is {status}"), identity })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        Ok(word(change).to_owned())
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        let path = format!("{}/{}/{}", engine::VMS, self.machine.id, word(change));
        self.api.ask("POST", &path, Body::Json(&json!({}))).map(|_| ())
    }
}

/// The action of the API. None of them asks an operating system.
fn word(change: Change) -> &'static str {
    match change {
        Change::Off => "stop",
        Change::On => "start",
        Change::Reset => "reset",
    }
}

/// What a status means (the API's `VmStatus`): only `down` is off. A machine that is suspended has its
/// memory on disk, one that is paused in its host, and of those that the engine does not hear nobody knows.
fn state(status: &str) -> PlugState {
    match status {
        "down" => PlugState::Off,
        "up" | "paused" | "reboot_in_progress" | "powering_down" | "migrating" => PlugState::On,
        "powering_up" | "wait_for_launch" | "restoring_state" | "saving_state" | "image_locked" => {
            PlugState::Transitioning
        }
        _ => PlugState::Unknown,
    }
}
