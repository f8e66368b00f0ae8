//! `check`: validates configuration files as the controller would read them.

use std::collections::BTreeSet;
use std::process::ExitCode;

use node_remedy_api::configuration::Configuration;
use node_remedy_api::document::{Document, Path, Problem, Problems, Severity, Tree, Value};
use node_remedy_api::fenceplugin;
use node_remedy_api::limits::DOCUMENT_BYTES_MAX;
use serde_json::json;

use super::file::read_text;
use super::out::{complain, outln};
use super::{CheckArgs, Output};
use crate::plugins::Plugins;

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
    let (documents, mut problems) = problems_of(&files);
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
fn problems_of(files: &[(String, String)]) -> (usize, Problems) {
    let texts = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let configuration = Configuration::from_files(texts);
    let mut problems = configuration.problems;
    let mut count = 0;
    let (mut methods, mut remedies) = (BTreeSet::new(), Vec::new());
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
    let policies = configuration.policies.iter().map(|one| (&one.origin, &one.selector));
    twice(policies, &mut problems);
    let fences = configuration.fences.iter().map(|one| (&one.origin, &one.nodes));
    twice(fences, &mut problems);
    (count, problems)
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

/// Two that select the very same nodes: neither would be followed.
fn twice<'a, T: PartialEq + 'a>(
    all: impl Iterator<Item = (&'a String, &'a T)>,
    problems: &mut Problems,
) {
    let mut seen: Vec<(&String, &T)> = Vec::new();
    for (origin, nodes) in all {
        if let Some((first, _)) = seen.iter().find(|(_, other)| *other == nodes) {
            let sentence =
                format!("found the same nodes as in {first}, expected one configuration");
            problems.push(problem(origin, &sentence));
        }
        seen.push((origin, nodes));
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
        problems_of(&files).1.iter().map(ToString::to_string).collect()
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
}
