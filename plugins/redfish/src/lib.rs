//! The power of a machine through its BMC: DMTF Redfish over HTTPS (DSP0266).
//!
//! One call: find the system that the plug names, do one thing, read back. In the order a call runs:
//!
//! * `service`: how it is spoken to
//! * `system`: which of the BMC's systems it is, what its power reads, what it lets itself be asked
//! * here: what is asked for, and what is said of what came of it
//!
//! The password stays with the host, which adds it to each request or begins a session with it. An accepted `off` is never
//! reported as off: BMCs say yes at once and switch seconds later. The outcome is what was read
//! afterwards.
//!
//! What this deliberately is not: tasks, events, firmware, virtual media, or a graceful shutdown.

mod limits;
mod service;
mod system;

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::web::{Api, Body};
use node_remedy_sdk::{
    Failure, FailureKind, FenceMethod, Fields, Host, Outcome, PlugInfo, PlugState, PlugsRequest,
    Request, fence_plugin,
};
use serde_json::json;

use system::System;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redfish;

fence_plugin!(Redfish);

impl FenceMethod for Redfish {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let service = service(host, &request.parameters, request.deadline_ms);
        let system = System::find(&service, &request.plug)?;
        let address = request.parameter("address").unwrap_or_default();
        let mut machine = Managed { service: &service, address, system, is_fresh: true };
        carry_out(request, host, &mut machine)
    }

    fn plugs(&self, request: &PlugsRequest, host: &impl Host) -> Result<Vec<PlugInfo>, Failure> {
        let service = service(host, &request.parameters, request.deadline_ms);
        Ok(System::all(&service)?.iter().map(System::plug_info).collect())
    }
}

fn service<'a, H: Host>(host: &'a H, parameters: &Fields, deadline_ms: u32) -> Api<'a, H> {
    let has_session =
        parameters.iter().any(|(name, value)| name == "authentication" && value == "session");
    let manner = if has_session { &service::SESSION } else { &service::BASIC };
    Api::new(host, manner, deadline_ms)
}

/// A system of a BMC.
struct Managed<'a, H> {
    service: &'a Api<'a, H>,
    /// As it was configured.
    address: &'a str,
    system: System,
    /// Whether nobody looked at what was read of it yet.
    is_fresh: bool,
}

impl<H: Host> Machine for Managed<'_, H> {
    fn read(&mut self) -> Result<Reading, Failure> {
        if !std::mem::take(&mut self.is_fresh) {
            self.system = self.system.again(self.service)?;
        }
        let word = self.system.power_word();
        let (state, words) = match self.system.contradicted(self.service)? {
            Some(chassis) => {
                (PlugState::Unknown, format!("PowerState is {word}, and that of {chassis}"))
            }
            None => (self.system.state(), format!("PowerState is {word}")),
        };
        Ok(Reading { state, words, identity: self.system.identity() })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        self.system.reset_target(self.address)?;
        reset_type(change, &self.system, self.service).map(str::to_owned)
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        let target = self.system.reset_target(self.address)?;
        let word = reset_type(change, &self.system, self.service)?;
        self.service.ask("POST", target, Body::Json(&json!({ "ResetType": word }))).map(|_| ())
    }
}

/// The `ResetType`s that do it, the best first (schema `Resource`, `ResetType`). None of them asks an
/// operating system for anything, and none does one thing or the other, as a button does.
fn reset_types(change: Change) -> [&'static str; 2] {
    match change {
        Change::Off => ["ForceOff", "ForceOff"],
        Change::On => ["On", "ForceOn"],
        Change::Reset => ["ForceRestart", "PowerCycle"],
    }
}

/// The word that this very system takes. One that does not say what it takes is asked.
fn reset_type<H: Host>(
    change: Change,
    system: &System,
    service: &Api<'_, H>,
) -> Result<&'static str, Failure> {
    let [best, other] = reset_types(change);
    let Some(taken) = system.reset_types(service)? else { return Ok(best) };
    let is_taken = |word: &&str| taken.iter().any(|one| one == word);
    [best, other].into_iter().find(is_taken).ok_or_else(|| {
        let wanted = if best == other { best.to_owned() } else { format!("{best} or {other}") };
        let taken = taken.join(", ");
        let sentence = format!("the BMC takes {taken}, expected {wanted}");
        Failure::new(FailureKind::Unsupported, sentence)
    })
}
