//! The power of a machine through its BMC: DMTF Redfish over HTTPS (DSP0266).
//!
//! One call: find the system that the plug names, do one thing, read back. In the order a call runs:
//!
//! * `service`: requests, and what a refusal means, in words
//! * `system`: which of the BMC's systems it is, what its power reads, what it lets itself be asked
//! * here: what is asked for, and what is said of what came of it
//!
//! The password stays with the host, which adds it to each request. An accepted `off` is never
//! reported as off: BMCs say yes at once and switch seconds later. The outcome is what was read
//! afterwards.
//!
//! What this deliberately is not: tasks, events, firmware, virtual media, or a graceful shutdown.

mod limits;
mod service;
mod system;

use node_remedy_plugin_sdk::{
    Action, Failure, FailureKind, FenceMethod, Fields, Host, Level, Outcome, PlugInfo, PlugState,
    PlugsRequest, Request, fence_plugin,
};
use serde_json::json;

use service::Service;
use system::{System, is_same_uuid};

/// The extra field of a request that binds a change to one machine: the UUID that an earlier `status`
/// reported. A system with another one is not touched.
pub const EXPECT_SYSTEM_UUID: &str = "expect-system-uuid";

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redfish;

fence_plugin!(Redfish);

impl FenceMethod for Redfish {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let service = Service::new(host, request.deadline_ms);
        let system = System::find(&service, &request.plug)?;
        match request.action {
            Action::Status => status(request, &service, system),
            Action::Monitor => {
                for reset in [Reset::Off, Reset::On] {
                    reset.word(&system, &service)?;
                }
                status(request, &service, system)
            }
            Action::Off => switch(Reset::Off, request, &service, &system),
            Action::On => switch(Reset::On, request, &service, &system),
            Action::Reset => switch(Reset::Restart, request, &service, &system),
        }
    }

    fn plugs(&self, request: &PlugsRequest, host: &impl Host) -> Result<Vec<PlugInfo>, Failure> {
        let service = Service::new(host, request.deadline_ms);
        Ok(System::all(&service)?.iter().map(System::plug_info).collect())
    }
}

/// What a system is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reset {
    Off,
    On,
    Restart,
}

impl Reset {
    /// The `ResetType`s that do it, the best first (schema `Resource`, `ResetType`). None of them asks
    /// an operating system for anything, and none does one thing or the other, as a button does.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Off => &["ForceOff"],
            Self::On => &["On", "ForceOn"],
            Self::Restart => &["ForceRestart", "PowerCycle"],
        }
    }

    fn leads_to(self) -> PlugState {
        match self {
            Self::Off => PlugState::Off,
            Self::On | Self::Restart => PlugState::On,
        }
    }

    /// Whether a machine that is so already needs nothing.
    fn is_lasting(self) -> bool {
        self != Self::Restart
    }

    /// The word that this very system takes. One that does not say what it takes is asked.
    fn word<H: Host>(
        self,
        system: &System,
        service: &Service<'_, H>,
    ) -> Result<&'static str, Failure> {
        let [first, ..] = self.words() else { return Err(unsupported(self, &[])) };
        let Some(taken) = system.reset_types(service)? else { return Ok(first) };
        let word = self.words().iter().find(|word| taken.iter().any(|one| one == *word));
        word.copied().ok_or_else(|| unsupported(self, &taken))
    }
}

fn unsupported(reset: Reset, taken: &[String]) -> Failure {
    let (wanted, taken) = (reset.words().join(" or "), taken.join(", "));
    Failure::new(FailureKind::Unsupported, format!("the BMC takes {taken}, expected {wanted}"))
}

/// What the power reads, once or until it is what the host waits for, and who the machine is.
fn status<H: Host>(
    request: &Request,
    service: &Service<'_, H>,
    mut system: System,
) -> Result<Outcome, Failure> {
    let mut polls: u32 = 1;
    while request.until.is_some_and(|wanted| wanted != system.state()) {
        let pause_ms = limits::poll_pause_ms(polls);
        if !service.has_time_for(pause_ms) {
            break;
        }
        if !service.host().sleep(pause_ms) {
            return Err(Failure::new(FailureKind::Cancelled, "cancelled while polling the power"));
        }
        system = system.again(service)?;
        polls += 1;
    }
    Ok(Outcome {
        state: system.state(),
        identity: system.identity(),
        detail: format!("PowerState is {}", system.power_word()),
        extra: Fields::new(),
    })
}

/// Asks for one reset and reads what came of it.
fn switch<H: Host>(
    reset: Reset,
    request: &Request,
    service: &Service<'_, H>,
    system: &System,
) -> Result<Outcome, Failure> {
    let identity = system.identity();
    check_identity(request.extra(EXPECT_SYSTEM_UUID), &identity)?;
    let target = system.reset_target()?;
    let word = reset.word(system, service)?;
    service.host().begin_effect(&format!("ComputerSystem.Reset: {word}")).map_err(|reason| {
        Failure::new(FailureKind::Cancelled, format!("the host did not let it begin: {reason}"))
    })?;
    let accepted = match service.post(target, &json!({ "ResetType": word })) {
        // Some BMCs refuse what is so already: whether that is it, the power says.
        Err(refusal) if !may_be_so_already(&refusal) => return Err(refusal),
        accepted => accepted,
    };
    let (state, seen) = match system.again(service) {
        Ok(system) => (system.state(), format!("PowerState is {}", system.power_word())),
        Err(failure) => {
            service.host().log(Level::Warn, &failure.detail);
            (PlugState::Unknown, "PowerState could not be read afterwards".to_owned())
        }
    };
    let wanted = reset.leads_to();
    let (state, detail) = match accepted {
        Ok(()) if state == wanted || state == PlugState::Unknown => {
            (state, format!("{word} accepted; {seen}"))
        }
        Ok(()) => (PlugState::Transitioning, format!("{word} accepted; {seen} still")),
        Err(_) if state == wanted && reset.is_lasting() => {
            (state, format!("{word} not needed; {seen}"))
        }
        Err(refusal) => return Err(refusal),
    };
    Ok(Outcome { state, identity, detail, extra: Fields::new() })
}

/// A refusal of what was asked for, and not of who asks or when.
fn may_be_so_already(refusal: &Failure) -> bool {
    matches!(refusal.device_code, Some(400 | 409 | 412 | 422 | 500))
}

fn check_identity(expected: Option<&str>, identity: &Fields) -> Result<(), Failure> {
    let Some(expected) = expected else { return Ok(()) };
    let found = identity.iter().find(|(name, _)| name == "system-uuid");
    let (what, found) = match found {
        Some((_, uuid)) if is_same_uuid(uuid, expected) => return Ok(()),
        Some((_, uuid)) => ("belongs to another machine", uuid.as_str()),
        None => ("does not say which machine it is", "none"),
    };
    Err(Failure::new(
        FailureKind::NoSuchPlug,
        format!("the system {what}: expected UUID {expected}, found {found}"),
    ))
}
