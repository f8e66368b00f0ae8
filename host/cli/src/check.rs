//! `check`: validates configuration files as the controller would read them.

pub mod methods;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::Context as _;
use node_remedy_api::configuration::{Configuration, policy_documents};
use node_remedy_api::document::{
    Document, Path, Place, Problem, Problems, Severity, Spot, Tree, Value,
};
use node_remedy_api::limits::DOCUMENT_BYTES_MAX;
use node_remedy_api::plan::Nodes;
use node_remedy_api::{fenceplugin, plan, policy};
use node_remedy_device_cli::args::Output;
use node_remedy_device_cli::files::read_text;
use node_remedy_device_cli::output::{complain, outln};
use node_remedy_sandbox::Sandbox;
use node_remedy_store::store::Plugins;
use serde_json::json;

use crate::args::CheckArgs;
use crate::plugin_docs;

/// Reads every file and prints every problem.
pub fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let (mut files, mut unread) = (Vec::new(), Vec::new());
    for file in &args.files {
        let name = file.display().to_string();
        match read_text(file, DOCUMENT_BYTES_MAX) {
            Ok(text) => files.push((name, text)),
            Err(error) => unread.push(problem(&name, &format!("failed to read it: {error:#}"))),
        }
    }
    let (documents, mut problems) = problems_of(&files)?;
    for one in unread {
        problems.push(one);
    }
    let (errors, warnings) = (problems.errors().count(), problems.warnings().count());
    match args.output {
        Output::Json => {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            outln!("{}", json!({"documents": documents, "errors": errors, "problems": lines}));
        }
        Output::Text => {
            if problems.iter().next().is_some() {
                complain(format_args!("{problems}"));
            }
            outln!("{documents} documents, {errors} errors, {warnings} warnings");
        }
    }
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How many documents there are, and everything that is wrong with them.
fn problems_of(files: &[(String, String)]) -> anyhow::Result<(usize, Problems)> {
    let texts = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let configuration = Configuration::from_files(texts);
    let plugins = Plugins::new(Sandbox::new().context("failed to start the sandbox")?);
    let mut problems = configuration.problems;
    let all = files.iter().filter_map(|(name, text)| Document::read_all(name, text).value);
    let all: Vec<Document> = all.flatten().flat_map(Document::items).collect();
    plugin_docs::by_documents(&plugins, &all);
    for source in &configuration.fences {
        crate::check::methods::check(source, &plugins, &mut problems);
    }
    let mut count = 0;
    let (mut methods, mut remedies) = (BTreeSet::new(), Vec::new());
    let (mut policies, mut fences, mut config_maps) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (name, text) in files {
        let documents = Document::read_all(name, text).value.unwrap_or_default();
        let documents: Vec<Document> = documents.into_iter().flat_map(Document::items).collect();
        if documents.is_empty() && !problems.has_errors() {
            problems.push(nothing(name));
        }
        count += documents.len();
        for document in &documents {
            plugins_of(document, &configuration.plugins, &mut problems);
            remedies_of(document, &configuration.plugins, &mut problems);
            match document.root.get("kind").and_then(Tree::text) {
                Some("FenceConfiguration") => {
                    let read = plan::read(document).value;
                    fences.extend(read.map(|one| Chosen::selected(document, one.nodes)));
                }
                Some("ConfigMap") => {
                    let name = document.metadata().and_then(|one| one.get("name")?.text());
                    let origin = format!("ConfigMap/{}", name.unwrap_or_default());
                    config_maps.insert(origin, document.spot(&Path::root()));
                }
                _ => {}
            }
        }
        for document in policy_documents(&documents) {
            let read = policy::read(&document).value;
            policies.extend(read.map(|one| Chosen::selected(&document, one.selector)));
        }
        methods.extend(documents.iter().flat_map(plugins_called));
        remedies.extend(documents.into_iter().flat_map(|document| {
            let named: Vec<_> =
                plugins_deciding(&document).map(|(path, name)| (path, name.to_owned())).collect();
            named.into_iter().map(move |(path, name)| (document.clone(), path, name))
        }));
    }
    for (document, path, name) in remedies.iter().filter(|(_, _, name)| methods.contains(name)) {
        let sentence = format!(
            "found {name:?}, which a FenceConfiguration calls as well, expected a FencePlugin of kind remedy: \
             one plugin either decides or acts"
        );
        problems.push(document.problem(Severity::Error, path, sentence));
    }
    let named = configuration.fences.iter().filter(|one| matches!(one.nodes, Nodes::Named(_)));
    fences.extend(named.filter_map(|one| {
        let (label, spot) = (one.origin.clone(), config_maps.get(&one.origin)?.clone());
        Some(Chosen { label, spot, nodes: one.nodes.clone() })
    }));
    twice(&policies, &mut problems);
    twice(&fences, &mut problems);
    Ok((count, problems))
}

