//! `${…}` in parameters: the few things that may be taken from a node, and nothing else. No
//! functions, no conditions: a parameter that needs them belongs into an inventory.

use litemap::LiteMap;
use std::collections::BTreeMap;
use std::fmt;

use super::address::bracketed;
use crate::document::{Problem, Spot};
use crate::limits;

/// What is known of a node when its plan is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.labels`.
    pub labels: LiteMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: LiteMap<String, String>,
    /// `status.addresses`, the first of each type.
    pub addresses: LiteMap<String, String>,
    /// All of `status.addresses` that are of type InternalIP.
    pub internal_ips: Vec<String>,
    /// `spec.providerID`; empty where there is none.
    pub provider_id: String,
    /// `status.nodeInfo.systemUUID`; empty where there is none.
    pub system_uuid: String,
    /// The node's row of the inventory, by column; empty where there is none.
    pub inventory: BTreeMap<String, String>,
}

/// A text with places for what is taken from the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    parts: Vec<Part>,
    pub(super) spot: Spot,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Name,
    ProviderId,
    SystemUuid,
    Address(String),
    Annotation(String),
    Label(String),
    Inventory(String),
}

/// Whether the API server keeps kubelets from writing a label (the admission plugin NodeRestriction).
fn is_restricted(label: &str) -> bool {
    let prefix = label.split_once('/').map(|(prefix, _)| prefix);
    prefix.is_some_and(|prefix| {
        prefix == "node-restriction.kubernetes.io"
            || prefix.ends_with(".node-restriction.kubernetes.io")
    })
}

impl Part {
    fn is_said_by_node(&self) -> bool {
        match self {
            Self::ProviderId | Self::SystemUuid | Self::Address(_) | Self::Annotation(_) => true,
            Self::Label(key) => !is_restricted(key),
            Self::Text(_) | Self::Name | Self::Inventory(_) => false,
        }
    }
}

/// What may stand between `${` and `}`.
const EXPECTED: &str = "${node.name}, ${node.providerID}, ${node.systemUUID}, ${node.address.InternalIP}, \
                        ${node.annotations['…']}, ${node.labels['…']} or ${inventory['…']}";

impl Expression {
    pub(super) fn parse(text: &str, spot: &Spot) -> Result<Self, Problem> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let Some((inside, after)) = after.split_once('}') else {
                return Err(spot.error(format!("found ${{ without }}, expected {EXPECTED}")));
            };
            let Some(part) = part(inside.trim()) else {
                return Err(spot.error(format!("found ${{{inside}}}, expected {EXPECTED}")));
            };
            parts.push(part);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts, spot: spot.clone() })
    }

    /// The text for one node, or what the node lacks.
    pub(super) fn evaluate(&self, node: &NodeFacts) -> Result<String, Problem> {
        let mut text = String::new();
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            let (value, what) = match part {
                Part::Text(value) => (Some(value), String::new()),
                Part::Name => (Some(&node.name), String::new()),
                Part::ProviderId => (Some(&node.provider_id), "providerID".to_owned()),
                Part::SystemUuid => (Some(&node.system_uuid), "systemUUID".to_owned()),
                Part::Address(kind) => (node.addresses.get(kind), format!("address {kind}")),
                Part::Annotation(key) => (node.annotations.get(key), format!("annotation {key}")),
                Part::Label(key) => (node.labels.get(key), format!("label {key}")),
                Part::Inventory(column) => {
                    (node.inventory.get(column), format!("column {column} in the inventory"))
                }
            };
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                let sentence = format!("found node {} without {what}, expected one", node.name);
                return Err(self.spot.error(sentence));
            };
            // A port behind a bare IPv6 address would be read as its last part.
            let has_port = matches!(parts.peek(), Some(Part::Text(next)) if next.starts_with(':'));
            let is_host = has_port && (text.is_empty() || text.ends_with('/'));
            text.push_str(&if is_host { bracketed(value) } else { value.into() });
        }
        if text.chars().count() > limits::PARAMETER_CHARACTERS_MAX || text.contains(control) {
            return Err(self.spot.error(format!(
                "found a value for node {} that is too long or has control characters",
                node.name
            )));
        }
        Ok(text)
    }

    /// Whether anything in it is taken from the node or its inventory.
    pub(super) fn takes(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, Part::Text(_)))
    }

    /// The first thing in it that a node's own kubelet can write and that nobody trusts, as it is written.
    ///
    /// The name is what the kubelet is known by. Everything else of a Node it writes itself: annotations and
    /// labels, its addresses, and at registration its providerID.
    pub(super) fn distrusted(&self, trusted: &[Self]) -> Option<String> {
        let is_trusted = |part: &Part| trusted.iter().any(|one| one.parts.contains(part));
        let part = self.parts.iter().find(|part| part.is_said_by_node() && !is_trusted(part))?;
        Some(Self { parts: vec![part.clone()], spot: self.spot.clone() }.to_string())
    }

    /// The same of a plug. What a Node said first of its systemUUID is kept, and no other may say it; its providerID
    /// cannot be changed.
    pub(super) fn distrusted_as_plug(&self, trusted: &[Self]) -> Option<String> {
        let is_identity = |part: &Part| matches!(part, Part::ProviderId | Part::SystemUuid);
        let parts = self.parts.iter().filter(|part| !is_identity(part)).cloned().collect();
        Self { parts, spot: self.spot.clone() }.distrusted(trusted)
    }

    /// Whether it is one field of a Node that may need trust, and nothing else.
    pub(super) fn is_node_field(&self) -> bool {
        let may_need = |part: &Part| part.is_said_by_node() || matches!(part, Part::Label(_));
        self.parts.len() == 1 && self.parts.iter().all(may_need)
    }

    /// Whether it is the same text, wherever it stands.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Name => f.write_str("${node.name}")?,
                Part::ProviderId => f.write_str("${node.providerID}")?,
                Part::SystemUuid => f.write_str("${node.systemUUID}")?,
                Part::Address(kind) => write!(f, "${{node.address.{kind}}}")?,
                Part::Annotation(key) => write!(f, "${{node.annotations['{key}']}}")?,
                Part::Label(key) => write!(f, "${{node.labels['{key}']}}")?,
                Part::Inventory(column) => write!(f, "${{inventory['{column}']}}")?,
            }
        }
        Ok(())
    }
}

fn control(c: char) -> bool {
    c.is_control()
}

fn part(inside: &str) -> Option<Part> {
    let quoted = |prefix: &str| {
        let key = inside.strip_prefix(prefix)?.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
        ['\'', '"']
            .into_iter()
            .find_map(|quote| key.strip_prefix(quote)?.strip_suffix(quote))
            .filter(|key| !key.is_empty())
            .map(str::to_owned)
    };
    match inside {
        "node.name" => Some(Part::Name),
        "node.providerID" => Some(Part::ProviderId),
        "node.systemUUID" => Some(Part::SystemUuid),
        _ => inside
            .strip_prefix("node.address.")
            .filter(|kind| !kind.is_empty() && kind.chars().all(char::is_alphanumeric))
            .map(|kind| Part::Address(kind.to_owned()))
            .or_else(|| quoted("node.annotations").map(Part::Annotation))
            .or_else(|| quoted("node.labels").map(Part::Label))
            .or_else(|| quoted("inventory").map(Part::Inventory)),
    }
}
