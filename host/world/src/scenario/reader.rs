//! Collects what is wrong with a scenario while it is read.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_saphyr::Location;
use serde_saphyr::options::AliasLimits;

use crate::facts::VOCABULARY;
use crate::scenario::raw::Text;
use crate::scenario::{Pattern, duration};

/// The most that aliases make of a file, each taken to stand for all of it: what a laptop has to spare.
pub(crate) const ALIASED_BYTES: usize = 256 << 20;

/// The most values that aliases stand for, however short.
pub(crate) const REPLAYS: usize = 100_000;

/// A mistake in a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, as it was named.
    pub file: String,
    /// From 1 on; 0 where the file has no such place.
    pub line: u64,
    /// From 1 on; 0 where the file has no such place.
    pub column: u64,
    /// Path, what was found, what is expected.
    pub what: String,
}

impl std::fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, line, column, what } = self;
        match line {
            0 => write!(f, "{file}: {what}"),
            line => write!(f, "{file}:{line}:{column}: {what}"),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// All mistakes in a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioErrors(pub Vec<ScenarioError>);

impl std::fmt::Display for ScenarioErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioErrors {}

/// Collects what is wrong while it reads on.
pub(crate) struct Reader {
    pub(crate) file: String,
    pub(crate) errors: Vec<ScenarioError>,
}

impl Reader {
    pub(crate) fn wrong(&mut self, at: Location, what: String) {
        let (line, column) = (at.line(), at.column());
        self.errors.push(ScenarioError { file: self.file.clone(), line, column, what });
    }

    /// A duration, or zero and a complaint.
    pub(crate) fn duration(&mut self, path: &str, text: &Text) -> Duration {
        duration::read(&text.value).unwrap_or_else(|| {
            self.wrong(
                text.referenced,
                format!(
                    "{path}: found {:?}, expected a duration such as 90s, 1m30s or 250ms, up to \
                     a week",
                    text.value
                ),
            );
            Duration::ZERO
        })
    }

    /// The documents of a file of at most `limit` bytes.
    pub(crate) fn yaml<T: DeserializeOwned>(&mut self, text: &str, limit: usize) -> Option<Vec<T>> {
        if text.len() > limit {
            let what = format!("found {} bytes, expected at most {limit}", text.len());
            self.wrong(Location::UNKNOWN, what);
            return None;
        }
        // The limit on bytes bounds what the parser would bound otherwise, all but what aliases repeat.
        let replays = ALIASED_BYTES / text.len().max(1);
        let mut alias_limits = AliasLimits::default();
        alias_limits.max_total_replayed_events = replays.min(REPLAYS);
        let options = serde_saphyr::options! {
            with_snippet: false,
            strict_booleans: true,
            budget: None,
            alias_limits: alias_limits,
        };
        match serde_saphyr::from_multiple_with_options(text, options) {
            Ok(read) => Some(read),
            Err(error) => {
                let at = error.location().unwrap_or(Location::UNKNOWN);
                self.wrong(at, message(&error, text, at));
                None
            }
        }
    }

    /// Facts by a name that there is and by fields that they have.
    pub(crate) fn pattern(
        &mut self,
        path: &str,
        fact: &Text,
        fields: &BTreeMap<String, Text>,
    ) -> Pattern {
        match VOCABULARY.iter().find(|(name, _)| *name == fact.value) {
            None => {
                let names: Vec<&str> = VOCABULARY.iter().map(|(name, _)| *name).collect();
                let what = format!(
                    "{path}.fact: found {:?}, expected one of {}",
                    fact.value,
                    names.join(", ")
                );
                self.wrong(fact.referenced, what);
            }
            Some((_, known)) => {
                let unknown = fields.iter().filter(|(field, _)| !known.contains(&field.as_str()));
                for (field, value) in unknown {
                    let what = format!(
                        "{path}.where: found {field:?}, expected one of {}",
                        known.join(", ")
                    );
                    self.wrong(value.referenced, what);
                }
            }
        }
        let fields = fields.iter().map(|(field, value)| (field.clone(), value.value.clone()));
        Pattern { fact: fact.value.clone(), fields: fields.collect() }
    }
}

/// The parser's sentence without the place, which stands before it anyway, and with what
/// was found, where the parser does not say it.
pub(crate) fn message(error: &serde_saphyr::Error, text: &str, at: Location) -> String {
    let error = error.to_string();
    let line = error.lines().next().unwrap_or_default();
    let (sentence, _) = line.split_once(" at line ").unwrap_or((line, ""));
    // What follows is advice to programmers.
    let (sentence, _) = sentence.split_once(", set ").unwrap_or((sentence, ""));
    let sentence = sentence.trim_start_matches("error: ");
    match sentence.strip_prefix("invalid ") {
        Some(expected) => format!("found {:?}, expected {expected}", scalar_at(text, at)),
        None => sentence.to_owned(),
    }
}

/// The scalar that begins at a place.
pub(crate) fn scalar_at(text: &str, at: Location) -> &str {
    let index = |place: u64| usize::try_from(place.saturating_sub(1)).unwrap_or(usize::MAX);
    let line = text.lines().nth(index(at.line())).unwrap_or_default();
    let rest = line
        .char_indices()
        .nth(index(at.column()))
        .map_or("", |(from, _)| line.get(from..).unwrap_or_default());
    rest.split([',', '}', ']', '#']).next().unwrap_or_default().trim_end()
}
