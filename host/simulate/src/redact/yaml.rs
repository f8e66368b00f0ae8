//! YAML as a tree whose every scalar knows which bytes of the text it is written as.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use anyhow::{Context as _, ensure};
use node_remedy_api::limits::DOCUMENT_DEPTH_MAX;
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span};

/// All documents of a text.
#[derive(Default)]
pub(super) struct Yaml {
    pub(super) documents: Vec<Rc<Node>>,
    /// From `#` to the end of the line.
    pub(super) comments: Vec<Range<usize>>,
}

/// A value; an alias is the very node that it names.
pub(super) enum Node {
    Scalar(Scalar),
    List(Vec<Rc<Node>>),
    Map(Vec<(String, Rc<Node>)>),
}

/// A scalar and where it is written.
pub(super) struct Scalar {
    pub(super) text: String,
    pub(super) style: ScalarStyle,
    pub(super) range: Range<usize>,
}

/// A collection that is not yet closed.
enum Open {
    List(Vec<Rc<Node>>),
    Map { entries: Vec<(String, Rc<Node>)>, key: Option<String> },
}

#[derive(Default)]
struct Builder {
    yaml: Yaml,
    open: Vec<(Open, usize)>,
    anchors: BTreeMap<usize, Rc<Node>>,
}

impl Node {
    /// The text under a key of a map.
    pub(super) fn text_of(&self, wanted: &str) -> Option<&str> {
        let Self::Map(entries) = self else { return None };
        let (_, value) = entries.iter().find(|(key, _)| key == wanted)?;
        value.text()
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(scalar) => Some(&scalar.text),
            Self::List(_) | Self::Map(_) => None,
        }
    }
}

impl Yaml {
    /// Reads what is known to be YAML.
    pub(super) fn read(source: &str) -> anyhow::Result<Self> {
        let mut builder = Builder::default();
        for event in Parser::new_from_str(source) {
            let (event, span) = event.context("failed to find the credentials")?;
            builder.take(event, span)?;
        }
        Ok(builder.yaml)
    }
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> anyhow::Result<()> {
        let range = || span.byte_range().context("failed to find the credentials: no place");
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let scalar = Scalar { text: text.into_owned(), style, range: range()? };
                self.close(Rc::new(Node::Scalar(scalar)), anchor);
            }
            Event::SequenceStart(_, anchor, _) => self.enter(Open::List(Vec::new()), anchor)?,
            Event::MappingStart(_, anchor, _) => {
                self.enter(Open::Map { entries: Vec::new(), key: None }, anchor)?;
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((Open::List(items), anchor)) => {
                    self.close(Rc::new(Node::List(items)), anchor);
                }
                Some((Open::Map { entries, .. }, anchor)) => {
                    self.close(Rc::new(Node::Map(entries)), anchor);
                }
                None => {}
            },
            Event::Alias(id) => {
                let named = self.anchors.get(&id).context("found an alias to itself")?;
                self.close(named.clone(), 0);
            }
            Event::Comment(..) => self.yaml.comments.push(range()?),
            Event::DocumentStart(..) => self.anchors.clear(),
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Anchor(..) => {}
            Event::UnresolvedAlias(name) => anyhow::bail!("found the alias *{name} of nothing"),
            // The parser may learn new events; one that we do not know may carry a secret.
            _ => anyhow::bail!("found YAML that this version does not know"),
        }
        Ok(())
    }

    fn enter(&mut self, open: Open, anchor: usize) -> anyhow::Result<()> {
        let depth = self.open.len();
        ensure!(depth < DOCUMENT_DEPTH_MAX, "found more than {DOCUMENT_DEPTH_MAX} levels of YAML");
        self.open.push((open, anchor));
        Ok(())
    }

    fn close(&mut self, node: Rc<Node>, anchor: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.yaml.documents.push(node),
            Some((Open::List(items), _)) => items.push(node),
            Some((Open::Map { entries, key }, _)) => match key.take() {
                None => *key = Some(node.text().unwrap_or_default().to_owned()),
                Some(key) => entries.push((key, node)),
            },
        }
    }
}
