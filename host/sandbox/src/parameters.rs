//! The flat subset of JSON Schema that describes a method's parameters, and the check of
//! parameters against it. Parameters travel as text, so each is checked as the text form of its
//! type. Not a JSON Schema validator: keywords outside the subset do not parse.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::manifest::error::{ManifestError, field};

/// What a method instance may set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Schema {
    /// Always `object`.
    #[serde(rename = "type")]
    kind: String,
    /// Always false.
    additional_properties: bool,
    /// Parameters without which no call is made.
    #[serde(default)]
    pub required: BTreeSet<String>,
    /// The parameters by name.
    #[serde(deserialize_with = "without_duplicates")]
    pub properties: BTreeMap<String, Property>,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Property {
    /// The type whose text form it has.
    #[serde(rename = "type")]
    pub kind: PropertyKind,
    /// What it means, for people.
    #[serde(default)]
    pub description: String,
    /// What it is where nothing is set.
    #[serde(default)]
    pub default: Option<Value>,
    #[serde(default, rename = "enum")]
    members: Option<Vec<Value>>,
    #[serde(default)]
    min_length: Option<usize>,
    #[serde(default)]
    max_length: Option<usize>,
    #[serde(default)]
    minimum: Option<i64>,
    #[serde(default)]
    maximum: Option<i64>,
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PropertyKind {
    /// Any text.
    String,
    /// A decimal whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

/// Why parameters were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// The plugin has no such parameter.
    #[error("failed to accept parameter '{name}': the plugin knows {known}")]
    Unknown {
        /// The parameter.
        name: String,
        /// Those it has.
        known: String,
    },
    /// A required parameter is not set.
    #[error("failed to find parameter '{name}', which the plugin requires")]
    Missing {
        /// The parameter.
        name: String,
    },
    /// The value is not one the schema allows.
    #[error("failed to accept parameter '{name}': found {found:?}, expected {expected}")]
    Value {
        /// The parameter.
        name: String,
        /// What was set.
        found: String,
        /// What may be set.
        expected: String,
    },
}

impl Schema {
    /// Checks parameters and fills in the defaults, so that a plugin always sees them.
    pub fn fill(
        &self,
        given: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, ParameterError> {
        if let Some(name) = given.keys().find(|name| !self.properties.contains_key(*name)) {
            return Err(self.unknown(name));
        }
        let mut filled = BTreeMap::new();
        for (name, property) in &self.properties {
            let default = || property.default.as_ref().map(text);
            let Some(value) = given.get(name).cloned().or_else(default) else {
                if self.required.contains(name) {
                    return Err(ParameterError::Missing { name: name.clone() });
                }
                continue;
            };
            self.check_value(name, &value)?;
            filled.insert(name.clone(), value);
        }
        Ok(filled)
    }

    /// Checks one parameter by itself.
    pub fn check_value(&self, name: &str, value: &str) -> Result<(), ParameterError> {
        let property = self.properties.get(name).ok_or_else(|| self.unknown(name))?;
        property.accepts(value).map_err(|expected| ParameterError::Value {
            name: name.to_owned(),
            found: value.to_owned(),
            expected,
        })
    }

    fn unknown(&self, name: &str) -> ParameterError {
        let known = self.properties.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        ParameterError::Unknown { name: name.to_owned(), known }
    }

    /// Checks that the schema itself can hold.
    pub(crate) fn check(&self) -> Result<(), ManifestError> {
        if self.kind != "object" {
            return Err(field("parameters.type", &self.kind, "object"));
        }
        if self.additional_properties {
            return Err(field("parameters.additionalProperties", true, false));
        }
        if let Some(name) = self.required.iter().find(|name| !self.properties.contains_key(*name)) {
            return Err(field("parameters.required", name, "one of the properties"));
        }
        for (name, property) in &self.properties {
            let members = property.members.iter().flatten();
            for value in members.chain(&property.default) {
                let path = format!("parameters.properties.{name}");
                if !property.kind.is_type_of(value) {
                    return Err(field(&path, value, format!("the type {:?}", property.kind)));
                }
            }
            if let Some(Err(expected)) =
                property.default.as_ref().map(|d| property.accepts(&text(d)))
            {
                let path = format!("parameters.properties.{name}.default");
                return Err(field(&path, "one its own schema refuses", expected));
            }
        }
        Ok(())
    }
}

impl Property {
    /// Whether the text is one the property allows; otherwise what it does allow.
    fn accepts(&self, value: &str) -> Result<(), String> {
        match self.kind {
            PropertyKind::String => self.accepts_length(value)?,
            PropertyKind::Integer => self.accepts_number(value)?,
            PropertyKind::Boolean if value == "true" || value == "false" => {}
            PropertyKind::Boolean => return Err("true or false".to_owned()),
        }
        let Some(members) = &self.members else { return Ok(()) };
        let members: Vec<String> = members.iter().map(text).collect();
        if members.iter().any(|member| member == value) {
            return Ok(());
        }
        Err(format!("one of {}", members.join(", ")))
    }

    fn accepts_length(&self, value: &str) -> Result<(), String> {
        let (min, max) = (self.min_length.unwrap_or(0), self.max_length.unwrap_or(usize::MAX));
        if (min..=max).contains(&value.chars().count()) {
            return Ok(());
        }
        Err(format!("{min} to {max} characters"))
    }

    fn accepts_number(&self, value: &str) -> Result<(), String> {
        let (min, max) = (self.minimum.unwrap_or(i64::MIN), self.maximum.unwrap_or(i64::MAX));
        match value.parse::<i64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(()),
            Ok(_) | Err(_) => Err(format!("a whole number from {min} to {max}")),
        }
    }
}

impl PropertyKind {
    fn is_type_of(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64(),
            Self::Boolean => value.is_boolean(),
        }
    }
}

