//! Label selectors as text, in the form `kubectl -l` takes: `type=compute,zone in (a,b),!gpu`.
//! Parsed once; matching allocates nothing.

use litemap::LiteMap;
use std::collections::BTreeSet;

/// A list of requirements, all of which must hold. It is never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In { key: String, values: BTreeSet<String> },
    NotIn { key: String, values: BTreeSet<String> },
    Exists { key: String },
    Missing { key: String },
}

/// What was expected of a text that is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expected}")]
pub struct SelectorError {
    expected: String,
}

impl Selector {
    /// Reads `key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key`, `!key`, joined
    /// by commas.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.trim().is_empty() {
            return fail(
                "a label selector such as type=compute; leave the field out for all nodes",
            );
        }
        let requirements =
            split(text).into_iter().map(requirement).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { requirements })
    }

    /// Whether a node with these labels is selected.
    pub fn matches(&self, labels: &LiteMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::In { key, values } => {
                labels.get(key).is_some_and(|value| values.contains(value))
            }
            // As Kubernetes has it: a node without the label is not in the list either.
            Requirement::NotIn { key, values } => {
                labels.get(key).is_none_or(|value| !values.contains(value))
            }
            Requirement::Exists { key } => labels.contains_key(key),
            Requirement::Missing { key } => !labels.contains_key(key),
        })
    }
}

/// Splits at the commas outside parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|c| {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth <= 0
    })
    .collect()
}

fn requirement(text: &str) -> Result<Requirement, SelectorError> {
    let text = text.trim();
    if let Some(wanted) = text.strip_suffix(')') {
        let Some((head, values)) = wanted.split_once('(') else {
            return fail("key in (value, value)");
        };
        let values: BTreeSet<String> =
            values.split(',').map(|value| label_value(value.trim())).collect::<Result<_, _>>()?;
        let mut words = head.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => Ok(Requirement::In { key: label_key(key)?, values }),
            (Some(key), Some("notin"), None) => {
                Ok(Requirement::NotIn { key: label_key(key)?, values })
            }
            _ => fail("key in (value, value) or key notin (value, value)"),
        };
    }
    let one = |value: &str| Ok(BTreeSet::from([label_value(value.trim())?]));
    if let Some((key, value)) = text.split_once("!=") {
        return Ok(Requirement::NotIn { key: label_key(key)?, values: one(value)? });
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Requirement::In { key: label_key(key)?, values: one(value)? });
    }
    match text.strip_prefix('!') {
        Some(key) => Ok(Requirement::Missing { key: label_key(key)? }),
        None => Ok(Requirement::Exists { key: label_key(text)? }),
    }
}

fn label_key(text: &str) -> Result<String, SelectorError> {
    let text = text.trim();
    let (prefix, name) = text.rsplit_once('/').unwrap_or(("", text));
    let prefix_fits = text.len() == name.len()
        || (!prefix.is_empty()
            && prefix.len() <= 253
            && prefix
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c)));
    if prefix_fits && !name.is_empty() && is_name(name) {
        return Ok(text.to_owned());
    }
    fail(&format!("a label's key such as type or node-remedy.io/fence in place of {text:?}"))
}

fn label_value(text: &str) -> Result<String, SelectorError> {
    if is_name(text) {
        return Ok(text.to_owned());
    }
    fail(&format!("a label's value (letters, digits, - _ .) in place of {text:?}"))
}

/// The form of a label's name and value; empty is a legal value.
fn is_name(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && edge(text.chars().next())
        && edge(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn fail<T>(expected: &str) -> Result<T, SelectorError> {
    Err(SelectorError { expected: expected.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_select() {
        let labels = LiteMap::from_iter([
            ("type".to_owned(), "compute".to_owned()),
            ("topology.kubernetes.io/zone".to_owned(), "a".to_owned()),
            ("empty".to_owned(), String::new()),
        ]);
        for (text, selected) in [
            ("type=compute", true),
            ("type==compute", true),
            ("type = compute", true),
            ("type=storage", false),
            ("type!=storage", true),
            ("type!=compute", false),
            ("gpu!=yes", true),
            ("type in (compute, storage)", true),
            ("type notin (compute)", false),
            ("topology.kubernetes.io/zone in (a,b),type=compute", true),
            ("topology.kubernetes.io/zone in (b),type=compute", false),
            ("type", true),
            ("gpu", false),
            ("!gpu", true),
            ("!type", false),
            ("empty=", true),
        ] {
            assert_eq!(Selector::parse(text).unwrap().matches(&labels), selected, "{text}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in [
            "",
            "  ",
            "=a",
            "a=b=c",
            "a in",
            "a in (b",
            "a b",
            "a in b)",
            "a,,b",
            "-a=b",
            "a/=b",
            "a=b c",
            "x in (a) y",
            "/a=b",
            "a=ü",
        ] {
            assert!(Selector::parse(text).is_err(), "{text:?}");
        }
    }
}
