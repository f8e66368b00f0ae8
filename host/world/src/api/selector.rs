//! Which objects of a kind a list or a watch is about: a namespace and field selectors.
//!
//! Label selectors are not modelled; nobody here uses them.

use serde_json::Value;

use super::error::ApiError;
use super::object::{namespace, text};

/// The selection of a list or a watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    namespace: Option<String>,
    fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    pointer: String,
    wanted: String,
    is: Match,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    Equal,
    Different,
}

impl Selector {
    /// Every object.
    pub fn all() -> Self {
        Self::default()
    }

    /// Reads `spec.nodeName=a,status.phase!=Running` and the like.
    pub fn read(namespace: Option<&str>, fields: Option<&str>) -> Result<Self, ApiError> {
        let fields = fields.unwrap_or_default().split(',').filter(|field| !field.is_empty());
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            fields: fields.map(read_field).collect::<Result<_, _>>()?,
        })
    }

    /// Whether the selection holds `object`.
    pub fn takes(&self, object: &Value) -> bool {
        self.namespace.as_deref().is_none_or(|wanted| wanted == namespace(object))
            && self.fields.iter().all(|field| {
                (text(object, &field.pointer) == field.wanted) == (field.is == Match::Equal)
            })
    }
}

fn read_field(field: &str) -> Result<Field, ApiError> {
    let split = |operator| field.split_once(operator);
    let (path, wanted, is) = match (split("!="), split("=="), split("=")) {
        (Some((path, wanted)), _, _) => (path, wanted, Match::Different),
        (None, Some((path, wanted)), _) | (None, None, Some((path, wanted))) => {
            (path, wanted, Match::Equal)
        }
        (None, None, None) => {
            return Err(ApiError::BadRequest(format!(
                "field selector \"{field}\": found no operator, expected =, == or !="
            )));
        }
    };
    let pointer = path.split('.').fold(String::new(), |pointer, part| pointer + "/" + part);
    Ok(Field { pointer, wanted: wanted.to_owned(), is })
}
