//! Replaces the credentials in a scenario or snapshot by stand-ins, before anything is played.
//!
//! The text stays as it was written but for the credentials, so that lines keep their numbers and
//! a report can carry it. What a Secret holds, and what stands under or behind the name of a user
//! or password, counts as a credential; equal ones get equal stand-ins, so that a simulated BMC and
//! the plugin agree exactly where they agreed before. What has no such name is not known to be
//! secret and stays.

pub mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use k8s_openapi::ByteString;
use serde_saphyr::granit_parser::ScalarStyle;

use crate::redact::yaml::{Node, Scalar, Yaml};

/// The account of simulated BMCs where nobody says another, which is no secret.
const ACCOUNT: [&str; 2] = ["admin", "simulated"];
/// What kubectl leaves behind: the whole object once more, as text in an annotation.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Said in every text in which something was replaced.
const NOTE: &str = "# Users and passwords were replaced by stand-ins before this was played.\n";

/// What stands for what, over all files of one scenario.
pub struct Redactor {
    kind: Kind,
    stand_ins: BTreeMap<String, String>,
}

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It says what its BMCs take: each credential gets a stand-in of its own.
    Scenario,
    /// Its BMCs take the simulator's account, so that is what every credential becomes.
    Snapshot,
}

/// What a value is by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Plain,
    User,
    Password,
    /// In `data` of a Secret.
    EncodedUser,
    EncodedPassword,
    /// Says again what is said elsewhere.
    Copy,
}

/// What is to be replaced in one text, by where it begins.
#[derive(Default)]
struct Changes {
    all: BTreeMap<usize, (Range<usize>, String)>,
    /// Values that were looked at in that role: an alias is looked at once.
    seen: BTreeSet<(*const Node, Role)>,
}

impl Redactor {
    /// One that has replaced nothing.
    pub fn new(kind: Kind) -> Self {
        Self { kind, stand_ins: BTreeMap::new() }
    }

    /// The text with stand-ins, and a comment at its end if there are any.
    pub fn text(&mut self, source: &str) -> anyhow::Result<String> {
        let yaml = Yaml::read(source)?;
        let mut changes = Changes::default();
        for document in &yaml.documents {
            self.look(source, document, Role::Plain, &mut changes);
        }
        for range in yaml.comments {
            let said = source.get(range.clone()).unwrap_or_default();
            changes.make(range, said, self.lines(said, &['=', ':']));
        }
        Ok(changes.apply(source))
    }

    fn look(&mut self, source: &str, node: &Rc<Node>, role: Role, changes: &mut Changes) {
        if !changes.seen.insert((Rc::as_ptr(node), role)) {
            return;
        }
        match &**node {
            Node::Scalar(scalar) => {
                let said = source.get(scalar.range.clone()).unwrap_or_default();
                let new = self.scalar(scalar, said, role);
                changes.make(scalar.range.clone(), said, new);
            }
            Node::List(items) => {
                for item in items {
                    self.look(source, item, role, changes);
                }
            }
            Node::Map(entries) => {
                let is_secret = node.text_of("kind") == Some("Secret");
                for (key, value) in entries {
                    match (key.as_str(), &**value) {
                        ("data", Node::Map(data)) if is_secret => {
                            for (key, value) in data {
                                let is_user = role_of(key) == Role::User;
                                let role =
                                    if is_user { Role::EncodedUser } else { Role::EncodedPassword };
                                self.look(source, value, role, changes);
                            }
                        }
                        ("stringData", Node::Map(data)) if is_secret => {
                            for (key, value) in data {
                                let is_user = role_of(key) == Role::User;
                                let role = if is_user { Role::User } else { Role::Password };
                                self.look(source, value, role, changes);
                            }
                        }
                        (_, Node::Scalar(_)) => self.look(source, value, role_of(key), changes),
                        (_, Node::List(_) | Node::Map(_)) => {
                            self.look(source, value, Role::Plain, changes);
                        }
                    }
                }
            }
        }
    }

