//! What every method that switches power does alike: read, ask once, read back. An accepted `off`
//! is never reported as off; the outcome is what was read.

use crate::{Action, Failure, FailureKind, Fields, Host, Level, Outcome, PlugState, Request};

/// The extra field of a request that binds a change to one machine: the UUID that an earlier `status`
/// reported. A machine with another one is not touched.
///
/// ```
/// use node_remedy_sdk::power::EXPECT_SYSTEM_UUID;
/// use node_remedy_sdk::{Action, Request};
///
/// let mut request = Request::new(Action::Off, 30_000);
/// request.extra = vec![(EXPECT_SYSTEM_UUID.to_owned(), "b0c1".to_owned())];
/// assert_eq!(request.extra(EXPECT_SYSTEM_UUID), Some("b0c1"));
/// ```
pub const EXPECT_SYSTEM_UUID: &str = "expect-system-uuid";

/// A poll is not begun if it leaves less of the deadline for its answer, in milliseconds.
const ANSWER_MS: u64 = 1_000;

/// What is asked for.
///
/// ```
/// use node_remedy_sdk::PlugState;
/// use node_remedy_sdk::power::Change;
///
/// assert_eq!(Change::Reset.leads_to(), PlugState::On);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Off, without asking an operating system.
    Off,
    /// On.
    On,
    /// One hard reset.
    Reset,
}

impl Change {
    /// What it leads to.
    pub fn leads_to(self) -> PlugState {
        match self {
            Self::Off => PlugState::Off,
            Self::On | Self::Reset => PlugState::On,
        }
    }
}

/// What was read of a machine.
///
/// ```
/// use node_remedy_sdk::PlugState;
/// use node_remedy_sdk::power::Reading;
///
/// let reading = Reading {
///     state: PlugState::On,
///     words: "PowerState is On".to_owned(),
///     identity: vec![("serial".to_owned(), "7CE1234".to_owned())],
/// };
/// assert_eq!(reading.state.word(), "on");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The state.
    pub state: PlugState,
    /// The device's own words for it: `PowerState is On`.
    pub words: String,
    /// What the device calls the machine.
    pub identity: Fields,
}

/// One machine behind a device that switches its power.
///
/// ```
/// use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
/// use node_remedy_sdk::testing::{TestHost, Trace};
/// use node_remedy_sdk::{Action, Failure, FailureKind, Fields, PlugState, Request};
///
/// struct Lamp(PlugState);
///
/// impl Machine for Lamp {
///     fn read(&mut self) -> Result<Reading, Failure> {
///         let words = format!("it is {}", self.0.word());
///         Ok(Reading { state: self.0, words, identity: Fields::new() })
///     }
///
///     fn word(&mut self, change: Change) -> Result<String, Failure> {
///         match change {
///             Change::Off => Ok("off".to_owned()),
///             Change::On => Ok("on".to_owned()),
///             Change::Reset => Err(Failure::new(FailureKind::Unsupported, "a lamp has no reset")),
///         }
///     }
///
///     fn ask(&mut self, change: Change) -> Result<(), Failure> {
///         self.0 = change.leads_to();
///         Ok(())
///     }
/// }
///
/// let host = TestHost::new(30_000);
/// let reset = carry_out(&Request::new(Action::Reset, 30_000), &host, &mut Lamp(PlugState::On));
/// assert_eq!(reset.map_err(|failure| failure.kind), Err(FailureKind::Unsupported));
/// assert!(host.trace().is_empty(), "nothing was begun");
/// ```
pub trait Machine {
    /// Reads it.
    fn read(&mut self) -> Result<Reading, Failure>;

    /// What will be sent for a change, for the record; a failure where the device cannot do it.
    fn word(&mut self, change: Change) -> Result<String, Failure>;

    /// Sends it. The device need not have done it when this returns.
    fn ask(&mut self, change: Change) -> Result<(), Failure>;

    /// Whether a refusal may mean that the machine is so already. What it is, is read then.
    fn may_be_so_already(&self, refusal: &Failure) -> bool {
        matches!(refusal.device_code, Some(400 | 409 | 412 | 422 | 500))
    }

    /// The pause before the n-th read of a poll, in milliseconds.
    fn poll_pause_ms(&self, polls: u32) -> u32 {
        if polls <= 8 { 1_000 } else { 3_000 }
    }
}

