//! What every plug does the same: read, switch, read back. What came of it is what was read.

use node_remedy_sdk::{
    Action, Failure, FailureKind, Fields, Host, Level, Outcome, PlugState, Request,
};

use crate::codec::Oid;
use crate::limits;
use crate::session::Session;

/// What a plug is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Off, or cut.
    Off,
    /// On, or restored.
    On,
    /// Off and on again, by the device itself.
    Reset,
}

impl Switch {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Reset => "reset",
        }
    }

    fn leads_to(self) -> PlugState {
        match self {
            Self::Off => PlugState::Off,
            Self::On | Self::Reset => PlugState::On,
        }
    }
}

/// What a plug reads, and in which words the device says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// As the contract has it.
    pub state: PlugState,
    /// For people.
    pub words: String,
}

/// A plug that was found on its device.
pub trait Plug {
    /// As a sentence begins with it: `outlet 3`.
    fn name(&self) -> String;

    /// What the device calls the machine behind it.
    fn identity(&self) -> Fields;

    /// What it reads now.
    fn read<H: Host>(&self, session: &Session<'_, H>) -> Result<Reading, Failure>;

    /// The objects that are written for it, all at once; `None` where the device cannot do it.
    fn objects(&self, switch: Switch) -> Option<Vec<(Oid, i64)>>;
}

/// Does what is asked of a plug.
pub fn carry_out<H: Host>(
    request: &Request,
    session: &Session<'_, H>,
    plug: &impl Plug,
) -> Result<Outcome, Failure> {
    match request.action {
        Action::Status => status(request, session, plug),
        Action::Monitor => {
            monitor(session, plug)?;
            status(request, session, plug)
        }
        Action::Off => switch(Switch::Off, session, plug),
        Action::On => switch(Switch::On, session, plug),
        Action::Reset => switch(Switch::Reset, session, plug),
    }
}

/// The plug that was asked for is not there. Never is that the same as off.
pub fn no_such_plug(detail: impl Into<String>) -> Failure {
    Failure::new(FailureKind::NoSuchPlug, detail)
}

/// What the plug reads, once or until it is what the host waits for.
fn status<H: Host>(
    request: &Request,
    session: &Session<'_, H>,
    plug: &impl Plug,
) -> Result<Outcome, Failure> {
    let mut reading = plug.read(session)?;
    let mut polls: u32 = 1;
    while request.until.is_some_and(|wanted| wanted != reading.state) {
        let pause_ms = limits::poll_pause_ms(polls);
        if !session.has_time_for(pause_ms) {
            break;
        }
        if !session.host().sleep(pause_ms) {
            return Err(Failure::new(FailureKind::Cancelled, "cancelled while polling the plug"));
        }
        reading = plug.read(session)?;
        polls += 1;
    }
    let detail = format!("{} reads {}", plug.name(), reading.words);
    Ok(Outcome { state: reading.state, identity: plug.identity(), detail, extra: Fields::new() })
}

/// What will be written when it matters is there. Whether it may be written, only a write says.
fn monitor<H: Host>(session: &Session<'_, H>, plug: &impl Plug) -> Result<(), Failure> {
    for switch in [Switch::Off, Switch::On] {
        for (oid, _) in objects(plug, switch)? {
            let value = session.get_one(&oid)?;
            if !matches!(value, crate::Value::Integer(_)) {
                let name = plug.name();
                let detail = format!("{name} has nothing that switches it {}", switch.word());
                return Err(Failure::new(FailureKind::Unsupported, detail));
            }
        }
    }
    Ok(())
}

/// Writes once and reads what came of it.
fn switch<H: Host>(
    switch: Switch,
    session: &Session<'_, H>,
    plug: &impl Plug,
) -> Result<Outcome, Failure> {
    let (name, word) = (plug.name(), switch.word());
    let objects = objects(plug, switch)?;
    // It exists and can be read, or nothing is written.
    plug.read(session)?;
    session.host().begin_effect(&format!("SNMP SET: {name} {word}")).map_err(|reason| {
        Failure::new(FailureKind::Cancelled, format!("the host did not let it begin: {reason}"))
    })?;
    let is_lasting = switch != Switch::Reset;
    let accepted = match session.set(&objects, is_lasting) {
        // Some devices refuse what is so already: whether that is it, the plug says.
        Err(refusal) if !may_be_so_already(&refusal) => return Err(refusal),
        accepted => accepted,
    };
    let wanted = switch.leads_to();
    let read = match accepted {
        Ok(()) => settled(wanted, session, plug),
        Err(_) => plug.read(session),
    };
    let (state, seen) = match read {
        Ok(Reading { state, words }) => (state, format!("reads {words}")),
        Err(failure) => {
            session.host().log(Level::Warn, &failure.detail);
            (PlugState::Unknown, "could not be read afterwards".to_owned())
        }
    };
    let (state, detail) = match accepted {
        Ok(()) if state == wanted || state == PlugState::Unknown => {
            (state, format!("{word} accepted; {name} {seen}"))
        }
        Ok(()) => (PlugState::Transitioning, format!("{word} accepted; {name} {seen} still")),
        Err(_) if state == wanted && is_lasting => {
            (state, format!("{word} not needed; {name} {seen}"))
        }
        Err(refusal) => return Err(refusal),
    };
    Ok(Outcome { state, identity: plug.identity(), detail, extra: Fields::new() })
}

/// What a plug reads that was told something: a relay or a link falls in its own time, and looking for
/// about a second costs less than another call.
fn settled<H: Host>(
    wanted: PlugState,
    session: &Session<'_, H>,
    plug: &impl Plug,
) -> Result<Reading, Failure> {
    let mut reading = plug.read(session)?;
    for polls in 1..=limits::SETTLE_POLLS {
        let pause_ms = limits::poll_pause_ms(polls);
        let is_over = reading.state == wanted || !session.has_time_for(pause_ms);
        // Whoever is cancelled says what was read last.
        if is_over || !session.host().sleep(pause_ms) {
            break;
        }
        reading = plug.read(session)?;
    }
    Ok(reading)
}

fn objects(plug: &impl Plug, switch: Switch) -> Result<Vec<(Oid, i64)>, Failure> {
    plug.objects(switch).ok_or_else(|| {
        let detail = format!("{} cannot be told to {}", plug.name(), switch.word());
        Failure::new(FailureKind::Unsupported, detail)
    })
}

/// A refusal of what was asked for, and not of who asks or when (wrongValue, inconsistentValue, and
/// SNMPv1's words for them).
fn may_be_so_already(refusal: &Failure) -> bool {
    matches!(refusal.device_code, Some(3 | 5 | 10 | 12 | 14))
}
