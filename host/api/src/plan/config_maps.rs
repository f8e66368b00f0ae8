//! The ConfigMaps of the two proposals: `fence-config-NODE` with its methods inside, and the
//! separate objects `fence-method-*`, `fence-method-template-*`, `fence-stage-*` and
//! `node-fence-config-*`. Each node's configuration is read by itself, so that a mistake in one
//! stops that node and no other.

use std::collections::BTreeMap;

use super::method_lines::{draft, yes};
use super::object::{Step, misplaced, missing, own_method, questionable};
use super::plugins;
use super::properties::{Definition, Line, data, definition, lines, normal};
use super::source::{Does, Draft, FenceSource, Grants, Nodes, StageDraft};
use crate::document::{Document, Problems, Reading, Tree, unknown_field};
use crate::plan::model::{Builtin, Run};

/// The label that carries a name which an object cannot have, such as one with underscores.
const NAME_LABEL: &str = "node-remedy.io/name";
/// The names of a stage's steps, where its methods do not tell.
const STEPS: &str = "step=isolation or step=power-management";

/// How one node is fenced, as far as its ConfigMaps can be read.
#[derive(Debug)]
pub struct NodeReading {
    /// The node's own ConfigMap, as `ConfigMap/name`.
    pub origin: String,
    /// The node's name: what the ConfigMap says, or what its own name says where that is missing.
    pub node: String,
    /// What was read, and what was wrong.
    pub reading: Reading<FenceSource>,
}

/// One reading for every node that the ConfigMaps configure. Other ConfigMaps are passed over.
pub fn read_config_maps(documents: &[Document]) -> Vec<NodeReading> {
    let mut all = Objects::default();
    for document in documents {
        all.sort_in(document);
    }
    let mut readings = Vec::new();
    for (document, name) in &all.nodes_with_methods {
        let mut reader = Reader::new(&all);
        let source = reader.node_with_methods(document, name);
        readings.push(reader.end(name, "fence-config-", source));
    }
    for node in &all.nodes_with_stages {
        let mut reader = Reader::new(&all);
        let source = reader.node_with_stages(node);
        readings.push(reader.end(&node.config_map, "node-fence-config-", source));
    }
    readings
}

/// The ConfigMaps by what they are.
#[derive(Default)]
struct Objects<'a> {
    templates: BTreeMap<String, Definition>,
    methods: BTreeMap<String, Definition>,
    stages: BTreeMap<String, Definition>,
    nodes_with_methods: Vec<(&'a Document, String)>,
    nodes_with_stages: Vec<Definition>,
    problems: Problems,
}

impl<'a> Objects<'a> {
    fn sort_in(&mut self, document: &'a Document) {
        let root = &document.root;
        let metadata = document.metadata();
        let text = |tree: Option<&Tree>| tree.and_then(Tree::text).unwrap_or_default().to_owned();
        if text(root.get("kind")) != "ConfigMap" {
            return;
        }
        let own = text(metadata.and_then(|metadata| metadata.get("name")));
        let labels = metadata.and_then(|metadata| metadata.get("labels"));
        let label = text(labels.and_then(|labels| labels.get(NAME_LABEL)));
        let name = normal(if label.is_empty() { &own } else { &label });
        let mut define = || definition(document, &own, &mut self.problems);
        // The longer prefix first: every template's name is also a method's.
        if name.starts_with("fence-config-") {
            self.nodes_with_methods.push((document, own));
        } else if name.starts_with("fence-method-template") {
            self.templates.insert(name, define());
        } else if name.starts_with("fence-method") {
            self.methods.insert(name, define());
        } else if name.starts_with("fence-stage") {
            self.stages.insert(name, define());
        } else if name.starts_with("node-fence-config") {
            let node = define();
            self.nodes_with_stages.push(node);
        }
    }
}

/// An object by its full name, or by what follows the prefix of its kind.
fn find<'o>(
    objects: &'o BTreeMap<String, Definition>,
    prefix: &str,
    name: &str,
) -> Option<&'o Definition> {
    let name = normal(name);
    objects.get(&name).or_else(|| objects.get(&format!("{prefix}{name}")))
}

struct Reader<'a> {
    objects: &'a Objects<'a>,
    /// The name that the node's ConfigMap gives.
    node: Option<String>,
    problems: Problems,
}

impl<'a> Reader<'a> {
    fn new(objects: &'a Objects<'a>) -> Self {
        Self { objects, node: None, problems: objects.problems.clone() }
    }

