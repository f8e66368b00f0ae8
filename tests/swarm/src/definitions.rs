//! What node-remedy writes of its own kinds is held against the definitions that are shipped with it, as the API
//! server holds it: fields that a schema does not name are dropped, values that it does not allow refused.
//!
//! By "Extend the Kubernetes API with CustomResourceDefinitions" of the Kubernetes documentation, sections
//! "Validation" and "Field pruning". CEL rules are the world's own (`host/world/src/api/admission.rs`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use node_remedy_world::api::Kind;
use serde_json::{Value, json};

/// The definitions of all kinds, from this folder.
macro_rules! files {
    ($folder:literal) => {
        [
            (Kind::FenceConfiguration, include_str!(concat!($folder, "/fenceconfigurations.yaml"))),
            (Kind::FencePlugin, include_str!(concat!($folder, "/fenceplugins.yaml"))),
            (Kind::NodeFence, include_str!(concat!($folder, "/nodefences.yaml"))),
            (Kind::RemedyBudget, include_str!(concat!($folder, "/remedybudgets.yaml"))),
            (
                Kind::RemedyConfiguration,
                include_str!(concat!($folder, "/remedyconfigurations.yaml")),
            ),
            (Kind::RemedyPause, include_str!(concat!($folder, "/remedypauses.yaml"))),
        ]
    };
}

/// One part, `spec` or `status`, of one kind.
struct Definition {
    schema: Value,
    validator: Validator,
}

type Definitions = anyhow::Result<BTreeMap<(Kind, &'static str), Definition>>;

/// As they are applied.
static PRESENT: LazyLock<Definitions> = LazyLock::new(|| read(files!("../../../deploy/crds")));

/// As somebody left them who brought node-remedy up to date and not its definitions.
static OLDER: LazyLock<Definitions> = LazyLock::new(|| read(files!("../../fixtures/crds/0.1.0")));

fn read(files: [(Kind, &str); 6]) -> Definitions {
    let mut all = BTreeMap::new();
    for (kind, file) in files {
        let crd: Value = serde_saphyr::from_str(file)?;
        for part in ["spec", "status"] {
            let place = format!("/spec/versions/0/schema/openAPIV3Schema/properties/{part}");
            let Some(schema) = crd.pointer(&place) else { continue };
            let validator = jsonschema::validator_for(&plain(schema))?;
            all.insert((kind, part), Definition { schema: schema.clone(), validator });
        }
    }
    Ok(all)
}

/// Drops what is not defined of a part, and says where that was; or says what of the rest is refused.
pub(crate) fn admit(kind: Kind, part: &str, object: &mut Value) -> Result<Vec<String>, String> {
    admit_by(&PRESENT, kind, part, object)
}

/// The same where the definitions are older than node-remedy.
pub(crate) fn admit_by_older(
    kind: Kind,
    part: &str,
    object: &mut Value,
) -> Result<Vec<String>, String> {
    admit_by(&OLDER, kind, part, object)
}

fn admit_by(
    definitions: &Definitions,
    kind: Kind,
    part: &str,
    object: &mut Value,
) -> Result<Vec<String>, String> {
    let definitions =
        definitions.as_ref().map_err(|error| format!("the definitions: {error:#}"))?;
    let definition = definitions.get(&(kind, part));
    let Some((definition, value)) = definition.zip(object.get_mut(part)) else {
        return Ok(Vec::new());
    };
    let mut dropped = Vec::new();
    prune(&definition.schema, value, part, &mut dropped);
    let refused: Vec<String> = definition
        .validator
        .iter_errors(value)
        .map(|error| format!("{part}{}: {error}", error.instance_path()))
        .collect();
    if refused.is_empty() { Ok(dropped) } else { Err(refused.join("; ")) }
}

/// The same as JSON Schema has it, which has no word for `nullable` but a type, and no formats of Go.
fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let is_nullable = fields.get("nullable") == Some(&json!(true));
            let fields = fields.iter().filter(|(name, value)| {
                // A property may have any name: it is an object.
                let is_other =
                    name.starts_with("x-kubernetes") || *name == "nullable" || *name == "format";
                value.is_object() || !is_other
            });
            let mut plain: serde_json::Map<String, Value> =
                fields.map(|(name, value)| (name.clone(), self::plain(value))).collect();
            if is_nullable {
                if let Some(kind) = plain.get("type").filter(|kind| kind.is_string()).cloned() {
                    plain.insert("type".to_owned(), json!([kind, "null"]));
                }
                if let Some(words) = plain.get_mut("enum").and_then(Value::as_array_mut) {
                    words.push(Value::Null);
                    words.dedup();
                }
            }
            Value::Object(plain)
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

fn prune(schema: &Value, value: &mut Value, path: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let others = schema.get("additionalProperties").filter(|others| others.is_object());
            let of = |name: &str| properties.and_then(|all| all.get(name)).or(others);
            let is_open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
            fields.retain(|name, value| {
                let path = format!("{path}.{name}");
                match of(name) {
                    Some(schema) => prune(schema, value, &path, dropped),
                    None if is_open => {}
                    None => dropped.push(path),
                }
                is_open || of(name).is_some()
            });
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter_mut().enumerate() {
                prune(schema, item, &format!("{path}[{index}]"), dropped);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // promise: S22
    fn what_is_not_defined_is_dropped_and_what_is_not_allowed_is_refused() {
        let thresholds = json!([{ "nodeLeaseAge": "20s", "remedy1": [{ "name": "fence" }] }]);
        let mut object = json!({
            "metadata": { "name": "a" },
            "spec": {
                "mode": "shadow",
                "colour": "red",
                "thresholdConfigs": thresholds,
                "policies": { "maxInFlight": 1, "size": 2 },
            },
        });
        let dropped = admit(Kind::RemedyConfiguration, "spec", &mut object).unwrap();
        assert_eq!(dropped, ["spec.colour", "spec.policies.size"]);
        let kept = json!({
            "mode": "shadow", "thresholdConfigs": thresholds, "policies": { "maxInFlight": 1 },
        });
        assert_eq!(object["spec"], kept);
        object["spec"]["mode"] = json!("sometimes");
        let refused = admit(Kind::RemedyConfiguration, "spec", &mut object).unwrap_err();
        assert!(refused.starts_with("spec/mode: "), "{refused}");
    }

    #[test]
    fn of_other_kinds_everything_is_taken() {
        let mut pod = json!({ "metadata": { "name": "a" }, "spec": { "colour": "red" } });
        assert_eq!(admit(Kind::Pod, "spec", &mut pod), Ok(Vec::new()));
        assert_eq!(pod["spec"]["colour"], "red");
    }
}
