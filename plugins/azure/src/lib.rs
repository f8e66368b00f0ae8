//! The power of a virtual machine of Microsoft Azure, by Azure Resource Manager (Microsoft.Compute).
//!
//! In the order a call runs:
//!
//! * `plug`: which machine is meant
//! * `manager`: how it is spoken to, what its answers and refusals say
//! * here: what is asked for, and what is said of what came of it
//!
//! The host logs in as the application and adds the token to each request; neither secret nor token is
//! seen here. A change is an operation that goes on after it was accepted, and may still fail: it is
//! watched for a while. The outcome is what the machine read afterwards.
//!
//! What this deliberately is not: deleting, reimaging, hibernating, detaching disks, or scaling.

mod manager;
mod plug;

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::web::Api;
use node_remedy_sdk::{Failure, FenceMethod, Host, Outcome, Request, fence_plugin};

use plug::Plug;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Azure;

fence_plugin!(Azure);

impl FenceMethod for Azure {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let parameter = |name| request.parameter(name);
        let plug =
            Plug::parse(&request.plug, parameter("subscription"), parameter("resource-group"))?;
        let api = manager::api(host, request.deadline_ms);
        let deallocates = parameter("off-by") == Some("deallocate");
        carry_out(request, host, &mut Virtual { api: &api, plug, deallocates })
    }
}

/// A virtual machine.
struct Virtual<'a, H> {
    api: &'a Api<'a, H>,
    plug: Plug,
    deallocates: bool,
}

impl<H: Host> Machine for Virtual<'_, H> {
    fn read(&mut self) -> Result<Reading, Failure> {
        manager::read(self.api, &self.plug)
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        Ok(self.action(change).to_owned())
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        let action = self.action(change);
        let how = if action == "powerOff" { "skipShutdown=true&" } else { "" };
        manager::change(self.api, &self.plug, action, how)
    }

    /// Azure counts requests, and a machine takes its time.
    fn poll_pause_ms(&self, polls: u32) -> u32 {
        if polls <= 4 { 2_000 } else { 5_000 }
    }
}

impl<H> Virtual<'_, H> {
    fn action(&self, change: Change) -> &'static str {
        match change {
            Change::Off if self.deallocates => "deallocate",
            Change::Off => "powerOff",
            Change::On => "start",
            Change::Reset => "restart",
        }
    }
}
