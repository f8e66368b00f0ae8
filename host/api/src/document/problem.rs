//! What a person reads when a configuration is refused: where, what was found, what is expected.

use std::fmt;

use crate::limits;

/// A place inside a document, as a person writes it: `thresholdConfigs[0].remedy1[1].period`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Segment {
    Field(String),
    Index(usize),
}

/// One thing that is wrong, or worth a warning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.line())]
pub struct Problem {
    /// A file's path, or `Kind/name`.
    pub origin: String,
    /// Line and column, where the document came as text.
    pub place: Option<Place>,
    /// Where in the document.
    pub path: Path,
    /// Error or warning.
    pub severity: Severity,
    /// What was found and what is expected, or, for a warning, what to know.
    pub sentence: String,
}

/// Where a value came from, kept for problems that show only later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// A file's path, or `Kind/name`.
    pub origin: String,
    /// Line and column, where the document came as text.
    pub place: Option<Place>,
    /// Where in the document.
    pub path: Path,
}

/// Whether the document can be used all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can; somebody should know.
    Warning,
}

/// Everything found in one or several documents, in the order of their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    /// There are more than are kept.
    more: bool,
}

/// A value, where there was no error, and everything there is to say about it.
#[derive(Clone, Debug)]
pub struct Reading<T> {
    /// Absent when there is an error among the problems.
    pub value: Option<T>,
    /// Errors and warnings.
    pub problems: Problems,
}

impl Path {
    /// The document itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// The path of a field of this one.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.with(Segment::Field(name.to_owned()))
    }

    /// The path of an item of this one.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// This path with another one below it.
    #[must_use]
    pub fn join(&self, below: &Self) -> Self {
        Self { segments: self.segments.iter().chain(&below.segments).cloned().collect() }
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = self.segments.clone();
        segments.push(segment);
        Self { segments }
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for segment in &self.segments {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Field(name) if plain(name) => {
                    write!(f, "{}{name}", if first { "" } else { "." })?;
                }
                Segment::Field(name) => write!(f, "[{}]", shorten(name))?,
            }
            first = false;
        }
        Ok(())
    }
}

fn plain(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && name.len() <= limits::FOUND_CHARACTERS_MAX
}

/// A text in quotes, cut so that an error stays one line.
pub(crate) fn shorten(text: &str) -> String {
    let mut cut: String = text.chars().take(limits::FOUND_CHARACTERS_MAX).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    format!("{cut:?}")
}

impl Spot {
    /// An error here.
    pub fn error(&self, sentence: impl Into<String>) -> Problem {
        self.problem(Severity::Error, sentence.into())
    }

    /// A warning here.
    pub fn warning(&self, sentence: impl Into<String>) -> Problem {
        self.problem(Severity::Warning, sentence.into())
    }

    fn problem(&self, severity: Severity, sentence: String) -> Problem {
        let Self { origin, place, path } = self.clone();
        Problem { origin, place, path, severity, sentence }
    }
}

impl Problem {
    /// The one line that names place, path and what is wrong.
    fn line(&self) -> String {
        let place = self
            .place
            .map(|Place { line, column }| format!(":{line}:{column}"))
            .unwrap_or_default();
        let path = match self.path.to_string() {
            path if path.is_empty() => path,
            path => format!(": {path}"),
        };
        let warning = if self.severity == Severity::Warning { ": warning" } else { "" };
        format!("{}{place}{path}{warning}: {}", self.origin, self.sentence)
    }
}

impl Problems {
    /// Nothing found.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether something makes the document unusable.
    pub fn has_errors(&self) -> bool {
        self.errors().next().is_some()
    }

    /// The errors, in the order of their places.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter().filter(|problem| problem.severity == Severity::Error)
    }

    /// The warnings, in the order of their places.
    pub fn warnings(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter().filter(|problem| problem.severity == Severity::Warning)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    /// Adds one, unless there are already more than anybody reads.
    pub fn push(&mut self, problem: Problem) {
        if self.list.contains(&problem) {
            return;
        }
        if self.list.len() < limits::PROBLEMS_MAX {
            self.list.push(problem);
        } else {
            self.more = true;
        }
    }

    /// Adds those of another document.
    pub fn append(&mut self, others: Self) {
        self.more |= others.more;
        others.list.into_iter().for_each(|problem| self.push(problem));
    }

    /// `value` with these problems, or nothing where one of them is an error.
    pub fn with<T>(mut self, value: Option<T>) -> Reading<T> {
        self.list.sort_by(|a, b| (&a.origin, a.place).cmp(&(&b.origin, b.place)));
        Reading { value: value.filter(|_| !self.has_errors()), problems: self }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        if self.more {
            write!(f, "\nand more than these {}", limits::PROBLEMS_MAX)?;
        }
        Ok(())
    }
}

/// Line and column, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}
