//! The definitions: what is shipped is what is generated, and every keyword they use is one that
//! the reader of documents knows.

use std::collections::BTreeSet;
use std::path::Path;

use node_remedy_api::crds;
use serde_json::Value;

#[test]
fn the_shipped_definitions_are_the_generated_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    let files = crds::files().unwrap();
    for (name, content) in &files {
        let shipped = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(shipped == *content, "{name} is stale: cargo xtask codegen");
        assert!(shipped.starts_with(crds::STAMP), "{name}");
    }
    let shipped: BTreeSet<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(shipped, files.into_iter().map(|(name, _)| name).collect());
}

/// Every list and text has a bound, or one careless client fills etcd; and a schema that said more
/// than the reader understands would look like a check.
#[test]
fn schemas_are_bounded_and_use_no_keyword_that_is_not_checked() {
    let known = [
        "type",
        "description",
        "title",
        "properties",
        "required",
        "items",
        "enum",
        "default",
        "nullable",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "minProperties",
        "maxProperties",
        "pattern",
        "format",
        "additionalProperties",
        "x-kubernetes-validations",
        "x-kubernetes-preserve-unknown-fields",
    ];
    for crd in crds::all() {
        let name = crd.spec.names.kind.clone();
        let crd = serde_json::to_value(crd).unwrap();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        for part in ["spec", "status"].into_iter().filter_map(|part| schema.get(part)) {
            walk(part, &name, &mut |schema, path| {
                for keyword in schema.as_object().unwrap().keys() {
                    assert!(known.contains(&keyword.as_str()), "{path}: {keyword}");
                }
                let bound = match schema.get("type").and_then(Value::as_str) {
                    Some("array") => "maxItems",
                    Some("string") if schema.get("enum").is_none() && !is_time(schema) => {
                        "maxLength"
                    }
                    _ => return,
                };
                let inside_open = schema.get(bound).is_some() || path.ends_with("{}");
                assert!(inside_open, "{path} has no {bound}");
            });
        }
    }
}

fn is_time(schema: &Value) -> bool {
    schema.get("format").and_then(Value::as_str) == Some("date-time")
}

fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&Value, &str)) {
    visit(schema, path);
    for (name, property) in
        schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        walk(property, &format!("{path}.{name}"), visit);
    }
    if let Some(items) = schema.get("items") {
        walk(items, &format!("{path}[]"), visit);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        walk(values, &format!("{path}{{}}"), visit);
    }
}
