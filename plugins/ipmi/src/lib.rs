//! The power of a machine through its BMC: IPMI 2.0 over RMCP+ (what others call `lanplus`).
//!
//! One call is one session: find a cipher suite both sides know, open a session, do one thing, read
//! back, close. In the order a call runs:
//!
//! * `parameters`: what the method instance is configured with
//! * `link`: datagrams, repeated a bounded number of times, answers checked
//! * `discover`: which cipher suites the BMC offers, bounded to a second
//! * `rakp`: both sides prove that they know the password and agree on keys
//! * `session`: the sealed packets after it, and the close
//! * `chassis`: the commands sent inside, and what their answers say
//! * `failures`: what every refusal means, in words
//! * `codec`: bytes, without any I/O
//!
//! The password and every key stay with the host. An accepted `off` is never reported as off: the
//! outcome is what was read afterwards.
//!
//! What this deliberately is not: IPMI 1.5, serial-over-LAN, sensors, user management, or any suite
//! that leaves out authentication, integrity or encryption.

mod chassis;
#[doc(hidden)]
pub mod codec;
mod discover;
mod failures;
mod limits;
mod link;
mod parameters;
mod rakp;
mod session;

use node_remedy_sdk::{
    Action, Failure, FailureKind, FenceMethod, Fields, Host, Level, Outcome, PlugState, Request,
    fence_plugin,
};

use chassis::Control;
use link::Link;
use parameters::Parameters;
use session::Session;

/// The extra field of a request that binds a change to one machine: the raw hexadecimal GUID an
/// earlier `status` reported. A BMC that answers with another one is not touched.
pub const EXPECT_SYSTEM_UUID: &str = "expect-system-uuid";

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ipmi;

fence_plugin!(Ipmi);

impl FenceMethod for Ipmi {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let parameters = Parameters::read(request)?;
        let link = Link::open(host, request.deadline_ms)?;
        let session = rakp::establish(&link, parameters)?;
        let result = carry_out(request, parameters, &session);
        session.close();
        result
    }
}

fn carry_out<H: Host>(
    request: &Request,
    parameters: Parameters,
    session: &Session<'_, H>,
) -> Result<Outcome, Failure> {
    match request.action {
        Action::Status => status(request, session),
        Action::Monitor => {
            session.raise(parameters.privilege)?;
            status(request, session)
        }
        Action::Off => switch(Control::Off, request, parameters, session),
        Action::On => switch(Control::On, request, parameters, session),
        Action::Reset => switch(Control::Reset, request, parameters, session),
    }
}

/// Reads the power, once or until it is what the host waits for, and who the machine is.
fn status<H: Host>(request: &Request, session: &Session<'_, H>) -> Result<Outcome, Failure> {
    let mut powered = session.powered()?;
    let identity = identity(session);
    let mut extra = session.device_id();
    extra.push(("cipher-suite".into(), session.suite().number().to_string()));
    let mut polls: u32 = 1;
    while request.until.is_some_and(|wanted| wanted != plug_state(powered)) {
        let pause_ms = limits::poll_pause_ms(polls);
        if !session.has_time_for(pause_ms) {
            break;
        }
        if !session.host().sleep(pause_ms) {
            return Err(Failure::new(FailureKind::Cancelled, "cancelled while polling the power"));
        }
        powered = session.powered()?;
        polls += 1;
    }
    let state = plug_state(powered);
    Ok(Outcome { state, identity, detail: format!("chassis power is {}", state.word()), extra })
}

/// Sends one chassis control and reads what came of it.
fn switch<H: Host>(
    control: Control,
    request: &Request,
    parameters: Parameters,
    session: &Session<'_, H>,
) -> Result<Outcome, Failure> {
    session.raise(parameters.privilege)?;
    let identity = identity(session);
    check_identity(request.extra(EXPECT_SYSTEM_UUID), &identity)?;
    session.host().begin_effect(&format!("chassis control: {}", control.name())).map_err(
        |reason| {
            Failure::new(FailureKind::Cancelled, format!("the host did not let it begin: {reason}"))
        },
    )?;
    let accepted = match session.control(control) {
        // Some BMCs refuse what is so already: whether that is it, the power says.
        Err(refusal) if !refusal.not_in_this_state => return Err(refusal.failure),
        accepted => accepted,
    };
    let (state, seen) = match session.powered() {
        Ok(powered) => (plug_state(powered), format!("reads {}", plug_state(powered).word())),
        Err(failure) => {
            session.host().log(Level::Warn, &failure.detail);
            (PlugState::Unknown, "could not be read afterwards".to_owned())
        }
    };
    let (name, wanted) = (control.name(), control.leads_to());
    let (state, detail) = match accepted {
        Ok(()) if state == wanted || state == PlugState::Unknown => {
            (state, format!("{name} accepted; chassis power {seen}"))
        }
        Ok(()) => {
            (PlugState::Transitioning, format!("{name} accepted; chassis power still {seen}"))
        }
        Err(_) if state == wanted && control.is_lasting() => {
            (state, format!("{name} not needed; chassis power {seen}"))
        }
        Err(refusal) => return Err(refusal.failure),
    };
    Ok(Outcome { state, identity, detail, extra: Fields::new() })
}

/// What the BMC calls the machine; empty where it does not know (all zeros or all ones).
fn identity<H: Host>(session: &Session<'_, H>) -> Fields {
    let from_rakp = *session.guid();
    let from_command = session.system_guid();
    let mut fields = Fields::new();
    let known = |guid: &[u8; 16]| guid.iter().any(|b| *b != 0) && guid.iter().any(|b| *b != 0xff);
    if let Some(guid) = from_command.filter(known).or(Some(from_rakp).filter(known)) {
        fields.push(("system-uuid".into(), hex(&guid)));
        if known(&from_rakp) && guid != from_rakp {
            fields.push(("rakp-guid".into(), hex(&from_rakp)));
        }
    }
    fields
}

fn check_identity(expected: Option<&str>, identity: &Fields) -> Result<(), Failure> {
    let Some(expected) = expected else { return Ok(()) };
    let found = identity.iter().find(|(name, _)| name == "system-uuid");
    match found {
        Some((_, uuid)) if uuid.eq_ignore_ascii_case(expected) => Ok(()),
        Some((_, uuid)) => Err(Failure::new(
            FailureKind::NoSuchPlug,
            format!(
                "the BMC at this address belongs to another machine: expected {expected}, found {uuid}"
            ),
        )),
        None => Err(Failure::new(
            FailureKind::NoSuchPlug,
            format!("the BMC does not say which machine it belongs to; expected {expected}"),
        )),
    }
}

fn plug_state(powered: bool) -> PlugState {
    if powered { PlugState::On } else { PlugState::Off }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .filter_map(|nibble| DIGITS.get(usize::from(nibble)))
        .collect()
}