    fn end(self, own: &str, prefix: &str, source: Option<FenceSource>) -> NodeReading {
        let of_name = || normal(own).strip_prefix(prefix).unwrap_or_default().to_owned();
        NodeReading {
            origin: format!("ConfigMap/{own}"),
            node: self.node.unwrap_or_else(of_name),
            reading: self.problems.with(source),
        }
    }
    /// The form of the second proposal: the methods stand in the node's own ConfigMap.
    fn node_with_methods(&mut self, document: &Document, name: &str) -> Option<FenceSource> {
        let mut methods = BTreeMap::new();
        let mut config = None;
        for (key, text, path) in data(document) {
            let lines = lines(document, &key, &text, &path, &mut self.problems);
            let definition = Definition {
                config_map: name.to_owned(),
                origin: format!("ConfigMap/{name}"),
                lines,
                spot: document.spot(&path),
            };
            if key == "config.properties" {
                config = Some(definition);
            } else if let Some(method) = normal(&key).strip_prefix("fence-method-") {
                methods.insert(method.to_owned(), definition);
            } else {
                let known = ["config.properties", "fence-method-NAME"].into_iter();
                self.problems.push(definition.spot.error(unknown_field(&key, known)));
            }
        }
        let Some(config) = config else {
            let spot = document.spot(&crate::document::Path::root().field("data"));
            self.problems.push(spot.error("found no config.properties, expected one"));
            return None;
        };
        let mut source = self.source(&config)?;
        for line in &config.lines {
            let step = match normal(&line.name).as_str() {
                "isolation" => Step::Isolation,
                "power-management" => Step::Power,
                "recovery" => Step::Recovery,
                "node-name" => continue,
                other => {
                    let known = ["node_name", "isolation", "power_management", "recovery"];
                    let sentence = unknown_field(other, known.into_iter());
                    self.problems.push(line.spot.error(sentence));
                    continue;
                }
            };
            let drafts = line
                .value
                .split_whitespace()
                .filter_map(|name| self.method(name, line, &methods))
                .collect();
            self.place(&mut source, step, &line.name, Run::All, drafts, line);
        }
        self.finish(&source, &config);
        Some(source)
    }

    /// The form of the first proposal: stages and methods are objects of their own.
    fn node_with_stages(&mut self, node: &Definition) -> Option<FenceSource> {
        let mut source = self.source(node)?;
        let mut stages = Vec::new();
        for line in &node.lines {
            let name = normal(&line.name);
            if let Some(number) = number(&name, "fence-stage") {
                let stage = self.stage(line)?;
                let priority = self.priority(&stage);
                stages.push((priority, number, line, stage, None));
            } else if name == "recover-stage" {
                let stage = self.stage(line)?;
                stages.push((u32::MAX, u32::MAX, line, stage, Some(Step::Recovery)));
            } else if name != "node-name" {
                let known = ["node_name", "fence_stage1", "recover_stage"];
                let sentence = unknown_field(&line.name, known.into_iter());
                self.problems.push(line.spot.error(sentence));
            }
        }
        stages.sort_by_key(|(priority, number, ..)| (*priority, *number));
        for (_, _, line, stage, step) in stages {
            source.sources.push(stage.origin.clone());
            let (run, drafts) = self.stage_methods(&stage);
            let step = step.or_else(|| self.step(&stage, &drafts))?;
            self.place(&mut source, step, &line.value, run, drafts, line);
        }
        self.finish(&source, node);
        Some(source)
    }

    fn source(&mut self, node: &Definition) -> Option<FenceSource> {
        let Some(name) = node.line("node_name").filter(|line| !line.value.is_empty()) else {
            self.problems.push(node.spot.error("found no node_name, expected the node's name"));
            return None;
        };
        self.node = Some(name.value.clone());
        Some(FenceSource {
            origin: node.origin.clone(),
            nodes: Nodes::Named(name.value.clone()),
            inventory: None,
            sources: vec![node.origin.clone()],
            methods: Vec::new(),
            beside: Vec::new(),
            isolation: Vec::new(),
            power_management: Vec::new(),
            recovery: Vec::new(),
            grants: Grants::AddressesOfMethods,
        })
    }

    fn finish(&mut self, source: &FenceSource, node: &Definition) {
        let empty = source.isolation.is_empty() && source.power_management.is_empty();
        // A method that was refused has said why already.
        if empty && !self.problems.has_errors() {
            let sentence = "found no methods, expected isolation or power management";
            self.problems.push(node.spot.error(sentence));
        }
        source.check(&node.spot, &mut self.problems);
    }

    fn method(
        &mut self,
        name: &str,
        line: &Line,
        inside: &BTreeMap<String, Definition>,
    ) -> Option<Draft> {
        let objects = self.objects;
        let found =
            inside.get(&normal(name)).or_else(|| find(&objects.methods, "fence-method-", name));
        if let Some(method) = found {
            return draft(name, method, &objects.templates, &mut self.problems);
        }
        let own = own_method(&normal(name), &line.spot);
        if own.is_none() {
            let names: Vec<&str> = inside
                .keys()
                .chain(objects.methods.keys())
                .map(String::as_str)
                .chain(Builtin::READY_MADE.map(Builtin::word))
                .collect();
            let sentence = missing(name, "method", names.iter().copied());
            self.problems.push(line.spot.error(sentence));
        }
        own
    }