/// A JSON value as a parameter travels.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A map that refuses a key given twice: of two definitions the host would enforce only one.
fn without_duplicates<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Property>, D::Error> {
    struct Once;

    impl<'de> Visitor<'de> for Once {
        type Value = BTreeMap<String, Property>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("parameters by name, each once")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut properties = BTreeMap::new();
            while let Some((name, property)) = map.next_entry::<String, Property>()? {
                if properties.insert(name.clone(), property).is_some() {
                    return Err(A::Error::custom(format!("duplicate field `{name}`")));
                }
            }
            Ok(properties)
        }
    }

    deserializer.deserialize_map(Once)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let text = r#"{
            "type": "object", "additionalProperties": false, "required": ["address"],
            "properties": {
                "address": {"type": "string", "minLength": 1, "maxLength": 20},
                "suite": {"type": "string", "enum": ["auto", "17"], "default": "auto"},
                "tries": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
                "quiet": {"type": "boolean"}
            }}"#;
        let schema: Schema = serde_json::from_str(text).unwrap();
        schema.check().unwrap();
        schema
    }

    fn fill(given: &[(&str, &str)]) -> Result<String, String> {
        let given = given.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let filled = schema().fill(&given).map_err(|error| error.to_string())?;
        Ok(filled.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn defaults_are_filled_in() {
        assert_eq!(fill(&[("address", "bmc")]).unwrap(), "address=bmc suite=auto tries=3");
        let all = [("address", "b"), ("suite", "17"), ("tries", "9"), ("quiet", "true")];
        assert_eq!(fill(&all).unwrap(), "address=b quiet=true suite=17 tries=9");
    }

    #[test]
    fn what_the_schema_does_not_allow_is_refused_by_name() {
        let rows: [(&[(&str, &str)], &str); 7] = [
            (&[], "failed to find parameter 'address'"),
            (&[("address", "")], "1 to 20 characters"),
            (&[("address", "a"), ("sweet", "17")], "knows address, quiet, suite, tries"),
            (&[("address", "a"), ("suite", "0")], "one of auto, 17"),
            (&[("address", "a"), ("tries", "10")], "from 1 to 9"),
            (&[("address", "a"), ("tries", "0x2")], "a whole number"),
            (&[("address", "a"), ("quiet", "yes")], "true or false"),
        ];
        for (given, expected) in rows {
            let message = fill(given).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_default_of_another_type_or_range_is_refused() {
        for default in ["\"3\"", "0", "true"] {
            let text = format!(
                r#"{{"type":"object","additionalProperties":false,
                    "properties":{{"t":{{"type":"integer","minimum":1,"default":{default}}}}}}}"#
            );
            let schema: Schema = serde_json::from_str(&text).unwrap();
            assert!(schema.check().is_err(), "{default}");
        }
    }
}