/// Carries a request out.
///
/// ```
/// use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
/// use node_remedy_sdk::testing::{TestHost, Trace};
/// # use node_remedy_sdk::{Action, Failure, FailureKind, Fields, PlugState, Request};
/// #
/// # struct Lamp(PlugState);
/// #
/// # impl Machine for Lamp {
/// #     fn read(&mut self) -> Result<Reading, Failure> {
/// #         let words = format!("it is {}", self.0.word());
/// #         Ok(Reading { state: self.0, words, identity: Fields::new() })
/// #     }
/// #
/// #     fn word(&mut self, change: Change) -> Result<String, Failure> {
/// #         match change {
/// #             Change::Off => Ok("off".to_owned()),
/// #             Change::On => Ok("on".to_owned()),
/// #             Change::Reset => Err(Failure::new(FailureKind::Unsupported, "a lamp has no reset")),
/// #         }
/// #     }
/// #
/// #     fn ask(&mut self, change: Change) -> Result<(), Failure> {
/// #         self.0 = change.leads_to();
/// #         Ok(())
/// #     }
/// # }
/// let host = TestHost::new(30_000);
/// let outcome = carry_out(&Request::new(Action::Off, 30_000), &host, &mut Lamp(PlugState::On))?;
/// assert_eq!(outcome.state, PlugState::Off, "as it was read afterwards");
/// assert_eq!(host.trace(), [Trace::BeganEffect { note: "off".to_owned() }]);
/// # Ok::<(), Failure>(())
/// ```
pub fn carry_out(
    request: &Request,
    host: &impl Host,
    machine: &mut impl Machine,
) -> Result<Outcome, Failure> {
    match request.action {
        Action::Status => status(request, host, machine),
        Action::Monitor => {
            for change in [Change::Off, Change::On] {
                machine.word(change)?;
            }
            status(request, host, machine)
        }
        Action::Off => switch(Change::Off, request, host, machine),
        Action::On => switch(Change::On, request, host, machine),
        Action::Reset => switch(Change::Reset, request, host, machine),
    }
}

/// What is read, once or until it is what the host waits for.
fn status(
    request: &Request,
    host: &impl Host,
    machine: &mut impl Machine,
) -> Result<Outcome, Failure> {
    let mut reading = machine.read()?;
    let mut polls: u32 = 1;
    while request.until.is_some_and(|wanted| wanted != reading.state) {
        let pause_ms = machine.poll_pause_ms(polls);
        let end_ms = host.elapsed_ms() + u64::from(pause_ms) + ANSWER_MS;
        if end_ms >= u64::from(request.deadline_ms) {
            break;
        }
        if !host.sleep(pause_ms) {
            return Err(Failure::new(FailureKind::Cancelled, "cancelled while polling the power"));
        }
        reading = machine.read()?;
        polls += 1;
    }
    let Reading { state, words, identity } = reading;
    Ok(Outcome { state, identity, detail: words, extra: Fields::new() })
}

/// Asks for one change and reads what came of it.
fn switch(
    change: Change,
    request: &Request,
    host: &impl Host,
    machine: &mut impl Machine,
) -> Result<Outcome, Failure> {
    let Reading { identity, .. } = machine.read()?;
    check_identity(request.extra(EXPECT_SYSTEM_UUID), &identity)?;
    let word = machine.word(change)?;
    host.begin_effect(&word).map_err(|reason| {
        Failure::new(FailureKind::Cancelled, format!("the host did not let it begin: {reason}"))
    })?;
    let accepted = match machine.ask(change) {
        Err(refusal) if !machine.may_be_so_already(&refusal) => return Err(refusal),
        accepted => accepted,
    };
    let (state, seen) = match machine.read() {
        Ok(reading) => (reading.state, reading.words),
        Err(failure) => {
            host.log(Level::Warn, &failure.detail);
            (PlugState::Unknown, "the power could not be read afterwards".to_owned())
        }
    };
    let wanted = change.leads_to();
    let (state, detail) = match accepted {
        Ok(()) if state == wanted || state == PlugState::Unknown => {
            (state, format!("{word} accepted; {seen}"))
        }
        Ok(()) => (PlugState::Transitioning, format!("{word} accepted; {seen} still")),
        // A machine that was not reset was not reset, whatever it is.
        Err(_) if state == wanted && change != Change::Reset => {
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
        Some((_, uuid)) => ("belongs to another machine", uuid.as_str()),
        None => ("does not say which machine it is", "none"),
    };
    Err(Failure::new(
        FailureKind::NoSuchPlug,
        format!("the plug {what}: expected UUID {expected}, found {found}"),
    ))
}

/// Hexadecimal digits alike, whatever stands between them.
///
/// ```
/// use node_remedy_sdk::power::is_same_uuid;
///
/// let one = "4C4C4544-0042-4A10-8053-B7C04F4C5931";
/// assert!(is_same_uuid(one, "4c4c454400424a108053b7c04f4c5931"));
/// assert!(!is_same_uuid("", ""), "no UUID is not the same one");
/// ```
pub fn is_same_uuid(one: &str, other: &str) -> bool {
    let digits = |text: &str| {
        let digits = text.chars().filter(|digit| *digit != '-');
        digits.map(|digit| digit.to_ascii_lowercase()).collect::<String>()
    };
    let (one, other) = (digits(one), digits(other));
    one.len() == 32 && one == other
}