    fn stage(&mut self, line: &Line) -> Option<Definition> {
        let stage = find(&self.objects.stages, "fence-stage-", &line.value).cloned();
        if stage.is_none() {
            let names = self.objects.stages.keys().map(String::as_str);
            self.problems.push(line.spot.error(missing(&line.value, "stage", names)));
        }
        stage
    }

    /// Smaller numbers come first; a stage without one comes last.
    fn priority(&mut self, stage: &Definition) -> u32 {
        let Some(line) = stage.line("priority") else { return u32::MAX };
        line.value.parse().unwrap_or_else(|_| {
            let sentence = format!("found {:?}, expected a whole number", line.value);
            self.problems.push(line.spot.error(sentence));
            u32::MAX
        })
    }

    fn stage_methods(&mut self, stage: &Definition) -> (Run, Vec<Draft>) {
        let mut run = Run::All;
        let mut must_success = false;
        let mut methods = Vec::new();
        for line in &stage.lines {
            let name = normal(&line.name);
            match (name.as_str(), normal(&line.value).replace(' ', "-").as_str()) {
                ("execution-policy", "all") => run = Run::All,
                ("execution-policy", "only-one") => run = Run::OnlyOne,
                ("execution-policy", _) => {
                    let sentence = format!("found {:?}, expected all or only one", line.value);
                    self.problems.push(line.spot.error(sentence));
                }
                ("must-success", value) => match yes(value) {
                    Some(value) => must_success = value,
                    None => self.problems.push(
                        line.spot.error(format!("found {:?}, expected yes or no", line.value)),
                    ),
                },
                ("priority" | "step", _) => {}
                (name, _) => {
                    if let Some(number) = number(name, "fence-method") {
                        methods.push((number, line));
                        continue;
                    }
                    let known = ["priority", "execution_policy", "fence_method1", "step"];
                    let sentence = unknown_field(&line.name, known.into_iter());
                    self.problems.push(line.spot.error(sentence));
                }
            }
        }
        methods.sort_by_key(|(number, _)| *number);
        let mut drafts: Vec<Draft> = methods
            .into_iter()
            .filter_map(|(_, line)| self.method(&line.value, line, &BTreeMap::new()))
            .collect();
        for draft in &mut drafts {
            draft.must_success |= must_success;
        }
        if run == Run::OnlyOne && drafts.iter().any(|draft| draft.must_success) {
            let sentence = "found must_success in a stage that runs only one, expected it in one \
                            that runs all";
            self.problems.push(stage.spot.error(sentence));
        }
        (run, drafts)
    }

    /// The step that a stage belongs to: its own word, or what its plugins do.
    fn step(&mut self, stage: &Definition, drafts: &[Draft]) -> Option<Step> {
        match stage.line("step").map(|line| (line, normal(&line.value))) {
            Some((_, word)) if word == "isolation" => return Some(Step::Isolation),
            Some((_, word)) if word == "power-management" => return Some(Step::Power),
            Some((line, word)) => {
                let sentence = format!("found {word:?}, expected {STEPS}");
                self.problems.push(line.spot.error(sentence));
                return None;
            }
            None => {}
        }
        let mut power = false;
        for draft in drafts {
            match &draft.does {
                Does::Instance => power = true,
                Does::Builtin(_) => {}
                Does::Plugin(plugin) => {
                    let Some(switches) = plugins::switches_power(plugin) else {
                        let sentence = format!(
                            "found the plugin {plugin:?}, which may cut or switch power, \
                             expected {STEPS} in its stage"
                        );
                        self.problems.push(stage.spot.error(sentence));
                        return None;
                    };
                    power |= switches;
                }
            }
        }
        Some(if power { Step::Power } else { Step::Isolation })
    }

    fn place(
        &mut self,
        source: &mut FenceSource,
        step: Step,
        name: &str,
        run: Run,
        drafts: Vec<Draft>,
        line: &Line,
    ) {
        let mut methods = Vec::new();
        for draft in drafts {
            if let Some(sentence) = misplaced(&draft, step) {
                self.problems.push(line.spot.error(sentence));
            }
            if let Some(sentence) = questionable(&draft, step) {
                self.problems.push(line.spot.warning(sentence));
            }
            let place = source.add(draft);
            if !methods.contains(&place) {
                methods.push(place);
            }
        }
        if methods.is_empty() {
            return;
        }
        let stage = StageDraft { name: name.to_owned(), run, methods };
        match step {
            Step::Isolation => source.isolation.push(stage),
            Step::Power => source.power_management.push(stage),
            Step::Recovery => source.recovery.push(stage),
        }
    }
}

/// The number behind a numbered name: `fence-stage2` is 2.
fn number(name: &str, stem: &str) -> Option<u32> {
    name.strip_prefix(stem)?.parse().ok()
}
