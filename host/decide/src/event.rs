//! What can happen to an incident.

use alloc::string::String;

use crate::{Choice, End, OpId, View};

/// What can happen to an incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// The world was looked at.
    Looked(&'a View),
    /// A call ended.
    Ended {
        /// Which.
        op: OpId,
        /// How.
        end: End,
    },
    /// The budget answered.
    Slot(SlotAnswer),
    /// A remedy's plugin was asked.
    Decided {
        /// For which decision.
        number: u32,
        /// What it decided; an error where it could not be asked, and says nothing of it.
        answer: Result<Choice, String>,
    },
    /// A person asks for something.
    Command(Command),
    /// Another process (a new leader, or this one restarted) took the incident over.
    Adopted {
        /// Its fencing token.
        epoch: u64,
        /// Its name.
        process: String,
    },
}

/// The budget's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SlotAnswer {
    /// A slot is held.
    Granted,
    /// All are taken; ask again later.
    Refused,
}

/// What a person can ask of an incident.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Command {
    /// A parked incident's way out: try again.
    Retry,
    /// Stop; after an off, switch on first.
    Abort,
    /// Stop, and leave the machine as it is.
    AbortLeaveOff,
    /// This person has seen the machine off.
    ConfirmOff {
        /// Who said so; the host has checked that they may.
        by: String,
        /// The boot that they were told of.
        boot_id: String,
    },
}
