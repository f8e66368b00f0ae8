//! Schemas for editors and the page of defaults: what is shipped is what is generated, the examples
//! are valid by the schemas, and what the descriptions say of defaults is true.

use std::path::{Path, PathBuf};

use node_remedy_api::document::Document;
use node_remedy_api::reference;
use serde_json::Value;

const SEED: &str = include_str!("proposals/000-configuration.yaml");
const PLUGIN: &str = "\
apiVersion: node-remedy.io/v1alpha1
kind: FencePlugin
metadata: {name: tasmota}
spec:
  source:
    configMap: {name: tasmota-1, key: tasmota.wasm.gz}
  digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  verify: {policy: require, keys: [key]}
  limits: {fuel: 10000000000}
  grants:
  - cidrs: [192.0.2.0/24]
    ports: [80, 443]
";
const PAUSE: &str = "\
apiVersion: node-remedy.io/v1alpha1
kind: RemedyPause
metadata: {name: firmware}
spec:
  nodeSelector: rack=3
  reason: new firmware
  by: alice
  until: \"2027-01-01T06:00:00Z\"
";

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn schema(kind: &str) -> Value {
    let name = format!("{}.schema.json", kind.to_lowercase());
    let all = reference::schemas().unwrap();
    let (_, text) = all.into_iter().find(|(file, _)| *file == name).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_shipped_files_are_the_generated_ones() {
    let shipped = |path: &str| std::fs::read_to_string(at(path)).unwrap_or_default();
    for (name, text) in reference::schemas().unwrap() {
        assert!(shipped(&format!("deploy/schemas/{name}")) == text, "{name}: cargo xtask codegen");
    }
    let defaults = reference::defaults().unwrap();
    assert!(shipped("docs/defaults.md") == defaults, "docs/defaults.md: cargo xtask codegen");
}

#[test]
fn the_examples_and_the_proposal_are_valid_by_the_schemas() {
    let folder = std::fs::read_dir(at("examples/config")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    let texts = files.map(|path| std::fs::read_to_string(path).unwrap());
    let mut kinds = std::collections::BTreeMap::new();
    for text in texts.chain([SEED.to_owned()]) {
        for document in Document::read_all("f.yaml", &text).value.unwrap() {
            let document = document.root.to_json();
            let kind = document["kind"].as_str().unwrap().to_owned();
            if kind == "Secret" || kind == "ConfigMap" {
                continue;
            }
            assert_eq!(wrong(&schema(&kind), &document, ""), [""; 0], "{text}");
            *kinds.entry(kind).or_insert(0) += 1;
        }
    }
    let kinds: Vec<String> = kinds.into_keys().collect();
    assert_eq!(kinds, ["Configuration", "FenceConfiguration", "RemedyConfiguration"]);
}

#[test]
fn an_editor_marks_what_check_refuses() {
    let document =
        |text: &str| Document::read_all("f.yaml", text).value.unwrap().remove(0).root.to_json();
    for (from, to, expected) in [
        ("nodeSelector", "nodeSelektor", ".nodeSelektor: unknown"),
        ("kind: Configuration", "kind: Config", ".kind: const"),
        (
            "nodeConditionPeriod: 5s",
            "nodeConditionPeriod: soon",
            ".thresholdConfigs[0].nodeConditionPeriod: pattern",
        ),
        ("thresholdConfigs:", "mode: on\nthresholdConfigs:", ".mode: enum"),
        (
            "thresholdConfigs:",
            "policies: {retries: 11}\nthresholdConfigs:",
            ".policies.retries: maximum",
        ),
        ("- name: terminate\n  podTemplate", "- podTemplate", ".remedyConfigs[1].name: required"),
    ] {
        let found = wrong(&schema("Configuration"), &document(&SEED.replacen(from, to, 1)), "");
        assert_eq!(found, [expected], "{to}");
    }
}

#[test]
fn an_editor_knows_plugins_and_pauses() {
    for (text, from, to, expected) in [
        (PLUGIN, "digest: sha256:", "digest: sha1:", ".spec.digest: pattern"),
        (PLUGIN, "tasmota.wasm.gz", "tasmota.tar", ".spec.source.configMap.key: pattern"),
        (PLUGIN, "ports:", "port:", ".spec.grants[0].port: unknown"),
        (PLUGIN, "  digest:", "  digests:", ".spec.digest: required"),
        (PAUSE, "reason:", "why:", ".spec.reason: required"),
        (PAUSE, "RemedyPause", "Pause", ".kind: const"),
        (PAUSE, "until: \"2027-01-01T06:00:00Z\"", "until: 5", ".spec.until: type"),
    ] {
        let wrong_in = |text: &str| {
            let document = Document::read_all("f.yaml", text).value.unwrap().remove(0);
            let kind = if text.contains("Plugin") { "FencePlugin" } else { "RemedyPause" };
            wrong(&schema(kind), &document.root.to_json(), "")
        };
        assert_eq!(wrong_in(text), [""; 0]);
        let changed = text.replacen(from, to, 1);
        assert!(wrong_in(&changed).iter().any(|one| one == expected), "{to}: {expected}");
    }
}

/// A description that names a default names the one in force.
#[test]
fn descriptions_tell_the_defaults_that_are_in_force() {
    let schema = schema("Configuration");
    let page = reference::defaults().unwrap();
    let mut told = 0;
    for (name, field) in schema["properties"]["policies"]["properties"].as_object().unwrap() {
        let description = field["description"].as_str().unwrap();
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap();
        let default = row.split('|').nth(2).unwrap().trim();
        let Some((_, said)) = description.split_once("efault ") else {
            assert!(
                description.contains("No default") == (default == "none")
                    || description.contains("Default:"),
                "{name}: {description}"
            );
            continue;
        };
        assert_eq!(said.trim_end_matches('.'), default, "{name}: its description and the type");
        told += 1;
    }
    assert!(told > 15, "{told}");
}

/// What a document has against a schema, by path and keyword. A keyword that is not known here is a
/// schema that nobody checked.
#[expect(clippy::panic, reason = "it is a test that fails")]
fn wrong(schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, wanted) in schema.as_object().unwrap() {
        let length = |least: bool, length: Option<usize>| {
            let bound = usize::try_from(wanted.as_u64().unwrap()).unwrap();
            length.is_none_or(|length| if least { length >= bound } else { length <= bound })
        };
        let characters = value.as_str().map(|text| text.chars().count());
        let items = value.as_array().map(Vec::len);
        let fields = value.as_object().map(serde_json::Map::len);
        let number = value.as_f64();
        let is_met = match keyword.as_str() {
            "type" => {
                types(wanted).contains(&kind(value))
                    || (kind(value) == "integer" && types(wanted).contains(&"number"))
            }
            "enum" => wanted.as_array().unwrap().contains(value),
            "const" => wanted == value,
            "minLength" => length(true, characters),
            "maxLength" => length(false, characters),
            "minItems" => length(true, items),
            "maxItems" => length(false, items),
            "minProperties" => length(true, fields),
            "maxProperties" => length(false, fields),
            "minimum" => number.is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => number.is_none_or(|number| number <= wanted.as_f64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| fits(wanted.as_str().unwrap(), text)),
            "required" => {
                let names = wanted.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                let missing = names.filter(|name| value.is_object() && value.get(name).is_none());
                found.extend(missing.map(|name| format!("{path}.{name}: required")));
                true
            }
            "properties" => {
                for (name, schema) in wanted.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        found.extend(wrong(schema, value, &format!("{path}.{name}")));
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = |name: &str| schema["properties"].get(name).is_some();
                let others =
                    value.as_object().into_iter().flatten().filter(|(name, _)| !known(name));
                for (name, value) in others {
                    match wanted {
                        Value::Bool(false) => found.push(format!("{path}.{name}: unknown")),
                        schema => found.extend(wrong(schema, value, &format!("{path}.{name}"))),
                    }
                }
                true
            }
            "items" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(wrong(wanted, value, &format!("{path}[{index}]")));
                }
                true
            }
            "$schema" | "$comment" | "title" | "description" | "default" | "format" => true,
            unknown => panic!("{path}: the keyword {unknown} is not known to this test"),
        };
        if !is_met {
            found.push(format!("{path}: {keyword}"));
        }
    }
    found
}

/// Whether a text fits one of the patterns that there are: of a digest, of a key, of a length of time.
fn fits(pattern: &str, text: &str) -> bool {
    regex::Regex::new(pattern).unwrap().is_match(text)
}

fn types(wanted: &Value) -> Vec<&str> {
    match wanted {
        Value::Array(all) => all.iter().map(|one| one.as_str().unwrap()).collect(),
        one => vec![one.as_str().unwrap()],
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
