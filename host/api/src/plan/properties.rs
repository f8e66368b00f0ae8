//! `name=value` lines, as the proposals' ConfigMaps hold them: inside one key of `data`, or as the
//! keys of `data` themselves. It knows nothing of what the names mean.

use std::collections::BTreeSet;

use crate::document::{Document, Path, Problems, Spot, Tree, Value};

/// One `name=value`, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) value: String,
    /// The key of `data` whose lines it is among; empty for a key of its own.
    pub(super) entry: String,
    pub(super) spot: Spot,
}

/// A named group of lines: a method, a template, a stage or a node.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    /// The ConfigMap that holds it.
    pub(super) config_map: String,
    /// `ConfigMap/name`, for the sources of a plan.
    pub(super) origin: String,
    pub(super) lines: Vec<Line>,
    pub(super) spot: Spot,
}

impl Definition {
    /// The line of this name.
    pub(super) fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| normal(&line.name) == normal(name))
    }
}

/// Names with underscores are not legal names of objects today; both spellings are one name.
pub(super) fn normal(name: &str) -> String {
    name.trim().to_lowercase().replace('_', "-")
}

/// The keys of `data` with their texts. Numbers and booleans count as the text they were.
pub(super) fn data(document: &Document) -> Vec<(String, String, Path)> {
    let path = Path::root().field("data");
    let Some(Value::Map(entries)) = document.root.get("data").map(|data| &data.value) else {
        return Vec::new();
    };
    entries
        .iter()
        .map(|entry| (entry.key.clone(), scalar(&entry.tree), path.field(&entry.key)))
        .collect()
}

fn scalar(tree: &Tree) -> String {
    match &tree.value {
        Value::Text(text) => text.clone(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::List(_) | Value::Map(_) => String::new(),
    }
}

/// The lines of one key's text.
pub(super) fn lines(
    document: &Document,
    entry: &str,
    text: &str,
    path: &Path,
    problems: &mut Problems,
) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut names = BTreeSet::new();
    for (index, text) in text.lines().enumerate() {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let mut spot = document.spot(path);
        spot.place = document.place_of_line(path, index, text).or(spot.place);
        let Some((name, value)) = text.split_once('=') else {
            // Not the line itself: it may hold a password.
            problems.push(spot.error("found a line without `=`, expected name=value"));
            continue;
        };
        let name = name.trim().to_owned();
        spot.path = path.field(&name);
        if !names.insert(name.clone()) {
            problems.push(spot.error("found it a second time, expected it once"));
            continue;
        }
        let (value, entry) = (value.trim().to_owned(), entry.to_owned());
        lines.push(Line { name, value, entry, spot });
    }
    lines
}

/// All lines of a ConfigMap that holds one definition.
pub(super) fn definition(document: &Document, name: &str, problems: &mut Problems) -> Definition {
    let mut all = Vec::new();
    for (key, text, path) in data(document) {
        if key.ends_with(".properties") {
            all.extend(lines(document, &key, &text, &path, problems));
        } else {
            let spot = document.spot(&path);
            all.push(Line { name: key, value: text.trim().to_owned(), entry: String::new(), spot });
        }
    }
    Definition {
        config_map: name.to_owned(),
        origin: format!("ConfigMap/{name}"),
        lines: all,
        spot: document.spot(&Path::root().field("data")),
    }
}