fn nothing(origin: &str) -> Problem {
    problem(origin, "found no document, expected a configuration such as examples/config has")
}

fn problem(origin: &str, sentence: &str) -> Problem {
    Problem {
        origin: origin.to_owned(),
        place: None,
        path: Path::root(),
        severity: Severity::Error,
        sentence: sentence.to_owned(),
    }
}

/// Nodes that a configuration is for, and where it says so.
struct Chosen<T> {
    /// For a message about another one.
    label: String,
    spot: Spot,
    nodes: T,
}

impl<T> Chosen<T> {
    /// By the document's `nodeSelector`, or by having none.
    fn selected(document: &Document, nodes: T) -> Self {
        let is_beside = document.root.get("kind").and_then(Tree::text) == Some("Configuration");
        let base = if is_beside { Path::root() } else { Path::root().field("spec") };
        let spot = document.spot(&base.field("nodeSelector"));
        let label = match spot.place {
            Some(Place { line, column }) => format!("{}:{line}:{column}", spot.origin),
            None => spot.origin.clone(),
        };
        Self { label, spot, nodes }
    }
}

/// Two that select the very same nodes: neither would be followed.
fn twice<T: PartialEq>(all: &[Chosen<T>], problems: &mut Problems) {
    for (index, second) in all.iter().enumerate() {
        let Some(first) = all.iter().take(index).find(|one| one.nodes == second.nodes) else {
            continue;
        };
        let Spot { origin, place, path } = second.spot.clone();
        let sentence =
            format!("found the same nodes as in {}, expected one configuration", first.label);
        problems.push(Problem { origin, place, path, severity: Severity::Error, sentence });
    }
}

/// Plugins that a FenceConfiguration names: built in, and granted something, or a FencePlugin, which
/// brings its grants along.
fn plugins_of(document: &Document, outside: &[fenceplugin::Source], problems: &mut Problems) {
    let spec = document.root.get("spec");
    let (Some("FenceConfiguration"), Some(spec)) =
        (document.root.get("kind").and_then(Tree::text), spec)
    else {
        return;
    };
    let granted: Vec<&str> = named(spec, "grants").map(|(_, name)| name).collect();
    for (path, name) in named(spec, "templates").chain(named(spec, "methods")) {
        let sentence = if outside.iter().any(|source| source.name == name) {
            continue;
        } else if !Plugins::is_builtin(name) {
            let known = Plugins::names().collect::<Vec<_>>().join(", ");
            format!(
                "found {name:?}, expected a FencePlugin in the same files or a built-in plugin: {known}"
            )
        } else if !granted.contains(&name) {
            format!("found no grant for {name:?}, expected one under spec.grants")
        } else {
            continue;
        };
        problems.push(document.problem(Severity::Error, &path, sentence));
    }
}

/// Plugins that a RemedyConfiguration names: none is built in, and a FencePlugin of kind remedy brings it.
fn remedies_of(document: &Document, outside: &[fenceplugin::Source], problems: &mut Problems) {
    for (path, name) in plugins_deciding(document) {
        let expected = "expected a FencePlugin of kind remedy in the same files";
        let sentence = if Plugins::is_builtin(name) {
            format!("found {name:?}, a built-in plugin that speaks to devices, {expected}")
        } else if outside.iter().any(|source| source.name == name) {
            continue;
        } else {
            format!("found {name:?}, {expected}")
        };
        problems.push(document.problem(Severity::Error, &path, sentence));
    }
}

