//! YAML as a tree whose every value knows its line and column; or an object of the API server as
//! the same tree, without places. Reads nothing but the text it is given, and no more of it than
//! its limits allow.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::problem::{Path, Problem, Problems, Reading, Segment, Severity, Spot, shorten};
use crate::document::problem::Place;
use crate::limits;

/// One document and where it came from.
#[derive(Clone, Debug)]
pub struct Document {
    /// A file's path, or `Kind/name` for an object.
    pub origin: String,
    /// Its value.
    pub root: Tree,
    /// The text's lines, where there is a text. Shared: a mebibyte may hold very many documents.
    lines: Arc<[String]>,
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// Absent in objects of the API server.
    pub place: Option<Place>,
    /// The value.
    pub value: Value,
}

/// What YAML and JSON have in common.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// true or false.
    Boolean(bool),
    /// A number.
    Number(serde_json::Number),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Tree>),
    /// A map, in the order it was written.
    Map(Vec<Entry>),
}

/// One key of a map with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Option<Place>,
    /// The value.
    pub tree: Tree,
}

impl Document {
    /// Every document of a YAML text. An empty text has none.
    pub fn read_all(origin: &str, text: &str) -> Reading<Vec<Self>> {
        let mut problems = Problems::none();
        let mut refuse = |place, sentence: String| {
            problems.push(Problem {
                origin: origin.to_owned(),
                place,
                path: Path::root(),
                severity: Severity::Error,
                sentence,
            });
        };
        if text.len() > limits::DOCUMENT_BYTES_MAX {
            refuse(
                None,
                format!(
                    "found {} bytes, expected at most {}",
                    text.len(),
                    limits::DOCUMENT_BYTES_MAX
                ),
            );
            return problems.with(None);
        }
        if let Some(place) = control_character(text) {
            refuse(
                Some(place),
                "found a control character, expected text; is this a YAML file?".to_owned(),
            );
            return problems.with(None);
        }
        let mut builder = Builder::default();
        match builder.build(text) {
            Ok(()) => {}
            Err(Fault { place, sentence }) => refuse(Some(place), sentence),
        }
        for Fault { place, sentence } in builder.faults {
            refuse(Some(place), sentence);
        }
        let lines: Arc<[String]> = text.lines().map(str::to_owned).collect();
        let documents = builder
            .documents
            .into_iter()
            .filter(|root| root.value != Value::Null)
            .map(|root| Self { origin: origin.to_owned(), root, lines: lines.clone() })
            .collect();
        problems.with(Some(documents))
    }

    /// An object as the API server gave it; its origin is `Kind/name`.
    pub fn from_object(object: &serde_json::Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(serde_json::Value::as_str);
        let origin =
            format!("{}/{}", text("/kind").unwrap_or("?"), text("/metadata/name").unwrap_or("?"));
        Self { origin, root: Tree::from_json(object), lines: Arc::default() }
    }

    /// The items of a list document (`kind: List`, or a bare list of objects), or the document
    /// itself.
    pub fn items(self) -> Vec<Self> {
        let Self { origin, root, lines } = self;
        let is_list = root.get("kind").and_then(Tree::text).is_some_and(|kind| kind == "List");
        let trees = match root {
            Tree { value: Value::List(trees), .. } => trees,
            list if is_list => match list.get("items") {
                Some(Tree { value: Value::List(trees), .. }) => trees.clone(),
                Some(_) | None => Vec::new(),
            },
            single => vec![single],
        };
        trees
            .into_iter()
            .map(|root| Self { origin: origin.clone(), root, lines: lines.clone() })
            .collect()
    }

    /// The object's metadata. One proposal prints it as a list of one map, which no API server takes
    /// and files may have.
    pub fn metadata(&self) -> Option<&Tree> {
        let metadata = self.root.get("metadata")?;
        match &metadata.value {
            Value::List(items) => match items.as_slice() {
                [only] => Some(only),
                [] | [_, _, ..] => None,
            },
            Value::Null | Value::Boolean(_) | Value::Number(_) | Value::Text(_) | Value::Map(_) => {
                Some(metadata)
            }
        }
    }

