//! The power of a virtual machine through the libvirt daemon of its hypervisor.
//!
//! One call: connect, find the domain that the plug names, do one thing, read back. In the order a call
//! runs:
//!
//! * `xdr`, `rpc`: messages, and what a daemon that does not keep to them comes to
//! * `session`: who lets us in, and which driver we speak with
//! * `domain`: which machine it is, what its state means, what it is asked for
//! * `refusal`: libvirt's own errors, in words
//! * here: what is asked for, and what is said of what came of it
//!
//! A domain that does not exist is no domain that is off: who destroyed it, or on which hypervisor it
//! runs now, nobody here knows.
//!
//! What this deliberately is not: SASL, migration, snapshots, or a graceful shutdown.

mod domain;
mod limits;
mod refusal;
mod rpc;
mod session;
mod xdr;

use node_remedy_sdk::{
    Action, Failure, FailureKind, FenceMethod, Fields, Host, Level, Outcome, PlugInfo, PlugState,
    PlugsRequest, Request, fence_plugin,
};

use domain::{Change, Domain, is_same_uuid};
use rpc::Link;

/// The extra field of a request that binds a change to one machine: the UUID that an earlier `status`
/// reported. A domain with another one is not touched.
pub const EXPECT_SYSTEM_UUID: &str = "expect-system-uuid";

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Libvirt;

fence_plugin!(Libvirt);

impl FenceMethod for Libvirt {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let link = session::begin(host, &request.parameters, request.deadline_ms)?;
        let domain = Domain::find(&link, &request.plug)?.moving(may_move(&request.parameters));
        match request.action {
            Action::Status | Action::Monitor => status(request, &link, &domain),
            Action::Off => switch(Change::Destroy, request, &link, &domain),
            Action::On => switch(Change::Start, request, &link, &domain),
            Action::Reset => switch(Change::Reset, request, &link, &domain),
        }
    }

    fn plugs(&self, request: &PlugsRequest, host: &impl Host) -> Result<Vec<PlugInfo>, Failure> {
        let link = session::begin(host, &request.parameters, request.deadline_ms)?;
        let moves = may_move(&request.parameters);
        let plugs = Domain::all(&link)?.into_iter().map(|found| {
            let domain = found.moving(moves);
            Ok(PlugInfo {
                plug: domain.name.clone(),
                name: domain.name.clone(),
                state: domain.state(&link)?.power(),
                identity: domain.identity(),
            })
        });
        plugs.collect()
    }
}

/// Whether its machines may be migrated: they may unless the parameters say never.
fn may_move(parameters: &Fields) -> bool {
    !parameters.iter().any(|(name, value)| name == "migration" && value == "never")
}

/// What the state reads, once or until it is what the host waits for, and who the machine is.
fn status<H: Host>(
    request: &Request,
    link: &Link<'_, H>,
    domain: &Domain,
) -> Result<Outcome, Failure> {
    let mut read = domain.state(link)?;
    while request.until.is_some_and(|wanted| wanted != read.power()) {
        if !link.has_time_for(limits::PAUSE_MS) {
            break;
        }
        if !link.host().sleep(limits::PAUSE_MS) {
            return Err(Failure::new(FailureKind::Cancelled, "cancelled while polling the state"));
        }
        read = domain.state(link)?;
    }
    Ok(Outcome {
        state: read.power(),
        identity: domain.identity(),
        detail: read.words(),
        extra: Fields::new(),
    })
}

/// Asks for one change and reads what came of it.
fn switch<H: Host>(
    change: Change,
    request: &Request,
    link: &Link<'_, H>,
    domain: &Domain,
) -> Result<Outcome, Failure> {
    let identity = domain.identity();
    check_identity(request.extra(EXPECT_SYSTEM_UUID), &identity)?;
    let (procedure, payload) = domain.prepare(link, change)?;
    let word = change.word();
    link.host().begin_effect(&format!("{word} the domain")).map_err(|reason| {
        Failure::new(FailureKind::Cancelled, format!("the host did not let it begin: {reason}"))
    })?;
    let accepted = match link.call(procedure, &payload) {
        // Refused where it is so already: whether that is it, the state says.
        Err(refusal) if !refusal::may_be_so_already(&refusal) => return Err(refusal),
        accepted => accepted,
    };
    let (state, seen) = match domain.state(link) {
        Ok(read) => (read.power(), read.words()),
        Err(failure) => {
            link.host().log(Level::Warn, &failure.detail);
            (PlugState::Unknown, "the state could not be read afterwards".to_owned())
        }
    };
    let wanted = change.leads_to();
    let (state, detail) = match accepted {
        Ok(_) if state == wanted || state == PlugState::Unknown => {
            (state, format!("{word} accepted; {seen}"))
        }
        Ok(_) => (PlugState::Transitioning, format!("{word} accepted; {seen} still")),
        Err(_) if state == wanted && change.is_lasting() => {
            (state, format!("{word} not needed; {seen}"))
        }
        Err(refusal) => return Err(refusal),
    };
    Ok(Outcome { state, identity, detail, extra: Fields::new() })
}

fn check_identity(expected: Option<&str>, identity: &Fields) -> Result<(), Failure> {
    let Some(expected) = expected else { return Ok(()) };
    let found = identity.iter().find(|(name, _)| name == "system-uuid");
    let (what, found) = match found {
        Some((_, uuid)) if is_same_uuid(uuid, expected) => return Ok(()),
        Some((_, uuid)) => ("is another machine", uuid.as_str()),
        None => ("does not say which machine it is", "none"),
    };
    Err(Failure::new(
        FailureKind::NoSuchPlug,
        format!("the domain {what}: expected UUID {expected}, found {found}"),
    ))
}