/// The plugins that remedies of a document name, and where.
fn plugins_deciding(document: &Document) -> impl Iterator<Item = (Path, &str)> {
    let is_one = document.root.get("kind").and_then(Tree::text) == Some("RemedyConfiguration");
    let spec = document.root.get("spec").filter(|_| is_one);
    spec.into_iter().flat_map(|spec| named(spec, "remedyConfigs"))
}

/// The plugins that a FenceConfiguration calls.
fn plugins_called(document: &Document) -> Vec<String> {
    let is_one = document.root.get("kind").and_then(Tree::text) == Some("FenceConfiguration");
    let spec = document.root.get("spec").filter(|_| is_one);
    let named =
        spec.into_iter().flat_map(|spec| named(spec, "templates").chain(named(spec, "methods")));
    named.map(|(_, name)| name.to_owned()).collect()
}

/// The plugins that the entries of a list name, and where.
fn named<'a>(spec: &'a Tree, list: &'a str) -> impl Iterator<Item = (Path, &'a str)> {
    let entries = match spec.get(list).map(|list| &list.value) {
        Some(Value::List(entries)) => entries.as_slice(),
        _ => &[],
    };
    entries.iter().enumerate().filter_map(move |(index, entry)| {
        let path = Path::root().field("spec").field(list).index(index).field("plugin");
        Some((path, entry.get("plugin")?.text()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE_PLUGIN: &str = "apiVersion: node-remedy.io/v1alpha1\nkind: FencePlugin\nmetadata: { name: \
        polite }\nspec:\n  source: { configMap: { name: polite, key: polite.wasm.gz } }\n  digest: \
        sha256:0000000000000000000000000000000000000000000000000000000000000000\n";

    fn lines(plugin: &str, others: &[&str]) -> Vec<String> {
        let remedy = format!(
            "apiVersion: node-remedy.io/v1alpha1\nkind: RemedyConfiguration\nmetadata: {{ name: own }}\nspec:\n  \
             thresholdConfigs:\n  - nodeLeaseAge: 1m\n    remedy1: [{{ name: own }}]\n  remedyConfigs:\n  - name: \
             own\n    plugin: {plugin}\n"
        );
        let texts = [remedy.as_str()].into_iter().chain(others.iter().copied());
        let files: Vec<(String, String)> = (1..)
            .zip(texts)
            .map(|(number, text)| (format!("{number}.yaml"), text.to_owned()))
            .collect();
        problems_of(&files).unwrap().1.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_remedys_plugin_comes_with_it_and_does_nothing_else() {
        assert_eq!(lines("polite", &[FENCE_PLUGIN]), [""; 0]);
        let missing = "1.yaml:10:13: spec.remedyConfigs[0].plugin: found \"polite\", expected a FencePlugin of kind \
                       remedy in the same files";
        assert_eq!(lines("polite", &[]), [missing]);
        let built_in = lines("ipmi", &[]);
        assert!(built_in[0].contains("a built-in plugin that speaks to devices"), "{built_in:?}");
        let fence = "apiVersion: node-remedy.io/v1alpha1\nkind: FenceConfiguration\nmetadata: { name: f }\nspec:\n  \
            nodeSelector: a=b\n  methods: [{ name: power, plugin: polite, action: reboot }]\n  powerManagement: [{ \
            name: power, methods: [power] }]\n";
        let both = lines("polite", &[FENCE_PLUGIN, fence]);
        assert!(both[0].contains("which a FenceConfiguration calls as well"), "{both:?}");
    }

    /// What would never fence is told with file, line and column, and no secret is repeated.
    #[test]
    fn a_method_that_could_never_be_called_is_told() {
        let example = include_str!("../../../examples/config/fence-ipmi.yaml");
        let literal =
            example.replace("address: ${inventory['bmc-address']}", "address: 192.0.2.11");
        assert_ne!(literal, example);
        let said = |text: &str| {
            let files = [("f.yaml".to_owned(), text.to_owned())];
            let lines: Vec<_> =
                problems_of(&files).unwrap().1.errors().map(ToString::to_string).collect();
            lines.join("\n")
        };
        assert_eq!(said(example), "");
        assert_eq!(said(&literal), "");
        let privilege = "privilege-level: operator";
        assert!(literal.contains(privilege) && literal.contains("cidrs: ["), "{literal}");
        let mut elsewhere = literal.clone();
        let cidrs = elsewhere.find("cidrs: [").unwrap();
        let end = cidrs + elsewhere[cidrs..].find(']').unwrap();
        elsewhere.replace_range(cidrs..end, "cidrs: [198.51.100.0/24");
        for (text, expected) in [
            (literal.replace(privilege, "privilege-levl: operator"), "expected privilege-level"),
            (literal.replace(privilege, "scheme: https"), "has not, expected one of address"),
            (literal.replace(privilege, "privilege-level: king"), "expected one of"),
            (literal.replace(privilege, "password: hunter2"), "found a secret in plain text"),
            (literal.replace("address: 192.0.2.11", "cipher-suite: auto"), "found no address"),
            (
                literal.replace("- secret: b", "- name: acount\n      secret: b"),
                "found a credential \"acount\"",
            ),
            (elsewhere, "192.0.2.11"),
        ] {
            assert_ne!(text, literal, "{expected}");
            let said = said(&text);
            assert!(said.starts_with("f.yaml:") && said.contains(expected), "{expected}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    const REMEDY: &str = "apiVersion: node-remedy.io/v1alpha1
kind: RemedyConfiguration
metadata: { name: NAME }
spec:
  nodeSelector: type=a
  thresholdConfigs: [{ nodeLeaseAge: 1m, remedy1: [{ name: fence }] }]
";
    const OWN: &str = "apiVersion: v1
kind: ConfigMap
metadata: { name: NAME }
data:
  config.properties: |-
    node_name=w1
    power_management=bmc
  fence-method-bmc: |-
    agent_name=fence_ipmilan
    ipaddr=192.0.2.12
    login=admin
    passwd=x
";

    /// The second of two is named by file, line and column, and where the first one is.
    #[test]
    fn two_for_the_very_same_nodes_are_told_with_their_places() {
        let errors = |files: &[(&str, String)]| -> Vec<String> {
            let files: Vec<_> =
                files.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect();
            let said = problems_of(&files).unwrap().1;
            said.errors().map(ToString::to_string).collect()
        };
        let remedy = |name: &str| REMEDY.replace("NAME", name);
        let none = [""; 0];
        let selector = "spec.nodeSelector: found the same nodes as in";
        assert_eq!(errors(&[("a.yaml", remedy("a"))]), none);
        let other = remedy("b").replace("type=a", "type=b");
        assert_eq!(errors(&[("a.yaml", remedy("a")), ("b.yaml", other)]), none);

        // In one file, and in a ConfigMap, whose lines count from its key.
        let both = format!("{}---\n{}", remedy("a"), remedy("b"));
        let second = format!("a.yaml:12:17: {selector} a.yaml:5:17, expected one configuration");
        assert_eq!(errors(&[("a.yaml", both)]), [second]);
        let inside = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\ndata:\n  all.yaml: |\n    \
                      apiVersion: node-remedy/v1alpha\n    kind: Configuration\n    nodeSelector: type=a\n    \
                      thresholdConfigs: [{ nodeLeaseAge: 1m, remedy1: [{ name: fence }] }]\n";
        let second = "c.yaml: ConfigMap/c[all.yaml]:3:15: nodeSelector: found the same nodes as in \
                      a.yaml:5:17, expected one configuration";
        assert_eq!(errors(&[("a.yaml", remedy("a")), ("c.yaml", inside.to_owned())]), [second]);

        let fence = |name: &str| {
            let text = include_str!("../../../examples/config/fence-ipmi.yaml");
            text.replace("name: ipmi\n", &format!("name: {name}\n"))
        };
        let fences = errors(&[("a.yaml", fence("a")), ("b.yaml", fence("b"))]);
        let second = format!("b.yaml:14:17: {selector} a.yaml:14:17, expected one configuration");
        assert_eq!(fences, [second]);

        let own = |name: &str| OWN.replace("NAME", name);
        let named =
            errors(&[("a.yaml", own("fence-config-w1")), ("b.yaml", own("fence-config-x"))]);
        let second = "b.yaml:1:1: found the same nodes as in ConfigMap/fence-config-w1, expected one \
                      configuration";
        assert_eq!(named, [second]);
    }
}