    /// The value at a path.
    pub fn at(&self, path: &Path) -> Option<&Tree> {
        path.segments().iter().try_fold(&self.root, |tree, segment| tree.child(segment))
    }

    /// A path with its place, or with that of the nearest parent that exists.
    pub fn spot(&self, path: &Path) -> Spot {
        Spot { origin: self.origin.clone(), place: self.place(path), path: path.clone() }
    }

    /// A problem at a path.
    pub fn problem(&self, severity: Severity, path: &Path, sentence: String) -> Problem {
        let Spot { origin, place, path } = self.spot(path);
        Problem { origin, place, path, severity, sentence }
    }

    /// Where the value at a path stands.
    fn place(&self, path: &Path) -> Option<Place> {
        let mut tree = &self.root;
        for segment in path.segments() {
            match tree.child(segment) {
                Some(child) => tree = child,
                None => break,
            }
        }
        tree.place
    }

    /// Where a line of the block text at a path stands. `needle` is what the line begins with.
    pub(crate) fn place_of_line(&self, path: &Path, index: usize, needle: &str) -> Option<Place> {
        let block = self.place(path)?;
        let line = block.line.saturating_add(index);
        // Some parsers place a block at its indicator and others at its first character.
        [line, line.saturating_add(1)].into_iter().find_map(|line| {
            let text = self.lines.get(line.checked_sub(1)?)?;
            let before = text.split(needle).next().filter(|before| before.len() < text.len())?;
            before
                .trim()
                .is_empty()
                .then(|| Place { line, column: before.chars().count().saturating_add(1) })
        })
    }
}

impl Tree {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => {
                entries.iter().find(|entry| entry.key == key).map(|entry| &entry.tree)
            }
            Value::Null
            | Value::Boolean(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::List(_) => None,
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Null | Value::Boolean(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
                None
            }
        }
    }

    /// The value without its places.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Boolean(boolean) => (*boolean).into(),
            Value::Number(number) => number.clone().into(),
            Value::Text(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.tree.to_json())).collect()
            }
        }
    }

    /// What was found, for an error.
    pub(crate) fn found(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Boolean(boolean) => boolean.to_string(),
            Value::Number(number) => format!("the number {number}"),
            Value::Text(text) if text.is_empty() => "an empty text".to_owned(),
            Value::Text(text) => shorten(text),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        }
    }

    fn from_json(json: &serde_json::Value) -> Self {
        let value = match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(boolean) => Value::Boolean(*boolean),
            serde_json::Value::Number(number) => Value::Number(number.clone()),
            serde_json::Value::String(text) => Value::Text(text.clone()),
            serde_json::Value::Array(items) => {
                Value::List(items.iter().map(Self::from_json).collect())
            }
            serde_json::Value::Object(map) => Value::Map(
                map.iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        place: None,
                        tree: Self::from_json(value),
                    })
                    .collect(),
            ),
        };
        Self { place: None, value }
    }

    fn child(&self, segment: &Segment) -> Option<&Self> {
        match (segment, &self.value) {
            (Segment::Field(name), _) => self.get(name),
            (Segment::Index(index), Value::List(items)) => items.get(*index),
            (
                Segment::Index(_),
                Value::Null | Value::Boolean(_) | Value::Number(_) | Value::Text(_) | Value::Map(_),
            ) => None,
        }
    }

    fn size(&self) -> usize {
        let inside = match &self.value {
            Value::List(items) => items.iter().map(Self::size).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.tree.size()).sum(),
            Value::Null | Value::Boolean(_) | Value::Number(_) | Value::Text(_) => 0_usize,
        };
        inside.saturating_add(1)
    }

    /// Of its texts.
    fn bytes(&self) -> usize {
        match &self.value {
            Value::List(items) => items.iter().map(Self::bytes).sum(),
            Value::Map(entries) => {
                entries.iter().map(|entry| entry.key.len().saturating_add(entry.tree.bytes())).sum()
            }
            Value::Text(text) => text.len(),
            Value::Null | Value::Boolean(_) | Value::Number(_) => 0,
        }
    }

    fn depth(&self) -> usize {
        let inside = match &self.value {
            Value::List(items) => items.iter().map(Self::depth).max(),
            Value::Map(entries) => entries.iter().map(|entry| entry.tree.depth()).max(),
            Value::Null | Value::Boolean(_) | Value::Number(_) | Value::Text(_) => None,
        };
        inside.unwrap_or(0).saturating_add(1)
    }
}

