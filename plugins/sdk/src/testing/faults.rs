//! For native tests of methods: the table of what each fault of a device came to. Each row is held against what
//! must hold of every method, and left where `cargo xtask test plugins` finds it. Which faults there are, and
//! what plays them, is the test's own.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::{Action, Failure, Outcome, PlugState};

/// What every method meets, or says why it cannot: the names of its rows begin so.
const EVERY_METHOD: [&str; 10] = [
    "unreachable",
    "wrong credentials",
    "no rights",
    "wrong plug",
    "stuck",
    "late",
    "flips back",
    "malformed",
    "truncated",
    "huge",
];
/// Under the folder that cargo gives to tests.
const FOLDER: &str = "faults-table";
/// A sentence of a device is cut before it is longer than this, in bytes.
const SENTENCE_MAX: usize = 500;

/// What one fault came to.
///
/// ```
/// use node_remedy_sdk::testing::faults::{Fault, Sessions};
/// use node_remedy_sdk::{Action, Outcome, PlugState};
///
/// let result = Ok(Outcome { detail: "the relay is on".to_owned(), ..Outcome::new(PlugState::On) });
/// let fault = Fault {
///     name: "stuck",
///     action: Action::Off,
///     result: &result,
///     took_ms: 140,
///     sessions: Sessions::None,
///     is_off: false,
/// };
/// assert_eq!(fault.name, "stuck");
/// ```
#[derive(Clone, Debug)]
pub struct Fault<'a> {
    /// Its name.
    pub name: &'a str,
    /// What was asked for meanwhile.
    pub action: Action,
    /// What the method answered.
    pub result: &'a Result<Outcome, Failure>,
    /// How long the call took, in milliseconds of the clock that the device lives by.
    pub took_ms: u128,
    /// What is left behind at the device.
    pub sessions: Sessions,
    /// Whether the machine is truly off when the call ends.
    pub is_off: bool,
}

/// Sessions that are open at the device when a call has ended.
///
/// ```
/// use node_remedy_sdk::testing::faults::Sessions;
///
/// assert_ne!(Sessions::Left(1), Sessions::Left(0), "a session that is left blocks the next call");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// So many.
    Left(usize),
    /// The protocol has none.
    None,
    /// The host logs in and out on the method's behalf, and there is no host here.
    OfTheHost,
}

/// The rows of one method.
///
/// ```
/// use node_remedy_sdk::testing::faults::{Fault, FaultTable, Sessions};
/// use node_remedy_sdk::{Action, Failure, FailureKind};
///
/// let mut table = FaultTable::new("lamp", 30_000);
/// let result = Err(Failure::new(FailureKind::Unreachable, "the lamp does not answer"));
/// let (name, action) = ("unreachable", Action::Off);
/// let (took_ms, sessions, is_off) = (4_000, Sessions::None, false);
/// table.row(&Fault { name, action, result: &result, took_ms, sessions, is_off });
/// table.never("wrong credentials", "it has none");
/// ```
pub struct FaultTable {
    method: &'static str,
    deadline_ms: u32,
    names: BTreeSet<String>,
    /// What the test compares.
    text: String,
    /// What is left for the printed table.
    rows: String,
}

impl FaultTable {
    /// For a method whose calls have this long, in milliseconds.
    pub fn new(method: &'static str, deadline_ms: u32) -> Self {
        Self {
            method,
            deadline_ms,
            names: BTreeSet::new(),
            text: String::new(),
            rows: String::new(),
        }
    }

    /// One more row. Whatever the device does: no off that is none, no end after the deadline, no
    /// session left open, and a sentence.
    pub fn row(&mut self, fault: &Fault) {
        let Fault { name, action, result, took_ms, sessions, is_off } = fault;
        let off = result.as_ref().is_ok_and(|outcome| outcome.state == PlugState::Off);
        assert!(*is_off || !off, "{name}: {action:?} says off, and it is on");
        assert!(*took_ms <= u128::from(self.deadline_ms), "{name}: {action:?} took {took_ms} ms");
        assert!(
            matches!(sessions, Sessions::Left(0) | Sessions::None | Sessions::OfTheHost),
            "{name}: {action:?} left {sessions:?}"
        );
        let (kind, says) = match result {
            Ok(outcome) => (format!("{:?}", outcome.state), outcome.detail.as_str()),
            Err(failure) => (format!("{:?}", failure.kind), failure.detail.as_str()),
        };
        assert!(!says.is_empty() && says.len() <= SENTENCE_MAX, "{name}: {action:?} says {says:?}");
        let is_new = self.names.insert(format!("{name} {action:?}"));
        assert!(is_new, "{name}: {action:?} has two rows");
        let _ = writeln!(self.text, "{name} | {took_ms} ms | {}", said(result));
        let left = match sessions {
            Sessions::Left(count) => count.to_string(),
            Sessions::None => "–¹".to_owned(),
            Sessions::OfTheHost => "–²".to_owned(),
        };
        let action = format!("{action:?}").to_lowercase();
        self.leave(&[name, &action, &kind, &seconds(*took_ms), &left, says]);
    }

    /// What a watcher does with it: watchers answer nothing, and no call of them has a deadline.
    pub fn heard(&mut self, name: &str, kind: &str, says: &str) {
        assert!(self.names.insert(name.to_owned()), "{name} has two rows");
        let _ = writeln!(self.text, "{name} | {kind}: {says}");
        self.leave(&[name, "", kind, "–³", "–¹", says]);
    }

    /// What this method cannot meet, and why.
    pub fn never(&mut self, name: &str, why: &str) {
        assert!(self.names.insert(name.to_owned()), "{name} has two rows");
        let _ = writeln!(self.text, "{name} | cannot be: {why}");
        self.leave(&[name, "", "cannot be", "–", "–", why]);
    }

    /// All rows as lines of text, once every fault that every method meets has one. `folder` is
    /// `env!("CARGO_TARGET_TMPDIR")`.
    pub fn finish(self, folder: &str) -> String {
        for name in EVERY_METHOD {
            let has_row = self.names.iter().any(|row| row.starts_with(name));
            assert!(has_row, "{} has no row for {name:?}", self.method);
        }
        let folder = Path::new(folder).join(FOLDER);
        let left = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join(format!("{}.tsv", self.method)), self.rows));
        assert!(left.is_ok(), "{}: {left:?}", folder.display());
        self.text
    }

    fn leave(&mut self, cells: &[&str]) {
        let _ = writeln!(self.rows, "{}\t{}", self.method, cells.join("\t"));
    }
}

/// Outcome or failure in one line.
///
/// ```
/// use node_remedy_sdk::testing::faults::said;
/// use node_remedy_sdk::{Failure, FailureKind};
///
/// let failure = Failure::new(FailureKind::Busy, "the board is starting").retryable();
/// assert_eq!(said(&Err(failure)), "Busy, again: the board is starting");
/// ```
pub fn said(result: &Result<Outcome, Failure>) -> String {
    match result {
        Ok(outcome) => format!("{:?}: {}", outcome.state, outcome.detail),
        Err(failure) => {
            let again = if failure.retryable { ", again" } else { "" };
            let after = failure.retry_after_ms.map(|ms| format!(" in {ms} ms")).unwrap_or_default();
            format!("{:?}{again}{after}: {}", failure.kind, failure.detail)
        }
    }
}

fn seconds(ms: u128) -> String {
    format!("{}.{:02}", ms / 1_000, ms % 1_000 / 10)
}
