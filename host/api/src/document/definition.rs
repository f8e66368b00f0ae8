//! What the API server makes of an object of ours that is written: fields that its definition does not name
//! are dropped, and values that it does not allow are refused.
//!
//! As "Specifying a structural schema" and "Field pruning" of the Kubernetes documentation have it. CEL rules
//! are not here.

use kube::CustomResourceExt;
use serde_json::Value as Json;

use super::check::check;
use super::problem::{Path, Problems};
use super::tree::Document;
use crate::crds::tidy;

/// The definition of one kind.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Of the whole object.
    schema: Json,
}

impl Definition {
    /// As `deploy/crds` has it.
    pub fn of<K: CustomResourceExt>() -> Self {
        let mut crd = serde_json::to_value(K::crd()).unwrap_or_default();
        tidy(&mut crd);
        let schema = crd.pointer("/spec/versions/0/schema/openAPIV3Schema").cloned();
        Self { schema: schema.unwrap_or_default() }
    }

    /// Drops from `part`, `spec` or `status`, what is not defined, and says where that was; or says what of the
    /// rest is refused.
    pub fn admit(&self, part: &str, object: &mut Json) -> Result<Vec<String>, String> {
        let schema = self.schema.get("properties").and_then(|all| all.get(part));
        let Some((schema, value)) = schema.zip(object.get_mut(part)) else {
            return Ok(Vec::new());
        };
        let (path, mut dropped) = (Path::root().field(part), Vec::new());
        prune(schema, value, &path, &mut dropped);
        let (document, mut problems) = (Document::from_object(object), Problems::none());
        if let Some(tree) = document.at(&path) {
            check(&document, tree, schema, &path, &mut problems);
        }
        if problems.has_errors() { Err(problems.to_string()) } else { Ok(dropped) }
    }
}

fn prune(schema: &Json, value: &mut Json, path: &Path, dropped: &mut Vec<String>) {
    match value {
        Json::Object(fields) => {
            let properties = schema.get("properties").and_then(Json::as_object);
            let others = schema.get("additionalProperties").filter(|others| others.is_object());
            let of = |name: &str| properties.and_then(|all| all.get(name)).or(others);
            let is_open =
                schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Json::Bool(true));
            fields.retain(|name, value| {
                let path = path.field(name);
                match of(name) {
                    Some(schema) => prune(schema, value, &path, dropped),
                    None if is_open => {}
                    None => dropped.push(path.to_string()),
                }
                is_open || of(name).is_some()
            });
        }
        Json::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter_mut().enumerate() {
                prune(schema, item, &path.index(index), dropped);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::remedyconfiguration::RemedyConfiguration;
    use crate::remedypause::RemedyPause;

    #[test]
    fn what_is_not_defined_is_dropped_and_what_is_not_allowed_is_refused() {
        let definition = Definition::of::<RemedyConfiguration>();
        let mut object = json!({
            "kind": "RemedyConfiguration",
            "metadata": { "name": "a" },
            "spec": { "mode": "shadow", "colour": "red", "policies": { "maxInFlight": 1, "size": 2 } },
        });
        let dropped = definition.admit("spec", &mut object).unwrap();
        assert_eq!(dropped, ["spec.colour", "spec.policies.size"]);
        assert_eq!(object["spec"], json!({ "mode": "shadow", "policies": { "maxInFlight": 1 } }));
        object["spec"]["mode"] = json!("sometimes");
        let refused = definition.admit("spec", &mut object).unwrap_err();
        assert!(refused.contains("spec.mode: found"), "{refused}");
    }

    #[test]
    fn a_kind_without_status_loses_nothing_else() {
        let mut object = json!({ "metadata": { "name": "a" }, "data": { "x": 1 } });
        assert_eq!(Definition::of::<RemedyPause>().admit("status", &mut object), Ok(Vec::new()));
        assert_eq!(object, json!({ "metadata": { "name": "a" }, "data": { "x": 1 } }));
    }
}