/// Something that ends the reading, or, among `faults`, does not.
struct Fault {
    place: Place,
    sentence: String,
}

/// A collection that is not yet closed.
enum Open {
    List { place: Place, anchor: usize, items: Vec<Tree> },
    Map { place: Place, anchor: usize, entries: Vec<Entry>, keys: Keys },
}

/// The keys of a map that is not yet closed.
#[derive(Default)]
struct Keys {
    /// The one whose value comes next.
    next: Option<(String, Place)>,
    /// Those that came, with their lines.
    seen: BTreeMap<String, usize>,
}

/// Builds trees out of the parser's events.
#[derive(Default)]
struct Builder {
    documents: Vec<Tree>,
    faults: Vec<Fault>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Tree>,
    nodes: usize,
    /// Of texts that aliases stand for.
    bytes: usize,
}

impl Builder {
    fn build(&mut self, text: &str) -> Result<(), Fault> {
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| scan_fault(&error))?;
            self.take(event, start(span))?;
        }
        Ok(())
    }

    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Fault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(1, place)?;
                refuse_tag(tag.as_deref(), place)?;
                let value = match style {
                    ScalarStyle::Plain => plain(&text),
                    ScalarStyle::SingleQuoted
                    | ScalarStyle::DoubleQuoted
                    | ScalarStyle::Literal
                    | ScalarStyle::Folded => Value::Text(text.into_owned()),
                };
                self.close(Tree { place: Some(place), value }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse_tag(tag.as_deref(), place)?;
                self.enter(Open::List { place, anchor, items: Vec::new() }, place)
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse_tag(tag.as_deref(), place)?;
                self.enter(
                    Open::Map { place, anchor, entries: Vec::new(), keys: Keys::default() },
                    place,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List { place, anchor, items }) => {
                    self.close(Tree { place: Some(place), value: Value::List(items) }, anchor)
                }
                Some(Open::Map { place, anchor, entries, .. }) => {
                    self.close(Tree { place: Some(place), value: Value::Map(entries) }, anchor)
                }
                None => Ok(()),
            },
            Event::Alias(id) => {
                let Some(tree) = self.anchors.get(&id) else {
                    return Err(fault(place, "found an alias to itself, expected a value"));
                };
                let (tree, size, bytes) = (tree.clone(), tree.size(), tree.bytes());
                self.count(size, place)?;
                self.count_bytes(bytes, place)?;
                if tree.depth().saturating_add(self.open.len()) > limits::DOCUMENT_DEPTH_MAX {
                    return Err(too_deep(place));
                }
                self.close(Tree { place: Some(place), value: tree.value }, 0)
            }
            Event::UnresolvedAlias(name) => {
                Err(fault(place, &format!("found the alias *{name}, expected an anchor before it")))
            }
            Event::DocumentStart(..) => {
                self.anchors.clear();
                Ok(())
            }
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentEnd
            | Event::Anchor(..)
            | Event::Comment(..) => Ok(()),
            // The parser may learn new events; one that we do not know may carry a value.
            _ => Err(fault(place, "found YAML that this version does not know")),
        }
    }

    fn enter(&mut self, open: Open, place: Place) -> Result<(), Fault> {
        self.count(1, place)?;
        if self.open.len() >= limits::DOCUMENT_DEPTH_MAX {
            return Err(too_deep(place));
        }
        self.open.push(open);
        Ok(())
    }

    /// A value is complete: it becomes an item, a key, a key's value or the document.
    fn close(&mut self, tree: Tree, anchor: usize) -> Result<(), Fault> {
        if anchor > 0 {
            self.anchors.insert(anchor, tree.clone());
        }
        match self.open.last_mut() {
            None => self.documents.push(tree),
            Some(Open::List { items, .. }) => items.push(tree),
            Some(Open::Map { entries, keys, .. }) => match keys.next.take() {
                None => {
                    let place = tree.place.unwrap_or(Place { line: 1, column: 1 });
                    keys.next = Some((key_text(&tree, place)?, place));
                }
                Some((key, place)) => {
                    if let Some(line) = keys.seen.get(&key) {
                        self.faults.push(Fault {
                            place,
                            sentence: format!(
                                "found the key {} twice, first on line {line}",
                                shorten(&key)
                            ),
                        });
                    } else {
                        keys.seen.insert(key.clone(), place.line);
                        entries.push(Entry { key, place: Some(place), tree });
                    }
                }
            },
        }
        Ok(())
    }

    fn count(&mut self, more: usize, place: Place) -> Result<(), Fault> {
        self.nodes = self.nodes.saturating_add(more);
        if self.nodes <= limits::DOCUMENT_NODES_MAX {
            return Ok(());
        }
        Err(fault(
            place,
            &format!(
                "found more than {} values with aliases expanded, expected a smaller document",
                limits::DOCUMENT_NODES_MAX
            ),
        ))
    }

    /// What is written is bounded by the text; what aliases repeat of it is not.
    fn count_bytes(&mut self, more: usize, place: Place) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes <= limits::DOCUMENT_BYTES_MAX {
            return Ok(());
        }
        Err(fault(
            place,
            &format!(
                "found aliases that stand for more than {} bytes, expected a smaller document",
                limits::DOCUMENT_BYTES_MAX
            ),
        ))
    }
}

