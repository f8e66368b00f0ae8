//! Reading Kubernetes objects that are kept as plain JSON.
//!
//! Readers never fail: what is absent or of another type reads as empty. Writing goes
//! through the API server, as everybody else's.

use serde_json::{Map, Value, json};

use super::kind::Kind;

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for kinds that live in none.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

impl Key {
    /// A cluster-scoped object.
    pub fn cluster(kind: Kind, name: &str) -> Self {
        Self { kind, namespace: String::new(), name: name.to_owned() }
    }

    /// An object in a namespace.
    pub fn within(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key of `object`.
    pub fn of(kind: Kind, object: &Value) -> Self {
        Self::within(kind, namespace(object), name(object))
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} \"", self.kind.plural())?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        write!(f, "{}\"", self.name)
    }
}

/// The value at a JSON pointer.
fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') {
        return object.pointer(pointer);
    }
    // serde_json's own makes a string of every part, and this is what the world does most.
    pointer.split('/').skip(1).try_fold(object, |value, field| match value.as_array() {
        Some(items) => items.get(field.parse::<usize>().ok()?),
        None => value.get(field),
    })
}

/// The text at a JSON pointer, or nothing.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a JSON pointer, or nothing.
pub fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    at(object, pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The number at a JSON pointer.
pub fn number(object: &Value, pointer: &str) -> Option<u64> {
    at(object, pointer).and_then(Value::as_u64)
}

/// Whether the value at a JSON pointer is `true`.
pub fn is_true(object: &Value, pointer: &str) -> bool {
    at(object, pointer).and_then(Value::as_bool).unwrap_or_default()
}

/// `metadata.name`.
pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `metadata.namespace`; empty for cluster-scoped objects.
pub fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// `metadata.uid`.
pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// Whether a delete was accepted and the object waits for somebody.
pub fn is_terminating(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|stamp| !stamp.is_null())
}

/// The condition of type `kind` in `status.conditions`.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").iter().find(|condition| text(condition, "/type") == kind)
}

/// `status` of the condition of type `kind`; empty where there is none.
pub fn condition_status<'a>(object: &'a Value, kind: &str) -> &'a str {
    condition(object, kind).map_or("", |condition| text(condition, "/status"))
}

/// Sets `status` of a condition and, when it differs from before, `lastTransitionTime`.
/// Everything else in `more` is written over.
pub fn set_condition(object: &mut Value, kind: &str, status: &str, stamp: &str, more: Value) {
    let conditions = part(part(object, "status"), "conditions");
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let index = conditions.iter().position(|condition| text(condition, "/type") == kind);
    let index = index.unwrap_or_else(|| {
        conditions.push(json!({ "type": kind }));
        conditions.len() - 1
    });
    let Some(condition) = conditions.get_mut(index) else { return };
    if text(condition, "/status") != status {
        set(condition, "status", json!(status));
        set(condition, "lastTransitionTime", json!(stamp));
    }
    if let Value::Object(more) = more {
        for (field, value) in more {
            set(condition, &field, value);
        }
    }
}

/// Sets a field of an object; a value that is no object becomes one.
pub fn set(object: &mut Value, field: &str, value: Value) {
    *part(object, field) = value;
}

/// Counts one more change of what is wanted, where the kind counts them.
pub(super) fn count_generation(object: &mut Value) {
    if let Some(generation) = number(object, "/metadata/generation") {
        set(part(object, "metadata"), "generation", json!(generation + 1));
    }
}

/// Removes a field of an object.
pub fn remove(object: &mut Value, field: &str) {
    if let Value::Object(fields) = object {
        fields.remove(field);
    }
}

/// The field of an object, made if it is absent.
pub fn part<'a>(object: &'a mut Value, field: &str) -> &'a mut Value {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    match object {
        Value::Object(fields) => fields.entry(field).or_insert(Value::Null),
        // Made an object two lines above; returning it unchanged keeps this total.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            object
        }
    }
}