    /// A scalar as it is to be written.
    fn scalar(&mut self, scalar: &Scalar, said: &str, role: Role) -> String {
        let is_block = matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded);
        let new = match role {
            Role::Plain if is_block => return self.lines(said, &['=']),
            Role::Plain => self.lines(&scalar.text, &['=']),
            Role::User | Role::Password => self.stand_in(&scalar.text, role),
            Role::EncodedUser => self.encoded(&scalar.text, Role::User),
            Role::EncodedPassword => self.encoded(&scalar.text, Role::Password),
            Role::Copy => "{}".to_owned(),
        };
        if new == scalar.text {
            return said.to_owned();
        }
        if is_block {
            return in_block(said, new.trim_end());
        }
        let is_bare = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if scalar.style == ScalarStyle::Plain && new.chars().all(is_bare) {
            return new;
        }
        // A text of JSON is one of YAML.
        serde_json::Value::String(new).to_string()
    }

    /// Lines such as `passwd=hunter2`, also where they are commented out.
    fn lines(&mut self, text: &str, between: &[char]) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let Some((name, value)) = line.split_once(between) else {
                out.push_str(line);
                continue;
            };
            let role = role_of(name.trim_start_matches(['#', ' ', '\t']).trim_end());
            let is_credential = matches!(role, Role::User | Role::Password);
            let secret = value.trim();
            match value.split_once(secret) {
                Some((before, after)) if is_credential && !secret.is_empty() => {
                    out.push_str(line.get(..line.len() - value.len()).unwrap_or_default());
                    out.push_str(before);
                    out.push_str(&self.stand_in(secret, role));
                    out.push_str(after);
                }
                Some(_) | None => out.push_str(line),
            }
        }
        out
    }

    fn encoded(&mut self, text: &str, role: Role) -> String {
        let bare: String = text.split_whitespace().collect();
        let decoded = serde_json::from_value::<ByteString>(bare.clone().into());
        let plain = decoded.ok().and_then(|bytes| String::from_utf8(bytes.0).ok());
        // What is no text is told apart from others by how it is written.
        let stand_in = self.stand_in(&plain.unwrap_or(bare), role);
        match serde_json::to_value(ByteString(stand_in.into_bytes())) {
            Ok(serde_json::Value::String(encoded)) => encoded,
            Ok(_) | Err(_) => String::new(),
        }
    }

    /// What stands for a credential; a newline at its end is not part of it.
    fn stand_in(&mut self, secret: &str, role: Role) -> String {
        let trimmed = secret.trim_end_matches('\n');
        let newlines = secret.get(trimmed.len()..).unwrap_or_default();
        let [user, password] = ACCOUNT;
        let stand_in = match self.kind {
            _ if trimmed.is_empty() || ACCOUNT.contains(&trimmed) => trimmed,
            Kind::Snapshot if role == Role::User => user,
            Kind::Snapshot => password,
            Kind::Scenario => {
                let next = format!("stand-in-{}", self.stand_ins.len() + 1);
                self.stand_ins.entry(trimmed.to_owned()).or_insert(next)
            }
        };
        format!("{stand_in}{newlines}")
    }
}

impl Changes {
    fn make(&mut self, range: Range<usize>, old: &str, new: String) {
        if old != new {
            self.all.insert(range.start, (range, new));
        }
    }

    fn apply(self, source: &str) -> String {
        let mut out = String::with_capacity(source.len());
        let mut taken = 0;
        if self.all.is_empty() {
            return source.to_owned();
        }
        for (range, new) in self.all.into_values() {
            out.push_str(source.get(taken..range.start).unwrap_or_default());
            out.push_str(&new);
            taken = range.end;
        }
        out.push_str(source.get(taken..).unwrap_or_default());
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(NOTE);
        out
    }
}

/// What a value is by its key, in the spellings of fence agents and of our own configurations.
fn role_of(key: &str) -> Role {
    if key == LAST_APPLIED {
        return Role::Copy;
    }
    let key = key.to_lowercase().replace('-', "_");
    let is_password = ["passwd", "password", "passphrase"].iter().any(|end| key.ends_with(end));
    match key.as_str() {
        _ if is_password => Role::Password,
        "hexadecimal_kg" | "kg" | "community" => Role::Password,
        "login" | "user" | "username" => Role::User,
        _ => Role::Plain,
    }
}

/// A block of text whose first line of content is `new`, as many lines long as before.
fn in_block(said: &str, new: &str) -> String {
    let mut is_written = false;
    let mut out = String::new();
    for (number, line) in said.split_inclusive('\n').enumerate() {
        let content = line.trim();
        let is_head = number == 0 && content.starts_with(['|', '>']);
        match line.split_once(content) {
            Some((before, after)) if !content.is_empty() && !is_head => {
                if !is_written {
                    out.push_str(before);
                    out.push_str(new);
                }
                is_written = true;
                out.push_str(after);
            }
            Some(_) | None => out.push_str(line),
        }
    }
    out
}

#[cfg(test)]
mod tests;
