//! Holds a tree against a schema: the one that the custom resource definition carries, so that a
//! file is refused for what the API server would refuse, with a place and a sentence, and all of
//! it at once. Only the keywords that our schemas use are known; a test sees to that.

use kube::CustomResourceExt;
use serde_json::Value as Json;

use super::problem::{Path, Problems, Severity};
use super::suggest::nearest;
use super::tree::{Document, Tree, Value};
use crate::limits::REMEDY_STEPS_MAX;
use crate::time::{SPAN_PATTERN, Span};

/// The schema of a kind's `spec`, out of its own definition.
pub(crate) fn schema_of<K: CustomResourceExt>() -> Json {
    let crd = serde_json::to_value(K::crd()).unwrap_or_default();
    crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")
        .cloned()
        .unwrap_or_default()
}

/// Adds to `problems` everything about `tree` that `schema` does not allow.
pub(crate) fn check(
    document: &Document,
    tree: &Tree,
    schema: &Json,
    path: &Path,
    problems: &mut Problems,
) {
    let mut refuse = |path: &Path, sentence: String| {
        problems.push(document.problem(Severity::Error, path, sentence));
    };
    if let Some(words) = schema.get("enum").and_then(Json::as_array) {
        let absent = nullable(schema) && tree.value == Value::Null;
        if !absent && !words.contains(&tree.to_json()) {
            refuse(path, format!("found {}, expected {}", tree.found(), one_of(words, tree)));
        }
        return;
    }
    match (&tree.value, text_of(schema, "type")) {
        (_, None) | (Value::Boolean(_), Some("boolean")) => {}
        (Value::Null, Some(_)) if nullable(schema) => {}
        (Value::Map(_), Some("object")) => check_map(document, tree, schema, path, problems),
        (Value::List(_), Some("array")) => check_list(document, tree, schema, path, problems),
        (Value::Text(text), Some("string")) => {
            if let Some(expected) = wrong_text(text, schema) {
                refuse(path, format!("found {}, expected {expected}", tree.found()));
            }
        }
        (Value::Number(number), Some("integer" | "number")) => {
            if let Some(expected) = wrong_number(number, schema) {
                refuse(path, format!("found {number}, expected {expected}"));
            }
        }
        (
            Value::Null
            | Value::Boolean(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_),
            Some(kind),
        ) => {
            let like_text = matches!(tree.value, Value::Number(_) | Value::Boolean(_));
            let hint = if kind == "string" && like_text && !is_span(schema) {
                ": put it in quotes"
            } else {
                ""
            };
            let expected = expected(kind, schema);
            refuse(path, format!("found {}, expected {expected}{hint}", tree.found()));
        }
    }
}

fn check_map(
    document: &Document,
    tree: &Tree,
    schema: &Json,
    path: &Path,
    problems: &mut Problems,
) {
    let Value::Map(entries) = &tree.value else { return };
    let properties = schema.get("properties").and_then(Json::as_object);
    let values = schema.get("additionalProperties").filter(|values| values.is_object());
    let open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Json::Bool(true));
    let mut refuse = |path: &Path, sentence: String| {
        problems.push(document.problem(Severity::Error, path, sentence));
    };
    for name in schema.get("required").and_then(Json::as_array).into_iter().flatten() {
        let Some(name) = name.as_str().filter(|name| tree.get(name).is_none()) else { continue };
        let kind = properties.and_then(|properties| properties.get(name));
        let expected = kind.map_or_else(
            || "a value".to_owned(),
            |kind| expected(text_of(kind, "type").unwrap_or("value"), kind),
        );
        refuse(&path.field(name), format!("found nothing, expected {expected}"));
    }
    for (keyword, fewer) in [("minProperties", true), ("maxProperties", false)] {
        let Some(bound) = schema.get(keyword).and_then(Json::as_u64) else { continue };
        let count = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        if (fewer && count < bound) || (!fewer && count > bound) {
            let at = if fewer { "at least" } else { "at most" };
            refuse(path, format!("found {count} keys, expected {at} {bound}"));
        }
    }
    for entry in entries {
        let path = path.field(&entry.key);
        let kind = properties.and_then(|properties| properties.get(&entry.key)).or(values);
        match kind {
            Some(kind) => check(document, &entry.tree, kind, &path, problems),
            None if open => {}
            None => {
                let names = properties.into_iter().flatten().map(|(name, _)| name.as_str());
                let sentence = unknown_field(&entry.key, names);
                let mut problem = document.problem(Severity::Error, &path, sentence);
                problem.place = entry.place;
                problems.push(problem);
            }
        }
    }
}

