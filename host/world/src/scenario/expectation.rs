//! What a scenario asserts: facts that must, or must not, have happened.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use crate::facts::{Fact, What};
use crate::time::{START, Time, between};

/// Facts that a scenario speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The fact's name.
    pub fact: String,
    /// What its fields must be, as text.
    pub fields: BTreeMap<String, String>,
}

/// An assertion about the facts of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// `FILE:LINE:COLUMN`, for the message.
    pub place: String,
    /// Which facts.
    pub pattern: Pattern,
    /// How often; at least once where nothing is said.
    pub times: Option<usize>,
    /// Counted from this moment on.
    pub after: Option<Duration>,
    /// Counted up to this moment.
    pub by: Option<Duration>,
}

/// An assertion that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// What was expected.
    pub expectation: Expectation,
    /// How often it happened.
    pub found: usize,
    /// When it happened, counted from the start, whatever the limits of time.
    pub at: Vec<Duration>,
}

impl Expectation {
    /// Holds against the facts of a run, or says what was found instead.
    pub fn judge(&self, facts: &[Fact]) -> Result<(), Box<Unmet>> {
        let matching = facts.iter().filter(|fact| self.pattern.means(&fact.what));
        let at: Vec<Duration> = matching.map(|fact| since_start(fact.at)).collect();
        let in_time = |at: &&Duration| {
            self.after.is_none_or(|after| **at >= after) && self.by.is_none_or(|by| **at <= by)
        };
        let found = at.iter().filter(in_time).count();
        let holds = self.times.map_or(found > 0, |times| found == times);
        if holds { Ok(()) } else { Err(Box::new(Unmet { expectation: self.clone(), found, at })) }
    }
}

impl Pattern {
    /// Whether it speaks of this fact.
    pub fn means(&self, what: &What) -> bool {
        let Ok(Value::Object(said)) = serde_json::to_value(what) else { return false };
        said.get("fact").is_some_and(|name| *name == self.fact)
            && self.fields.iter().all(|(field, wanted)| match said.get(field) {
                Some(Value::String(text)) => text == wanted,
                Some(Value::Number(number)) => number.to_string() == *wanted,
                Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {
                    false
                }
            })
    }
}

impl std::fmt::Display for Expectation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = String::new();
        for (field, wanted) in &self.pattern.fields {
            write!(fields, " {field}={wanted}")?;
        }
        write!(f, "{}{fields}", self.pattern.fact)?;
        match self.times {
            Some(times) => write!(f, ", {times} times")?,
            None => write!(f, ", at least once")?,
        }
        if let Some(after) = self.after {
            write!(f, ", from {after:?} on")?;
        }
        if let Some(by) = self.by {
            write!(f, ", by {by:?}")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Unmet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { expectation, found, at } = self;
        write!(f, "{}: expected {expectation}; found {found}", expectation.place)?;
        if !at.is_empty() {
            write!(f, ", happened at {at:?}")?;
        }
        Ok(())
    }
}

fn since_start(at: Time) -> Duration {
    between(START, at)
}
