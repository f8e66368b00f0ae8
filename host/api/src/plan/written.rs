//! Where the values of a plan were written, for people who ask.

use std::collections::{BTreeMap, BTreeSet};

use super::expression::Expression;
use super::grants::Grant;
use super::plugins::is_secret;
use super::source::{Does, Draft, FenceSource, Grants};
use crate::document::Spot;

/// How a value was written, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// As it was written.
    pub text: String,
    /// What was written where it takes something from the node or its inventory, such as
    /// `${node.name}`.
    pub expression: Option<String>,
    /// Where: the path tells a template's value from a method's own.
    pub spot: Spot,
}

/// Where the values of one method were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodWritten {
    /// The plug, unless it is empty.
    pub plug: Option<Written>,
    /// By parameter; one that is missing follows from the node.
    pub parameters: BTreeMap<String, Written>,
}

impl FenceSource {
    /// Where the values of each method were written, in the order of a plan's methods.
    pub fn written(&self, named: &BTreeSet<String>) -> Vec<MethodWritten> {
        self.drafts(named).map(Draft::written).collect()
    }
}

/// A method as it was written, for whichever node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodUse {
    /// Its name.
    pub name: String,
    /// Its plugin; none where it is built in, or where the node says which.
    pub plugin: Option<String>,
    /// What it is called with.
    pub written: MethodWritten,
    /// The names of its credentials.
    pub credentials: Vec<String>,
    /// Where it stands.
    pub spot: Spot,
}

impl FenceSource {
    /// Every method, also of those that no stage names.
    pub fn uses(&self) -> impl Iterator<Item = MethodUse> + '_ {
        self.methods.iter().chain(&self.beside).map(|draft| MethodUse {
            name: draft.name.clone(),
            plugin: match &draft.does {
                Does::Plugin(plugin) => Some(plugin.clone()),
                Does::Builtin(_) | Does::Instance => None,
            },
            written: draft.written(),
            credentials: draft.credentials.keys().cloned().collect(),
            spot: draft.plug.spot.clone(),
        })
    }

    /// The grants that it gives; none where each method has those of its own address.
    pub fn grants_given(&self) -> Option<&[Grant]> {
        match &self.grants {
            Grants::Given(grants) => Some(grants),
            Grants::AddressesOfMethods => None,
        }
    }
}

impl Draft {
    fn written(&self) -> MethodWritten {
        let parameters = self.parameters.iter();
        MethodWritten {
            plug: Some(written(&self.plug)).filter(|_| !self.plug.to_string().is_empty()),
            parameters: parameters
                .map(|(name, expression)| (name.clone(), written(expression)))
                .collect(),
        }
    }
}

/// Whether a parameter's value is nobody's to read.
pub fn is_hidden(parameter: &str) -> bool {
    is_secret(parameter)
}

fn written(expression: &Expression) -> Written {
    let text = expression.takes().then(|| expression.to_string());
    Written { text: expression.to_string(), expression: text, spot: expression.spot.clone() }
}