fn check_list(
    document: &Document,
    tree: &Tree,
    schema: &Json,
    path: &Path,
    problems: &mut Problems,
) {
    let Value::List(items) = &tree.value else { return };
    for (keyword, fewer) in [("minItems", true), ("maxItems", false)] {
        let Some(bound) = schema.get(keyword).and_then(Json::as_u64) else { continue };
        let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
        if (fewer && count < bound) || (!fewer && count > bound) {
            let at = if fewer { "at least" } else { "at most" };
            let sentence = format!("found {count} items, expected {at} {bound}");
            problems.push(document.problem(Severity::Error, path, sentence));
        }
    }
    let Some(kind) = schema.get("items") else { return };
    for (index, item) in items.iter().enumerate() {
        check(document, item, kind, &path.index(index), problems);
    }
}

/// An unknown field, with the nearest known one, or all of them where they are few.
pub(crate) fn unknown_field<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> String {
    if is_remedy_step_beyond(name, known.clone()) {
        return format!("found {name}, expected at most remedy{REMEDY_STEPS_MAX}");
    }
    if let Some(near) = nearest(name, known.clone()) {
        return format!("found an unknown field, expected {near} (did you mean that?)");
    }
    let known: Vec<&str> = known.collect();
    format!("found an unknown field, expected one of {}", known.join(", "))
}

/// Whether it is a remedy step of a ladder beyond the last one.
fn is_remedy_step_beyond<'a>(name: &str, mut known: impl Iterator<Item = &'a str>) -> bool {
    let remedy_step = |name: &str| name.strip_prefix("remedy")?.parse::<usize>().ok();
    remedy_step(name).is_some_and(|remedy_step| remedy_step > REMEDY_STEPS_MAX)
        && known.any(|one| remedy_step(one) == Some(REMEDY_STEPS_MAX))
}

fn wrong_text(text: &str, schema: &Json) -> Option<String> {
    if is_span(schema) {
        return Span::parse(text).err().map(|expected| expected.to_string());
    }
    let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
    let at_least = schema.get("minLength").and_then(Json::as_u64).unwrap_or(0);
    let at_most = schema.get("maxLength").and_then(Json::as_u64).unwrap_or(u64::MAX);
    if length < at_least {
        return Some("text that is not empty".to_owned());
    }
    (length > at_most).then(|| format!("at most {at_most} characters"))
}

fn wrong_number(number: &serde_json::Number, schema: &Json) -> Option<String> {
    if text_of(schema, "type") == Some("integer") && !number.is_i64() && !number.is_u64() {
        return Some("a whole number".to_owned());
    }
    let number = number.as_f64()?;
    let bound = |name: &str| schema.get(name).and_then(Json::as_f64);
    match (bound("minimum"), bound("maximum")) {
        (Some(low), Some(high)) if number < low || number > high => {
            Some(format!("a number from {low} to {high}"))
        }
        (Some(low), _) if number < low => Some(format!("a number from {low}")),
        (_, Some(high)) if number > high => Some(format!("a number up to {high}")),
        (Some(_) | None, Some(_) | None) => None,
    }
}

fn expected(kind: &str, schema: &Json) -> String {
    if is_span(schema) {
        return "a length of time such as 5s, 3m or 1h30m".to_owned();
    }
    match kind {
        "object" => "a map",
        "array" => "a list",
        "string" => "text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        _ => "a value",
    }
    .to_owned()
}

fn one_of(words: &[Json], tree: &Tree) -> String {
    let words: Vec<String> = words
        .iter()
        .filter(|word| !word.is_null())
        .map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned))
        .collect();
    let near = tree.text().and_then(|text| nearest(text, words.iter().map(String::as_str)));
    match near {
        Some(near) => format!("{} (did you mean {near}?)", words.join(", ")),
        None => words.join(", "),
    }
}

fn text_of<'a>(schema: &'a Json, keyword: &str) -> Option<&'a str> {
    schema.get(keyword).and_then(Json::as_str)
}

fn is_span(schema: &Json) -> bool {
    text_of(schema, "pattern") == Some(SPAN_PATTERN)
}

fn nullable(schema: &Json) -> bool {
    schema.get("nullable") == Some(&Json::Bool(true))
}
