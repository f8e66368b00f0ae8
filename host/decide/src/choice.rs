//! What a remedy's plugin was asked, and what it answered.

use alloc::string::String;

use crate::{Span, Time};

/// A decision that was asked for, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decided {
    /// Counts the decisions of an incident from 1.
    pub number: u32,
    /// Which remedy asked, from 0.
    pub remedy_step: usize,
    /// When it was first asked for.
    pub asked_at: Time,
    /// What was decided, and when; `None` while nobody has answered. It is never asked for again then.
    pub choice: Option<Choice>,
    /// When that was learnt.
    pub chosen_at: Option<Time>,
    /// When it was begun to be followed.
    pub followed_at: Option<Time>,
    /// Why what was tried failed.
    pub failed: Option<String>,
    /// When it had come to its end.
    pub ended_at: Option<Time>,
}

/// What a plugin can decide.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// One method of the plan, by name.
    Method(String),
    /// Something in the cluster itself, by name.
    Cluster(String),
    /// The plan.
    Fence,
    /// Nothing, for so long.
    Wait(Span),
    /// Nothing more.
    Done,
    /// Nothing more, and it did not help, for this reason.
    Fail(String),
}

impl Choice {
    /// Whether the plugin is asked no more after it.
    pub fn is_last(&self) -> bool {
        match self {
            Self::Done | Self::Fail(_) => true,
            Self::Method(_) | Self::Cluster(_) | Self::Fence | Self::Wait(_) => false,
        }
    }
}

impl core::fmt::Display for Choice {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Method(name) => write!(f, "method {name}"),
            Self::Cluster(name) => write!(f, "cluster {name}"),
            Self::Fence => f.write_str("fence"),
            Self::Wait(span) => write!(f, "wait {}", span.0 / 1_000),
            Self::Done => f.write_str("done"),
            Self::Fail(why) => write!(f, "fail: {why}"),
        }
    }
}
