//! Everything that a set of documents configures: what `node-remedy check FILE…` reads, and what a
//! controller holds. Each document is sorted by its kind and read by the module of that kind.

use crate::document::{Document, Path, Problems, Severity, Tree, Value, nearest};
use crate::plan::{self, FenceSource, NodeReading};
use crate::policy::{self, Policy};

/// The kinds that are read.
const KINDS: [&str; 4] =
    ["Configuration", "RemedyConfiguration", "FenceConfiguration", "ConfigMap"];

/// What was read, without what was refused.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// Every valid policy.
    pub policies: Vec<Policy>,
    /// Every valid fence configuration.
    pub fences: Vec<FenceSource>,
    /// All that was found wrong or questionable, in the order it was read.
    pub problems: Problems,
}

impl Configuration {
    /// Reads files: each a name for messages, and its text.
    pub fn from_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut problems = Problems::none();
        let mut documents = Vec::new();
        for (name, text) in files {
            let reading = Document::read_all(name, text);
            problems.append(reading.problems);
            documents
                .extend(reading.value.unwrap_or_default().into_iter().flat_map(Document::items));
        }
        let mut configuration = Self::from_documents(&documents);
        problems.append(std::mem::take(&mut configuration.problems));
        Self { problems, ..configuration }
    }

    /// Reads documents, and the documents inside their ConfigMaps.
    pub fn from_documents(documents: &[Document]) -> Self {
        let mut all = Self::default();
        for document in documents {
            match kind(document) {
                "Configuration" | "RemedyConfiguration" => all.take_policy(document),
                "FenceConfiguration" => {
                    let reading = plan::read(document);
                    all.fences.extend(reading.value);
                    all.problems.append(reading.problems);
                }
                "ConfigMap" => all.take_inside(document),
                other => all.refuse_kind(document, other),
            }
        }
        for NodeReading { reading, .. } in plan::read_config_maps(documents) {
            all.fences.extend(reading.value);
            all.problems.append(reading.problems);
        }
        all
    }

    /// A kind of ours that does not exist, or none, is an error; other people's are passed over.
    fn refuse_kind(&mut self, document: &Document, kind: &str) {
        let version = document.root.get("apiVersion").and_then(Tree::text).unwrap_or_default();
        let ours = kind.is_empty() || version.starts_with("node-remedy");
        let (severity, so) = if ours {
            (Severity::Error, "")
        } else {
            (Severity::Warning, ", which is passed over")
        };
        let sentence = match nearest(kind, KINDS) {
            Some(near) => format!("found kind {kind:?}{so}, expected {near} (did you mean that?)"),
            None => format!("found kind {kind:?}{so}, expected {}", KINDS.join(", ")),
        };
        self.problems.push(document.problem(severity, &Path::root().field("kind"), sentence));
    }

    fn take_policy(&mut self, document: &Document) {
        let reading = policy::read(document);
        self.policies.extend(reading.value);
        self.problems.append(reading.problems);
    }

    /// A ConfigMap may hold `Configuration` documents under keys of any name.
    fn take_inside(&mut self, document: &Document) {
        let Some(Value::Map(entries)) = document.root.get("data").map(|data| &data.value) else {
            return;
        };
        for entry in entries {
            let text = entry.tree.text().unwrap_or_default();
            if !text.contains("kind: Configuration") {
                continue;
            }
            let reading = Document::read_all(&inside(document, &entry.key), text);
            self.problems.append(reading.problems);
            for document in reading.value.unwrap_or_default() {
                self.take_policy(&document);
            }
        }
    }
}

/// How a document inside a ConfigMap is named; its lines count from its own first line.
fn inside(document: &Document, key: &str) -> String {
    let name = document.metadata().and_then(|metadata| metadata.get("name")).and_then(Tree::text);
    let object = format!("ConfigMap/{}", name.unwrap_or("?"));
    if document.origin == object {
        format!("{object}[{key}]")
    } else {
        format!("{}: {object}[{key}]", document.origin)
    }
}

fn kind(document: &Document) -> &str {
    document.root.get("kind").and_then(Tree::text).unwrap_or_default()
}
