//! Objects that are there and that this version cannot read: an older definition let them in, or a newer
//! version wrote them. Each is read by itself, so that one of them hides no other. What it means
//! for the nodes that it is about is not said here.

use kube::ResourceExt as _;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cluster::object::Object;

/// An object of a kind, or one that is there and cannot be read as that kind.
pub type Read<K> = Result<K, Unread>;

/// An object that cannot be read as its kind: as the API server has it, and why not.
#[derive(Debug, Clone, PartialEq)]
pub struct Unread {
    object: Value,
    why: String,
}

/// Reads one object of a list or of a watch.
///
/// # Errors
/// The object itself, and why it could not be read.
pub fn read<K: Object>(object: Value) -> Read<K> {
    K::deserialize(&object).map_err(|error| Unread { object, why: error.to_string() })
}

/// The same from an object's text, without all its values in memory.
///
/// # Errors
/// Why it is no JSON.
pub fn read_text<K: Object>(text: &RawValue) -> serde_json::Result<Read<K>> {
    serde_json::from_str(text.get()).map(Ok).or_else(|_| serde_json::from_str(text.get()).map(read))
}

/// `namespace/name`, or `name` for cluster-scoped kinds.
pub fn key_of<K: Object>(read: &Read<K>) -> String {
    let (namespace, name) = match read {
        Ok(object) => (object.namespace(), object.name_any()),
        Err(unread) => {
            (unread.text("/metadata/namespace").map(str::to_owned), unread.name().to_owned())
        }
    };
    namespace.map_or(name.clone(), |namespace| format!("{namespace}/{name}"))
}

/// The version of an object, by which a watch goes on after it.
pub fn version_of<K: Object>(read: &Read<K>) -> Option<String> {
    match read {
        Ok(object) => object.resource_version(),
        Err(unread) => unread.text("/metadata/resourceVersion").map(str::to_owned),
    }
}

impl Unread {
    /// The object as the API server has it.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.text("/metadata/name").unwrap_or_default()
    }

    /// Why it could not be read.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// The text at a place, if there is one.
    pub fn text(&self, place: &str) -> Option<&str> {
        self.object.pointer(place).and_then(Value::as_str)
    }

    /// The whole number at a place, if there is one.
    pub fn number(&self, place: &str) -> Option<u64> {
        self.object.pointer(place).and_then(Value::as_u64)
    }
}
