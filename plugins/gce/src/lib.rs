//! The power of an instance of Google Compute Engine, by the Compute API v1.
//!
//! In the order a call runs:
//!
//! * `plug`: which instance is meant
//! * `compute`: how it is spoken to, what its answers and refusals say
//! * here: what is asked for, and what is said of what came of it
//!
//! The host asks for a token with the service account's key and adds it to each request; neither is
//! seen here. A change is an operation that goes on after it was accepted, and may still fail: it is
//! watched for a while. The outcome is what the instance read afterwards.
//!
//! What this deliberately is not: suspending, deleting, instance groups, or detaching disks.

mod compute;
mod plug;

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::web::Api;
use node_remedy_sdk::{Failure, FenceMethod, Host, Outcome, PlugState, Request, fence_plugin};

use plug::Plug;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gce;

fence_plugin!(Gce);

impl FenceMethod for Gce {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let parameter = |name| request.parameter(name);
        let plug = Plug::parse(&request.plug, parameter("project"), parameter("zone"))?;
        let api = compute::api(host, request.deadline_ms);
        let discards_ssd = parameter("discard-local-ssd").map(str::to_owned);
        carry_out(request, host, &mut Instance { api: &api, plug, discards_ssd })
    }
}

/// An instance.
struct Instance<'a, H> {
    api: &'a Api<'a, H>,
    plug: Plug,
    discards_ssd: Option<String>,
}

impl<H: Host> Machine for Instance<'_, H> {
    fn read(&mut self) -> Result<Reading, Failure> {
        let compute::Read { status, identity } = compute::read(self.api, &self.plug)?;
        Ok(Reading { state: state(&status), words: format!("status is {status}"), identity })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        Ok(match change {
            Change::Off => "stop",
            Change::On => "start",
            Change::Reset => "reset",
        }
        .to_owned())
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        let what = match (change, &self.discards_ssd) {
            (Change::Off, Some(discards)) => {
                format!("stop?noGracefulShutdown=true&discardLocalSsd={discards}")
            }
            (Change::Off, None) => "stop?noGracefulShutdown=true".to_owned(),
            (Change::On, _) => "start".to_owned(),
            (Change::Reset, _) => "reset".to_owned(),
        };
        compute::change(self.api, &self.plug, &what)
    }

    /// A stop takes up to a minute and a half, for Google tells the operating system first.
    fn poll_pause_ms(&self, polls: u32) -> u32 {
        if polls <= 4 { 2_000 } else { 5_000 }
    }
}

/// What a status reads (Compute API, `Instance.status`). A suspended instance goes on where it stood
/// when it is resumed, and one in repair may still run: neither is off.
fn state(status: &str) -> PlugState {
    match status {
        "RUNNING" => PlugState::On,
        "TERMINATED" | "STOPPED" => PlugState::Off,
        "PENDING" | "PROVISIONING" | "STAGING" | "PENDING_STOP" | "STOPPING" | "SUSPENDING"
        | "DEPROVISIONING" => PlugState::Transitioning,
        _ => PlugState::Unknown,
    }
}
