//! Everything that a set of documents configures: what `node-remedy check FILE…` reads, and what a
//! controller holds. Each document is sorted by its kind and read by the module of that kind.

use std::collections::BTreeMap;

use crate::document::{Document, Path, Problems, Reading, Severity, Tree, Value, nearest};
use crate::plan::{FenceSource, NodeReading};
use crate::policy::Policy;
use crate::{fenceplugin, plan, policy};

/// The kinds that are read.
const KINDS: [&str; 5] =
    ["Configuration", "RemedyConfiguration", "FenceConfiguration", "FencePlugin", "ConfigMap"];

/// What only a text that configures contains.
const MARKS: [&str; 2] = ["node-remedy/v1alpha", "kind: Configuration"];

/// What was read, without what was refused.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// Every valid policy.
    pub policies: Vec<Policy>,
    /// Every valid fence configuration.
    pub fences: Vec<FenceSource>,
    /// Every valid plugin from outside.
    pub plugins: Vec<fenceplugin::Source>,
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
        let (mut remedied, mut fenced) = (Selectors::default(), Selectors::default());
        for document in documents {
            match kind(document) {
                "Configuration" | "RemedyConfiguration" => {
                    all.take_policy(document, &mut remedied);
                }
                "FenceConfiguration" => {
                    let reading = plan::read(document);
                    if reading.value.is_some() {
                        all.problems.append(fenced.add(document));
                    }
                    all.fences.extend(reading.value);
                    all.problems.append(reading.problems);
                }
                "FencePlugin" => {
                    let reading = fenceplugin::read(document);
                    all.plugins.extend(reading.value);
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

    fn take_policy(&mut self, document: &Document, remedied: &mut Selectors) {
        let reading = policy::read(document);
        if reading.value.is_some() {
            self.problems.append(remedied.add(document));
        }
        self.policies.extend(reading.value);
        self.problems.append(reading.problems);
    }

    fn take_inside(&mut self, document: &Document) {
        for Inside { reading, .. } in inside(document, |_| false) {
            self.policies.extend(reading.value.unwrap_or_default());
            self.problems.append(reading.problems);
        }
    }
}

/// The `nodeSelector`s of one kind, as written, each with who wrote it first. What every labelling of nodes would
/// show is told here; that two others select one node is found when there is such a node.
#[derive(Default)]
struct Selectors(BTreeMap<Option<String>, String>);

impl Selectors {
    /// Warns where an earlier one surely selects the same nodes.
    fn add(&mut self, document: &Document) -> Problems {
        let mut problems = Problems::none();
        let in_spec = Path::root().field("spec").field("nodeSelector");
        let beside_header = Path::root().field("nodeSelector");
        let is_object = document.root.get("spec").is_some();
        let path = if is_object { in_spec } else { beside_header };
        let selector = document.at(&path).and_then(Tree::text).map(|text| text.trim().to_owned());
        let every_node = self.0.get(&None).filter(|_| selector.is_some());
        let same = match &selector {
            Some(_) => self.0.get(&selector),
            None => self.0.values().next(),
        };
        if let Some(earlier) = same.or(every_node) {
            let sentence = format!(
                "found nodes that {earlier} selects, too: one that both select is not acted on; \
                 expected selectors that exclude each other"
            );
            problems.push(document.problem(Severity::Warning, &path, sentence));
        }
        let name = document.metadata().and_then(|metadata| metadata.get("name")?.text());
        let name = name.map_or_else(
            || document.origin.clone(),
            |name| format!("{name} ({})", document.origin),
        );
        self.0.entry(selector).or_insert(name);
        problems
    }
}

/// One key of a ConfigMap that holds `Configuration` documents.
#[derive(Debug)]
pub struct Inside {
    /// `ConfigMap/name[key]`, after the file's name where it stands in one.
    pub origin: String,
    /// Its policies, all or none, and what was wrong.
    pub reading: Reading<Vec<Policy>>,
}

/// The keys of a ConfigMap that configure, whatever they are called: those whose text names our
/// version or that kind, and those that `was_read` knows by their origin, so that a mistake in the
/// very kind is told and does not look like a deletion.
pub fn inside(document: &Document, was_read: impl Fn(&str) -> bool) -> Vec<Inside> {
    let texts = texts_inside(document, was_read);
    let read = |(origin, Reading { value: documents, mut problems }): (String, Reading<_>)| {
        let mut policies = Vec::new();
        for document in documents.into_iter().flatten() {
            let reading = policy::read(&document);
            problems.append(reading.problems);
            policies.extend(reading.value);
        }
        if policies.len() > 1 {
            for (number, policy) in (1_usize..).zip(&mut policies) {
                policy.origin = format!("{origin} document {number}");
            }
        }
        Inside { origin, reading: problems.with(Some(policies)) }
    };
    texts.map(read).collect()
}

/// Every document that is a policy, on its own or inside a ConfigMap, whether it is valid or not.
pub fn policy_documents(documents: &[Document]) -> Vec<Document> {
    let mut found = Vec::new();
    for document in documents {
        match kind(document) {
            "Configuration" | "RemedyConfiguration" => found.push(document.clone()),
            "ConfigMap" => found.extend(
                texts_inside(document, |_| false)
                    .flat_map(|(_, reading)| reading.value.unwrap_or_default()),
            ),
            _ => {}
        }
    }
    found
}

/// The documents under each key of a ConfigMap that configures.
fn texts_inside(
    document: &Document,
    was_read: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (String, Reading<Vec<Document>>)> {
    let entries = match document.root.get("data").map(|data| &data.value) {
        Some(Value::Map(entries)) => entries.as_slice(),
        Some(_) | None => &[],
    };
    entries.iter().filter_map(move |entry| {
        let text = entry.tree.text().filter(|text| !text.trim().is_empty())?;
        let origin = name_inside(document, &entry.key);
        let configures = MARKS.iter().any(|mark| text.contains(mark)) || was_read(&origin);
        configures.then(|| {
            let reading = Document::read_all(&origin, text);
            (origin, reading)
        })
    })
}

/// How a document inside a ConfigMap is named; its lines count from its own first line.
fn name_inside(document: &Document, key: &str) -> String {
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