fn key_text(tree: &Tree, place: Place) -> Result<String, Fault> {
    match &tree.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Boolean(boolean) => Ok(boolean.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null => Ok("null".to_owned()),
        Value::List(_) | Value::Map(_) => {
            Err(fault(place, &format!("found {} as a key, expected text", tree.found())))
        }
    }
}

/// What a plain scalar means in YAML 1.2's core schema. Words such as `off` stay text; numbers
/// that JSON does not have, too.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Boolean(true),
        "false" | "False" | "FALSE" => return Value::Boolean(false),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return Value::Number(number.into());
    }
    if let Ok(number) = text.parse::<u64>() {
        return Value::Number(number.into());
    }
    let like_a_number = text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let number = text.parse::<f64>().ok().filter(|_| like_a_number);
    match number.and_then(serde_json::Number::from_f64) {
        Some(number) => Value::Number(number),
        None => Value::Text(text.to_owned()),
    }
}

fn refuse_tag(tag: Option<&Tag>, place: Place) -> Result<(), Fault> {
    match tag {
        None => Ok(()),
        Some(_) => Err(fault(place, "found a YAML tag, expected a value without one")),
    }
}

fn too_deep(place: Place) -> Fault {
    fault(place, &format!("found more than {} levels, expected fewer", limits::DOCUMENT_DEPTH_MAX))
}

fn fault(place: Place, sentence: &str) -> Fault {
    Fault { place, sentence: sentence.to_owned() }
}

fn scan_fault(error: &ScanError) -> Fault {
    let marker = error.marker();
    Fault {
        place: Place { line: marker.line().max(1), column: marker.col().saturating_add(1) },
        sentence: format!("found what is not YAML: {}", error.info()),
    }
}

fn start(span: Span) -> Place {
    Place { line: span.start.line().max(1), column: span.start.col().saturating_add(1) }
}

/// The first character that no text file has.
fn control_character(text: &str) -> Option<Place> {
    text.lines().enumerate().find_map(|(index, line)| {
        let column =
            line.chars().position(|c| c.is_control() && !matches!(c, '\t' | '\r' | '\u{85}'))?;
        Some(Place { line: index.saturating_add(1), column: column.saturating_add(1) })
    })
}
