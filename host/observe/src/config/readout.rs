//! What is said of one object of the configuration: whether it is in force, and why not.

use std::rc::Rc;

use serde_json::Value;

/// What became of an object that configures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readout {
    /// `RemedyConfiguration`, `FenceConfiguration`, `FencePlugin` or `ConfigMap`.
    pub kind: &'static str,
    /// Its name; for a `Configuration` in a ConfigMap `name[key]`.
    pub name: String,
    /// `metadata.generation` of what was read.
    pub generation: i64,
    /// What is in force now.
    pub in_force: InForce,
    /// Every problem, errors and warnings, one a line.
    pub problems: String,
}

/// What of an object is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InForce {
    /// What was read.
    This,
    /// The last version that was valid.
    LastValid,
    /// Nothing.
    Nothing,
}

/// What is in force: what was just read, or else what was valid before.
pub fn in_force<T>(read: Option<T>, last: Option<Rc<T>>) -> (Option<Rc<T>>, InForce) {
    match (read, last) {
        (Some(value), _) => (Some(Rc::new(value)), InForce::This),
        (None, Some(last)) => (Some(last), InForce::LastValid),
        (None, None) => (None, InForce::Nothing),
    }
}

/// The object as JSON with the header that typed objects do not carry.
pub fn json<K: serde::Serialize>(kind: &str, object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        let version = match kind {
            "ConfigMap" => "v1".to_owned(),
            _ => format!("{}/{}", node_remedy_api::GROUP, node_remedy_api::VERSION),
        };
        fields.entry("apiVersion").or_insert(Value::String(version));
        fields.entry("kind").or_insert(Value::String(kind.to_owned()));
    }
    value
}
