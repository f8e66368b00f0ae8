//! What came of a call by hand.

use node_remedy_sandbox::{Action, Failure, PlugState};

/// What a command came to.
pub(crate) struct Outcome {
    pub(crate) state: PlugState,
    pub(crate) identity: Vec<(String, String)>,
    pub(crate) detail: String,
    pub(crate) confirmed: bool,
    /// What to do, where the command did not do it.
    pub(crate) next: Option<String>,
}

/// A change that the device was told to make, or may have been.
pub(crate) struct Sent {
    pub(crate) action: Action,
    pub(crate) wanted: PlugState,
    /// What the device, or the way to it, said against it.
    pub(crate) refusal: Option<Refusal>,
    /// The last read after it.
    pub(crate) last: Option<Result<Outcome, Failure>>,
}

/// Why a change was not accepted.
pub(crate) struct Refusal {
    pub(crate) why: String,
    /// It was refused, and so not carried out; otherwise nobody knows.
    pub(crate) is_definite: bool,
}

impl Sent {
    /// Whether the last read shows what was wanted.
    pub(crate) fn is_seen(&self) -> bool {
        self.reads() == Some(self.wanted)
    }

    pub(crate) fn reads(&self) -> Option<PlugState> {
        self.last.as_ref()?.as_ref().ok().map(|read| read.state)
    }

    pub(crate) fn outcome(self) -> Outcome {
        let is_seen = self.is_seen();
        // A machine that reads on was not thereby reset; that it was accepted is all that can
        // be known.
        let confirmed = is_seen && (self.action != Action::Reset || self.refusal.is_none());
        let verb = self.action.as_str();
        let sent = match &self.refusal {
            None => format!("the {verb} was accepted"),
            Some(Refusal { why, is_definite: true }) => format!("the {verb} was refused ({why})"),
            Some(Refusal { why, is_definite: false }) => {
                format!("nobody knows whether the {verb} was carried out ({why})")
            }
        };
        let (read, identity, said) = match self.last {
            None => (PlugState::Unknown, Vec::new(), "nothing was read after it".to_owned()),
            Some(Ok(read)) => {
                let said = format!("the last read said {}", word(read.state));
                let said = match read.detail.as_str() {
                    "" => said,
                    detail => format!("{said}, {detail}"),
                };
                (read.state, read.identity, said)
            }
            Some(Err(failure)) => {
                let said = format!("the last read failed: {}", failure.detail);
                (PlugState::Unknown, Vec::new(), said)
            }
        };
        let next = "not confirmed by a later read; look at the machine".to_owned();
        Outcome {
            state: read,
            identity,
            detail: if confirmed { String::new() } else { format!("{sent}; {said}") },
            confirmed,
            next: (!confirmed).then_some(next),
        }
    }
}

pub(crate) fn word(state: PlugState) -> &'static str {
    match state {
        PlugState::On => "on",
        PlugState::Off => "off",
        PlugState::Transitioning => "transitioning",
        PlugState::Unknown => "unknown",
    }
}
